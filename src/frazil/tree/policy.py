"""When the tree adapts: arithmetic on shapes, no files and no clock.

A root keeps entries while it is small, moves carried ones to a leaf when it is not
(`flush`), sends a large commit straight to leaves (`new_to_leaf`), and folds leaves that are mostly
dead or small into new ones, one bounded group per commit (`compact`). A commit with no such group
converts a few manifests of v1 to v3 instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frazil.properties.registry import (
    LEAF_MAX_DEAD_RATIO,
    LEAF_TARGET_ENTRIES,
    ROOT_MAX_DATA_ENTRIES,
    ROOT_MAX_DELETE_ENTRIES,
    ROOT_TARGET_BYTES,
)
from frazil.value_classes import frozen

_ABSORBED = 16
"""How many times the root's share of entries a leaf may hold that takes modified entries in."""
_MERGE_FANOUT = 8
"""Leaves of one size class that are merged at once: each entry is rewritten log₈(n) times."""
_MOST_LEAVES = 500
"""Full leaves a table may have before those written in bulk become larger: each costs every commit
about 20 µs, as all are in the root."""
_MOST_GROWN = 16 * LEAF_TARGET_ENTRIES.default
_MOST_STATISTICS = 12 * _MOST_GROWN
"""Entries times columns of a leaf that has grown: it is written from memory."""
_AGED_OUT = 4
"""Manifests of v1 to v3 that one commit converts: few, so that a small commit stays quick."""


@frozen
class Thresholds:
    """Where the tree adapts. Defaults were chosen by measurement; see docs/decisions."""

    root_max_data_entries: int = ROOT_MAX_DATA_ENTRIES.default
    root_max_delete_entries: int = ROOT_MAX_DELETE_ENTRIES.default
    root_target_bytes: int = ROOT_TARGET_BYTES.default
    leaf_target_entries: int = LEAF_TARGET_ENTRIES.default
    leaf_max_dead_ratio: float = LEAF_MAX_DEAD_RATIO.default

    @staticmethod
    def of(properties: Mapping[str, str]) -> Thresholds:
        """The thresholds that table properties ask for."""
        return Thresholds(
            root_max_data_entries=ROOT_MAX_DATA_ENTRIES.of(properties),
            root_max_delete_entries=ROOT_MAX_DELETE_ENTRIES.of(properties),
            root_target_bytes=ROOT_TARGET_BYTES.of(properties),
            leaf_target_entries=LEAF_TARGET_ENTRIES.of(properties),
            leaf_max_dead_ratio=LEAF_MAX_DEAD_RATIO.of(properties),
        )


def bulk_leaf_entries(properties: Mapping[str, str], *, files: int, columns: int) -> int:
    """Entries of a leaf that is written in bulk, by a large commit or a rewrite, in a table of so
    many files: what the property says, or else more the more files there are.

    Leaves that a small commit merges keep to the default, so that it stays quick.
    """
    entries = LEAF_TARGET_ENTRIES.of(properties)
    if LEAF_TARGET_ENTRIES.key in properties:
        return entries
    while (
        files > _MOST_LEAVES * entries
        and entries < _MOST_GROWN
        and 2 * entries * columns <= _MOST_STATISTICS
    ):
        entries *= 2
    return entries


@frozen
class LeafShape:
    """A leaf as the policy sees it. Only leaves that this commit does not touch are given."""

    row: int
    entries: int
    dead: int
    holds_data: bool = True

    @property
    def live(self) -> int:
        """Entries that are part of the snapshot."""
        return self.entries - self.dead


@frozen
class RootShape:
    """A root about to be written, in numbers."""

    carried_data: int
    carried_deletes: int
    carried_bytes: int
    new_data: int
    new_deletes: int
    leaves: Sequence[LeafShape] = ()
    old_leaves: Sequence[LeafShape] = ()
    """Data manifests of v1 to v3 that could be converted."""


@frozen
class Decision:
    """What to do in addition to writing the root. If every field is false or empty, the tree is
    left unchanged."""

    flush_data: bool = False
    flush_deletes: bool = False
    new_data_to_leaf: bool = False
    new_deletes_to_leaf: bool = False
    compact: tuple[int, ...] = ()


def decide(shape: RootShape, limits: Thresholds) -> Decision:
    """How the tree adapts with this commit."""
    heavy = shape.carried_bytes >= limits.root_target_bytes
    return Decision(
        flush_data=shape.carried_data >= limits.root_max_data_entries
        or (heavy and shape.carried_data > 0),
        flush_deletes=shape.carried_deletes >= limits.root_max_delete_entries,
        new_data_to_leaf=shape.new_data > limits.root_max_data_entries,
        new_deletes_to_leaf=shape.new_deletes > limits.root_max_delete_entries,
        compact=compaction(shape.leaves, limits) or aging(shape.old_leaves, limits),
    )


def compaction(leaves: Sequence[LeafShape], limits: Thresholds) -> tuple[int, ...]:
    """One group of leaves worth rewriting now, or none. Its live entries fit one leaf."""
    crowded = [
        leaf
        for leaf in leaves
        if leaf.live and leaf.entries and leaf.dead / leaf.entries > limits.leaf_max_dead_ratio
    ]
    if crowded:
        return _fitting(crowded, limits.leaf_target_entries, min_leaves=1)
    classes: dict[tuple[bool, int], list[LeafShape]] = {}
    for leaf in leaves:
        if 0 < leaf.live <= limits.leaf_target_entries // 2:
            classes.setdefault((leaf.holds_data, _size_class(leaf.live)), []).append(leaf)
    for group in classes.values():
        if len(group) >= _MERGE_FANOUT:
            return _fitting(group, limits.leaf_target_entries, min_leaves=2)
    return ()


def aging(leaves: Sequence[LeafShape], limits: Thresholds) -> tuple[int, ...]:
    """A few manifests of v1 to v3 to convert now: together they fit one leaf, or it is one."""
    alive = [leaf for leaf in leaves if leaf.live]
    if not alive:
        return ()
    return _fitting(alive, limits.leaf_target_entries, min_leaves=1)[:_AGED_OUT]


def absorbing(
    leaves: Sequence[LeafShape], within: Sequence[int], modified: int, limits: Thresholds
) -> tuple[int, ...]:
    """Leaves that entries modified since they were added join when they are flushed.

    `within` says of each leaf how many of the entries lie in its bounds: where most do, the leaf
    stays as narrow as it was. Leaves that are large are left alone, so what one flush rewrites is
    bounded.
    """
    room = min(limits.leaf_target_entries, _ABSORBED * limits.root_max_data_entries) - modified
    chosen: list[int] = []
    for leaf, count in zip(leaves, within, strict=True):
        if leaf.holds_data and 2 * count > modified and 0 < leaf.live <= room:
            chosen.append(leaf.row)
            room -= leaf.live
    return tuple(chosen)


def _fitting(leaves: Sequence[LeafShape], target: int, *, min_leaves: int) -> tuple[int, ...]:
    """The first leaves of one kind whose live entries fit one leaf together."""
    first = leaves[0]
    chosen = [first]
    total = first.live
    for leaf in leaves[1:]:
        if leaf.holds_data == first.holds_data and total + leaf.live <= target:
            chosen.append(leaf)
            total += leaf.live
    return tuple(leaf.row for leaf in chosen) if len(chosen) >= min_leaves else ()


def _size_class(entries: int) -> int:
    size, bound = 0, _MERGE_FANOUT
    while entries >= bound:
        size, bound = size + 1, bound * _MERGE_FANOUT
    return size
