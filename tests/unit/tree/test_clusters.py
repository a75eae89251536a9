"""In whose bounds entries lie: what decides which leaf a flushed entry joins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from frazil.format.entries.batch import EntryBatch
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.transforms import BucketTransform, IdentityTransform
from frazil.tree.clusters import cluster_columns, entries_within, outside_bounds
from frazil.tree.policy import LeafShape, Thresholds, absorbing
from tests.support.trees import Bench

ID, COUNTRY = 1, 2


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def _entries(*bounds: tuple[int | None, int | None, str | None]) -> EntryBatch:
    """Entries with a lower and upper bound of `id`, and one country."""
    rows: list[dict[str, Any]] = [
        {
            "location": str(index),
            f"content_stats.{ID}.lower_bound": low,
            f"content_stats.{ID}.upper_bound": high,
            f"content_stats.{COUNTRY}.lower_bound": country,
            f"content_stats.{COUNTRY}.upper_bound": country,
        }
        for index, (low, high, country) in enumerate(bounds)
    ]
    types = {f"content_stats.{ID}.{name}": pa.int64() for name in ("lower_bound", "upper_bound")}
    types |= {f"content_stats.{COUNTRY}.{name}_bound": pa.string() for name in ("lower", "upper")}
    return EntryBatch.from_rows(rows, types)


def test_an_entry_lies_within_a_leaf_that_it_would_not_widen(bench: Bench) -> None:
    entries = _entries((1, 2, None), (5, 9, None), (None, None, None))
    leaves = _entries((1, 5, None), (1, 9, None), (6, 7, None), (None, None, None))
    assert entries_within(entries, leaves, bench.metadata).tolist() == [2, 3, 1, 0]


def test_every_column_that_leaves_are_clustered_by_counts(bench: Bench) -> None:
    entries = _entries((1, 2, "de"), (1, 2, "fr"))
    leaves = _entries((0, 9, "de"), (0, 9, "pl"))
    assert entries_within(entries, leaves, bench.metadata).tolist() == [1, 0]


def test_strays_would_widen_what_the_others_cover(bench: Bench) -> None:
    others = _entries((10, 12, None), (11, 20, None))
    entries = _entries((10, 20, None), (9, 11, None), (15, 21, None), (None, None, None))
    assert outside_bounds(entries, others, bench.metadata).tolist() == [False, True, True, False]
    assert outside_bounds(entries, others.slice(0, 0), bench.metadata).all()


def test_without_bounds_nothing_strays(bench: Bench) -> None:
    plain = EntryBatch.from_rows([{"location": "a"}])
    assert not outside_bounds(_entries((1, 2, None)), plain, bench.metadata).any()
    assert entries_within(_entries((1, 2, None)), plain, bench.metadata).tolist() == [0]


def test_partitions_come_first_derived_ones_by_their_own_id(tmp_path: Path) -> None:
    spec = PartitionSpec(
        PartitionField(
            source_id=COUNTRY, field_id=1000, transform=IdentityTransform(), name="country"
        ),
        PartitionField(source_id=ID, field_id=1001, transform=BucketTransform(4), name="part"),
        spec_id=0,
    )
    metadata = Bench(tmp_path, spec=spec).metadata
    derived = metadata.expressions[0].expr_id
    assert [id for id, _ in cluster_columns(metadata)] == [COUNTRY, derived, ID, COUNTRY]


LIMITS = Thresholds(root_max_data_entries=10, leaf_target_entries=60)


def _leaf(row: int, live: int, **more: Any) -> LeafShape:
    return LeafShape(row=row, entries=live + more.get("dead", 0), **{"dead": 0, **more})


@pytest.mark.parametrize(
    ("leaves", "within", "chosen"),
    [
        ([_leaf(0, 20), _leaf(1, 20)], [6, 5], (0,)),  # more than half, not half
        ([_leaf(0, 20), _leaf(1, 20), _leaf(2, 20)], [9, 9, 9], (0, 1)),  # 60 fit, 10 are new
        ([_leaf(0, 51), _leaf(1, 50)], [9, 9], (1,)),
        ([_leaf(0, 20, holds_data=False)], [9], ()),
        ([_leaf(0, 0, dead=5)], [9], ()),
        ([], [], ()),
    ],
)
def test_leaves_that_most_entries_lie_in_take_them(
    leaves: list[LeafShape], within: list[int], chosen: tuple[int, ...]
) -> None:
    assert absorbing(leaves, within, 10, LIMITS) == chosen
