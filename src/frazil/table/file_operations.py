"""File-level operations: files that exist already, and older versions of Iceberg."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from frazil.argument_checks import check_arguments
from frazil.commit.handle import TableHandle
from frazil.errors import InvalidInput
from frazil.format import paths
from frazil.format.metadata.metadata import TableMetadata
from frazil.maintenance.progress import or_notebook_bar
from frazil.properties.registry import (
    DELETE_ISOLATION,
    EQUALITY_DELETES_ENABLED,
    NAME_MAPPING,
    PUBLISH_FORMAT_VERSION,
)
from frazil.table import refs
from frazil.table.refs import AsOf
from frazil.value_classes import dataclass, field

if TYPE_CHECKING:
    from frazil.commit.change import Searched, VectorEdit
    from frazil.commit.result import CommitResult
    from frazil.commit.updates import MetadataUpdate
    from frazil.data.write.row_input import Rows
    from frazil.format.entries.batch import EntryBatch
    from frazil.legacy.publish.publish import Published
    from frazil.legacy.upgrade.upgrade import UpgradeReport
    from frazil.maintenance.progress import Progress
    from frazil.table.transaction import Transaction


@check_arguments
class FileOperations:
    """The part of a table that works on whole files."""

    _handle: TableHandle
    branch_name: str
    transaction: Callable[[], Transaction]

    def add_files(
        self,
        files: str | Sequence[str],
        *,
        check_duplicates: bool = True,
        summary: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> CommitResult:
        """Add existing Parquet files without copying them; statistics come from their footers.

        A folder stands for the Parquet files below it, and `2024/**/*.parquet` for those that
        match. A column that the table is partitioned by and a file lacks has the value that the
        file's path says (`day=2024-01-01/…`).

        Files without field ids are read by the table's name mapping, which is extended with the
        current column names. A name that meant a different column in earlier files is rejected.
        """
        from frazil.table import adopt_files

        entries = adopt_files.describe(
            self._handle.current(),
            files,
            check_duplicates=check_duplicates,
            progress=or_notebook_bar(progress),
        )
        with self.transaction() as tx:
            if entries.mapping is not None:
                tx.set_properties({NAME_MAPPING.key: entries.mapping})
            tx._add_entries(entries.entries, summary=summary)
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
        handle = self._handle.current()
        tip = handle.tip(self.branch_name)
        base = None if tip is None else int(tip.snapshot_id)
        return RowDelta(_handle=handle, branch=self.branch_name, base_snapshot_id=base)


@check_arguments
@dataclass(slots=True, kw_only=True)
class RowDelta:
    """Row-level changes by file and position. Chain calls, then `commit`."""

    _handle: TableHandle
    branch: str
    base_snapshot_id: int | None
    _added: list[EntryBatch] = field(default_factory=list)
    _removed: list[str] = field(default_factory=list)
    _vectors: list[VectorEdit] = field(default_factory=list)
    _updates: list[MetadataUpdate] = field(default_factory=list)
    _written: list[str] = field(default_factory=list)
    _searched: list[Searched] = field(default_factory=list)

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
        from frazil.commit.change import VectorEdit
        from frazil.format.vectors import bitmap

        rows = bitmap.as_positions(positions)
        self._vectors.append(VectorEdit(location=self._location(path), positions=rows))
        return self

    def add_equality_deletes(self, rows: Rows, on: Sequence[str]) -> RowDelta:
        """Delete every older row that has one of these values in the `on` columns.

        Version 4 of the format does not allow new equality delete files. The rows are therefore
        found now and deleted by position, unless the table allows such files
        (`write.equality-deletes.enabled`).
        """
        from frazil.commit.updates import HaveUnpartitionedSpec
        from frazil.data.read.delete_files import write_equality_deletes
        from frazil.rows.equal_rows import key_ids

        metadata = self._handle.metadata
        if not EQUALITY_DELETES_ENABLED.of(metadata.properties):
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
        from frazil.commit.change import Isolation, Searched
        from frazil.rows.equal_rows import equal_rows

        base = self.base_snapshot_id
        snapshot = None if base is None else self._handle.snapshot(base)
        change = equal_rows(self._handle, snapshot, rows, on)
        self._vectors += change.edits
        level = Isolation(DELETE_ISOLATION.of(self._handle.metadata.properties))
        searched = Searched(filter=change.filter, isolation=level)
        self._searched.append(searched)
        return self

    def commit(self, *, summary: Mapping[str, str] | None = None) -> CommitResult:
        """Land the changes as one snapshot."""
        from frazil.commit.change import Change
        from frazil.commit.fold import united
        from frazil.commit.loop import discard, undoing
        from frazil.commit.result import CommitResult
        from frazil.format.entries.batch import EntryBatch

        change = Change(
            branch=self.branch,
            base_snapshot_id=self.base_snapshot_id,
            added=EntryBatch.concat(self._added) if self._added else None,
            removed=(
                EntryBatch.from_rows([{"location": path} for path in self._removed])
                if self._removed
                else None
            ),
            vectors=united(self._vectors),
            updates=tuple(self._updates),
            searched=tuple(self._searched),
            summary={} if summary is None else summary,
        )
        if not change.has_content and self._searched:
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


@check_arguments
class IcebergOperations:
    """What other Iceberg engines wrote, and what they are given to read."""

    _handle: TableHandle
    branch_name: str

    def upgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Upgrade a v1, v2 or v3 table to format-version 4 in place; `dry_run` only reports.

        No manifest and no data file is rewritten, and old snapshots stay readable.
        """
        from frazil.legacy.upgrade.upgrade import upgrade

        return upgrade(self._handle, dry_run=dry_run)

    def publish(
        self,
        *,
        format_version: int | None = None,
        snapshot: AsOf | None = None,
    ) -> Published:
        """Write a snapshot, by default the current one, as Iceberg v2 or v3 metadata.

        The version defaults to the property `publish.format-version`, else 3. With the property
        set, every commit on `main` is published.
        """
        from frazil.legacy.publish.publish import publish

        handle = self._handle.current()
        if format_version is None:
            format_version = PUBLISH_FORMAT_VERSION.of(handle.metadata.properties) or 3
        at = None
        if snapshot is not None:
            at = refs.resolve(handle, snapshot, branch=self.branch_name)
        return publish(handle, format_version=format_version, snapshot=at)


__all__ = [
    "FileOperations",
    "IcebergOperations",
    "RowDelta",
]
