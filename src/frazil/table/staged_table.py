"""A table that is filled before anyone sees it: its first commit creates it, rows and all."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from frazil.catalog.names import Identifier
from frazil.commit.handle import TableHandle, now_ms
from frazil.commit.head import Draft, Landed, Outcome, State
from frazil.errors import NotFound
from frazil.format.metadata.metadata import History, Snapshot, TableMetadata, log_entry, new_table
from frazil.iceberg.schema import Schema
from frazil.legacy.read.legacy_decoder import LegacyDecoder
from frazil.properties.registry import check_values
from frazil.table.catalog import _publish_if_asked, _spec, new_location
from frazil.table.table import Table

if TYPE_CHECKING:
    from frazil.table.catalog import Catalog


class StagedHead:
    """The head of a table that is not in its catalog yet."""

    def __init__(self, catalog: Catalog, identifier: Identifier, metadata: TableMetadata) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self.state = State(version=0, metadata=metadata)

    def load(self) -> State:
        """What the table will be made with."""
        return self.state

    def swap(self, base: State, draft: Draft) -> Outcome:
        """Create the table with its first snapshot; AlreadyExists if the name was taken."""
        logged = log_entry(base.metadata, draft.metadata, draft.added_snapshots)
        history = History(
            snapshots=draft.added_snapshots, snapshot_log=() if logged is None else (logged,)
        )
        return Landed(states=(self._created(draft.metadata, history),))

    def create(self) -> None:
        """Create the table without rows."""
        self._created(self.state.metadata, History())

    def _created(self, metadata: TableMetadata, history: History) -> State:
        self._catalog.create_namespace(self._identifier.namespace, if_not_exists=True)
        head = self._catalog._pointers.create_table(self._identifier, metadata, history)
        self.state = head.state
        return self.state

    def landed(self, snapshot_id: int) -> State | None:
        """The state, if it has the snapshot."""
        return self.state if snapshot_id in self.state.snapshots else None

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """One snapshot of the history."""
        if snapshot_id in self.state.snapshots:
            return self.state.snapshots[snapshot_id]
        raise NotFound(f"no snapshot {snapshot_id}")

    def snapshots(self) -> Iterable[Snapshot]:
        """The whole history."""
        return tuple(self.state.snapshots.values())


def staged_table(
    catalog: Catalog,
    name: Sequence[str],
    schema: Schema,
    *,
    partition_by: Sequence[str] | None = None,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> tuple[Table, StagedHead]:
    """A table to write to, which its first commit, or `create`, puts into the catalog."""
    identifier = Identifier.parse(tuple(name))
    check_values(properties or {})
    metadata = new_table(
        schema=schema,
        spec=_spec(partition_by, schema),
        location=new_location(catalog, identifier, location),
        table_uuid=uuid.uuid4(),
        now_ms=now_ms(),
        properties=properties,
    )
    head = StagedHead(catalog, identifier, metadata)
    handle = TableHandle.of(
        str(identifier),
        head,
        catalog._pointers.storage(metadata.location),
        state=head.state,
        cache=catalog._cache,
        decoder=LegacyDecoder(),
    )
    handle.after_commit = (_publish_if_asked,)
    return Table(handle), head
