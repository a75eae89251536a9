"""The distributed engine: the row algebra of `rows` as Spark jobs.

It takes what every engine takes (plans, checked SQL in Frazil's dialect, sinks) and gives the same
results as the embedded one; tokens of SQL that Spark spells differently are rewritten
(`sql_dialect`). The functions of this package and Spark
SQL share its frames and sinks, but say conditions in Spark's own terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from frazil.data.metadata_columns import LAST_UPDATED, POS, ROW_ID
from frazil.data.write.row_input import record_batches
from frazil.data.write.write_options import WriteOptions
from frazil.errors import InvalidInput
from frazil.filter.text.sql_text import SOURCE, TARGET, SqlText
from frazil.format.values.types import plain_value
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import SortOrder
from frazil.rows.actions import ACTION, KEY, Action, RowNumbers, RowSink, SinkResult
from frazil.rows.columns.column_functions import Called
from frazil.rows.columns.column_sink import ColumnSink, UpdatedFile
from frazil.rows.engine import Assignments, MergePlan, Value
from frazil.rows.merge_clauses import Clause
from frazil.rows.planned import Longs, Planned
from frazil.rows.z_order import ZOrder
from frazil.spark.bridge.verbs import bridge_for
from frazil.spark.expressions.conditions import condition, explained, literal, quoted
from frazil.spark.expressions.sql_dialect import spark_text
from frazil.spark.read.bulk_reads import frame
from frazil.spark.rows.merge_frames import MergeFrames
from frazil.spark.rows.merge_source import SparkSource
from frazil.spark.rows.new_values import Paths, new_columns, updated
from frazil.spark.rows.zorder import z_order
from frazil.spark.session.find_table import session
from frazil.spark.types.spark_arrow import arrow_of, column_into_spark
from frazil.spark.types.spark_types import frame_schema, spark_schema, spark_type
from frazil.spark.write.column_files import functions_written, values_written
from frazil.spark.write.distribution import order_columns
from frazil.spark.write.sinks import collected_keys, written
from frazil.value_classes import replace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Z = "__frazil_z"


class SparkEngine:
    """Carries out row-level changes as Spark jobs; the active session is used unless one is given.

    >>> table.transaction(engine=SparkEngine())                            # doctest: +SKIP
    """

    is_duckdb = False

    def __init__(self, spark: SparkSession | None = None) -> None:
        self._spark = spark

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self._spark or session()

    def matching(self, planned: Planned) -> Longs:
        """Keys of the rows that the scan's condition holds for."""
        with explained("filter"):
            return collected_keys(self._matching(planned).select(KEY))

    def update(self, planned: Planned, values: Assignments, sink: RowSink) -> list[SinkResult]:
        """Rows that match, with new values, into sinks."""
        with explained("update"):
            new = _columns(values, planned.scan.table_schema)
            return written(updated(self._matching(planned), planned.scan.table_schema, new), sink)

    def computed(
        self, planned: Planned, values: Assignments, sink: ColumnSink
    ) -> list[UpdatedFile]:
        """New values of columns for the rows that match."""
        with explained("update"):
            new = _columns(values, planned.scan.table_schema)
            rows = new_columns(self._matching(planned, POS.name), sink.fields, new)
            return values_written(rows, planned, sink)

    def joined(
        self, planned: Planned, source: Any, on: Sequence[str], sink: ColumnSink
    ) -> list[UpdatedFile]:
        """Values of columns from a source, by keys."""
        assert isinstance(source, SparkSource)
        with explained("merge_columns"):
            ours = self._rows(planned, POS.name).select(*map(quoted, on), KEY, POS.name)
            names = [quoted(column.name) for column in sink.fields]
            values = ours.join(source.frame, list(on), "inner").select(*names, KEY, POS.name)
            return values_written(values, planned, sink)

    def called(self, planned: Planned, functions: Called, sink: ColumnSink) -> list[UpdatedFile]:
        """What functions of batches give."""
        return functions_written(self.spark, functions, planned, sink)

    def types(self, planned: Planned, values: Mapping[str, SqlText]) -> Schema:
        """The columns that expressions over the rows of a plan give."""
        with explained("add_columns"):
            columns = [_column(text).alias(name) for name, text in values.items()]
            return frame_schema(self._rows(planned).select(*columns).schema)

    def source(self, rows: Any, schema: Schema) -> SparkSource:
        """Rows to merge: a frame, or whatever the table takes as rows."""
        if isinstance(rows, DataFrame):
            return SparkSource(rows)
        table = record_batches(rows, schema).read_all()
        known = {field.name: field for field in schema.fields}
        columns = [
            _into_spark(column, known.get(name))
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]
        arranged = pa.table(columns, names=table.column_names)
        return SparkSource(self.spark.createDataFrame(arranged))

    def merge(
        self, planned: Planned, source: Any, plan: MergePlan, sink: RowSink
    ) -> list[SinkResult]:
        """Rows of the table joined with a source, into sinks."""
        assert isinstance(source, SparkSource)
        schema = plan.schema
        with explained("merge"):
            merging = MergeFrames(
                schema=schema,
                rows=self._rows(planned),
                source=source,
                on=_on(plan),
                clauses=[
                    Clause(
                        side=clause.side,
                        action=clause.action,
                        condition=None if clause.condition is None else _column(clause.condition),
                        values=None if clause.values is None else _columns(clause.values, schema),
                    )
                    for clause in plan.clauses
                ],
                only_changes=plan.only_changes,
            )
            first, then = merging.frames()
            results = written(first, sink)
            if then is not None and (more := then(results)) is not None:
                rest, max_rows = more
                results += written(rest, sink, max_rows=max_rows)
            if not plan.only_changes:  # a source row may meet many rows of the table
                results = [replace(result, sources=RowNumbers()) for result in results]
            return results

    def sorted(
        self, planned: Planned, order: SortOrder | ZOrder, sink: RowSink
    ) -> list[SinkResult]:
        """All rows of the plan's files with their lineage, in an order, into sinks."""
        schema = planned.scan.table_schema
        rows = self._rows(planned, LAST_UPDATED.name)
        total = int(planned.plan.files.numpy("file_size_in_bytes").sum())
        outputs = max(
            1, -(-total // WriteOptions.from_properties(sink.properties).target_file_bytes)
        )
        if isinstance(order, ZOrder):
            z = z_order(rows, order.columns, rows=int(planned.records.sum()))
            arranged = rows.withColumn(_Z, z).repartitionByRange(outputs, _Z)
            arranged = arranged.sortWithinPartitions(_Z).drop(_Z)
        else:
            by = order_columns(rows, order, schema)
            arranged = rows.repartitionByRange(outputs, *by).sortWithinPartitions(*by)
        new = arranged.withColumns(
            {KEY: F.lit(None).cast("long"), ACTION: F.lit(int(Action.INSERT))}
        )
        return written(new, sink, is_distributed=True)

    # Rows of a plan

    def _rows(self, planned: Planned, *more: str) -> DataFrame:
        """Every row of the plan's files: the table's columns, `_row_id`, and the key."""
        names = tuple(field.name for field in planned.scan.table_schema.fields)
        scan = replace(
            planned.scan,
            columns=(*names, ROW_ID.name, *more),
            matching=AlwaysTrue(),
            params=(),
            max_rows=None,
        )
        spark = self.spark
        every = planned.seen_by(scan)
        return frame(spark, scan, planned=every, key=KEY, bridge=bridge_for(spark))

    def _matching(self, planned: Planned, *more: str) -> DataFrame:
        rows = self._rows(planned, *more)
        said = planned.scan.condition
        if said.sql is not None:
            return rows.filter(_column(said.sql))
        return rows.filter(condition(said.filter, lambda column: F.col(quoted(*column.path))))


def _on(plan: MergePlan) -> Column:
    parts = [
        F.col(quoted(pair.target, alias=TARGET)) == F.col(quoted(pair.source, alias=SOURCE))
        for pair in plan.pairs
    ]
    if plan.on is not None:
        parts.append(_column(plan.on))
    return reduce(lambda left, right: left & right, parts)


def _column(text: SqlText) -> Column:
    return F.expr(spark_text(text.text))


def _columns(values: Assignments, schema: Schema) -> Paths:
    return {path: _value(path, value, schema) for path, value in values.items()}


def _value(path: Sequence[str], value: Value, schema: Schema) -> Column:
    if isinstance(value, SqlText):
        return _column(value)
    kind: ice.IcebergType = schema.as_struct()
    for name in path:
        assert isinstance(kind, ice.StructType)
        kind = next(field.field_type for field in kind.fields if field.name == name)
    try:
        return _constant(value.value, kind)
    except InvalidInput as problem:
        raise InvalidInput(f"column {'.'.join(path)}: {problem}") from None


def _constant(value: Any, kind: ice.IcebergType) -> Column:
    if value is None:
        return F.lit(None).cast(spark_type(kind))
    match kind:
        case ice.StructType():
            parts = [
                _constant(value.get(field.name), field.field_type).alias(field.name)
                for field in kind.fields
            ]
            return F.struct(*parts)
        case ice.ListType():
            return F.array(*(_constant(item, kind.element_type) for item in value))
        case ice.MapType():
            pairs = value.items() if isinstance(value, Mapping) else value
            flat = [
                column
                for key, item in pairs
                for column in (_constant(key, kind.key_type), _constant(item, kind.value_type))
            ]
            return F.create_map(*flat)
    return literal(plain_value(value, kind), kind)


def _into_spark(column: pa.ChunkedArray, field: ice.NestedField | None) -> pa.ChunkedArray:
    chunks = column.chunks or [pa.array([], column.type)]  # PySpark trips over none at all
    if field is None:
        return pa.chunked_array(chunks)
    target = arrow_of(spark_schema(Schema(field)))[0].type
    return pa.chunked_array(
        [column_into_spark(chunk, field.field_type, target) for chunk in chunks], target
    )
