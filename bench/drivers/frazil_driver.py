"""Frazil, through its public API; entries are registered with `Table._add_entries`."""

from __future__ import annotations

import time

_BEGAN = time.perf_counter()

import sys  # noqa: E402
from collections.abc import Mapping  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from types import MappingProxyType  # noqa: E402
from typing import Any  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import frazil  # noqa: E402

_IMPORTED_MS = (time.perf_counter() - _BEGAN) * 1000

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

from bench.drivers import shop  # noqa: E402
from bench.drivers.base import compete, measured, peak_kb, serve, timed  # noqa: E402
from bench.drivers.rows import COLUMNS, arriving, keyed, keyed_parts, one_file, rows_of  # noqa: E402
from frazil.format.entries.batch import EntryBatch  # noqa: E402
from frazil.iceberg.schema import Schema  # noqa: E402
from frazil.iceberg.types import (  # noqa: E402
    DateType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
)
from frazil.maintenance.rewrite_manifests import rewrite_manifests  # noqa: E402
from tests.support.tpch import TABLES, fill, opened  # noqa: E402

NAME = "shop.orders"
TYPES = {"long": LongType(), "date": DateType(), "double": DoubleType(), "string": StringType()}
ARROW = {
    "long": pa.int64(),
    "date": pa.date32(),
    "double": pa.float64(),
    "string": pa.string(),
}


def schema_of(columns: int) -> Schema:
    """The table's columns."""
    return Schema(
        *(
            NestedField(n + 1, name, TYPES[shop.kind_of(n)], required=False)
            for n, name in enumerate(shop.names(columns))
        )
    )


def entries_of(files: shop.Files, expression_id: int) -> EntryBatch:
    """Files as entries, column by column."""
    n = len(files)
    ones = np.ones(n, dtype=np.bool_)
    days = pa.array(files.days, pa.int32()).cast(pa.date32())
    table: dict[str, Any] = {
        "tracking.status": pa.array(np.ones(n, dtype=np.int32)),
        "content_type": pa.array(np.zeros(n, dtype=np.int32)),
        "location": pa.array(files.paths),
        "file_format": pa.array(["parquet"] * n),
        "record_count": pa.array(np.full(n, shop.ROWS, dtype=np.int64)),
        "file_size_in_bytes": pa.array(files.sizes),
        "spec_id": pa.array(np.zeros(n, dtype=np.int32)),
        "partition.1000": days,
    }

    def stats(id: int, kind: str, lower: Any, upper: Any) -> None:
        base = f"content_stats.{id}"
        table[f"{base}.lower_bound"] = lower
        table[f"{base}.upper_bound"] = upper
        table[f"{base}.tight_bounds"] = pa.array(ones)
        table[f"{base}.value_count"] = pa.array(np.full(n, shop.ROWS, dtype=np.int64))
        table[f"{base}.null_value_count"] = pa.array(np.zeros(n, dtype=np.int64))
        if kind == "string":
            table[f"{base}.avg_value_size_in_bytes"] = pa.array(np.full(n, 14, dtype=np.int32))
        if kind == "double":
            table[f"{base}.nan_value_count"] = pa.array(np.zeros(n, dtype=np.int64))

    for column in range(files.columns):
        kind = shop.kind_of(column)
        if kind == "date":
            stats(column + 1, kind, days, days)
        else:
            lower = pa.array(files.lower[column], ARROW[kind])
            stats(column + 1, kind, lower, pa.array(files.upper[column], ARROW[kind]))
    stats(expression_id, "date", days, days)
    return EntryBatch(pa.table(table))


WHERE = {
    "all": None,
    "day": f"order_date = '{shop.WANTED_DAY}'",
    "day and country": f"order_date = '{shop.WANTED_DAY}' and country = '{shop.WANTED_COUNTRY}'",
}


class Driver:
    """Operations the workloads ask for; times are of the library call alone."""

    catalog: frazil.Catalog
    table: frazil.Table
    name: str = NAME
    prepared: Mapping[int, EntryBatch] = MappingProxyType({})

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {
            "version": frazil.__version__,
            "settings": "embedded catalog (SQLite, WAL, synchronous=FULL), metadata files fsynced, "
            "default table properties",
        }

    def create(self, folder: str, columns: int = 12, **options: Any) -> None:
        """Make the table."""
        self._connect(folder, options)
        self.table = self.catalog.create_table(
            self.name,
            schema_of(columns),
            partition_by=["day(order_date)"],
            properties=options.get("properties", {}),
        )

    def _connect(self, folder: str, options: dict[str, Any]) -> None:
        self.place = (folder, options)
        s3 = options.get("s3")
        self.name = options.get("name", NAME)
        if "server" in options:
            self.catalog = frazil.connect(options["server"])
        elif "uri" in options:
            self.catalog = frazil.connect(options["uri"], warehouse=folder)
        elif s3 is None:
            self.catalog = frazil.connect(folder)
        else:
            Path(folder).mkdir(parents=True, exist_ok=True)
            keys = {
                "s3.endpoint": s3["endpoint"],
                "s3.access-key-id": "bench",
                "s3.secret-access-key": "bench",
                "s3.region": "us-east-1",
            }
            self.catalog = frazil.connect(
                f"sqlite:///{folder}/catalog.db", warehouse=f"s3://{s3['bucket']}/frazil", **keys
            )

    def open(self, folder: str, **options: Any) -> dict[str, float]:
        """Load the table; how long importing, and connecting and loading, took."""

        def work() -> None:
            self._connect(folder, options)
            self.table = self.catalog.load_table(self.name)

        ms, _ = timed(work)
        return {"import_ms": _IMPORTED_MS, "load_ms": ms, "peak_kb": peak_kb()}

    def populate(self, total: int, columns: int = 12) -> float:
        """Register all files in one commit."""
        batch = self._entries(0, total, total, columns)
        ms, _ = timed(lambda: self.table._add_entries(batch))
        return ms

    def _entries(self, start: int, stop: int, total: int, columns: int = 12) -> EntryBatch:
        files = shop.files(start, stop, total=total, columns=columns)
        return entries_of(files, self.table.metadata.expressions[0].expr_id)

    def commits(self, start: int, count: int, total: int) -> list[float]:
        """One file per commit."""
        found = []
        for index in range(start, start + count):
            batch = self._entries(index, index + 1, total)
            ms, _ = timed(partial(self.table._add_entries, batch))
            found.append(ms)
        return found

    def prepare(self, start: int, count: int, total: int) -> None:
        """Describe the files that `compete` will register, so that only commits are left to do."""
        indices = range(start, start + count)
        self.prepared = {index: self._entries(index, index + 1, total) for index in indices}

    def compete(self, start: int, count: int, total: int) -> dict[str, Any]:
        """One file per commit, against other processes."""
        prepared, self.prepared = self.prepared, {}

        def commit(number: int) -> int:
            index = start + number
            entries = prepared.get(index) or self._entries(index, index + 1, total)
            done = self.table._add_entries(entries)
            return 0 if done is None else done.attempts - 1

        return compete(count, commit, self.table.refresh)

    def plan(self, kind: str, total: int, cold: bool) -> dict[str, Any]:
        """Plan a scan; cold forgets decoded manifests and reloads the table first."""
        where = f"order_id = {shop.wanted_order(total)}" if kind == "order_id" else WHERE[kind]

        def work() -> Any:
            if cold:
                self.catalog._cache.clear()
                self.table = self.catalog.load_table(self.name)
            return self.table.scan(where=where).plan()

        ms, plan = timed(work)
        report = plan.report
        return {
            "ms": ms,
            "files": plan.files.num_rows,
            "bytes": report.root.bytes_read + report.leaves.bytes_read,
            "leaves": report.leaves.manifests_read,
            "peak_kb": peak_kb(),
        }

    def plan_wide(self, total: int) -> dict[str, Any]:
        """Two columns of a wide table."""
        low = int(shop.files(total // 2, total // 2 + 1, total=total).lower[3][0])
        where = f"c0 = {low} and country = '{shop.WANTED_COUNTRY}'"
        self.catalog._cache.clear()
        ms, plan = timed(lambda: self.table.scan(where=where).plan())
        report = plan.report
        read = report.root.bytes_read + report.leaves.bytes_read
        return {"ms": ms, "files": plan.files.num_rows, "bytes": read}

    def remove_file(self, index: int, total: int) -> float:
        """Take one file out."""
        path = shop.files(index, index + 1, total=total).paths[0]
        delta = self.table.row_delta().remove_file(path)
        ms, _ = timed(delta.commit)
        return ms

    # Tables with rows

    def create_rows(self, folder: str, file_count: int, rows: int) -> float:
        """A table with data: so many files of so many rows, one commit each."""
        self.create(folder, columns=COLUMNS)
        began = time.perf_counter()
        for index in range(file_count):
            self.table.append(rows_of(index, rows))
        return (time.perf_counter() - began) * 1000

    def delete(self, where: str) -> float:
        """Delete rows by a filter."""
        ms, _ = timed(lambda: self.table.delete(where))
        return ms

    def count(self) -> int:
        """Rows of the table, by reading them."""
        return int(self.table.scan(columns=["order_id"]).to_arrow().num_rows)

    def changes_marker(self) -> int:
        """A name for the current snapshot."""
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        return int(snapshot.snapshot_id)

    def changes(self, since: int) -> dict[str, Any]:
        """Which files came and went since."""
        self.catalog._cache.clear()
        ms, found = timed(lambda: self.table.changes(since=since).files())
        return {"ms": ms, "files": found.num_rows}

    def create_keyed(self, folder: str, rows: int, files: int) -> None:
        """A table with a key, one commit per file."""
        self._connect(folder, {})
        self.table = self.catalog.create_table("shop.keyed", keyed(np.arange(1), 0).schema)
        for part in keyed_parts(rows, files):
            self.table.append(part)

    def upsert(self, rows: int, count: int, turn: int) -> dict[str, Any]:
        """Rows that arrive replace those with their keys or are new."""
        new = arriving(rows, count, turn)
        return measured(lambda: self.table.upsert(new, on=["id"]).rows_updated)

    def compact(self) -> dict[str, Any]:
        """Small files become large ones."""
        return measured(lambda: self.table.compact().files_removed)

    def keyed_state(self) -> list[int]:
        """Rows and files of the table with a key."""
        count = self.table.scan(columns=["id"]).to_arrow().num_rows
        return [count, self.table.scan().plan().files.num_rows]

    def add_file(self, order_id: int, columns: int = 12) -> None:
        """One file that exists, in a table of files that do not."""
        self.table.append(one_file(order_id, columns))

    def lookup(self, order_id: int, cold: bool) -> dict[str, Any]:
        """One row, end to end; cold opens the catalog again, which knows no plan and no query."""
        text = f"SELECT * FROM {self.name} WHERE order_id = {order_id}"

        def work() -> int:
            if cold:
                self._connect(*self.place)
            return self.catalog.sql(text).to_arrow().num_rows

        return measured(work)

    # TPC-H

    def tpch(self, folder: str, source: str) -> dict[str, list[str]]:
        """The tables from Parquet files; which data files hold them now."""
        self._connect(folder, {})
        self.session = fill(self.catalog, opened(source))
        return {
            name: [
                path.removeprefix("file://")
                for path in self.catalog.load_table(f"tpch.{name}")
                .inspect.data_files["file_path"]
                .to_pylist()
            ]
            for name in TABLES
        }

    def query(self, text: str) -> dict[str, Any]:
        """Run a statement to its last row."""
        return measured(lambda: self.session.sql(text).to_arrow().num_rows)

    # Tables of other writers

    def open_legacy(self, folder: str) -> dict[str, float]:
        """A PyIceberg table in PyIceberg's own catalog database, read-only."""
        return self.open(folder)

    def plan_legacy(self, kind: str, total: int) -> dict[str, Any]:
        """Plan with nothing decoded before."""
        return self.plan(kind, total, cold=True)

    def upgrade(self, folder: str) -> dict[str, Any]:
        """Make it format version 4 in place."""
        handle = self.table._handle
        with handle.storage.recording() as calls:
            ms, _ = timed(self.table.upgrade)
        self.table = self.catalog.load_table(self.name)
        read = sum(call.bytes for call in calls if call.verb == "read")
        written = sum(call.bytes for call in calls if call.verb == "write")
        return {"ms": ms, "read": read, "written": written}

    def rewrite_manifests(self) -> float:
        """Old manifests become v4 leaves."""
        return timed(lambda: rewrite_manifests(self.table._handle))[0]


if __name__ == "__main__":
    serve(Driver())
