"""Micro-batches through the native writer or a merge: what `foreachBatch` is given.

The same promise as the sink's: the query's id and the batch's number are in the snapshot's summary,
and a batch that Spark runs again commits nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyspark.errors import PySparkException

from frazil.errors import InvalidInput
from frazil.spark.rows.merge import Merge, merge
from frazil.spark.session.find_table import CatalogLike, table_of
from frazil.spark.source.stream_log import batch_summary, has_landed
from frazil.spark.write.writer import append
from frazil.table.table import Table
from frazil.value_classes import frozen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("frazil.spark")

_QUERY = "sql.streaming.queryId"
Mode = Literal["append", "merge"]


def foreach_batch(
    table: Table | str,
    mode: Mode = "append",
    *,
    on: str | Sequence[str] | None = None,
    clauses: Callable[[Merge], Merge] | None = None,
    query_id: str | None = None,
    catalog: CatalogLike | None = None,
) -> ForeachBatch:
    """A function for `writeStream.foreachBatch` that appends or merges each batch exactly once.

    A merge needs `on`; `clauses` builds its clauses, by default those of an upsert:

    >>> into = foreach_batch(orders, "merge", on=["id"])                   # doctest: +SKIP
    >>> stream.writeStream.foreachBatch(into).option(…).start()            # doctest: +SKIP
    """
    if mode not in ("append", "merge"):
        raise InvalidInput(f"mode is {mode!r}; expected append or merge")
    if (mode == "merge") != (on is not None):
        raise InvalidInput("on= is required with mode='merge' and only accepted there")
    return ForeachBatch(
        table=table, on=on, clauses=clauses or Merge.upsert, query_id=query_id, catalog=catalog
    )


@frozen
class ForeachBatch:
    """Commits micro-batches; call it with a frame and the batch's number."""

    table: Table | str
    on: str | Sequence[str] | None
    clauses: Callable[[Merge], Merge]
    query_id: str | None
    catalog: CatalogLike | None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Commit one batch, unless it is there already."""
        spark = frame.sparkSession
        table = table_of(spark, self.table, self.catalog).refresh()
        query_id = self.query_id or _query_id(spark)
        if has_landed(table, query_id, batch_id):
            log.info("batch %d of query %s is in %s already", batch_id, query_id, table.name)
            return
        summary: Mapping[str, str] = batch_summary(query_id, batch_id)
        if self.on is None:
            append(table, frame, summary=summary)
        else:
            self.clauses(merge(table, frame, self.on)).summary(summary).execute()


def _query_id(spark: Any) -> str:
    try:
        query_id = spark.sparkContext.getLocalProperty(_QUERY)
    except PySparkException:  # Spark Connect has no context
        query_id = None
    if query_id is None:
        raise InvalidInput("the streaming query's id is not available here; pass query_id=")
    return str(query_id)
