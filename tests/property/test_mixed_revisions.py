"""Trees whose manifests have several revisions of the format say what trees of one revision say.

The same commits go to three tables: two that keep one revision, and one whose property changes
between commits. Names, ids and clocks are the same, so live files, change sets, plans and roots can
be compared as they are.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.commit.change import Change
from frazil.commit.updates import SetProperties
from frazil.filter.text.filter_text import parse
from frazil.format.entries import manifest
from frazil.format.entries.fields import ContentType
from frazil.maintenance.check.check_leaf import check_counts, plain_entry
from frazil.maintenance.check.problems import Problems
from frazil.scan.plan import plan
from tests.support.trees import ROWS, Bench, bounds, located

TINY = {
    "write.root.max-data-entries": "2",
    "write.root.max-delete-entries": "2",
    "write.leaf.target-entries": "4",
    "write.leaf.max-dead-ratio": "0.4",
}
REVISIONS = ("1.12", "2026-10")

step = st.tuples(
    st.sampled_from(["append", "remove", "rows", "rows", "equality", "leaves"]),
    st.integers(0, 20),
    st.sampled_from(REVISIONS),
)


def _value(name: str) -> int:
    return int(name[1:]) * 7919 % 100


def _change(bench: Bench, number: int, operation: str, choice: int) -> Change | None:
    """The next commit, worked out from what is live: the same for tables that hold the same."""
    base = bench.tip_id()
    held = {} if base is None else bench.live()
    live = sorted(name for name in held if name.startswith("F"))
    if operation == "append" or not live:
        names = [f"F{number * 10 + index}" for index in range(1 + choice % 4)]
        rows = [{"location": name, **bounds(1, _value(name), _value(name))} for name in names]
        return Change(added=bench.entries(rows))
    picked = live[choice % len(live)]
    if operation == "remove":
        return Change(removed=located(picked), base_snapshot_id=base)
    if operation == "rows":
        gone = set(held[picked])
        left = [row for row in range(ROWS) if row not in gone]
        return (
            None
            if not left
            else Change(
                vectors=(bench.vector(picked, left[choice % len(left)]),), base_snapshot_id=base
            )
        )
    if operation == "equality":
        kind = int(ContentType.EQUALITY_DELETES)
        return Change(added=bench.files(f"E{number}", content_type=kind, equality_ids=[1]))
    leaves = tuple(leaf.location for leaf in bench.tree().leaves())
    return Change(rewrite_leaves=leaves, base_snapshot_id=base) if leaves else None


def _planned(bench: Bench, value: int) -> list[tuple[Any, ...]]:
    where = parse(f"id = {value}", bench.metadata.schema())
    found = plan(bench.reader(), bench.tip, where=where).files
    keys = ("location", "tracking.first_row_id", "deletion_vector.cardinality")
    return sorted(zip(*(found.pylist(key) for key in keys), strict=True))


def _revisions(bench: Bench) -> set[str]:
    found = set()
    for name in bench.stored():
        if name.endswith(".parquet"):
            path = f"{bench.location}/{name}"
            found.add(manifest.describe(bench.storage.read(path), path=path)["revision"])
    return found


def _check_counted(bench: Bench) -> None:
    """What a root counts of a leaf is what the leaf holds, whichever revision either has."""
    problems = Problems()
    tree = bench.tree()
    for leaf in tree.leaves():
        path = f"{bench.location}/{leaf.location}"
        entries = manifest.decode(bench.storage.read(path), path=path).batch
        check_counts(entries, plain_entry(tree.root, leaf.row), problems.at(path))
    assert problems.listed == ()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(step, min_size=3, max_size=14))
def test_a_tree_of_mixed_revisions_says_the_same(steps: list[tuple[str, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        benches = [
            Bench(Path(folder) / name, properties={**TINY, "write.format-revision": name})
            for name in REVISIONS
        ]
        mixed = Bench(Path(folder) / "mixed", properties=TINY)
        written = set()
        for number, (operation, choice, revision) in enumerate(steps, start=1):
            change = _change(mixed, number, operation, choice)
            if change is None:
                continue
            written.add(revision)
            for bench in (*benches, mixed):
                # A commit uses up an id even when it makes no snapshot.
                property = "write.format-revision" if bench is mixed else "owner"
                bench.commit(Change(updates=(SetProperties(updates={property: revision}),)))
                own = _change(bench, number, operation, choice)
                assert own is not None
                bench.commit(own)
            _compare(benches, mixed)
        for bench, name in zip(benches, REVISIONS, strict=True):
            assert _revisions(bench) == {name}
        assert _revisions(mixed) == written
        for one, other in zip(benches[0].head.snapshots(), mixed.head.snapshots(), strict=True):
            assert benches[0].live(one) == mixed.live(other)
            assert benches[0].changes(one) == mixed.changes(other)


def _compare(benches: list[Bench], mixed: Bench) -> None:
    _check_counted(mixed)
    values = np.unique([_value(name) for name in mixed.live() if name.startswith("F")])
    for bench in benches:
        assert bench.root() == mixed.root()
        assert bench.live() == mixed.live()
        assert bench.changes() == mixed.changes()
        for value in values[:3].tolist():
            assert _planned(bench, value) == _planned(mixed, value)
