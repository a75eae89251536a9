"""Which snapshots and refs are due to go: Iceberg's retention rules. Pure: the clock comes in.

A branch keeps its newest snapshots: a minimum number, and all that are young enough. A tag keeps
its snapshot. What no ref leads to goes when it is old. A ref other than main goes when its snapshot
is older than the ref may get.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from frazil.errors import InvalidInput
from frazil.format.metadata import MAIN, RefKind, Snapshot, SnapshotRef, TableMetadata
from frazil.maintenance.ancestry import Ancestry

MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE = "history.expire.max-ref-age-ms"

DEFAULT_MAX_SNAPSHOT_AGE_MS = 5 * 24 * 3600 * 1000
DEFAULT_MIN_SNAPSHOTS = 1
FOREVER_MS = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
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
        age = _number(properties, MAX_SNAPSHOT_AGE, DEFAULT_MAX_SNAPSHOT_AGE_MS)
        return Retention(
            older_than_ms=now_ms - age if older_than_ms is None else older_than_ms,
            keep_last=_number(properties, MIN_SNAPSHOTS, DEFAULT_MIN_SNAPSHOTS)
            if keep_last is None
            else keep_last,
            max_ref_age_ms=_number(properties, MAX_REF_AGE, FOREVER_MS),
            now_ms=now_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
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
    kept: set[int] = set()
    named: set[int] = set()
    for ref in refs.values():
        kept |= _kept_by(ref, ancestry, rules)
        if ref.kind is RefKind.BRANCH:
            named.update(int(s.snapshot_id) for s in ancestry.lineage(int(ref.snapshot_id)))
        named.add(int(ref.snapshot_id))
    kept |= {
        id
        for id, snapshot in ancestry.snapshots.items()
        if id not in named and snapshot.timestamp_ms >= rules.older_than_ms
    }
    due_now = [snapshot for id, snapshot in ancestry.snapshots.items() if id not in kept]
    return Due(snapshots=_oldest_first(due_now), refs=gone)


def chosen(metadata: TableMetadata, snapshots: Iterable[Snapshot], ids: Collection[int]) -> Due:
    """The snapshots of these ids; those that a branch or tag points at are refused."""
    known = {int(snapshot.snapshot_id): snapshot for snapshot in snapshots}
    unknown = sorted(set(ids) - known.keys())
    if unknown:
        raise InvalidInput(f"no snapshot {', '.join(map(str, unknown[:5]))}; it may have expired")
    named = {int(ref.snapshot_id): name for name, ref in metadata.refs.items()}
    held = [f"{id} ({named[id]})" for id in ids if id in named]
    if held:
        raise InvalidInput(
            f"branches or tags point at snapshots to expire: {', '.join(held[:5])}; "
            "move or drop them first"
        )
    return Due(snapshots=_oldest_first(known[id] for id in set(ids)))


def _is_stale(name: str, ref: SnapshotRef, ancestry: Ancestry, rules: Retention) -> bool:
    snapshot = ancestry.snapshots.get(int(ref.snapshot_id))
    if name == MAIN or snapshot is None:
        return False
    most = rules.max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
    return rules.now_ms - snapshot.timestamp_ms > most


def _kept_by(ref: SnapshotRef, ancestry: Ancestry, rules: Retention) -> set[int]:
    if ref.kind is RefKind.TAG:
        return {int(ref.snapshot_id)}
    age = ref.max_snapshot_age_ms
    since = rules.older_than_ms if age is None else rules.now_ms - age
    least = rules.keep_last if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
    kept: set[int] = {int(ref.snapshot_id)}
    for snapshot in ancestry.lineage(int(ref.snapshot_id)):
        id = int(snapshot.snapshot_id)
        if id not in kept and len(kept) >= least and snapshot.timestamp_ms < since:
            break
        kept.add(id)
    return kept


def _oldest_first(snapshots: Iterable[Snapshot]) -> tuple[Snapshot, ...]:
    return tuple(sorted(snapshots, key=lambda each: (each.sequence_number, each.timestamp_ms)))


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(f"table property {name} is {text!r}; expected a whole number")
    return int(text)
