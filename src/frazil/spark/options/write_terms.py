"""How rows are written and committed: to which branch, on which base, with what in the summary.

The base of a write is the oldest state of the table that its own query read. What was committed
since then is not in the new rows, so it must not be lost: it is a conflict, or stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from frazil.commit.change import Change, Isolation, RowsRead, Searched, VectorEdit
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.properties.property import Property
from frazil.rows.scan import Scan
from frazil.spark.options.options import WriteOptions
from frazil.value_classes import field, frozen, replace

if TYPE_CHECKING:
    from frazil.iceberg.expressions import BooleanExpression
    from frazil.table.table import Table

WAP_ID: Final = "wap.id"


@frozen
class Base:
    """A state that rows were read from; None is the table before its first commit."""

    snapshot: Snapshot | None

    @staticmethod
    def oldest(states: Iterable[Snapshot | None]) -> Base | None:
        """The oldest of some states of one branch; None if there is none."""
        read = list(states)
        if not read:
            return None
        if None in read:
            return Base(snapshot=None)
        snapshots = [snapshot for snapshot in read if snapshot is not None]
        return Base(snapshot=min(snapshots, key=lambda snapshot: int(snapshot.sequence_number)))


@frozen
class WriteTerms:
    """The terms of one write.

    `base` is what the query of the write read of the table, `properties` are those of the table
    that the write has in its own way. `is_staged` leaves the branch as it is.
    """

    table: Table
    base: Base | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    isolation: Isolation | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    is_staged: bool = False

    @staticmethod
    def of(
        table: Table, options: WriteOptions, *, base: Base | None, wap_id: str | None = None
    ) -> WriteTerms:
        """The terms that options ask for."""
        if options.validate_from is not None:
            base = Base(snapshot=table.snapshot(options.validate_from))
        staged = {} if wap_id is None else {WAP_ID: wap_id}
        return WriteTerms(
            table=table,
            base=base,
            summary={**options.summary, **staged},
            isolation=options.isolation,
            properties=options.properties,
            is_staged=wap_id is not None,
        )

    def scan(self) -> Scan:
        """The rows that may be taken out: those of the base, or of the branch as it is now."""
        scan = self.table.scan()
        return scan if self.base is None else replace(scan, snapshot=self.base.snapshot)

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata, with the properties of this write."""
        metadata = self.table.metadata
        if not self.properties:
            return metadata
        return replace(metadata, properties={**metadata.properties, **self.properties})

    def level(self, setting: Property[str]) -> Isolation:
        """How isolated the write is; `setting` is the property of the table that says so."""
        if self.isolation is not None:
            return self.isolation
        return Isolation(setting.of(self.table.properties))

    def overwriting(
        self,
        scan: Scan,
        filter: BooleanExpression,
        setting: Property[str],
        *,
        added: EntryBatch,
        removed: EntryBatch | None,
        vectors: tuple[VectorEdit, ...] = (),
    ) -> Change:
        """The change that puts new rows in the place of those that pass a filter."""
        reads_itself = self.base is not None
        if reads_itself:
            vectors = tuple(replace(edit, exclusive=True) for edit in vectors)
        base = snapshot_id(scan.snapshot)
        searched = Searched(
            filter=filter,
            isolation=self.level(setting),
            read=RowsRead(snapshot_id=base) if reads_itself else None,
        )
        return Change(
            branch=self.table.branch_name,
            base_snapshot_id=base,
            added=added,
            removed=removed,
            vectors=vectors,
            searched=(searched,),
        )

    def applied(self, change: Change) -> Change:
        """A change with the summary of this write, and staged if the write is."""
        return replace(change, summary={**change.summary, **self.summary}, is_staged=self.is_staged)


def snapshot_id(snapshot: Snapshot | None) -> int | None:
    """The id of a snapshot; None before the first commit."""
    return None if snapshot is None else int(snapshot.snapshot_id)
