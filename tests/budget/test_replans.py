"""What an engine reads that planned a table before, after others have committed: metadata in
proportion to what they changed, whatever the size of the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.commit.change import Change
from frazil.scan.plan import Plan, plan
from frazil.storage import StorageCall
from frazil.tree.read import TreeReader
from tests.support.trees import Bench, kind_of

FILES, PER_LEAF, IN_ROOT = 2_000, 400, 10


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """2,000 files in five leaves."""
    limits = {
        "write.leaf.target-entries": str(PER_LEAF),
        "write.root.max-data-entries": str(IN_ROOT),
    }
    bench = Bench(tmp_path, properties=limits)
    bench.append(*(f"D{n}" for n in range(FILES)))
    assert len(bench.tree().leaves()) == FILES // PER_LEAF
    return bench


def _planned(bench: Bench, engine: TreeReader) -> tuple[Plan, list[StorageCall]]:
    with bench.storage.recording() as calls:
        planned = plan(engine, bench.tip)
    return planned, [call for call in calls if call.verb == "read"]


@pytest.mark.parametrize("commits", [1, 10, 100])
def test_appends_of_others_cost_their_entries(bench: Bench, commits: int) -> None:
    engine = bench.reader()
    _planned(bench, engine)
    before = {leaf.location for leaf in bench.tree().leaves()}
    for number in range(commits):
        bench.other(Change(added=bench.files(f"N{number}")))
    planned, calls = _planned(bench, engine)
    assert planned.files.num_rows == FILES + commits
    new = [leaf for leaf in bench.tree().leaves() if leaf.location not in before]
    names = {f"{bench.location}/{leaf.location}" for leaf in new}
    assert {call.path for call in calls if kind_of(call.path) == "leaf"} == names
    assert len({call.path for call in calls if kind_of(call.path) == "root"}) == 1
    assert sum(leaf.record_count for leaf in new) <= commits


@pytest.mark.parametrize("commits", [1, 10, 100])
def test_removals_of_others_cost_one_root(bench: Bench, commits: int) -> None:
    """A leaf that lost files is the file it was: only its entry in the root differs."""
    engine = bench.reader()
    first, _ = _planned(bench, engine)
    names = first.files.pylist("location")
    for number in range(commits):
        bench.other(bench.removal(names[number * (FILES // commits)]))
    planned, calls = _planned(bench, engine)
    assert planned.files.num_rows == FILES - commits
    assert {kind_of(call.path) for call in calls} == {"root"}
    assert len({call.path for call in calls}) == 1
