"""Commits of clients: requirements, updates and snapshots become changes, landed in one swap.

The order matters. A snapshot that the table knows is answered with the current metadata before
anything else is looked at: the client repeats a commit whose answer was lost. Whatever cannot be
translated is refused before anything lands; after a swap nothing is answered with 4xx.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from frazil.catalog.names import Identifier
from frazil.commit.chain import Chain
from frazil.commit.change import Change
from frazil.commit.handle import TableHandle, new_snapshot_id, now_ms
from frazil.commit.head import Draft, Outcome, State
from frazil.commit.loop import discard
from frazil.commit.surroundings import Surroundings
from frazil.commit.together import Work, commit_together
from frazil.commit.updates import RemoveSnapshots, SetRef
from frazil.errors import (
    AlreadyExists,
    CommitConflict,
    CommitUnknown,
    FormatError,
    FrazilError,
    InvalidInput,
    NotFound,
    StorageError,
    Unsupported,
)
from frazil.format.metadata import (
    MAIN,
    History,
    Snapshot,
    SnapshotId,
    SnapshotRef,
    TableMetadata,
    log_entry,
)
from frazil.serve import metadata_updates, table_endpoints, wire
from frazil.serve.exchange import NO_CONTENT, Answer, Call, Endpoint
from frazil.serve.facade import head_of, shown_version
from frazil.serve.locations import Fence, check_properties, folders_of
from frazil.serve.metadata_updates import Added, PostedUpdates
from frazil.serve.posted import PostedFiles
from frazil.serve.rest_errors import RestError, bad_request, conflict, no_namespace
from frazil.serve.service import Service
from frazil.serve.translate import change_of

log = logging.getLogger("frazil.serve")

_NAMING = (
    wire.SetLocation,
    wire.SetProperties,
    wire.SetStatistics,
    wire.SetPartitionStatistics,
)
"""Updates that name places."""


def commit_table(service: Service, call: Call) -> Answer:
    """POST tables/{table}."""
    posted = call.decode(wire.CommitTable)
    identifier = call.identifier()
    _land(service, call, [(identifier, posted)])
    return _answered(service, identifier, call, posted)


def commit_transaction(service: Service, call: Call) -> Answer:
    """POST transactions/commit: several tables, all or none."""
    posted = call.decode(wire.CommitTransaction)
    named = []
    for one in posted.table_changes:
        if one.identifier is None:
            raise bad_request("a change of a transaction names no table")
        named.append((table_endpoints.name_of(one.identifier), one))
    names = [name for name, _ in named]
    call.check("write", *(name.namespace for name in names))
    if len(set(names)) != len(names):
        raise bad_request("a transaction names a table twice")
    _land(service, call, sorted(named, key=lambda each: each[0]))
    for name in names:
        try:
            service.facade.show(service.table(name)._handle, call.format_version)
        except (FrazilError, RestError):  # it has landed; loading will show it
            log.exception("%s was not published", name)
    return NO_CONTENT


def _answered(
    service: Service, identifier: Identifier, call: Call, posted: wire.CommitTable
) -> Answer:
    """The table after a commit that landed: an error here must not look like a refusal."""
    try:
        table = service.table(identifier)
        version = max(2, shown_version(table.metadata, call.format_version))
        for snapshot_id, branch in _branches(posted.updates, _snapshots(posted)).items():
            if branch is None:  # staged: no name leads to it, and it is to be seen all the same
                snapshot = table._handle.snapshot(snapshot_id)
                service.facade.list_of(table._handle, snapshot, version)
        return table_endpoints.shown(service, table, call)
    except (FrazilError, RestError) as error:
        log.exception("%s landed and could not be shown", identifier)
        raise RestError(500, "CommitStateUnknownException", str(error)) from error


def _check_places(
    service: Service, call: Call, identifier: Identifier, posted: wire.CommitTable
) -> None:
    """A client may not send itself, or the server, to places that are not meant for tables."""
    named = [each for each in posted.updates if isinstance(each, _NAMING)]
    if not named:
        return
    more: tuple[str, ...] = ()
    if service.catalog._pointers.table_exists(identifier):
        metadata = service.table(identifier).metadata
        location = metadata.location
        more = folders_of(location, metadata.properties)
    else:
        location = _new_location(service, identifier, posted)
    fence = Fence(service, call, identifier.namespace, more=more)
    for update in named:
        match update:
            case wire.SetLocation(location=place):
                fence.check(place)
            case wire.SetProperties(updates=properties):
                check_properties(fence, location, properties)
            case wire.SetStatistics(statistics=stated):
                _check_statistics(fence, stated)
            case wire.SetPartitionStatistics(partition_statistics=stated):
                _check_statistics(fence, stated)


def _check_statistics(fence: Fence, stated: Mapping[str, Any]) -> None:
    path = stated.get("statistics-path")
    if not isinstance(path, str):
        raise bad_request("statistics name no statistics-path")
    fence.check(path)


def _new_location(service: Service, identifier: Identifier, posted: wire.CommitTable) -> str:
    stated = (u.location for u in posted.updates if isinstance(u, wire.SetLocation))
    return next(stated, None) or service.catalog._pointers.location_for(identifier)


def _land(
    service: Service, call: Call, posted: Sequence[tuple[Identifier, wire.CommitTable]]
) -> None:
    for identifier, one in posted:
        _check_places(service, call, identifier, one)
    creations = [each for each in posted if _creates(each[1])]
    if creations and len(posted) > 1:
        raise bad_request("a transaction over several tables cannot create one")
    try:
        if creations:
            _create(service, call, *creations[0])
            return
        works: list[_Work] = []
        for identifier, one in posted:
            handle = service.table(identifier)._handle
            handle.check_writable()
            if not _is_known(handle, one):
                works.append(
                    _Work(
                        service=service,
                        call=call,
                        identifier=identifier,
                        handle=handle,
                        posted=one,
                    )
                )
        if works:
            _commit(service, works)
    except (InvalidInput, FormatError, StorageError) as error:
        raise bad_request(f"Cannot commit: {error}") from error
    except CommitConflict as error:
        raise conflict(str(error)) from error


def _commit(service: Service, works: Sequence[_Work]) -> None:
    plans = [
        Work(head=work.handle.head, around=work.handle.around, plan=work.plan) for work in works
    ]
    commit_together(
        plans,
        lambda drafts: service.catalog._pointers.swap_all(
            [
                (head_of(work.handle), base, draft)
                for work, (_, base, draft) in zip(works, drafts, strict=True)
            ]
        ),
    )


def _creates(posted: wire.CommitTable) -> bool:
    return any(isinstance(each, wire.AssertCreate) for each in posted.requirements)


def _snapshots(posted: wire.CommitTable) -> dict[int, wire.PostedSnapshot]:
    return {
        each.snapshot.snapshot_id: each.snapshot
        for each in posted.updates
        if isinstance(each, wire.AddSnapshot)
    }


def _is_known(handle: TableHandle, posted: wire.CommitTable) -> bool:
    """Whether a commit landed before and is repeated: its snapshots are in the table."""
    mine = _snapshots(posted)
    return bool(mine) and all(handle.head.landed(each) is not None for each in mine)


# --- new tables --------------------------------------------------------------------------------


def _create(service: Service, call: Call, identifier: Identifier, posted: wire.CommitTable) -> None:
    """A table and its first snapshots, entered at once."""
    if service.catalog._pointers.table_exists(identifier):
        _check_repeated(service, identifier, posted)
        return
    if not service.catalog._pointers.namespace_exists(identifier.namespace):
        raise no_namespace(identifier.namespace)
    table_endpoints.need_free(service, identifier)
    location = _new_location(service, identifier, posted)
    Fence(service, call, identifier.namespace).check(location)
    around = Surroundings(
        storage=service.catalog._pointers.storage(location),
        location=location.rstrip("/"),
        cache=service.catalog._cache,
        now_ms=now_ms,
        new_snapshot_id=new_snapshot_id,
    )
    state = State(version=0, metadata=metadata_updates.blank(location.rstrip("/")))
    head = _NoHead(state)
    planned = _Plan(
        service=service,
        posted=posted,
        around=around,
        format_version=3,
        call=call,
        identifier=identifier,
    ).changes(state)
    chain = Chain(planned, around, head)
    try:
        draft = chain.build(state).draft
        made = draft.metadata
        if made.table_uuid.int == 0 or not made.schemas or not made.partition_specs:
            raise bad_request("a new table needs a uuid, a schema and a partition spec")
        logged = log_entry(state.metadata, made, draft.added_snapshots)
        history = History(
            snapshots=draft.added_snapshots, snapshot_log=() if logged is None else (logged,)
        )
        service.catalog._pointers.create_table(identifier, made, history)
    except CommitUnknown:
        raise
    except AlreadyExists:
        discard(around.storage, chain.written)
        _check_repeated(service, identifier, posted)
    except BaseException:
        discard(around.storage, chain.written)
        raise


def _check_repeated(service: Service, identifier: Identifier, posted: wire.CommitTable) -> None:
    """Pass a creation that landed before, refuse another one of the same name."""
    handle = service.table(identifier)._handle
    uuids = {u.uuid.lower() for u in posted.updates if isinstance(u, wire.AssignUuid)}
    if str(handle.metadata.table_uuid) in uuids and (
        not _snapshots(posted) or _is_known(handle, posted)
    ):
        return
    raise RestError(
        409, "AlreadyExistsException", f"Requirement failed: table already exists: {identifier}"
    )


@dataclass(frozen=True, slots=True)
class _NoHead:
    """The head of a table that does not exist yet."""

    state: State

    def load(self) -> State:
        return self.state

    def swap(self, base: State, draft: Draft) -> Outcome:
        raise Unsupported("a table that does not exist cannot be swapped", feature="swapping")

    def landed(self, snapshot_id: int) -> State | None:
        return None

    def snapshot(self, snapshot_id: int) -> Snapshot:
        raise NotFound(f"no snapshot {snapshot_id}")

    def snapshots(self) -> Iterable[Snapshot]:
        return ()


# --- tables that exist -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """The commit of one table."""

    service: Service
    call: Call
    identifier: Identifier
    handle: TableHandle
    posted: wire.CommitTable

    def plan(self, state: State) -> Sequence[Change]:
        """What the commit does to a state; 409 when the state is not what the client expects."""
        for requirement in self.posted.requirements:
            metadata_updates.check(requirement, state.metadata)
        self.handle.state = state
        version = shown_version(state.metadata, self.call.format_version)
        return _Plan(
            service=self.service,
            posted=self.posted,
            around=self.handle.around,
            handle=self.handle,
            format_version=version,
            call=self.call,
            identifier=self.identifier,
        ).changes(state)


@dataclass(slots=True, kw_only=True)
class _Plan:
    """Turns the updates of one request into changes, in their order."""

    service: Service
    call: Call
    identifier: Identifier
    posted: wire.CommitTable
    around: Surroundings
    format_version: int
    handle: TableHandle | None = None
    lists: dict[int, str] = field(default_factory=dict, init=False)

    def changes(self, state: State) -> list[Change]:
        """The changes; each builds on the one before."""
        snapshots = _snapshots(self.posted)
        branches = _branches(self.posted.updates, snapshots)
        tips = {name: int(ref.snapshot_id) for name, ref in state.metadata.refs.items()}
        replaced = {branch for branch in branches.values() if branch is not None}
        metadata, added = state.metadata, Added()
        found: list[Change] = []
        pending: list[wire.AnyUpdate] = []

        def flush() -> tuple[PostedUpdates, ...]:
            nonlocal metadata
            if not pending:
                return ()
            # A copy: updates are applied again when the change is built.
            update = PostedUpdates(updates=tuple(pending), added=replace(added))
            metadata = metadata_updates.applied(
                metadata, pending, added, now_ms=metadata.last_updated_ms
            )
            pending.clear()
            return (update,)

        is_replacement = False
        for update in self.posted.updates:
            if isinstance(update, wire.AddSnapshot):
                before = flush()
                made = self._snapshot(
                    update.snapshot,
                    branches[update.snapshot.snapshot_id],
                    metadata,
                    tips,
                    is_replacement=is_replacement,
                )
                if before:
                    made[0] = replace(made[0], updates=(*before, *made[0].updates))
                found += made
                self.lists[update.snapshot.snapshot_id] = update.snapshot.manifest_list or ""
            elif isinstance(update, wire.RemoveSnapshots):
                gone = RemoveSnapshots(snapshot_ids=tuple(update.snapshot_ids))
                found.append(Change(updates=(*flush(), gone)))
            elif isinstance(update, wire.RemoveRef) and update.ref_name in replaced:
                is_replacement = True  # the next snapshot takes everything out that is there
            else:
                pending.append(update)
        last = flush()
        if last:
            found.append(Change(updates=last))
        return found

    def _snapshot(
        self,
        posted: wire.PostedSnapshot,
        branch: str | None,
        metadata: TableMetadata,
        tips: dict[str, int],
        *,
        is_replacement: bool,
    ) -> list[Change]:
        if posted.manifest_list is None:
            raise InvalidInput(f"snapshot {posted.snapshot_id} has no manifest list")
        is_staged = branch is None
        target = MAIN if branch is None else branch
        tip, parent = tips.get(target), posted.parent_snapshot_id
        base = tip if is_replacement or tip is not None else parent
        if tip is not None and parent != tip and not is_replacement:
            raise conflict(
                f"Requirement failed: branch {target} has changed: expected id {parent} != {tip}"
            )
        made: list[Change] = []
        starts_empty = False
        if tip is None and parent is not None:
            made.append(_branching(target, parent))
        elif tip is None and tips and target != MAIN:
            starts_empty = True
        fence = Fence(
            self.service,
            self.call,
            self.identifier.namespace,
            more=folders_of(self.around.location, metadata.properties),
        )
        reader = PostedFiles(
            storage=self.around.storage,
            location=self.around.location,
            metadata=metadata,
            check=fence.check,
            manifests_of=self.service.facade.manifests_of,
        )
        found = reader.difference(
            None if base is None else self._list_of(base),
            posted.manifest_list,
            snapshot_id=posted.snapshot_id,
        )
        reader.check_added(found)
        made.append(
            change_of(
                found,
                snapshot_id=posted.snapshot_id,
                operation=posted.summary.get("operation", ""),
                summary=posted.summary,
                branch=target,
                base_snapshot_id=base,
                is_staged=is_staged,
                starts_empty=starts_empty,
            )
        )
        if not is_staged:
            tips[target] = posted.snapshot_id
        return made

    def _list_of(self, snapshot_id: int) -> str:
        """The list the client started from: its own, or the one it was shown."""
        if snapshot_id in self.lists:
            return self.lists[snapshot_id]
        if self.handle is None:
            raise InvalidInput(f"snapshot {snapshot_id} is not in the table")
        try:
            snapshot = self.handle.snapshot(snapshot_id)
        except NotFound as error:
            raise InvalidInput(str(error)) from error
        version = max(2, self.format_version)
        return self.service.facade.list_of(self.handle, snapshot, version)


def _branches(
    posted: Sequence[wire.AnyUpdate], snapshots: Mapping[int, wire.PostedSnapshot]
) -> dict[int, str | None]:
    """The branch of each posted snapshot; None when it is staged."""
    found: dict[int, str | None] = dict.fromkeys(snapshots)
    for update in posted:
        if (
            isinstance(update, wire.SetRef)
            and update.type.lower() == "branch"
            and found.get(update.snapshot_id, update.ref_name) is None
        ):
            found[update.snapshot_id] = update.ref_name
    # A snapshot that another one of the request follows is on the way to that one's branch.
    for snapshot in reversed(list(snapshots.values())):
        parent = snapshot.parent_snapshot_id
        if parent in found and found[parent] is None:
            found[parent] = found[snapshot.snapshot_id]
    return found


def _branching(branch: str, snapshot_id: int) -> Change:
    ref = SnapshotRef(snapshot_id=SnapshotId(snapshot_id))
    return Change(updates=(SetRef(name=branch, ref=ref, expected=None),))


ENDPOINTS = (
    Endpoint(
        method="POST",
        template=table_endpoints.ONE,
        handler=commit_table,
        right="write",
        again=table_endpoints.load_table,
    ),
    Endpoint(
        method="POST",
        template="/v1/{prefix}/transactions/commit",
        handler=commit_transaction,
        right="write",
        names_in_body=True,
    ),
)
