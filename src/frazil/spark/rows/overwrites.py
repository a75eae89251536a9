"""Rows of a frame in the place of others: of those that match, or of whole partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from frazil.commit.change import Change
from frazil.commit.result import CommitResult
from frazil.errors import InvalidInput
from frazil.iceberg.expressions import BooleanExpression
from frazil.properties.registry import OVERWRITE_ISOLATION
from frazil.rows.partitions import Replaced
from frazil.rows.planned import Planned
from frazil.spark.expressions.conditions import explained
from frazil.spark.options.write_terms import Base, WriteTerms
from frazil.spark.rows.changed_rows import Binding, Condition
from frazil.spark.rows.removal import removal
from frazil.spark.session.find_table import CatalogLike, table_of
from frazil.spark.session.session_bridge import bridge_if_any, refresh_cache
from frazil.spark.write.writer import commit_added, replace_rows, write_frame
from frazil.table.table import Table
from frazil.value_classes import replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def overwrite(
    table: Table | str,
    frame: DataFrame,
    where: Condition | BooleanExpression | None = None,
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """Replace matching rows (all rows without `where`) with those of a frame, in one snapshot.

    `where` is Spark SQL or a column. If the frame reads the table, what others commit meanwhile to
    the rows that are replaced is a conflict.
    """
    target = table_of(frame.sparkSession, table, catalog)
    terms = WriteTerms(table=target, base=base_of_frame(target, frame), summary=dict(summary or {}))
    result = overwrite_rows(terms, frame, where)
    refresh_cache(frame.sparkSession, target)
    return result


def overwrite_rows(
    terms: WriteTerms,
    frame: DataFrame,
    where: Condition | BooleanExpression | None = None,
    *,
    bound: Binding | None = None,
) -> CommitResult:
    """The same on the terms of a statement; `bound` gives the table's columns other identities."""
    if where is None:
        return replace_rows(terms, frame)
    entries = write_frame(frame, terms.table, metadata=terms.metadata)

    def change() -> Change:
        scan = terms.scan()
        with explained("overwrite"):
            gone = removal(frame.sparkSession, terms.table, where, scan=scan, bound=bound)
        return terms.overwriting(
            scan,
            gone.filter,
            OVERWRITE_ISOLATION,
            added=entries,
            removed=gone.removed,
            vectors=gone.vectors,
        )

    return commit_added(terms, entries, change)


def base_of_frame(table: Table, frame: DataFrame) -> Base | None:
    """What the rows of a frame were read from, as far as the session knows."""
    bridge = bridge_if_any(frame.sparkSession)
    return None if bridge is None else bridge.base_of_frame(table, frame)


def overwrite_partitions(
    table: Table | str,
    frame: DataFrame,
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """Replace every partition that the rows of the frame touch, in one snapshot."""
    target = table_of(frame.sparkSession, table, catalog)
    if not target.metadata.spec().fields:
        raise InvalidInput("the table is not partitioned: use overwrite, with or without a filter")
    terms = WriteTerms(table=target, base=base_of_frame(target, frame), summary=dict(summary or {}))
    result = overwrite_partition_rows(terms, frame)
    refresh_cache(frame.sparkSession, target)
    return result


def overwrite_partition_rows(terms: WriteTerms, frame: DataFrame) -> CommitResult:
    """The same on the terms of a statement."""
    entries = write_frame(frame, terms.table, metadata=terms.metadata)

    def change() -> Change:
        replaced = Replaced.of(entries, terms.table.metadata)
        scan = replace(terms.scan(), matching=replaced.filter)
        removed, vectors = replaced.removal(Planned.of(scan))
        return terms.overwriting(
            scan,
            replaced.filter,
            OVERWRITE_ISOLATION,
            added=entries,
            removed=removed,
            vectors=vectors,
        )

    return commit_added(terms, entries, change)
