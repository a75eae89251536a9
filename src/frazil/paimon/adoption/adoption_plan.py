"""Which Paimon snapshots an adoption goes through, in order, and the names that point at them.

Snapshots of `main` come first, oldest first; then each branch from where it left. Only the latest
snapshot of a branch has to succeed: older ones, asked for by history or by a tag, are passed over
with a reason when their files cannot be taken as they are. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from frazil.errors import NotFound
from frazil.paimon.read.directories import MAIN_BRANCH
from frazil.paimon.read.manifest_tables import live_entries
from frazil.paimon.read.paimon_table import PaimonState, PaimonTable
from frazil.paimon.read.snapshot import PaimonSnapshot, Tag
from frazil.value_classes import frozen, replace


@frozen
class BranchPlan:
    """The snapshots of one branch to adopt, oldest first; the last one is the goal."""

    table: PaimonTable
    branch: str
    snapshots: tuple[PaimonSnapshot, ...]
    tags: tuple[Tag, ...]
    fork: PaimonSnapshot | None = None
    """The latest snapshot that the branch shares with `main`."""


@frozen
class AdoptionPlan:
    """What an adoption does to each branch, `main` first."""

    plans: tuple[BranchPlan, ...]
    notes: tuple[str, ...] = ()
    """What is not adopted although it is there, and why."""


def plan_adoption(
    table: PaimonTable,
    *,
    history: bool = False,
    snapshot_id: int | None = None,
    tags: bool = True,
    branches: bool = True,
    since: Mapping[str, int] | None = None,
) -> AdoptionPlan:
    """The way to the latest snapshot of every branch, or of `main` to `snapshot_id`.

    `history` goes through every snapshot that is still there, otherwise only through those with a
    tag. `since` gives the snapshot reached before, by branch.
    """
    reached = since or {}
    notes: list[str] = []
    main = _plan(table, MAIN_BRANCH, history, snapshot_id, tags, reached.get(MAIN_BRANCH))
    plans = [main]
    if branches and snapshot_id is None:
        for branch in table.branches():
            if branch.name == MAIN_BRANCH:
                continue
            if branch.latest_snapshot_id is None:
                notes.append(f"branch {branch.name!r} has no snapshot")
                continue
            view = table.on_branch(branch.name)
            plan = _plan(view, branch.name, history, None, tags, reached.get(branch.name))
            if clash := _clash(table, view):
                notes.append(f"branch {branch.name!r} is left out: {clash}")
                continue
            plans.append(_forked(plan, table, reached.get(branch.name)))
    return AdoptionPlan(plans=tuple(plans), notes=tuple(notes))


def _plan(
    table: PaimonTable,
    branch: str,
    history: bool,
    snapshot_id: int | None,
    tags: bool,
    since: int | None,
) -> BranchPlan:
    ids = table.snapshot_ids()
    tagged = table.tags() if tags else ()
    tagged_snapshots: dict[int, PaimonSnapshot] = {tag.snapshot.id: tag.snapshot for tag in tagged}
    if snapshot_id is not None and snapshot_id not in ids and snapshot_id not in tagged_snapshots:
        available = f"{ids[0]} to {ids[-1]}" if ids else "none"
        raise NotFound(
            f"{table.location}: no snapshot {snapshot_id} on {branch}; there are {available}"
        )
    if not ids and not tagged_snapshots:
        raise NotFound(f"{table.location}: the table has no snapshot yet")
    goal = snapshot_id if snapshot_id is not None else max([*ids, *tagged_snapshots])
    chosen = {goal, *(i for i in tagged_snapshots if i <= goal)}
    if history:
        chosen |= {i for i in ids if i <= goal}
    if since is not None:
        chosen = {i for i in chosen if i > since}
    snapshots = tuple(
        tagged_snapshots[i] if i in tagged_snapshots else table.snapshot(i) for i in sorted(chosen)
    )
    reached_tags = tuple(tag for tag in tagged if tag.snapshot.id <= goal)
    return BranchPlan(table=table, branch=branch, snapshots=snapshots, tags=reached_tags)


def _forked(plan: BranchPlan, main: PaimonTable, since: int | None) -> BranchPlan:
    """The plan without the snapshots that are those of `main`."""
    if since is not None:
        return plan
    shared: PaimonSnapshot | None = None
    branch_snapshots = {snapshot.id: snapshot for snapshot in plan.table.snapshots()}
    main_snapshots = {snapshot.id: snapshot for snapshot in main.snapshots()}
    main_snapshots |= {tag.snapshot.id: tag.snapshot for tag in main.tags()}
    for snapshot_id in sorted(branch_snapshots):
        other = main_snapshots.get(snapshot_id)
        if (
            other is not None
            and other.manifest_lists == branch_snapshots[snapshot_id].manifest_lists
        ):
            shared = other
    own_snapshots = tuple(s for s in plan.snapshots if shared is None or s.id > shared.id)
    own_tags = tuple(t for t in plan.tags if shared is None or t.snapshot.id > shared.id)
    return replace(plan, snapshots=own_snapshots, tags=own_tags, fork=shared)


def _clash(main: PaimonTable, view: PaimonTable) -> str | None:
    """Why a branch cannot share the table's columns: an id that means two columns."""
    main_fields = {field.id: field for schema in main.schemas().values() for field in schema.fields}
    for schema in view.schemas().values():
        for field in schema.fields:
            other = main_fields.get(field.id)
            if other is not None and other.type.name is not field.type.name:
                return (
                    f"its column {field.name!r} has the id {field.id} of the table's column "
                    f"{other.name!r}"
                )
    return None


def states(plan: BranchPlan) -> Iterator[PaimonState]:
    """The state at each snapshot of a plan.

    From one snapshot to the next only the delta is read, so a long history costs what changed.
    """
    before: PaimonState | None = None
    for snapshot in plan.snapshots:
        if before is not None and snapshot.id == before.snapshot.id + 1:
            before = _advanced(plan.table, before, snapshot)
        else:
            before = plan.table.state(snapshot)
        yield before


def _advanced(table: PaimonTable, before: PaimonState, snapshot: PaimonSnapshot) -> PaimonState:
    delta = table.delta_entries(snapshot)
    if delta.num_rows == 0:
        files = before.files.drop_columns(["location"])
    else:
        files = live_entries(
            pa.concat_tables([before.files.drop_columns(["location"]), delta]).combine_chunks()
        )
    return table.state_of(snapshot, files)
