"""Which snapshots and refs are due to go: Iceberg's retention rules. Pure: the clock comes in.

A branch keeps its newest snapshots: a minimum number, and all that are young enough. A tag keeps
its snapshot. What no ref leads to goes when it is old. A ref other than main goes when its snapshot
is older than the ref may get.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from frazil.errors import InvalidInput
from frazil.format.metadata.metadata import MAIN, RefKind, Snapshot, SnapshotRef, TableMetadata
from frazil.properties.registry import MAX_REF_AGE_MS, MAX_SNAPSHOT_AGE_MS, MIN_SNAPSHOTS_TO_KEEP
from frazil.value_classes import frozen


@frozen
class Ancestry:
    """Snapshots by id, oldest first, with their parents and children."""

    snapshots: dict[int, Snapshot]
    children: dict[int, tuple[int, ...]]

    @staticmethod
    def of(snapshots: Iterable[Snapshot]) -> Ancestry:
        """The graph of a history."""
        snapshots_by_id = {int(snapshot.snapshot_id): snapshot for snapshot in snapshots}
        children: dict[int, tuple[int, ...]] = {}
        for id, snapshot in snapshots_by_id.items():
            parent = snapshot.parent_snapshot_id
            if parent is not None:
                children[int(parent)] = (*children.get(int(parent), ()), id)
        return Ancestry(snapshots=snapshots_by_id, children=children)

    def lineage(self, snapshot_id: int) -> Iterator[Snapshot]:
        """A snapshot and its ancestors, newest first, as far as they are kept."""
        current: int | None = snapshot_id
        seen: set[int] = set()
        while current is not None and current in self.snapshots and current not in seen:
            seen.add(current)
            snapshot = self.snapshots[current]
            yield snapshot
            parent = snapshot.parent_snapshot_id
            current = None if parent is None else int(parent)

    def neighbours(self, snapshot_ids: Iterable[int]) -> set[int]:
        """Parents and children of snapshots, without those themselves."""
        chosen = set(snapshot_ids)
        ids: set[int] = set()
        for id in chosen:
            parent = self.snapshots[id].parent_snapshot_id
            if parent is not None and int(parent) in self.snapshots:
                ids.add(int(parent))
            ids.update(self.children.get(id, ()))
        return ids - chosen


@frozen
class Retention:
    """What is kept where a ref has no rules of its own."""

    older_than_ms: int
    keep_last: int
    max_ref_age_ms: int
    now_ms: int

    @staticmethod
    def of(
        properties: Mapping[str, str],
        *,
        now_ms: int,
        older_than_ms: int | None = None,
        keep_last: int | None = None,
    ) -> Retention:
        """The table's rules, with what was asked for in their place."""
        if keep_last is not None and keep_last < 1:
            raise InvalidInput(f"keep_last is {keep_last}; at least one snapshot is kept")
        age = MAX_SNAPSHOT_AGE_MS.of(properties)
        return Retention(
            older_than_ms=now_ms - age if older_than_ms is None else older_than_ms,
            keep_last=MIN_SNAPSHOTS_TO_KEEP.of(properties) if keep_last is None else keep_last,
            max_ref_age_ms=MAX_REF_AGE_MS.of(properties),
            now_ms=now_ms,
        )


@frozen
class Due:
    """What goes: snapshots oldest first, and names."""

    snapshots: tuple[Snapshot, ...] = ()
    refs: tuple[str, ...] = ()


def due(metadata: TableMetadata, snapshots: Iterable[Snapshot], rules: Retention) -> Due:
    """What is due by the rules."""
    ancestry = Ancestry.of(snapshots)
    gone = tuple(
        name for name, ref in metadata.refs.items() if _is_stale(name, ref, ancestry, rules)
    )
    refs = {name: ref for name, ref in metadata.refs.items() if name not in gone}
    retained: set[int] = set()
    ref_targets: set[int] = set()
    for ref in refs.values():
        retained |= _kept_by(ref, ancestry, rules)
        if ref.kind is RefKind.BRANCH:
            ref_targets.update(int(s.snapshot_id) for s in ancestry.lineage(int(ref.snapshot_id)))
        ref_targets.add(int(ref.snapshot_id))
    retained |= {
        id
        for id, snapshot in ancestry.snapshots.items()
        if id not in ref_targets and snapshot.timestamp_ms >= rules.older_than_ms
    }
    due_now = [snapshot for id, snapshot in ancestry.snapshots.items() if id not in retained]
    return Due(snapshots=_oldest_first(due_now), refs=gone)


def chosen(metadata: TableMetadata, snapshots: Iterable[Snapshot], ids: Collection[int]) -> Due:
    """The snapshots of these ids; those that a branch or tag points at are refused."""
    snapshots_by_id = {int(snapshot.snapshot_id): snapshot for snapshot in snapshots}
    unknown = sorted(set(ids) - snapshots_by_id.keys())
    if unknown:
        raise InvalidInput(f"no snapshot {', '.join(map(str, unknown[:5]))}; it may have expired")
    names_by_target = {int(ref.snapshot_id): name for name, ref in metadata.refs.items()}
    held = [f"{id} ({names_by_target[id]})" for id in ids if id in names_by_target]
    if held:
        raise InvalidInput(
            f"branches or tags point at snapshots to expire: {', '.join(held[:5])}; "
            "move or drop them first"
        )
    return Due(snapshots=_oldest_first(snapshots_by_id[id] for id in set(ids)))


def _is_stale(name: str, ref: SnapshotRef, ancestry: Ancestry, rules: Retention) -> bool:
    snapshot = ancestry.snapshots.get(int(ref.snapshot_id))
    if name == MAIN or snapshot is None:
        return False
    max_age_ms = rules.max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
    return rules.now_ms - snapshot.timestamp_ms > max_age_ms


def _kept_by(ref: SnapshotRef, ancestry: Ancestry, rules: Retention) -> set[int]:
    if ref.kind is RefKind.TAG:
        return {int(ref.snapshot_id)}
    age = ref.max_snapshot_age_ms
    since = rules.older_than_ms if age is None else rules.now_ms - age
    min_snapshots = (
        rules.keep_last if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
    )
    retained: set[int] = {int(ref.snapshot_id)}
    for snapshot in ancestry.lineage(int(ref.snapshot_id)):
        id = int(snapshot.snapshot_id)
        if id not in retained and len(retained) >= min_snapshots and snapshot.timestamp_ms < since:
            break
        retained.add(id)
    return retained


def _oldest_first(snapshots: Iterable[Snapshot]) -> tuple[Snapshot, ...]:
    return tuple(
        sorted(snapshots, key=lambda snapshot: (snapshot.sequence_number, snapshot.timestamp_ms))
    )
