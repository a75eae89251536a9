"""Two writers, one stopped at each of its calls in turn while the other runs to its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import frazil
from frazil.errors import CommitConflict
from tests.faults.gates import Gate, gated
from tests.faults.operations import BEFORE, content, prepared, rows

FIRST: dict[str, Callable[[frazil.Table], object]] = {
    "append": lambda t: t.append(rows(100, 102)),
    "delete": lambda t: t.delete("id = 2 or id = 12"),
    "update": lambda t: t.update({"colour": "blue"}, where="id = 3 or id = 18"),
    "overwrite": lambda t: t.overwrite(rows(50, 52), where="id > 9"),
    "compact": lambda t: t.compact_metadata(),
}
SECOND: dict[str, Callable[[frazil.Table], object]] = {
    "append": lambda t: t.append(rows(200, 203)),
    "delete": lambda t: t.delete("id = 2 or id = 13"),
    "update": lambda t: t.update({"colour": "green"}, where="id = 3"),
    "compact": lambda t: t.compact_metadata(),
    "rewrite manifests": lambda t: t.rewrite_manifests(),
}


def effect(state: dict[int, str], writer: str, name: str) -> dict[int, str]:
    """What an operation does to the rows, in plain Python."""
    state = dict(state)
    match writer, name:
        case "first", "append":
            state.update(dict.fromkeys(range(100, 102), "red"))
        case "second", "append":
            state.update(dict.fromkeys(range(200, 203), "red"))
        case "first", "delete":
            state = {id: c for id, c in state.items() if id not in (2, 12)}
        case "second", "delete":
            state = {id: c for id, c in state.items() if id not in (2, 13)}
        case "first", "update":
            state.update({id: "blue" for id in (3, 18) if id in state})
        case "second", "update":
            state.update({id: "green" for id in (3,) if id in state})
        case "first", "overwrite":
            state = {id: c for id, c in state.items() if id <= 9}
            state.update({50: "red", 51: "red"})
    return state


PAIRS = [
    ("append", "append"),
    ("append", "compact"),
    ("delete", "append"),
    ("delete", "delete"),
    ("delete", "compact"),
    ("delete", "rewrite manifests"),
    ("update", "update"),
    ("update", "delete"),
    ("overwrite", "append"),
    ("compact", "append"),
    ("compact", "delete"),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_outcome_is_that_of_one_after_the_other(
    first: str, second: str, tmp_path: Path
) -> None:
    calm = Gate()
    FIRST[first](gated(prepared(tmp_path / "calm"), calm))
    only_first = effect(BEFORE, "first", first)
    only_second = effect(BEFORE, "second", second)
    serial = [effect(only_first, "second", second), effect(only_second, "first", first)]
    for at in range(1, calm.passed + 1):
        folder = tmp_path / f"{at}"
        table = prepared(folder)
        other = Interloper(folder, SECOND[second])
        gate = Gate(at=at, action=other)
        refused = False
        try:
            FIRST[first](gated(table, gate))
        except CommitConflict:
            refused = True
        expected = serial
        if refused or other.refused:
            assert not (refused and other.refused), "somebody must get through"
            expected = [only_second] if refused else [only_first]
        found = frazil.connect(folder).load_table("shop.things")
        assert content(found) in expected, f"at {gate.names[at - 1]}"
        assert not found.check(deep=True).problems


class Interloper:
    """Another writer that runs its operation when called; a conflict is its own business."""

    def __init__(self, folder: Path, operation: Callable[[frazil.Table], object]) -> None:
        self._table = frazil.connect(folder).load_table("shop.things")
        self._operation = operation
        self.refused = False

    def __call__(self) -> None:
        try:
            self._operation(self._table)
        except CommitConflict:
            self.refused = True
