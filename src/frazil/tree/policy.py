"""When the tree adapts: arithmetic on shapes, no files and no clock.

A root keeps entries while it is small (`Keep`), moves carried ones to a leaf when it is not
(`flush`), sends a large commit straight to leaves (`new_to_leaf`), and folds leaves that are mostly
dead or small into new ones, one bounded group per commit (`compact`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frazil.errors import InvalidInput
from frazil.format.bitmap import MAX_POSITIONS

ROOT_MAX_DATA_ENTRIES = "write.root.max-data-entries"
ROOT_MAX_DELETE_ENTRIES = "write.root.max-delete-entries"
ROOT_TARGET_BYTES = "write.root.target-bytes"
LEAF_TARGET_ENTRIES = "write.leaf.target-entries"
LEAF_MAX_DEAD_RATIO = "write.leaf.max-dead-ratio"

_ABSORBED = 8
"""How many times the root's share of entries a leaf may hold that takes modified entries in."""
_MERGE_FANOUT = 8
"""Leaves of one size class that are merged at once: each entry is rewritten log₈(n) times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Where the tree adapts. Defaults were chosen by measurement; see docs/decisions."""

    root_max_data_entries: int = 100
    root_max_delete_entries: int = 100
    root_target_bytes: int = 512 * 1024
    leaf_target_entries: int = 20_000
    leaf_max_dead_ratio: float = 0.5

    @staticmethod
    def of(properties: Mapping[str, str]) -> Thresholds:
        """The thresholds that table properties ask for."""
        usual = _USUAL
        return Thresholds(
            root_max_data_entries=_integer(
                properties, ROOT_MAX_DATA_ENTRIES, usual.root_max_data_entries
            ),
            root_max_delete_entries=_integer(
                properties, ROOT_MAX_DELETE_ENTRIES, usual.root_max_delete_entries
            ),
            root_target_bytes=_integer(properties, ROOT_TARGET_BYTES, usual.root_target_bytes),
            leaf_target_entries=_integer(
                properties, LEAF_TARGET_ENTRIES, usual.leaf_target_entries, most=MAX_POSITIONS
            ),
            leaf_max_dead_ratio=_ratio(properties, LEAF_MAX_DEAD_RATIO, usual.leaf_max_dead_ratio),
        )


_USUAL = Thresholds()


def _integer(
    properties: Mapping[str, str], name: str, default: int, *, most: int | None = None
) -> int:
    text = properties.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise InvalidInput(f"table property {name} is {text!r}; expected a whole number above 0")
    if most is not None and int(text) > most:
        raise InvalidInput(f"table property {name} is {text}; expected at most {most}")
    return int(text)


def _ratio(properties: Mapping[str, str], name: str, default: float) -> float:
    text = properties.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1:
        raise InvalidInput(f"table property {name} is {text!r}; expected a number in (0, 1]")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RootShape:
    """A root about to be written, in numbers."""

    carried_data: int
    carried_deletes: int
    carried_bytes: int
    new_data: int
    new_deletes: int
    leaves: Sequence[LeafShape] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do in addition to writing the root. If every field is false or empty, the tree is
    left
    unchanged."""

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
        compact=compaction(shape.leaves, limits),
    )


def compaction(leaves: Sequence[LeafShape], limits: Thresholds) -> tuple[int, ...]:
    """One group of leaves worth rewriting now, or none. Its live entries fit one leaf."""
    crowded = [
        leaf
        for leaf in leaves
        if leaf.live and leaf.entries and leaf.dead / leaf.entries > limits.leaf_max_dead_ratio
    ]
    if crowded:
        return _fitting(crowded, limits.leaf_target_entries, least=1)
    classes: dict[tuple[bool, int], list[LeafShape]] = {}
    for leaf in leaves:
        if 0 < leaf.live <= limits.leaf_target_entries // 2:
            classes.setdefault((leaf.holds_data, _size_class(leaf.live)), []).append(leaf)
    for group in classes.values():
        if len(group) >= _MERGE_FANOUT:
            return _fitting(group, limits.leaf_target_entries, least=2)
    return ()


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


def _fitting(leaves: Sequence[LeafShape], target: int, *, least: int) -> tuple[int, ...]:
    """The first leaves of one kind whose live entries fit one leaf together."""
    first = leaves[0]
    chosen = [first]
    total = first.live
    for leaf in leaves[1:]:
        if leaf.holds_data == first.holds_data and total + leaf.live <= target:
            chosen.append(leaf)
            total += leaf.live
    return tuple(leaf.row for leaf in chosen) if len(chosen) >= least else ()


def _size_class(entries: int) -> int:
    size, bound = 0, _MERGE_FANOUT
    while entries >= bound:
        size, bound = size + 1, bound * _MERGE_FANOUT
    return size
