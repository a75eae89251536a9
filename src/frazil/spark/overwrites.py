"""Rows of a frame in the place of others: of those that match, or of whole partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyiceberg.expressions import BooleanExpression

from frazil.commit.change import Change
from frazil.commit.result import CommitResult
from frazil.errors import InvalidInput
from frazil.rows.partitions import Replaced
from frazil.rows.planned import Planned
from frazil.spark.conditions import explained
from frazil.spark.find_table import CatalogLike, table_of
from frazil.spark.removal import removal
from frazil.spark.target import Binding, Condition
from frazil.spark.writer import change_of, commit_added, isolation_of, write_frame
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def overwrite(
    table: Table | str,
    frame: DataFrame,
    where: Condition | BooleanExpression | None = None,
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
    bound: Binding | None = None,
) -> CommitResult:
    """Replace matching rows (all rows without `where`) with those of a frame, in one snapshot.

    `where` is Spark SQL or a column; `bound` gives the table's columns other identities.
    """
    spark = frame.sparkSession
    target = table_of(spark, table, catalog)
    matching: Condition | BooleanExpression = "true" if where is None else where
    entries = write_frame(frame, target)

    def change() -> Change:
        with explained("overwrite"):
            gone = removal(spark, target, matching, bound=bound)
        return change_of(
            target,
            added=entries,
            removed=gone.removed,
            vectors=gone.vectors,
            conflict_filter=gone.conflict_filter,
            isolation=isolation_of(target),
        )

    return commit_added(target, entries, change, summary=summary)


def overwrite_partitions(
    table: Table | str,
    frame: DataFrame,
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """Replace every partition that the rows of the frame touch, in one snapshot."""
    target = table_of(frame.sparkSession, table, catalog)
    if not target.spec.fields:
        raise InvalidInput("the table is not partitioned: use overwrite, with or without a filter")
    entries = write_frame(frame, target)

    def change() -> Change:
        replaced = Replaced.of(entries, target.metadata)
        removed, vectors = replaced.removal(Planned.of(target.scan(replaced.filter)))
        return change_of(
            target,
            added=entries,
            removed=removed,
            vectors=vectors,
            conflict_filter=replaced.filter,
            isolation=isolation_of(target),
        )

    return commit_added(target, entries, change, summary=summary)
