"""delta-rs; files are registered with write transactions of add actions."""

from __future__ import annotations

import time

_BEGAN = time.perf_counter()

import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import deltalake  # noqa: E402
from deltalake import DeltaTable, QueryBuilder, write_deltalake  # noqa: E402
from deltalake.schema import Schema  # noqa: E402
from deltalake.transaction import AddAction  # noqa: E402

_IMPORTED_MS = (time.perf_counter() - _BEGAN) * 1000

import json  # noqa: E402

import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402

from bench.drivers import shop  # noqa: E402
from bench.drivers.base import Skip, compete, measured, peak_kb, serve, timed  # noqa: E402
from bench.drivers.rows import (  # noqa: E402
    COLUMNS,
    arriving,
    arrow_schema,
    keyed_parts,
    one_file,
    rows_of,
)

STEP = 10_000


class Driver:
    """Operations the workloads ask for; times are of the library call alone."""

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {
            "version": deltalake.__version__,
            "settings": "log on the file system, a checkpoint every 100 commits (default), "
            "partitioned by order_date; plans are get_add_actions and an Arrow filter on its "
            "statistics; log files not fsynced",
        }

    def _options(self, options: dict[str, Any]) -> None:
        s3 = options.get("s3")
        self.storage = None
        if s3 is not None:
            self.path = f"s3://{s3['bucket']}/delta"
            self.storage = {
                "AWS_ENDPOINT_URL": s3["endpoint"],
                "AWS_ACCESS_KEY_ID": "bench",
                "AWS_SECRET_ACCESS_KEY": "bench",
                "AWS_REGION": "us-east-1",
                "AWS_ALLOW_HTTP": "true",
                "conditional_put": "etag",
            }

    def create(self, folder: str, columns: int = 12, **options: Any) -> None:
        """Make the table."""
        self.path = f"{folder}/orders"
        self._options(options)
        if self.storage is None:
            Path(self.path).mkdir(parents=True)
        self.schema = Schema.from_arrow(arrow_schema(columns))
        self.table = DeltaTable.create(
            self.path,
            self.schema,
            partition_by=["order_date"],
            storage_options=self.storage,
        )

    def open(self, folder: str, **options: Any) -> dict[str, float]:
        """Load the table; how long importing and loading took."""
        self.path = f"{folder}/orders"
        self._options(options)

        def work() -> None:
            self.table = DeltaTable(self.path, storage_options=self.storage)

        ms, _ = timed(work)
        self.schema = self.table.schema()
        return {"import_ms": _IMPORTED_MS, "load_ms": ms, "peak_kb": peak_kb()}

    def _actions(self, start: int, stop: int, total: int, columns: int = 12) -> list[AddAction]:
        files = shop.files(start, stop, total=total, columns=columns)
        names = shop.names(columns)
        kept = [column for column in range(columns) if column != 1]
        found = []
        for row, path in enumerate(files.paths):
            bounds = {names[column]: files.bounds(column, row) for column in kept}
            stats = {
                "numRecords": shop.ROWS,
                "minValues": {name: low for name, (low, _) in bounds.items()},
                "maxValues": {name: high for name, (_, high) in bounds.items()},
                "nullCount": dict.fromkeys(bounds, 0),
            }
            day = shop.date_of(files.days[row]).isoformat()
            found.append(
                AddAction(
                    path, int(files.sizes[row]), {"order_date": day}, 0, True, json.dumps(stats)
                )
            )
        return found

    def _append(self, actions: list[AddAction]) -> None:
        self.table.create_write_transaction(
            actions=actions, mode="append", schema=self.schema, partition_by=["order_date"]
        )

    def populate(self, total: int, columns: int = 12) -> float:
        """Register files, then write a checkpoint."""
        spent = 0.0
        for start in range(0, total, STEP):
            actions = self._actions(start, min(start + STEP, total), total, columns)
            spent += timed(lambda actions=actions: self._append(actions))[0]
        self.table = DeltaTable(self.path, storage_options=self.storage)
        return spent + timed(self.table.create_checkpoint)[0]

    def commits(self, start: int, count: int, total: int) -> list[float]:
        """One file per commit. A table that was not brought up to date checks every commit since
        it was, so it is, between the commits and outside their times."""
        found = []
        for index in range(start, start + count):
            actions = self._actions(index, index + 1, total)
            found.append(timed(lambda actions=actions: self._append(actions))[0])
            self.table.update_incremental()
        return found

    def _surviving(self, *conditions: tuple[str, Any]) -> int:
        """Files whose statistics admit a row with these values."""
        actions = pa.table(self.table.get_add_actions(flatten=True))
        if not conditions:
            return actions.num_rows
        mask = None
        for name, value in conditions:
            if f"partition.{name}" in actions.column_names:
                part = pc.equal(actions.column(f"partition.{name}"), value)
            else:
                part = pc.and_(
                    pc.less_equal(actions.column(f"min.{name}"), value),
                    pc.greater_equal(actions.column(f"max.{name}"), value),
                )
            mask = part if mask is None else pc.and_(mask, part)
        return actions.filter(mask).num_rows

    def compete(self, start: int, count: int, total: int) -> dict[str, Any]:
        """One file per commit, against other processes."""

        def commit(number: int) -> int:
            self._append(self._actions(start + number, start + number + 1, total))
            return 0

        return compete(count, commit, self.table.update_incremental)

    def plan(self, kind: str, total: int, cold: bool) -> dict[str, Any]:
        """List the surviving files; cold replays the log first."""
        day = ("order_date", pa.scalar(shop.WANTED_DAY))
        conditions = {
            "all": (),
            "day": (day,),
            "day and country": (day, ("country", shop.WANTED_COUNTRY)),
            "order_id": (("order_id", shop.wanted_order(total)),),
        }[kind]

        def work() -> int:
            if cold:
                self.table = DeltaTable(self.path, storage_options=self.storage)
            return self._surviving(*conditions)

        ms, files = timed(work)
        return {"ms": ms, "files": files, "peak_kb": peak_kb()}

    def plan_wide(self, total: int) -> dict[str, Any]:
        """Two columns of a wide table."""
        low = int(shop.files(total // 2, total // 2 + 1, total=total).lower[3][0])

        def work() -> int:
            self.table = DeltaTable(self.path, storage_options=self.storage)
            return self._surviving(("c0", low), ("country", shop.WANTED_COUNTRY))

        ms, files = timed(work)
        return {"ms": ms, "files": files}

    def remove_file(self, index: int, total: int) -> float:
        """Not offered."""
        raise Skip("delta-rs has no public call that removes a file without reading it")

    def create_rows(self, folder: str, file_count: int, rows: int) -> float:
        """A table with data: so many files of so many rows, one commit each."""
        self.create(folder, columns=COLUMNS)
        began = time.perf_counter()
        for index in range(file_count):
            write_deltalake(self.table, rows_of(index, rows), mode="append")
        return (time.perf_counter() - began) * 1000

    def delete(self, where: str) -> float:
        """Delete rows by a filter (copy on write)."""
        return timed(lambda: self.table.delete(where))[0]

    def count(self) -> int:
        """Rows of the table."""
        return int(self.table.count())

    def create_keyed(self, folder: str, rows: int, files: int) -> None:
        """A table with a key, one commit per file."""
        self.path = f"{folder}/keyed"
        self.storage = None
        for part in keyed_parts(rows, files):
            write_deltalake(self.path, part, mode="append")
        self.table = DeltaTable(self.path)

    def upsert(self, rows: int, count: int, turn: int) -> dict[str, Any]:
        """A merge by the key (copy on write)."""
        new = arriving(rows, count, turn)

        def work() -> int:
            merge = self.table.merge(new, "t.id = s.id", source_alias="s", target_alias="t")
            done = merge.when_matched_update_all().when_not_matched_insert_all().execute()
            return int(done["num_target_rows_updated"])

        return measured(work)

    def compact(self) -> dict[str, Any]:
        """Small files become large ones."""
        return measured(lambda: int(self.table.optimize.compact()["numFilesRemoved"]))

    def keyed_state(self) -> list[int]:
        """Rows and files of the table with a key."""
        rows = QueryBuilder().register("t", self.table).execute("select id from t").read_all()
        return [int(rows.num_rows), len(self.table.file_uris())]

    def add_file(self, order_id: int, columns: int = 12) -> None:
        """One file that exists, in a table of files that do not."""
        write_deltalake(self.table, one_file(order_id, columns), mode="append")

    def lookup(self, order_id: int, cold: bool) -> dict[str, Any]:
        """One row, end to end, by its own query engine; cold replays the log first."""
        text = f"select * from orders where order_id = {order_id}"

        def work() -> int:
            if cold:
                self.table = DeltaTable(self.path, storage_options=self.storage)
            found = QueryBuilder().register("orders", self.table).execute(text).read_all()
            return int(found.num_rows)

        return measured(work)

    def changes_marker(self) -> int:
        """The current version."""
        return int(self.table.version())

    def changes(self, since: int) -> dict[str, Any]:
        """Not offered for files."""
        raise Skip("delta-rs lists no changed files; its change feed reads data")


if __name__ == "__main__":
    serve(Driver())
