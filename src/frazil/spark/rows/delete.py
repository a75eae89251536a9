"""Delete rows with a Spark job: one snapshot, through deletion vectors.

Files whose every row matches leave whole; of the others executors find the positions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from frazil.commit.change import Change, Searched
from frazil.commit.result import CommitResult
from frazil.properties.registry import DELETE_ISOLATION
from frazil.spark.expressions.conditions import explained
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.rows.changed_rows import Binding, Condition
from frazil.spark.rows.removal import removal
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.spark.session.session_bridge import refresh_cache
from frazil.table.table import Table
from frazil.value_classes import replace

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
    terms = WriteTerms(table=table_of(spark, table, catalog), summary=dict(summary or {}))
    result = delete_rows(spark, terms, where)
    refresh_cache(spark, terms.table)
    return result


def delete_rows(
    spark: SparkSession,
    terms: WriteTerms,
    where: Condition,
    *,
    bound: Binding | None = None,
    metadata_columns: Sequence[str] = (),
) -> CommitResult:
    """The same on the terms of a statement; `bound` gives the table's columns other identities."""
    began = time.perf_counter()
    table = terms.table
    with explained("delete"):
        gone = removal(
            spark, table, where, scan=terms.scan(), bound=bound, metadata_columns=metadata_columns
        )
    change = Change(
        branch=table.branch_name,
        base_snapshot_id=gone.base_snapshot_id,
        removed=gone.removed,
        vectors=gone.vectors,
        searched=(Searched(filter=gone.filter, isolation=terms.level(DELETE_ISOLATION)),),
    )
    if not change.has_content:
        return CommitResult.nothing("no row matched", ms=(time.perf_counter() - began) * 1000)
    result = table._handle.commit(terms.applied(change))
    return replace(result, ms=(time.perf_counter() - began) * 1000)
