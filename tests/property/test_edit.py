"""Random sequences of commits against a model: a dict of live files and their deleted rows.

After every commit the live files are the model's, the change set is the difference of the model
before and after, and the tree keeps its rules. At the end every snapshot still says what it said.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.commit.change import Change
from frazil.format.entries.fields import stats_key
from frazil.format.vectors import bitmap
from frazil.tree.read import LeafRef
from tests.support.trees import ROWS, Bench, bounds, located

TINY = {
    "write.root.max-data-entries": "2",
    "write.root.max-delete-entries": "2",
    "write.leaf.target-entries": "4",
    "write.leaf.max-dead-ratio": "0.4",
}

Vectors = frozenset[int]
Live = dict[str, Vectors]


@dataclass
class Model:
    """What the table should hold."""

    live: Live = field(default_factory=dict)
    row_ids: dict[str, int] = field(default_factory=dict)
    ages: dict[str, int] = field(default_factory=dict)
    ever_dead: set[str] = field(default_factory=set)
    made: int = 0

    def new_names(self, count: int) -> list[str]:
        first = self.made
        self.made += count
        return [f"F{first + index}" for index in range(count)]


def _value(name: str) -> int:
    """The one value of `id` in a file: spread out, so that leaves get different bounds."""
    return int(name[1:]) * 7919 % 1000


step = st.tuples(
    st.sampled_from(["append", "remove", "rows", "swap", "rewrite", "delta", "leaves"]),
    st.integers(min_value=1, max_value=5),
    st.randoms(use_true_random=False),
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(step, min_size=1, max_size=14))
def test_a_sequence_of_commits_leaves_what_the_model_has(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), properties=TINY)
        model = Model()
        told: list[Live] = []
        for operation, count, random in steps:
            before = dict(model.live)
            change, replaced = _change(bench, model, operation, count, random)
            if change is None:
                continue
            bench.commit(change)
            told.append(dict(model.live))
            _check_change_set(bench, before, model.live, replaced)
            _check_tree(bench, model)
        for snapshot, live in zip(bench.head.snapshots(), told, strict=True):
            assert bench.live(snapshot) == _sorted(live)


def _change(
    bench: Bench, model: Model, operation: str, count: int, random: Any
) -> tuple[Change | None, set[str]]:
    """A change, made to the model too; and the files that leave as REPLACED for good."""
    base = bench.tip_id()
    picked = random.sample(sorted(model.live), min(count, len(model.live)))
    if operation == "append":
        return Change(added=_new(bench, model, count), base_snapshot_id=base), set()
    if operation == "leaves":
        leaves = [] if base is None else [leaf.location for leaf in bench.tree().leaves()]
        chosen = tuple(random.sample(leaves, min(count, len(leaves))))
        return (Change(rewrite_leaves=chosen) if chosen else None), set()
    if not picked:
        return None, set()
    if operation in ("remove", "swap", "rewrite"):
        for name in picked:
            del model.live[name]
        model.ever_dead.update(picked)
        if operation == "remove":
            return Change(removed=located(*picked), base_snapshot_id=base), set()
        if operation == "swap":
            new = _new(bench, model, count)
            return Change(removed=located(*picked), added=new, base_snapshot_id=base), set()
        age = min(model.ages[name] for name in picked)
        new = _new(bench, model, 1, age=age)
        change = Change(
            replaced=located(*picked), added=new, is_rewrite=True, base_snapshot_id=base
        )
        return change, set(picked)
    edits = []
    for name in picked:
        rows = random.sample(range(ROWS), random.randint(1, 3))
        model.live[name] = model.live[name] | frozenset(rows)
        edits.append(bench.vector(name, *sorted(rows)))
    added = _new(bench, model, count) if operation == "delta" else None
    return Change(vectors=tuple(edits), added=added, base_snapshot_id=base), set()


def _new(bench: Bench, model: Model, count: int, *, age: int | None = None) -> Any:
    names = model.new_names(count)
    metadata = bench.metadata
    for name in names:
        model.live[name] = frozenset()
        model.ages[name] = metadata.last_sequence_number + 1 if age is None else age
    given_age = {} if age is None else {"tracking.sequence_number": age}
    return bench.entries(
        [
            {"location": name, **bounds(1, _value(name), _value(name) + 3), **given_age}
            for name in names
        ]
    )


def _check_change_set(bench: Bench, before: Live, after: Live, replaced: set[str]) -> None:
    kept = before.keys() & after.keys()
    modified = sorted(name for name in kept if before[name] != after[name])
    again = [name for name in kept if before[name] == after[name]]
    expected = {
        "added": sorted(after.keys() - before.keys()),
        "deleted": sorted(before.keys() - after.keys() - replaced),
        "replaced": sorted({*replaced, *modified}),
        "modified": modified,
    }
    found = bench.changes()
    # A vector that repeats rows which are deleted already replaces its entry all the same.
    for part in ("replaced", "modified"):
        found[part] = [name for name in found.get(part, []) if name not in again]
    assert {part: found.get(part, []) for part in expected} == expected


def _check_tree(bench: Bench, model: Model) -> None:
    assert bench.live() == _sorted(model.live)
    reader, tree = bench.reader(), bench.tree()
    root = tree.root
    for key in ("snapshot_id", "sequence_number", "file_sequence_number"):
        assert not root.column(f"tracking.{key}").null_count
    for batch in reader.all_live(tree):
        for index in range(batch.num_rows):
            row = batch.row(index)
            name = row["location"]
            assert name not in model.ever_dead
            assert row["tracking.sequence_number"] == model.ages[name]
            first = row["tracking.first_row_id"]
            assert model.row_ids.setdefault(name, first) == first
    starts = sorted(model.row_ids.values())
    assert all(later - first >= ROWS for first, later in pairwise(starts))
    for leaf in tree.leaves():
        _check_leaf(bench, leaf)


def _check_leaf(bench: Bench, leaf: LeafRef) -> None:
    reader, root = bench.reader(), bench.tree().root
    entry = root.row(leaf.row)
    whole, live = reader.entries(leaf), reader.live(leaf)
    status = whole.numpy("tracking.status")
    assert entry["record_count"] == whole.num_rows <= 4
    assert entry["manifest_info.added_files_count"] == int((status == 1).sum())
    assert entry["manifest_info.existing_files_count"] == int((status == 0).sum())
    assert len(set(status.tolist())) == 1, "new and carried entries share a leaf"
    dead = set(leaf.dead_positions().tolist())
    changed = [
        set(bitmap.decode(entry[key]).tolist())
        for key in ("tracking.deleted_positions", "tracking.replaced_positions")
        if key in entry
    ]
    assert set().union(*changed) <= dead
    assert sum(map(len, changed)) == len(set().union(*changed))
    if live.num_rows:
        assert entry["manifest_info.min_sequence_number"] <= int(
            np.min(live.numpy("tracking.sequence_number"))
        )
        lower = entry[stats_key(1, "lower_bound")]
        upper = entry[stats_key(1, "upper_bound")]
        assert lower <= min(live.pylist(stats_key(1, "lower_bound")))
        assert upper >= max(live.pylist(stats_key(1, "upper_bound")))
        assert not (dead and entry[stats_key(1, "tight_bounds")])


def _sorted(live: Live) -> dict[str, tuple[int, ...]]:
    return {name: tuple(sorted(rows)) for name, rows in live.items()}
