"""Jobs that look after tables: rows stay who they are, whatever is written anew."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
import frazil.spark
from frazil.errors import CommitConflict, InvalidInput
from frazil.spark import jobs
from frazil.spark.jobs.bars import progress_bars
from frazil.storage import local_path
from tests.spark.shop import ORDERS, content, orders, row

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.orders", ORDERS, partition_by=["day"])
    for first in range(0, 30, 6):
        made.append(orders(range(first, first + 6)))
    made.delete("id in (3, 4)")
    return made


def lineage(table: frazil.Table) -> dict[int, tuple[int, int]]:
    names = ["id", "_row_id", "_last_updated_sequence_number"]
    found = table.refresh().scan(columns=names).to_pylist()
    return {each["id"]: (each[names[1]], each[names[2]]) for each in found}


def files(table: frazil.Table) -> int:
    return table.refresh().scan().plan().files.num_rows


LEFT = {i: row(i) for i in range(30) if i not in (3, 4)}


def test_bin_packing_makes_few_files_of_many_and_keeps_rows_and_lineage(
    spark: Any, table: frazil.Table
) -> None:
    before = lineage(table)
    done = jobs.rewrite_data_files(table)
    assert (done.files_before, done.files_after, done.records) == (15, 3, 28)
    assert len(done.snapshot_ids) == 1
    assert files(table) == 3
    assert content(table) == LEFT
    assert lineage(table) == before
    last = table.current_snapshot()
    assert last is not None
    assert last.operation == "replace"
    assert table.scan().plan().files.column("deletion_vector.location").null_count == 3
    assert jobs.rewrite_data_files(table).files_before == 0


def test_files_are_packed_by_one_task_for_each_new_file_and_rows_stay_out_of_spark(
    spark: Any, catalog: frazil.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = catalog.create_table("shop.many", ORDERS)
    for first in range(0, 36, 3):
        many.append(orders(range(first, first + 3)))
    many.delete("id in (4, 5, 30)")
    many.evolve_schema().rename_column("price", "amount").commit()
    size = int(many.scan().plan().files.numpy("file_size_in_bytes").sum())
    rewriting = import_module("frazil.spark.jobs.rewrite_data_files")
    monkeypatch.setattr(rewriting, "bulk_reads", None)
    spark.sparkContext.setJobGroup("packing", "")
    before, rows = lineage(many), many.scan().to_arrow().sort_by("id")
    done = jobs.rewrite_data_files(many, target_file_bytes=size // 3, min_file_bytes=size // 4)
    tracker = spark.sparkContext.statusTracker()
    stages = {
        stage
        for job in tracker.getJobIdsForGroup("packing")
        for stage in tracker.getJobInfo(job).stageIds
    }
    tasks = [tracker.getStageInfo(stage).numTasks for stage in sorted(stages)]
    assert done.files_before == 12
    assert 3 <= done.files_after <= 4
    assert tasks[-1] == done.files_after
    assert lineage(many) == before
    assert many.refresh().scan().to_arrow().sort_by("id").equals(rows)


def test_sorting_puts_rows_in_order_and_groups_land_one_by_one(
    spark: Any, table: frazil.Table
) -> None:
    before = lineage(table)
    done = jobs.rewrite_data_files(
        table, strategy="sort", by=["price desc"], partial_progress=True, max_commits=3
    )
    assert len(done.snapshot_ids) == 3
    assert lineage(table) == before
    for day in (1, 2, 3):
        rows = table.scan(where=f"day = '2024-01-0{day}'").to_pylist()
        prices = [each["price"] for each in rows]
        assert prices == sorted(prices, reverse=True)


def test_z_order_keeps_rows_and_splits_both_columns(spark: Any, catalog: frazil.Catalog) -> None:
    schema = pa.schema([("x", pa.int64()), ("y", pa.float64()), ("pad", pa.binary())])
    grid = [(x, y / 10) for x in range(32) for y in range(32)]
    chance = random.Random(7)
    columns = [[x for x, _ in grid], [y for _, y in grid], [chance.randbytes(64) for _ in grid]]
    table = catalog.create_table("shop.grid", schema)
    table.append(pa.table(columns, schema=schema))
    size = int(table.scan().plan().files.numpy("file_size_in_bytes").sum())
    jobs.rewrite_data_files(
        table, strategy="z-order", by=["x", "y"], target_file_bytes=-(-size // 4)
    )
    table.refresh()
    assert sorted((each["x"], each["y"]) for each in table.scan().to_pylist()) == grid
    assert files(table) == 4
    # Four squares: each column alone prunes half of the files, both together leave one.
    assert table.scan(where="x < 8").plan().files.num_rows == 2
    assert table.scan(where="y < 0.8").plan().files.num_rows == 2
    assert table.scan(where="x < 8 and y < 0.8").plan().files.num_rows == 1


def test_a_rewrite_never_brings_back_rows_deleted_meanwhile(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    stale = catalog.load_table("shop.orders").pinned()
    table.delete("id = 9")  # a row of the first day's files
    with pytest.raises(CommitConflict):
        jobs.rewrite_data_files(stale)
    stored = len(list(Path(local_path(f"{table.location}/data")).rglob("*.parquet")))
    assert stored == 15
    stale = catalog.load_table("shop.orders").pinned()
    table.delete("id = 12")
    done = jobs.rewrite_data_files(stale, partial_progress=True)
    assert len(done.failed) == 1
    assert (done.groups, done.files_after) == (2, 2)
    wanted = {i: LEFT[i] for i in LEFT if i not in (9, 12)}
    assert content(table) == wanted


def test_wrong_rewrites_are_refused(spark: Any, table: frazil.Table) -> None:
    with pytest.raises(InvalidInput, match="no sort columns"):
        jobs.rewrite_data_files(table, strategy="sort")
    with pytest.raises(InvalidInput, match="two columns"):
        jobs.rewrite_data_files(table, strategy="z-order", by=["id"])
    with pytest.raises(InvalidInput, match="strategy"):
        jobs.rewrite_data_files(table, strategy="pile")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="leaves_per_task is 0"):
        jobs.rewrite_manifests(table, leaves_per_task=0)


def test_equality_deletes_become_vectors_and_rows_stay_deleted(
    spark: Any, table: frazil.Table
) -> None:
    keys = pa.table({"id": pa.array([10, 11, 500], pa.int64())})
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(keys, ["id"]).commit()
    table.append(orders([10]))
    wanted = {i: LEFT[i] for i in LEFT if i != 11}
    assert content(table) == wanted
    before = table.current_snapshot()
    done = jobs.convert_equality_deletes(table)
    assert (done.delete_files, done.data_files, done.rows) == (1, 2, 2)
    assert content(table) == wanted
    assert table.scan().explain().equality_deletes == 0
    assert table.changes(since=before).to_pylist() == []
    assert jobs.convert_equality_deletes(table).snapshot_id is None


def test_leaves_are_clustered_and_planned_on_executors(spark: Any, table: frazil.Table) -> None:
    table.set_properties({"write.leaf.target-entries": "5"})
    done = jobs.rewrite_manifests(table, progress=False)
    assert (done.leaves_before, done.leaves_after) == (0, 3)
    for where in ("day = '2024-01-02'", "id = 8", None):
        here = table.scan(where).plan()
        there = jobs.plan_distributed(table, where, leaves_per_task=1)
        assert there.files.pylist("location") == here.files.pylist("location")
        assert there.files.pylist("@position") == here.files.pylist("@position")
        assert there.report.leaves.considered == here.report.leaves.considered
    assert jobs.plan_distributed(table, "day = '2024-01-02'").files.num_rows == 5


@pytest.mark.parametrize("mode", ["distributed", "local", "auto"])
def test_queries_are_planned_where_the_table_says(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table, mode: str
) -> None:
    frazil.spark.register(spark, catalog)
    table.set_properties({"write.leaf.target-entries": "5"})
    jobs.rewrite_manifests(table, progress=False)
    table.set_properties({"read.data-planning-mode": mode})
    name = f"frazil.{table.name}"
    spark.table(name)
    context = spark.sparkContext
    context.setJobGroup(f"planned {mode}", "")
    query = spark.sql(f"SELECT id FROM {name} WHERE day > '2024-01-01'")
    assert "(10 of 15 files; " in str(query._jdf.queryExecution().toString())
    started = context.statusTracker().getJobIdsForGroup(f"planned {mode}")
    assert bool(started) == (mode == "distributed")
    wanted = table.scan("day > '2024-01-01'").to_arrow()["id"].to_pylist()
    assert sorted(row.id for row in query.collect()) == sorted(wanted)


def test_leaves_rewritten_by_executors_are_those_of_the_driver(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    table.set_properties({"write.leaf.target-entries": "2"})
    assert jobs.rewrite_manifests(table, progress=False).leaves_after == 8
    table.append(orders([900]))  # an entry of the root
    table.delete("id = 5")  # a position in a leaf is dead, its entry is in the root
    wanted, before = content(table), table.current_snapshot()
    table.set_properties({"write.leaf.target-entries": "5"})
    other = table.clone(catalog, "shop.other")
    done = jobs.rewrite_manifests(table, leaves_per_task=3, progress=False)
    assert (done.leaves_before, done.leaves_after) == (8, 4)
    assert content(table) == wanted
    assert table.changes(since=before).to_pylist() == []
    assert table.check().problems == ()
    other.rewrite_manifests()
    assert _leaves(table) == _leaves(other)
    assert not jobs.rewrite_manifests(table, leaves_per_task=3, progress=False).snapshot_id


def _leaves(table: frazil.Table) -> list[list[str]]:
    """The names of the files in each leaf; all files are in leaves."""
    reader = table._handle.reader()
    tree = reader.tree(table.current_snapshot())
    assert tree.content().num_rows == 0
    return [
        [path.rpartition("/")[2] for path in reader.live(leaf).pylist("location")]
        for leaf in tree.leaves()
    ]


def test_orphans_are_found_by_executors_and_removed(spark: Any, table: frazil.Table) -> None:
    folder = Path(local_path(table.location)) / "data"
    junk = folder / "day=2024-01-01" / "left-behind.parquet"
    junk.write_bytes(b"junk")
    later = datetime.now(UTC) + timedelta(hours=1)
    seen = jobs.remove_orphan_files(table, older_than=later, dry_run=True)
    assert [local_path(file.path) for file in seen.files] == [str(junk)]
    assert jobs.remove_orphan_files(table).files == ()
    assert junk.exists()
    jobs.remove_orphan_files(table, older_than=later)
    assert not junk.exists()
    assert content(table) == LEFT


# What needs no Spark


def test_bars_appear_only_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars("job", visible=False) as silent:
        silent(1, 2, "groups")
    assert capsys.readouterr().err == ""
    with progress_bars("job", visible=True) as shown:
        shown(0, 2, "groups")
        shown(2, 2, "groups")
    assert "job: groups" in capsys.readouterr().err
