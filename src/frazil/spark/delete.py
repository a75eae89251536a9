"""Delete rows with a Spark job: one snapshot, through deletion vectors.

Files whose every row matches leave whole; of the others executors find the positions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyiceberg.expressions import BooleanExpression

from frazil.commit.change import Change, Isolation
from frazil.commit.result import CommitResult
from frazil.rows.editor import DELETE_ISOLATION
from frazil.spark.removal import removal
from frazil.spark.session import CatalogLike, table_of
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delete(
    spark: SparkSession,
    table: Table | str,
    where: str | BooleanExpression,
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """Delete the rows that match a filter.

    >>> frazil.spark.delete(spark, "shop.orders", "status = 'void'")      # doctest: +SKIP
    """
    began = time.perf_counter()
    target = table_of(spark, table, catalog)
    target.handle.check_writable()
    scan = target.scan(where)
    gone = removal(spark, scan)
    change = Change(
        branch=target.branch_name,
        base_snapshot_id=None if scan.snapshot is None else int(scan.snapshot.snapshot_id),
        removed=gone.removed,
        vectors=gone.vectors,
        conflict_filter=scan.filter,
        isolation=Isolation.parse(target.properties.get(DELETE_ISOLATION, Isolation.SERIALIZABLE)),
        summary=dict(summary or {}),
    )
    if not change.has_content:
        return CommitResult.nothing("no row matched", ms=(time.perf_counter() - began) * 1000)
    done = target.handle.commit(change)
    return replace(done, ms=(time.perf_counter() - began) * 1000)
