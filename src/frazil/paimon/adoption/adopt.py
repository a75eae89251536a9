"""A Paimon table becomes a v4 table of a catalog, without one data file being copied.

A new table is staged in memory, snapshot by snapshot, and entered in one step: either all of it is
there or nothing. Taking over again continues from the snapshot reached last; each further snapshot
lands as a commit of its own. Nothing in the Paimon table is written, ever.

Paimon still owns its files: its expiry and compaction delete them. Keep the snapshot with a tag in
Paimon, or stop writing there.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from frazil.catalog.backend import CatalogBackend, TableHead, TableName
from frazil.catalog.names import Identifier
from frazil.commit.context import CommitContext
from frazil.commit.handle import new_snapshot_id
from frazil.commit.head import Draft, Landed, Outcome, State
from frazil.commit.loop import discard, undoing
from frazil.errors import InvalidInput, NotFound, Unsupported
from frazil.format.metadata.metadata import (
    History,
    SchemaId,
    Snapshot,
    SortOrderId,
    SpecId,
    TableMetadata,
)
from frazil.iceberg.name_mapping import NameMapping
from frazil.iceberg.sorting import UNSORTED
from frazil.paimon.adoption import adoption_plan
from frazil.paimon.adoption.adoption_plan import AdoptionPlan, BranchPlan
from frazil.paimon.adoption.apply import (
    LOCATION,
    SNAPSHOT_ID,
    SNAPSHOT_TIME,
    Run,
    TakenSnapshot,
    summary_of,
)
from frazil.paimon.adoption.takeover import MergeFiles, Takeover, prepare
from frazil.paimon.adoption.verify import Listing
from frazil.paimon.read import as_iceberg
from frazil.paimon.read.directories import MAIN_BRANCH
from frazil.paimon.read.paimon_table import PaimonTable
from frazil.properties.registry import NAME_MAPPING
from frazil.storage import Places, checked_location
from frazil.text_format import counted
from frazil.tree.cache import ManifestCache
from frazil.value_classes import dataclass, field, frozen, replace


class StagedHead:
    """The head of a table that only this process knows."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._history = History()
        self._version = 0

    @property
    def history(self) -> History:
        """Every snapshot staged so far."""
        return self._history

    def load(self) -> State:
        """The state as staged."""
        snapshot_ids = {ref.snapshot_id for ref in self._metadata.refs.values()}
        return State(
            version=self._version,
            metadata=self._metadata,
            snapshots={
                s.snapshot_id: s for s in self._history.snapshots if s.snapshot_id in snapshot_ids
            },
        )

    def swap(self, base: State, draft: Draft) -> Outcome:
        """Take the draft; there are no other writers here."""
        self._history = self._history.advanced(
            base.metadata,
            draft.metadata,
            added=draft.added_snapshots,
            removed=draft.removed_snapshot_ids,
        )
        self._metadata = draft.metadata
        self._version += 1
        return Landed(states=(self.load(),))

    def landed(self, snapshot_id: int) -> State | None:
        """The state, if that snapshot is staged."""
        return self.load() if self._history.snapshot(snapshot_id) is not None else None

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """One staged snapshot."""
        snapshot = self._history.snapshot(snapshot_id)
        if snapshot is None:
            raise NotFound(f"no snapshot {snapshot_id} is staged")
        return snapshot

    def snapshots(self) -> Iterable[Snapshot]:
        """Every staged snapshot, oldest first."""
        return self._history.snapshots


log = logging.getLogger("frazil.paimon")

EXCLUDE: Final = "paimon.exclude"
_NUMBERED_FROM: Final = 1 << 48
"""Row ids given here start so high that those Paimon gives later stay free."""


@frozen
class PassedOver:
    """An older Paimon snapshot that was asked for but cannot be taken as it is."""

    branch: str
    paimon_snapshot_id: int
    reason: str


@frozen
class Adopted:
    """What an adoption did."""

    identifier: Identifier
    is_new: bool
    snapshots: tuple[TakenSnapshot, ...]
    passed_over: tuple[PassedOver, ...]
    tags: tuple[str, ...]
    branches: tuple[str, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.identifier}: {'adopted' if self.is_new else 'brought up to date'}"]
        lines += [
            f"snapshot {adopted.paimon_snapshot_id} of {adopted.branch} is {adopted.snapshot_id}: "
            f"{counted(adopted.added_files, 'file')} added, {adopted.removed_files:,} removed, "
            f"{counted(adopted.changed_vectors, 'deletion vector')} changed"
            for adopted in self.snapshots
        ]
        if not self.snapshots:
            lines.append("nothing new in Paimon")
        lines += [
            f"snapshot {passed.paimon_snapshot_id} of {passed.branch} skipped: {passed.reason}"
            for passed in self.passed_over
        ]
        for kind, names in (("tags", self.tags), ("branches", self.branches)):
            if names:
                lines.append(f"{kind}: {', '.join(names)}")
        return "\n".join(lines + [f"note: {note}" for note in self.notes])


@dataclass(slots=True)
class _Progress:
    snapshots: list[TakenSnapshot] = field(default_factory=list)
    passed_over: list[PassedOver] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def adopted(self, name: Identifier, *, is_new: bool) -> Adopted:
        return Adopted(
            identifier=name,
            is_new=is_new,
            snapshots=tuple(self.snapshots),
            passed_over=tuple(self.passed_over),
            tags=tuple(self.tags),
            branches=tuple(self.branches),
            notes=tuple(self.notes),
        )


@frozen
class Options:
    """How to adopt a table."""

    history: bool = False
    snapshot_id: int | None = None
    tags: bool = True
    branches: bool = True
    exclude: tuple[str, ...] = ()
    verify: bool = True
    merge: MergeFiles | None = None


def adopt(
    catalog: CatalogBackend,
    identifier: TableName,
    source: str | PaimonTable,
    *,
    location: str | None = None,
    history: bool = False,
    snapshot_id: int | None = None,
    tags: bool = True,
    branches: bool = True,
    exclude: Collection[str] = (),
    verify: bool = True,
    properties: Mapping[str, str] | None = None,
    merge: MergeFiles | None = None,
    cache: ManifestCache | None = None,
) -> Adopted:
    """Take a Paimon table over under a name; again, to bring it up to date.

    `history` makes a snapshot of every Paimon snapshot that is still there, not only of the latest
    and the tagged ones. `exclude` leaves columns out whose types Iceberg does not have. `verify`
    checks that every file is there and of the size its manifest says. `merge` merges files of
    primary-key tables that cannot be read as they are (`frazil.spark.merge_paimon`); without it
    they are refused.
    """
    name = Identifier.parse(identifier)
    table = _opened(catalog, source)
    as_iceberg.check_excluded(table.schemas().values(), exclude)
    options = Options(
        history=history,
        snapshot_id=snapshot_id,
        tags=tags,
        branches=branches,
        exclude=tuple(sorted(exclude)),
        verify=verify,
        merge=merge,
    )
    if catalog.table_exists(name):
        return _continue(catalog.load(name), name, table, options, catalog, cache)
    return _create(catalog, name, table, options, location, properties or {}, cache)


def _opened(catalog: CatalogBackend, source: str | PaimonTable) -> PaimonTable:
    if isinstance(source, PaimonTable):
        return source
    return PaimonTable.open(source, storage=catalog.storage(source))


def _planned(
    table: PaimonTable, options: Options, since: Mapping[str, int] | None = None
) -> adoption_plan.AdoptionPlan:
    return adoption_plan.plan_adoption(
        table,
        history=options.history,
        snapshot_id=options.snapshot_id,
        tags=options.tags,
        branches=options.branches,
        since=since,
    )


def _create(
    catalog: CatalogBackend,
    name: Identifier,
    table: PaimonTable,
    options: Options,
    location: str | None,
    properties: Mapping[str, str],
    cache: ManifestCache | None,
) -> Adopted:
    place = catalog.location_for(name) if location is None else checked_location(location)
    _check_apart(place, table.location)
    adoption = _planned(table, options)
    head = StagedHead(_metadata(adoption, place, options, properties))
    run = Run(head=head, context=_context(catalog, place, cache), state=head.load())
    progress = _Progress(notes=list(adoption.notes))
    with undoing(lambda: discard(run.context.storage, [*run.written, *run.pending])):
        _adopt_all(run, adoption, options, progress)
        state = head.load()
        catalog.create_table(name, state.metadata, head.history)
    log.info("%s: took over %s, %d snapshots", name, table.location, len(progress.snapshots))
    return progress.adopted(name, is_new=True)


def _check_apart(place: str, source: str) -> None:
    """The new table's own files must not land in the Paimon table's directory."""
    places = Places()
    if places.folder(place).startswith(places.folder(source)):
        raise InvalidInput(
            f"{place} lies in the Paimon table {source}, where nothing may be written; "
            "choose another location"
        )


def _context(catalog: CatalogBackend, place: str, cache: ManifestCache | None) -> CommitContext:
    return CommitContext(
        storage=catalog.storage(place),
        location=place,
        cache=cache if cache is not None else ManifestCache(),
        now_ms=lambda: 0,
        new_snapshot_id=new_snapshot_id,
    )


def _metadata(
    adoption: AdoptionPlan, place: str, options: Options, properties: Mapping[str, str]
) -> TableMetadata:
    """The table before its first snapshot, in the schema that it ends with."""
    main = adoption.plans[0]
    version = main.table.schema(main.snapshots[-1].schema_id)
    earlier = [main.table.schema(i) for i in main.table.schema_ids() if i < version.id]
    schema = as_iceberg.iceberg_schema(version, earlier=earlier, exclude=options.exclude)
    spec = as_iceberg.partition_spec(version)
    own_properties = {
        # The data files are Paimon's: no engine may delete them when it expires or drops.
        "gc.enabled": "false",
        LOCATION: main.table.location,
        NAME_MAPPING.key: _mapping(adoption, options).json(),
    }
    if options.exclude:
        own_properties[EXCLUDE] = json.dumps(options.exclude)
    if version.comment:
        own_properties["comment"] = version.comment
    tracked = version.is_enabled("row-tracking.enabled")
    return TableMetadata(
        table_uuid=uuid.uuid4(),
        location=place,
        last_updated_ms=main.snapshots[0].time_ms,
        last_column_id=version.highest_field_id,
        schemas=(schema,),
        current_schema_id=SchemaId(schema.schema_id),
        partition_specs=(spec,),
        default_spec_id=SpecId(spec.spec_id),
        last_partition_id=max(as_iceberg.partition_field_ids(version), default=999),
        sort_orders=(UNSORTED,),
        default_sort_order_id=SortOrderId(UNSORTED.order_id),
        properties={**properties, **own_properties},
        next_row_id=_NUMBERED_FROM if tracked else 0,
    )


def _mapping(adoption: AdoptionPlan, options: Options) -> NameMapping:
    """The name mapping of the whole table: every version that some snapshot may use."""
    main = adoption.plans[0].table
    goal = adoption.plans[0].snapshots[-1] if adoption.plans[0].snapshots else main.snapshot()
    versions = [schema for plan in adoption.plans for schema in plan.table.schemas().values()]
    return as_iceberg.name_mapping(main.schema(goal.schema_id), versions, exclude=options.exclude)


def _adopt_all(run: Run, adoption: AdoptionPlan, options: Options, progress: _Progress) -> None:
    """Adopt the snapshots of all branches, then the names that point at them."""
    mapping = _mapping(adoption, options)
    listing = Listing(adoption.plans[0].table) if options.verify else None
    for plan in adoption.plans:
        if plan.branch != MAIN_BRANCH and plan.branch not in run.state.metadata.refs:
            run.start_branch(plan.branch, plan.fork, progress.notes)
        for number, state in enumerate(adoption_plan.states(plan), start=1):
            takeover = prepare(
                plan.table,
                state,
                exclude=options.exclude,
                listing=listing,
                mapping=mapping,
                merging=options.merge is not None,
            )
            is_goal = number == len(plan.snapshots)
            reason = _why_not(takeover, options, is_goal=is_goal)
            if reason is None:
                _take(run, plan, takeover, options, progress)
            elif is_goal:
                raise Unsupported(
                    f"{plan.table.location}: snapshot {state.snapshot.id} of {plan.branch} cannot "
                    f"be adopted:{reason}",
                    feature="paimon",
                )
            else:
                text = " ".join(reason.replace("\n  - ", " ").split())
                progress.passed_over.append(
                    PassedOver(
                        branch=plan.branch, paimon_snapshot_id=state.snapshot.id, reason=text
                    )
                )
        if plan.branch != MAIN_BRANCH:
            progress.branches.append(plan.branch)
    run.use_schema(adoption.plans[0].table, options.exclude)
    for plan in adoption.plans:
        _add_tags(run, plan, progress)


def _why_not(takeover: Takeover, options: Options, *, is_goal: bool) -> str | None:
    """What stands in the way of a snapshot. Merging is for the latest one only."""
    reasons = list(takeover.problems)
    if takeover.merged.any() and (options.merge is None or not is_goal):
        reasons += [
            f"{line['files']} files ({line['example']}, …): {line['reason']}; {line['advice']}"
            for line in takeover.summary.to_pylist()
            if line["verdict"] == "needs a merge"
        ]
    return "".join(f"\n  - {reason}" for reason in reasons) if reasons else None


def _take(
    run: Run, plan: BranchPlan, takeover: Takeover, options: Options, progress: _Progress
) -> None:
    merged = None
    if takeover.merged.any() and options.merge is not None:
        run.use_schema(plan.table, options.exclude, takeover.state.snapshot)
        merged = options.merge(takeover, run.context.storage, run.state.metadata, run.pending)
    taken = run.take(plan, takeover, exclude=options.exclude, merged=merged)
    progress.snapshots.append(taken)


def _add_tags(run: Run, plan: BranchPlan, progress: _Progress) -> None:
    for tag in plan.tags:
        note = run.tag(plan, tag)
        if note is None:
            progress.tags.append(tag.name)
        elif note:
            progress.notes.append(note)


def _continue(
    head: TableHead,
    name: Identifier,
    table: PaimonTable,
    options: Options,
    catalog: CatalogBackend,
    cache: ManifestCache | None,
) -> Adopted:
    """Bring a table that was adopted before up to date."""
    state = head.load()
    metadata = state.metadata
    source = metadata.properties.get(LOCATION)
    if source is None or Places().folder(source) != Places().folder(table.location):
        raise InvalidInput(
            f"{name} exists and was not adopted from {table.location}"
            + (f" but from {source}" if source else "")
            + "; choose another name"
        )
    stored = tuple(json.loads(metadata.properties.get(EXCLUDE, "[]")))
    if options.exclude and options.exclude != stored:
        raise InvalidInput(f"{name} was adopted without {list(stored)}; that cannot change")
    options = replace(options, exclude=stored)
    run = Run(head=head, context=_context(catalog, metadata.location, cache), state=state)
    since = run.reached()
    _check_not_rolled_back(table, since, run, name)
    adoption = _planned(table, options, since)
    for branch in since:
        run.check_unchanged(branch, name)
    progress = _Progress(notes=list(adoption.notes))
    run.set_properties({NAME_MAPPING.key: _mapping(adoption, options).json()})
    _adopt_all(run, adoption, options, progress)
    log.info("%s: %d more snapshots of %s", name, len(progress.snapshots), table.location)
    return progress.adopted(name, is_new=False)


def _check_not_rolled_back(
    table: PaimonTable, since: Mapping[str, int], run: Run, name: Identifier
) -> None:
    for branch, reached in since.items():
        view = table if branch == MAIN_BRANCH else table.on_branch(branch)
        latest = view.snapshot()
        is_same = True
        if latest.id >= reached:
            try:
                now = view.snapshot(reached)
            except NotFound:
                continue
            then = summary_of(run.tip_taken(branch))
            is_same = then.get(SNAPSHOT_TIME) in (None, str(now.time_ms))
        if latest.id < reached or not is_same:
            raise InvalidInput(
                f"{name}: Paimon's {branch} was rolled back behind snapshot {reached}, which was "
                f"adopted; adopt it under another name ({SNAPSHOT_ID} distinguishes them)"
            )
