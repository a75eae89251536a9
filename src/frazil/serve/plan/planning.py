"""Parts of a scan plan: a bounded number of files, and where the next ones are.

A plan goes through the root and then leaf by leaf, so a part costs the leaves it looks into and
never the whole table. Knows nothing of HTTP and keeps nothing between parts: a snapshot is
immutable, so that the same leaves come in the same order whoever asks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from threading import Lock

import numpy as np
import pyarrow as pa
from msgspec import structs

from frazil.commit.handle import TableHandle
from frazil.errors import InvalidInput, NotFound
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, partition_key
from frazil.format.metadata.metadata import Snapshot
from frazil.iceberg.schema import Schema
from frazil.scan.plan import FILE_KEYS, MUST_MATCH, LeafPlan, LeafPlanner, plan
from frazil.serve.limits import MAX_PLAN_FILES
from frazil.serve.wire.wire_plans import PlanFilter, PlanState, bound_filter
from frazil.tree.changes import CHANGE_KEYS, append_runs, appended, changes_of
from frazil.tree.read import LEAF, LeafRef
from frazil.tree.table_shape import shape_of
from frazil.value_classes import dataclass, field, frozen

FAN_OUT = 8
"""Into how many parts that can be fetched side by side the rest of a plan is cut."""
MAX_AT_ONCE = 16
"""Leaves that are read before it is asked again whether a part is full."""
_CANCELLED_KEPT = 10_000


@frozen
class PlanPart:
    """Files of a plan with the deletes that apply (rows of `deletes` by row of `files`), and the
    states of the parts that are left."""

    files: EntryBatch
    filter: PlanFilter
    deletes: EntryBatch | None = None
    matches: dict[int, tuple[int, ...]] = field(default_factory=dict)
    rest: tuple[PlanState, ...] = ()


class Cancelled:
    """Plans that clients have given up, the latest of them."""

    def __init__(self) -> None:
        self._plans: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    def add(self, plan: str) -> None:
        """Remember one."""
        with self._lock:
            self._plans[plan] = None
            while len(self._plans) > _CANCELLED_KEPT:
                self._plans.popitem(last=False)

    def __contains__(self, plan: str) -> bool:
        return plan in self._plans


def part_of(
    handle: TableHandle,
    state: PlanState,
    *,
    stats_keys: Sequence[str],
    max_files: int = MAX_PLAN_FILES,
) -> PlanPart:
    """The files of one part of a plan."""
    snapshot = snapshot_of(handle, state.snapshot_id)
    schema, filter_ = _filter(handle, snapshot, state)
    keys = ("split_offsets", "sort_order_id", *stats_keys)
    if state.start_snapshot_id is not None:
        return _incremental(handle, snapshot, state, schema, filter_, keys, max_files)
    window = _Window(first=max(0, state.leaf), end=state.end, enough=max_files + state.skip)
    planned = plan(
        handle.reader(),
        snapshot,
        schema=schema,
        where=filter_.where,
        extra_keys=keys,
        each_leaf=window,
    )
    in_root = planned.files.num_rows - sum(window.counts)
    start = (0 if state.leaf < 0 else in_root) + state.skip
    stop = min(start + max_files, planned.files.num_rows)
    rest: tuple[PlanState, ...] = ()
    if stop < planned.files.num_rows or window.has_more:
        rest = _rest(state, window, in_root=in_root, stop=stop)
    return PlanPart(
        files=planned.files.slice(start, stop - start),
        filter=filter_,
        deletes=planned.deletes,
        matches={row - start: rows for row, rows in planned.matches.items() if start <= row < stop},
        rest=rest,
    )


def snapshot_of(handle: TableHandle, snapshot_id: int) -> Snapshot:
    """A snapshot that a request names; refuses one that is not there."""
    try:
        return handle.snapshot(snapshot_id)
    except NotFound as error:
        raise InvalidInput(f"{handle.name}: has no snapshot {snapshot_id}") from error


def _filter(handle: TableHandle, snapshot: Snapshot, state: PlanState) -> tuple[Schema, PlanFilter]:
    """The filter, bound to the schema it fits: clients name columns as they are now or as they
    were, whatever they say of the schema."""
    metadata = handle.metadata
    schemas = [metadata.schema(), metadata.schema_of(snapshot)]
    if state.use_snapshot_schema:
        schemas.reverse()
    problem: InvalidInput | None = None
    for schema in schemas:
        try:
            filter_ = bound_filter(state.filter, schema, case_sensitive=state.case_sensitive)
            return schema, filter_
        except InvalidInput as error:
            problem = problem or error
    assert problem is not None
    raise problem


@dataclass(slots=True)
class _Window:
    """Plans leaves one group after the other until there are enough files."""

    first: int
    end: int | None
    enough: int
    counts: list[int] = field(default_factory=list)
    leaves: int = 0

    def __call__(self, planner: LeafPlanner, leaves: Sequence[LeafRef]) -> Iterator[LeafPlan]:
        self.leaves = len(leaves) if self.end is None else min(self.end, len(leaves))
        at, group = self.first, 2
        while at < self.leaves and sum(self.counts) < self.enough:
            chosen = leaves[at : min(at + group, self.leaves)]
            for leaf_plan in planner.reader.map(chosen, planner.plan):
                self.counts.append(leaf_plan[0].num_rows)
                yield leaf_plan
            at += len(chosen)
            group = min(2 * group, MAX_AT_ONCE)

    @property
    def has_more(self) -> bool:
        return self.first + len(self.counts) < self.leaves


def _rest(state: PlanState, window: _Window, *, in_root: int, stop: int) -> tuple[PlanState, ...]:
    """States of what comes after row `stop` of the files that were found."""
    if stop < in_root:
        leaf, skip = -1, stop
    else:
        ends = np.cumsum([in_root, *window.counts])
        passed = int(np.searchsorted(ends, stop, side="right")) - 1
        leaf, skip = window.first + passed, stop - int(ends[passed])
    if state.end is not None or leaf < 0:
        return (structs.replace(state, leaf=leaf, skip=skip, end=state.end),)
    left = window.leaves - leaf
    cuts = sorted({leaf + left * i // FAN_OUT for i in range(FAN_OUT)} | {window.leaves})
    return tuple(
        structs.replace(state, leaf=start, skip=skip if start == leaf else 0, end=end)
        for start, end in pairwise(cuts)
    )


# --- increments --------------------------------------------------------------------------------


def _incremental(
    handle: TableHandle,
    last: Snapshot,
    state: PlanState,
    schema: Schema,
    filter_: PlanFilter,
    keys: Sequence[str],
    max_files: int,
) -> PlanPart:
    """Files that appends added after one snapshot and up to another. Deletes are no part of it."""
    reader = handle.reader()
    compiled = shape_of(handle.metadata).filter_of(filter_.where, schema)
    parts = {partition_key(f.field_id) for s in handle.metadata.partition_specs for f in s.fields}
    needed = {*FILE_KEYS, *CHANGE_KEYS, *keys, *parts, *compiled.required_keys}
    needs_little = {*keys, *compiled.required_keys} <= {*CHANGE_KEYS, *parts}
    batches: list[EntryBatch] = []
    for run in append_runs(_between(handle, state.start_snapshot_id, last)):
        if run[0].operation != "append":
            continue
        together = appended(reader, run) if needs_little else None
        if together is not None:
            batches.append(together.files)
            continue
        batches += [changes_of(reader, snapshot, keys=needed).added for snapshot in run]
    files = EntryBatch.concat(batches)
    if files.num_rows:
        files = files.filter(files.numpy("content_type") == ContentType.DATA)
        files = files.filter(compiled.prune(files).mask)
        files = files.with_column(MUST_MATCH, pa.array(compiled.must_match(files)))
        vectors = [key for key in files.keys if key.startswith("deletion_vector.")]
        files = files.without(*vectors, *(key for key in (LEAF,) if files.has(key)))
    stop = state.skip + max_files
    rest: tuple[PlanState, ...] = ()
    if stop < files.num_rows:
        rest = (structs.replace(state, leaf=-1, skip=stop, end=None),)
    return PlanPart(files=files.slice(state.skip, max_files), filter=filter_, rest=rest)


def _between(handle: TableHandle, start: int | None, last: Snapshot) -> list[Snapshot]:
    """Snapshots after `start` up to `last`, oldest first."""
    chain: list[Snapshot] = []
    snapshot: Snapshot | None = last
    while snapshot is not None and int(snapshot.snapshot_id) != start:
        chain.append(snapshot)
        parent = snapshot.parent_snapshot_id
        try:
            snapshot = None if parent is None else handle.snapshot(parent)
        except NotFound:
            snapshot = None
    if snapshot is None:
        raise InvalidInput(
            f"snapshot {start} is not an ancestor of {last.snapshot_id}, or has been expired"
        )
    return chain[::-1]


__all__ = ["Cancelled", "PlanPart", "part_of", "snapshot_of"]
