"""Delete rows with a Spark job: one snapshot, through deletion vectors.

Files whose every row matches leave whole; of the others executors find the positions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from frazil.commit.change import Change, Isolation
from frazil.commit.result import CommitResult
from frazil.rows.editor import DELETE_ISOLATION
from frazil.spark.conditions import explained
from frazil.spark.find_table import CatalogLike, session, table_of
from frazil.spark.removal import removal
from frazil.spark.target import Binding, Condition
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delete(
    table: Table | str,
    where: Condition,
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """Delete the rows that match a condition, which is Spark SQL or a column.

    >>> frazil.spark.delete("shop.orders", "status = 'void'")             # doctest: +SKIP
    """
    spark = session()
    return delete_rows(spark, table_of(spark, table, catalog), where, summary=summary)


def delete_rows(
    spark: SparkSession,
    table: Table,
    where: Condition,
    *,
    bound: Binding | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """The same with the session at hand; `bound` gives the table's columns other identities."""
    began = time.perf_counter()
    with explained("delete"):
        gone = removal(spark, table, where, bound=bound)
    change = Change(
        branch=table.branch_name,
        base_snapshot_id=gone.base_snapshot_id,
        removed=gone.removed,
        vectors=gone.vectors,
        conflict_filter=gone.conflict_filter,
        isolation=Isolation.parse(table.properties.get(DELETE_ISOLATION, Isolation.SERIALIZABLE)),
        summary=dict(summary or {}),
    )
    if not change.has_content:
        return CommitResult.nothing("no row matched", ms=(time.perf_counter() - began) * 1000)
    done = table._handle.commit(change)
    return replace(done, ms=(time.perf_counter() - began) * 1000)
