"""The head of a table behind a Frazil server: load, swap, and appends that the server commits
together with those of other writers.

The table is named by a key that stays when it is renamed. A swap whose answer is lost is `Unknown`,
and the commit loop asks for its snapshot. An append whose answer is lost is sent again under its
own id: the server finds it in the history, or lands it.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any

import pyarrow as pa

from frazil.catalog.backend import check_draft, gone
from frazil.catalog.names import Identifier
from frazil.catalog.notes import Notes
from frazil.catalog.ownership import OtherTables, Ownership, TablePlace
from frazil.catalog.remote import remote_wire
from frazil.catalog.remote.remote_http import Requests, Unanswered
from frazil.catalog.remote.remote_namespaces import RemoteNotes
from frazil.catalog.remote.remote_wire import ClientState, Document
from frazil.catalog.sql.offers import entries_bytes
from frazil.catalog.sql.sql_rows import Definition
from frazil.commit.head import Draft, Landed, Lost, Outcome, State, Unknown
from frazil.commit.result import CommitResult
from frazil.errors import CatalogError, CommitUnknown, FormatError, FrazilError, NotFound
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import History, Snapshot, SnapshotId, TableMetadata

_log = logging.getLogger(__name__)

MAX_DOUBT_S = 60.0
"""How long an append whose answer was lost is asked about before the doubt is the caller's."""
_WAIT_S = 0.1
_MAX_WAIT_S = 2.0


class RemoteHead:
    """The head of a v4 table."""

    def __init__(
        self,
        requests: Requests,
        identifier: Identifier,
        document: Document,
        *,
        open: Callable[[Identifier], Any],
    ) -> None:
        self._requests = requests
        self.identifier = identifier
        self._open = open
        self.key: str = document["key"]
        self._definition: Definition | None = None
        self._turn = _Turn()
        self._writer = uuid.uuid4().hex
        self._state = self._settled(document["state"], seen={})

    def __repr__(self) -> str:
        return f"RemoteHead({str(self.identifier)!r}, version={self._state.version})"

    @property
    def state(self) -> State:
        return self._state

    @property
    def notes(self) -> Notes:
        return RemoteNotes(self._requests, self.key)

    def load(self) -> State:
        if self._turn.is_due:
            self._turn.is_due = False
            self._take_turn()
        try:
            document = self._ask("load-head", known=self.known().document())
        except NotFound as error:
            raise gone(self.identifier, self._is_taken) from error
        self._state = self._settled(document["state"], seen=self._state.snapshots)
        return self._state

    def _is_taken(self, identifier: Identifier) -> bool:
        try:
            return self._open(identifier) is not None
        except NotFound:
            return False

    def known(self) -> ClientState:
        """What the server need not send."""
        if self._definition is None:
            return ClientState()
        return ClientState(
            definition_id=self._definition.definition_id,
            sequence_number=self._state.metadata.last_sequence_number,
        )

    @contextmanager
    def turn(self) -> Iterator[None]:
        self._take_turn()
        try:
            yield
        finally:
            self._turn.is_due = False
            self._end_turn()

    def _take_turn(self) -> None:
        question = {"key": self.key, "writer": self._writer}
        try:
            self._turn.id = self._requests.at_once("take-turn", question)["turn"]
        except FrazilError as error:
            _log.debug("no turn: %s", error)

    def _end_turn(self) -> None:
        turn_id, self._turn.id = self._turn.id, None
        if turn_id is None:  # none was given, or the swap that landed has ended it
            return
        try:
            self._requests.at_once("end-turn", {"turn": turn_id})
        except FrazilError as error:
            _log.debug("the turn ends by itself: %s", error)

    def left_turn(self) -> None:
        """The turn of this thread has ended with the swap that landed in it."""
        self._turn.id = None

    def swap_document(self, base: State, draft: Draft) -> Document:
        """What the server is asked to swap."""
        check_draft(base.metadata, draft)
        document = remote_wire.draft_document(base, draft)
        stamp = self.known().document()
        return {"key": self.key, "known": stamp, "turn": self._turn.id, "draft": document}

    def swap(self, base: State, draft: Draft) -> Outcome:
        is_in_turn = self._turn.id is not None
        outcome = swapped(self._requests, [(self, base, draft)])
        if is_in_turn and isinstance(outcome, Lost):
            # Nobody overtakes a writer in its turn: it has expired. The next attempt, which starts
            # with a load, has another.
            self._end_turn()
            self._turn.is_due = True
        return outcome

    def took(self, document: Document, seen: Mapping[int, Snapshot]) -> State:
        """Take a state that the server answered with."""
        self._state = self._settled(document, seen={**self._state.snapshots, **seen})
        return self._state

    def append(
        self,
        base: State,
        entries: EntryBatch,
        *,
        branch: str,
        summary: Mapping[str, str],
        append_id: int,
    ) -> CommitResult | None:
        header: Document = {
            "key": self.key,
            "branch": branch,
            "summary": dict(summary),
            "append-id": append_id,
            "writer": self._writer,
            "known": self.known().document(),
            "since-version": base.version,
            "since-sequence-number": base.metadata.last_sequence_number,
        }
        answer = self._landed_once(header, entries_bytes(entries))
        if "state" not in answer:
            return None
        text = answer["snapshot"]
        snapshot = remote_wire.snapshot_of(text)
        state_document = answer["state"]
        # The snapshot is mostly the branch's newest as well: it is read once.
        others = [other for other in state_document["snapshots"] if other != text]
        state = self.took(
            {**state_document, "snapshots": others}, {int(snapshot.snapshot_id): snapshot}
        )
        return CommitResult(
            operation="append",
            state=state,
            snapshots=(snapshot,),
            attempts=1,
            shared_by=int(answer["shared-by"]),
            metadata_files=int(answer["metadata-files"]),
            metadata_bytes=int(answer["metadata-bytes"]),
        )

    def _landed_once(self, header: Document, entries: pa.Buffer) -> Document:
        """The answer to an append, asked for until it comes."""
        deadline = time.monotonic() + MAX_DOUBT_S
        wait_s = _WAIT_S
        while True:
            body = remote_wire.framed(json.dumps(header).encode(), entries)
            try:
                answer: Document = self._requests.once("append", body)
                return answer
            except Unanswered as lost:
                cause: FrazilError = lost
            except CatalogError as error:
                if not header.get("is-repeated"):
                    raise  # it was not even sent
                cause = error
            if time.monotonic() > deadline:
                raise CommitUnknown(
                    f"{self.identifier}: the server did not say whether append "
                    f"{header['append-id']} landed ({cause}). Nothing was deleted; look for the "
                    "rows before trying again."
                ) from cause
            header["is-repeated"] = True
            time.sleep(wait_s)
            wait_s = min(_MAX_WAIT_S, wait_s * 2)

    def landed(self, snapshot_id: int) -> State | None:
        answer = self._ask("landed", id=snapshot_id, known=self.known().document())
        if answer["state"] is None:
            return None
        return self.took(answer["state"], {})

    def snapshot(self, snapshot_id: int) -> Snapshot:
        held_snapshot = self._state.snapshots.get(snapshot_id)
        if held_snapshot is not None:
            return held_snapshot
        snapshot = self._fetched([snapshot_id]).get(snapshot_id)
        if snapshot is None:
            raise NotFound(f"{self.identifier}: no snapshot {snapshot_id}; it may have expired")
        return snapshot

    def snapshots(self) -> Iterable[Snapshot]:
        return self.history().snapshots

    def history(self) -> History:
        return remote_wire.history_of(self._ask("history")["history"])

    def snapshot_id_as_of(self, timestamp_ms: int) -> SnapshotId | None:
        answer = self._ask("snapshot-as-of", id=timestamp_ms)["snapshot-id"]
        return None if answer is None else SnapshotId(answer)

    def export(self) -> str:
        answer = self._ask("export", known=self.known().document())
        self.took(answer["state"], {})
        return str(answer["metadata-location"])

    def stored_problems(self, *, repair: bool = False) -> tuple[FormatError, ...]:
        answer = self._ask("repair" if repair else "stored-problems")["problems"]
        if repair and answer:
            self._definition = None
            self.load()
        return tuple(FormatError(problem, path=path, field=at) for problem, path, at in answer)

    def neighbourhood(self) -> OtherTables:
        return neighbourhood_of(self._ask("neighbourhood"), self._open)

    def refuse_files_of_others(self, metadata: TableMetadata, locations: Sequence[str]) -> None:
        owned = Ownership.of(self, metadata, metadata.location, name=str(self.identifier))
        owned.refuse_files_of_others(
            paths.resolve(metadata.location, location) for location in locations
        )

    def _ask(self, operation: str, **parts: Any) -> Any:
        """Ask for something that can be asked for twice."""
        try:
            return self._requests.read(operation, {"key": self.key, **parts})
        except NotFound as error:
            raise NotFound(f"{self.identifier}: {error}") from error

    def _settled(self, document: Document, *, seen: Mapping[int, Snapshot]) -> State:
        state, self._definition = remote_wire.state_of(
            document, definition=self._definition, seen=seen, fetch=self._fetched
        )
        return state

    def _fetched(self, snapshot_ids: list[int]) -> dict[int, Snapshot]:
        texts = self._ask("snapshots", ids=snapshot_ids)["snapshots"]
        snapshots = (remote_wire.snapshot_of(text) for text in texts)
        return {int(snapshot.snapshot_id): snapshot for snapshot in snapshots}


class _Turn(local):
    """The turn that a thread has."""

    id: str | None = None
    is_due = False
    """Whether the last one expired before its swap came."""

    def __reduce__(self) -> tuple[type[_Turn], tuple[()]]:
        return (_Turn, ())


def swapped(requests: Requests, swaps: list[tuple[RemoteHead, State, Draft]]) -> Outcome:
    """Swap heads of one server: all of them, or none. A swap that lands in a turn ends it."""
    document = {"swaps": [head.swap_document(base, draft) for head, base, draft in swaps]}
    try:
        answer = requests.once("swap", json.dumps(document, separators=(",", ":")).encode())
    except Unanswered as lost:
        return Unknown(cause=lost)
    if answer["states"] is None:
        return Lost()
    if len(swaps) == 1:
        swaps[0][0].left_turn()
    states = (
        head.took(
            state, {int(snapshot.snapshot_id): snapshot for snapshot in draft.added_snapshots}
        )
        for (head, _, draft), state in zip(swaps, answer["states"], strict=True)
    )
    return Landed(states=tuple(states))


def neighbourhood_of(document: Document, open: Callable[[Identifier], Any]) -> OtherTables:
    """The tables around one, from the server's answer."""

    def place(stated: Document) -> TablePlace:
        name = stated["open"]
        opener = None
        if name is not None:
            identifier = Identifier.parse(name)
            opener = lambda: open(identifier)  # noqa: E731
        return TablePlace(
            name=stated["name"],
            location=stated["location"],
            folders=tuple(stated["folders"]),
            added=tuple(stated.get("added", ())),
            source_uuid=stated["source-uuid"],
            open=opener,
        )

    return OtherTables(
        tables=tuple(place(table) for table in document["tables"]),
        warehouse=document["warehouse"],
        database=document["database"],
    )


__all__ = ["RemoteHead", "neighbourhood_of", "swapped"]
