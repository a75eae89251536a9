"""Tables and their heads for Frazil's own client.

A head is named by a key that outlives a rename; rights are checked on the name that the table has
now. A draft is checked before it is swapped: it continues the state it was made for, and names no
file outside the places that the table may use.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Literal, cast

from frazil.catalog.backend import TableHead
from frazil.catalog.json_head import JsonHead
from frazil.catalog.names import Identifier
from frazil.catalog.ownership import SOURCES, OtherTables, TablePlace, relevant_to
from frazil.catalog.remote import remote_wire
from frazil.catalog.remote.remote_wire import ClientState, Definitions, Document
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.catalog.sql.sql_head import SqlHead
from frazil.commit.head import Draft, Landed, State, Unknown
from frazil.errors import AlreadyExists, CommitUnknown, InvalidInput, NotFound
from frazil.format.checks import added_folders, own_prefixes
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import FORMAT_VERSION, TableMetadata
from frazil.properties.registry import check_values
from frazil.serve.access.allowed_paths import Fence, folders_of, request_fence
from frazil.serve.access.principals import may_read
from frazil.serve.access.rights import (
    ANY_READER,
    BODY_READER,
    BODY_WRITER,
    BODY_WRITER_ASKS,
    Rights,
)
from frazil.serve.exchange import Request, Response, decoded
from frazil.serve.limits import MAX_HEADS, MAX_TURN_WAIT_S
from frazil.serve.native import native_wire
from frazil.serve.native.group import Groups
from frazil.serve.native.turn_keeper import TurnKeeper
from frazil.serve.rest.locations import (
    check_files,
    check_listed,
    read_registered,
    reader_of,
    strange_files,
)
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service
from frazil.value_classes import frozen, replace

_log = logging.getLogger("frazil.serve")

Answered = Document | Future[bytes] | Response


class NativeTables:
    """What the server keeps between requests: heads, turns, and appends that wait."""

    def __init__(self, pointers: SqlCatalog, groups: Groups) -> None:
        self.pointers = pointers
        self.turns = TurnKeeper()
        self.groups = groups
        self.definitions = Definitions()
        self._heads: dict[str, SqlHead] = {}

    def head(self, key: str) -> SqlHead:
        """The head of a table, as it was seen last."""
        head = self._heads.get(key)
        return self.keep(self.pointers.load_key(key)) if head is None else head

    def cached_head(self, key: str) -> SqlHead | None:
        """The head of a table that has been used before."""
        return self._heads.get(key)

    def keep(self, head: SqlHead) -> SqlHead:
        """Remember a head that has just been loaded."""
        if len(self._heads) >= MAX_HEADS and head.key not in self._heads:
            self.forget(next(iter(self._heads)))
        return self._heads.setdefault(head.key, head)

    def forget(self, key: str) -> None:
        """Drop what is known of a table."""
        self._heads.pop(key, None)
        self.definitions.forget(key)

    def document(self, key: str, state: State, known: ClientState) -> Document:
        """A state for a client that has part of it."""
        definition = self.definitions.of(key, state.metadata)
        return remote_wire.state_document(state, definition, known)


def tables_of(service: Service) -> NativeTables:
    """What the server keeps for Frazil's own clients."""
    if service.native is None:
        with service.lock:
            if service.native is None:
                service.native = NativeTables(service.pointers, Groups(service))
    return cast(NativeTables, service.native)


def head_of(service: Service, call: Request, key: str, right: Literal["read", "write"]) -> SqlHead:
    """The head of a table, if the sender may use it so. Keys are easily guessed, so that a refusal
    names no namespace that the sender cannot read."""
    native = tables_of(service)
    if call.principal is not None:
        namespace = native.pointers.name_of(key).namespace
        if not may_read(call.principal, namespace):
            refusal = f"{call.principal.name} may not {right} the table with key {key}"
            raise RestError(403, "ForbiddenException", refusal)
        call.check(right, namespace)
    return native.head(key)


def _loaded(service: Service, head: SqlHead) -> State:
    try:
        return head.load()
    except NotFound:
        tables_of(service).forget(head.key)
        raise


# By name


def _entered(service: Service, head: TableHead) -> Document:
    """A table for a client that has nothing of it."""
    if isinstance(head, SqlHead):
        native = tables_of(service)
        native.keep(head)
        return {"key": head.key, "state": native.document(head.key, head.state, ClientState())}
    return {"legacy": head.state.metadata_location}


def _location_for(service: Service, call: Request, body: native_wire.Named) -> Document:
    return {"location": service.catalog._pointers.location_for(call.named("write", body.name))}


def _create_table(service: Service, call: Request, body: native_wire.CreateTable) -> Document:
    identifier = call.named("write", body.name)
    metadata, history = remote_wire.whole_metadata(native_wire.builtins_of(body.table))
    fence = _check_table(service, call, identifier, metadata)
    for snapshot in history.snapshots:
        check_files(fence, metadata, snapshot)
    check_listed(fence, reader_of(service, fence, metadata), history.snapshots)
    try:
        head = service.catalog._pointers.create_table(identifier, metadata, history)
    except AlreadyExists as error:
        raise _entered_elsewhere(service, identifier, metadata, error) from error
    return _entered(service, head)


def _entered_elsewhere(
    service: Service, identifier: Identifier, metadata: TableMetadata, error: AlreadyExists
) -> AlreadyExists:
    """Whose a place is that is in use is not for everyone."""
    if service.access is None or service.pointers.table_exists(identifier):
        return error
    return AlreadyExists(f"{metadata.location}: is the location of another table")


def _register(service: Service, call: Request, body: native_wire.Register) -> Document:
    identifier = call.named("write", body.name)
    where = body.metadata_location
    metadata, history = read_registered(
        service, call, identifier.namespace, where, location=body.location
    )
    try:
        head = service.pointers.enter(identifier, metadata, history, metadata_location=where)
    except AlreadyExists as error:
        raise _entered_elsewhere(service, identifier, metadata, error) from error
    return _entered(service, head)


def _load_table(service: Service, call: Request, body: native_wire.Named) -> Document:
    return _entered(service, service.catalog._pointers.load(call.named("read", body.name)))


def _table_exists(service: Service, call: Request, body: native_wire.Named) -> Document:
    return {"exists": service.catalog._pointers.table_exists(call.named("read", body.name))}


def _list_tables(service: Service, call: Request, body: native_wire.InNamespace) -> Document:
    namespace = tuple(body.namespace)
    call.check("read", namespace)
    return {
        "names": [
            identifier.name for identifier in service.catalog._pointers.list_tables(namespace)
        ]
    }


def _table_versions(service: Service, call: Request, body: native_wire.Since) -> Document:
    versions = service.catalog._pointers.table_versions(body.since_ms)
    versions = [
        version for version in versions if may_read(call.principal, version.identifier.namespace)
    ]
    return {
        "pulses": [
            [
                remote_wire.name_document(version.identifier),
                version.version,
                list(version.committed_ms),
            ]
            for version in versions
        ]
    }


def _upgrade(service: Service, call: Request, body: native_wire.Upgrade) -> Document:
    identifier = call.named("write", body.name)
    metadata, _ = remote_wire.whole_metadata(native_wire.builtins_of(body.table))
    _check_table(service, call, identifier, metadata)
    pointers = service.catalog._pointers
    head = pointers.load(identifier)
    if not isinstance(head, JsonHead) or head.state.metadata_location != body.metadata_location:
        return {"landed": None}
    outcome = pointers.upgrade(identifier, head.state, metadata)
    if isinstance(outcome, Unknown):
        raise CommitUnknown(f"{identifier}: may or may not be upgraded ({outcome.cause})")
    if not isinstance(outcome, Landed):
        return {"landed": None}
    return {"landed": _entered(service, pointers.load(identifier))}


def _rename(service: Service, call: Request, body: native_wire.Rename) -> Document:
    old, new = call.named("write", body.name), call.named("write", body.to)
    service.catalog._pointers.rename(old, new)
    return {}


def _drop(service: Service, call: Request, body: native_wire.Named) -> Document:
    service.catalog._pointers.drop(call.named("write", body.name))
    return {}


def _purge(service: Service, call: Request, body: native_wire.Named) -> Document:
    purged = service.catalog._pointers.purge(call.named("write", body.name))
    if purged.metadata.format_version < FORMAT_VERSION:
        return {"legacy": purged.metadata_location}
    return {
        "table": remote_wire.metadata_document(purged.metadata, purged.history),
        "metadata-location": purged.metadata_location,
    }


# Heads


def _load_head(service: Service, call: Request, body: native_wire.Keyed) -> Document:
    head = head_of(service, call, body.key, "read")
    state = _loaded(service, head)
    return {"state": tables_of(service).document(body.key, state, body.known.value())}


def _landed(service: Service, call: Request, body: native_wire.WithId) -> Document:
    head = head_of(service, call, body.key, "read")
    state = head.landed(body.id)
    stamp = body.known.value()
    return {"state": None if state is None else tables_of(service).document(body.key, state, stamp)}


def _snapshots(service: Service, call: Request, body: native_wire.WithIds) -> Document:
    snapshots = head_of(service, call, body.key, "read").read_snapshots(body.ids)
    return {"snapshots": [metadata_json.snapshot_text(s) for s in snapshots.values()]}


def _history(service: Service, call: Request, body: native_wire.Keyed) -> Document:
    head = head_of(service, call, body.key, "read")
    return {"history": remote_wire.history_document(head.history())}


def _as_of(service: Service, call: Request, body: native_wire.WithId) -> Document:
    return {"snapshot-id": head_of(service, call, body.key, "read").snapshot_id_as_of(body.id)}


def _export(service: Service, call: Request, body: native_wire.Keyed) -> Document:
    head = head_of(service, call, body.key, "write")
    path = head.export()
    state = _loaded(service, head)
    document = tables_of(service).document(body.key, state, body.known.value())
    return {"metadata-location": path, "state": document}


def _problems(service: Service, call: Request, body: native_wire.Keyed) -> Document:
    return _stored(head_of(service, call, body.key, "read"), repair=False)


def _repair(service: Service, call: Request, body: native_wire.Keyed) -> Document:
    document = _stored(head_of(service, call, body.key, "write"), repair=True)
    tables_of(service).forget(body.key)
    return document


def _stored(head: SqlHead, *, repair: bool) -> Document:
    problems = head.stored_problems(repair=repair)
    return {"problems": [[problem.problem, problem.path, problem.field] for problem in problems]}


def _neighbourhood(service: Service, call: Request, body: native_wire.MaybeKeyed) -> Document:
    """Where other tables lie, which deleting files safely depends on. Of a table only those that
    its folders have to do with; what the sender may not read has no name."""
    others: OtherTables
    if body.key is not None:
        head = head_of(service, call, body.key, "write")
        others = relevant_to(head.neighbourhood(), head.state.metadata)
    else:
        if call.principal is not None:
            call.principal.check("write", [None])
        others = tables_of(service).pointers.neighbourhood()
    return {
        "tables": [_place_document(call, place) for place in others.tables],
        "warehouse": others.warehouse,
        "database": others.database,
    }


def _place_document(call: Request, place: TablePlace) -> Document:
    if not may_read(call.principal, Identifier.parse(place.name).namespace):
        place = replace(place, name="a table of another namespace", open=None)
    return {
        "name": place.name,
        "location": place.location,
        "folders": list(place.folders),
        "added": list(place.added),
        "source-uuid": place.source_uuid,
        "open": place.name if place.open is not None else None,
    }


# Swaps and turns


@frozen
class _Prepared:
    head: SqlHead
    base: State
    draft: Draft
    known: ClientState


def _swap(service: Service, call: Request, body: native_wire.Swap) -> Document:
    native = tables_of(service)
    if not body.swaps:
        raise InvalidInput("nothing to swap")
    heads = [head_of(service, call, swap.key, "write") for swap in body.swaps]
    prepared: list[_Prepared] = []
    for head, request in zip(heads, body.swaps, strict=True):
        base = head.state
        if base.version != request.draft.base_version:
            base = _stated(service, head)
        if base.version != request.draft.base_version:
            if request.turn is not None:
                native.turns.note_late(request.turn, owner=_owner(call))
            return {"states": _repeated(service, heads, body.swaps)}
        draft = remote_wire.draft_of(native_wire.builtins_of(request.draft), base)
        _check_draft(service, call, head, base, draft)
        stamp = request.known.value()
        prepared.append(_Prepared(head=head, base=base, draft=draft, known=stamp))
    outcome = _in_turn(native, body.swaps, prepared, owner=_owner(call))
    if isinstance(outcome, Unknown):
        raise CommitUnknown(f"the catalog did not say whether the swap landed ({outcome.cause})")
    if not isinstance(outcome, Landed):
        return {"states": _repeated(service, heads, body.swaps)}
    return {
        "states": [
            native.document(table.head.key, state, table.known)
            for table, state in zip(prepared, outcome.states, strict=True)
        ]
    }


def _stated(service: Service, head: SqlHead) -> State:
    """The current state; a table that was dropped is one whose swap is lost."""
    try:
        return _loaded(service, head)
    except NotFound:
        return head.state


def _in_turn(
    native: NativeTables,
    swaps: Sequence[native_wire.SwapShape],
    prepared: list[_Prepared],
    *,
    owner: str | None,
) -> Any:
    """Swap, inside the turn that the client has of the table. A swap that lands ends it."""

    def work() -> Any:
        return native.pointers.swap_all(
            [(table.head, table.base, table.draft) for table in prepared]
        )

    turns = [swap.turn for swap in swaps if swap.turn is not None]
    if len(turns) == 1 and len(swaps) == 1:
        try:
            outcome = native.turns.within(turns[0], work, owner=owner)
        except NotFound:
            _log.debug("a turn ended before its swap came")
        else:
            if isinstance(outcome, Landed):
                native.turns.end(turns[0])
            return outcome
    return work()


def _repeated(
    service: Service, heads: list[SqlHead], swaps: Sequence[native_wire.SwapShape]
) -> list[Document] | None:
    """The states, if what is asked for has landed before: the answer was lost on its way."""
    native = tables_of(service)
    states: list[Document] = []
    for head, swap in zip(heads, swaps, strict=True):
        added = [remote_wire.snapshot_of(text) for text in swap.draft.added]
        if not added:
            return None
        stored = head.read_snapshots([int(snapshot.snapshot_id) for snapshot in added])
        if any(stored.get(int(snapshot.snapshot_id)) != snapshot for snapshot in added):
            return None
        states.append(native.document(head.key, _loaded(service, head), swap.known.value()))
    return states


def _take_turn(service: Service, call: Request, body: native_wire.TakeTurn) -> Answered:
    """Wait for a turn; the waiting ends when the client leaves, or with none after a while."""
    head = head_of(service, call, body.key, "write")
    turn = tables_of(service).turns.take(head, _owner(call) or body.writer or uuid.uuid4().hex)
    call.cancellation.on_cancel(turn.end)
    answer: Future[Document] = Future()
    turn.granted.add_done_callback(lambda turn: answer.set_result({"turn": turn.result()}))
    return Response(pending=answer, patience_s=MAX_TURN_WAIT_S, give_up=turn.refuse)


def _end_turn(service: Service, call: Request, body: native_wire.Turn) -> Document:
    tables_of(service).turns.end(body.turn, owner=_owner(call))
    return {}


def _owner(call: Request) -> str | None:
    """Whose a turn is, where senders are known."""
    return None if call.principal is None else call.principal.name


# Checks


def _check_draft(service: Service, call: Request, head: SqlHead, base: State, draft: Draft) -> None:
    """Refuse a draft that does not continue its base, or that leads out of the table's places."""
    before, after = base.metadata, draft.metadata
    if after.table_uuid != before.table_uuid:
        raise InvalidInput("the draft is of another table")
    grown = (
        ("last-sequence-number", before.last_sequence_number, after.last_sequence_number),
        ("next-row-id", before.next_row_id, after.next_row_id),
    )
    for name, old, new in grown:
        if new < old:
            raise InvalidInput(f"{name} goes back from {old} to {new}")
    fence = _check_table(service, call, head.identifier, after, before)
    for snapshot in draft.added_snapshots:
        check_files(fence, after, snapshot)
    ids = [snapshot.parent_snapshot_id for snapshot in draft.added_snapshots]
    parents = tuple(head.read_snapshots([parent for parent in ids if parent is not None]).values())
    reader, older = reader_of(service, fence, after), lambda: head.history().snapshots
    check_listed(fence, reader, draft.added_snapshots, parents=parents, older=older)
    sources = [after.properties[key] for key in SOURCES if key in after.properties]
    prefixes = (
        *own_prefixes(after.location, after.properties),
        *(f"{source.rstrip('/')}/" for source in sources),  # keeps by a tag what clones read
    )
    strange = strange_files(
        reader, draft.added_snapshots, own_folders=prefixes, parents=parents, older=older
    )
    if strange:
        head.refuse_files_of_others(after, strange)


def _check_table(
    service: Service,
    call: Request,
    identifier: Identifier,
    metadata: TableMetadata,
    before: TableMetadata | None = None,
) -> Fence:
    """Refuse places outside those that the server may use, unless the table has them already."""
    old = () if before is None else folders_of(before.location, before.properties)
    fence = request_fence(service, call, identifier.namespace, table=old)
    if before is not None and (metadata.location, metadata.properties) == (
        before.location,
        before.properties,
    ):
        return fence
    properties = {} if before is None else before.properties
    folders = folders_of(metadata.location, metadata.properties)
    for place in {*folders, *added_folders(metadata.properties)} - {
        *old,
        *added_folders(properties),
    }:
        fence.allowed(place)
    changed = {
        key: value for key, value in metadata.properties.items() if properties.get(key) != value
    }
    check_values(changed)
    return fence


# Appends


def _append(service: Service, call: Request, body: bytes) -> Answered:
    header_bytes, entries = remote_wire.unframed(body)
    header: native_wire.Append = decoded(header_bytes, native_wire.Append)
    head = head_of(service, call, header.key, "write")
    return tables_of(service).groups.append(head, header, entries)


OPERATIONS: tuple[tuple[str, Rights, type[Any] | None, Any], ...] = (
    ("location-for", BODY_WRITER, native_wire.Named, _location_for),
    ("create-table", BODY_WRITER, native_wire.CreateTable, _create_table),
    ("register", BODY_WRITER, native_wire.Register, _register),
    ("load-table", BODY_READER, native_wire.Named, _load_table),
    ("table-exists", BODY_READER, native_wire.Named, _table_exists),
    ("list-tables", BODY_READER, native_wire.InNamespace, _list_tables),
    ("pulses", ANY_READER, native_wire.Since, _table_versions),
    ("upgrade", BODY_WRITER, native_wire.Upgrade, _upgrade),
    ("rename", BODY_WRITER, native_wire.Rename, _rename),
    ("drop", BODY_WRITER, native_wire.Named, _drop),
    ("purge", BODY_WRITER, native_wire.Named, _purge),
    ("load-head", BODY_READER, native_wire.Keyed, _load_head),
    ("landed", BODY_READER, native_wire.WithId, _landed),
    ("snapshots", BODY_READER, native_wire.WithIds, _snapshots),
    ("history", BODY_READER, native_wire.Keyed, _history),
    ("snapshot-as-of", BODY_READER, native_wire.WithId, _as_of),
    ("export", BODY_WRITER, native_wire.Keyed, _export),
    ("stored-problems", BODY_READER, native_wire.Keyed, _problems),
    ("repair", BODY_WRITER, native_wire.Keyed, _repair),
    ("neighbourhood", BODY_WRITER_ASKS, native_wire.MaybeKeyed, _neighbourhood),
    ("swap", BODY_WRITER, native_wire.Swap, _swap),
    ("take-turn", BODY_WRITER, native_wire.TakeTurn, _take_turn),
    ("end-turn", ANY_READER, native_wire.Turn, _end_turn),
    ("append", BODY_WRITER, None, _append),
)
"""Name, rights, body and work of every operation on tables."""
