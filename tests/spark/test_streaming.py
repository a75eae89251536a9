"""Streams in and out of tables: nothing twice, nothing lost, whatever is run again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

import frazil
import frazil.spark
from frazil.errors import InvalidInput
from frazil.spark.options.source_options import SourceOptions
from frazil.spark.options.stream_options import StreamMode, StreamOptions
from frazil.spark.session.packed_entries import packed, unpacked
from frazil.spark.source.source_writer import WrittenEntries
from frazil.spark.source.stream_sink import StreamSink
from frazil.spark.source.stream_source import StreamSource, stream_schema
from frazil.spark.types.spark_types import spark_schema
from tests.spark.shop import ORDERS, content, orders, row

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def source(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.orders", ORDERS, partition_by=["day"])
    made.append(orders(range(9)))
    made.append(orders(range(9, 12)))
    return made


@pytest.fixture
def copy(catalog: frazil.Catalog) -> frazil.Table:
    return catalog.create_table("shop.copy", ORDERS)


def warehouse(catalog: frazil.Catalog) -> str:
    assert catalog._origin is not None
    return catalog._origin["uri"]


def read(spark: Any, catalog: frazil.Catalog, **options: str) -> Any:
    reader = spark.readStream.format("frazil").option("catalog", warehouse(catalog))
    for name, value in options.items():
        reader = reader.option(name.replace("_", "-"), value)
    return reader.load("shop.orders")


def run(writer: Any, checkpoint: Path) -> None:
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


def forget_last_commit(checkpoint: Path) -> None:
    """As if Spark had stopped after the sink's commit and before noting it."""
    commits = checkpoint / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def batches(table: frazil.Table) -> list[str]:
    table.refresh()
    return [each.summary["frazil.stream.batch-id"] for each in table.snapshots()]


@pytest.mark.parametrize("route", ["workers", "driver"])
def test_a_stream_copies_a_table_and_a_replayed_batch_commits_nothing(
    route: str,
    spark: Any,
    catalog: frazil.Catalog,
    source: frazil.Table,
    copy: frazil.Table,
    tmp_path: Path,
) -> None:
    checkpoint = tmp_path / "checkpoint"
    if route == "driver":
        frazil.spark.register(spark, catalog)

    def copied() -> None:
        stream = read(spark, catalog, max_files_per_batch="3")
        writer = stream.writeStream.format("frazil").option("catalog", warehouse(catalog))
        run(writer.option("path", "shop.copy"), checkpoint)

    copied()
    assert content(copy) == {i: row(i) for i in range(12)}
    assert batches(copy) == ["0", "1"]
    forget_last_commit(checkpoint)
    copied()
    assert content(copy) == {i: row(i) for i in range(12)}
    assert batches(copy) == ["0", "1"]
    source.append(orders([20]))
    copied()
    wanted = {i: row(i) for i in (*range(12), 20)}
    assert content(copy) == wanted
    assert batches(copy) == ["0", "1", "2"]
    copy.append(orders([30]))
    copy.expire_snapshots(older_than=timedelta(0), keep_last=1)
    forget_last_commit(checkpoint)
    copied()  # the batch is known although its snapshot is gone
    assert content(copy) == wanted | {30: row(30)}


def test_merging_batches_follows_the_changes_and_takes_a_replay_once(
    spark: Any,
    catalog: frazil.Catalog,
    source: frazil.Table,
    copy: frazil.Table,
    tmp_path: Path,
) -> None:
    source.update({"price": frazil.expr("price + 100")}, where="id = 4")
    source.delete("id = 5")
    into = frazil.spark.foreach_batch(
        copy,
        "merge",
        on=["id"],
        clauses=lambda merge: (
            merge.when_matched_delete(condition="s._change_type = 'delete'")
            .when_matched_update()
            .when_not_matched_insert()
        ),
    )
    wanted = {i: row(i) for i in range(12) if i != 5} | {4: (*row(4)[:2], 104.0)}
    for _ in range(2):
        stream = read(spark, catalog, stream_mode="changes", max_snapshots_per_batch="2")
        rows = stream.filter("_change_type != 'update_preimage'")
        run(rows.writeStream.foreachBatch(into), tmp_path / "checkpoint")
        assert content(copy) == wanted
        assert batches(copy) == ["0", "1"]
        forget_last_commit(tmp_path / "checkpoint")


def test_appending_batches_with_foreach_batch_takes_a_replay_once(
    spark: Any,
    catalog: frazil.Catalog,
    source: frazil.Table,
    copy: frazil.Table,
    tmp_path: Path,
) -> None:
    into = frazil.spark.foreach_batch("shop.copy", catalog=warehouse(catalog))
    for _ in range(2):
        stream = read(spark, catalog, max_snapshots_per_batch="1")
        run(stream.writeStream.foreachBatch(into), tmp_path / "checkpoint")
        assert content(copy) == {i: row(i) for i in range(12)}
        assert batches(copy) == ["0", "1"]
        forget_last_commit(tmp_path / "checkpoint")


def test_a_stream_of_changes_tells_updates_and_deletes(
    spark: Any, catalog: frazil.Catalog, source: frazil.Table, tmp_path: Path
) -> None:
    tip = source.current_snapshot()
    assert tip is not None
    source.update({"price": frazil.expr("-price")}, where="id = 4")
    source.delete("id = 5")
    source.append(orders([30]))
    seen: list[tuple[int, str, float]] = []

    def take(frame: Any, batch_id: int) -> None:
        seen.extend(frame.select("id", "_change_type", "price").collect())

    stream = read(spark, catalog, stream_mode="changes", start_snapshot=str(tip.snapshot_id))
    run(stream.writeStream.foreachBatch(take), tmp_path / "checkpoint")
    assert sorted(tuple(each) for each in seen) == [
        (4, "update_postimage", -4.0),
        (4, "update_preimage", 4.0),
        (5, "delete", 5.0),
        (30, "insert", 30.0),
    ]


def source_of(catalog: frazil.Catalog, **options: Any) -> StreamSource:
    stream = StreamOptions(**options)
    place = SourceOptions(table="shop.orders", catalog=warehouse(catalog))
    return StreamSource(place, stream, stream_schema(place.load(), stream, None))


def rows_between(source: StreamSource, start: dict[str, int], end: dict[str, int]) -> list[int]:
    found: list[int] = []
    for part in source.partitions(start, end):
        for batch in source.read(part):
            found += batch.column("id").to_pylist()
    return sorted(found)


def test_batches_keep_to_files_rows_and_snapshots(
    catalog: frazil.Catalog, source: frazil.Table
) -> None:
    for options, sizes in (
        ({"max_files": 2}, [6, 4, 2]),
        ({"max_rows": 7}, [6, 6]),
        ({"max_snapshots": 1}, [9, 3]),
    ):
        stream = source_of(catalog, **options)
        limit = stream.getDefaultReadLimit()
        assert isinstance(limit, ReadMaxFiles)
        at = stream.initialOffset()
        found: list[list[int]] = []
        while (then := stream.latestOffset(at, limit)) != at:
            found.append(rows_between(stream, at, then))
            at = then
        assert [len(each) for each in found] == sizes
        assert sorted(id for each in found for id in each) == list(range(12))


def test_a_stream_starts_where_it_is_told(catalog: frazil.Catalog, source: frazil.Table) -> None:
    first, second = source.snapshots()
    every = ReadAllAvailable()
    for options, wanted in (
        ({}, list(range(12))),
        ({"from_latest": True}, []),
        ({"start_snapshot": int(first.snapshot_id)}, [9, 10, 11]),
        ({"start_ms": second.timestamp_ms}, []),
        ({"start_ms": 1}, list(range(12))),
    ):
        stream = source_of(catalog, **options)
        start = stream.initialOffset()
        assert rows_between(stream, start, stream.latestOffset(start, every)) == wanted


def test_appends_refuse_changed_rows_unless_told_to_pass_over_them(
    catalog: frazil.Catalog, source: frazil.Table
) -> None:
    source.delete("id = 3")
    source.append(orders([50]))
    stream = source_of(catalog)
    with pytest.raises(InvalidInput, match="stream-mode"):
        stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    stream = source_of(catalog, skip_changes=True)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    assert rows_between(stream, start, end) == [*range(12), 50]


def test_a_bounded_stream_ends_at_what_was_there(
    catalog: frazil.Catalog, source: frazil.Table
) -> None:
    stream = source_of(catalog, mode=StreamMode.CHANGES)
    stream.prepareForTriggerAvailableNow()
    source.append(orders([60]))
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    assert rows_between(stream, start, end) == list(range(12))
    assert stream.latestOffset(end, ReadAllAvailable()) == end


def test_a_stream_whose_snapshot_is_gone_says_so(
    catalog: frazil.Catalog, source: frazil.Table
) -> None:
    stream = source_of(catalog)
    with pytest.raises(InvalidInput, match="no longer in the history"):
        stream.latestOffset({"snapshot": 12345, "units": -1}, ReadAllAvailable())


def sink_of(catalog: frazil.Catalog, **options: Any) -> StreamSink:
    place = SourceOptions(table="shop.copy", catalog=warehouse(catalog))
    stream = StreamOptions(query_id="q", **options)
    schema = spark_schema(place.load().metadata.schema())
    return StreamSink.of(place, stream, schema, replaces=False)


def data_files(table: frazil.Table) -> int:
    return len(list(table._handle.storage.list(f"{table.location}/data")))


def test_a_batch_written_again_removes_its_own_files_only(
    catalog: frazil.Catalog, copy: frazil.Table
) -> None:
    sink = sink_of(catalog)
    sink.commit([sink.write(iter(orders([1, 2]).to_batches()))], 0)
    sink.commit([sink.write(iter(orders([1, 2]).to_batches()))], 0)
    sink.commit([sink.write(iter(orders([3]).to_batches()))], 1)
    sink.commit([sink.write(iter(orders([1, 2]).to_batches()))], 0)
    assert content(copy) == {i: row(i) for i in (1, 2, 3)}
    assert data_files(copy) == 2


def test_abort_removes_files_only_when_no_commit_was_tried(
    catalog: frazil.Catalog, copy: frazil.Table
) -> None:
    sink = sink_of(catalog)
    landed = sink.write(iter(orders([1]).to_batches()))
    sink.commit([landed], 0)
    sink.abort([landed], 0)
    assert content(copy) == {1: row(1)}
    lost = sink.write(iter(orders([2]).to_batches()))
    assert data_files(copy) == 2
    sink.abort([lost, None], 1)
    assert data_files(copy) == 1
    assert content(copy) == {1: row(1)}


def test_messages_carry_entries(catalog: frazil.Catalog, copy: frazil.Table) -> None:
    message = sink_of(catalog).write(iter(orders([1, 2]).to_batches()))
    assert isinstance(message, WrittenEntries)
    entries = unpacked(message.entries)
    assert entries.pylist("record_count") == [2]
    assert packed(entries) == message.entries


def test_a_sink_without_a_checkpoint_is_refused(
    catalog: frazil.Catalog, copy: frazil.Table
) -> None:
    place = SourceOptions(table="shop.copy", catalog=warehouse(catalog))
    sink = StreamSink.of(
        place, StreamOptions(), spark_schema(place.load().metadata.schema()), replaces=False
    )
    with pytest.raises(InvalidInput, match="checkpointLocation"):
        sink.commit([sink.write(iter(orders([1]).to_batches()))], 0)
    assert data_files(copy) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"stream-mode": "sideways"},
        {"max-rows-per-batch": "0"},
        {"start": "latest", "start-snapshot": "1"},
        {"start-timestamp": "yesterday"},
    ],
)
def test_wrong_options_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        StreamOptions.parse(options)
