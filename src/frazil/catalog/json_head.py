"""The head of a table of other writers: its state is the metadata JSON that a catalog, a folder or
the user points to.

Such a table, of v1 to v3 or of Java's interim v4, is read, and upgraded by its catalog; it is never
committed to. Its derived columns are made up here, so that pruning is the same as for v4 tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from frazil.catalog import export
from frazil.catalog.backend import CatalogBackend, gone
from frazil.catalog.names import Identifier
from frazil.catalog.notes import MemoryNotes, Notes
from frazil.catalog.ownership import OtherTables
from frazil.commit.head import Draft, Outcome, ReadOnly, State
from frazil.errors import FormatError, NotFound, Unsupported
from frazil.format import paths
from frazil.format.checks import check_not_encrypted
from frazil.format.metadata.metadata import FORMAT_VERSION, History, Snapshot, SnapshotId
from frazil.storage import Storage
from frazil.value_classes import replace


class JsonHead(ReadOnly):
    """Reads a JSON file again only when the catalog points to another one.

    `catalog` is the one that can upgrade the table; None when the table is none of a catalog's.
    """

    def __init__(
        self,
        identifier: Identifier,
        metadata_location: str,
        *,
        locate: Callable[[], str],
        storage: Callable[[str], Storage],
        catalog: CatalogBackend | None = None,
    ) -> None:
        self.identifier = identifier
        self._locate = locate
        self._storage = storage
        self.catalog = catalog
        self.notes: Notes = MemoryNotes()
        self._state: State
        self._read(metadata_location)

    def __repr__(self) -> str:
        return f"JsonHead({str(self.identifier)!r}, {self._state.metadata_location!r})"

    @property
    def state(self) -> State:
        return self._state

    def load(self) -> State:
        current = self._locate()
        if current != self._state.metadata_location:
            state = self._state
            self._read(current)
            if self._state.metadata.table_uuid != state.metadata.table_uuid:
                self._state = state
                raise gone(self.identifier, lambda _: True)
        return self._state

    def swap(self, base: State, draft: Draft) -> Outcome:
        raise self.refusal()

    def refusal(self) -> Unsupported:
        """Why this head is never swapped."""
        version = self._state.metadata.format_version
        kind = "the interim format-version 4" if version >= FORMAT_VERSION else ""
        kind = kind or f"format-version {version}"
        return Unsupported(
            f"{self.identifier}: {kind} of other writers is read, not written; upgrade the table "
            "first: table.upgrade() when a Frazil catalog holds it, else register it there",
            feature=f"writing {kind}",
        )

    def landed(self, snapshot_id: int) -> State | None:
        state = self.load()
        return state if self._history.snapshot(snapshot_id) else None

    def snapshot(self, snapshot_id: int) -> Snapshot:
        snapshot = self._history.snapshot(snapshot_id)
        if snapshot is None:
            raise NotFound(f"{self.identifier}: no snapshot {snapshot_id}; it may have expired")
        return snapshot

    def snapshots(self) -> Iterable[Snapshot]:
        return self._history.snapshots

    def history(self) -> History:
        return self._history

    def snapshot_id_as_of(self, timestamp_ms: int) -> SnapshotId | None:
        return self._history.snapshot_id_as_of(timestamp_ms)

    def export(self) -> str:
        assert self._state.metadata_location is not None
        return self._state.metadata_location

    def stored_problems(self, *, repair: bool = False) -> tuple[FormatError, ...]:
        return ()  # nothing is stored but what was checked, or what others wrote

    def neighbourhood(self) -> OtherTables:
        neighbours = getattr(self.catalog, "neighbourhood", None)
        others = OtherTables() if neighbours is None else neighbours()
        name = str(self.identifier)
        return replace(others, tables=tuple(table for table in others.tables if table.name != name))

    def _read(self, path: str) -> None:
        metadata, history = export.read(path, storage=self._storage(path))
        check_not_encrypted(str(self.identifier), metadata.properties, metadata.extra)
        location = metadata.location
        if not location.startswith("/") and not paths.is_absolute(location):
            raise Unsupported(
                f"{path}: location is {location!r}, which depends on the folder that its writer "
                "ran in; rewrite the metadata with the full location, then open it again",
                feature="relative table location",
            )
        version = metadata.format_version
        derived = metadata.upgraded(now_ms=metadata.last_updated_ms)
        metadata = replace(derived, format_version=version)
        snapshot_ids = {ref.snapshot_id for ref in metadata.refs.values()}
        self._history = history
        self._state = State(
            version=0,
            metadata=metadata,
            snapshots={
                s.snapshot_id: s for s in history.snapshots if s.snapshot_id in snapshot_ids
            },
            metadata_location=path,
        )
