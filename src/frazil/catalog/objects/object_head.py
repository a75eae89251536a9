"""The head of one table in a bucket: load in one GET, swap in one PUT with If-Match.

A swap builds the next version of the head object on the one that was loaded. A version of the
object that others made without committing (a rename, a metadata JSON that was noted) is no reason
to lose: the swap is repeated on it. The module `conditional_put` says how a lost reply is resolved.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from frazil.catalog import export
from frazil.catalog.backend import check_draft, gone
from frazil.catalog.names import Identifier
from frazil.catalog.notes import Notes
from frazil.catalog.objects import history_objects
from frazil.catalog.objects.conditional_put import OutcomeUnknown, Written
from frazil.catalog.objects.head_document import (
    MAX_IDS,
    HeadDocument,
    Part,
    definition_document,
    log_entry_of,
    log_record,
    refs_document,
    snapshot_of,
    snapshot_record,
)
from frazil.catalog.objects.head_object import HeadObject, StoredHead
from frazil.catalog.objects.history_objects import HistoryStore, Older, Record
from frazil.catalog.objects.object_notes import ObjectNotes
from frazil.catalog.objects.process_queue import ProcessQueue, ProcessSlot
from frazil.catalog.ownership import OtherTables, Ownership
from frazil.catalog.sql.sql_rows import is_redefined
from frazil.commit.head import Draft, Landed, Lost, Offer, Outcome, State, Unknown
from frazil.errors import CatalogError, CommitUnknown, FormatError, FrazilError, NotFound
from frazil.format import paths
from frazil.format.metadata.metadata import History, Snapshot, SnapshotId, TableMetadata, log_entry
from frazil.storage import Storage
from frazil.value_classes import replace

_log = logging.getLogger(__name__)
_MAX_LOG = 256
"""Entries of the snapshot log in a head; rollbacks add some without adding snapshots."""


class ObjectHead:
    """The head of a v4 table."""

    queues_alone = True

    def __init__(
        self,
        head: HeadObject,
        stored_head: StoredHead,
        *,
        storage: Callable[[str], Storage],
        neighbours: Callable[[str], OtherTables],
        is_taken: Callable[[Identifier], bool],
        queue: ProcessQueue,
    ) -> None:
        """`is_taken` says whether a name is in use, for a table that is gone under its own."""
        self._head = head
        self._older = HistoryStore(head.store, head.folder)
        self._stored_head = stored_head
        self.identifier = stored_head.document.identifier
        self._state = _state_of(stored_head.document)
        self._storage = storage
        self._neighbours = neighbours
        self._is_taken = is_taken
        self._queue = queue

    def __repr__(self) -> str:
        return f"ObjectHead({str(self.identifier)!r}, version={self._state.version})"

    @property
    def object_path(self) -> str:
        """The head object, which stays as a tombstone when the table is dropped."""
        return self._head.path

    @property
    def state(self) -> State:
        return self._state

    @property
    def notes(self) -> Notes:
        return ObjectNotes(self._head.store, f"{self._head.folder}/_notes")

    def head_objects(self) -> set[str]:
        """The objects that the head needs, as it was read last: itself, large parts and older
        snapshots."""
        names = self._stored_head.document.object_names
        return {self._head.path, *(f"{self._head.folder}/{name}" for name in names)}

    def load(self) -> State:
        self._refreshed()
        return self._state

    def turn(self) -> AbstractContextManager[None]:
        return self._queue.turn()

    def slot(self, offer: Offer) -> AbstractContextManager[ProcessSlot | None]:
        return self._queue.slot(offer)

    def newest(self, loaded: State, *, has_rivals: bool) -> State:
        left = self._queue.last
        if left is None or left.document.table_uuid != str(loaded.metadata.table_uuid):
            return self.load() if has_rivals else loaded
        version = left.document.version
        if not self._queue.is_contested and version >= max(
            loaded.version, self._stored_head.document.version
        ):
            self._take(left)
            return self._state
        return self.load() if has_rivals or version > loaded.version else loaded

    def snapshot_holding(self, append_id: int, since: State) -> Snapshot | None:
        left = self._queue.last
        snapshot = None if left is None else self._holding(left.document, append_id, since)[0]
        if snapshot is not None:
            return snapshot
        document = self._refreshed()
        snapshot, count = self._holding(document, append_id, since)
        if snapshot is None and count < document.last_sequence_number - _sequence_number(since):
            raise CommitUnknown(
                f"append {append_id} may have landed in a snapshot that has expired since; look "
                "for its rows before trying again"
            )
        return snapshot

    def _holding(
        self, document: HeadDocument, append_id: int, since: State
    ) -> tuple[Snapshot | None, int]:
        """The snapshot that holds an append, and how many were added since a state."""
        from frazil.commit.group_append import append_ids

        snapshots = [snapshot_of(record) for record in document.recent]
        if not snapshots or snapshots[0].sequence_number > _sequence_number(since) + 1:
            snapshots = list(self._history(document).snapshots)
        added = [
            added_snapshot
            for added_snapshot in snapshots
            if added_snapshot.sequence_number > _sequence_number(since)
        ]
        for snapshot in added:
            if append_id in append_ids(snapshot.summary, int(snapshot.snapshot_id)):
                return snapshot, len(added)
        return None, len(added)

    def swap(self, base: State, draft: Draft) -> Outcome:
        outcome = self._swapped(base, draft)
        match outcome:
            case Lost():
                self._queue.lost()
            case Unknown():
                self._queue.doubted()
        return outcome

    def _swapped(self, base: State, draft: Draft) -> Outcome:
        check_draft(base.metadata, draft)
        stored_head = self._version_of(base)
        while stored_head is not None:
            document = self._next(stored_head.document, base, draft)
            try:
                outcome = self._head.write(document, over=stored_head)
            except OutcomeUnknown as doubt:
                return Unknown(cause=doubt)
            if isinstance(outcome, Written):
                return Landed(states=(self._landed(document, outcome, base, draft),))
            if outcome.current is None:
                return Lost()
            current = self._head.parsed(outcome.current, stored_head)
            if not current.document.follows(stored_head.document.id):
                return Unknown(
                    cause=CatalogError(
                        f"{self.identifier}: more versions landed at once than the head remembers"
                    )
                )
            # A note or a fence changes the object and not the table's version: the draft still
            # follows, and is put over the new object. Another version means a lost race.
            stored_head = self._same_version(current, base)
        return Lost()

    def landed(self, snapshot_id: int) -> State | None:
        document = self._refreshed()
        return self._state if self._records(document, [snapshot_id]) else None

    def snapshot(self, snapshot_id: int) -> Snapshot:
        held_snapshot = self._state.snapshots.get(snapshot_id)
        if held_snapshot is not None:
            return held_snapshot
        record = self._records(self._stored_head.document, [snapshot_id]).get(snapshot_id)
        if record is None:  # it may be newer than what was loaded
            record = self._records(self._refreshed(), [snapshot_id]).get(snapshot_id)
        if record is None:
            raise NotFound(f"{self.identifier}: no snapshot {snapshot_id}; it may have expired")
        return snapshot_of(record)

    def snapshots(self) -> Iterable[Snapshot]:
        return self.history().snapshots

    def read_snapshots(self, snapshot_ids: Sequence[int]) -> dict[int, Snapshot]:
        """Snapshots by id; those that the table does not have are left out."""
        records = self._records(self._refreshed(), snapshot_ids)
        return {number: snapshot_of(record) for number, record in records.items()}

    def history(self) -> History:
        return self._history(self._refreshed())

    def history_as_read(self) -> History:
        """The history as of the version that was loaded, of a table that may be dropped by now."""
        return self._history(self._stored_head.document)

    def snapshot_id_as_of(self, timestamp_ms: int) -> SnapshotId | None:
        document = self._refreshed()
        newest = History(snapshot_log=document.log_entries()).snapshot_id_as_of(timestamp_ms)
        if newest is not None or document.log_offset <= document.log_first:
            return newest
        return self._history(document).snapshot_id_as_of(timestamp_ms)

    def export(self) -> str:
        document = self._refreshed()
        if document.rendered_version == document.version and document.metadata_location:
            return document.metadata_location
        metadata = self._state.metadata
        storage = self._storage(metadata.location)
        path = export.render(
            metadata, self._history(document), version=document.version, storage=storage
        )
        written = {"metadata-file": path, "timestamp-ms": metadata.last_updated_ms}
        keep = export.previous_max(metadata) + 1
        forgotten: tuple[Record, ...] = ()

        def note(current: HeadDocument) -> HeadDocument | None:
            nonlocal forgotten
            rendered = -1 if current.rendered_version is None else current.rendered_version
            if current.is_dropped or rendered >= document.version:
                return None
            log = (*current.metadata_log, written)
            forgotten = log[:-keep]
            return current.followed_by(
                metadata_location=path, rendered_version=document.version, metadata_log=log[-keep:]
            )

        self._take(self._head.change(note, self._stored_head))
        if self._state.metadata_location != path:
            storage.delete(path)
            return self._state.metadata_location or path
        if export.deletes_previous(metadata) and forgotten:
            owned = Ownership.of(self, metadata, metadata.location)
            for record in forgotten:
                if owned.may_delete(record["metadata-file"]):
                    storage.delete(record["metadata-file"])
        return path

    def stored_problems(self, *, repair: bool = False) -> tuple[FormatError, ...]:
        return ()  # a head is written whole by Frazil, from values that were checked

    def neighbourhood(self) -> OtherTables:
        return self._neighbours(self._stored_head.document.table_uuid)

    def refuse_files_of_others(self, metadata: TableMetadata, locations: Sequence[str]) -> None:
        owned = Ownership.of(self, metadata, metadata.location, name=str(self.identifier))
        owned.refuse_files_of_others(paths.resolve(metadata.location, path) for path in locations)

    # Versions

    def _refreshed(self) -> HeadDocument:
        """The current document; NotFound when the table was dropped."""
        try:
            stored_head = self._head.read(self._stored_head)
        except NotFound as error:
            raise gone(self.identifier, self._is_taken) from error
        if (
            stored_head.document.is_dropped
            or stored_head.document.table_uuid != self._stored_head.document.table_uuid
        ):
            raise gone(self.identifier, self._is_taken)
        self._take(stored_head)
        return stored_head.document

    def _take(self, stored_head: StoredHead) -> None:
        if stored_head.document.id == self._stored_head.document.id:
            return
        self._stored_head = stored_head
        self._state = _state_of(stored_head.document)
        self._older.forget_others(stored_head.document.history)

    def _version_of(self, base: State) -> StoredHead | None:
        """The object's version to compare for a state; None when the table has moved on."""
        stored_head = self._stored_head
        if stored_head.document.version < base.version:  # the state was loaded by another head
            try:
                self._refreshed()
            except NotFound:
                return None
            stored_head = self._stored_head
        return self._same_version(stored_head, base)

    def _same_version(self, stored_head: StoredHead, base: State) -> StoredHead | None:
        document = stored_head.document
        is_same = document.version == base.version and not document.is_dropped
        is_same = is_same and document.table_uuid == str(base.metadata.table_uuid)
        return stored_head if is_same else None

    def _landed(self, document: HeadDocument, written: Written, base: State, draft: Draft) -> State:
        """Take up the state after a swap."""
        held = {
            **base.snapshots,
            **{int(snapshot.snapshot_id): snapshot for snapshot in draft.added_snapshots},
        }
        records = document.snapshots_held()
        snapshot_ids = dict.fromkeys(int(ref.snapshot_id) for ref in draft.metadata.refs.values())
        state = State(
            version=document.version,
            metadata=draft.metadata,
            snapshots={
                number: held[number] if number in held else snapshot_of(records[number])
                for number in snapshot_ids
            },
            metadata_location=document.metadata_location,
        )
        if written.version is None:  # others have landed since: what was read is not the newest
            self._queue.overtaken()
            return state
        self._stored_head = StoredHead(document=document, version=written.version)
        self._queue.landed(self._stored_head)
        self._state = state
        self._older.forget_others(document.history)
        due = export.is_due(
            base.metadata,
            draft.metadata,
            version=document.version,
            rendered_version=document.rendered_version,
            snapshot_count=lambda: _snapshot_count(document),
        )
        if due:
            self._export_quietly()
            self._queue.saw(self._stored_head)
        return self._state

    def _export_quietly(self) -> None:
        """The commit has landed; a JSON file that cannot be written is not its failure."""
        try:
            self.export()
        except FrazilError as error:
            _log.warning("%s: the metadata JSON was not written: %s", self.identifier, error)

    # The next version

    def _next(self, document: HeadDocument, base: State, draft: Draft) -> HeadDocument:
        after = draft.metadata
        removed = {int(number) for number in draft.removed_snapshot_ids}
        added = tuple(snapshot_record(snapshot) for snapshot in draft.added_snapshots)
        snapshots = {**document.snapshots_held(), **_by_id(added)}
        recent = tuple(
            record
            for record in (*document.recent, *added)
            if int(record["snapshot-id"]) not in removed
        )
        log, log_first = document.log, document.log_first
        history = document.history
        if removed:
            log_first = self._log_start(document, removed)
            history = history_objects.expired(self._older, history, removed, log_first=log_first)
            log = log[max(0, log_first - document.log_offset) :]
        log_offset = document.log_offset + len(document.log) - len(log)
        entry = log_entry(base.metadata, after, draft.added_snapshots)
        if entry is not None:
            log = (*log, log_record(entry))
        elif after.current_snapshot_id is None:
            log_offset, log = log_offset + len(log), ()
            log_first = log_offset
        self._need_named(document, after, snapshots, removed)
        if len(recent) > history_objects.MAX_RECENT or len(log) > _MAX_LOG:
            recent, log, log_offset, history = self._moved_out(recent, log, log_offset, history)
        definition = document.definition
        if is_redefined(base.metadata, after):
            definition = Part.of(definition_document(after), "definition", definition)
        return document.followed_by(
            version=document.version + 1,
            definition=definition,
            refs=Part.of(refs_document(after, recent, snapshots), "refs", document.refs),
            last_sequence_number=after.last_sequence_number,
            last_updated_ms=after.last_updated_ms,
            next_row_id=after.next_row_id,
            recent=recent,
            log=log,
            log_offset=log_offset,
            log_first=log_first,
            history=history,
        )

    def _moved_out(
        self,
        recent: tuple[Record, ...],
        log: tuple[Record, ...],
        log_offset: int,
        history: tuple[history_objects.HistoryObject, ...],
    ) -> tuple[
        tuple[Record, ...], tuple[Record, ...], int, tuple[history_objects.HistoryObject, ...]
    ]:
        keep = history_objects.KEPT_RECENT
        older = Older(snapshots=recent[:-keep], log=log[:-keep])
        history = history_objects.moved_out(self._older, history, older, first_entry=log_offset)
        return recent[-keep:], log[-keep:], log_offset + len(older.log), history

    def _log_start(self, document: HeadDocument, removed: set[int]) -> int:
        """The first entry of the log after the last one that names an expired snapshot: a log with
        a gap would be wrong."""
        start = document.log_first
        for first, log in self._logs(document):
            for number, record in enumerate(log, first):
                if int(record["snapshot-id"]) in removed:
                    start = max(start, number + 1)
        return start

    def _logs(self, document: HeadDocument) -> list[tuple[int, Sequence[Record]]]:
        """The pieces of the snapshot log, oldest first, with the number of their first entry."""
        older = self._older.read(document.history)
        pieces: list[tuple[int, Sequence[Record]]] = [
            (history.first_entry, piece.log)
            for history, piece in zip(document.history, older, strict=True)
        ]
        return [*pieces, (document.log_offset, document.log)]

    def _need_named(
        self,
        document: HeadDocument,
        after: TableMetadata,
        records: dict[int, Record],
        removed: set[int],
    ) -> None:
        """Add the snapshots that refs name to the records; one that is not in the table is
        refused."""
        names_by_id = {int(ref.snapshot_id): name for name, ref in after.refs.items()}
        missing = [number for number in names_by_id if number not in records]
        records.update(self._records(document, missing))
        for number, name in names_by_id.items():
            if number not in records or number in removed:
                raise NotFound(
                    f"{self.identifier}: {name} names snapshot {number}, "
                    "which the table does not have"
                )

    # Older snapshots

    def _records(self, document: HeadDocument, snapshot_ids: Sequence[int]) -> dict[int, Record]:
        """Snapshots by id, from the head and then from the history objects."""
        held = document.snapshots_held()
        records = {number: held[number] for number in snapshot_ids if number in held}
        missing = {int(number) for number in snapshot_ids} - records.keys()
        for history in reversed(document.history):
            if not missing:
                break
            (older,) = self._older.read([history])
            there = {n: r for n, r in _by_id(older.snapshots).items() if n in missing}
            records.update(there)
            missing -= there.keys()
        return records

    def _history(self, document: HeadDocument) -> History:
        older = self._older.read(document.history)
        records = [record for piece in older for record in piece.snapshots]
        log = [
            record
            for first, piece in self._logs(document)
            for number, record in enumerate(piece, first)
            if number >= document.log_first
        ]
        return History(
            snapshots=tuple(snapshot_of(record) for record in (*records, *document.recent)),
            snapshot_log=tuple(log_entry_of(record) for record in log),
            metadata_log=document.metadata_log_entries(),
        )


def first_document(
    identifier: Identifier,
    metadata: TableMetadata,
    history: History,
    *,
    older: HistoryStore,
    metadata_location: str | None,
    now_ms: int,
    before: HeadDocument | None = None,
) -> HeadDocument:
    """The head of a table that is entered, with its history; what no head can hold is written
    first. `before` is the head of a dropped table in the same place."""
    recent = tuple(snapshot_record(snapshot) for snapshot in history.snapshots)
    log = tuple(log_record(entry) for entry in history.snapshot_log)
    snapshots = _by_id(recent)
    objects: tuple[history_objects.HistoryObject, ...] = ()
    offset = 0
    if len(recent) > history_objects.MAX_RECENT or len(log) > _MAX_LOG:
        keep = history_objects.KEPT_RECENT
        recent, objects, offset = _long_history(recent, log[:-keep], older)
        log = log[-keep:]
    metadata_log = [
        {"metadata-file": entry.metadata_file, "timestamp-ms": entry.timestamp_ms}
        for entry in history.metadata_log
    ]
    if metadata_location is not None:
        written = {"metadata-file": metadata_location, "timestamp-ms": metadata.last_updated_ms}
        metadata_log.append(written)
    document = HeadDocument(
        identifier=identifier,
        created_ms=now_ms,
        location=metadata.location,
        table_uuid=str(metadata.table_uuid),
        definition=Part.of(definition_document(metadata), "definition"),
        refs=Part.of(refs_document(metadata, recent, snapshots), "refs"),
        last_sequence_number=metadata.last_sequence_number,
        last_updated_ms=metadata.last_updated_ms,
        next_row_id=metadata.next_row_id,
        recent=recent,
        log=log,
        log_offset=offset,
        metadata_log=tuple(metadata_log),
        history=objects,
        metadata_location=metadata_location,
        rendered_version=None if metadata_location is None else 0,
    )
    if before is None:
        return document
    return replace(document, earlier_ids=(*before.earlier_ids, before.id)[-MAX_IDS:])


def _long_history(
    records: tuple[Record, ...], log: tuple[Record, ...], older: HistoryStore
) -> tuple[tuple[Record, ...], tuple[history_objects.HistoryObject, ...], int]:
    """Older snapshots in objects of the largest size, each with its share of the log."""
    keep = history_objects.KEPT_RECENT
    moved = records[:-keep]
    size = history_objects.MAX_SNAPSHOTS
    pieces = [moved[start : start + size] for start in range(0, max(1, len(moved)), size)]
    share = -(-len(log) // len(pieces))
    objects = tuple(
        older.write(
            Older(snapshots=piece, log=log[at * share : (at + 1) * share]), first_entry=at * share
        )
        for at, piece in enumerate(pieces)
    )
    return records[-keep:], objects, len(log)


def _sequence_number(state: State) -> int:
    return int(state.metadata.last_sequence_number)


def _by_id(records: Iterable[Record]) -> dict[int, Record]:
    return {int(record["snapshot-id"]): record for record in records}


def _snapshot_count(document: HeadDocument) -> int:
    older = sum(history.count - len(history.removed) for history in document.history)
    return older + len(document.recent)


def _state_of(document: HeadDocument) -> State:
    metadata = document.metadata()
    held = document.snapshots_held()
    snapshot_ids = dict.fromkeys(int(ref.snapshot_id) for ref in metadata.refs.values())
    return State(
        version=document.version,
        metadata=metadata,
        snapshots={number: snapshot_of(held[number]) for number in snapshot_ids},
        metadata_location=document.metadata_location,
    )
