"""Commits of clients: requirements, updates and snapshots become changes, landed in one swap.

The order matters. A snapshot that the table knows is answered with the current metadata before
anything else is looked at: the client repeats a commit whose answer was lost. Whatever cannot be
translated is refused before anything lands; after a swap nothing is answered with 4xx.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from frazil.catalog.names import Identifier
from frazil.commit.chain import Chain
from frazil.commit.change import Change
from frazil.commit.context import CommitContext
from frazil.commit.handle import TableHandle, new_snapshot_id, now_ms
from frazil.commit.head import Draft, Outcome, State
from frazil.commit.loop import TableCommit, commit_tables, discard
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
from frazil.format.metadata.metadata import (
    MAIN,
    History,
    Snapshot,
    SnapshotId,
    SnapshotRef,
    TableMetadata,
    log_entry,
)
from frazil.properties.registry import SERVE_LOCATION
from frazil.serve.access.allowed_paths import (
    Fence,
    FencedCache,
    Storage,
    folders_of,
    request_fence,
    storage_for,
)
from frazil.serve.access.rights import BODY_WRITER, PATH_WRITER
from frazil.serve.exchange import NO_CONTENT, Endpoint, Request, Response
from frazil.serve.rest import metadata_updates, table_endpoints
from frazil.serve.rest.locations import NewPlace, check_properties, check_unshared, place_of
from frazil.serve.rest.metadata_updates import Added, PostedUpdates
from frazil.serve.rest.posted import PostedFiles, as_vectors
from frazil.serve.rest.translate import Net, change_of
from frazil.serve.rest_errors import RestError, bad_request, conflict, no_namespace
from frazil.serve.service import Service
from frazil.serve.view import kept_files
from frazil.serve.view.published_view import client_properties, head_of, published_version
from frazil.serve.wire import wire
from frazil.value_classes import dataclass, field, frozen, replace

log = logging.getLogger("frazil.serve")

_NAMING = (
    wire.SetLocation,
    wire.SetProperties,
    wire.SetStatistics,
    wire.SetPartitionStatistics,
)
"""Updates that name places."""


def commit_table(service: Service, call: Request) -> Response:
    """POST tables/{table}."""
    posted = call.decode(wire.CommitTable)
    identifier = call.identifier()
    _land(service, call, [(identifier, posted)])
    return _answered(service, identifier, call, posted)


def commit_transaction(service: Service, call: Request) -> Response:
    """POST transactions/commit: several tables, all or none."""
    posted = call.decode(wire.CommitTransaction)
    commits = []
    for change in posted.table_changes:
        if change.identifier is None:
            raise bad_request("a change of a transaction names no table")
        commits.append((table_endpoints.name_of(change.identifier), change))
    names = [name for name, _ in commits]
    call.check("write", *(name.namespace for name in names))
    if len(set(names)) != len(names):
        raise bad_request("a transaction names a table twice")
    _land(service, call, sorted(commits, key=lambda item: item[0]))
    for name in names:
        try:
            service.facade.show(service.table(name)._handle, call.format_version)
        except (FrazilError, RestError):  # it has landed; loading will show it
            log.exception("%s was not published", name)
    return NO_CONTENT


def _answered(
    service: Service, identifier: Identifier, call: Request, posted: wire.CommitTable
) -> Response:
    """The table after a commit that landed: an error here must not look like a refusal."""
    try:
        table = service.table(identifier)
        version = max(2, published_version(table.metadata, call.format_version))
        for snapshot_id, branch in _branches(posted.updates, _snapshots(posted)).items():
            if branch is None:  # staged: no name leads to it, and it is to be seen all the same
                snapshot = table._handle.snapshot(snapshot_id)
                service.facade.list_of(table._handle, snapshot, version)
        return table_endpoints.table_response(service, table, call)
    except (FrazilError, RestError) as error:
        log.exception("%s landed and could not be shown", identifier)
        raise RestError(500, "CommitStateUnknownException", str(error)) from error


def _check_places(
    service: Service, call: Request, identifier: Identifier, posted: wire.CommitTable
) -> None:
    """A client may not send itself, or the server, to places that are not meant for tables."""
    updates = [update for update in posted.updates if isinstance(update, _NAMING)]
    if not updates:
        return
    more: tuple[str, ...] = ()
    sharing = service.pointers.client_of
    if service.catalog._pointers.table_exists(identifier):
        handle = service.table(identifier)._handle
        location = handle.metadata.location
        more = folders_of(location, handle.metadata.properties)
        sharing = head_of(handle).neighbourhood().sharing
    else:
        location = _new_place(service, call, identifier, posted).location
    fence = request_fence(service, call, identifier.namespace, table=more)
    for update in updates:
        match update:
            case wire.SetLocation(location=place):
                fence.allowed(place)
                check_unshared(sharing, location, {SERVE_LOCATION.key: place})
            case wire.SetProperties(updates=properties):
                check_properties(fence, location, properties)
                check_unshared(sharing, location, properties)
            case wire.SetStatistics(statistics=stated):
                _check_statistics(fence, stated)
            case wire.SetPartitionStatistics(partition_statistics=stated):
                _check_statistics(fence, stated)


def _check_statistics(fence: Fence, stated: Mapping[str, Any]) -> None:
    path = stated.get("statistics-path")
    if not isinstance(path, str):
        raise bad_request("statistics name no statistics-path")
    fence.allowed(path)


def _new_place(
    service: Service, call: Request, identifier: Identifier, posted: wire.CommitTable
) -> NewPlace:
    locations = (u.location for u in posted.updates if isinstance(u, wire.SetLocation))
    try:
        return place_of(service, call, identifier, next(locations, None))
    except AlreadyExists as error:
        raise table_endpoints.not_entered(service, identifier, error) from error


def _land(
    service: Service, call: Request, posted: Sequence[tuple[Identifier, wire.CommitTable]]
) -> None:
    for identifier, request in posted:
        _check_places(service, call, identifier, request)
    creations = [commit for commit in posted if _creates(commit[1])]
    if creations and len(posted) > 1:
        raise bad_request("a transaction over several tables cannot create one")
    try:
        if creations:
            _create(service, call, *creations[0])
            return
        works: list[_Work] = []
        for identifier, request in posted:
            handle = service.table(identifier)._handle
            handle.check_writable()
            if not _has_landed(handle, request):
                table_endpoints.need_older(service, call, handle.metadata)
                works.append(
                    _Work(
                        service=service,
                        call=call,
                        identifier=identifier,
                        handle=handle,
                        posted=request,
                    )
                )
        if works:
            _commit(service, works)
    except (InvalidInput, FormatError, StorageError) as error:
        raise bad_request(f"Cannot commit: {error}") from error
    except CommitConflict as error:
        raise conflict(str(error)) from error


def _commit(service: Service, works: Sequence[_Work]) -> None:
    tables = [
        TableCommit(head=work.handle.head, context=work.handle.context, plan=work.plan)
        for work in works
    ]
    commit_tables(
        tables,
        lambda drafts: service.catalog._pointers.swap_all(
            [
                (head_of(work.handle), base, draft)
                for work, (_, base, draft) in zip(works, drafts, strict=True)
            ]
        ),
    )


def _creates(posted: wire.CommitTable) -> bool:
    return any(isinstance(requirement, wire.AssertCreate) for requirement in posted.requirements)


def _snapshots(posted: wire.CommitTable) -> dict[int, wire.PostedSnapshot]:
    return {
        update.snapshot.snapshot_id: update.snapshot
        for update in posted.updates
        if isinstance(update, wire.AddSnapshot)
    }


def _has_landed(handle: TableHandle, posted: wire.CommitTable) -> bool:
    """Whether a commit landed before and is repeated: its snapshots are in the table."""
    snapshot_ids = _snapshots(posted)
    return bool(snapshot_ids) and all(
        handle.head.landed(snapshot_id) is not None for snapshot_id in snapshot_ids
    )


# --- new tables --------------------------------------------------------------------------------


def _create(
    service: Service, call: Request, identifier: Identifier, posted: wire.CommitTable
) -> None:
    """A table and its first snapshots, entered at once."""
    if service.catalog._pointers.table_exists(identifier):
        _check_repeated(service, identifier, posted)
        return
    if not service.catalog._pointers.namespaces.exists(identifier.namespace):
        raise no_namespace(identifier.namespace)
    table_endpoints.need_free(service, identifier)
    place = _new_place(service, call, identifier, posted)
    location = place.location
    fence = request_fence(service, call, identifier.namespace)
    fence.allowed(location)
    updates: list[wire.AnyUpdate] = [
        update for update in posted.updates if not isinstance(update, wire.SetLocation)
    ]
    posted = wire.CommitTable(
        identifier=posted.identifier, requirements=posted.requirements, updates=updates
    )
    context = CommitContext(
        storage=storage_for(service, fence, location),
        location=location.rstrip("/"),
        cache=FencedCache(service.catalog._cache, fence),
        now_ms=now_ms,
        new_snapshot_id=new_snapshot_id,
    )
    state = State(version=0, metadata=metadata_updates.blank(location, place.properties))
    head = _NoHead(state)
    planned = _Plan(
        service=service,
        posted=posted,
        context=context,
        format_version=3,
        call=call,
        identifier=identifier,
    ).changes(state)
    chain = Chain(planned, context, head)
    try:
        draft = chain.build(state).draft
        metadata = draft.metadata
        if metadata.table_uuid.int == 0 or not metadata.schemas or not metadata.partition_specs:
            raise bad_request("a new table needs a uuid, a schema and a partition spec")
        logged = log_entry(state.metadata, metadata, draft.added_snapshots)
        history = History(
            snapshots=draft.added_snapshots, snapshot_log=() if logged is None else (logged,)
        )
        service.catalog._pointers.create_table(identifier, metadata, history)
    except CommitUnknown:
        raise
    except AlreadyExists as error:
        discard(context.storage, chain.written)
        if not service.catalog._pointers.table_exists(identifier):
            raise table_endpoints.not_entered(service, identifier, error) from error
        _check_repeated(service, identifier, posted)
    except BaseException:
        discard(context.storage, chain.written)
        raise


def _check_repeated(service: Service, identifier: Identifier, posted: wire.CommitTable) -> None:
    """Pass a creation that landed before, refuse another one of the same name."""
    handle = service.table(identifier)._handle
    uuids = {u.uuid.lower() for u in posted.updates if isinstance(u, wire.AssignUuid)}
    if str(handle.metadata.table_uuid) in uuids and (
        not _snapshots(posted) or _has_landed(handle, posted)
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


@frozen
class _Work:
    """The commit of one table."""

    service: Service
    call: Request
    identifier: Identifier
    handle: TableHandle
    posted: wire.CommitTable

    def plan(self, state: State) -> Sequence[Change]:
        """What the commit does to a state; 409 when the state is not what the client expects."""
        for requirement in self.posted.requirements:
            metadata_updates.check(requirement, state.metadata)
        self.handle.state = state
        version = published_version(state.metadata, self.call.format_version)
        return _Plan(
            service=self.service,
            posted=self.posted,
            context=self.handle.context,
            handle=self.handle,
            format_version=version,
            call=self.call,
            identifier=self.identifier,
        ).changes(state)


@dataclass(slots=True, kw_only=True)
class _Plan:
    """Turns the updates of one request into changes, in their order."""

    service: Service
    call: Request
    identifier: Identifier
    posted: wire.CommitTable
    context: CommitContext
    format_version: int
    handle: TableHandle | None = None
    lists: dict[int, str] = field(default_factory=dict, init=False)

    def changes(self, state: State) -> list[Change]:
        """The changes; each builds on the one before."""
        snapshots = _snapshots(self.posted)
        branches = _branches(self.posted.updates, snapshots)
        tips = {name: int(ref.snapshot_id) for name, ref in state.metadata.refs.items()}
        written = {branch for branch in branches.values() if branch is not None}
        emptied: set[str] = set()
        metadata, added = state.metadata, Added()
        changes: list[Change] = []
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

        for update in self.posted.updates:
            if isinstance(update, wire.AddSnapshot):
                before = flush()
                additions = self._snapshot(
                    update.snapshot,
                    branches[update.snapshot.snapshot_id],
                    metadata,
                    tips,
                    emptied,
                )
                if before:
                    additions[0] = replace(additions[0], updates=(*before, *additions[0].updates))
                changes += additions
                self.lists[update.snapshot.snapshot_id] = update.snapshot.manifest_list or ""
            elif isinstance(update, wire.RemoveSnapshots):
                removal = RemoveSnapshots(snapshot_ids=tuple(update.snapshot_ids))
                changes.append(Change(updates=(*flush(), removal)))
            elif isinstance(update, wire.RemoveRef) and update.ref_name in written:
                emptied.add(update.ref_name)  # its next snapshot follows none
            else:
                if isinstance(update, wire.SetRef) and update.snapshot_id not in snapshots:
                    self._need_snapshot(update)
                if isinstance(update, wire.SetProperties):
                    update = self._client_properties(update, state.metadata)
                pending.append(update)
        last = flush()
        if last:
            changes.append(Change(updates=last))
        return changes

    def _snapshot(
        self,
        posted: wire.PostedSnapshot,
        branch: str | None,
        metadata: TableMetadata,
        tips: dict[str, int],
        emptied: set[str],
    ) -> list[Change]:
        if posted.manifest_list is None:
            raise InvalidInput(f"snapshot {posted.snapshot_id} has no manifest list")
        is_staged = branch is None
        target = MAIN if branch is None else branch
        tip, parent = tips.get(target), posted.parent_snapshot_id
        changes: list[Change] = []
        # A table that is replaced starts again: what the branch held is no past of its rows.
        starts_empty = target in emptied and parent is None
        if tip is not None and parent != tip and not starts_empty:
            raise conflict(
                f"Requirement failed: branch {target} has changed: expected id {parent} != {tip}"
            )
        base = parent if tip is None else tip
        if starts_empty:
            base = None
        elif tip is None and parent is not None:
            changes.append(_branching(target, parent))
        elif tip is None and tips and target != MAIN:
            starts_empty = True
        emptied.discard(target)
        fence = request_fence(
            self.service,
            self.call,
            self.identifier.namespace,
            table=folders_of(self.context.location, metadata.properties),
        )
        reader = PostedFiles(
            storage=storage_for(self.service, fence, self.context.location),
            location=self.context.location,
            metadata=metadata,
            fence=fence,
            manifests_of=self.service.facade.manifests_of,
        )
        difference = reader.difference(
            None if base is None else self._list_of(base),
            posted.manifest_list,
            snapshot_id=posted.snapshot_id,
        )
        reader.check_added(difference)
        if kept_files.is_needed(self.call.headers.get("user-agent", "")):
            kept_files.keep(reader.storage, reader.location, posted.snapshot_id, difference.added)
        difference = self._without_equality(difference, base, reader.storage)
        changes.append(
            change_of(
                difference,
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
        return changes

    def _without_equality(self, difference: Net, base: int | None, storage: Storage) -> Net:
        if difference.equality is None:
            return difference
        if base is None:
            return replace(difference, equality=None)  # no row is older
        if self.handle is None or base in self.lists:
            raise Unsupported(
                f"snapshot {base} and equality deletes of its rows are in one request; commit them "
                "one after the other",
                feature="equality deletes of rows of the same request",
            )
        return as_vectors(difference, self.handle, self.handle.snapshot(base), storage)

    def _client_properties(
        self, update: wire.SetProperties, metadata: TableMetadata
    ) -> wire.SetProperties:
        """Without properties that the client was shown and sends back."""
        gc = self.service.settings.allow_client_gc
        properties = client_properties(update.updates, metadata, allow_client_gc=gc)
        return wire.SetProperties(updates=properties)

    def _need_snapshot(self, update: wire.SetRef) -> None:
        """400 for a branch or tag of a snapshot that the table does not have."""
        try:
            if self.handle is None:
                raise NotFound("a new table may only name snapshots of the same request")
            self.handle.snapshot(update.snapshot_id)
        except NotFound as error:
            raise InvalidInput(
                f"Cannot set {update.ref_name} to unknown snapshot {update.snapshot_id}: {error}"
            ) from error

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
    branches: dict[int, str | None] = dict.fromkeys(snapshots)
    for update in posted:
        if (
            isinstance(update, wire.SetRef)
            and update.type.lower() == "branch"
            and branches.get(update.snapshot_id, update.ref_name) is None
        ):
            branches[update.snapshot_id] = update.ref_name
    # A snapshot that another one of the request follows is on the way to that one's branch.
    for snapshot in reversed(list(snapshots.values())):
        parent = snapshot.parent_snapshot_id
        if parent in branches and branches[parent] is None:
            branches[parent] = branches[snapshot.snapshot_id]
    return branches


def _branching(branch: str, snapshot_id: int) -> Change:
    ref = SnapshotRef(snapshot_id=SnapshotId(snapshot_id))
    return Change(updates=(SetRef(name=branch, ref=ref, expected=None),))


ENDPOINTS = (
    Endpoint(
        "POST",
        table_endpoints.ONE,
        commit_table,
        PATH_WRITER,
        takes_much=True,
        again=table_endpoints.landed_table,
    ),
    Endpoint(
        "POST", "/v1/{prefix}/transactions/commit", commit_transaction, BODY_WRITER, takes_much=True
    ),
)
