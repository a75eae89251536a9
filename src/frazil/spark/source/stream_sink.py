"""The streaming sink of the data source: commits each micro-batch as one snapshot, exactly once.

Spark retries a batch if it does not know whether it was committed. The snapshot's summary shows it,
and a batch that is there already commits nothing. Spark also aborts after a commit that failed, in
another process: files are removed there only when a task's message is missing, as no commit was
tried then. A commit that surely did not land removes its files itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import types as sql
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from frazil.commit.change import Change
from frazil.credentials import Carried
from frazil.spark.options.source_options import SourceOptions
from frazil.spark.options.stream_options import StreamOptions
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.session.executor_tasks import set_modules_aside
from frazil.spark.session.packed_entries import packed
from frazil.spark.source.source_writer import WrittenEntries, write_task
from frazil.spark.source.stream_log import batch_summary, has_landed, query_id_of
from frazil.spark.write.write_task import WriteTask
from frazil.spark.write.writer import (
    commit_added,
    discard_entries,
    plain_change,
    replacing_all,
)


class StreamSink(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Appends every batch; in complete mode every batch replaces all rows."""

    def __init__(
        self, options: SourceOptions, stream: StreamOptions, task: WriteTask, *, replaces: bool
    ) -> None:
        self._credentials = Carried(options.properties)  # loaded before what needs them
        self._options = options
        self._stream = stream
        self._task = task
        self._replaces = replaces

    @staticmethod
    def of(
        options: SourceOptions, stream: StreamOptions, schema: sql.StructType, *, replaces: bool
    ) -> StreamSink:
        """A sink for batches of this schema; refuses one that does not fit the table."""
        return StreamSink(options, stream, write_task(options, schema), replaces=replaces)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task."""
        entries = self._task.write(iterator)
        set_modules_aside()
        return WrittenEntries(packed(entries))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Add the batch's files in one snapshot, unless it is there already."""
        table = self._options.load()
        entries = WrittenEntries.all_of(messages)
        try:
            query_id = self._stream.query_id or query_id_of(self._stream.checkpoint)
            is_there = has_landed(table, query_id, batchId)
        except BaseException:
            discard_entries(table, entries)
            raise
        if is_there:
            discard_entries(table, entries)
            return
        terms = WriteTerms(table=table, summary=batch_summary(query_id, batchId))

        def change() -> Change:
            if self._replaces:
                return replacing_all(terms, entries)
            return plain_change(table, entries)

        commit_added(terms, entries, change)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Remove what finished tasks wrote, if no commit was tried."""
        if any(message is None for message in messages):
            discard_entries(self._options.load(), WrittenEntries.all_of(messages))
