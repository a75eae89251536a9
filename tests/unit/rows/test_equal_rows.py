"""Deletes by value without equality delete files: the rows are found and get vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.commit.change import Change
from frazil.commit.updates import SetProperties
from frazil.errors import CommitConflict, InvalidInput

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("country", pa.string()),
        pa.field("price", pa.float64()),
        pa.field("at", pa.struct([pa.field("shelf", pa.int32())])),
    ]
)


def _rows(*rows: tuple[int, str | None, float | None, int | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"id": id, "country": country, "price": price, "at": {"shelf": shelf}}
            for id, country, price, shelf in rows
        ],
        SCHEMA,
    )


@pytest.fixture
def table(tmp_path: Path) -> frazil.Table:
    catalog = frazil.connect(tmp_path)
    catalog.create_namespace("shop")
    made = catalog.create_table("shop.items", SCHEMA, partition_by=["country"])
    made.append(_rows((1, "de", 0.5, 10), (2, "de", None, 20), (3, "fr", 0.0, 10)))
    made.append(_rows((4, None, -0.0, None), (5, "fr", float("nan"), 30)))
    return made


def _ids(table: frazil.Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def _delete(table: frazil.Table, keys: Any, *on: str) -> Any:
    return table.row_delta().add_equality_deletes(keys, on).commit()


def test_rows_get_vectors_and_no_delete_file_is_added(table: frazil.Table) -> None:
    done = _delete(table, [{"id": 2}, {"id": 5}, {"id": 77}], "id")
    assert _ids(table) == [1, 3, 4]
    assert done.operation == "delete"
    summary = done.snapshot.summary
    assert summary["added-dvs"] == "1"
    assert summary["deleted-data-files"] == "1", "the row with id 5 was alone in its file"
    assert "added-equality-delete-files" not in summary
    changes = table.changes(since=done.snapshot.parent_snapshot_id).to_pylist()
    assert {change["id"] for change in changes} == {2, 5}


@pytest.mark.parametrize(
    ("keys", "on", "left"),
    [
        ([{"country": None}], ("country",), [1, 2, 3, 5]),
        ([{"price": None}], ("price",), [1, 3, 4, 5]),
        ([{"price": 0.0}], ("price",), [1, 2, 5]),
        ([{"price": float("nan")}], ("price",), [1, 2, 3, 4]),
        ([{"at": {"shelf": 10}}], ("at.shelf",), [2, 4, 5]),
        ([{"at": {"shelf": None}}], ("at.shelf",), [1, 2, 3, 5]),
        (
            [{"country": "de", "price": 0.5}, {"country": "fr", "price": 0.5}],
            ("country", "price"),
            [2, 3, 4, 5],
        ),
        ([{"id": id} for id in range(1, 400) if id != 3], ("id",), [3]),
        ([], ("id",), [1, 2, 3, 4, 5]),
    ],
)
def test_values_match_as_equality_deletes_do(
    table: frazil.Table, keys: list[dict[str, Any]], on: tuple[str, ...], left: list[int]
) -> None:
    names = {name.split(".")[0] for name in on}
    rows = pa.Table.from_pylist(keys, pa.schema([f for f in SCHEMA if f.name in names]))
    _delete(table, rows, *on)
    assert _ids(table) == left


def test_both_ways_of_writing_delete_the_same_rows(table: frazil.Table) -> None:
    before = table.current_snapshot()
    assert before is not None
    keys = [{"country": "de"}, {"country": None}]
    _delete(table, keys, "country")
    by_vector = _ids(table)
    table.rollback(before)
    table.set_properties({"write.equality-deletes.enabled": "true"})
    done = _delete(table, keys, "country")
    assert done.snapshot.summary["added-equality-delete-files"] == "1"
    assert _ids(table) == by_vector == [3, 5]


def test_nothing_found_is_nothing_committed(table: frazil.Table) -> None:
    before = table.current_snapshot()
    done = _delete(table, [{"id": 99}], "id")
    assert not done.committed
    assert table.refresh().current_snapshot() == before


def test_an_empty_table_has_no_such_row(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    catalog.create_namespace("shop")
    empty = catalog.create_table("shop.none", SCHEMA)
    assert not _delete(empty, [{"id": 1}], "id").committed


def test_rows_added_in_the_same_delta_stay(table: frazil.Table) -> None:
    """As with an equality delete, which applies to older files only."""
    other = table.branch("other", create=True)
    other.append(_rows((1, "it", 9.0, 1)))
    files = other.scan(where="country = 'it'").plan().files
    keys = [key for key in files.keys if not key.startswith(("@", "tracking"))]
    added = files.select(keys).with_constants({"content_type": 0, "tracking.status": 1})
    table.row_delta()._add_entries(added).add_equality_deletes([{"id": 1}], ["id"]).commit()
    assert _ids(table) == [1, 2, 3, 4, 5]
    assert {row["country"] for row in table.scan(where="id = 1").to_pylist()} == {"it"}


def test_rows_that_equality_deletes_removed_before_are_not_found_again(
    table: frazil.Table,
) -> None:
    table.set_properties({"write.equality-deletes.enabled": "true"})
    _delete(table, [{"id": 1}], "id")
    table.set_properties({"write.equality-deletes.enabled": "false"})
    assert not _delete(table, [{"id": 1}], "id").committed
    _delete(table, [{"id": 2}], "id")
    assert _ids(table) == [3, 4, 5]


def test_a_matching_row_added_meanwhile_is_a_conflict(table: frazil.Table) -> None:
    delta = table.row_delta().add_equality_deletes([{"id": 1}], ["id"])
    table.append(_rows((1, "it", 1.0, 1)))
    with pytest.raises(CommitConflict):
        delta.commit()
    again = table.refresh().row_delta().add_equality_deletes([{"id": 1}], ["id"])
    table.append(_rows((9, "it", 1.0, 1)))
    again.commit()
    assert _ids(table) == [2, 3, 4, 5, 9]


def test_a_column_that_is_not_there_is_refused(table: frazil.Table) -> None:
    with pytest.raises(InvalidInput, match="unknown column nope; the table has id, country"):
        _delete(table, [{"nope": 1}], "nope")


def test_a_property_that_says_neither_is_refused(table: frazil.Table) -> None:
    stored = SetProperties(updates={"write.equality-deletes.enabled": "maybe"})
    with pytest.raises(InvalidInput, match="'maybe'; expected true or false"):
        table._handle.commit(Change(updates=(stored,)))
