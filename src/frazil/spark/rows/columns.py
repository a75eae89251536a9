"""New columns with values for every row, and values of columns by key, as Spark jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import POS
from frazil.errors import InvalidInput
from frazil.filter.text.sql_text import Expression
from frazil.rows.actions import KEY
from frazil.rows.columns.column_changes import sampled, updated_columns
from frazil.rows.columns.column_functions import Called, Function
from frazil.rows.columns.column_sink import ColumnSink, UpdatedFile
from frazil.rows.planned import Planned
from frazil.spark.expressions.conditions import explained, quoted
from frazil.spark.rows.changed_rows import ChangedRows
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.spark.session.session_bridge import refresh_cache
from frazil.spark.types.spark_types import frame_schema
from frazil.spark.write.column_files import functions_written, values_written
from frazil.spark.write.writer import renamed
from frazil.table.column_operations import check_new_columns
from frazil.table.table import Table
from frazil.table.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from frazil.iceberg.schema import Schema


def add_columns(
    table: Table | str,
    columns: Mapping[str, str | Expression | Column | Function],
    *,
    read_columns: Sequence[str] | None = None,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """Add columns with values for every row: each Spark SQL, a Spark column, or a function that is
    given batches of rows (`pyarrow.RecordBatch`) and returns as many values.

    Executors compute the values and write them to column files beside the data files, as
    `Table.add_columns` does. Functions are called with `read_columns`, by default all columns, and
    once on the driver with a single row to learn the type.

    >>> frazil.spark.add_columns("shop.orders", {"margin": "price - cost"})  # doctest: +SKIP
    """
    check_new_columns(columns, Column)
    spark = session()
    opened = table_of(spark, table, catalog)
    functions = {
        name: value
        for name, value in columns.items()
        if not isinstance(value, str | Expression | Column)
    }
    texts = {name: value for name, value in columns.items() if name not in functions}
    with opened.transaction() as tx:
        read = opened.scan(columns=None if read_columns is None else list(read_columns))
        kinds = sampled(read, functions) if functions else {}
        updates: list[list[UpdatedFile]] = []
        rows = ChangedRows.of(spark, opened, metadata_columns=(POS.name,))
        with explained("add_columns"):
            values = rows.rows.select(
                *(_expression(value).alias(name) for name, value in texts.items()), KEY, POS.name
            )
            types = frame_schema(values.select(*map(quoted, texts)).schema) if texts else None
        kinds |= {column.name: column for column in types.fields} if types is not None else {}
        evolve = tx.evolve_schema()
        for name in columns:
            evolve.add_column((name,), kinds[name].field_type)
        evolve.commit()
        planned = Planned.of(opened.scan())
        if texts:
            planned, _ = rows.planned(values)
            with explained("add_columns"):
                sink = _sink(tx, planned, list(texts))
                updates.append(values_written(values, planned, sink))
        if functions:
            sink = _sink(tx, planned, list(functions))
            called = Called(functions, read.read_schema)
            updates.append(functions_written(spark, called, planned, sink))
        tx._apply(updated_columns(opened.branch_name, planned, *updates), summary=summary)
    refresh_cache(spark, opened)
    return tx.result


def merge_columns(
    table: Table | str,
    rows: DataFrame,
    on: str | Sequence[str],
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """Take the values of columns from rows with the same key; columns that the table lacks are
    added. Rows of the table without a match keep what they have; no row is added.

    Written to column files by executors, as by `add_columns`.

    >>> frazil.spark.merge_columns("shop.orders", scores, on="id")           # doctest: +SKIP
    """
    spark = rows.sparkSession
    opened = table_of(spark, table, catalog)
    keys = [on] if isinstance(on, str) else list(on)
    source = renamed(rows, opened.metadata.schema())
    names = [name for name in source.columns if name not in keys]
    _check_keys(keys, opened.metadata.schema(), source)
    if not names:
        raise InvalidInput("the rows have no column besides the key columns")
    with opened.transaction() as tx:
        new = [name for name in names if name not in opened.metadata.schema().column_names]
        if new:
            kinds = frame_schema(source.select(*map(quoted, new)).schema)
            evolve = tx.evolve_schema()
            for column in kinds.fields:
                evolve.add_column((column.name,), column.field_type)
            evolve.commit()
        target = ChangedRows.of(spark, opened, metadata_columns=(POS.name,))
        with explained("merge_columns"):
            ours = target.rows.select(*map(quoted, keys), KEY, POS.name)
            values = ours.join(source, keys, "inner").select(*map(quoted, names), KEY, POS.name)
            planned, _ = target.planned(values)
            sink = _sink(tx, planned, names)
            files = values_written(values, planned, sink)
        tx._apply(updated_columns(opened.branch_name, planned, files), summary=summary)
    refresh_cache(spark, opened)
    return tx.result


def _sink(tx: Transaction, planned: Planned, names: Sequence[str]) -> ColumnSink:
    schema = tx.metadata.schema()
    return ColumnSink.of(
        planned,
        [schema.find_field(name) for name in names],
        handle=tx._handle,
        metadata=tx.metadata,
        written=tx._written,
    )


def _expression(value: Any) -> Column:
    return value if isinstance(value, Column) else F.expr(str(value))


def _check_keys(keys: Sequence[str], schema: Schema, source: DataFrame) -> None:
    lacking = [name for name in keys if name not in schema.column_names]
    if lacking or not keys:
        raise InvalidInput(
            f"merge_columns needs key columns of the table: {', '.join(lacking) or 'none given'}"
        )
    missing = [name for name in keys if name not in source.columns]
    if missing:
        raise InvalidInput(
            f"the rows have no key column {', '.join(missing)}; they have "
            + ", ".join(source.columns)
        )
