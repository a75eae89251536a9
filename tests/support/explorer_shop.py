"""Tables to look at in the explorer: one with real rows, and large ones of metadata alone.

The files of the large tables do not exist; everything that the explorer draws comes from the
root and the leaves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from unittest import mock

import numpy as np
import pyarrow as pa

from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.tracking import Status
from frazil.table import Catalog, Table

# fmt: off
COUNTRIES = (
    "AT", "BE", "BR", "CA", "CH", "CN", "DE", "DK", "ES", "FI",
    "FR", "GB", "IE", "IN", "IT", "JP", "MX", "NL", "SE", "US",
)
# fmt: on
FIRST_DAY = date(2023, 8, 1)
SCHEMA = pa.schema(
    [
        ("order_id", pa.int64()),
        ("order_day", pa.date32()),
        ("country", pa.string()),
        ("customer_id", pa.int64()),
        ("amount", pa.float64()),
        ("note", pa.string()),
    ]
)
_NO_BOUNDS = {"write.metadata.metrics.column.note": "none"}


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, start: datetime) -> None:
        self.now = start

    def pass_time(self, **by: float) -> None:
        """Move on, by `minutes=` or `hours=`."""
        self.now += timedelta(**by)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the library see this clock."""
        with mock.patch.object(time, "time_ns", self._ns):
            yield

    def _ns(self) -> int:
        return int(self.now.timestamp() * 1e9)


class Shop:
    """Makes entries of data files for a table of orders."""

    def __init__(self, catalog: Catalog, name: str, properties: Mapping[str, str]) -> None:
        self.table = catalog.create_table(
            name,
            SCHEMA,
            partition_by=["order_day"],
            sort_by=["order_id"],
            properties={**_NO_BOUNDS, **properties},
        )
        self.random = np.random.default_rng(7)
        self.made = 0
        self._next_order = 10_000_000
        self._days: list[np.ndarray] = []

    def locations(self, day: date) -> list[str]:
        """Files made for one day."""
        number = (day - date(1970, 1, 1)).days
        every = np.concatenate(self._days)
        return [_location(int(n), day) for n in np.flatnonzero(every == number)]

    def files(self, days: Sequence[date], spans: Sequence[tuple[str, str]]) -> EntryBatch:
        """A file for every day and every span of countries."""
        n = len(days) * len(spans)
        numbers = np.repeat([(d - date(1970, 1, 1)).days for d in days], len(spans))
        rows = self.random.integers(9, 17, n) * 2000
        first = self._next_order + np.concatenate([[0], np.cumsum(rows)[:-1]])
        self._next_order += int(rows.sum())
        age = numbers - (FIRST_DAY - date(1970, 1, 1)).days
        high = 210.5 + self.random.integers(0, 16, n) * 12
        large = self.random.random(n) < 1 / 4200
        high = np.where(large, 4100.5 + self.random.integers(0, 5000, n), high)
        bounds: dict[int, tuple[pa.Array, pa.Array]] = {
            1: (pa.array(first, pa.int64()), pa.array(first + rows - 1, pa.int64())),
            2: (_dates(numbers), _dates(numbers)),
            3: (
                pa.array([lo for lo, _ in spans] * len(days)),
                pa.array([hi for _, hi in spans] * len(days)),
            ),
            4: (
                pa.array(1000 + self.random.integers(0, 4, n) * 9, pa.int64()),
                pa.array(180_000 + age * 2900 + self.random.integers(0, 8, n) * 500, pa.int64()),
            ),
            5: (pa.array(np.full(n, 0.99)), pa.array(high)),
        }
        names = [_location(self.made + i, _day(int(d))) for i, d in enumerate(numbers)]
        self.made += n
        self._days.append(numbers)
        return self._batch(names, rows, numbers, bounds)

    def _batch(
        self,
        names: Sequence[str],
        rows: np.ndarray,
        days: np.ndarray,
        bounds: Mapping[int, tuple[pa.Array, pa.Array]],
    ) -> EntryBatch:
        n, counts = len(names), pa.array(rows, pa.int64())
        partition = self.table.spec.fields[0].field_id

        def same(value: object, kind: pa.DataType) -> pa.Array:
            return pa.array([value] * n, kind)

        columns = {
            "tracking.status": same(int(Status.ADDED), pa.int32()),
            "content_type": same(0, pa.int32()),
            "format_version": same(4, pa.int32()),
            "location": pa.array(names),
            "file_format": same("parquet", pa.string()),
            "record_count": counts,
            "file_size_in_bytes": pa.array(rows * 46 + 2000, pa.int64()),
            "spec_id": same(self.table.spec.spec_id, pa.int32()),
            f"partition.{partition}": _dates(days),
        }
        for field, (low, high) in bounds.items():
            at = f"content_stats.{field}."
            columns[at + "lower_bound"], columns[at + "upper_bound"] = low, high
            columns[at + "tight_bounds"] = same(True, pa.bool_())
            columns[at + "value_count"] = counts
            columns[at + "null_value_count"] = same(0, pa.int64())
            if low.type == pa.string():
                columns[at + "avg_value_size_in_bytes"] = same(2, pa.int32())
            if low.type == pa.float64():
                columns[at + "nan_value_count"] = same(0, pa.int64())
        return EntryBatch(pa.table(columns))


def _location(number: int, day: date) -> str:
    return f"data/order_day={day}/{number:06d}.parquet"


def _day(number: int) -> date:
    return date(1970, 1, 1) + timedelta(days=number)


def _dates(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers.astype("int32"), pa.int32()).cast(pa.date32())


def _each() -> list[tuple[str, str]]:
    return [(country, country) for country in COUNTRIES]


def busy_orders(
    catalog: Catalog, name: str = "shop.orders", *, days: int = 186, commits: int = 120
) -> Table:
    """A backfill, then small commits with deletes, a purge, new leaves, a branch and tags."""
    clock = Clock(datetime(2024, 2, 5, 5, 0, tzinfo=UTC))
    with clock.running():
        shop = Shop(catalog, name, {"write.leaf.target-entries": "1600"})
        table = shop.table
        every = [FIRST_DAY + timedelta(days=d) for d in range(days)]
        for month in sorted({(d.year, d.month) for d in every}):
            table._add_entries(
                shop.files([d for d in every if (d.year, d.month) == month], _each() * 8)
            )
            clock.pass_time(minutes=7)
        table.tag("backfill-done")
        audit: Table | None = None
        for i in range(commits):
            day = every[-1] + timedelta(days=1 + i // 6)
            clock.pass_time(hours=3.5)
            cut = int(shop.random.integers(1, 19))
            halves = [(COUNTRIES[0], COUNTRIES[cut]), (COUNTRIES[cut], COUNTRIES[-1])]
            table._add_entries(shop.files([day], halves * (1 + i % 3)))
            if i % 14 == 9:
                _erase(table, shop, every, clock)
            if i == commits // 3:
                table.tag("before-purge")
                _purge(table, shop.locations(every[77])[::2], clock)
            if i == commits // 2:
                audit = table.branch("audit", create=True)
            if audit is not None and commits // 2 < i < commits // 2 + 8:
                clock.pass_time(minutes=1)
                audit._add_entries(shop.files([day], [("DE", "FR")]))
                table.refresh()
            if i == commits * 2 // 3:
                clock.pass_time(minutes=4)
                table.rewrite_manifests()
            if i == commits - 12:
                table.tag("2024-02-close")
                _purge(table, shop.locations(every[146])[::3], clock)
        return table


def _erase(table: Table, shop: Shop, days: Sequence[date], clock: Clock) -> None:
    clock.pass_time(minutes=3)
    change = table.row_delta()
    for number in sorted(set(shop.random.integers(0, len(days) - 1, 9).tolist())):
        gone = table.scan(where=f"order_day = '{days[number]}'").plan().files
        place = gone.column("location").to_pylist()[0]
        change.delete_rows(place, sorted(set(shop.random.integers(0, 3000, 30).tolist())))
    change.commit()


def _purge(table: Table, locations: Sequence[str], clock: Clock) -> None:
    clock.pass_time(minutes=5)
    change = table.row_delta()
    for location in locations:
        change.remove_file(location)
    change.commit()


def forest(catalog: Catalog, name: str, *, files: int = 400_000, leaves: int = 1000) -> Table:
    """A table of many files in many leaves, and a few commits on top of them."""
    shop = Shop(catalog, name, {"write.leaf.target-entries": str(files // leaves)})
    days = 400
    each = [(c, c) for c in COUNTRIES] * (files // days // len(COUNTRIES))
    shop.table._add_entries(shop.files([FIRST_DAY + timedelta(days=d) for d in range(days)], each))
    for i in range(4):
        shop.table._add_entries(shop.files([FIRST_DAY + timedelta(days=days + i)], [("AT", "US")]))
    return shop.table


def small_orders(catalog: Catalog, name: str = "shop.orders") -> Table:
    """Real rows in a small tree: leaves, dead entries, vectors, a tag, a branch, a new column."""
    clock = Clock(datetime(2024, 3, 1, 6, 0, tzinfo=UTC))
    with clock.running():
        table = catalog.create_table(
            name,
            SCHEMA,
            partition_by=["order_day"],
            properties={
                "write.root.max-data-entries": "4",
                "write.leaf.target-entries": "6",
                **_NO_BOUNDS,
            },
        )
        for i in range(26):
            clock.pass_time(hours=2)
            day = date(2024, 3, 1) + timedelta(days=i // 2)
            table.append(_rows(i * 40, 40, day))
            if i == 11:
                table.tag("half")
        clock.pass_time(minutes=9)
        table.delete("order_id in (3, 45, 46, 400)")
        clock.pass_time(minutes=9)
        table.update({"amount": 0.0}, where="order_id between 100 and 104")
        audit = table.branch("audit", create=True)
        clock.pass_time(minutes=9)
        audit.append(_rows(5000, 10, date(2024, 3, 20)))
        table.refresh()
        clock.pass_time(minutes=9)
        table.append(_rows(2000, 12, date(2024, 3, 15)))
        return table


def _rows(first: int, n: int, day: date) -> pa.Table:
    ids = range(first, first + n)
    return pa.table(
        {
            "order_id": pa.array(ids, pa.int64()),
            "order_day": pa.array([day] * n, pa.date32()),
            "country": [COUNTRIES[(i * 7) % len(COUNTRIES)] for i in ids],
            "customer_id": pa.array([1000 + (i * 37) % 900 for i in ids], pa.int64()),
            "amount": [float((i * 97) % 4000) / 10 for i in ids],
            "note": [None if i % 3 else f"order {i}" for i in ids],
        }
    )
