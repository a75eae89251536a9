"""The data source: options, pinned snapshots, filters, writes.

Everything holds on both routes: Spark's Python source, and Frazil's own scan where the session's
driver has been asked for a catalog.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as sql

import frazil
import frazil.spark
from frazil.spark.options.source_options import SourceOptions
from frazil.spark.session.packed_entries import packed, unpacked
from frazil.spark.source.source import FrazilSource
from frazil.spark.source.source_writer import FrazilWriter, WrittenEntries
from tests.support.spark_session import own_session

pytestmark = pytest.mark.spark

SALES = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("price", pa.float64()),
        ("st", pa.struct([("a", pa.int32())])),
    ]
)


def sales(first: int, last: int) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "day": date(2024, 1, 1 + i % 4),
            "price": float("nan") if i % 5 == 0 else i / 2,
            "st": {"a": i} if i % 3 else None,
        }
        for i in range(first, last)
    ]


@pytest.fixture(params=["workers", "driver"])
def spark(request: pytest.FixtureRequest, spark_context: Any, catalog: frazil.Catalog) -> Any:
    """A session that plans in Python workers, or one that asks its driver."""
    made = own_session(spark_context)
    if request.param == "driver":
        frazil.spark.register(made, catalog)
    return made


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.sales", SALES, partition_by=["day"])
    made.append(sales(0, 40))
    return made


@pytest.fixture
def options(catalog: frazil.Catalog) -> dict[str, str]:
    assert catalog._origin is not None
    named = {"uri": "catalog", "name": "catalog-name"}
    return {named.get(key, key): value for key, value in catalog._origin.items()}


def load(spark: Any, options: dict[str, str], **more: Any) -> Any:
    return spark.read.format("frazil").options(**options).options(**more).load("shop.sales")


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def test_a_table_is_read_by_name_without_registering_anything(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    frame = load(spark, options)
    assert frame.schema.simpleString() == (
        "struct<id:bigint,day:date,price:double,st:struct<a:int>>"
    )
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    assert str(sorted(rows, key=lambda row: row["id"])) == str(sales(0, 40))


@pytest.mark.parametrize("switch", ["true", "false"])
def test_queries_on_one_frame_do_not_disturb_each_other(
    spark: Any, table: frazil.Table, options: dict[str, str], switch: str
) -> None:
    table.delete("id in (6, 7)")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", switch)
    plain = spark.createDataFrame(
        pa.Table.from_pylist([row for row in sales(0, 40) if row["id"] not in (6, 7)], SALES)
    )
    frame = load(spark, options)
    for each in [
        "price > 10",
        "price = double('NaN') or id = 1",
        "st.a >= 20 and day = date'2024-01-02'",
        "true",
    ]:
        assert ids(frame.where(each)) == ids(plain.where(each)), each
    both = frame.where("id = 1").union(frame.where("id = 2"))
    assert ids(both) == [1, 2]


def test_a_filter_given_as_an_option_prunes_and_selects(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    where = {**options, "where": "day = '2024-01-02' and price > 10"}
    frame = load(spark, where)
    assert ids(frame) == [5, 21, 25, 29, 33, 37]  # NaN is greater than every number
    assert ids(frame.where("id > 30")) == [33, 37]
    source = FrazilSource({**where, "path": "shop.sales", "split-size": "1"})
    assert len(source.reader(source.schema()).partitions()) == 1


def test_one_frame_never_shows_two_snapshots(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    frame = load(spark, options)
    asked = spark.read.schema("id long").format("frazil").options(**options).load("shop.sales")
    assert asked.count() == 40  # with a schema given, Spark makes the source at the first query
    table.append(sales(40, 50))
    assert frame.count() == 40
    assert ids(frame.where("id >= 35")) == [35, 36, 37, 38, 39]
    assert ids(asked.where("id >= 35")) == [35, 36, 37, 38, 39]
    assert ids(load(spark, options).where("id >= 45")) == [45, 46, 47, 48, 49]


def test_older_states_and_branches_are_read_by_option(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    first = table.snapshots()[0]
    table.tag("start")
    table.branch("audit", create=True).append(sales(100, 103))
    table.refresh().append(sales(40, 44))
    between = datetime.fromtimestamp(first.timestamp_ms / 1000, UTC).isoformat(
        timespec="milliseconds"
    )
    cases: list[tuple[dict[str, str], int]] = [
        ({"snapshot": str(first.snapshot_id)}, 40),
        ({"tag": "start"}, 40),
        ({"branch": "audit"}, 43),
        ({"as-of": between}, 40),
        ({"as-of": str(first.timestamp_ms)}, 40),
        ({"snapshot-id": str(first.snapshot_id)}, 40),
        ({"as-of-timestamp": str(first.timestamp_ms)}, 40),
        ({}, 44),
    ]
    for more, wanted in cases:
        frame = spark.read.format("frazil").options(**options).options(**more)
        assert frame.load("shop.sales").count() == wanted, more


def test_appends_between_snapshots_are_read_by_option(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    first = table.snapshots()[0].snapshot_id
    table.append(sales(40, 44))
    second = table.refresh().snapshots()[-1].snapshot_id
    table.delete("id < 10")
    table.append(sales(50, 53))
    start = {"start-snapshot-id": str(first)}
    if frazil.spark.session.session_bridge.bridge_if_any(spark) is None:
        with pytest.raises(Exception, match="start-snapshot-id needs a session with a Frazil"):
            load(spark, options, **start).count()
        return
    assert ids(load(spark, options, **start)) == [40, 41, 42, 43, 50, 51, 52]
    frame = load(spark, options, **start, **{"end-snapshot-id": str(second)})
    assert ids(frame.where("id > 40")) == [41, 42, 43]
    with pytest.raises(Exception, match="start-snapshot-id is for reads"):
        frame.write.format("frazil").options(**options, **start).mode("append").save("shop.sales")


def test_columns_and_split_size_are_options(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    frame = load(spark, options, columns="_row_id, id", **{"split-size": "1"})
    assert frame.columns == ["_row_id", "id"]
    assert sorted(tuple(row) for row in frame.collect()) == sorted(
        (row["_row_id"], row["id"]) for row in table.scan(columns=["_row_id", "id"])
    )
    assert frame.rdd.getNumPartitions() == 4


def test_options_are_checked() -> None:
    good = {"path": "a.b", "catalog": "w"}
    with pytest.raises(frazil.InvalidInput, match="unknown option snapshotid"):
        SourceOptions.parse({**good, "snapshotId": "1"})
    with pytest.raises(frazil.InvalidInput, match="exclude each other"):
        SourceOptions.parse({**good, "tag": "x", "branch": "y"})
    with pytest.raises(frazil.InvalidInput, match="exclude each other"):
        SourceOptions.parse({**good, "snapshot": "1", "snapshot-id": "1"})
    with pytest.raises(frazil.InvalidInput, match="as-of-timestamp is 'monday'"):
        SourceOptions.parse({**good, "as-of-timestamp": "monday"})
    with pytest.raises(frazil.InvalidInput, match="needs start-snapshot-id"):
        SourceOptions.parse({**good, "end-snapshot-id": "1"})
    with pytest.raises(frazil.InvalidInput, match="start-snapshot-id and where exclude"):
        SourceOptions.parse({**good, "start-snapshot-id": "1", "where": "id > 1"})
    with pytest.raises(frazil.InvalidInput, match="no catalog"):
        SourceOptions.parse({"path": "a.b"})
    with pytest.raises(frazil.InvalidInput, match="no table"):
        SourceOptions.parse({"catalog": "w"})
    with pytest.raises(frazil.InvalidInput, match="no metadata table"):
        SourceOptions.parse({**good, "metadata": "nope"})
    parsed = SourceOptions.parse({**good, "s3.endpoint": "http://x", "Split-Size": "5"})
    assert parsed.properties == {"s3.endpoint": "http://x"}
    assert parsed.split_bytes == 5


def test_metadata_tables_are_read_by_option(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    (first,) = table.snapshots()
    frame = load(spark, options, metadata="snapshots")
    assert [row["snapshot_id"] for row in frame.collect()] == [first.snapshot_id]
    files = load(spark, options, metadata="files")
    assert [row["record_count"] for row in files.collect()] == [10] * 4
    table.append(sales(40, 41))
    assert files.select("file_path").count() == 4
    writer = spark.range(1).write.format("frazil").options(**options, metadata="snapshots")
    with pytest.raises(Exception, match="metadata tables cannot be written to"):
        writer.mode("append").save("shop.sales")


def test_the_state_before_the_first_commit_and_older_columns_are_read(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    before = table.schema.schema_id
    table.evolve_schema().rename_column("price", "amount").commit()
    assert load(spark, options, snapshot="0").count() == 0
    assert load(spark, options).columns == ["id", "day", "amount", "st"]
    frame = load(spark, options, **{"schema-id": str(before)})
    assert ids(frame.where("price = 0.5")) == [1]


def test_what_a_read_cannot_give_is_refused(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    with pytest.raises(Exception, match="unknown option snapshotid"):
        load(spark, options, snapshotId="1").collect()
    with pytest.raises(Exception, match="only an engine can evaluate"):
        load(spark, options, where="abs(id) = 3").collect()
    with pytest.raises(Exception, match="changes are read as a stream"):
        load(spark, options, **{"stream-mode": "changes"}).collect()
    asked = spark.read.schema("id string, nope int").format("frazil").options(**options)
    with pytest.raises(Exception, match=r"(?s)'id': asked for as string.*'nope'"):
        asked.load("shop.sales").collect()


def test_nested_parts_and_columns_of_partitions_are_read(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    frame = load(spark, options, columns="st.a,_partition,_pos", where="id < 5")
    assert frame.schema.simpleString() == (
        "struct<st:struct<a:int>,_partition:struct<day:date>,_pos:bigint>"
    )
    found = [row.asDict(recursive=True) for row in frame.collect()]
    wanted = table.scan("id < 5", ["st.a", "_partition", "_pos"]).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, wanted))


def test_the_driver_prunes_by_every_filter_from_every_thread(
    spark_context: Any, table: frazil.Table, options: dict[str, str], catalog: frazil.Catalog
) -> None:
    spark = own_session(spark_context)
    frazil.spark.register(spark, catalog)
    told: list[str] = []

    def read() -> None:
        frame = load(spark, options)
        for each in (frame, frame.where("day = date'2024-01-02'"), frame.where("id = 0")):
            told.append(each._jdf.queryExecution().executedPlan().toString())

    read()
    other = Thread(target=read)
    other.start()
    other.join()
    found = [re.search(r"frazil shop.sales \((\d) of 4 files", each) for each in told]
    assert [each and each[1] for each in found] == ["4", "1", "1"] * 2


def test_a_schema_that_does_not_fit_is_refused(
    table: frazil.Table, options: dict[str, str]
) -> None:
    source = FrazilSource({**options, "path": "shop.sales"})
    asked = sql.StructType.fromDDL("id string, nope int")
    with pytest.raises(frazil.InvalidInput, match=r"(?s)'id': asked for as string.*'nope'"):
        source.reader(asked)


# Writing


def test_append_and_overwrite_through_the_writer_interface(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    more = spark.createDataFrame(pa.Table.from_pylist(sales(40, 45), SALES))
    writer = more.write.format("frazil").options(**options)
    writer.mode("append").save("shop.sales")
    assert table.refresh().scan().count() == 45
    writer.mode("overwrite").save("shop.sales")
    found = table.refresh().scan(columns=["id"]).to_pylist()
    assert sorted(row["id"] for row in found) == [40, 41, 42, 43, 44]
    operations = [snapshot.summary["operation"] for snapshot in table.snapshots()]
    assert operations == ["append", "append", "overwrite"]


def test_a_frame_that_does_not_fit_is_refused_with_every_problem(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    wrong = spark.createDataFrame([("x", 1)], "id string, more int")
    with pytest.raises(Exception, match=r"(?s)column 'more'.*column 'id'") as problem:
        wrong.write.format("frazil").options(**options).mode("append").save("shop.sales")
    assert "found string" in str(problem.value)
    assert len(table.refresh().snapshots()) == 1


def test_a_branch_is_written_to_by_option(
    spark: Any, table: frazil.Table, options: dict[str, str]
) -> None:
    table.branch("audit", create=True)
    more = spark.createDataFrame(pa.Table.from_pylist(sales(40, 42), SALES))
    more.write.format("frazil").options(**options, branch="audit").mode("append").save("shop.sales")
    assert table.refresh().scan().count() == 40
    assert table.scan(as_of="audit").count() == 42


def test_abort_removes_files_only_when_no_commit_was_tried(
    table: frazil.Table, options: dict[str, str]
) -> None:
    given = SourceOptions.parse({**options, "path": "shop.sales"})
    schema = frazil.spark.spark_schema(table.schema)
    writer = FrazilWriter.of(given, schema, overwrite=False)
    batches = pa.Table.from_pylist(sales(90, 92), SALES).to_batches()
    done = writer.write(iter(batches))
    assert isinstance(done, WrittenEntries)
    (location, *_) = unpacked(done.entries).pylist("location")
    path = f"{table.location}/{location}"
    writer.abort([done, done])
    assert table._handle.storage.exists(path)
    writer.abort([done, None])
    assert not table._handle.storage.exists(path)
    assert table.refresh().scan().count() == 40


def test_entries_survive_packing(table: frazil.Table) -> None:
    files = table.scan().plan().files
    assert unpacked(packed(files)).table.equals(files.table)
