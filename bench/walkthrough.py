"""The planning example of a lesson on Iceberg's metadata, on a table of its size.

8 billion rows in 400,000 files, 1,000 files to a manifest, one day in 20 of 400 manifests, orders
of the US in 15 % of the files of a day: the query for one day and country leaves 20 manifests and
3,000 files. The lesson states 2.5 seconds, 2 of them for the 20 manifests. Planned here on the
local disk, and from a store that waits before each request; and beside it, what listing the files
takes.

    python -m bench.walkthrough [--delay-ms 30]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import frazil
from bench.drivers import shop
from bench.drivers.frazil_driver import entries_of, schema_of
from bench.object_store import BUCKET, ObjectStore
from bench.thresholds import best
from frazil.scan.report import ScanReport

FILES, PER_DAY, PER_LEAF = 400_000, 20_000, 1_000
WANTED_DAY = 14
WHERE = f"order_date = '{shop.date_of(shop.FIRST_DAY + WANTED_DAY)}' and country = 'US'"
_BATCH = 50_000


def described(start: int, stop: int) -> shop.Files:
    """Files of days that follow one another; 15 of 100 are of the US."""
    files = shop.files(start, stop, total=FILES)
    index = np.arange(start, stop)
    days = (shop.FIRST_DAY + index // PER_DAY).astype(np.int32)
    others = shop.COUNTRIES[:-1]
    countries = ["US" if n % 100 < 15 else others[n % len(others)] for n in index * 7919]
    bounds = [files.lower[0], days, countries], [files.upper[0], days, countries]
    return replace(
        files,
        days=days,
        lower=[*bounds[0], *files.lower[3:]],
        upper=[*bounds[1], *files.upper[3:]],
    )


def filled(catalog: frazil.Catalog, per_leaf: int) -> frazil.Table:
    """The table, with so many files to a leaf."""
    table = catalog.create_table(
        "theworldshop.orders",
        schema_of(12),
        partition_by=["day(order_date)"],
        properties={
            "write.metadata.json-every": "0",
            "write.leaf.target-entries": str(per_leaf),
        },
    )
    expression = table.metadata.expressions[0].expr_id
    for start in range(0, FILES, _BATCH):
        table._add_entries(entries_of(described(start, start + _BATCH), expression))
    return table


def planned(catalog: frazil.Catalog, table: frazil.Table) -> Any:
    """A plan with nothing decoded before."""
    catalog._cache.clear()
    return table.scan(where=WHERE).plan()


def local(per_leaf: int) -> str:
    """A row of the table: a plan on the local disk."""
    with tempfile.TemporaryDirectory() as folder, frazil.connect(folder) as catalog:
        table = filled(catalog, per_leaf)
        planned(catalog, table)
        done = best(lambda: planned(catalog, table), 5)
        report: ScanReport = done.result.report
        return _row(f"local disk, {per_leaf:,} files per leaf", report, f"{done.cpu_ms:.0f} ms", "")


def remote(per_leaf: int, delay_ms: float) -> str:
    """A row of the table: a plan from a store that waits before each request."""
    with tempfile.TemporaryDirectory() as folder, ObjectStore(delay_ms) as store:
        settings = {
            "s3.endpoint": store.endpoint,
            "s3.access-key-id": "bench",
            "s3.secret-access-key": "bench",
            "s3.region": "us-east-1",
        }
        place = f"s3://{BUCKET}/warehouse"
        uri = f"sqlite:///{folder}/catalog.db"
        with frazil.connect(uri, warehouse=place, **settings) as catalog:
            table = filled(catalog, per_leaf)
            planned(catalog, table)
            store.reset()
            done = best(lambda: planned(catalog, table), 3)
            requests = store.total // 3
        what = f"{delay_ms:.0f} ms per request, {per_leaf:,} files per leaf"
        times = f"{done.cpu_ms:.0f} ms, {done.wall_ms:.0f} ms in all"
        return _row(what, done.result.report, times, f"{requests}")


def _row(what: str, report: ScanReport, times: str, requests: str) -> str:
    root, leaves = report.root, report.leaves
    return (
        f"| {what} | {root.considered - root.survived:,} of {root.considered:,} | "
        f"{leaves.manifests_read} | {report.files:,} | "
        f"{(root.bytes_read + leaves.bytes_read) / 1000:,.0f} kB | {requests} | {times} |"
    )


def listing() -> float:
    """Milliseconds of processor time to list as many files, in a folder per day, and sort them."""
    with tempfile.TemporaryDirectory() as folder:
        for day in range(FILES // PER_DAY):
            place = Path(folder) / f"order_date={shop.date_of(shop.FIRST_DAY + day)}"
            place.mkdir()
            for number in range(PER_DAY):
                os.close(os.open(place / f"{number:08d}.parquet", os.O_CREAT | os.O_WRONLY))
        began = time.process_time()
        names = [
            (entry.path, entry.stat().st_size)
            for day in os.scandir(folder)
            for entry in os.scandir(day.path)
        ]
        names.sort()
        assert len(names) == FILES
        return (time.process_time() - began) * 1000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--delay-ms", type=float, default=30)
    delay = parser.parse_args().delay_ms
    print(
        "| plan, nothing cached | leaves skipped | opened | files left | read | requests "
        "| processor time |\n|---|---|---|---|---|---|---|"
    )
    for per_leaf in (PER_LEAF, 20_000):
        print(local(per_leaf), flush=True)
    for per_leaf in (PER_LEAF, 20_000):
        print(remote(per_leaf, delay), flush=True)
    pages = FILES // 1_000
    print(f"\nlisting {FILES:,} local files: {listing():,.0f} ms of processor time")
    print(f"listing them in a bucket: {pages} requests in a row, {pages * delay / 1000:.0f} s")
    footers = FILES * delay / 1000
    print(f"reading their footers: {FILES:,} requests, {footers / 60:.0f} min one after the other")


if __name__ == "__main__":
    main()
