"""CALL: arguments have types, times are those of the session's zone."""

from __future__ import annotations

import importlib
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import frazil
from tests.spark.shop import content, orders

pytestmark = pytest.mark.spark


def in_zone(moment: datetime, zone: str) -> str:
    return moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S.%f")


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_times_are_read_in_the_zone_of_the_session(
    spark: Any, table: frazil.Table, zone: str
) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    table.append(orders([100]))
    time.sleep(0.01)
    between = datetime.now(UTC)
    time.sleep(0.01)
    table.append(orders([101]))
    table.append(orders([102]))
    call = "CALL frazil.system.expire_snapshots(table => 'shop.orders', older_than => {})"
    written = in_zone(between, zone)
    expired = spark.sql(call.format(f"TIMESTAMP '{written}'")).first()
    assert expired.expired_snapshots == 2
    assert spark.sql(call.format(f"'{written}'")).first().expired_snapshots == 0
    assert len(table.refresh().snapshots()) == 2


def test_orphans_in_flight_are_left_alone(spark: Any, table: frazil.Table, tmp_path: Any) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    from frazil.storage import local_path

    stray = tmp_path.__class__(local_path(table.location)) / "data" / "stray.parquet"
    stray.write_bytes(b"x")
    now = in_zone(datetime.now(UTC).replace(year=datetime.now(UTC).year - 1), "Asia/Tokyo")
    call = "CALL frazil.system.remove_orphan_files(table => 'shop.orders', older_than => {})"
    assert spark.sql(call.format(f"TIMESTAMP '{now}'")).count() == 0
    assert spark.sql(call.format("now() - INTERVAL 1 DAY")).count() == 0
    assert stray.exists()


def test_arguments_may_be_expressions_arrays_and_maps(spark: Any, table: frazil.Table) -> None:
    first = table.current_snapshot()
    assert first is not None
    table.append(orders([100]))
    table.append(orders([101]))
    done = spark.sql(
        "CALL frazil.system.expire_snapshots(table => 'frazil.shop.orders', "
        f"older_than => now() - INTERVAL 10 DAYS, snapshot_ids => array({first.snapshot_id}))"
    ).first()
    assert done.expired_snapshots == 1
    done = spark.sql(
        "CALL frazil.system.rewrite_data_files(table => 'shop.orders', "
        "options => map('rewrite-all', 'true', 'min-input-files', '2'))"
    ).first()
    assert done.rewritten_data_files_count == 5
    assert set(content(table)) == {*range(90), 100, 101}


def test_files_are_rewritten_and_orphans_found_by_jobs_of_executors(
    spark: Any, table: frazil.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small folder would be listed by the driver."""
    listing = importlib.import_module("frazil.spark.jobs.remove_orphan_files")
    monkeypatch.setattr(listing, "_MAX_LEVELS", 1)
    deletion = importlib.import_module("frazil.spark.jobs.remove_orphan_files")
    monkeypatch.setattr(deletion, "_FEW", 0)
    for i in range(100, 103):
        table.append(orders([i]))
    calls = {
        "rewrite_data_files(table => 'shop.orders', strategy => 'sort', sort_order => 'id DESC', "
        "options => map('rewrite-all', 'true', 'partial-progress.enabled', 'true'))": (6, 3, 0),
        "rewrite_data_files('shop.orders', options => map('max-file-size-bytes', '9'), "
        "where => 'id > 5')": None,
        "remove_orphan_files(table => 'shop.orders', dry_run => true)": None,
        "compute_table_stats(table => 'shop.orders', columns => array('id', 'day'))": None,
        "expire_snapshots(table => 'shop.orders', older_than => now(), retain_last => 1)": None,
    }
    context = spark.sparkContext
    for at, (text, wanted) in enumerate(calls.items()):
        context.setJobGroup(f"call {at}", text)
        row = spark.sql(f"CALL frazil.system.{text}").first()
        assert context.statusTracker().getJobIdsForGroup(f"call {at}"), text
        if wanted is not None:
            assert (row[0], row[1], row[3]) == wanted
        if text.startswith("compute"):
            assert table.distinct_counts() == {"id": 93, "day": 3}
    context.setLocalProperty("spark.jobGroup.id", None)
    assert row.expired_snapshots >= 4
    assert row.deleted_files >= 6
    assert row.failed_files == 0
    assert set(content(table)) == {*range(90), 100, 101, 102}
    later = datetime.now(UTC) + timedelta(hours=1)
    assert not table.remove_orphan_files(older_than=later, dry_run=True).files


def test_a_branch_is_compacted(spark: Any, table: frazil.Table) -> None:
    audit = table.branch("audit", create=True)
    for i in range(100, 103):
        audit.append(orders([i]))
    main = table.refresh().current_snapshot()
    done = spark.sql(
        "CALL frazil.system.rewrite_data_files(table => 'shop.orders', branch => 'audit', "
        "options => map('min-input-files', '2'))"
    ).first()
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (6, 3)
    assert table.refresh().current_snapshot() == main
    assert spark.table("frazil.shop.orders.branch_audit").count() == 93


@pytest.mark.parametrize(
    "text",
    [
        "expire_snapshots('shop.orders', TIMESTAMP '2021-06-30', 1, 4, true)",
        "expire_snapshots(table => 'shop.orders', older_than => now() - INTERVAL 9 DAYS, "
        "max_concurrent_deletes => 4, stream_results => true, clean_expired_metadata => true)",
        "remove_orphan_files(table => 'shop.orders', dry_run => true, max_concurrent_deletes => 2)",
        "rewrite_manifests('shop.orders', false)",
        "rewrite_manifests(table => 'shop.orders', use_caching => true, spec_id => 0)",
    ],
)
def test_arguments_on_how_icebergs_jobs_run_are_taken(
    spark: Any, table: frazil.Table, text: str
) -> None:
    spark.sql(f"CALL frazil.system.{text}").collect()
    assert set(content(table)) == set(range(90))


def test_files_of_a_folder_are_added_as_iceberg_names_them(
    spark: Any, table: frazil.Table, tmp_path: Any
) -> None:
    folder = str(tmp_path / "incoming")
    spark.createDataFrame(orders(range(100, 104))).coalesce(1).write.parquet(folder)
    spark.sql("CREATE TABLE frazil.shop.plain (id BIGINT, day DATE, country STRING, price DOUBLE)")
    done = spark.sql(
        f"CALL frazil.system.add_files(table => 'shop.plain', "
        f"source_table => '`parquet`.`{folder}`')"
    ).first()
    assert done.added_files_count == 1
    assert spark.table("frazil.shop.plain").count() == 4
    with pytest.raises(Exception, match="expected files as `parquet`"):
        spark.sql("CALL frazil.system.add_files(table => 'shop.plain', source_table => 'db.tbl')")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CALL frazil.system.expire_snapshot('shop.orders')", "expire_snapshots"),
        ("CALL frazil.system.nothing_like_it('shop.orders')", "rollback_to_snapshot"),
        ("CALL frazil.system.rollback_to_snapshot('shop.orders', 1)", "1"),
        ("CALL frazil.system.rollback_to_snapshot('shop.nothing', 1)", "shop.nothing"),
        ("CALL frazil.system.expire_snapshots('shop.orders', older_than => 'soon')", "soon"),
    ],
)
def test_mistakes_are_told_without_a_trace(
    spark: Any, table: frazil.Table, text: str, told: str
) -> None:
    with pytest.raises(Exception) as caught:
        spark.sql(text)
    assert told in str(caught.value)
    assert "\tat " not in str(caught.value)


def test_distinct_values_reach_the_planner(spark: Any, catalog: frazil.Catalog) -> None:
    frazil.spark.register(spark, catalog)
    spark.conf.set("spark.sql.cbo.enabled", "true")
    catalog.create_namespace("shop")
    spark.sql("CREATE TABLE frazil.shop.counted AS SELECT id, id % 7 AS size FROM range(500)")
    spark.sql(
        "CALL frazil.system.compute_table_stats(table => 'shop.counted', columns => array('size'))"
    ).collect()
    frame = spark.table("frazil.shop.counted")
    assert _distinct(frame) == {"size": 7}
    spark.sql("INSERT INTO frazil.shop.counted VALUES (1, 100)")
    assert _distinct(spark.table("frazil.shop.counted")) == {}


def _distinct(frame: Any) -> dict[str, int]:
    """What the optimised plan knows of its columns."""
    stats = frame._jdf.queryExecution().optimizedPlan().stats().attributeStats()
    found: dict[str, int] = {}
    pairs = stats.iterator()
    while pairs.hasNext():
        pair = pairs.next()
        count = pair._2().distinctCount()
        if count.isDefined():
            found[pair._1().name()] = int(str(count.get()))
    return found
