"""What a table costs whose files are counted in millions: the root, a commit, a selective plan.

The root is real and holds the entry of every leaf; of the leaves, those exist that the plans open.
A file's description follows from its number (`bench.drivers.shop`), so any leaf can be written by
itself. Each case runs in a process of its own. Processor time is stated, as it does not depend on
what else the machine is doing; memory is the most that the process held.

    python -m bench.scale [--files 10000000 100000000 1000000000] [--leaves 20000 0]

`--leaves 0` is the size that a table of so many files has by default.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import uuid
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from bench.drivers import shop
from bench.thresholds import Subject, best, spent
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.entries.tracking import Status
from frazil.properties.registry import LEAF_TARGET_ENTRIES
from frazil.tree.policy import bulk_leaf_entries
from frazil.tree.write import TreeWriter

COMMITS = 20
HEADINGS = (
    "| files | entries per leaf | leaves | root | commit, median | commit, bytes | plan one order, "
    "cold | warm | read | plan a day and country, cold | leaves opened | memory |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|"
)


class Simulated(Subject):
    """A table whose root has the entries of all leaves, and whose leaves are mostly absent."""

    def __init__(self, folder: str, files: int, entries: int) -> None:
        super().__init__(folder, files, **{LEAF_TARGET_ENTRIES.key: str(entries)})
        self._entries = entries
        self.day = int(shop.FIRST_DAY + (files // 2) * shop.DAYS // files)
        first = self.entries(files, files + 1)
        self.table._add_entries(first)  # the root to replace
        opened = self._opened()
        self._write_root(opened)
        self.leaves = -(-files // entries)
        self.written = len(opened)

    @property
    def wanted(self) -> dict[str, str]:
        """Two filters: one order, and one day and country."""
        day = shop.date_of(self.day)
        return {
            "order": f"order_id = {shop.wanted_order(self.total)}",
            "day": f"order_date = '{day}' and country = '{shop.WANTED_COUNTRY}'",
        }

    def _opened(self) -> list[int]:
        """Numbers of the leaves that the filters leave."""
        first = -(-(self.day - shop.FIRST_DAY) * self.total // shop.DAYS)
        last = -(-(self.day + 1 - shop.FIRST_DAY) * self.total // shop.DAYS) - 1
        days = range(first // self._entries, last // self._entries + 1)
        return sorted({*days, self.total // 2 // self._entries})

    def _write_root(self, opened: list[int]) -> None:
        handle = self.table.refresh()._handle
        snapshot = handle.tip("main")
        assert snapshot is not None
        assert snapshot.root_manifest is not None
        writer = TreeWriter(handle.storage, handle.metadata, location=handle.location)
        rows: dict[int, EntryBatch] = {}
        for leaf in opened:
            stop = min((leaf + 1) * self._entries, self.total)
            entries = self.entries(leaf * self._entries, stop)
            rows[leaf] = writer.leaves(entries, target_entries=self._entries)
        sample = _existing(rows[opened[0]], int(snapshot.snapshot_id))
        root = _with_rows(self._all_leaves(sample), rows)
        old = self.folder / handle.location.removeprefix("file://") / snapshot.root_manifest
        old.unlink()
        writer.root(root, snapshot)
        self.catalog._cache.clear()

    def _all_leaves(self, sample: EntryBatch) -> EntryBatch:
        """The entry of one leaf, as many times as there are leaves, each with bounds of its own."""
        count = -(-self.total // self._entries)
        first = np.arange(count, dtype=np.int64) * self._entries
        last = np.minimum(first + self._entries, self.total) - 1
        root = sample.take(np.zeros(count, dtype=np.int64))
        days = [
            (shop.FIRST_DAY + n * shop.DAYS // self.total).astype(np.int32) for n in (first, last)
        ]
        dates = [pa.array(day, pa.int32()).cast(pa.date32()) for day in days]
        bounds: dict[int, list[Any]] = {
            1: [pa.array(first * shop.ROWS), pa.array(last * shop.ROWS + shop.ROWS - 1)],
            2: dates,
            self.expression: dates,
        }
        random = np.random.default_rng(7)
        for column in range(3, 12):
            known = [sample.column(stats_key(column + 1, side))[0].as_py() for side in _SIDES]
            bounds[column + 1] = [_near(value, random, count) for value in known]
        for id, sides in bounds.items():
            for side, values in zip(_SIDES, sides, strict=True):
                root = root.with_column(stats_key(id, side), values)
        names = pa.array([f"metadata/leaf-{uuid.uuid4()}-0.parquet" for _ in range(count)])
        root = root.with_column("location", names)
        root = root.with_column("record_count", pa.array(last - first + 1))
        return root.with_column("tracking.first_row_id", pa.array(first * shop.ROWS))


_SIDES = ("lower_bound", "upper_bound")


def _near(value: Any, random: np.random.Generator, count: int) -> pa.Array:
    """As many values like one, all different, as bounds of random columns are."""
    noise = random.random(count)
    if isinstance(value, str):
        return pa.array([value[:6] + f"{int(n * 2**32):08x}" for n in noise])
    if isinstance(value, float):
        return pa.array(value * (1 - noise / 1000))
    return pa.array((value * (1 - noise / 1000)).astype(np.int64))


def _existing(row: EntryBatch, snapshot_id: int) -> EntryBatch:
    """A leaf's entry as a later root carries it."""
    for key, value in {
        "tracking.status": int(Status.EXISTING),
        "tracking.snapshot_id": snapshot_id,
        "tracking.sequence_number": 1,
        "tracking.file_sequence_number": 1,
        "tracking.first_row_id": 0,
        "manifest_info.min_sequence_number": 1,
        "content_type": int(ContentType.DATA_MANIFEST),
    }.items():
        row = row.with_constant(key, value)
    return row


def _with_rows(root: EntryBatch, rows: dict[int, EntryBatch]) -> EntryBatch:
    """The root with what written leaves are called and span in place of what was made up."""
    sample = next(iter(rows.values()))
    kept = ("location", "file_size_in_bytes")
    for key in (*kept, *(name for name in sample.keys if name.endswith("_bound"))):
        values = root.column(key).to_pylist()
        for at, row in rows.items():
            values[at] = row.column(key)[0].as_py()
        root = root.with_column(key, pa.array(values, root.column(key).type))
    return root


def measured(folder: str, files: int, entries: int) -> dict[str, Any]:
    """Build a table in this process; measure it in another."""
    subject = Simulated(folder, files, entries)
    root = max(Path(folder).rglob("root-*.parquet"), key=lambda path: path.stat().st_size)
    told = subprocess.run(
        [sys.executable, "-m", "bench.scale", "--measure", folder, "--files", str(files)],
        check=True,
        capture_output=True,
        text=True,
    )
    about: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return about | {"leaves": subject.leaves, "root": root.stat().st_size}


def measure(folder: str, files: int) -> dict[str, Any]:
    """The figures of a table that lies there."""
    subject = Simulated.__new__(Simulated)
    import frazil

    subject.total = files
    subject.catalog = frazil.connect(folder)
    subject.table = subject.catalog.load_table("shop.orders")
    subject.expression = subject.table.metadata.expressions[0].expr_id
    subject.day = int(shop.FIRST_DAY + (files // 2) * shop.DAYS // files)
    wanted = subject.wanted
    subject.plan(wanted["order"])
    order = best(partial(subject.plan, wanted["order"]), 5)
    warm = best(lambda: subject.table.scan(where=wanted["order"]).plan(), 5)
    day = best(partial(subject.plan, wanted["day"]), 3)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    commits = []
    for index in range(COMMITS + 1):
        batch = subject.entries(files + 1 + index, files + 2 + index)
        commits.append(spent(partial(subject.table._add_entries, batch)))
    report = order.result.report
    return {
        "order": order.cpu_ms,
        "warm": warm.cpu_ms,
        "read": report.root.bytes_read + report.leaves.bytes_read,
        "day": day.cpu_ms,
        "opened": day.result.report.leaves.manifests_read,
        "commit": median(done.cpu_ms for done in commits[1:]),
        "bytes": median(done.result.metadata_bytes for done in commits[1:]),
        "memory": memory,
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, nargs="+", default=[10**7, 10**8, 10**9])
    parser.add_argument("--leaves", type=int, nargs="+", default=[20_000, 0])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.files[0])))
        return
    print(HEADINGS)
    for files in arguments.files:
        for asked in arguments.leaves:
            entries = asked or bulk_leaf_entries({}, files=files, columns=12)
            with tempfile.TemporaryDirectory() as folder:
                seen = measured(folder, files, entries)
            print(
                f"| {files:,} | {entries:,} | {seen['leaves']:,} | {seen['root'] / 1000:,.0f} kB "
                f"| {seen['commit']:.0f} ms | {seen['bytes'] / 1000:,.0f} kB "
                f"| {seen['order']:.0f} ms | {seen['warm']:.0f} ms | {seen['read'] / 1000:,.0f} kB "
                f"| {seen['day']:,.0f} ms | {seen['opened']} | {seen['memory'] / 1000:,.0f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
