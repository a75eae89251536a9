"""Tables whose columns are renamed, swapped, dropped, added again, moved and widened between
appends: DuckDB reads the rows of a model, by names, by what footers say, and by ids."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frazil
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.rows.duckdb import duckdb_scan
from frazil.rows.duckdb.duckdb_connection import connect
from frazil.rows.planned import Planned

NAMES = ("a", "b", "c", "File_Index", "it's")
STEPS = st.sampled_from(["append", "append", "rename", "swap", "drop", "add", "first", "widen"])


class Model:
    """Columns by a number of their own that never changes, and rows by these numbers."""

    def __init__(self, folder: Path) -> None:
        self.catalog = frazil.connect(folder)
        fields = [
            ice.NestedField(field_id=at, name=name, field_type=ice.IntegerType(), required=False)
            for at, name in enumerate(("a", "b"), start=1)
        ]
        self.table = self.catalog.create_table("s.t", Schema(*fields))
        self.columns = {1: "a", 2: "b"}
        self.defaults: dict[int, int | None] = {1: None, 2: None}
        self.rows: list[dict[int, int | None]] = []
        self.last = 2

    def run(self, step: str, pick: int) -> None:
        numbers = list(self.columns)
        chosen = numbers[pick % len(numbers)]
        free = [name for name in NAMES if name not in self.columns.values()]
        with self.table.evolve_schema() as change:
            match step:
                case "rename" if free:
                    new = free[pick % len(free)]
                    change.rename_column(self.columns[chosen], new)
                    self.columns[chosen] = new
                case "drop" if len(numbers) > 1:
                    change.drop_column(self.columns.pop(chosen))
                case "add" if free:
                    self.last += 1
                    new, default = free[pick % len(free)], (pick if pick % 2 else None)
                    change.add_column(new, ice.IntegerType(), default=default)
                    self.columns[self.last] = new
                    self.defaults[self.last] = default
                case "first":
                    change.move(self.columns[chosen], first=True)
                    self.columns = {chosen: self.columns.pop(chosen), **self.columns}
                case "widen":
                    change.update_column(self.columns[chosen], ice.LongType())
        if step == "swap" and len(numbers) > 1:
            self._swap(numbers[0], numbers[1])
        if step == "append":
            self._append(pick)

    def _swap(self, one: int, other: int) -> None:
        first, second = self.columns[one], self.columns[other]
        for old, new in ((first, "spare"), (second, first), ("spare", second)):
            with self.table.evolve_schema() as change:
                change.rename_column(old, new)
        self.columns[one], self.columns[other] = second, first

    def _append(self, pick: int) -> None:
        row = {
            number: (None if (pick + number) % 5 == 0 else pick * 7 + number)
            for number in self.columns
        }
        self.table.append([{self.columns[number]: value for number, value in row.items()}])
        self.rows.append(row)

    def expected(self) -> list[tuple[Any, ...]]:
        return [
            tuple(row.get(number, self.defaults[number]) for number in self.columns)
            for row in self.rows
        ]


def _sorted(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


@settings(deadline=None)
@given(steps=st.lists(st.tuples(STEPS, st.integers(0, 30)), min_size=2, max_size=9))
def test_rows_follow_their_columns(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        model = Model(Path(folder))
        for step, pick in [("append", 1), *steps, ("append", 2)]:
            model.run(step, pick)
        names = [column.name for column in model.table.schema.fields]
        assert names == list(model.columns.values())
        for most in (duckdb_scan.MAX_FOOTERS, 0):  # by what footers say, then by ids
            patch.setattr(duckdb_scan, "MAX_FOOTERS", most)
            for key in (False, True):
                connection = connect()
                scan = duckdb_scan.scan_sql(Planned.of(model.table.scan()), key=key)
                scan.bind(connection)
                found = connection.execute(scan.text).fetchall()
                shown = [row[: len(names)] for row in found]
                assert _sorted(shown) == _sorted(model.expected())
        model.catalog.close()
