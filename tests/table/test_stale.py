"""Writers that work on a state of long ago, and clocks that are wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import frazil
from frazil.commit.handle import now_ms
from frazil.errors import CommitConflict
from tests.support.rewrites import rewrite_files
from tests.table.conftest import orders

YEAR_MS = 365 * 24 * 3_600_000


@pytest.fixture
def stale(catalog: frazil.Catalog, table: frazil.Table) -> frazil.Table:
    """The table pinned to a state whose only snapshot has expired since."""
    table.append(orders(0, 10))
    seen = catalog.load_table(table.name).pinned()
    table.overwrite(orders(0, 20))
    table.expire_snapshots(older_than=now_ms() + 1_000, keep_last=1)
    catalog._cache.clear()
    return seen


def test_an_append_by_a_writer_whose_base_expired_lands(stale: frazil.Table) -> None:
    stale.append(orders(20, 30))
    assert stale.scan().count() == 30


def _append_and_delete(table: frazil.Table) -> None:
    with table.transaction() as tx:
        tx.append(orders(30, 31))
        tx.delete("order_id = 3")


@pytest.mark.parametrize(
    "work",
    [
        lambda table: table.delete("order_id = 3"),
        lambda table: table.update({"price": 1.0}, "order_id = 3"),
        lambda table: table.upsert(orders(3, 4), on=["order_id"]),
        _append_and_delete,
    ],
    ids=["delete", "update", "upsert", "transaction"],
)
def test_a_change_planned_on_an_expired_snapshot_is_a_conflict(
    stale: frazil.Table, work: Callable[[frazil.Table], object]
) -> None:
    with pytest.raises(CommitConflict, match="expired"):
        work(stale)
    assert stale.refresh().scan().count() == 20
    work(stale)


def test_a_table_that_is_not_pinned_needs_no_refresh(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    table.append(orders(0, 10))
    live = catalog.load_table(table.name)
    table.overwrite(orders(0, 20))
    table.expire_snapshots(older_than=now_ms() + 1_000, keep_last=1)
    catalog._cache.clear()
    live.delete("order_id = 3")
    live.update({"price": 1.0}, "order_id = 4")
    _append_and_delete(live)
    assert live.scan().count() == 20


def test_a_rewrite_of_an_expired_snapshot_is_a_conflict(
    stale: frazil.Table, table: frazil.Table
) -> None:
    base = stale.current_snapshot()
    assert base is not None
    files = table.refresh().scan().plan().files
    with pytest.raises(CommitConflict, match="expired"):
        rewrite_files(
            table,
            files.pylist("location"),
            files.select(["location", "content_type", "record_count", "file_size_in_bytes"]),
            base=base.snapshot_id,
        )


def test_a_clock_years_ahead_stamps_its_own_snapshot_only(table: frazil.Table) -> None:
    context = table._handle.context
    table.append(orders(0, 1))
    begun = now_ms()
    object.__setattr__(context, "now_ms", lambda: begun + 20 * YEAR_MS)
    table.append(orders(1, 2))
    object.__setattr__(context, "now_ms", now_ms)
    table.append(orders(2, 3))
    table.append(orders(3, 4))
    times = [each.timestamp_ms - begun for each in table.snapshots()]
    assert times[1] == 20 * YEAR_MS
    assert times[2] < 3_600_000
    assert times[2] <= times[3] < 3_600_000
    assert table.scan(as_of=datetime.now(UTC) + timedelta(seconds=1)).count() == 4
    assert not table.check().problems
    # Iceberg refuses logs that go back in time.
    rendered = json.loads(Path(table.export().removeprefix("file://")).read_bytes())
    logged = [entry["timestamp-ms"] for entry in rendered["snapshot-log"]]
    assert logged == sorted(logged)
    assert logged[-1] <= rendered["last-updated-ms"]


def test_clocks_that_differ_by_minutes_keep_the_order(table: frazil.Table) -> None:
    context = table._handle.context
    begun = now_ms()
    object.__setattr__(context, "now_ms", lambda: begun + 600_000)
    table.append(orders(0, 1))
    object.__setattr__(context, "now_ms", lambda: begun)
    table.append(orders(1, 2))
    assert [each.timestamp_ms - begun for each in table.snapshots()] == [600_000, 600_000]
