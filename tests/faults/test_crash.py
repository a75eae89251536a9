"""A crash at every storage and catalog call of every operation: nothing lost, nothing half-done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import frazil
from frazil.errors import CommitUnknown
from tests.faults.gates import Crash, Gate, gated
from tests.faults.operations import BEFORE, OPERATIONS, content, prepared


def reopened(folder: Path) -> frazil.Table:
    return frazil.connect(folder).load_table("shop.things")


def assert_sound(table: frazil.Table, expected: list[dict[int, str]]) -> None:
    """The rows are those of before or after, the format's rules hold, leftovers can go."""
    assert content(table) in expected
    assert not table.check(deep=True).problems
    rows = content(table)
    table.remove_orphan_files(older_than=datetime.now(UTC) + timedelta(minutes=5))
    assert content(table) == rows
    assert not table.check(deep=True).problems


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_crash_leaves_the_table_as_it_was_or_as_it_should_be(name: str, tmp_path: Path) -> None:
    operation = OPERATIONS[name]
    calm = Gate()
    operation.run(gated(prepared(tmp_path / "calm"), calm))
    assert content(reopened(tmp_path / "calm")) == operation.after
    assert calm.passed > 1
    for at in range(1, calm.passed + 1):
        folder = tmp_path / f"{at}"
        table = gated(prepared(folder), Gate(at=at))
        with pytest.raises((Crash, CommitUnknown)):
            operation.run(table)
        assert_sound(reopened(folder), [BEFORE, operation.after, *_between(name)])


def _between(name: str) -> list[dict[int, str]]:
    """States between the commits of an operation that makes several."""
    if name != "append to leaves":
        return []
    return [{**BEFORE, **dict.fromkeys(range(100, last), "red")} for last in (101, 102)]


@pytest.mark.parametrize("lost", ["before", "after"])
@pytest.mark.parametrize("name", ["append", "delete rows", "update", "overwrite", "rewrite"])
def test_a_lost_reply_lands_once(name: str, lost: str, tmp_path: Path) -> None:
    operation = OPERATIONS[name]
    table = prepared(tmp_path)
    count = len(table.snapshots())
    operation.run(gated(table, Gate(), loses=lost))
    again = reopened(tmp_path)
    assert len(again.snapshots()) == count + 1
    assert_sound(again, [operation.after])


def test_a_lost_reply_of_a_metadata_change_is_said(tmp_path: Path) -> None:
    table = gated(prepared(tmp_path), Gate(), loses="after")
    with pytest.raises(CommitUnknown, match="check before retrying"):
        table.set_properties({"owner": "me"})
    assert reopened(tmp_path).properties["owner"] == "me"
