"""File-level operations, for engines and for files that exist already."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from frazil.commit.handle import TableHandle
from frazil.entrance import entrance
from frazil.errors import InvalidInput
from frazil.format import paths
from frazil.format.metadata import TableMetadata

if TYPE_CHECKING:
    import numpy as np
    from pyiceberg.expressions import BooleanExpression

    from frazil.commit.result import CommitResult
    from frazil.commit.updates import MetadataUpdate
    from frazil.data.row_input import Rows
    from frazil.format.batch import EntryBatch
    from frazil.table.transaction import Transaction

EQUALITY_DELETES_ENABLED = "write.equality-deletes.enabled"
DELETE_ISOLATION = "write.delete.isolation-level"


@entrance
class FileOperations:
    """The part of a table that works on whole files."""

    _handle: TableHandle
    branch_name: str
    transaction: Callable[[], Transaction]

    def add_files(
        self,
        files: Sequence[str],
        *,
        check_duplicates: bool = True,
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Add existing Parquet files without copying them; statistics come from their footers.

        Files without field ids are read by the table's name mapping, which is extended with the
        current column names. A name that meant a different column in earlier files is rejected.
        """
        from frazil.data.read_files import NAME_MAPPING
        from frazil.table import adopt_files

        found = adopt_files.describe(self._handle, files, check_duplicates=check_duplicates)
        with self.transaction() as tx:
            if found.mapping is not None:
                tx.set_properties({NAME_MAPPING: found.mapping})
            tx._add_entries(found.entries, summary=summary)
        return tx.result

    def _add_entries(
        self, entries: EntryBatch, *, summary: Mapping[str, str] | None = None
    ) -> CommitResult:
        """Add files described by entries, as `frazil.data.write_rows` returns them."""
        with self.transaction() as tx:
            tx._add_entries(entries, summary=summary)
        return tx.result

    def row_delta(self) -> RowDelta:
        """Add files, delete rows by position and by equality, in one snapshot."""
        tip = self._handle.state.tip(self.branch_name)
        base = None if tip is None else int(tip.snapshot_id)
        return RowDelta(_handle=self._handle, branch=self.branch_name, base_snapshot_id=base)


@entrance
@dataclass(slots=True, kw_only=True)
class RowDelta:
    """Row-level changes by file and position. Chain calls, then `commit`."""

    _handle: TableHandle
    branch: str
    base_snapshot_id: int | None
    _added: list[EntryBatch] = field(default_factory=list)
    _removed: list[str] = field(default_factory=list)
    _vectors: dict[str, np.ndarray[Any, np.dtype[np.int64]]] = field(default_factory=dict)
    _updates: list[MetadataUpdate] = field(default_factory=list)
    _written: list[str] = field(default_factory=list)
    _searched: BooleanExpression | None = None

    def _add_entries(self, entries: EntryBatch) -> RowDelta:
        """Files to add."""
        self._added.append(entries)
        return self

    def remove_file(self, path: str) -> RowDelta:
        """A file to take out, with its deletion vector."""
        self._removed.append(self._location(path))
        return self

    def delete_rows(self, path: str, positions: Sequence[int]) -> RowDelta:
        """Rows of a file to delete, by position from 0."""
        from frazil.format import bitmap

        location = self._location(path)
        found = bitmap.as_positions(positions)
        before = self._vectors.get(location)
        self._vectors[location] = found if before is None else bitmap.union(before, found)
        return self

    def add_equality_deletes(self, rows: Rows, on: Sequence[str]) -> RowDelta:
        """Delete every older row that has one of these values in the `on` columns.

        Version 4 of the format does not allow new equality delete files. The rows are therefore
        found now and deleted by position, unless the table allows such files
        (`write.equality-deletes.enabled`).
        """
        from frazil.commit.updates import HaveUnpartitionedSpec
        from frazil.data.delete_files import write_equality_deletes
        from frazil.rows.equal_rows import key_ids

        metadata = self._handle.metadata
        if not _writes_equality_deletes(metadata.properties):
            return self._delete_equal(rows, on)
        schema = metadata.schema()
        deletes = write_equality_deletes(
            rows,
            storage=self._handle.storage,
            location=self._handle.location,
            schema=schema,
            equality_ids=key_ids(schema, on),
            write_id=uuid.uuid4(),
            written=self._written,
        )
        if metadata.spec().fields:
            update = HaveUnpartitionedSpec(spec_id=_unpartitioned_spec_id(metadata))
            deletes = deletes.with_constant("spec_id", update.spec_id)
            self._updates.append(update)
        self._added.append(deletes)
        return self

    def _delete_equal(self, rows: Rows, on: Sequence[str]) -> RowDelta:
        from pyiceberg.expressions import Or

        from frazil.format import bitmap
        from frazil.rows.equal_rows import equal_rows

        base = self.base_snapshot_id
        snapshot = None if base is None else self._handle.snapshot(base)
        found = equal_rows(self._handle, snapshot, rows, on)
        for location, positions in found.positions.items():
            before = self._vectors.get(location)
            self._vectors[location] = (
                positions if before is None else bitmap.union(before, positions)
            )
        known = self._searched
        self._searched = found.filter if known is None else Or(known, found.filter)
        return self

    def commit(self, *, summary: Mapping[str, str] | None = None) -> CommitResult:
        """Land the changes as one snapshot."""
        from frazil.commit.change import Change, Isolation, VectorEdit
        from frazil.commit.loop import discard, undoing
        from frazil.commit.result import CommitResult
        from frazil.format.batch import EntryBatch

        change = Change(
            branch=self.branch,
            base_snapshot_id=self.base_snapshot_id,
            added=EntryBatch.concat(self._added) if self._added else None,
            removed=(
                EntryBatch.from_rows([{"location": path} for path in self._removed])
                if self._removed
                else None
            ),
            vectors=tuple(
                VectorEdit(location=location, positions=positions)
                for location, positions in self._vectors.items()
            ),
            updates=tuple(self._updates),
            conflict_filter=self._searched,
            isolation=Isolation.parse(
                self._handle.metadata.properties.get(DELETE_ISOLATION, Isolation.SERIALIZABLE)
            ),
            summary={} if summary is None else summary,
        )
        if not change.has_content and self._searched is not None:
            return CommitResult.nothing("no row has one of the values")
        if not change.has_content:
            raise InvalidInput("the row delta is empty")
        with undoing(lambda: discard(self._handle.storage, self._written)):
            return self._handle.commit(change)

    def _location(self, path: str) -> str:
        return paths.relativise(self._handle.location, path)


def _unpartitioned_spec_id(metadata: TableMetadata) -> int:
    """The spec of files that lie in no partition; a new id when the table has none yet."""
    for spec in metadata.partition_specs:
        if not spec.fields:
            return spec.spec_id
    return max(spec.spec_id for spec in metadata.partition_specs) + 1


def _writes_equality_deletes(properties: Mapping[str, str]) -> bool:
    text = properties.get(EQUALITY_DELETES_ENABLED, "false")
    if text.lower() not in ("true", "false"):
        raise InvalidInput(
            f"table property {EQUALITY_DELETES_ENABLED} is {text!r}; expected true or false"
        )
    return text.lower() == "true"


__all__ = ["FileOperations", "RowDelta"]
