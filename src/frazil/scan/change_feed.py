"""What changed between two snapshots: files and rows, snapshot by snapshot or in the end.

Per snapshot its root is read and the leaves that root names, nothing else; of appends that follow
one another, the last root and the leaves written meanwhile. Rows come from the files that were
added, removed, or lost rows; where delete files are in force those are read too. A `replace` moves
rows and changes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from frazil.argument_checks import check_arguments
from frazil.data.arrow_rows import ArrowRows
from frazil.data.read.read_files import Reading
from frazil.format.metadata.metadata import Snapshot
from frazil.scan.file_changes import FILE_CHANGES, file_changes
from frazil.scan.row_changes import (
    CHANGE_COLUMNS,
    ChangeType,
    RowFeed,
    feed_columns,
    feed_schema,
)
from frazil.text_format import card, counted
from frazil.tree.read import TreeReader
from frazil.value_classes import dataclass


@check_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class Changes(ArrowRows):
    """The changes of a range of snapshots. Lazy: nothing is read until needed.

    `snapshots` are those after `since` up to the last one, oldest first. `starts_whole` means that
    all rows of the first one count as inserted, because the snapshots before it have expired.
    """

    _reader: TreeReader
    _reading: Reading
    source: str
    """The uuid of the table that changed."""
    since: Snapshot | None
    snapshots: tuple[Snapshot, ...]
    collapse: bool = False
    pair_updates: bool = True
    starts_whole: bool = False

    def __repr__(self) -> str:
        after = "the beginning" if self.since is None else f"snapshot {self.since.snapshot_id}"
        kind = "net changes" if self.collapse else "changes"
        return f"Changes({kind} of {counted(len(self.snapshots), 'snapshot')} after {after})"

    def _repr_html_(self) -> str:
        facts = {
            "after": None if self.since is None else self.since.snapshot_id,
            "up to": self.snapshots[-1].snapshot_id if self.snapshots else None,
            "snapshots": len(self.snapshots),
        }
        return card("net changes" if self.collapse else "changes", facts)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the row feed."""
        return self._feed().arrow_schema

    def files(self, *, positions: bool = False) -> pa.Table:
        """Files that were added, deleted, replaced or modified, one row each.

        `positions` adds the positions of the rows a file lost, which reads deletion vectors.
        """
        return file_changes(
            self._reader, self.snapshots, starts_whole=self.starts_whole, positions=positions
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Row changes, file by file, in bounded memory."""
        feed = self._feed()
        if self.collapse:
            since = None if self.starts_whole else self.since
            yield from feed.net_batches(since, self.snapshots)
        else:
            yield from feed.batches(self.snapshots, starts_whole=self.starts_whole)

    def to_reader(self) -> pa.RecordBatchReader:
        """Row changes as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All row changes as an Arrow table."""
        return pa.Table.from_batches(list(self.to_batches()), schema=self.schema)

    def _feed(self) -> RowFeed:
        return RowFeed.of(self._reader, self._reading, pair_updates=self.pair_updates)


def snapshot_ids(snapshots: Sequence[Snapshot]) -> list[int]:
    """The ids of snapshots, in their order."""
    return [int(snapshot.snapshot_id) for snapshot in snapshots]


__all__ = [
    "CHANGE_COLUMNS",
    "FILE_CHANGES",
    "ChangeType",
    "Changes",
    "RowFeed",
    "feed_columns",
    "feed_schema",
    "snapshot_ids",
]
