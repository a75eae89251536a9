"""How DuckDB finds columns in files: by today's names, by those that footers tell, or by ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.data.read import sources
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.rows.duckdb import duckdb_scan
from frazil.rows.duckdb.duckdb_connection import connect
from frazil.rows.duckdb.duckdb_types import ColumnHistory, usable_names
from frazil.rows.planned import Planned
from frazil.storage import RandomAccess

PAIR = pa.schema([pa.field("id", pa.int64()), pa.field("t", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Iterator[frazil.Table]:
    with frazil.connect(tmp_path) as catalog:
        made = catalog.create_table("s.t", PAIR)
        for start in (0, 1000, 1010):
            ids = range(start, start + (1000 if start == 0 else 10))
            made.append(pa.table({"id": list(ids), "t": [f"t{i}" for i in ids]}, schema=PAIR))
        yield made


@pytest.fixture
def footers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the files whose footer is read."""
    read: list[str] = []
    original = sources._opened

    def opened(access: RandomAccess, *args: object, **kwargs: object) -> object:
        read.append(access.path)
        return original(access, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(sources, "_opened", opened)
    return read


def estimate(scan: frazil.Scan) -> int:
    """How many rows DuckDB expects."""
    connection = connect()
    made = duckdb_scan.scan_sql(Planned.of(scan))
    made.bind(connection)
    ((_, plan),) = connection.execute(f"EXPLAIN {made.text}").fetchall()
    return sum(
        int(line.split("~")[1].split(" row")[0].replace(",", ""))
        for line in plan.splitlines()
        if "~" in line
    )


def test_a_table_as_it_was_created_is_read_by_its_names(
    table: frazil.Table, footers: list[str]
) -> None:
    text = duckdb_scan.scan_sql(Planned.of(table.scan())).text
    assert "bound_schema" in text
    assert "schema=MAP" not in text
    assert footers == []


def test_the_first_file_stands_for_all(table: frazil.Table) -> None:
    """DuckDB multiplies its rows: of 1,020 rows, the largest file makes 3,000, another one 30."""
    assert estimate(table.scan()) == 3_000


def test_renamed_columns_are_read_by_the_names_in_files(
    table: frazil.Table, footers: list[str]
) -> None:
    with table.evolve_schema() as change:
        change.rename_column("t", "u")
    table.append([{"id": 5000, "u": "new"}])
    made = duckdb_scan.scan_sql(Planned.of(table.scan()))
    assert "schema=MAP" not in made.text
    assert len(footers) == 4
    duckdb_scan.scan_sql(Planned.of(table.scan("id = 1")))
    assert len(footers) == 4  # asked once
    duckdb_scan.scan_sql(Planned.of(table.scan(columns=["id"])))
    assert estimate(table.scan()) > 20


def test_without_joins_no_footer_is_read(table: frazil.Table, footers: list[str]) -> None:
    with table.evolve_schema() as change:
        change.rename_column("t", "u")
    made = duckdb_scan.scan_sql(Planned.of(table.scan()), is_joined=False)
    assert "schema=MAP" in made.text
    table.update({"u": "x"}, where="id % 7 = 3")
    assert footers == []
    assert table.scan("u = 'x'").count() == len([i for i in range(1020) if i % 7 == 3])


def _schema(number: int, *columns: tuple[int, str]) -> Schema:
    fields = (
        ice.NestedField(field_id=at, name=name, field_type=ice.LongType(), required=False)
        for at, name in columns
    )
    return Schema(*fields, schema_id=number)


@pytest.mark.parametrize(
    ("schemas", "expected"),
    [
        ([_schema(0, (1, "a"))], True),
        ([_schema(0, (1, "a"), (2, "b")), _schema(1, (2, "b"), (1, "a"))], True),
        ([_schema(0, (2, "b")), _schema(1, (1, "a"), (2, "b"))], True),
        ([_schema(0, (1, "b")), _schema(1, (1, "a"))], False),
        ([_schema(0, (2, "a")), _schema(1, (1, "a"))], False),
        ([_schema(0, (1, "a"), (2, "A"))], False),
        ([_schema(3, (1, "a"))], False),  # older ones were removed
        ([_schema(0, (1, "a")), _schema(2, (1, "a"))], False),
    ],
)
def test_a_name_lasts_if_it_always_meant_the_column(schemas: list[Schema], expected: bool) -> None:
    column = ice.NestedField(field_id=1, name="a", field_type=ice.LongType(), required=False)
    assert ColumnHistory(schemas).has_lasting_name(column) is expected


def test_schemas_are_looked_through_once_for_all_columns() -> None:
    schemas = [_schema(0, (1, "a")), _schema(1, (1, "a"), (2, "b"), (3, "c"))]
    history = ColumnHistory(iter(schemas))
    columns = schemas[1].fields
    assert [history.is_in_all(column) for column in columns] == [True, False, False]
    assert all(history.is_native(column) for column in columns)
    assert all(history.has_lasting_name(column) for column in columns)


def test_names_that_duckdb_gives_itself_are_not_used() -> None:
    for name in ("file_index", "File_Row_Number", "filename"):
        column = ice.NestedField(field_id=1, name=name, field_type=ice.LongType(), required=False)
        assert not ColumnHistory([_schema(0, (1, name))]).has_lasting_name(column)
        assert usable_names([name], [name]) is None
    assert usable_names(["a", None], ["a", "b"]) == ("a", None)
    assert usable_names(["a"], ["a", "A"]) is None
    assert usable_names([None], ["b"]) is None


def test_nested_columns_of_an_unknown_history_are_left_to_arrow() -> None:
    inner = ice.StructType(
        ice.NestedField(field_id=2, name="x", field_type=ice.LongType(), required=False)
    )
    column = ice.NestedField(field_id=1, name="a", field_type=inner, required=False)
    assert ColumnHistory([Schema(column, schema_id=0)]).is_native(column)
    assert not ColumnHistory([Schema(column, schema_id=1)]).is_native(column)


@pytest.mark.parametrize(
    "name", ["file_row_number", "filename", "file_index", "it's", 'a"b', "ü ."]
)
def test_any_name_of_a_column_is_read(tmp_path: Path, name: str) -> None:
    with frazil.connect(tmp_path) as catalog:
        made = catalog.create_table("s.t", pa.schema([pa.field(name, pa.string())]))
        made.append([{name: "x"}, {name: "y"}])
        made.append([{name: "z"}])
        made.delete("_pos = 1")
        found = made.scan(columns=[name, "_pos"]).to_duckdb().fetchall()
        assert sorted(found) == [("x", 0), ("z", 0)]


def test_rows_of_many_files_have_their_values(
    table: frazil.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of files come from lists, or for many files from a join."""
    columns = ["id", "_file", "_pos", "_row_id", "_spec_id", "_last_updated_sequence_number"]
    by_lists = table.scan(columns=columns).to_duckdb().order("id").fetchall()
    monkeypatch.setattr("frazil.rows.duckdb.duckdb_group.MAX_LISTED", 1)
    by_join = table.scan(columns=columns).to_duckdb().order("id").fetchall()
    assert by_lists == by_join
    assert [row[3] for row in by_lists] == list(range(1020))
    assert len({row[1] for row in by_lists}) == 3
