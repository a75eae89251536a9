"""What commands print: exact values, every column, in the format asked for."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from rich.console import Console

import frazil
from frazil.cli.terminal import output
from tests.cli.conftest import Run

ZONED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def exact(run: Run) -> Run:
    """The table a.b, whose values are easily altered by a display."""
    with frazil.connect("warehouse", create=True) as catalog:
        rows = pa.table(
            {
                "id": pa.array([9600, 9007199254740993]),
                "price": pa.array([206.04, 0.1]),
                "half": pa.array([0.1, None], pa.float32()),
                "at": pa.array([1705312800123456, None], pa.timestamp("us", "UTC")),
                "text": pa.array(["", "NA"]),
            }
        )
        catalog.create_table("a.b", rows.schema).append(rows)
    return run


def lines_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]


def test_a_table_shows_values_exactly(exact: Run) -> None:
    head, _, first, second = lines_of(exact("scan", "a.b").out)
    assert head == ["id", "price", "half", "at", "text"]
    assert first == ["9600", "206.04", "0.1", "2024-01-15 10:00:00.123456+00:00", ""]
    assert second == ["9007199254740993", "0.1", "NULL", "NULL", "NA"]


def test_every_format_has_the_same_values(exact: Run) -> None:
    assert exact("scan", "a.b", "--format", "csv").out.splitlines() == [
        "id,price,half,at,text",
        '9600,206.04,0.1,2024-01-15 10:00:00.123456+00:00,""',
        "9007199254740993,0.1,,,NA",
    ]
    first, second = exact("scan", "a.b", "--format", "jsonl").out.splitlines()
    assert '"half": 0.1, "at": "2024-01-15T10:00:00.123456+00:00"' in first
    assert '"id": 9007199254740993' in second
    assert "| 9600 | 206.04 | 0.1 |" in exact("scan", "a.b", "--format", "markdown").out
    assert exact("scan", "a.b", "--json").json[1]["id"] == 9007199254740993


def test_arrow_goes_through_a_pipe(exact: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream(io.TextIOWrapper):
        pass

    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Stream(pipe))
    from frazil.cli.command_line import main

    assert main(["scan", "a.b", "--format", "arrow"]) == 0
    found = pa.ipc.open_stream(pipe.getvalue()).read_all()
    assert found["id"].to_pylist() == [9600, 9007199254740993]


def test_rows_are_appended_from_standard_input(exact: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    csv = exact("scan", "a.b", "--format", "csv").out
    jsonl = exact("scan", "a.b", "--format", "jsonl").out
    for text in (csv, jsonl):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        done = exact("append", "a.b", "-")
        assert done.code == 0, done.err
    rows = [tuple(row.values()) for row in exact("scan", "a.b", "--json").json]
    assert len(rows) == 6
    assert len(set(rows)) == 2


def test_writing_a_file_obeys_the_limit(exact: Run, tmp_path: Path) -> None:
    for name in ("a.parquet", "a.csv", "a.jsonl", "a.arrow", "a.json"):
        done = exact("scan", "a.b", "--to", name, "-n", "1")
        assert (done.code, done.out) == (0, f"1 row written to {name}\n")
    assert pyarrow.csv.read_csv(tmp_path / "a.csv").num_rows == 1


def test_without_a_limit_a_table_is_cut_with_a_note_and_data_is_not(run: Run) -> None:
    with frazil.connect("warehouse", create=True) as catalog:
        rows = pa.table({"id": list(range(25))})
        catalog.create_table("a.many", rows.schema).append(rows)
    shown = run("scan", "a.many").out.splitlines()
    assert len(shown) == 2 + 20 + 1
    assert "first 20 rows" in shown[-1]
    assert len(run("scan", "a.many", "--format", "csv").out.splitlines()) == 26
    assert len(run("scan", "a.many", "--json").json) == 25
    assert len(run("scan", "a.many", "-n", "22").out.splitlines()) == 2 + 22


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys_of(item)


@pytest.mark.parametrize(
    "command", ["tables", "describe shop.orders", "log shop.orders", "analyze shop.orders"]
)
def test_keys_of_json_have_no_spaces_and_times_have_a_zone(shop: Run, command: str) -> None:
    done = shop(*command.split(), "--json")
    assert [key for key in keys_of(done.json) if " " in key] == []
    if command != "analyze shop.orders":
        assert ZONED.search(done.out)


def test_a_time_that_was_shown_can_be_given_back(shop: Run) -> None:
    newest = shop("log", "shop.orders", "--json").json[0]["committed"]
    assert shop("scan", "shop.orders", "--as-of", newest, "--count").out == "5\n"


@pytest.fixture
def wide(run: Run) -> Run:
    with frazil.connect("warehouse", create=True) as catalog:
        names = {f"column_{at:02}": [1234567890123456789] for at in range(30)}
        rows = pa.table({**names, "note": ["one two three four five six seven eight"]})
        catalog.create_table("a.wide", rows.schema).append(rows)
    return run


def test_a_pipe_gets_every_column(wide: Run) -> None:
    head, _, row = lines_of(wide("scan", "a.wide").out)
    assert (len(head), len(row)) == (31, 31)
    assert row[-1] == "one two three four five six seven eight"


@pytest.mark.parametrize("width", [80, 160])
def test_a_narrow_terminal_leaves_out_the_middle_and_names_it(
    wide: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(output, "console", Console(force_terminal=True, width=width))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", wide("scan", "a.wide").out)
    lines = shown.splitlines()
    assert max(len(line) for line in lines) <= width
    head = [cell.strip() for cell in lines[0].split("|")]
    assert (head[0], head[-1]) == ("column_00", "note")
    assert "1234567890123456789" in lines[2]
    words = shown[shown.index("columns do not fit") :].replace(",", " ").split()
    named = [word for word in words if word.startswith("column_")]
    assert sorted([*named, *head[:-1]]) == [f"column_{at:02}" for at in range(30)]


def test_ids_do_not_fold_in_a_narrow_terminal(shop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [line["snapshot"] for line in shop("log", "shop.orders", "--json").json]
    monkeypatch.setattr(output, "console", Console(force_terminal=True, width=60))
    shown = shop("log", "shop.orders").out
    assert all(each in shown for each in ids)
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines())) <= 60
