"""Tables and their heads for Frazil's own client.

A head is named by a key that outlives a rename; rights are checked on the name that the table has
now. A draft is checked before it is swapped: it continues the state it was made for, and names no
file outside the places that the table may use.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, cast

from frazil.catalog import remote_wire
from frazil.catalog.json_head import JsonHead
from frazil.catalog.names import Identifier
from frazil.catalog.ownership import Neighbourhood, TablePlace
from frazil.catalog.pointers import TableHead
from frazil.catalog.remote_wire import Definitions, Document, Known
from frazil.catalog.sql_catalog import SqlCatalog
from frazil.catalog.sql_head import SqlHead
from frazil.commit.head import AllLanded, Draft, Landed, State, Unknown
from frazil.errors import CommitUnknown, InvalidInput, NotFound
from frazil.format import metadata_json
from frazil.format.metadata import FORMAT_VERSION, TableMetadata
from frazil.format.property_table import check_values
from frazil.serve import native_wire
from frazil.serve.exchange import Call, Right
from frazil.serve.group import Groups
from frazil.serve.listed_files import check_listed, reader_of
from frazil.serve.locations import Fence, check_files, check_registered, folders_of
from frazil.serve.service import Service
from frazil.serve.turn_keeper import TurnKeeper

_log = logging.getLogger("frazil.serve")

Answered = Document | Future[bytes]
MOST_HEADS = 256


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
        found = self._heads.get(key)
        return self.keep(self.pointers.load_key(key)) if found is None else found

    def known_head(self, key: str) -> SqlHead | None:
        """The head of a table that has been used before."""
        return self._heads.get(key)

    def keep(self, head: SqlHead) -> SqlHead:
        """Remember a head that has just been loaded."""
        if len(self._heads) >= MOST_HEADS and head.key not in self._heads:
            self.forget(next(iter(self._heads)))
        return self._heads.setdefault(head.key, head)

    def forget(self, key: str) -> None:
        """Drop what is known of a table."""
        self._heads.pop(key, None)
        self.definitions.forget(key)

    def shown(self, key: str, state: State, known: Known) -> Document:
        """A state for a client that has part of it."""
        definition = self.definitions.of(key, state.metadata)
        return remote_wire.state_document(state, definition, known)


def tables_of(service: Service) -> NativeTables:
    """What the server keeps for Frazil's own clients."""
    if service.native is None:
        pointers = cast(SqlCatalog, service.catalog._pointers)
        service.native = NativeTables(pointers, Groups(service))
    return cast(NativeTables, service.native)


def head_of(service: Service, call: Call, key: str, right: Literal["read", "write"]) -> SqlHead:
    """The head of a table, if the sender may use it so."""
    native = tables_of(service)
    if call.principal is not None:
        call.check(right, native.pointers.name_of(key).namespace)
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
        return {"key": head.key, "state": native.shown(head.key, head.state, Known())}
    return {"legacy": head.state.metadata_location}


def _location_for(service: Service, call: Call, body: native_wire.Named) -> Document:
    return {"location": service.catalog._pointers.location_for(call.named("write", body.name))}


def _create_table(service: Service, call: Call, body: native_wire.CreateTable) -> Document:
    identifier = call.named("write", body.name)
    metadata, history = remote_wire.whole_metadata(native_wire.plain(body.table))
    fence = _check_table(service, call, identifier, metadata)
    for snapshot in history.snapshots:
        check_files(fence, metadata, snapshot)
    check_listed(fence.check, reader_of(service, metadata), history.snapshots)
    head = service.catalog._pointers.create_table(identifier, metadata, history)
    return _entered(service, head)


def _register(service: Service, call: Call, body: native_wire.Register) -> Document:
    identifier = call.named("write", body.name)
    check_registered(
        service, call, identifier.namespace, body.metadata_location, location=body.location
    )
    head = service.catalog._pointers.register(
        identifier, body.metadata_location, location=body.location
    )
    return _entered(service, head)


def _load_table(service: Service, call: Call, body: native_wire.Named) -> Document:
    return _entered(service, service.catalog._pointers.load(call.named("read", body.name)))


def _table_exists(service: Service, call: Call, body: native_wire.Named) -> Document:
    return {"exists": service.catalog._pointers.table_exists(call.named("read", body.name))}


def _list_tables(service: Service, call: Call, body: native_wire.InNamespace) -> Document:
    namespace = tuple(body.namespace)
    call.check("read", namespace)
    return {"names": [each.name for each in service.catalog._pointers.list_tables(namespace)]}


def _pulses(service: Service, call: Call, body: native_wire.Since) -> Document:
    found = service.catalog._pointers.pulses(body.since_ms)
    if call.principal is not None:
        may_see = call.principal.may_see
        found = [each for each in found if may_see(each.identifier.namespace)]
    return {
        "pulses": [
            [remote_wire.name_document(each.identifier), each.version, list(each.committed_ms)]
            for each in found
        ]
    }


def _upgrade(service: Service, call: Call, body: native_wire.Upgrade) -> Document:
    identifier = call.named("write", body.name)
    metadata, _ = remote_wire.whole_metadata(native_wire.plain(body.table))
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


def _rename(service: Service, call: Call, body: native_wire.Rename) -> Document:
    old, new = call.named("write", body.name), call.named("write", body.to)
    service.catalog._pointers.rename(old, new)
    return {}


def _drop(service: Service, call: Call, body: native_wire.Named) -> Document:
    service.catalog._pointers.drop(call.named("write", body.name))
    return {}


def _purge(service: Service, call: Call, body: native_wire.Named) -> Document:
    purged = service.catalog._pointers.purge(call.named("write", body.name))
    if purged.metadata.format_version < FORMAT_VERSION:
        return {"legacy": purged.metadata_location}
    return {
        "table": remote_wire.metadata_document(purged.metadata, purged.history),
        "metadata-location": purged.metadata_location,
    }


# Heads


def _load_head(service: Service, call: Call, body: native_wire.Keyed) -> Document:
    head = head_of(service, call, body.key, "read")
    state = _loaded(service, head)
    return {"state": tables_of(service).shown(body.key, state, body.known.value())}


def _landed(service: Service, call: Call, body: native_wire.WithId) -> Document:
    head = head_of(service, call, body.key, "read")
    state = head.landed(body.id)
    known = body.known.value()
    return {"state": None if state is None else tables_of(service).shown(body.key, state, known)}


def _snapshots(service: Service, call: Call, body: native_wire.WithIds) -> Document:
    found = head_of(service, call, body.key, "read").read_snapshots(body.ids)
    return {"snapshots": [metadata_json.snapshot_text(s) for s in found.values()]}


def _history(service: Service, call: Call, body: native_wire.Keyed) -> Document:
    head = head_of(service, call, body.key, "read")
    return {"history": remote_wire.history_document(head.history())}


def _as_of(service: Service, call: Call, body: native_wire.WithId) -> Document:
    return {"snapshot-id": head_of(service, call, body.key, "read").snapshot_id_as_of(body.id)}


def _export(service: Service, call: Call, body: native_wire.Keyed) -> Document:
    head = head_of(service, call, body.key, "write")
    path = head.export()
    state = _loaded(service, head)
    shown = tables_of(service).shown(body.key, state, body.known.value())
    return {"metadata-location": path, "state": shown}


def _problems(service: Service, call: Call, body: native_wire.Keyed) -> Document:
    return _stored(head_of(service, call, body.key, "read"), repair=False)


def _repair(service: Service, call: Call, body: native_wire.Keyed) -> Document:
    found = _stored(head_of(service, call, body.key, "write"), repair=True)
    tables_of(service).forget(body.key)
    return found


def _stored(head: SqlHead, *, repair: bool) -> Document:
    found = head.stored_problems(repair=repair)
    return {"problems": [[each.problem, each.path, each.field] for each in found]}


def _neighbourhood(service: Service, call: Call, body: native_wire.MaybeKeyed) -> Document:
    """Where other tables lie: names and places, which deleting files safely depends on."""
    around: Neighbourhood
    if body.key is not None:
        around = head_of(service, call, body.key, "write").neighbourhood()
    else:
        if call.principal is not None:
            call.principal.check("write", [None])
        around = tables_of(service).pointers.neighbourhood()
    return {
        "tables": [_placed(each) for each in around.tables],
        "warehouse": around.warehouse,
        "database": around.database,
    }


def _placed(place: TablePlace) -> Document:
    return {
        "name": place.name,
        "location": place.location,
        "folders": list(place.folders),
        "source-uuid": place.source_uuid,
        "open": place.name if place.open is not None else None,
    }


# Swaps and turns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    head: SqlHead
    base: State
    draft: Draft
    known: Known


def _swap(service: Service, call: Call, body: native_wire.Swap) -> Document:
    native = tables_of(service)
    if not body.swaps:
        raise InvalidInput("nothing to swap")
    heads = [head_of(service, call, each.key, "write") for each in body.swaps]
    prepared: list[_Prepared] = []
    for head, wanted in zip(heads, body.swaps, strict=True):
        base = head.state
        if base.version != wanted.draft.base_version:
            base = _stated(service, head)
        if base.version != wanted.draft.base_version:
            return {"states": _repeated(service, heads, body.swaps)}
        draft = remote_wire.draft_of(native_wire.plain(wanted.draft), base)
        _check_draft(service, call, head, base, draft)
        known = wanted.known.value()
        prepared.append(_Prepared(head=head, base=base, draft=draft, known=known))
    outcome = _in_turn(native, body.swaps, prepared)
    if isinstance(outcome, Unknown):
        raise CommitUnknown(f"the catalog did not say whether the swap landed ({outcome.cause})")
    if not isinstance(outcome, AllLanded):
        return {"states": _repeated(service, heads, body.swaps)}
    return {
        "states": [
            native.shown(each.head.key, state, each.known)
            for each, state in zip(prepared, outcome.states, strict=True)
        ]
    }


def _stated(service: Service, head: SqlHead) -> State:
    """The current state; a table that was dropped is one whose swap is lost."""
    try:
        return _loaded(service, head)
    except NotFound:
        return head.state


def _in_turn(
    native: NativeTables, wanted: Sequence[native_wire.SwapShape], prepared: list[_Prepared]
) -> Any:
    """Swap, inside the turns that the client has of these tables."""

    def work() -> Any:
        return native.pointers.swap_all([(each.head, each.base, each.draft) for each in prepared])

    turns = [each.turn for each in wanted if each.turn is not None]
    if len(turns) == 1 and len(wanted) == 1:
        try:
            return native.turns.within(turns[0], work)
        except NotFound:
            _log.debug("a turn ended before its swap came")
    return work()


def _repeated(
    service: Service, heads: list[SqlHead], wanted: Sequence[native_wire.SwapShape]
) -> list[Document] | None:
    """The states, if what is asked for has landed before: the answer was lost on its way."""
    native = tables_of(service)
    states: list[Document] = []
    for head, each in zip(heads, wanted, strict=True):
        added = [remote_wire.snapshot_of(text) for text in each.draft.added]
        if not added:
            return None
        there = head.read_snapshots([int(one.snapshot_id) for one in added])
        if any(there.get(int(one.snapshot_id)) != one for one in added):
            return None
        states.append(native.shown(head.key, _loaded(service, head), each.known.value()))
    return states


def _take_turn(service: Service, call: Call, body: native_wire.Keyed) -> Document:
    head = head_of(service, call, body.key, "write")
    return {"turn": tables_of(service).turns.take(head)}


def _end_turn(service: Service, call: Call, body: native_wire.Turn) -> Document:
    tables_of(service).turns.end(body.turn)
    return {}


# Checks


def _check_draft(service: Service, call: Call, head: SqlHead, base: State, draft: Draft) -> None:
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
    parents = [each.parent_snapshot_id for each in draft.added_snapshots]
    check_listed(
        fence.check,
        reader_of(service, after),
        draft.added_snapshots,
        parents=head.read_snapshots([each for each in parents if each is not None]).values(),
        older=lambda: head.history().snapshots,
    )


def _check_table(
    service: Service,
    call: Call,
    identifier: Identifier,
    metadata: TableMetadata,
    before: TableMetadata | None = None,
) -> Fence:
    """Refuse places outside those that the server may use, unless the table has them already."""
    old = () if before is None else folders_of(before.location, before.properties)
    fence = Fence(service, call, identifier.namespace, more=old)
    if before is not None and (metadata.location, metadata.properties) == (
        before.location,
        before.properties,
    ):
        return fence
    for place in folders_of(metadata.location, metadata.properties):
        if place not in old:
            fence.check(place)
    known = {} if before is None else before.properties
    changed = {key: value for key, value in metadata.properties.items() if known.get(key) != value}
    check_values(changed)
    return fence


# Appends


def _append(service: Service, call: Call, body: bytes) -> Answered:
    header_bytes, entries = remote_wire.unframed(body)
    header: native_wire.Append = native_wire.decoded(header_bytes, native_wire.Append)
    head = head_of(service, call, header.key, "write")
    return tables_of(service).groups.append(head, header, entries)


OPERATIONS: tuple[tuple[str, Right, type[Any] | None, Any], ...] = (
    ("location-for", "write", native_wire.Named, _location_for),
    ("create-table", "write", native_wire.CreateTable, _create_table),
    ("register", "write", native_wire.Register, _register),
    ("load-table", "read", native_wire.Named, _load_table),
    ("table-exists", "read", native_wire.Named, _table_exists),
    ("list-tables", "read", native_wire.InNamespace, _list_tables),
    ("pulses", "read", native_wire.Since, _pulses),
    ("upgrade", "write", native_wire.Upgrade, _upgrade),
    ("rename", "write", native_wire.Rename, _rename),
    ("drop", "write", native_wire.Named, _drop),
    ("purge", "write", native_wire.Named, _purge),
    ("load-head", "read", native_wire.Keyed, _load_head),
    ("landed", "read", native_wire.WithId, _landed),
    ("snapshots", "read", native_wire.WithIds, _snapshots),
    ("history", "read", native_wire.Keyed, _history),
    ("snapshot-as-of", "read", native_wire.WithId, _as_of),
    ("export", "write", native_wire.Keyed, _export),
    ("stored-problems", "read", native_wire.Keyed, _problems),
    ("repair", "write", native_wire.Keyed, _repair),
    ("neighbourhood", "read", native_wire.MaybeKeyed, _neighbourhood),
    ("swap", "write", native_wire.Swap, _swap),
    ("take-turn", "write", native_wire.Keyed, _take_turn),
    ("end-turn", "write", native_wire.Turn, _end_turn),
    ("append", "write", None, _append),
)
"""Name, right, body and work of every operation on tables."""
