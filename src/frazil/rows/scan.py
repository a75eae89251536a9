"""A scan as users see it: lazy, chainable, explainable, and convertible to every kind of frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from frazil import arrow_values
from frazil.argument_checks import check_arguments
from frazil.commit.handle import TableHandle
from frazil.data.arrow_rows import ArrowRows
from frazil.data.metadata_columns import METADATA_COLUMNS, partition_column, with_dropped
from frazil.errors import InvalidInput, Unsupported
from frazil.filter.condition import Condition, Matching, Where, condition, text_of
from frazil.format.metadata.metadata import Snapshot
from frazil.iceberg.expressions import And, BooleanExpression
from frazil.iceberg.schema import Schema
from frazil.properties.registry import NAME_MAPPING, VERIFY_CHECKSUMS
from frazil.scan.plan import COUNT_KEYS, FILE_KEYS, Plan, plan
from frazil.scan.report import ScanReport
from frazil.text_format import card, did_you_mean
from frazil.value_classes import dataclass, replace

if TYPE_CHECKING:
    import duckdb
    import polars
    import pyarrow.dataset
    from pyiceberg.schema import Schema as PyIcebergSchema
    from pyiceberg.table import FileScanTask

    from frazil.data.read.read_files import Reading
    from frazil.filter.prune.expression_terms import Expressions
    from frazil.scan.tasks import Task, TaskReader

DEFAULT_SPLIT_BYTES = 128 * 1024 * 1024


@check_arguments
@dataclass(frozen=True)
class Scan(ArrowRows):
    """Rows of one snapshot, selected by filter and columns. Lazy: nothing is read until needed.

    A scan is pinned to the snapshot that was current when it was created, so reading it twice
    gives the same rows.
    """

    _handle: TableHandle
    snapshot: Snapshot | None
    matching: Where = None
    columns: tuple[str, ...] | None = None
    max_rows: int | None = None
    case_sensitive: bool = True
    schema_override: Schema | None = None
    params: tuple[Any, ...] = ()
    is_judged_by_duckdb: bool = True
    """Whether DuckDB evaluates the condition, as it did for the statistics of expressions."""

    def __repr__(self) -> str:
        columns = "all columns" if self.columns is None else ", ".join(self.columns)
        where = "" if self.matching is None else f" where {self.matching}"
        limit = "" if self.max_rows is None else f" limit {self.max_rows}"
        at = "empty" if self.snapshot is None else f"snapshot {self.snapshot.snapshot_id}"
        return f"Scan({self._handle.name}: {columns}{where}{limit}; {at})"

    def _repr_html_(self) -> str:
        facts = {
            "columns": None if self.columns is None else ", ".join(self.columns),
            "where": self.matching,
            "limit": self.max_rows,
            "snapshot": None if self.snapshot is None else self.snapshot.snapshot_id,
        }
        return card(f"scan of {self._handle.name}", facts)

    # Choosing

    def where(self, where: Matching, *, params: Sequence[Any] = ()) -> Scan:
        """The rows of this scan that also match a condition."""
        if self.matching is None:
            return replace(self, matching=where, params=tuple(params))
        first = text_of(self.matching, self.params, self.table_schema)
        second = text_of(where, params, self.table_schema)
        if first is not None and second is not None:
            return replace(self, matching=f"({first}) AND ({second})", params=())
        other = replace(self, matching=where, params=tuple(params))
        return replace(self, matching=And(self.filter, other.filter), params=())

    def select(self, *columns: str) -> Scan:
        """The same rows with these columns only."""
        if not columns:
            raise InvalidInput("select needs a column: scan.select('id', 'price')")
        return replace(self, columns=tuple(columns))

    def limit(self, rows: int) -> Scan:
        """The first rows of this scan."""
        if rows < 0:
            raise InvalidInput(f"rows is {rows}; expected 0 or more")
        return replace(self, max_rows=rows if self.max_rows is None else min(rows, self.max_rows))

    @cached_property
    def table_schema(self) -> Schema:
        """Every column of the table as this snapshot has it."""
        if self.schema_override is not None:
            return self.schema_override
        metadata = self._handle.metadata
        is_tip = self.snapshot is None or self.snapshot == self._handle.state.tip()
        return metadata.schema() if is_tip else metadata.schema_of(self.snapshot)  # type: ignore[arg-type]

    @cached_property
    def condition(self) -> Condition:
        """Which rows match: a filter that prunes, and SQL where that does not say it all."""
        return condition(
            self.matching,
            self.table_schema,
            params=self.params,
            case_sensitive=self.case_sensitive,
            expressions=self.expressions if self.is_judged_by_duckdb else None,
        )

    def expressions(self) -> Expressions | None:
        """The table's expressions, as conditions on this snapshot may name them."""
        metadata = self._handle.metadata
        if not metadata.has_sql_expressions:
            return None
        from frazil.filter.prune.expression_terms import Expressions

        return Expressions.of(metadata.expressions, self.table_schema, current=metadata.schema())

    @property
    def filter(self) -> BooleanExpression:
        """The bound filter. Raises Unsupported for conditions that only an engine can evaluate."""
        bound = self.condition
        if bound.sql is not None:
            raise Unsupported(
                f"only an engine can evaluate {bound.sql.text!r}; use to_arrow or to_duckdb",
                feature="SQL condition",
            )
        return bound.filter

    @property
    def schema(self) -> PyIcebergSchema:
        """The columns that reading gives, as PyIceberg's schema."""
        from frazil.iceberg.pyiceberg_values import pyiceberg_schema

        return pyiceberg_schema(self.read_schema)

    @cached_property
    def read_schema(self) -> Schema:
        """The columns that reading gives, metadata columns included when named."""
        if self.columns is None:
            return self.table_schema
        return select_columns(
            self.table_schema,
            self.columns,
            specs=self._handle.metadata.partition_specs,
            case_sensitive=self.case_sensitive,
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        from frazil.data.schema import arrow_schema

        return arrow_schema(self.read_schema)

    # Planning

    def plan(
        self,
        *,
        keys: Sequence[str] = FILE_KEYS,
        extra_keys: Sequence[str] = (),
        per_leaf: bool = False,
    ) -> Plan:
        """The files to read, as an Arrow table with a report. Cheap: no objects per file.

        `keys` are the columns of the files' entries to read, `extra_keys` further ones. With
        `per_leaf` the report says of every leaf what became of it.
        """
        return plan(
            self._handle.reader(),
            self.snapshot,
            schema=self.table_schema,
            where=self.condition.filter,
            keys=keys,
            extra_keys=extra_keys,
            per_leaf=per_leaf,
        )

    def tasks(self, *, split_bytes: int | None = None) -> list[Task]:
        """The plan as tasks; with `split_bytes`, large files are cut at their row groups."""
        from frazil.scan.tasks import split_tasks, tasks_of

        planned = self.plan(extra_keys=("split_offsets",) if split_bytes else ())
        tasks = list(tasks_of(planned, location=self._handle.location))
        return split_tasks(tasks, split_bytes) if split_bytes else tasks

    def to_pyiceberg_tasks(self) -> list[FileScanTask]:
        """The plan as PyIceberg's tasks, for its readers and tools."""
        from frazil.iceberg.pyiceberg_values import pyiceberg_expression
        from frazil.scan.pyiceberg_tasks import file_scan_tasks

        metadata = self._handle.metadata
        where = pyiceberg_expression(self.filter)
        return list(file_scan_tasks(self.tasks(), metadata, where=where))

    def explain(self, *, per_leaf: bool = False) -> ScanReport:
        """What planning considered and pruned, level by level. Prints as text.

        With `per_leaf`, it also names the column that ruled out each leaf that was not opened.
        """
        return self.plan(per_leaf=per_leaf).report

    def _reading(self) -> Reading:
        """How tasks of this scan are read; picklable."""
        from frazil.data.read.read_files import Reading

        metadata = self._handle.metadata
        return Reading(
            storage=self._handle.storage,
            schema=self.read_schema,
            table_schema=with_dropped(self.table_schema, metadata.schemas),
            row_filter=self.filter,
            specs=metadata.specs_by_id(),
            name_mapping=NAME_MAPPING.of(metadata.properties),
            verify_checksums=VERIFY_CHECKSUMS.of(metadata.properties),
        )

    def _task_reader(self) -> TaskReader:
        # What reads files is loaded by who reads: a plan in a new process does without it.
        from frazil.scan.tasks import TaskReader

        return TaskReader(self._reading())

    # Reading

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, in the order of the files and in bounded memory."""
        if self.condition.sql is not None:
            yield from self._engine_batches()
            return
        reader, tasks = self._task_reader(), self.tasks()
        if self.max_rows is None:
            yield from reader.stream(tasks)
            return
        batches = (batch for task in tasks for batch in reader.read(task))
        yield from arrow_values.first_rows(batches, self.max_rows)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table; files are read in parallel."""
        schema = self.arrow_schema
        if self.max_rows is not None or self.condition.sql is not None:
            return pa.Table.from_batches(list(self.to_batches()), schema=schema)
        reader = self._task_reader()
        return pa.Table.from_batches(list(reader.read_all(self.tasks())), schema=schema)

    @overload
    def to_polars(self, *, lazy: Literal[False] = False) -> polars.DataFrame: ...

    @overload
    def to_polars(self, *, lazy: Literal[True]) -> polars.LazyFrame: ...

    def to_polars(self, *, lazy: bool = False) -> polars.DataFrame | polars.LazyFrame:
        """All rows as a polars frame. A lazy frame reads only the files and columns that its query
        needs, when it is collected."""
        if lazy:
            from frazil.rows.polars_scan import lazy_frame

            return lazy_frame(self)
        return super().to_polars()

    def to_dataset(self) -> pyarrow.dataset.Dataset:
        """The rows as a lazy pyarrow dataset, which reads only the files and columns that a
        consumer's filter and projection need."""
        from frazil.rows.arrow_dataset import ScanDataset

        return ScanDataset(self)

    def to_duckdb(
        self, name: str | None = None, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyRelation:
        """The rows as a lazy DuckDB relation: DuckDB reads the files when it needs them.

        With a name, SQL on the connection can use the rows as a view:
        `orders.scan().to_duckdb("orders").query("orders", "SELECT count(*) FROM orders")`.
        """
        from frazil.data.read import verified
        from frazil.rows.duckdb import duckdb_connection, duckdb_failures, duckdb_scan
        from frazil.rows.planned import Planned

        connection = duckdb_connection.connect() if connection is None else connection
        folders = duckdb_connection.open_folders(connection)
        query = duckdb_scan.scan_sql(Planned.of(self), folders=folders)
        query.verify(max_bytes=verified.QUERY_BYTES)
        query.bind(connection)
        with duckdb_failures.explained(self._what):
            relation = connection.sql(query.text)
            return relation if name is None else relation.create_view(name)

    @property
    def _what(self) -> str:
        """What an engine's complaint is about."""
        return "scan" if self.condition.sql is None else f"filter {self.condition.sql.text!r}"

    def _engine_batches(self) -> Iterator[pa.RecordBatch]:
        from frazil.data.write.row_input import conformed
        from frazil.rows.duckdb import duckdb_connection, duckdb_failures, duckdb_streams

        connection = duckdb_connection.connect()
        relation = self.to_duckdb(connection=connection)
        query = relation.sql_query()
        explained = duckdb_failures.explained(self._what)
        with explained, duckdb_connection.streaming(connection, query):
            reader = relation.to_arrow_reader(1 << 17)
            with duckdb_streams.streamed(reader, connection, query) as rows:
                yield from conformed(rows, self.read_schema)

    def count(self) -> int:
        """The number of rows, from metadata where possible; other files are read in parallel.

        Metadata is believed, as the files it counts are not opened: `check(deep=True)` compares it
        with them, and so does everything that reads rows.
        """
        bound = self.condition
        if bound.sql is not None:
            from frazil.rows.duckdb import duckdb_failures

            with duckdb_failures.explained(self._what):
                return int(self.to_duckdb().aggregate("count(*)").fetchall()[0][0])
        total = self._counted()
        return total if self.max_rows is None else min(total, self.max_rows)

    def _counted(self) -> int:
        """Rows by metadata, in columns; only files that it cannot count become tasks."""
        planned = self.plan(keys=COUNT_KEYS if self.condition.is_everything else FILE_KEYS)
        by_metadata = planned.count_mask()
        total = int(planned.live_records()[by_metadata].sum())
        if by_metadata.all():
            return total
        from frazil.scan.tasks import tasks_of

        reader = self._task_reader()

        def rows(task: Task) -> int:
            return len(reader.positions(task))

        location = self._handle.location
        tasks = list(tasks_of(planned.only(~by_metadata), location=location))
        return total + sum(self._handle.reader().map(tasks, rows))


def select_columns(
    schema: Schema, names: Sequence[str], *, specs: Sequence[Any], case_sensitive: bool = True
) -> Schema:
    """The schema of the named columns, in their order; metadata columns by their names."""
    known_names = {
        **METADATA_COLUMNS,
        "_partition": partition_column(specs, schema),
    }
    fields: list[Any] = []
    unknown: list[str] = []
    own_fields = {field.name: field for field in schema.fields}
    for name in names:
        if name in own_fields:  # a name may have dots
            fields.append(own_fields[name])
            continue
        top = name.split(".")[0]
        if name in known_names and top not in own_fields:
            fields.append(known_names[name])
            continue
        try:
            fields.append(schema.find_field(top, case_sensitive=case_sensitive))
            schema.find_field(name, case_sensitive=case_sensitive)
        except ValueError:
            unknown.append(name)
    if unknown:
        columns = ", ".join(field.name for field in schema.fields)
        raise InvalidInput(
            f"unknown column{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}; "
            f"the table has {columns}"
            + did_you_mean(unknown[0], [field.name for field in schema.fields])
        )
    nested = [name for name in names if "." in name and name not in own_fields]
    if nested:
        plain_names = [name for name in names if name not in known_names]
        chosen = schema.select(*plain_names, case_sensitive=case_sensitive)
        by_id = {field.field_id: field for field in chosen.fields}
        fields = [by_id.get(field.field_id, field) for field in fields]
    distinct = {field.field_id: field for field in fields}
    return Schema(*distinct.values())
