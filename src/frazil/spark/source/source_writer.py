"""The write side of the data source: tasks write files, one commit adds them.

Spark may call `abort` after a `commit` that failed, in another process, with the same messages. A
commit that surely did not land has removed its files by then; one whose outcome is unknown must
keep them. So `abort` removes files only when a task's message is missing: no commit was tried then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import types as sql
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from frazil.commit.change import Change
from frazil.credentials import Carried
from frazil.format.entries.batch import EntryBatch
from frazil.spark.options.source_options import SourceOptions
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.session.executor_tasks import set_modules_aside
from frazil.spark.session.packed_entries import packed, unpacked
from frazil.spark.write.write_task import WriteTask
from frazil.spark.write.writer import (
    check_schema,
    commit_added,
    discard_entries,
    plain_change,
    replacing_all,
)
from frazil.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class WrittenEntries(WriterCommitMessage):  # type: ignore[misc]
    """The files one task wrote, as packed entries."""

    entries: bytes

    @staticmethod
    def all_of(messages: Sequence[WriterCommitMessage | None]) -> EntryBatch:
        """The entries of every task that finished."""
        return EntryBatch.concat(
            [
                unpacked(message.entries)
                for message in messages
                if isinstance(message, WrittenEntries)
            ]
        )


def write_task(options: SourceOptions, schema: sql.StructType) -> WriteTask:
    """What tasks need to write rows of this schema; refuses one that does not fit the table."""
    table = options.load()
    metadata = table.metadata
    check_schema(schema, metadata.schema())
    return WriteTask.of(
        metadata, metadata.schema(), storage=table._handle.storage, location=table.location
    )


class FrazilWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Appends the rows of a frame, or replaces all rows by them.

    Spark sends a writer as a whole to executors, so the catalog's address and its options travel
    with it, in Spark's plan, which holds the options anyway. A catalog that is registered sends
    nothing of the kind.
    """

    def __init__(self, options: SourceOptions, task: WriteTask, *, overwrite: bool) -> None:
        self._credentials = Carried(options.properties)  # loaded before what needs them
        self._options = options
        self._task = task
        self._overwrite = overwrite

    @staticmethod
    def of(options: SourceOptions, schema: sql.StructType, *, overwrite: bool) -> FrazilWriter:
        """A writer for frames of this schema; refuses one that does not fit the table."""
        return FrazilWriter(options, write_task(options, schema), overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task."""
        entries = self._task.write(iterator)
        set_modules_aside()
        return WrittenEntries(packed(entries))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Add all files in one snapshot."""
        table = self._options.load()
        entries = WrittenEntries.all_of(messages)
        terms = WriteTerms(table=table)

        def change() -> Change:
            if self._overwrite:
                return replacing_all(terms, entries)
            return plain_change(table, entries)

        commit_added(terms, entries, change)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what finished tasks wrote, if no commit was tried."""
        if all(message is not None for message in messages):
            return
        discard_entries(self._options.load(), WrittenEntries.all_of(messages))
