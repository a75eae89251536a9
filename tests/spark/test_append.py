"""Writes through Spark: rows and statistics are compared with what was put in."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as sql

import frazil
import frazil.spark
from frazil.format import paths
from frazil.spark.rows import overwrites
from frazil.spark.write import writer

pytestmark = pytest.mark.spark

START = datetime(2024, 1, 1, tzinfo=UTC)
EVENTS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("at", pa.timestamp("us", "UTC")),
        ("kind", pa.string()),
        ("value", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "at": START + timedelta(hours=7 * i),
            "kind": None if i % 10 == 9 else f"k{i % 3}",
            "value": float("nan") if i % 8 == 0 else i / 2,
            "tags": [f"t{i}", None] if i % 2 else None,
        }
        for i in range(first, last)
    ]


@pytest.fixture
def frame(spark: Any) -> Any:
    return spark.createDataFrame(pa.Table.from_pylist(rows(0, 60), schema=EVENTS))


def content(table: frazil.Table) -> str:
    return shown(table.scan().to_pylist())


def shown(found: list[dict[str, Any]]) -> str:
    """Rows as text, in order of id: NaN is itself, and one UTC is like another."""
    table = pa.Table.from_pylist(found, schema=EVENTS) if "tags" in found[0] else None
    rows = found if table is None else table.to_pylist()
    return str(sorted(rows, key=lambda row: row["id"]))


def test_appended_rows_are_read_back_and_counted(frame: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("e.events", EVENTS, partition_by=["day(at)", "bucket[2](id)"])
    done = frazil.spark.append(made, frame, summary={"job": "nightly"})
    assert done is not None
    assert content(made) == shown(rows(0, 60))
    summary = made.snapshots()[0].summary
    assert (summary["operation"], summary["added-records"], summary["job"]) == (
        "append",
        "60",
        "nightly",
    )
    files = made.inspect.files.to_pylist()
    days = {(START + timedelta(hours=7 * i)).date() for i in range(60)}
    assert {file["partition"]["at_day"] for file in files} == days
    nans = sum(file["readable_metrics"]["value"]["nan_value_count"] for file in files)
    assert nans == 8
    assert made.scan("at < '2024-01-03T00:00:00+00:00'").count() == 7


def test_files_hold_field_ids_at_every_level(frame: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("e.events", EVENTS)
    frazil.spark.append(made, frame)
    path = made.scan().tasks()[0].source.path.removeprefix("file://")
    stored = pq.read_schema(path)
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in stored]
    assert ids == [field.field_id for field in made.schema.fields]
    element = stored.field("tags").type.value_field
    assert (
        int(element.metadata[b"PARQUET:field_id"])
        == made.schema.find_field("tags.element").field_id
    )


def test_a_partition_is_written_by_one_task(frame: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("e.events", EVENTS, partition_by=["kind"])
    frazil.spark.append(made, frame.repartition(4))
    assert made.inspect.files.num_rows == 4
    apart = catalog.create_table(
        "e.apart", EVENTS, partition_by=["kind"], properties={"write.distribution-mode": "none"}
    )
    frazil.spark.append(apart, frame.repartition(4))
    assert apart.inspect.files.num_rows > 4
    assert content(made) == content(apart) == shown(rows(0, 60))


def test_rows_are_sorted_in_files_and_ranges_do_not_overlap(
    frame: Any, catalog: frazil.Catalog
) -> None:
    made = catalog.create_table(
        "e.sorted",
        EVENTS,
        sort_by=["id desc"],
        properties={"write.distribution-mode": "range"},
    )
    frazil.spark.append(made, frame.repartition(3))
    runs = [
        [row["id"] for row in pq.read_table(task.source.path.removeprefix("file://")).to_pylist()]
        for task in made.scan().tasks()
    ]
    assert all(run == sorted(run, reverse=True) for run in runs)
    ordered = sorted(runs, reverse=True)
    assert [each for run in ordered for each in run] == list(range(59, -1, -1))
    assert content(made) == shown(rows(0, 60))


def test_every_misfit_is_listed_before_anything_is_written(
    spark: Any, catalog: frazil.Catalog
) -> None:
    made = catalog.create_table("e.events", EVENTS)
    wrong = spark.createDataFrame([("x", 1.5, 3)], "id string, value float, extra int")
    with pytest.raises(frazil.InvalidInput) as problem:
        frazil.spark.append(made, wrong)
    assert "column 'id': found string" in str(problem.value)
    assert "column 'extra': found an extra column" in str(problem.value)
    assert not list(made._handle.storage.list(f"{made.location}/data"))
    assert made.snapshots() == []


def test_narrow_types_case_and_missing_columns_are_taken(
    spark: Any, catalog: frazil.Catalog
) -> None:
    made = catalog.create_table("e.events", EVENTS)
    few = spark.createDataFrame([(1, "a"), (2, None)], "ID int, Kind string")
    frazil.spark.append(made, few)
    assert made.scan(columns=["id", "kind", "value"]).to_pylist() == [
        {"id": 1, "kind": "a", "value": None},
        {"id": 2, "kind": None, "value": None},
    ]


def test_a_failing_task_leaves_the_table_as_it_was(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("e.events", EVENTS)
    bad = spark.createDataFrame([(1,), (None,)], "id long").coalesce(1)
    with pytest.raises(Exception, match="column 'id': found 1 null"):
        frazil.spark.append(made, bad)
    assert made.refresh().snapshots() == []
    assert not list(made._handle.storage.list(f"{made.location}/data"))


def test_no_rows_make_no_snapshot(frame: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("e.events", EVENTS)
    assert not frazil.spark.append(made, frame.where("id < 0")).committed
    assert made.snapshots() == []


def test_overwrite_replaces_what_matches_in_one_snapshot(
    spark: Any, frame: Any, catalog: frazil.Catalog
) -> None:
    made = catalog.create_table("e.events", EVENTS, partition_by=["kind"])
    frazil.spark.append(made, frame)
    fresh = spark.createDataFrame(pa.Table.from_pylist(rows(100, 103), schema=EVENTS))
    frazil.spark.overwrite(made, fresh, "kind = 'k0' and id < 30 or kind = 'k1'")
    kept = [
        row
        for row in rows(0, 60)
        if not (row["kind"] == "k1" or (row["kind"] == "k0" and row["id"] < 30))
    ]
    assert content(made) == shown(kept + rows(100, 103))
    assert len(made.snapshots()) == 2
    frazil.spark.overwrite(made, fresh)
    assert content(made) == shown(rows(100, 103))
    assert made.snapshots()[-1].summary["operation"] == "overwrite"


def test_overwrite_partitions_replaces_only_those_with_new_rows(
    spark: Any, frame: Any, catalog: frazil.Catalog
) -> None:
    made = catalog.create_table("e.events", EVENTS, partition_by=["kind"])
    frazil.spark.append(made, frame)
    fresh = [{**row, "kind": "k2"} for row in rows(100, 103)]
    fresh += [{**row, "kind": None} for row in rows(103, 104)]
    new = spark.createDataFrame(pa.Table.from_pylist(fresh, schema=EVENTS))
    frazil.spark.overwrite_partitions(made, new)
    kept = [row for row in rows(0, 60) if row["kind"] in ("k0", "k1")]
    assert content(made) == shown(kept + fresh)
    plain = catalog.create_table("e.plain", EVENTS)
    with pytest.raises(frazil.InvalidInput, match="not partitioned"):
        frazil.spark.overwrite_partitions(plain, new)


def test_a_commit_that_conflicts_removes_the_files_it_would_have_added(
    spark: Any, frame: Any, catalog: frazil.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = catalog.create_table("e.events", EVENTS, partition_by=["kind"])
    frazil.spark.append(made, frame)
    before = {file.path for file in made._handle.storage.list(f"{made.location}/data")}
    write = writer.write_frame

    def slow(*given: Any, **more: Any) -> Any:
        written = write(*given, **more)
        catalog.load_table("e.events").delete("kind = 'k1'")
        return written

    monkeypatch.setattr(overwrites, "write_frame", slow)
    with pytest.raises(frazil.CommitConflict):
        frazil.spark.overwrite(made, frame, "kind = 'k1'")
    after = {file.path for file in made._handle.storage.list(f"{made.location}/data")}
    assert after == before


def test_written_rows_can_carry_their_lineage(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("e.small", pa.schema([("id", pa.int64())]))
    frame = spark.createDataFrame(
        [(1, 70, None), (2, None, None)],
        "id long, _row_id long, _last_updated_sequence_number long",
    )
    entries = writer.write_frame(frame, made, with_lineage=True)
    assert made.snapshots() == []
    made._add_entries(entries)
    found = {row["id"]: row["_row_id"] for row in made.scan(columns=["id", "_row_id"])}
    assert found[1] == 70
    with_spark = frazil.spark.table(made, columns=["id", "_row_id"]).collect()
    assert {row["id"]: row["_row_id"] for row in with_spark} == found


def test_partition_values_of_every_transform_match_those_of_one_machine(
    spark: Any, catalog: frazil.Catalog
) -> None:
    schema = frazil.spark.table_schema(
        sql.StructType.fromDDL(
            "id long, d date, n timestamp_ntz, z timestamp, s string, c decimal(9,2), b binary"
        )
    )
    parts = ["bucket[3](s)", "truncate[2](s)", "month(n)", "hour(z)", "year(d)", "bucket[2](c)"]
    data = pa.table(
        {
            "id": [1, 2, 3],
            "d": pa.array([date(1969, 5, 1), date(2024, 2, 29), None]),
            "n": pa.array([datetime(1969, 12, 31, 23), None, datetime(2024, 2, 29)]),
            "z": pa.array([-1, 0, None], pa.timestamp("us", "UTC")),
            "s": ["alpha", None, "élan"],
            "c": pa.array(["1.25", "-7.00", None]).cast(pa.decimal128(9, 2)),
            "b": pa.array([b"x", None, b""]),
        }
    )
    alone = catalog.create_table("e.alone", schema, partition_by=parts)
    alone.append(data)
    many = catalog.create_table("e.many", schema, partition_by=parts)
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")  # how Arrow's `n` comes in
    frazil.spark.append(many, spark.createDataFrame(data))
    wanted = sorted(str(file["partition"]) for file in alone.inspect.files.to_pylist())
    assert sorted(str(file["partition"]) for file in many.inspect.files.to_pylist()) == wanted
    assert content(many) == content(alone)
    assert paths.is_absolute(many.location)
