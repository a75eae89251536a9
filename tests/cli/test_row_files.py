"""Files that commands load: folders, patterns, values in paths, and what is wrong where."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from tests.cli.conftest import Run


@pytest.fixture
def days(run: Run, tmp_path: Path) -> Run:
    """CSV files in folders of days, and what a writer hides."""
    for day, orders in (("2024-01-15", "1\n2"), ("2024-01-16", "3")):
        folder = tmp_path / "orders" / f"day={day}"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text(f"id\n{orders}\n")
    (tmp_path / "orders" / "_SUCCESS.csv").write_text("nothing,to,read\n")
    return run


def _rows(text: str) -> list[str]:
    return text.splitlines()


@pytest.mark.parametrize("name", ["orders", "orders/*/part.csv", "orders/**/*.csv"])
def test_folders_and_patterns_are_loaded_with_the_values_of_paths(days: Run, name: str) -> None:
    if name.endswith("**/*.csv"):
        Path("orders/_SUCCESS.csv").unlink()
    done = days("create", "shop.orders", "--from", name, "--load")
    assert done.code == 0, done.err
    query = "SELECT id, typeof(day) AS kind, CAST(day AS TEXT) AS day FROM shop.orders ORDER BY id"
    assert _rows(days("sql", query, "--format", "csv").out) == [
        "id,kind,day",
        "1,DATE,2024-01-15",
        "2,DATE,2024-01-15",
        "3,DATE,2024-01-16",
    ]
    assert days("append", "shop.orders", name).code == 0
    assert days("scan", "shop.orders", "--count").out == "6\n"


def test_a_folder_or_pattern_without_files_is_said(days: Run, tmp_path: Path) -> None:
    days("create", "shop.orders", "--from", "orders")
    (tmp_path / "empty").mkdir()
    assert "no files that can be read" in days("append", "shop.orders", "empty").err
    assert "no file matches" in days("append", "shop.orders", "*.jsonl").err
    assert "no such file" in days("append", "shop.orders", "gone.csv").err


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("bad.csv", "id,day\n1,2024-01-15\nx,2024-01-16\n", "bad.csv, line 3, column 'id': 'x'"),
        ("bad.csv", "id,day\n1,2024-01-15\n2,soon\n", "bad.csv, line 3, column 'day': 'soon'"),
        ("bad.csv", "id,day\n1,2024-01-15\n2\n", "#3"),
        ("bad.jsonl", '{"id": 1}\n{"id": "x"}\n', "bad.jsonl, line 2, column 'id': 'x'"),
        ("bad.jsonl", '{"id": 1}\n{"id": 2\n', "bad.jsonl, line 2: "),
        ("bad.jsonl", '\n{"id": 1, "day": "soon"}\n', "bad.jsonl, line 2, column 'day': 'soon'"),
        ("bad.jsonl", '{"id": 1}\n[2]\n', "line 2: b'[2]'; expected an object"),
    ],
)
def test_errors_say_the_line_and_the_column(
    days: Run, tmp_path: Path, file: str, content: str, expected: str
) -> None:
    days("create", "shop.orders", "--from", "orders")
    (tmp_path / file).write_text(content)
    done = days("append", "shop.orders", file)
    assert done.code == 2
    assert expected in done.err
    assert days("scan", "shop.orders", "--count").out == "0\n"


def test_times_of_json_keep_their_zones(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"z": "2024-01-01T10:00:00+02:00", "n": "2024-01-01T10:00:00.5", "s": {"z": '
        '"2024-01-01T10:00:00Z"}, "l": ["2024-01-01T10:00:00Z"]}\n'
        '{"z": "2024-01-01T10:00:00Z", "n": null, "s": null, "l": null}\n'
    )
    assert run("create", "a.t", "--from", "t.jsonl", "--load").code == 0
    first, second = frazil.connect("warehouse").load_table("a.t").scan().to_pylist()
    ten = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
    assert (first["z"], second["z"]) == (ten - dt.timedelta(hours=2), ten)
    assert first["n"] == dt.datetime(2024, 1, 1, 10, 0, 0, 500_000)
    assert (first["s"], first["l"]) == ({"z": ten}, [ten])
    assert (second["n"], second["s"], second["l"]) == (None, None, None)


def test_a_zone_is_not_dropped_on_the_way_into_a_table(run: Run, tmp_path: Path) -> None:
    run("create", "a.t", "--column", "at:timestamp", "--column", "zoned:timestamptz")
    (tmp_path / "t.jsonl").write_text('{"at": "2024-01-01T10:00:00Z"}\n')
    assert "line 1, column 'at'" in run("append", "a.t", "t.jsonl").err
    (tmp_path / "t.jsonl").write_text(
        '{"zoned": "2024-01-01T10:00:00+02:00"}\n{"zoned": "2024-01-01T10:00:00"}\n'
    )
    assert run("append", "a.t", "t.jsonl").code == 0
    found = frazil.connect("warehouse").load_table("a.t").scan().to_arrow()["zoned"].to_pylist()
    assert [moment.astimezone(dt.UTC).hour for moment in found] == [8, 10]


def test_columns_of_files_are_merged_when_asked_for(days: Run, tmp_path: Path) -> None:
    days("create", "shop.orders", "--from", "orders", "--load")
    (tmp_path / "more.csv").write_text("id,note\n4,hello\n")
    assert days("append", "shop.orders", "more.csv").code == 2
    assert days("append", "shop.orders", "more.csv", "--merge-schema").code == 0
    query = "SELECT note FROM shop.orders WHERE id = 4"
    assert _rows(days("sql", query, "--format", "csv").out) == ["note", "hello"]


def _hive(folder: Path) -> None:
    for day in ("2024-01-15", "2024-01-16"):
        place = folder / f"day={day}" / "country=US"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"id": [int(day[-2:])]}), place / "part.parquet")
    hidden = folder / "_temporary"
    hidden.mkdir()
    (hidden / "half.parquet").write_text("not Parquet")


SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("country", pa.string())])


@pytest.mark.parametrize("name", ["{}", "{}/", "{}/*/*/*.parquet", "{}/day=*/**/*.parquet"])
def test_add_files_takes_folders_and_patterns_with_values_of_paths(
    tmp_path: Path, name: str
) -> None:
    _hive(tmp_path / "hive")
    catalog = frazil.connect(tmp_path / "w")
    table = catalog.create_table("a.t", SCHEMA, partition_by=["day", "country"])
    steps: list[tuple[int, int, str]] = []
    done = table.add_files(
        name.format(tmp_path / "hive"), progress=lambda *step: steps.append(step)
    )
    assert done.files_added == 2
    assert steps[-1] == (2, 2, "files")
    rows = sorted(table.scan().to_pylist(), key=lambda row: row["id"])
    assert rows[0] == {"id": 15, "day": dt.date(2024, 1, 15), "country": "US"}
    assert table.scan("day = '2024-01-16'").explain().files == 1
    query = "SELECT sum(id) AS s FROM a.t WHERE day = DATE '2024-01-16'"
    assert catalog.sql(query).to_pylist() == [{"s": 16}]


def test_a_value_that_only_the_path_says_is_not_lost(tmp_path: Path) -> None:
    _hive(tmp_path / "hive")
    table = frazil.connect(tmp_path / "w").create_table("a.t", SCHEMA, partition_by=["day"])
    with pytest.raises(frazil.errors.FormatError, match="partition the table by it"):
        table.add_files(str(tmp_path / "hive"))
    with pytest.raises(frazil.errors.InvalidInput, match="no file matches"):
        table.add_files(str(tmp_path / "hive" / "*.parquet"))
