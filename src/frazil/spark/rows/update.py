"""Update rows with a Spark job: one snapshot. Old rows are retired, new ones keep their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import POS
from frazil.properties.registry import UPDATE_ISOLATION
from frazil.rows.editor import update_mode
from frazil.spark.expressions.conditions import explained
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.rows.changed_rows import Binding, ChangedRows, Condition
from frazil.spark.rows.column_job import ColumnJob
from frazil.spark.rows.new_values import Paths, by_path, updated
from frazil.spark.rows.row_level import RowLevelJob
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.spark.session.session_bridge import refresh_cache
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def update(
    table: Table | str,
    assignments: Mapping[str, Any],
    where: Condition | None = None,
    *,
    mode: str | None = None,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """Update matching rows (all rows without `where`).

    Values are literals; `frazil.expr("price * 2")` and Spark columns are expressions over the row.
    `address.city` names a part of a struct. `mode` is that of `Table.update`: "rows", "columns" or
    "auto".

    >>> frazil.spark.update(orders, {"price": frazil.expr("price * 2")}, "id = 7")  # doctest: +SKIP
    """
    spark = session()
    opened = table_of(spark, table, catalog)
    values = by_path(assignments, opened.metadata.schema())
    terms = WriteTerms(table=opened, summary=dict(summary or {}))
    result = update_rows(spark, terms, values, where, mode=mode)
    refresh_cache(spark, opened)
    return result


def update_rows(
    spark: SparkSession,
    terms: WriteTerms,
    assignments: Paths,
    where: Condition | None = None,
    *,
    mode: str | None = None,
    bound: Binding | None = None,
    metadata_columns: Sequence[str] = (),
    held: Any = None,
) -> CommitResult:
    """The same on the terms of a statement; `bound` gives the table's columns other identities,
    and `held` are the expressions of a statement in Java."""
    table = terms.table
    mode = update_mode(terms.metadata, mode)
    if mode != "rows":
        metadata_columns = (*metadata_columns, POS.name)
    target = ChangedRows.of(
        spark, table, bound=bound, scan=terms.scan(), metadata_columns=metadata_columns
    )
    if mode != "rows":
        job = ColumnJob(terms=terms, target=target, assignments=assignments, held=held)
        return job.run(where, is_auto=mode == "auto")
    with explained("update"):
        rows = target.rows if where is None else target.rows.filter(where)
        frame = updated(rows, table.metadata.schema(), assignments, held=held)
        return RowLevelJob(
            terms=terms,
            target=target,
            with_lineage=True,
            isolation=terms.level(UPDATE_ISOLATION),
        ).run(frame)
