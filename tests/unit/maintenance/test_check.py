"""The checker: silent on sound tables, and precise on broken ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.data.metadata_columns import ROW_ID
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import History, SnapshotId, SnapshotRef
from frazil.format.vectors import bitmap
from frazil.maintenance.check.check_metadata import check_metadata
from frazil.maintenance.check.check_root import overlapping_rows
from frazil.maintenance.check.problems import Problems
from frazil.table import Table
from tests.support.damaged import damage, path_of, root_of, root_row, set_value
from tests.support.history import SMALL, catalog_in, new_table, rows


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """One leaf with a dead and a replaced position, a modified file and a new one in the root."""
    made = new_table(tmp_path, properties=SMALL)
    for number in range(5):
        made.append(rows(number, number + 100))
    made.delete("id = 1 or id = 101")
    with made.transaction() as tx:
        tx.delete("id = 2")
        tx.append(rows(50))
    return made


def _leaf(table: Table) -> str:
    return table._handle.reader().tree(table.current_snapshot()).leaves()[0].location


def _found(table: Table, *, deep: bool = False) -> set[tuple[str, str]]:
    """Files and fields of the problems found."""
    report = table.check(deep=deep)
    return {(problem.path.rpartition("/")[2], problem.field) for problem in report.problems}


def test_a_sound_table_has_no_problem(table: Table) -> None:
    report = table.check(deep=True)
    assert report.problems == ()
    assert report.ok
    assert report.snapshots == 7
    # Seven roots and the leaf; five files and one more; two Puffin files; one JSON at least.
    assert report.manifests == 8
    assert "no problem found" in str(report)
    assert report.to_dict()["ok"] is True


def test_an_empty_table_has_no_problem(tmp_path: Path) -> None:
    assert new_table(tmp_path).check(deep=True).problems == ()


@pytest.mark.parametrize("key", ["snapshot_id", "sequence_number", "first_row_id"])
def test_tracking_must_be_explicit_in_a_root(table: Table, key: str) -> None:
    row = root_row(table, status=Status.ADDED)
    damage(table, root_of(table), set_value(f"tracking.{key}", row, None))
    assert (root_of(table).rpartition("/")[2], f"tracking.{key}") in _found(table)


def test_an_added_file_belongs_to_the_roots_snapshot(table: Table) -> None:
    row = root_row(table, status=Status.ADDED)
    damage(table, root_of(table), set_value("tracking.snapshot_id", row, 77))
    assert (root_of(table).rpartition("/")[2], "tracking.snapshot_id") in _found(table)


def test_sequence_numbers_do_not_run_ahead(table: Table) -> None:
    row = root_row(table, status=Status.ADDED)
    damage(table, root_of(table), set_value("tracking.sequence_number", row, 99))
    assert (root_of(table).rpartition("/")[2], "tracking.sequence_number") in _found(table)


def test_died_positions_are_in_the_manifest_vector(table: Table) -> None:
    row = root_row(table, leaf=True)
    extra = bitmap.encode(bitmap.as_positions([3]))
    damage(table, root_of(table), set_value("tracking.deleted_positions", row, extra))
    assert (root_of(table).rpartition("/")[2], "tracking.deleted_positions") in _found(table)


def test_deleted_and_replaced_positions_are_apart(table: Table) -> None:
    row = root_row(table, leaf=True)
    root = table._handle.reader().tree(table.current_snapshot()).root
    both = root.pylist("tracking.replaced_positions")[row]
    damage(table, root_of(table), set_value("tracking.deleted_positions", row, both))
    text = str(table.check())
    assert "with replaced_positions" in text


def test_positions_lie_within_the_leaf(table: Table) -> None:
    row = root_row(table, leaf=True)
    far = bitmap.encode(bitmap.as_positions([1, 2, 900]))
    damage(table, root_of(table), set_value("manifest_info.dv", row, far))
    text = str(table.check())
    assert "900" in text


def test_counts_of_a_leaf_are_those_of_its_entries(table: Table) -> None:
    row = root_row(table, leaf=True)
    damage(table, root_of(table), set_value("manifest_info.existing_rows_count", row, 1))
    # The first root that lists the leaf is sound, so the leaf itself is not at fault there.
    table.expire_snapshots(keep_last=1, older_than=2**60)
    table._handle.context.cache.clear()
    leaf = _leaf(table).rpartition("/")[2]
    assert (leaf, "manifest_info.existing_rows_count") in _found(table)


def test_a_root_states_as_many_entries_as_the_leaf_has(table: Table) -> None:
    row = root_row(table, leaf=True)
    damage(table, root_of(table), set_value("record_count", row, 4))
    found = _found(table)
    assert (root_of(table).rpartition("/")[2], "record_count") in found


@pytest.mark.parametrize(("bound", "value"), [("lower_bound", 3), ("upper_bound", 50)])
def test_aggregates_enclose_what_is_live(table: Table, bound: str, value: int) -> None:
    row = root_row(table, leaf=True)
    damage(table, root_of(table), set_value(f"content_stats.1.{bound}", row, value))
    leaf = _leaf(table).rpartition("/")[2]
    assert (leaf, f"content_stats.1.{bound}") in _found(table)


def test_wider_aggregates_are_fine(table: Table) -> None:
    row = root_row(table, leaf=True)
    damage(table, root_of(table), set_value("content_stats.1.lower_bound", row, -5))
    assert table.check().problems == ()


def test_a_file_is_live_once(table: Table) -> None:
    row = root_row(table, status=Status.ADDED)
    leaf = table._handle.reader().tree(table.current_snapshot()).leaves()[0]
    name = table._handle.reader().live(leaf, keys=["location"]).pylist("location")[0]
    damage(table, root_of(table), set_value("location", row, name))
    assert "is live more than once" in str(table.check())


def test_row_ids_of_files_are_apart(table: Table) -> None:
    row = root_row(table, status=Status.ADDED)
    damage(table, root_of(table), set_value("tracking.first_row_id", row, 0))
    assert (root_of(table).rpartition("/")[2], "tracking.first_row_id") in _found(table)


def test_a_lost_entry_is_noticed(table: Table) -> None:
    """A leaf that is dropped while files in it were live."""
    row = root_row(table, leaf=True)

    def drop(batch: EntryBatch) -> EntryBatch:
        return batch.take([at for at in range(batch.num_rows) if at != row])

    damage(table, root_of(table), drop)
    text = str(table.check())
    assert "should be live and is not" in text
    assert "total-data-files" in text


def test_a_modified_file_has_a_replaced_predecessor(table: Table) -> None:
    row = root_row(table, leaf=True)

    def forget(batch: EntryBatch) -> EntryBatch:
        return batch.without("tracking.replaced_positions")

    damage(table, root_of(table), forget)
    text = str(table.check())
    assert "its predecessor is not REPLACED" in text
    assert "is MODIFIED and no position died" in text
    assert row >= 0


def test_missing_and_changed_files_are_named(table: Table) -> None:
    plan = table.scan().plan()
    first, second = plan.files.pylist("location")[:2]
    path_of(table, first).unlink()
    with path_of(table, second).open("ab") as file:
        file.write(b"more")
    found = _found(table)
    assert (first.rpartition("/")[2], "location") in found
    assert (second.rpartition("/")[2], "file_size_in_bytes") in found


def test_a_missing_leaf_is_named_and_the_rest_still_checked(table: Table) -> None:
    leaf = _leaf(table)
    path_of(table, leaf).unlink()
    table._handle.context.cache.clear()
    report = table.check()
    assert (leaf.rpartition("/")[2], "location") in _found(table)
    assert report.snapshots == 7


def test_a_root_that_is_no_parquet_is_named(table: Table) -> None:
    path_of(table, root_of(table)).write_bytes(b"garbage")
    table._handle.context.cache.clear()
    assert any(name == root_of(table).rpartition("/")[2] for name, _ in _found(table))


def test_deep_counts_rows_and_vectors(table: Table) -> None:
    row = root_row(table, status=Status.MODIFIED)
    damage(table, root_of(table), set_value("deletion_vector.cardinality", row, 2))
    assert any("total-position-deletes" in problem.field for problem in table.check().problems)
    puffin = [name for name, _ in _found(table, deep=True) if name.endswith(".puffin")]
    assert len(puffin) == 1


def test_deep_compares_the_footers_of_puffin_files(table: Table) -> None:
    vectors = table.scan().plan().files.pylist("deletion_vector.location")
    location = next(vector for vector in vectors if vector)
    path = path_of(table, location)
    content, count = re.subn(
        rb'"length":(\d+)', lambda said: b'"length":%d' % (int(said[1]) - 1), path.read_bytes()
    )
    assert count >= 1
    path.write_bytes(content)
    assert _found(table) == set()
    assert (path.name, "footer") in _found(table, deep=True)


def test_deep_compares_row_counts(table: Table) -> None:
    row = root_row(table, status=Status.ADDED)
    damage(table, root_of(table), set_value("record_count", row, 2))
    name = table._handle.reader().tree(table.current_snapshot()).root.pylist("location")[row]
    assert (name.rpartition("/")[2], "record_count") in _found(table, deep=True)


def test_another_tables_root_is_noticed(table: Table, tmp_path: Path) -> None:
    other = new_table(tmp_path / "other", properties=SMALL)
    other.append(rows(1))
    root = other.current_snapshot()
    assert root is not None
    assert root.root_manifest is not None
    data = path_of(other, root.root_manifest).read_bytes()
    path_of(table, root_of(table)).write_bytes(data)
    table._handle.context.cache.clear()
    fields = {field for _, field in _found(table)}
    assert {"table-uuid", "snapshot-id", "sequence-number"} <= fields


def test_summaries_add_up(table: Table) -> None:
    history = table._handle.head.history()  # type: ignore[attr-defined]
    last = history.snapshots[-1]
    assert last.summary["total-data-files"] == "5"
    assert last.summary["total-records"] == "9"
    assert last.summary["total-position-deletes"] == "1"


def _metadata_problems(table: Table, change: Callable[..., Any]) -> set[str]:
    history: History = table._handle.head.history()  # type: ignore[attr-defined]
    metadata, history = change(table.metadata, history)
    problems = Problems()
    check_metadata(metadata, history, problems)
    return {problem.field for problem in problems.listed}


def test_metadata_rules(table: Table) -> None:
    assert _metadata_problems(table, lambda m, h: (m, h)) == set()
    lost = SnapshotRef(snapshot_id=SnapshotId(5))
    cases: list[tuple[str, Callable[..., Any]]] = [
        ("refs.lost", lambda m, h: (replace(m, refs={**m.refs, "lost": lost}), h)),
        ("current-schema-id", lambda m, h: (replace(m, current_schema_id=9), h)),
        ("default-spec-id", lambda m, h: (replace(m, default_spec_id=9), h)),
        ("last-column-id", lambda m, h: (replace(m, last_column_id=1), h)),
        ("sequence-number", lambda m, h: (replace(m, last_sequence_number=2), h)),
        ("added-rows", lambda m, h: (replace(m, next_row_id=3), h)),
        ("snapshot-log", lambda m, h: (m, replace(h, snapshots=h.snapshots[1:]))),
        ("snapshots", lambda m, h: (m, replace(h, snapshots=(*h.snapshots, h.snapshots[0])))),
    ]
    for field, change in cases:
        assert field in _metadata_problems(table, change), field


def test_only_named_snapshots_can_be_checked(table: Table) -> None:
    assert table.check(history=False).snapshots == 1


def _with_row_ids(path: Path, ids: list[int], row_ids: list[int]) -> str:
    """A Parquet file that stores the ids of its rows, as a rewrite would write them."""
    fields = [
        pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("v", pa.string(), metadata={"PARQUET:field_id": "2"}),
        pa.field("_row_id", pa.int64(), metadata={"PARQUET:field_id": str(ROW_ID.field_id)}),
    ]
    columns = [pa.array(ids), pa.array(["x"] * len(ids)), pa.array(row_ids)]
    pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)), path)
    return str(path)


def test_a_deep_check_finds_two_rows_with_one_id(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2, 3))  # row ids 0 to 2
    table.add_files([_with_row_ids(tmp_path / "a.parquet", [7, 8], [100, 101])])
    assert table.check(deep=True).problems == ()
    table.add_files([_with_row_ids(tmp_path / "b.parquet", [9], [1])])
    (problem,) = table.check(deep=True).problems
    assert problem.field == "_row_id"
    assert problem.what.startswith("1 is the id of two rows")
    assert "b.parquet" in problem.what
    table.delete("id = 2")  # the row that had it first
    assert table.check(deep=True, history=False).problems == ()
    table.add_files([_with_row_ids(tmp_path / "c.parquet", [10, 11], [200, 200])])
    (problem,) = table.check(deep=True, history=False).problems
    assert problem.what.startswith("200 is the id of two rows")


def test_row_ids_of_updated_rows_are_not_taken_for_duplicates(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(*range(20)))
    table.update({"v": "'y'"}, where="id >= 5 AND id < 9")
    table.update({"v": "'z'"}, where="id = 7 OR id = 12")
    assert table.check(deep=True).problems == ()


def test_a_leaf_whose_live_files_hold_only_nan_is_fine(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    catalog = catalog_in(tmp_path)
    table = catalog.create_table("shop.nan", schema, properties=SMALL)
    for id, x in ((1, float("nan")), (2, 1.5), (3, float("nan")), (4, 2.5), (5, float("nan"))):
        table.append(pa.table({"id": [id], "x": [x]}, schema=schema))
    table.compact_metadata()
    assert table.inspect.manifests.num_rows
    table.delete("id = 2 OR id = 4")
    assert table.check(deep=True).problems == ()


def test_ranges_of_row_ids_that_overlap_are_found_without_opening_files() -> None:
    def entries(*starts: int) -> EntryBatch:
        return EntryBatch.from_rows(
            [
                {
                    "location": f"{start}.parquet",
                    "content_type": 0,
                    "record_count": 10,
                    "tracking.first_row_id": start,
                }
                for start in starts
            ]
        )

    assert overlapping_rows(entries(20, 0, 10)) == []
    assert overlapping_rows(entries(29, 0, 20)) == [("20.parquet", "29.parquet")]
