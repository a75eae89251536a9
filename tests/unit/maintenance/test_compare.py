"""Comparing snapshots, branches and tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from frazil.table import Table
from tests.support.history import SMALL, catalog_in, new_table, read_names, rows


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = new_table(tmp_path)
    made.append(rows(1, 2, 3))
    made.append(rows(4))
    return made


def test_a_table_is_the_same_as_itself(table: Table) -> None:
    found = table.compare("main")
    assert found.is_same
    assert (found.rows_left, found.rows_right) == (4, 4)


def test_branches_differ_in_files_and_rows(table: Table) -> None:
    side = table.branch("side", create=True)
    side.append(rows(5, 6))
    side.delete("id = 4")
    side.delete("id = 1")
    found = table.refresh().compare("side")
    assert not found.is_same
    assert (found.rows_left, found.rows_right) == (4, 4)
    assert [len(part) for part in (found.files.only_left, found.files.only_right)] == [1, 1]
    assert len(found.files.changed) == 1
    assert found.columns.is_empty
    text = str(found)
    assert "1 only left, 1 only right, 1 with different deletion vectors" in text
    assert found.to_dict()["rows_right"] == 4


def test_snapshots_differ_in_columns(table: Table) -> None:
    first = int(table.snapshots()[0].snapshot_id)
    with table.evolve_schema() as change:
        change.add_column("n", "int")
        change.drop_column("v")
    table.append(pa.table({"id": [9], "n": pa.array([1], pa.int32())}))
    found = table.compare(first)
    assert found.columns.only_left == ("n: optional int",)
    assert found.columns.only_right == ("v: optional string",)
    assert (found.rows_left, found.rows_right) == (5, 3)


def test_tables_differ_in_everything(table: Table, tmp_path: Path) -> None:
    other = catalog_in(tmp_path / "second").create_table(
        "lab.other",
        pa.schema([("id", pa.int32()), ("v", pa.string())]),
        partition_by=["bucket[4](id)"],
        properties={"owner": "ann"},
    )
    found = table.compare(other)
    assert found.columns.changed == ("id: optional long → optional int",)
    assert found.partitioning.only_right == ("id_bucket_4: bucket[4](id)",)
    assert found.properties.only_right == ("owner: ann",)
    assert (len(found.files.only_left), len(found.files.only_right)) == (2, 0)
    assert (found.rows_left, found.rows_right) == (4, 0)
    assert found.left == "shop.orders@main"
    assert found.right == "lab.other@main"


def test_rows_behind_equality_deletes_are_not_guessed(table: Table) -> None:
    first = int(table.snapshots()[0].snapshot_id)
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(pa.table({"id": [4]}), on=["id"]).commit()
    found = table.compare(first)
    assert (found.rows_left, found.rows_right) == (None, 3)
    assert "unknown without reading the data" in str(found)


def test_shared_leaves_are_not_opened(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties=SMALL)
    for number in range(18):
        table.append(rows(number))
    table.rewrite_manifests()
    table.tag("then")
    table.append(rows(50))
    table._handle.context.cache.clear()
    with table._handle.storage.recording() as calls:
        found = table.compare("then")
    assert read_names(calls) == ["root", "root"]
    assert (len(found.files.only_left), len(found.files.only_right)) == (1, 0)


def test_a_tag_is_compared_in_the_schema_of_its_time_and_a_branch_in_todays(
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.tag("before")
    table.branch("side", create=True)
    table.evolve_schema().add_column("note", "string").commit()
    table.refresh()
    assert table.compare("before").columns.only_left == ("note: optional string",)
    assert table.compare("side").columns.is_empty
    snapshot = table.snapshots()[0]
    assert table.compare(int(snapshot.snapshot_id)).columns == table.compare("before").columns
