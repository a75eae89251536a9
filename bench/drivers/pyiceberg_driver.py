"""PyIceberg with its SQL catalog on SQLite; files are registered with fast appends."""

from __future__ import annotations

import time

_BEGAN = time.perf_counter()

import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyiceberg  # noqa: E402
from pyiceberg.catalog import Catalog  # noqa: E402
from pyiceberg.catalog.rest import RestCatalog  # noqa: E402
from pyiceberg.catalog.sql import SqlCatalog  # noqa: E402

_IMPORTED_MS = (time.perf_counter() - _BEGAN) * 1000

from pyiceberg.conversions import to_bytes  # noqa: E402
from pyiceberg.manifest import (  # noqa: E402
    DataFile,
    DataFileContent,
    FileFormat,
    clear_manifest_cache,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec  # noqa: E402
from pyiceberg.schema import Schema  # noqa: E402
from pyiceberg.transforms import DayTransform  # noqa: E402
from pyiceberg.typedef import Record  # noqa: E402
from pyiceberg.types import (  # noqa: E402
    DateType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
)

from bench.drivers import shop  # noqa: E402
from bench.drivers.base import compete, measured, peak_kb, serve, timed  # noqa: E402
from bench.drivers.rows import (  # noqa: E402
    COLUMNS,
    arriving,
    keyed_parts,
    one_file,
    rows_of,
)

NAME = "shop.orders"
TYPES = {"long": LongType(), "date": DateType(), "double": DoubleType(), "string": StringType()}
MANIFEST_ENTRIES = 1_000
SPEC = PartitionSpec(PartitionField(2, 1000, DayTransform(), "order_date_day"))
WHERE = {
    "all": "true",
    "day": f"order_date = '{shop.WANTED_DAY}'",
    "day and country": f"order_date = '{shop.WANTED_DAY}' and country = '{shop.WANTED_COUNTRY}'",
}


def schema_of(columns: int) -> Schema:
    """The table's columns."""
    return Schema(
        *(
            NestedField(n + 1, name, TYPES[shop.kind_of(n)], required=False)
            for n, name in enumerate(shop.names(columns))
        )
    )


class Driver:
    """Operations the workloads ask for; times are of the library call alone."""

    catalog: Catalog

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {
            "version": pyiceberg.__version__,
            "settings": "SqlCatalog on SQLite (library defaults), format version 2, fast append, "
            f"{MANIFEST_ENTRIES} files per manifest when populated; metadata files not fsynced",
        }

    def _connect(self, folder: str, options: dict[str, Any]) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        if "rest" in options:
            modes = {"scan-planning-mode": options.get("planning", "client")}
            self.catalog = RestCatalog("default", uri=options["rest"], **modes)
            return
        warehouse = f"file://{folder}"
        properties = {}
        s3 = options.get("s3")
        if s3 is not None:
            warehouse = f"s3://{s3['bucket']}/pyiceberg"
            properties = {
                "s3.endpoint": s3["endpoint"],
                "s3.access-key-id": "bench",
                "s3.secret-access-key": "bench",
                "s3.region": "us-east-1",
            }
        self.catalog = SqlCatalog(
            "default", uri=f"sqlite:///{folder}/catalog.db", warehouse=warehouse, **properties
        )

    def create(self, folder: str, columns: int = 12, **options: Any) -> None:
        """Make the table."""
        self._connect(folder, options)
        self.catalog.create_namespace("shop")
        self.table = self.catalog.create_table(
            NAME,
            schema_of(columns),
            partition_spec=SPEC,
            properties={"format-version": "2"},
        )

    def open(self, folder: str, **options: Any) -> dict[str, float]:
        """Load the table; how long importing, and connecting and loading, took."""

        def work() -> None:
            self._connect(folder, options)
            self.table = self.catalog.load_table(NAME)

        ms, _ = timed(work)
        return {"import_ms": _IMPORTED_MS, "load_ms": ms, "peak_kb": peak_kb()}

    def _data_files(self, start: int, stop: int, total: int, columns: int = 12) -> list[DataFile]:
        files = shop.files(start, stop, total=total, columns=columns)
        found = []
        ids = range(1, columns + 1)
        types = [TYPES[shop.kind_of(column)] for column in range(columns)]
        counts = dict.fromkeys(ids, shop.ROWS)
        zeros = dict.fromkeys(ids, 0)
        base = self.table.location()
        for row, path in enumerate(files.paths):
            bounds = [files.bounds(column, row) for column in range(columns)]
            found.append(
                DataFile.from_args(
                    _table_format_version=2,
                    content=DataFileContent.DATA,
                    file_path=f"{base}/{path}",
                    file_format=FileFormat.PARQUET,
                    partition=Record(int(files.days[row])),
                    record_count=shop.ROWS,
                    file_size_in_bytes=int(files.sizes[row]),
                    column_sizes={},
                    value_counts=counts,
                    null_value_counts=zeros,
                    nan_value_counts={},
                    lower_bounds={
                        id: to_bytes(kind, low)
                        for id, kind, (low, _) in zip(ids, types, bounds, strict=True)
                    },
                    upper_bounds={
                        id: to_bytes(kind, high)
                        for id, kind, (_, high) in zip(ids, types, bounds, strict=True)
                    },
                    key_metadata=None,
                    split_offsets=[4],
                    equality_ids=None,
                    sort_order_id=None,
                )
            )
            found[-1].spec_id = 0
        return found

    def _append(self, files: list[DataFile]) -> None:
        with (
            self.table.transaction() as transaction,
            transaction.update_snapshot().fast_append() as append,
        ):
            for file in files:
                append.append_data_file(file)

    def populate(self, total: int, columns: int = 12) -> float:
        """Register files, one manifest per commit."""
        spent = 0.0
        for start in range(0, total, MANIFEST_ENTRIES):
            files = self._data_files(start, min(start + MANIFEST_ENTRIES, total), total, columns)
            spent += timed(lambda files=files: self._append(files))[0]
        return spent

    def commits(self, start: int, count: int, total: int) -> list[float]:
        """One file per commit."""
        found = []
        for index in range(start, start + count):
            files = self._data_files(index, index + 1, total)
            found.append(timed(lambda files=files: self._append(files))[0])
        return found

    def compete(self, start: int, count: int, total: int) -> dict[str, Any]:
        """One file per commit, against other processes."""

        def commit(number: int) -> int:
            self._append(self._data_files(start + number, start + number + 1, total))
            return 0

        return compete(count, commit, lambda: self.table.refresh())

    def plan(self, kind: str, total: int, cold: bool) -> dict[str, Any]:
        """Plan a scan; cold reloads the table and forgets cached manifest lists."""
        where = f"order_id = {shop.wanted_order(total)}" if kind == "order_id" else WHERE[kind]

        def work() -> int:
            if cold:
                clear_manifest_cache()
                self.table = self.catalog.load_table(NAME)
            return sum(1 for _ in self.table.scan(row_filter=where).plan_files())

        ms, files = timed(work)
        return {"ms": ms, "files": files, "peak_kb": peak_kb()}

    def plan_wide(self, total: int) -> dict[str, Any]:
        """Two columns of a wide table."""
        low = int(shop.files(total // 2, total // 2 + 1, total=total).lower[3][0])
        where = f"c0 = {low} and country = '{shop.WANTED_COUNTRY}'"
        clear_manifest_cache()
        ms, files = timed(lambda: sum(1 for _ in self.table.scan(row_filter=where).plan_files()))
        return {"ms": ms, "files": files}

    def remove_file(self, index: int, total: int) -> float:
        """Take one file out: an overwrite that deletes it."""
        file = self._data_files(index, index + 1, total)[0]

        def work() -> None:
            with (
                self.table.transaction() as transaction,
                transaction.update_snapshot().overwrite() as overwrite,
            ):
                overwrite.delete_data_file(file)

        return timed(work)[0]

    def create_rows(self, folder: str, file_count: int, rows: int) -> float:
        """A table with data: so many files of so many rows, one commit each."""
        self.create(folder, columns=COLUMNS)
        began = time.perf_counter()
        for index in range(file_count):
            self.table.append(rows_of(index, rows))
        return (time.perf_counter() - began) * 1000

    def delete(self, where: str) -> float:
        """Delete rows by a filter (copy on write)."""
        return timed(lambda: self.table.delete(where))[0]

    def count(self) -> int:
        """Rows of the table, by reading them."""
        return int(self.table.scan(selected_fields=("order_id",)).to_arrow().num_rows)

    def create_keyed(self, folder: str, rows: int, files: int) -> None:
        """A table with a key, one commit per file."""
        self._connect(folder, {})
        self.catalog.create_namespace("shop")
        self.table = self.catalog.create_table("shop.keyed", next(keyed_parts(1, 1)).schema)
        for part in keyed_parts(rows, files):
            self.table.append(part)

    def upsert(self, rows: int, count: int, turn: int) -> dict[str, Any]:
        """Rows that arrive replace those with their keys or are new (copy on write)."""
        new = arriving(rows, count, turn)
        return measured(lambda: self.table.upsert(new, join_cols=["id"]).rows_updated)

    def keyed_state(self) -> list[int]:
        """Rows and files of the table with a key."""
        count = self.table.scan(selected_fields=("id",)).to_arrow().num_rows
        return [count, sum(1 for _ in self.table.scan().plan_files())]

    def add_file(self, order_id: int, columns: int = 12) -> None:
        """One file that exists, in a table of files that do not."""
        self.table.append(one_file(order_id, columns))

    def lookup(self, order_id: int, cold: bool) -> dict[str, Any]:
        """One row, end to end; cold reads all metadata again."""

        def work() -> int:
            if cold:
                clear_manifest_cache()
                self.table = self.catalog.load_table(NAME)
            found = self.table.scan(row_filter=f"order_id = {order_id}").to_arrow()
            return int(found.num_rows)

        return measured(work)

    def changes_marker(self) -> int:
        """A name for the current snapshot."""
        return int(self.table.current_snapshot().snapshot_id)

    def changes(self, since: int) -> dict[str, Any]:
        """Which files were appended since; removed ones are not offered."""
        clear_manifest_cache()

        def work() -> int:
            scan = self.table.incremental_append_scan(from_snapshot_id_exclusive=since)
            return sum(1 for _ in scan.plan_files())

        ms, files = timed(work)
        return {"ms": ms, "files": files}


if __name__ == "__main__":
    serve(Driver())
