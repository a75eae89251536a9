"""When the tree adapts: arithmetic on shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.errors import InvalidInput
from frazil.tree.policy import (
    Decision,
    LeafShape,
    RootShape,
    Thresholds,
    aging,
    bulk_leaf_entries,
    compaction,
    decide,
)

LIMITS = Thresholds(
    root_max_data_entries=10,
    root_max_delete_entries=4,
    root_target_bytes=1000,
    leaf_target_entries=100,
    leaf_max_dead_ratio=0.5,
)


def _shape(**more: int) -> RootShape:
    usual: dict[str, Any] = {"carried_data": 0, "carried_deletes": 0, "carried_bytes": 0}
    return RootShape(**{**usual, "new_data": 0, "new_deletes": 0, **more})


@pytest.mark.parametrize(
    ("shape", "decision"),
    [
        (_shape(), Decision()),
        (_shape(carried_data=9, new_data=10), Decision()),
        (_shape(carried_data=10), Decision(flush_data=True)),
        (_shape(carried_deletes=4), Decision(flush_deletes=True)),
        (_shape(carried_data=1, carried_bytes=1000), Decision(flush_data=True)),
        (_shape(carried_bytes=1000), Decision()),
        (_shape(new_data=11), Decision(new_data_to_leaf=True)),
        (_shape(new_deletes=5), Decision(new_deletes_to_leaf=True)),
    ],
)
def test_a_root_is_kept_flushed_or_passed_by(shape: RootShape, decision: Decision) -> None:
    assert decide(shape, LIMITS) == decision


def _leaves(*sizes: tuple[int, int], data: bool = True) -> list[LeafShape]:
    return [
        LeafShape(row=row, entries=entries, dead=dead, holds_data=data)
        for row, (entries, dead) in enumerate(sizes)
    ]


def test_leaves_that_are_mostly_dead_are_rewritten() -> None:
    assert compaction(_leaves((100, 50), (100, 51), (100, 0)), LIMITS) == (1,)
    assert compaction(_leaves((100, 60), (100, 70), (100, 80)), LIMITS) == (0, 1, 2)


def test_what_is_rewritten_at_once_fits_one_leaf() -> None:
    crowded = _leaves((140, 71), (140, 71), (10, 6))
    assert compaction(crowded, LIMITS) == (0, 2)  # 69 and 4 live, another 69 would not fit


def test_a_leaf_with_nothing_alive_is_not_rewritten() -> None:
    assert compaction(_leaves((100, 100)), LIMITS) == ()


def test_eight_small_leaves_of_a_size_are_merged() -> None:
    assert compaction(_leaves(*[(2, 0)] * 7), LIMITS) == ()
    assert compaction(_leaves(*[(2, 0)] * 8), LIMITS) == tuple(range(8))
    assert compaction(_leaves(*[(2, 0)] * 4, *[(20, 0)] * 4), LIMITS) == ()
    assert compaction(_leaves(*[(51, 0)] * 8), LIMITS) == ()


def test_data_and_delete_leaves_are_not_merged_with_each_other() -> None:
    mixed = [
        *_leaves(*[(2, 0)] * 4),
        *(LeafShape(row=4 + n, entries=2, dead=0, holds_data=False) for n in range(4)),
    ]
    assert compaction(mixed, LIMITS) == ()
    crowded = [
        LeafShape(row=0, entries=4, dead=3),
        LeafShape(row=1, entries=4, dead=3, holds_data=False),
    ]
    assert compaction(crowded, LIMITS) == (0,)


def test_each_entry_is_rewritten_a_logarithmic_number_of_times() -> None:
    """A table that grows by leaves of one entry: merges stay a small factor of what was added."""
    leaves: list[int] = []
    written = 0
    for _ in range(2000):
        leaves.append(1)
        shapes = [LeafShape(row=row, entries=size, dead=0) for row, size in enumerate(leaves)]
        merged = compaction(shapes, Thresholds(leaf_target_entries=100_000))
        if merged:
            total = sum(leaves[row] for row in merged)
            written += total
            leaves = [size for row, size in enumerate(leaves) if row not in merged] + [total]
    assert sum(leaves) == 2000
    assert len(leaves) < 40
    assert written <= 4 * 2000  # log to the base of eight of 2000, rounded up


def test_a_few_old_manifests_are_converted_at_once() -> None:
    limits = Thresholds(leaf_target_entries=100)
    assert aging(_leaves(*[(10, 0)] * 9), limits) == (0, 1, 2, 3)
    assert aging(_leaves((60, 0), (60, 0), (30, 0)), limits) == (0, 2)
    assert aging(_leaves((500, 0), (10, 0)), limits) == (0,)
    assert aging(_leaves((10, 10)), limits) == ()


def test_old_manifests_wait_for_leaves_that_need_compaction() -> None:
    old = [LeafShape(row=7, entries=10, dead=0)]
    shape = replace(_shape(), leaves=_leaves((10, 9), (10, 0)), old_leaves=old)
    assert decide(shape, Thresholds()).compact == (0,)
    assert decide(replace(shape, leaves=()), Thresholds()).compact == (7,)


def test_thresholds_come_from_properties() -> None:
    assert Thresholds.of({}) == Thresholds()
    asked = Thresholds.of(
        {
            "write.root.max-data-entries": "7",
            "write.root.max-delete-entries": "8",
            "write.root.target-bytes": "9",
            "write.leaf.target-entries": "10",
            "write.leaf.max-dead-ratio": "0.25",
        }
    )
    assert asked == Thresholds(
        root_max_data_entries=7,
        root_max_delete_entries=8,
        root_target_bytes=9,
        leaf_target_entries=10,
        leaf_max_dead_ratio=0.25,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.root.max-data-entries", "0"),
        ("write.root.max-data-entries", "-1"),
        ("write.root.max-data-entries", "many"),
        ("write.root.max-data-entries", "²"),
        ("write.leaf.target-entries", "2097153"),  # more positions than a bitmap holds
        ("write.leaf.max-dead-ratio", "0"),
        ("write.leaf.max-dead-ratio", "1.5"),
        ("write.leaf.max-dead-ratio", "nan"),
        ("write.leaf.max-dead-ratio", "half"),
    ],
)
def test_a_threshold_that_makes_no_sense_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        Thresholds.of({name: value})


@pytest.mark.parametrize(
    ("files", "columns", "entries"),
    [
        (0, 12, 20_000),
        (10_000_000, 12, 20_000),  # 500 leaves
        (10_000_001, 12, 40_000),
        (100_000_000, 12, 320_000),
        (1_000_000_000, 12, 320_000),  # 3,125 leaves instead of 50,000
        (1_000_000_000, 24, 160_000),
        (1_000_000_000, 200, 20_000),
    ],
)
def test_leaves_written_in_bulk_grow_with_the_table(files: int, columns: int, entries: int) -> None:
    assert bulk_leaf_entries({}, files=files, columns=columns) == entries


def test_a_leaf_size_that_is_set_does_not_grow() -> None:
    asked = {"write.leaf.target-entries": "20000"}
    assert bulk_leaf_entries(asked, files=10**9, columns=1) == 20_000
