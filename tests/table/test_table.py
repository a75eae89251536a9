"""A table through its facade: rows in, rows out, history, files. Expected rows are plain Python."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import parser
from pyiceberg.io import load_file_io
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.types import LongType, NestedField, StringType

import frazil
from frazil.errors import CommitConflict, InvalidInput, NotFound, Unsupported
from frazil.rows.editor import RowEditor
from frazil.storage import local_path
from tests.support.rewrites import rewrite_files
from tests.table.conftest import ORDERS, orders


def ids(scan: frazil.Scan) -> list[int]:
    return sorted(scan.to_arrow()["order_id"].to_pylist())


def row_ids(table: frazil.Table) -> dict[int, int]:
    rows = table.scan(columns=["order_id", "_row_id"]).to_pylist()
    return {row["order_id"]: row["_row_id"] for row in rows}


def test_rows_come_back_as_they_went_in(table: frazil.Table) -> None:
    table.append(orders(0, 50))
    found = table.scan().to_arrow().sort_by("order_id")
    assert found.to_pylist() == orders(0, 50).to_pylist()


def test_every_kind_of_frame_can_be_appended_and_read(table: frazil.Table) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    rows = orders(0, 4)
    table.append(rows)
    table.append(rows.to_reader())
    table.append(polars.DataFrame(rows))
    table.append(pandas.DataFrame(rows.to_pydict()))
    table.append(rows.to_pylist())
    assert table.scan().count() == 20
    assert len(table.scan().to_pandas()) == 20
    assert table.scan().to_polars().height == 20
    total = table.scan().to_duckdb().aggregate("sum(order_id)").fetchall()
    assert total == [(5 * (0 + 1 + 2 + 3),)]


def test_filters_columns_and_limits_apply(table: frazil.Table) -> None:
    table.append(orders(0, 30))
    where = "order_date = '2024-01-02' and country = 'US'"
    expected = [i for i in range(30) if i % 3 == 1 and i % 2]
    assert ids(table.scan(where=where)) == expected
    assert table.scan(where=where).count() == len(expected)
    assert table.scan(columns=["price"], limit=7).to_arrow().shape == (7, 1)
    assert table.scan(limit=0).to_arrow().num_rows == 0


def test_explain_says_what_pruned(table: frazil.Table) -> None:
    table.append(orders(0, 30))
    report = table.scan(where="order_date = '2024-01-02'").explain()
    assert (report.root.considered, report.root.pruned_by_partition, report.files) == (3, 2, 1)
    assert "by partition" in str(report)


def test_a_delete_that_covers_files_writes_no_vector(table: frazil.Table) -> None:
    table.append(orders(0, 30))
    done = table.delete("order_date = '2024-01-01'")
    assert done is not None
    assert done.snapshot is not None
    assert done.snapshot.summary["deleted-data-files"] == "1"
    assert "added-dvs" not in done.snapshot.summary
    assert ids(table.scan()) == [i for i in range(30) if i % 3]


def test_a_delete_of_all_rows_left_drops_the_file(table: frazil.Table) -> None:
    table.append(orders(0, 6))
    table.delete("order_id = 0")
    done = table.delete("order_id = 3")
    assert done is not None
    assert done.snapshot is not None
    assert done.snapshot.summary["deleted-data-files"] == "1"
    assert ids(table.scan()) == [1, 2, 4, 5]


def test_a_delete_that_matches_nothing_commits_nothing(table: frazil.Table) -> None:
    table.append(orders(0, 6))
    before = table.current_snapshot()
    done = table.delete("order_id = 99")
    assert (done.committed, done.operation, done.notes) == (False, "none", ("no row matched",))
    assert table.current_snapshot() == before


def test_updates_keep_row_ids(table: frazil.Table) -> None:
    table.append(orders(0, 30))
    before = row_ids(table)
    table.update(
        {"price": frazil.expr("price * 2"), "country": "FR"}, where="order_id between 10 and 12"
    )
    assert row_ids(table) == before
    changed = table.scan(where="country = 'FR'").to_arrow().sort_by("order_id").to_pylist()
    assert [(row["order_id"], row["price"]) for row in changed] == [
        (10, 20.0),
        (11, 22.0),
        (12, 24.0),
    ]


def test_upserts_update_insert_and_leave_equal_rows_alone(table: frazil.Table) -> None:
    table.append(orders(0, 10))
    before = row_ids(table)
    rows = pa.concat_tables([orders(0, 3), orders(3, 5, country="FR"), orders(10, 12)])
    done = table.upsert(rows, on=["order_id"])
    assert (done.rows_updated, done.rows_added) == (2, 2)
    after = row_ids(table)
    assert {id: after[id] for id in before} == before
    assert len(set(after.values())) == 12
    assert ids(table.scan(where="country = 'FR'")) == [3, 4]


def test_overwrite_by_filter_and_by_partition(table: frazil.Table) -> None:
    table.append(orders(0, 30))
    table.overwrite(orders(100, 103), where="country = 'US'")
    kept = [i for i in range(30) if i % 2 == 0]
    assert ids(table.scan()) == [*kept, 100, 101, 102]
    table.overwrite_partitions(orders(201, 202))  # 2024-01-01
    assert ids(table.scan()) == sorted([*(i for i in [*kept, 100, 101] if i % 3), 201, 101][:-1])


def test_overwrite_without_a_filter_replaces_everything(table: frazil.Table) -> None:
    table.append(orders(0, 30))
    table.overwrite(orders(5, 7))
    assert ids(table.scan()) == [5, 6]


def test_a_transaction_sees_its_own_changes_and_lands_once(table: frazil.Table) -> None:
    table.append(orders(0, 10))
    with table.transaction() as tx:
        tx.append(orders(10, 20))
        tx.delete("order_id = 15")
        tx.update({"country": "FR"}, where="order_id = 16")
        assert tx.scan().count() == 19
    assert len(table.snapshots()) == 2
    assert ids(table.scan()) == [i for i in range(20) if i != 15]
    assert ids(table.scan(where="country = 'FR'")) == [16]


def test_a_transaction_leaves_no_file_that_it_does_not_use(table: frazil.Table) -> None:
    with table.transaction() as tx:
        tx.append(orders(0, 9))
        tx.delete("order_id = 0")
        tx.delete("order_id = 3")  # a second vector on the same file: the first is not needed
        tx.delete("order_date = '2024-01-02'")  # a whole file that was added just now
    assert ids(table.scan()) == [2, 5, 6, 8]
    found = table.remove_orphan_files(older_than=datetime(2100, 1, 1, tzinfo=UTC), dry_run=True)
    assert not found.files


def test_time_travel_by_id_tag_branch_and_time(table: frazil.Table) -> None:
    table.append(orders(0, 5))
    first = table.current_snapshot()
    assert first is not None
    table.tag("start")
    moment = datetime.fromtimestamp(first.timestamp_ms / 1000, UTC)
    audit = table.branch("audit", create=True)
    audit.append(orders(50, 52))
    table.append(orders(5, 8))
    assert ids(table.scan()) == list(range(8))
    for as_of in (int(first.snapshot_id), "start", moment, first):
        assert ids(table.scan(as_of=as_of)) == list(range(5))
    assert ids(table.scan(as_of="audit")) == [0, 1, 2, 3, 4, 50, 51]
    with pytest.raises(NotFound, match="no snapshot of main is as old as"):
        table.scan(as_of="2001-01-01").to_arrow()


def test_rollback_goes_back_and_only_within_history(table: frazil.Table) -> None:
    table.append(orders(0, 5))
    first = table.current_snapshot()
    table.append(orders(5, 8))
    branch = table.branch("other", create=True)
    branch.append(orders(90, 91))
    elsewhere = branch.current_snapshot()
    assert first is not None
    assert elsewhere is not None
    table.rollback(first)
    assert ids(table.scan()) == list(range(5))
    with pytest.raises(InvalidInput, match="history"):
        table.rollback(elsewhere)


def test_schema_evolution_reads_old_files(table: frazil.Table) -> None:
    table.append(orders(0, 5))
    table.evolve_schema().add_column("note", "string").rename_column("price", "amount").commit()
    row = {"order_id": 5, "order_date": None, "country": "DE", "amount": 5.0, "note": "new"}
    table.append([row])
    found = {row["order_id"]: row for row in table.scan().to_pylist()}
    assert found[2]["amount"] == 2.0
    assert found[2]["note"] is None
    assert found[5]["note"] == "new"


def test_partition_evolution_keeps_old_files_readable(table: frazil.Table) -> None:
    table.append(orders(0, 12))
    table.evolve_partitions().add("bucket[4](order_id)").commit()
    table.append(orders(12, 24))
    assert ids(table.scan(where="order_id = 13")) == [13]
    assert table.scan(where="order_date = '2024-01-01'").count() == 8


def test_files_of_others_are_added_where_they_are(catalog: frazil.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("shop.plain", ORDERS)
    outside = tmp_path / "outside.parquet"
    pq.write_table(orders(0, 9), outside)
    table.add_files([str(outside)])
    assert ids(table.scan(where="order_id >= 7")) == [7, 8]
    with pytest.raises(InvalidInput, match="already"):
        table.add_files([str(outside)])


def test_a_row_delta_deletes_by_position_and_by_equality(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("shop.plain", ORDERS)
    table.append(orders(0, 10))
    path = table.scan().plan().files.pylist("location")[0]
    table.row_delta().delete_rows(path, [0, 1]).commit()
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes([{"country": "US"}], on=["country"]).commit()
    table.append(orders(11, 12))
    assert ids(table.scan()) == [2, 4, 6, 8, 11]


def test_a_rewrite_keeps_rows_and_row_ids_and_fails_when_rows_change(
    catalog: frazil.Catalog,
) -> None:
    table = catalog.create_table("shop.plain", ORDERS)
    table.append(orders(0, 5))
    table.append(orders(5, 10))
    before = row_ids(table)
    files = table.scan().plan().files.pylist("location")
    editor = RowEditor(handle=table._handle, metadata=table.metadata, snapshot=None, branch="main")
    columns = [
        *(field.name for field in table.schema.fields),
        "_row_id",
        "_last_updated_sequence_number",
    ]
    merged = editor.write(table.scan(columns=columns).to_batches(), with_lineage=True)
    other = catalog.load_table("shop.plain")
    base = table.current_snapshot()
    assert base is not None
    rewrite_files(table, files, merged)
    assert row_ids(table) == before
    assert table.scan().plan().files.num_rows == 1
    assert len(table.changes(since=base).to_arrow()) == 0
    with pytest.raises(CommitConflict):
        rewrite_files(other, files, merged)


def test_tables_are_listed_renamed_and_dropped(catalog: frazil.Catalog) -> None:
    made = catalog.create_table("a.one", ORDERS)
    catalog.create_table("b.two", ORDERS)
    assert catalog.list_tables() == ["a.one", "b.two"]
    assert catalog.list_tables("a") == ["a.one"]
    made.append(orders(0, 3))
    moved = catalog.rename_table("a.one", "b.one")
    assert moved.scan().count() == 3
    catalog.drop_table("b.one", purge=True)
    assert not Path(local_path(made.location)).exists() or not list(
        Path(local_path(made.location)).rglob("*.parquet")
    )
    assert "b.one" not in catalog


def test_ten_thousand_files_plan_without_objects(table: frazil.Table) -> None:
    table.append(orders(0, 3))
    row = table.scan().plan().files.take(np.zeros(10_000, dtype=np.int64))
    names = pa.array([f"data/{index}.parquet" for index in range(10_000)])
    keys = [key for key in row.keys if not key.startswith(("@", "tracking"))]
    entries = row.select(keys).with_column("location", names)
    entries = entries.with_constant("content_type", 0)
    table._add_entries(entries.with_constant("tracking.status", 1))
    assert table.scan().plan().files.num_rows == 10_003


def test_column_defaults_of_a_new_table_are_kept(catalog: frazil.Catalog) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "kind", StringType(), required=False, write_default="plain"),
    )
    table = catalog.create_table("shop.defaults", schema)
    table.append([{"id": 1}])
    assert table.scan().to_pylist() == [{"id": 1, "kind": "plain"}]


def test_pyiceberg_reads_a_plan(table: frazil.Table) -> None:
    table.append(orders(0, 30))
    table.delete("order_id = 3 or order_id = 4")
    where = "order_date = '2024-01-01' and order_id < 20"
    scan = table.scan(where=where)
    reader = ArrowScan(
        new_table_metadata(table.schema, table.spec, table.sort_order, table.location),
        load_file_io({}, table.location),
        table.schema,
        parser.parse(where),
    )
    found = reader.to_table(scan.to_pyiceberg_tasks())
    assert sorted(found["order_id"].to_pylist()) == [0, 6, 9, 12, 15, 18]


def test_files_with_rows_stay_when_garbage_is_not_collected(table: frazil.Table) -> None:
    table.append(orders(0, 6))
    table.overwrite(orders(6, 9))
    table.set_properties({"gc.enabled": "false"})
    data = sorted((Path(local_path(table.location)) / "data").rglob("*.parquet"))
    soon = datetime(2100, 1, 1, tzinfo=UTC)
    done = table.expire_snapshots(older_than=soon, keep_last=1)
    assert len(done.snapshot_ids) == 1
    assert len(done.spared) == 3
    assert sorted((Path(local_path(table.location)) / "data").rglob("*.parquet")) == data
    with pytest.raises(Unsupported, match=r"gc\.enabled"):
        table.remove_orphan_files(older_than=soon)
