"""Files that exist already, and equality deletes, on tables whose columns and specs change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.commit.change import Change, VectorEdit
from frazil.commit.loop import commit
from frazil.errors import FormatError, InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import ColumnFile, with_column_files
from frazil.table import adopt_files
from frazil.tree.stored_vectors import vectors_of, with_vectors
from frazil.value_classes import replace
from tests.table.conftest import orders

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.string())])


@pytest.fixture
def things(catalog: frazil.Catalog, tmp_path: Path) -> frazil.Table:
    """A table with one file that has no field ids."""
    table = catalog.create_table("shop.things", SCHEMA)
    table.add_files([_file(tmp_path, "first", {"id": [1], "x": ["one"]})])
    return table


def _file(folder: Path, name: str, columns: dict[str, list[object]]) -> str:
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table(columns), path)
    return str(path)


def _rows(table: frazil.Table) -> list[dict[str, object]]:
    return list(table.scan().to_arrow().sort_by("id").to_pylist())


def test_a_file_added_after_a_column_has_its_values(things: frazil.Table, tmp_path: Path) -> None:
    things.evolve_schema().add_column("y", "string").commit()
    things.add_files([_file(tmp_path, "second", {"id": [2], "x": ["two"], "y": ["new"]})])
    assert _rows(things) == [
        {"id": 1, "x": "one", "y": None},
        {"id": 2, "x": "two", "y": "new"},
    ]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(
    things: frazil.Table, tmp_path: Path
) -> None:
    _file(tmp_path, "day 2", {"id": [9], "x": ["matched"]})
    things.add_files([_file(tmp_path, "day [12]?", {"id": [2], "x": ["named"]})])
    assert _rows(things) == [{"id": 1, "x": "one"}, {"id": 2, "x": "named"}]


def test_files_of_both_names_of_a_renamed_column_have_their_values(
    things: frazil.Table, tmp_path: Path
) -> None:
    things.evolve_schema().rename_column("x", "z").commit()
    things.add_files([_file(tmp_path, "second", {"id": [2], "z": ["two"]})])
    assert _rows(things) == [{"id": 1, "z": "one"}, {"id": 2, "z": "two"}]


def test_a_name_that_another_column_had_is_refused(things: frazil.Table, tmp_path: Path) -> None:
    things.evolve_schema().drop_column("x").commit()
    things.evolve_schema().add_column("x", "string").commit()
    with pytest.raises(FormatError, match=r"second\.parquet: x: .*means another column"):
        things.add_files([_file(tmp_path, "second", {"id": [2], "x": ["two"]})])
    things.add_files([_file(tmp_path, "third", {"id": [3]})])
    assert _rows(things) == [{"id": 1, "x": None}, {"id": 3, "x": None}]


def test_names_that_were_swapped_are_refused(things: frazil.Table, tmp_path: Path) -> None:
    things.evolve_schema().add_column("y", "string").commit()
    things.add_files([_file(tmp_path, "second", {"id": [2], "x": ["two"], "y": ["zwei"]})])
    for old, new in (("x", "was_x"), ("y", "x"), ("was_x", "y")):
        things.evolve_schema().rename_column(old, new).commit()
    with pytest.raises(FormatError, match=r"third\.parquet: x: .*means another column"):
        things.add_files([_file(tmp_path, "third", {"id": [3], "x": ["a"], "y": ["b"]})])
    assert _rows(things) == [
        {"id": 1, "y": "one", "x": None},
        {"id": 2, "y": "two", "x": "zwei"},
    ]


def test_renamed_columns_inside_others_have_the_values_of_both_names(
    catalog: frazil.Catalog, tmp_path: Path
) -> None:
    inside = pa.struct([("a", pa.int64())])
    schema = pa.schema([("id", pa.int64()), ("p", inside), ("l", pa.list_(inside))])
    table = catalog.create_table("shop.nested", schema)
    old: dict[str, list[object]] = {"id": [1], "p": [{"a": 1}], "l": [[{"a": 2}]]}
    table.add_files([_file(tmp_path, "old", old)])
    table.evolve_schema().rename_column("p.a", "b").commit()
    table.evolve_schema().rename_column("l.element.a", "b").commit()
    new: dict[str, list[object]] = {"id": [2], "p": [{"b": 3}], "l": [[{"b": 4}]]}
    table.add_files([_file(tmp_path, "new", new)])
    assert _rows(table) == [
        {"id": 1, "p": {"b": 1}, "l": [{"b": 2}]},
        {"id": 2, "p": {"b": 3}, "l": [{"b": 4}]},
    ]
    table.evolve_schema().add_column("p.c", "long").drop_column("p.b").commit()
    table.evolve_schema().add_column("p.b", "long").commit()
    with pytest.raises(FormatError, match=r"again\.parquet: p: .*means another column"):
        table.add_files([_file(tmp_path, "again", {**new, "id": [3]})])


@pytest.fixture
def twice(things: frazil.Table, tmp_path: Path) -> frazil.Table:
    """A table that lists a file of the rows 2 and 3 twice."""
    path = _file(tmp_path, "second", {"id": [2, 3], "x": ["two", "three"]})
    things.add_files([path])
    with pytest.raises(InvalidInput, match=r"already in the table.*are read twice"):
        things.add_files([path])
    things.add_files([path], check_duplicates=False)
    assert [row["id"] for row in _rows(things)] == [1, 2, 2, 3, 3]
    assert "live more than once" in str(things.check())
    return things


@pytest.mark.parametrize("in_leaves", [False, True])
def test_rows_of_a_file_listed_twice_can_be_changed(twice: frazil.Table, in_leaves: bool) -> None:
    if in_leaves:
        twice.compact_metadata()
    done = twice.delete("id = 2")
    assert done.rows_removed == 2
    assert [row["id"] for row in _rows(twice)] == [1, 3, 3]
    assert twice.update({"x": "drei"}, "id = 3").rows_updated == 2
    assert [row["x"] for row in _rows(twice)] == ["one", "drei", "drei"]


def test_one_of_two_equal_rows_is_deleted_by_its_id(twice: frazil.Table) -> None:
    ids = twice.scan("id = 3", columns=["_row_id"]).to_arrow().column(0).to_pylist()
    twice.delete(f"_row_id = {max(ids)}")
    assert [row["id"] for row in _rows(twice)] == [1, 2, 2, 3]
    twice.delete("id = 3")
    assert [row["id"] for row in _rows(twice)] == [1, 2, 2]


def test_a_file_listed_twice_leaves_as_a_whole(twice: frazil.Table) -> None:
    assert twice.delete("id > 1").files_removed == 2
    assert _rows(twice) == [{"id": 1, "x": "one"}]


def test_a_file_listed_twice_is_compacted_with_all_its_rows(twice: frazil.Table) -> None:
    twice.compact(rewrite_all=True)
    assert [row["id"] for row in _rows(twice)] == [1, 2, 2, 3, 3]


def test_a_merge_meets_both_rows_of_a_file_listed_twice(
    twice: frazil.Table, catalog: frazil.Catalog
) -> None:
    catalog.sql(
        "MERGE INTO shop.things t USING (VALUES (2, 'zwei'), (4, 'vier')) s(id, x) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT (id, x) VALUES (id, x)"
    )
    twice.refresh()
    assert [row["x"] for row in _rows(twice)] == ["one", "zwei", "zwei", "three", "three", "vier"]


def test_a_transaction_changes_a_file_listed_twice_once(twice: frazil.Table) -> None:
    with twice.transaction() as tx:
        tx.append([{"id": 5, "x": "five"}])
        tx.delete("id = 2")
    assert [row["id"] for row in _rows(twice)] == [1, 3, 3, 5]


def test_a_transaction_changes_a_file_listed_twice_again(twice: frazil.Table) -> None:
    row_ids = twice.scan("id = 3", columns=["_row_id"]).to_arrow().column(0).to_pylist()
    for row_id, then in zip(row_ids, ("id = 2", "id > 1"), strict=True):
        tx = twice.transaction()
        tx.delete(f"_row_id = {row_id}")
        tx.delete("id = 3")
        tx.update({"x": "deux"}, then)
        assert sorted(row["id"] for row in tx.scan().to_pylist()) == [1, 2, 2]
        if then == "id = 2":
            tx.abort()
    tx.commit()
    assert [(row["id"], row["x"]) for row in _rows(twice)] == [
        (1, "one"),
        (2, "deux"),
        (2, "deux"),
    ]


def test_a_snapshot_is_not_picked_again_after_the_first_pick_expired(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    table.append(orders(0, 1))
    work = table.branch("work", create=True)
    work.append(orders(1, 2))
    picked = work.current_snapshot()
    assert picked is not None
    table.refresh().append(orders(2, 3))
    table.cherry_pick(picked.snapshot_id)
    table.append(orders(3, 4))
    soon = picked.timestamp_ms + 3_600_000
    table.expire_snapshots(older_than=soon, keep_last=1)
    with pytest.raises(InvalidInput, match="expired"):
        table.cherry_pick(picked.snapshot_id)
    assert table.refresh().scan().count() == 4


@pytest.fixture
def deleted(catalog: frazil.Catalog) -> frazil.Table:
    """A partitioned table with an equality delete: orders 0, 2, 4 are left."""
    table = catalog.create_table("shop.parts", orders(0, 1).schema, partition_by=["order_date"])
    table.append(orders(0, 6))
    table.set_properties({"write.equality-deletes.enabled": "true"})
    gone = pa.table({"country": ["US"]})
    table.row_delta().add_equality_deletes(gone, on=["country"]).commit()
    return table


def _ids(table: frazil.Table) -> list[int]:
    return sorted(table.scan(columns=["order_id"]).to_arrow().column("order_id").to_pylist())


def test_an_equality_delete_of_a_partitioned_table_names_a_spec_without_fields(
    deleted: frazil.Table,
) -> None:
    assert _ids(deleted) == [0, 2, 4]
    specs = {spec.spec_id: len(spec.fields) for spec in deleted.metadata.partition_specs}
    assert specs == {0: 1, 1: 0}
    assert deleted.metadata.default_spec_id == 0
    found = deleted.inspect.delete_files
    assert found.column("spec_id").to_pylist() == [1]
    deleted.row_delta().add_equality_deletes(pa.table({"order_id": [0]}), on=["order_id"]).commit()
    assert len(deleted.metadata.partition_specs) == 2
    assert _ids(deleted) == [2, 4]
    assert not deleted.check(deep=True).problems


def test_an_equality_delete_of_a_partitioned_table_is_published(
    catalog: frazil.Catalog, deleted: frazil.Table
) -> None:
    published = catalog.open_iceberg(deleted.publish().metadata_location)
    assert sorted(published.scan().to_arrow().column("order_id").to_pylist()) == [0, 2, 4]


def test_a_dropped_column_still_deletes_what_equals_it(deleted: frazil.Table) -> None:
    deleted.evolve_schema().drop_column("country").commit()
    assert _ids(deleted) == [0, 2, 4]
    assert deleted.scan("order_id > 1").count() == 2
    deleted.evolve_schema().add_column("country", "string").commit()
    assert deleted.scan().to_arrow().column("country").to_pylist() == [None, None, None]
    deleted.update({"price": 1.0}, "order_id = 2")
    assert _ids(deleted) == [0, 2, 4]


# Files of another table


@pytest.fixture
def neighbour(catalog: frazil.Catalog) -> frazil.Table:
    """Another table with one file."""
    table = catalog.create_table("shop.neighbour", SCHEMA)
    table.append([{"id": 7, "x": "seven"}])
    return table


def _its_file(table: frazil.Table) -> Path:
    (name,) = table.scan().plan().files.pylist("location")
    return Path(table.location.removeprefix("file://"), name)


def test_a_file_of_another_table_is_refused(
    things: frazil.Table, neighbour: frazil.Table, tmp_path: Path
) -> None:
    path = _its_file(neighbour)
    link = tmp_path / "elsewhere"
    link.symlink_to(path.parent)
    (tmp_path / "link.parquet").symlink_to(path)
    ways = (str(path), f"file://{path}", f"file:{path}", str(link / path.name))
    for spelling in (*ways, f"file://{tmp_path}/link.parquet"):
        with pytest.raises(InvalidInput, match=r"file of table shop\.neighbour.*Clone"):
            things.add_files([spelling])
    assert _rows(things) == [{"id": 1, "x": "one"}]


def test_no_way_of_adding_files_takes_one_of_another_table(
    catalog: frazil.Catalog, things: frazil.Table, neighbour: frazil.Table, tmp_path: Path
) -> None:
    path = _its_file(neighbour)
    entries = _entries(things, tmp_path).with_constant("location", f"file://{path}")
    ways: list[Callable[[], object]] = [
        lambda: things.row_delta()._add_entries(entries).commit(),
        lambda: things._add_entries(entries),
        lambda: catalog.sql(f"CALL system.add_files(table => 'shop.things', files => ['{path}'])"),
    ]
    for add in ways:
        with pytest.raises(InvalidInput, match=r"file of table shop\.neighbour"):
            add()
    assert path.exists()
    assert _rows(things.refresh()) == [{"id": 1, "x": "one"}]


def test_no_vector_or_column_file_of_another_table_is_taken(
    things: frazil.Table, neighbour: frazil.Table, tmp_path: Path
) -> None:
    path = _its_file(neighbour)
    neighbour.append([{"id": 8, "x": "eight"}, {"id": 9, "x": "nine"}])
    neighbour.delete("id = 8")
    (stored,) = [each for each in vectors_of(neighbour.scan().plan().files) if each is not None]
    theirs = replace(stored, location=f"{neighbour.location}/{stored.location}")
    (own,) = things.scan().plan().files.pylist("location")
    edit = VectorEdit(location=own, positions=np.array([0], dtype=np.int64), adopted=theirs)
    entries = _entries(things, tmp_path)
    column_file = ColumnFile(
        location=f"file://{path}",
        field_ids=(2,),
        file_format="parquet",
        file_size_in_bytes=1,
    )
    changes = [
        Change(vectors=(edit,)),
        Change(added=with_vectors(entries, [theirs])),
        Change(added=with_column_files(entries, [(column_file,)])),
    ]
    for change in changes:
        with pytest.raises(InvalidInput, match=r"file of table shop\.neighbour"):
            commit(change, head=things._handle.head, context=things._handle.context)
    assert _rows(things.refresh()) == [{"id": 1, "x": "one"}]


def _entries(table: frazil.Table, folder: Path) -> EntryBatch:
    """A file that nobody has, as an entry."""
    copy = _file(folder, "copy", {"id": [7], "x": ["seven"]})
    return adopt_files.describe(table._handle, [copy], check_duplicates=True).entries


def test_a_file_of_a_table_inside_this_one_is_refused(catalog: frazil.Catalog) -> None:
    outer = catalog.create_table("shop.outer", SCHEMA)
    inner = catalog.create_table("shop.inner", SCHEMA, location=f"{outer.location}/data/inner")
    inner.append([{"id": 7, "x": "seven"}])
    with pytest.raises(InvalidInput, match=r"file of table shop\.inner"):
        outer.add_files([str(_its_file(inner))])
    deeper = catalog.create_table("shop.deeper", SCHEMA, location=f"{inner.location}/deeper")
    deeper.add_files([_file(_folder(deeper), "own", {"id": [1], "x": ["one"]})])
    assert deeper.scan().count() == 1


def _folder(table: frazil.Table) -> Path:
    folder = Path(table.location.removeprefix("file://"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_files_that_a_dropped_table_left_behind_can_be_added(
    catalog: frazil.Catalog, things: frazil.Table, neighbour: frazil.Table
) -> None:
    path = _its_file(neighbour)
    catalog.drop_table("shop.neighbour")
    things.add_files([str(path)])
    assert _rows(things) == [{"id": 1, "x": "one"}, {"id": 7, "x": "seven"}]


def test_a_clone_may_go_on_with_the_files_of_its_source(
    catalog: frazil.Catalog, neighbour: frazil.Table
) -> None:
    copy = neighbour.clone(catalog, "shop.copy")
    with pytest.raises(InvalidInput, match=r"file of table shop\.neighbour"):
        copy.add_files([str(_its_file(neighbour))], check_duplicates=False)
    copy.append([{"id": 8, "x": "eight"}])
    assert copy.scan().count() == 2
    assert copy.clone(catalog, "shop.copy_of_copy").scan().count() == 2


@pytest.mark.parametrize(
    ("name", "error", "problem"),
    [
        ("rows.csv", InvalidInput, "not a Parquet file, and add_files references Parquet files"),
        ("rows.parquet", FormatError, "cannot be read"),
    ],
)
def test_a_file_of_another_format_is_refused_with_the_way_to_load_it(
    catalog: frazil.Catalog, tmp_path: Path, name: str, error: type[Exception], problem: str
) -> None:
    table = catalog.create_table("shop.texts", pa.schema([("id", pa.int64())]))
    (tmp_path / name).write_text("id\n1\n")
    with pytest.raises(error, match=problem):
        table.add_files(str(tmp_path / name))
