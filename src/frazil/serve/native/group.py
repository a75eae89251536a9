"""Group commit: appends that arrive together become one root, one swap and one snapshot.

While a group is being committed, the appends that come in wait and make the next one. Appends with
the same branch and the same summary share a snapshot; those that differ are snapshots of their own
in the same swap. Each is checked against the table as the group meets it, and one that does not fit
fails alone.

An append lands once, however often it is sent and to whichever server. Its id is in the snapshot
that holds it, and before a group is built, every snapshot that came since its appends were first
sent is searched for their ids. The swap is a compare-and-set, so nothing can land in between.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from frazil.catalog.remote.remote_wire import ClientState, Definitions, state_document
from frazil.catalog.sql.sql_head import SqlHead
from frazil.commit.change import Change
from frazil.commit.context import CommitContext
from frazil.commit.group_append import GROUP_SIZE, append_ids, group_summary, is_grouped
from frazil.commit.handle import new_snapshot_id, now_ms
from frazil.commit.head import State
from frazil.commit.loop import StaleBase, TableCommit, commit_tables
from frazil.commit.summary import LEAVES_WRITTEN, METADATA_BYTES_WRITTEN, check_keys
from frazil.errors import CommitUnknown, FrazilError, InvalidInput, Overloaded
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import RefKind, Snapshot, TableMetadata
from frazil.legacy.read.legacy_decoder import LegacyDecoder
from frazil.serve.access.allowed_paths import Fence, FencedCache, storage_for, table_fence
from frazil.serve.limits import (
    GROUP_THREADS,
    MAX_APPENDS_OF_A_GROUP,
    MAX_APPENDS_WAITING,
    MAX_GATHER_S,
)
from frazil.serve.native import group_entries, native_wire
from frazil.value_classes import dataclass, field, frozen

if TYPE_CHECKING:
    from frazil.serve.service import Service

MAX_REMEMBERED = 4_096
"""Appends whose snapshots are remembered; older ones are looked up in the catalog."""
RECENT_S = 0.05
"""A writer that was answered longer ago is not waited for."""


@dataclass(slots=True, eq=False)
class Append:
    """An append that waits for its group."""

    id: int
    writer: str
    data: memoryview
    branch: str
    summary: Mapping[str, str]
    known: ClientState
    since_version: int
    since_sequence_number: int
    is_repeated: bool
    answer: Future[bytes] = field(default_factory=Future)
    was_read: bool = False
    _read: group_entries.Decoded | FrazilError | None = None

    def read(self) -> None:
        """Decode the entries, while others are waited for."""
        self.was_read = True
        try:
            self._read = group_entries.decoded(self.data)
        except FrazilError as error:
            self._read = error

    @property
    def entries(self) -> group_entries.Decoded:
        """The entries; InvalidInput when the bytes are not entries."""
        if self._read is None:
            self.read()
        if isinstance(self._read, FrazilError):
            raise self._read
        assert self._read is not None
        return self._read


_Refused = list[tuple[Append, FrazilError]]


@frozen
class _Last:
    """The group before: who was in it, how long it took, and when it was done."""

    writers: frozenset[str] = frozenset()
    took_s: float = 0.0
    at: float = float("-inf")


class _NothingLeft(Exception):
    """No append of a group is left to be committed."""


class Groups:
    """The appends that wait, by table."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tables: dict[str, _Table] = {}
        self._lock = threading.Lock()
        self._workers = ThreadPoolExecutor(GROUP_THREADS, thread_name_prefix="frazil-group")

    def append(
        self, head: SqlHead, header: native_wire.Append, entries: memoryview
    ) -> Future[bytes]:
        """Have an append committed with others; the answer comes when it has landed."""
        if not 0 < header.append_id < 1 << 63:
            raise InvalidInput(f"append-id is {header.append_id}; expected a positive number")
        if any(key.startswith("frazil.") for key in header.summary):
            raise InvalidInput("summary keys that start with frazil. are set by the commit itself")
        check_keys(header.summary)
        append = Append(
            id=header.append_id,
            writer=header.writer,
            data=entries,
            branch=header.branch,
            summary=header.summary,
            known=header.known.value(),
            since_version=header.since_version,
            since_sequence_number=header.since_sequence_number,
            is_repeated=header.is_repeated,
        )
        with self._lock:
            table = self._tables.get(head.key)
            if table is None:
                if len(self._tables) >= MAX_REMEMBERED:
                    self._tables = {
                        key: queue for key, queue in self._tables.items() if queue.is_busy
                    }
                table = self._tables[head.key] = _Table(self._service, head)
            answer, is_first = table.enter(append)
        if is_first:
            self._workers.submit(table.run)
        return answer


class _Table:
    """The groups of one table, one after the other."""

    def __init__(self, service: Service, head: SqlHead) -> None:
        self._head = service.pointers.load_key(head.key)
        self._service = service
        self._fenced: tuple[Mapping[str, str], Fence] | None = None
        """The properties that a fence was made for, and the fence."""
        self._definitions = Definitions()
        self._lock = threading.Condition()
        self._last = _Last()
        self._waiting: list[Append] = []
        self._pending: dict[int, Future[bytes]] = {}
        self._history = _Searched(self._head)
        self._is_alone = False
        """Whether nobody else committed to the table between the last two groups."""
        self.is_busy = False

    def enter(self, append: Append) -> tuple[Future[bytes], bool]:
        """Queue an append; whether somebody has to start working on the queue."""
        with self._lock:
            under_way = self._pending.get(append.id)
            if under_way is not None:
                return under_way, False
            if len(self._waiting) >= MAX_APPENDS_WAITING:
                raise Overloaded(
                    f"too many queued appends (limit {MAX_APPENDS_WAITING}); retry later"
                )
            self._pending[append.id] = append.answer
            self._waiting.append(append)
            self._lock.notify()
            is_first, self.is_busy = not self.is_busy, True
            return append.answer, is_first

    def run(self) -> None:
        """Commit groups until nothing waits."""
        while True:
            with self._lock:
                if not self._waiting:
                    self.is_busy = False
                    return
                self._gather()
                group = self._waiting[:MAX_APPENDS_OF_A_GROUP]
                del self._waiting[:MAX_APPENDS_OF_A_GROUP]
            began = time.monotonic()
            try:
                self._commit(group)
            except BaseException as error:
                self._fail(group, error)
            finally:
                with self._lock:
                    for append in group:
                        self._pending.pop(append.id, None)
                    writers = frozenset(append.writer for append in group)
                    now = time.monotonic()
                    self._last = _Last(writers=writers, took_s=now - began, at=now)

    def _gather(self) -> None:
        """Wait a little for the writers of the last group, who are about to append again: otherwise
        two halves of them take turns, and twice as many snapshots are made."""
        last = self._last
        now = time.monotonic()
        if now - last.at > RECENT_S:
            return
        until = now + min(MAX_GATHER_S, last.took_s)
        while len(self._waiting) < MAX_APPENDS_OF_A_GROUP:
            left = until - time.monotonic()
            writers = {append.writer for append in self._waiting}
            if left <= 0 or last.writers <= writers:
                return
            unread = next((append for append in self._waiting if not append.was_read), None)
            if unread is None:
                self._lock.wait(left)
                continue
            self._lock.release()
            try:
                unread.read()
            finally:
                self._lock.acquire()

    def _commit(self, group: Sequence[Append]) -> None:
        try:
            self._commit_group(group)
        except CommitUnknown as error:
            self._fail(group, error)
        except FrazilError as error:
            left = [append for append in group if not append.answer.done()]
            if len(left) < 2:
                self._fail(left, error)
                return
            for append in left:  # one that cannot be built must not fail the others
                self._commit([append])

    def _commit_group(self, group: Sequence[Append]) -> None:
        current_state = self._head.state if self._is_alone else None
        before = self._head.state.version
        is_trusting = current_state is not None
        planned_version = before

        def plan(state: State) -> Sequence[Change]:
            nonlocal is_trusting, planned_version
            planned_version = state.version
            # Only the first attempt is made on a state that may be old, whatever a load returns.
            is_newest, is_trusting = not is_trusting, False
            return self._planned(group, state, is_newest=is_newest)

        table = TableCommit(head=self._head, context=self._context(), plan=plan, base=current_state)
        try:
            (result,) = commit_tables([table])
        except _NothingLeft:
            return
        state = result.state
        assert state is not None
        self._is_alone = state.version == before + 1
        if state.version == planned_version + 1:
            self._history.add(state.version, result.snapshots)
        else:  # a swap in doubt had landed, and others came before it was found
            self._history.search(state)
        rendered: dict[tuple[int, ClientState], bytes] = {}
        for append in group:
            if not append.answer.done():
                self._answer(append, state, rendered)

    def _context(self) -> CommitContext:
        metadata = self._head.state.metadata
        location = metadata.location
        if self._fenced is None or self._fenced[0] is not metadata.properties:
            namespace = self._head.identifier.namespace
            fence = table_fence(self._service, namespace, metadata)
            self._fenced = (metadata.properties, fence)
        fence = self._fenced[1]
        return CommitContext(
            storage=storage_for(self._service, fence, location),
            location=location,
            cache=FencedCache(self._service.catalog._cache, fence),
            now_ms=now_ms,
            new_snapshot_id=new_snapshot_id,
            decoder=LegacyDecoder(),
        )

    def _planned(self, group: Sequence[Append], state: State, *, is_newest: bool) -> list[Change]:
        """The changes of the appends that have not landed and fit the table. Nothing is refused for
        a state that may not be the newest any more."""
        self._history.search(state)
        refused: _Refused = []
        changes: dict[tuple[str, tuple[tuple[str, str], ...]], dict[bytes, list[Append]]] = {}
        for append in group:
            if append.answer.done():
                continue
            try:
                if self._history.holds(append, state):
                    self._answer(append, state, {})
                elif not is_grouped(state.metadata.properties):
                    if not is_newest:
                        raise StaleBase
                    append.answer.set_result(b'{"is-grouped":false}')
                else:
                    _check_branch(append, state.metadata)
                    shape = append.entries.shape
                    key = (append.branch, tuple(sorted(append.summary.items())))
                    changes.setdefault(key, {}).setdefault(shape, []).append(append)
            except FrazilError as error:
                refused.append((append, error))
        proposed = [_change(alike, state.metadata, refused) for alike in changes.values()]
        if refused and not is_newest:
            raise StaleBase
        for append, reason in refused:
            append.answer.set_exception(reason)
        fitting = [change for change in proposed if change is not None]
        if not fitting:
            raise _NothingLeft
        return fitting

    def _answer(
        self, append: Append, state: State, rendered: dict[tuple[int, ClientState], bytes]
    ) -> None:
        """Answer an append. Writers of one group mostly know the same: what one is told is
        rendered once."""
        snapshot = self._history.snapshot(append.id)
        key = (int(snapshot.snapshot_id), append.known)
        answer = rendered.get(key)
        if answer is None:
            answer = rendered[key] = self._rendered(snapshot, state, append.known)
        append.answer.set_result(answer)

    def _rendered(self, snapshot: Snapshot, state: State, known: ClientState) -> bytes:
        summary = snapshot.summary
        leaves = summary.get(LEAVES_WRITTEN, "0")
        definition = self._definitions.of("", state.metadata)
        return msgspec.json.encode(
            {
                "state": state_document(state, definition, known),
                "snapshot": metadata_json.snapshot_text(snapshot),
                "shared-by": int(summary.get(GROUP_SIZE, "1")),
                "metadata-files": 1 + (int(leaves) if leaves.isdigit() else 0),
                "metadata-bytes": int(summary.get(METADATA_BYTES_WRITTEN, "0")),
            }
        )

    def _fail(self, group: Sequence[Append], error: BaseException) -> None:
        for append in group:
            if not append.answer.done():
                append.answer.set_exception(error)


class _Searched:
    """Which appends the snapshots since some version hold. Complete from that version on."""

    def __init__(self, head: SqlHead) -> None:
        self._head = head
        self._from = self._until = head.state.version
        self._by_append: OrderedDict[int, Snapshot] = OrderedDict()

    def search(self, state: State) -> None:
        """Read the snapshots that others added since the last search."""
        if state.version > self._until:
            self.add(state.version, self._head.snapshots_since(self._until))

    def add(self, version: int, snapshots: Any) -> None:
        """Take the snapshots that lead to a version."""
        for snapshot in snapshots:
            for id in append_ids(snapshot.summary, int(snapshot.snapshot_id)):
                self._by_append[id] = snapshot
        self._until = max(self._until, version)
        if len(self._by_append) > MAX_REMEMBERED:
            while len(self._by_append) > MAX_REMEMBERED // 2:
                self._by_append.popitem(last=False)
            self._from = self._until

    def snapshot(self, append_id: int) -> Snapshot:
        """The snapshot that holds an append."""
        return self._by_append[append_id]

    def holds(self, append: Append, state: State) -> bool:
        """Whether an append has landed. CommitUnknown when a snapshot that could hold it is gone.

        It can have landed only since it was first sent, perhaps through another server.
        """
        if append.id in self._by_append:
            return True
        if append.since_version >= self._from:
            return False
        for snapshot in self._head.snapshots_naming(append.id, append.since_version):
            if append.id in append_ids(snapshot.summary, int(snapshot.snapshot_id)):
                self._by_append[append.id] = snapshot
                return True
        added = state.metadata.last_sequence_number - append.since_sequence_number
        if append.is_repeated and self._head.count_since(append.since_version) < added:
            raise CommitUnknown(
                f"append {append.id} may have landed in a snapshot that has expired since; look "
                "for its rows before trying again"
            )
        return False


def _check_branch(append: Append, metadata: TableMetadata) -> None:
    ref = metadata.refs.get(append.branch)
    if ref is not None and ref.kind is RefKind.TAG:
        raise InvalidInput(f"{append.branch!r} is a tag and cannot be committed to")


def _change(
    appends: Mapping[bytes, Sequence[Append]], metadata: TableMetadata, refused: _Refused
) -> Change | None:
    """One change of the appends that fit the table; those that do not are refused. They come by the
    columns of their entries."""
    fitting: list[Append] = []
    entries: list[EntryBatch] = []
    for alike in appends.values():
        for those, their_entries in _fitted(alike, metadata, refused):
            fitting += those
            entries.append(their_entries)
    if not fitting:
        return None
    first = fitting[0]
    return Change(
        added=EntryBatch.concat(entries),
        branch=first.branch,
        summary={**first.summary, **group_summary(tuple(append.id for append in fitting))},
        snapshot_id=first.id,
    )


def _fitted(
    appends: Sequence[Append], metadata: TableMetadata, refused: _Refused
) -> Iterator[tuple[Sequence[Append], EntryBatch]]:
    """Entries of the same columns, checked at once; one by one when the check fails."""
    try:
        entries = group_entries.joined([append.entries for append in appends])
        entries = group_entries.fitted(entries, metadata)
    except FrazilError as error:
        if len(appends) == 1:
            refused.append((appends[0], error))
            return
        for append in appends:
            yield from _fitted([append], metadata, refused)
    else:
        yield appends, entries


__all__ = ["Append", "Groups"]
