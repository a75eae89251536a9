"""What a commit wants to do, as a value that can be replayed on any head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from frazil.commit.column_edits import ColumnEdit
from frazil.commit.updates import MetadataUpdate
from frazil.errors import InvalidInput
from frazil.format.checks import check_summary
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import named_files
from frazil.format.metadata.metadata import MAIN
from frazil.format.vectors.puffin import StoredVector
from frazil.iceberg.expressions import BooleanExpression
from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    from frazil.tree.read import LeafRef, TreeReader
    from frazil.tree.write import TreeWriter

Positions = np.ndarray[Any, np.dtype[np.int64]]


class Isolation(StrEnum):
    """How much concurrent change an operation by filter tolerates."""

    SERIALIZABLE = "serializable"
    SNAPSHOT = "snapshot"

    @staticmethod
    def parse(text: str) -> Isolation:
        """From a table property or argument."""
        try:
            return Isolation(text.lower())
        except ValueError:
            raise InvalidInput(
                f"isolation level {text!r}; expected serializable or snapshot"
            ) from None


@frozen
class RowsRead:
    """Rows of a snapshot that the caller read; None is the table before its first snapshot."""

    snapshot_id: int | None


@frozen
class Searched:
    """A condition that a change was planned on. Every row that the change takes out passes it;
    under serializable isolation, nothing that could pass it may have been added since.

    `read` says that the new rows were computed from rows that pass the condition and that were
    read at some snapshot: none of them may have been changed or removed since then either.
    """

    filter: BooleanExpression
    isolation: Isolation = Isolation.SERIALIZABLE
    read: RowsRead | None = None


@frozen(eq=False)
class VectorEdit:
    """Rows of one data file to delete, in addition to those already deleted.

    `positions` are the rows this commit deletes; `resolved` are rows that carried-over delete files
    retire and that the new vector takes over, None to have them looked up. `leaf` and `position`
    are the entry's address when it was planned: a hint. `first_row_id` is the entry's, which tells
    it from others of the same file. `exclusive` means that the rows live on
    elsewhere (an update), so that a concurrent delete of one of them is a conflict. `adopted` is
    a stored vector of `positions`: used unchanged if that is what the file's vector becomes.
    """

    location: str
    positions: Positions
    adopted: StoredVector | None = None
    resolved: Positions | None = None
    leaf: str | None = None
    position: int | None = None
    first_row_id: int | None = None
    exclusive: bool = False


@frozen(eq=False)
class CarriedDeletes:
    """Position deletes of carried v2 and v3 manifests, as vectors of the files they apply to.

    `vectors` has one row per data file: `location`, the columns of its `deletion_vector`, and
    `tracking.modified_snapshot_id`. `leaves` are the delete manifests that say no more than that
    and their equality deletes: they can be rewritten once the vectors are in the data files'
    entries.
    """

    vectors: EntryBatch
    leaves: frozenset[str]


@frozen(eq=False)
class LeavesToRewrite:
    """The leaves of a rewrite, entries of the root that join them, and how large new ones are."""

    reader: TreeReader
    writer: TreeWriter
    leaves: Sequence[LeafRef]
    flushed: EntryBatch | None
    carried_deletes: CarriedDeletes | None
    target_entries: int


RewriteElsewhere = Callable[[LeavesToRewrite], EntryBatch]
"""Writes new leaves in another process; returns their entries, and tells the writer of its files.
"""


@frozen(eq=False)
class Change:
    """An intent. Files leave by location: `removed` as DELETED, `replaced` as REPLACED.

    `removed` and `replaced` hold at least the column `location`; the columns `@leaf` and
    `@position` are hints, and `tracking.first_row_id` tells entries of one file apart. `searched`
    are the conditions it was planned on, at `base_snapshot_id`; a change without one names files
    by itself. `snapshot_id` is one that is given, `recorded_operation` what the snapshot is said
    to be: with it a snapshot is made even if nothing changes. `is_staged` leaves the branch where
    it is; `starts_empty` begins a branch without a parent. `rewrite_leaves` names leaves to
    rewrite, `rewrite_elsewhere` does that work in other processes; entries of old data manifests
    among them take over the vectors of `carried_deletes`. `rows_updated` is how many added rows
    replace an old one, `rows_in_place` how many rows have new values by `columns`, `rows_removed`
    how many leave for good, where one edit of rows knows it. `shares_files` means that added files
    may be another table's, which keeps them for this one.
    """

    added: EntryBatch | None = None
    removed: EntryBatch | None = None
    replaced: EntryBatch | None = None
    vectors: tuple[VectorEdit, ...] = ()
    columns: tuple[ColumnEdit, ...] = ()
    updates: tuple[MetadataUpdate, ...] = ()
    branch: str = MAIN
    base_snapshot_id: int | None = None
    searched: tuple[Searched, ...] = ()
    is_rewrite: bool = False
    rewrite_leaves: tuple[str, ...] | None = None
    rewrite_elsewhere: RewriteElsewhere | None = None
    carried_deletes: CarriedDeletes | None = None
    rows_updated: int = 0
    rows_in_place: int = 0
    rows_removed: int | None = None
    shares_files: bool = False
    summary: Mapping[str, str] = field(default_factory=dict)
    snapshot_id: int | None = None
    recorded_operation: str | None = None
    is_staged: bool = False
    starts_empty: bool = False

    def __post_init__(self) -> None:
        check_summary(self.summary)

    @property
    def has_content(self) -> bool:
        """Whether it makes a snapshot; metadata updates alone do not."""
        return bool(
            _rows(self.added)
            or _rows(self.removed)
            or _rows(self.replaced)
            or self.vectors
            or self.columns
            or self.rewrite_leaves is not None
            or self.recorded_operation is not None
        )

    @property
    def operation(self) -> str:
        """Iceberg's word for it: append, delete, overwrite or replace."""
        if self.recorded_operation is not None:
            return self.recorded_operation
        if self.is_rewrite or self.rewrite_leaves is not None:
            return "replace"
        if self.columns:
            return "overwrite"
        takes = bool(_rows(self.removed) or _rows(self.replaced) or self.vectors)
        if not takes:
            return "append" if _only_data(self.added) else "delete"
        return "overwrite" if _rows(self.added) else "delete"

    def named_files(self) -> list[str]:
        """Files that the table gets by it, as they are named: with rows, deletes or columns."""
        added = [] if self.added is None else named_files(self.added)
        vectors = [edit.adopted.location for edit in self.vectors if edit.adopted is not None]
        return [*added, *vectors, *(edit.file.location for edit in self.columns)]

    @property
    def only_adds(self) -> bool:
        """Whether it can never conflict."""
        takes = _rows(self.removed) or _rows(self.replaced)
        return not (takes or self.vectors or self.columns)


def _rows(batch: EntryBatch | None) -> int:
    return 0 if batch is None else batch.num_rows


def _only_data(batch: EntryBatch | None) -> bool:
    return batch is None or not bool(batch.numpy("content_type").any())
