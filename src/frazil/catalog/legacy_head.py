"""The head of a v1-v3 table: its state is the metadata JSON that the catalog points to.

Such a table is read, and upgraded by the catalog; it is never committed to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from frazil.catalog import export
from frazil.catalog.names import Identifier
from frazil.commit.head import Draft, Outcome, State
from frazil.errors import NotFound, Unsupported
from frazil.format.metadata import History, Snapshot, SnapshotId
from frazil.storage import Storage


class LegacyHead:
    """Reads a JSON file again only when the catalog points to another one."""

    def __init__(
        self,
        identifier: Identifier,
        metadata_location: str,
        *,
        locate: Callable[[], str],
        storage: Callable[[str], Storage],
    ) -> None:
        self._identifier = identifier
        self._locate = locate
        self._storage = storage
        self._read(metadata_location)

    def __repr__(self) -> str:
        return f"LegacyHead({str(self._identifier)!r}, {self._state.metadata_location!r})"

    @property
    def identifier(self) -> Identifier:
        return self._identifier

    @property
    def state(self) -> State:
        return self._state

    def load(self) -> State:
        current = self._locate()
        if current != self._state.metadata_location:
            self._read(current)
        return self._state

    def swap(self, base: State, draft: Draft) -> Outcome:
        version = base.metadata.format_version
        raise Unsupported(
            f"{self._identifier}: format-version {version} is not written; upgrade the table first",
            feature=f"writing format-version {version}",
        )

    def landed(self, snapshot_id: int) -> State | None:
        state = self.load()
        return state if self._history.snapshot(snapshot_id) else None

    def snapshot(self, snapshot_id: int) -> Snapshot:
        found = self._history.snapshot(snapshot_id)
        if found is None:
            raise NotFound(f"{self._identifier}: no snapshot {snapshot_id}; it may have expired")
        return found

    def snapshots(self) -> Iterable[Snapshot]:
        return self._history.snapshots

    def history(self) -> History:
        return self._history

    def snapshot_id_as_of(self, timestamp_ms: int) -> SnapshotId | None:
        return self._history.snapshot_id_as_of(timestamp_ms)

    def export(self) -> str:
        assert self._state.metadata_location is not None
        return self._state.metadata_location

    def _read(self, path: str) -> None:
        metadata, history = export.read(path, storage=self._storage(path))
        named = {ref.snapshot_id for ref in metadata.refs.values()}
        self._history = history
        self._state = State(
            version=0,
            metadata=metadata,
            snapshots={s.snapshot_id: s for s in history.snapshots if s.snapshot_id in named},
            metadata_location=path,
        )
