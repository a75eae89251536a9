"""A worked exercise: four manifests with bounds of dates and countries, and one query.

Its three questions are which manifests are left by their dates, which of these by their countries,
and how many files a query must open.
"""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from frazil.commit.change import Change
from frazil.filter.text.filter_text import parse
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import DayTransform
from frazil.iceberg.types import DateType, LongType, NestedField, StringType
from frazil.scan.plan import plan
from tests.support.trees import Bench, bounds

SCHEMA = Schema(
    NestedField(1, "order_id", LongType(), required=True),
    NestedField(2, "order_date", DateType(), required=True),
    NestedField(3, "country", StringType(), required=True),
)
BY_DAY = PartitionSpec(PartitionField(2, 1000, DayTransform(), "order_date_day"))
JANUARY, FEBRUARY = (date(2024, 1, 1), 31), (date(2024, 2, 1), 28)
MANIFESTS = {
    "M1": (500, JANUARY, ("CA", "DE", "FR", "JP", "US")),
    "M2": (400, JANUARY, ("DE", "FR", "JP", "UK")),
    "M3": (600, FEBRUARY, ("CA", "JP", "UK", "US")),
    "M4": (350, FEBRUARY, ("AU", "DE", "JP")),
}
WHEN = "order_date >= '2024-01-10' and order_date <= '2024-01-20'"


def _files(name: str) -> list[tuple[str, date, str]]:
    """Name, day and country of each file: every day and every country in turn."""
    count, (first, days), countries = MANIFESTS[name]
    return [
        (f"{name}-{n:03d}", first + timedelta(days=n % days), countries[n % len(countries)])
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("t"), schema=SCHEMA, spec=BY_DAY)
    for name in MANIFESTS:
        entries = [
            {
                "location": path,
                "spec_id": 0,
                "partition.1000": day,
                **bounds(2, day, day),
                **bounds(3, country, country),
                **bounds(4, day, day),  # the derived column of day(order_date)
            }
            for path, day, country in _files(name)
        ]
        bench.commit(Change(added=bench.entries(entries)))
    assert [leaf.record_count for leaf in bench.tree().leaves()] == [500, 400, 600, 350]
    return bench


def _opened(bench: Bench, where: str) -> tuple[set[str], list[str]]:
    """The leaves that a plan opens, by name, and its files."""
    names = {leaf.location: f"M{at}" for at, leaf in enumerate(bench.tree().leaves(), start=1)}
    with bench.storage.recording() as calls:
        planned = plan(bench.reader(), bench.tip, where=parse(where, SCHEMA))
    leaves = {name for path, name in names.items() if any(c.path.endswith(path) for c in calls)}
    return leaves, sorted(planned.files.pylist("location"))


def test_dates_leave_the_manifests_of_january(bench: Bench) -> None:
    leaves, files = _opened(bench, WHEN)
    assert leaves == {"M1", "M2"}
    days = {date(2024, 1, day) for day in range(10, 21)}
    named = [path for name in ("M1", "M2") for path, day, _ in _files(name) if day in days]
    assert files == sorted(named)


def test_countries_leave_one_of_them_at_the_root(bench: Bench) -> None:
    """M2 ends with UK, which is before US. Iceberg 3 would open it: its manifest list has bounds of
    partition fields alone."""
    leaves, files = _opened(bench, f"{WHEN} and country = 'US'")
    assert leaves == {"M1"}
    days = {date(2024, 1, day) for day in range(10, 21)}
    assert files == sorted(
        path for path, day, country in _files("M1") if day in days and country == "US"
    )
    assert 0 < len(files) < 500  # bounds of manifests alone leave all of M1


def test_a_country_alone_leaves_two_manifests(bench: Bench) -> None:
    leaves, files = _opened(bench, "country = 'US'")
    assert leaves == {"M1", "M3"}
    assert len(files) == 500 // 5 + 600 // 4
