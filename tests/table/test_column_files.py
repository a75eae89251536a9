"""Column files: what updates write beside data files, what others may have written, and who reads
them. The reader here is written from the format page alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.errors import CommitConflict, FormatError, FrazilError, InvalidInput, Unsupported
from frazil.maintenance.removal.reachable import Reach
from tests.support.column_files import entries, handmade, live, local

LAST_UPDATED = 2_147_483_539
SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("name", pa.string())])


def rows(first: int, count: int = 10) -> pa.Table:
    ids = np.arange(first, first + count)
    return pa.table({"id": ids, "price": ids * 1.5, "name": [f"n{id}" for id in ids]}, SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> frazil.Table:
    made = frazil.connect(tmp_path / "w").create_table("s.t", SCHEMA)
    made.append(rows(0))
    made.append(rows(10))
    made.delete("id = 3 or id = 14")
    return made


def by_id(file: pq.ParquetFile) -> dict[int, str]:
    return {int(field.metadata[b"PARQUET:field_id"]): field.name for field in file.schema_arrow}


def read_by_the_page(table: frazil.Table) -> dict[int, dict[str, Any]]:
    """Rows by id, as the format page says: each column from one file, rows by position, nulls of
    the lineage from the entry. Deleted rows are told apart by their missing values."""
    names = {column.field_id: column.name for column in table.schema.fields}
    found: dict[int, dict[str, Any]] = {}
    for entry in live(table):
        base = pq.ParquetFile(local(table, entry["location"]))
        sources = {id: (base, name) for id, name in by_id(base).items()}
        for file in entry["column_files"] or []:
            opened = pq.ParquetFile(local(table, file["location"]))
            assert opened.metadata.num_rows == entry["record_count"]
            assert local(table, file["location"]).stat().st_size == file["file_size_in_bytes"]
            sources |= {id: (opened, by_id(opened)[id]) for id in file["field_ids"]}
        columns = {
            names[id]: file.read(columns=[name]).column(0).to_pylist()
            for id, (file, name) in sources.items()
            if id in names
        }
        ages = [None] * entry["record_count"]
        if LAST_UPDATED in sources:
            file, name = sources[LAST_UPDATED]
            ages = file.read(columns=[name]).column(0).to_pylist()
        for at, id in enumerate(columns["id"]):
            row = {name: values[at] for name, values in columns.items()}
            age = ages[at] if ages[at] is not None else entry["tracking"]["sequence_number"]
            found[id] = {**row, "age": age}
    return found


# What is written


def test_an_update_writes_what_the_page_says(table: frazil.Table) -> None:
    before = {entry["location"]: entry for entry in live(table)}
    done = table.update({"price": frazil.expr("price + 100")}, "id >= 15", mode="columns")
    assert (done.operation, done.rows_updated, done.column_files) == ("overwrite", 5, 1)
    assert done.snapshot is not None
    (changed,) = [entry for entry in live(table) if entry["column_files"]]
    old = before[changed["location"]]
    tracking = changed["tracking"]
    assert tracking["status"] == 4
    assert tracking["sequence_number"] == done.snapshot.sequence_number
    assert tracking["modified_snapshot_id"] == done.snapshot_id
    for key in ("snapshot_id", "file_sequence_number", "first_row_id"):
        assert tracking[key] == old["tracking"][key]
    (file,) = changed["column_files"]
    assert file["field_ids"] == [2, LAST_UPDATED]
    assert (file["file_format"], file["key_metadata"]) == ("parquet", None)
    assert changed["deletion_vector"] == old["deletion_vector"]
    stored = pq.read_table(local(table, file["location"]))
    expected = [None if id == 14 else id * 1.5 + (100 if id >= 15 else 0) for id in range(10, 20)]
    assert stored.column("price").to_pylist() == expected
    added = old["tracking"]["sequence_number"]
    ages = [None if id >= 14 else added for id in range(10, 20)]
    assert stored.column("_last_updated_sequence_number").to_pylist() == ages
    price = changed["s"]["2"]
    assert (price["l"], price["u"]) == (15.0, 19 * 1.5 + 100)
    assert changed["s"]["3"] == old["s"]["3"]
    (gone,) = [entry for entry in entries(table) if entry["tracking"]["status"] == 3]
    assert gone["column_files"] is None
    assert gone["tracking"]["snapshot_id"] == done.snapshot_id


def test_a_reader_of_the_page_sees_what_we_see(table: frazil.Table) -> None:
    table.add_columns({"margin": "price * 2", "size": lambda b: pc.utf8_length(b["name"])})
    table.update({"price": frazil.expr("-price")}, "id < 5", mode="columns")
    table.update({"margin": 1.0, "name": "same"}, "id between 8 and 12", mode="columns")
    table.delete("id = 9")
    columns = ["id", "price", "name", "margin", "size", "_last_updated_sequence_number"]
    ours = table.scan(columns=columns).to_pylist()
    theirs = read_by_the_page(table)
    assert len(ours) == 17
    for row in ours:
        age = row.pop("_last_updated_sequence_number")
        assert theirs[row["id"]] == {**row, "age": age}
    assert not table.check(deep=True).problems


def test_a_second_update_takes_the_ids_of_the_first(table: frazil.Table) -> None:
    table.update({"price": 1.0, "name": "a"}, "id < 10", mode="columns")
    table.update({"price": 2.0}, "id < 10", mode="columns")
    table.update({"name": "b"}, "id < 10", mode="columns")
    (entry,) = [entry for entry in live(table) if entry["column_files"]]
    assert [file["field_ids"] for file in entry["column_files"]] == [[2], [3, LAST_UPDATED]]


def test_row_groups_are_those_of_the_data_file(tmp_path: Path) -> None:
    properties = {"write.parquet.row-group-limit": "4"}
    made = frazil.connect(tmp_path).create_table("s.t", SCHEMA, properties=properties)
    made.append(rows(0))
    made.add_columns({"twice": "id * 2"})
    (entry,) = live(made)
    files = [entry["location"], entry["column_files"][0]["location"]]
    groups = []
    for name in files:
        footer = pq.ParquetFile(local(made, name)).metadata
        groups.append([footer.row_group(at).num_rows for at in range(footer.num_row_groups)])
    assert groups == [[4, 4, 2]] * 2
    assert made.scan("twice >= 14", columns=["id"]).to_arrow()["id"].to_pylist() == [7, 8, 9]


def test_only_the_new_columns_are_written(tmp_path: Path) -> None:
    wide = pa.table({f"c{at}": np.random.default_rng(at).random(2_000) for at in range(40)})
    made = frazil.connect(tmp_path).create_table("s.t", wide.schema)
    made.append(wide)
    done = made.add_columns({"sum": "c0 + c1"})
    whole = int(made.snapshots()[0].summary["added-files-size"])
    assert done.column_bytes < whole / 20
    total = made.scan(columns=["sum"]).to_arrow()["sum"]
    assert np.allclose(total, np.asarray(wide["c0"]) + np.asarray(wide["c1"]))


# Modes


@pytest.mark.parametrize(
    ("where", "column", "column_files"),
    [
        (None, "price", 2),  # every row, one of three columns
        ("id <= 4", "price", 0),  # less than half of a file's rows
        ("id <= 16", "price", 2),
        ("id <= 12", "price", 1),  # all of one file, little of another
    ],
)
def test_auto_writes_columns_where_they_are_less(
    table: frazil.Table, where: str | None, column: str, column_files: int
) -> None:
    done = table.update({column: 7.0}, where, mode="auto")
    assert done.column_files == column_files
    expected = table.scan(where).count()
    assert done.rows_updated == expected
    assert table.scan("price = 7.0").count() == expected


def test_auto_writes_rows_where_columns_cannot_be(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    made = catalog.create_table("s.t", SCHEMA, partition_by=["bucket[2](id)"])
    made.append(rows(0))
    assert made.update({"id": frazil.expr("id + 100")}, mode="auto").column_files == 0
    with pytest.raises(Unsupported, match="partitioned by id"):
        made.update({"id": 1}, mode="columns")
    made.set_properties({"write.format-revision": "1.12"})
    assert made.update({"price": 1.0}, mode="auto").column_files == 0
    with pytest.raises(Unsupported, match=r"write\.format-revision is 1\.12"):
        made.add_columns({"x": "id"})
    with pytest.raises(InvalidInput, match="mode is 'fast'"):
        made.update({"price": 1.0}, mode="fast")


def test_an_older_revision_says_how_column_files_go(table: frazil.Table) -> None:
    table.update({"price": 1.0}, mode="columns")
    table.set_properties({"write.format-revision": "1.12"})
    with pytest.raises(Unsupported, match=r"to 2026-10, and compact .* before it is 1\.12 again"):
        table.compact(merge_columns=True)
    table.set_properties({"write.format-revision": "2026-10"})
    table.compact(merge_columns=True)
    table.set_properties({"write.format-revision": "1.12"})
    table.append(rows(20))
    assert table.scan().count() == 28


def test_the_property_sets_the_mode_of_updates(table: frazil.Table, tmp_path: Path) -> None:
    table.set_properties({"write.column-update.mode": "columns"})
    assert table.update({"price": 0.0}, "id = 1").column_files == 1
    catalog = frazil.connect(tmp_path / "w")
    catalog.sql("UPDATE s.t SET price = price + 5 WHERE id < 10")
    summary = table.snapshots()[-1].summary
    assert "added-data-files" not in summary
    assert table.scan("id = 1").to_pylist()[0]["price"] == 5.0


def test_equality_deletes_are_refused_and_auto_writes_rows(tmp_path: Path) -> None:
    properties = {"write.equality-deletes.enabled": "true"}
    made = frazil.connect(tmp_path).create_table("s.t", SCHEMA, properties=properties)
    made.append(rows(0))
    made.row_delta().add_equality_deletes([{"id": 2}], on=["id"]).commit()
    with pytest.raises(Unsupported, match="delete files apply to it"):
        made.update({"price": 1.0}, mode="columns")
    assert made.update({"price": 1.0}, mode="auto").column_files == 0
    assert made.scan().count() == 9


# New columns and values by key


def test_new_columns_of_an_empty_table_have_types(tmp_path: Path) -> None:
    made = frazil.connect(tmp_path).create_table("s.t", SCHEMA)
    made.add_columns({"a": "price * 2", "b": lambda batch: batch["id"]})
    assert [str(column.field_type) for column in made.schema.fields[3:]] == ["double", "long"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "at least one column"),
        ({"x": 5}, "neither an SQL expression nor a function"),
        ({"x": "nothing + 1"}, "nothing"),
        ({"x": lambda batch: [1, 2, 3]}, "gave 3 values for 1 rows"),
        ({"price": "1"}, "price"),
    ],
)
def test_columns_that_cannot_be_added_are_refused(
    table: frazil.Table, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(FrazilError, match=message):
        table.add_columns(columns)
    assert table.schema.column_names == ["id", "price", "name"]


def test_values_by_key(table: frazil.Table) -> None:
    frame = pa.table({"id": [1, 15, 99], "price": [-1.0, -2.0, -3.0], "score": [0.1, 0.2, 0.3]})
    done = table.merge_columns(frame, on="id")
    assert (done.rows_updated, done.rows_added) == (2, 0)
    found = {row["id"]: row for row in table.scan().to_pylist()}
    assert (found[1]["price"], found[1]["score"]) == (-1.0, 0.1)
    assert (found[2]["price"], found[2]["score"]) == (3.0, None)
    assert 99 not in found


@pytest.mark.parametrize(
    ("rows_given", "on", "message"),
    [
        ({"id": [1, 1], "price": [1.0, 2.0]}, "id", "more than one new value"),
        ({"id": [1]}, "id", "no column besides the key"),
        ({"id": [1], "price": [1.0]}, "name", "no key column name"),
        ({"id": [1], "price": [1.0]}, "nothing", "key columns of the table: nothing"),
    ],
)
def test_keys_that_do_not_fit_are_refused(
    table: frazil.Table, rows_given: dict[str, Any], on: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        table.merge_columns(rows_given, on=on)


def test_a_transaction_sees_its_own_columns(table: frazil.Table) -> None:
    with table.transaction() as tx:
        tx.append(rows(20, 3))
        tx.add_columns({"twice": "id * 2"})
        tx.update({"twice": frazil.expr("twice + 1")}, "id >= 18", mode="columns")
        tx.delete("id = 21")
    found = {row["id"]: row["twice"] for row in table.scan().to_pylist()}
    gone = {3, 14, 21}
    assert found == {id: id * 2 + (id >= 18) for id in range(23) if id not in gone}
    ages = set(table.scan(columns=["_last_updated_sequence_number"]).to_arrow()[0].to_pylist())
    tip = table.current_snapshot()
    assert tip is not None
    assert ages == {tip.sequence_number}
    assert not table.check(deep=True).problems


# Feeds, history, maintenance


def test_feeds_show_rows_before_and_after(table: frazil.Table) -> None:
    start = table.current_snapshot()
    table.update({"price": 0.0}, "id in (1, 3, 12)", mode="columns")
    feed = table.changes(since=start).to_arrow().to_pylist()
    kinds = [(row["id"], row["_change_type"], row["price"]) for row in feed]
    assert sorted(kinds) == [
        (1, "update_postimage", 0.0),
        (1, "update_preimage", 1.5),
        (12, "update_postimage", 0.0),
        (12, "update_preimage", 18.0),
    ]
    table.update({"price": 9.0}, "id = 12", mode="columns")
    table.delete("id = 1")
    table.compact(merge_columns=True)
    net = table.changes(since=start, collapse=True).to_arrow().to_pylist()
    assert sorted((row["id"], row["_change_type"], row["price"]) for row in net) == [
        (1, "delete", 1.5),
        (12, "update_postimage", 9.0),
        (12, "update_preimage", 18.0),
    ]


def test_compaction_merges_and_old_snapshots_stay(table: frazil.Table) -> None:
    table.tag("before")
    table.add_columns({"twice": "id * 2"})
    table.tag("with")
    lineage = ["id", "twice", "_row_id", "_last_updated_sequence_number"]
    expected = table.scan(columns=lineage).to_arrow().sort_by("id")
    done = table.compact(merge_columns=True)
    assert done.operation == "replace"
    assert table.compact(merge_columns=True).operation == "none"
    assert all(entry["column_files"] is None for entry in live(table) if "column_files" in entry)
    assert table.scan(columns=lineage).to_arrow().sort_by("id").equals(expected)
    assert table.scan(as_of="with", columns=["id", "twice"]).count() == 18
    assert table.scan(as_of="before").to_arrow().column_names == ["id", "price", "name"]


def test_care_of_files_knows_column_files(table: frazil.Table) -> None:
    table.add_columns({"twice": "id * 2"})
    table.update({"twice": 0}, mode="columns")
    soon = datetime.now(UTC) + timedelta(minutes=5)
    named = {path.name for path in local(table, "data").glob("*-columns.parquet")}
    assert len(named) == 4
    table.remove_orphan_files(older_than=soon)
    assert {path.name for path in local(table, "data").glob("*-columns.parquet")} == named
    table.expire_snapshots(older_than=soon, keep_last=1)
    left = {path.name for path in local(table, "data").glob("*-columns.parquet")}
    used = [file["location"] for entry in live(table) for file in entry["column_files"]]
    assert left == {Path(name).name for name in used}
    assert set(table.scan(columns=["twice"]).to_arrow()["twice"].to_pylist()) == {0}
    assert not table.check(deep=True).problems


def test_expiry_keeps_a_file_whose_bounds_have_moved(tmp_path: Path) -> None:
    """Leaves are ruled out by bounds; a column update gives a file others than it had."""
    properties = {"write.root.max-data-entries": "1", "write.leaf.target-entries": "1"}
    made = frazil.connect(tmp_path).create_table("s.t", SCHEMA, properties=properties)
    made.append(rows(0))
    made.append(rows(10))
    made.update({"id": frazil.expr("id + 1000"), "price": 5000.0}, "id < 10", mode="columns")
    made.append(rows(20))
    made.append(rows(30))
    made.compact_metadata()
    made.expire_snapshots(older_than=datetime.now(UTC) + timedelta(days=1), keep_last=1)
    found = sorted(made.scan(columns=["id"]).to_arrow()["id"].to_pylist())
    assert found == [*range(10, 40), *range(1000, 1010)]


def test_a_clone_and_a_copy_have_the_columns(table: frazil.Table, tmp_path: Path) -> None:
    table.add_columns({"twice": "id * 2"})
    catalog = frazil.connect(tmp_path / "w")
    clone = table.clone(catalog, "s.clone")
    copy = table.copy_to(str(tmp_path / "copy"), catalog=catalog, name="s.copy")
    for other in (clone, copy):
        assert other.scan(columns=["twice"]).to_arrow()["twice"].to_pylist() == [
            id * 2 for id in range(20) if id not in (3, 14)
        ]
        assert not other.check(deep=True).problems


def test_readers_of_data_files_alone_are_refused(table: frazil.Table) -> None:
    table.update({"price": 1.0}, mode="columns")
    with pytest.raises(Unsupported, match=r"compact\(merge_columns=True\)"):
        table.publish(format_version=3)
    with pytest.raises(Unsupported, match=r"compact\(merge_columns=True\)"):
        table.scan().to_pyiceberg_tasks()
    branch = table.branch("work", create=True)
    picked = branch.update({"price": 2.0}, mode="columns").snapshot_id
    assert picked is not None
    table.append(rows(20))
    with pytest.raises(Unsupported, match="fast-forward"):
        table.cherry_pick(picked)
    table.compact(merge_columns=True)
    table.publish(format_version=3)


def test_a_comparison_tells_files_with_new_columns(table: frazil.Table) -> None:
    table.tag("before")
    table.update({"price": 1.0}, "id < 10", mode="columns")
    difference = table.compare("before")
    (entry,) = [entry for entry in live(table) if entry["column_files"]]
    assert difference.files.changed == (f"{table.location}/{entry['location']}",)
    assert not difference.is_same
    assert table.compare("main").is_same


def test_a_lost_column_file_is_found(table: frazil.Table) -> None:
    table.update({"price": 1.0}, "id < 10", mode="columns")
    (entry,) = [entry for entry in live(table) if entry["column_files"]]
    local(table, entry["column_files"][0]["location"]).unlink()
    (problem,) = table.check().problems
    assert "not there" in str(problem)


# Concurrency


def test_who_conflicts_with_whom(table: frazil.Table) -> None:
    def others() -> frazil.Table:
        return table.pinned()

    stale, appender, deleter = others(), others(), others()
    table.update({"price": 1.0}, "id < 10", mode="columns")
    with pytest.raises(CommitConflict, match="columns updated that could match"):
        stale.update({"name": "x"}, "id < 10", mode="columns")
    table.set_properties({"write.update.isolation-level": "snapshot"})
    stale = others()
    table.update({"price": 1.0}, "id < 10", mode="columns")
    with pytest.raises(CommitConflict, match="of the file were updated meanwhile"):
        stale.update({"name": "x"}, "id < 10", mode="columns")
    with pytest.raises(CommitConflict):
        deleter.delete("price > 10")  # of the old values
    appender.append(rows(50))
    assert table.scan("id < 10 and price = 1.0").count() == 9


def test_a_delete_that_came_first_stays(table: frazil.Table) -> None:
    stale = table.pinned()
    table.delete("id = 5")
    stale.add_columns({"twice": "id * 2"})
    found = {row["id"]: row["twice"] for row in table.scan().to_pylist()}
    assert found == {id: id * 2 for id in range(20) if id not in (3, 5, 14)}


def test_rows_that_went_to_other_files_are_not_forgotten(table: frazil.Table) -> None:
    stale = table.pinned()
    table.update({"price": 0.0}, "id = 5", mode="rows")
    with pytest.raises(CommitConflict, match="updated meanwhile"):
        stale.add_columns({"twice": "id * 2"})


def test_a_compaction_conflicts_with_new_values(table: frazil.Table) -> None:
    stale = table.pinned()
    table.compact(rewrite_all=True)
    with pytest.raises(CommitConflict):
        stale.add_columns({"twice": "id * 2"})


# Files of other writers


def test_files_of_another_writer_are_read(table: frazil.Table) -> None:
    prices = [None if at == 3 else -float(at) for at in range(10)]
    handmade(table, {"elsewhere": (2, prices), "unused": (77, ["x"] * 10)}, ids=(2,))
    (entry,) = [entry for entry in live(table) if entry["column_files"]]
    first = entry["column_files"][0]["location"]
    handmade(
        table,
        {"title": (3, [f"t{at}" for at in range(10)]), "price": (2, [99.0] * 10)},
        ids=(3,),
        row_group_size=7,
        kept=(first,),
    )
    found = {row["id"]: row for row in table.scan("id < 10").to_pylist()}
    assert found == {
        at: {"id": at, "price": -float(at), "name": f"t{at}"} for at in range(10) if at != 3
    }
    # No row group is skipped by the statistics of a column that is read from elsewhere.
    assert table.scan("price = -9").count() == 1
    assert table.scan("price = -9 and name = 't9'").count() == 1
    assert table.scan("price = 13.5").count() == 0
    assert table.scan("price < 0 or id = 11").to_duckdb().aggregate("count(*)").fetchall() == [(9,)]


def test_files_that_cannot_be_right_are_refused(table: frazil.Table) -> None:
    handmade(table, {"price": (2, [1.0] * 9)})
    with pytest.raises(FormatError, match="9"):
        table.scan().to_arrow()
    assert any("9" in str(problem) for problem in table.check(deep=True).problems)


def test_a_file_without_its_column_is_refused(table: frazil.Table) -> None:
    handmade(table, {"price": (2, [1.0] * 10)}, ids=(2, 3))
    with pytest.raises(FormatError, match="has no field 3"):
        table.scan().to_arrow()


def test_parts_of_columns_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.struct([("x", pa.int64())]))])
    made = frazil.connect(tmp_path).create_table("s.t", schema)
    made.append([{"id": at, "at": {"x": at}} for at in range(10)])
    inner = made.schema.find_field("at.x").field_id
    handmade(made, {"x": (inner, [0] * 10)})
    with pytest.raises(Unsupported, match="a part of a column"):
        made.scan().to_arrow()


def test_a_part_of_a_struct_is_updated_with_its_column(tmp_path: Path) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("at", pa.struct([("x", pa.int64()), ("y", pa.int64())]))]
    )
    made = frazil.connect(tmp_path).create_table("s.t", schema)
    made.append([{"id": at, "at": {"x": at, "y": -at}} for at in range(4)])
    made.update({"at.x": frazil.expr("id * 10")}, "id > 1", mode="columns")
    found = {row["id"]: row["at"] for row in made.scan().to_pylist()}
    assert found == {at: {"x": at * 10 if at > 1 else at, "y": -at} for at in range(4)}
    assert made.scan("at.x = 30").count() == 1


def test_tables_without_column_files_read_no_more(tmp_path: Path) -> None:
    made = frazil.connect(tmp_path).create_table("s.t", SCHEMA)
    made.append(rows(0))
    (entry,) = live(made)
    assert "column_files" not in entry
    tip = made.current_snapshot()
    assert tip is not None
    assert not any("column" in key for key in tip.summary)
    held = Reach(made._handle.reader(), snapshots=made.snapshots()).holdings(
        made.snapshots(), what="roots"
    )
    assert not held.has_column_files

    def opened() -> list[str]:
        with frazil.connect(tmp_path) as catalog:  # which has nothing in its cache
            table = catalog.load_table("s.t")
            with table._handle.storage.recording() as calls:
                assert table.scan("price > 1", columns=["name"]).to_arrow().num_rows == 9
        return [f"{call.verb} {call.path}" for call in calls]

    before = opened()
    made.update({"price": frazil.expr("price")}, mode="columns")
    made.compact(merge_columns=True)
    assert len(opened()) == len(before) == 2  # the root and the data file


def test_an_update_that_writes_columns_and_rows_changes_the_right_ones(tmp_path: Path) -> None:
    """Files of a transaction have no row ids yet, so their rows are numbered by the whole plan."""
    wide = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("name", pa.string())])
    table = frazil.connect(tmp_path / "w").create_table("s.t", wide)

    def some(first: int) -> pa.Table:
        ids = list(range(first, first + 50))
        names = [f"{id:0300d}" for id in ids]
        return pa.table({"id": ids, "price": [1.0] * 50, "name": names}, schema=wide)

    with table.transaction() as tx:
        for first in (0, 50, 100):
            tx.append(some(first))
        tx.update({"price": 2.0}, "id < 50 or id = 60 or id > 99", mode="auto")
    expected = {id: 2.0 if id < 50 or id == 60 or id > 99 else 1.0 for id in range(150)}
    prices = table.scan(columns=["id", "price"]).to_arrow()
    assert prices.num_rows == 150
    assert dict(zip(prices["id"].to_pylist(), prices["price"].to_pylist(), strict=True)) == expected
    shapes = sorted(entry["column_files"] is not None for entry in live(table))
    assert shapes == [False, False, True, True]
