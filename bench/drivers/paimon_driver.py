"""Paimon through pypaimon: an append-only table; files are registered with commit messages."""

from __future__ import annotations

import time

_BEGAN = time.perf_counter()

import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pypaimon  # noqa: E402
from pypaimon import CatalogFactory, Schema  # noqa: E402

_IMPORTED_MS = (time.perf_counter() - _BEGAN) * 1000

from importlib.metadata import version  # noqa: E402

from pypaimon.manifest.schema.data_file_meta import DataFileMeta  # noqa: E402
from pypaimon.manifest.schema.simple_stats import SimpleStats  # noqa: E402
from pypaimon.table.row.generic_row import GenericRow  # noqa: E402
from pypaimon.write.commit_message import CommitMessage  # noqa: E402

from bench.drivers import shop  # noqa: E402
from bench.drivers.base import Skip, compete, peak_kb, serve, timed  # noqa: E402
from bench.drivers.rows import COLUMNS, arrow_schema, rows_of  # noqa: E402

NAME = "shop.orders"
STEP = 10_000
DELETABLE = {
    "row-tracking.enabled": "true",
    "data-evolution.enabled": "true",
    "deletion-vectors.enabled": "true",
}


class Driver:
    """Operations the workloads ask for; times are of the library call alone."""

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {
            "version": version("pypaimon"),
            "settings": "append-only table, bucket -1, partitioned by order_date, statistics of "
            "all columns, library defaults; metadata files not fsynced",
        }

    def _connect(self, folder: str, options: dict[str, Any]) -> None:
        settings = {"warehouse": f"{folder}/warehouse"}
        s3 = options.get("s3")
        if s3 is not None:
            settings = {
                "warehouse": f"s3://{s3['bucket']}/paimon",
                "fs.s3.endpoint": s3["endpoint"],
                "fs.s3.accessKeyId": "bench",
                "fs.s3.accessKeySecret": "bench",
                "fs.s3.region": "us-east-1",
            }
        self.catalog = CatalogFactory.create(settings)

    def create(self, folder: str, columns: int = 12, **options: Any) -> None:
        """Make the table."""
        self._connect(folder, options)
        self.catalog.create_database("shop", True)
        schema = Schema.from_pyarrow_schema(
            arrow_schema(columns),
            partition_keys=["order_date"],
            options={"metadata.stats-mode": "full", **options.get("properties", {})},
        )
        self.catalog.create_table(NAME, schema, False)
        self.table = self.catalog.get_table(NAME)

    def open(self, folder: str, **options: Any) -> dict[str, float]:
        """Load the table; how long importing, and connecting and loading, took."""

        def work() -> None:
            self._connect(folder, options)
            self.table = self.catalog.get_table(NAME)
            self.table.snapshot_manager().get_latest_snapshot()

        ms, _ = timed(work)
        return {"import_ms": _IMPORTED_MS, "load_ms": ms, "peak_kb": peak_kb()}

    def _messages(self, start: int, stop: int, total: int, columns: int = 12) -> list[Any]:
        files = shop.files(start, stop, total=total, columns=columns)
        names = shop.names(columns)
        fields = list(self.table.fields)
        messages: dict[Any, CommitMessage] = {}
        for row, path in enumerate(files.paths):
            day = shop.date_of(files.days[row])
            bounds = [files.bounds(column, row) for column in range(columns)]
            bounds[1] = (day, day)
            stats = SimpleStats(
                GenericRow([low for low, _ in bounds], fields),
                GenericRow([high for _, high in bounds], fields),
                [0] * columns,
            )
            meta = DataFileMeta.create(
                file_name=path.rsplit("/", 1)[1],
                file_size=int(files.sizes[row]),
                row_count=shop.ROWS,
                min_key=GenericRow([], []),
                max_key=GenericRow([], []),
                key_stats=SimpleStats.empty_stats(),
                value_stats=stats,
                min_sequence_number=0,
                max_sequence_number=shop.ROWS - 1,
                schema_id=0,
                level=0,
                extra_files=[],
                file_source=0,
                value_stats_cols=names,
                delete_row_count=0,
            )
            message = messages.setdefault(
                day, CommitMessage(partition=(day,), bucket=0, new_files=[])
            )
            message.new_files.append(meta)
        return list(messages.values())

    def _commit(self, messages: list[Any]) -> None:
        commit = self.table.new_batch_write_builder().new_commit()
        commit.commit(messages)
        commit.close()

    def populate(self, total: int, columns: int = 12) -> float:
        """Register files, several days a commit."""
        spent = 0.0
        for start in range(0, total, STEP):
            messages = self._messages(start, min(start + STEP, total), total, columns)
            spent += timed(lambda messages=messages: self._commit(messages))[0]
        return spent

    def commits(self, start: int, count: int, total: int) -> list[float]:
        """One file per commit."""
        found = []
        for index in range(start, start + count):
            messages = self._messages(index, index + 1, total)
            found.append(timed(lambda messages=messages: self._commit(messages))[0])
        return found

    def _plan(self, cold: bool, *conditions: tuple[str, Any]) -> dict[str, Any]:
        def work() -> int:
            if cold:
                self.table = self.catalog.get_table(NAME)
            builder = self.table.new_read_builder()
            if conditions:
                predicates = builder.new_predicate_builder()
                parts = [predicates.equal(name, value) for name, value in conditions]
                builder = builder.with_filter(predicates.and_predicates(parts))
            splits = builder.new_scan().plan().splits()
            return sum(len(split.files) for split in splits)

        ms, files = timed(work)
        return {"ms": ms, "files": files, "peak_kb": peak_kb()}

    def compete(self, start: int, count: int, total: int) -> dict[str, Any]:
        """One file per commit, against other processes."""

        def commit(number: int) -> int:
            self._commit(self._messages(start + number, start + number + 1, total))
            return 0

        return compete(count, commit, lambda: None)

    def plan(self, kind: str, total: int, cold: bool) -> dict[str, Any]:
        """Plan a scan; cold loads the table again."""
        day = ("order_date", shop.WANTED_DAY)
        conditions = {
            "all": (),
            "day": (day,),
            "day and country": (day, ("country", shop.WANTED_COUNTRY)),
            "order_id": (("order_id", shop.wanted_order(total)),),
        }[kind]
        return self._plan(cold, *conditions)

    def plan_wide(self, total: int) -> dict[str, Any]:
        """Two columns of a wide table."""
        low = int(shop.files(total // 2, total // 2 + 1, total=total).lower[3][0])
        return self._plan(True, ("c0", low), ("country", shop.WANTED_COUNTRY))

    def remove_file(self, index: int, total: int) -> float:
        """Take one file out: a message with a deleted file."""
        (message,) = self._messages(index, index + 1, total)
        message.deleted_files, message.new_files = message.new_files, []
        return timed(lambda: self._commit([message]))[0]

    def create_rows(self, folder: str, file_count: int, rows: int) -> float:
        """A table with data: so many files of so many rows, one commit each."""
        self.create(folder, columns=COLUMNS, properties=DELETABLE)
        began = time.perf_counter()
        for index in range(file_count):
            builder = self.table.new_batch_write_builder()
            write, commit = builder.new_write(), builder.new_commit()
            data = rows_of(index, rows)
            write.write_arrow(data)
            commit.commit(write.prepare_commit())
            write.close()
            commit.close()
        return (time.perf_counter() - began) * 1000

    def delete(self, where: str) -> float:
        """Delete rows by a filter, through deletion vectors."""
        name, operator, value = where.split(" ", 2)

        def work() -> None:
            predicates = self.table.new_read_builder().new_predicate_builder()
            if operator == "=":
                wanted = predicates.equal(name, int(value))
            else:
                wanted = predicates.less_than(name, float(value))
            writer = self.table.new_batch_write_builder()
            commit = writer.new_commit()
            commit.commit(writer.new_update().delete_by_predicate(wanted))
            commit.close()

        return timed(work)[0]

    def count(self) -> int:
        """Rows of the table, by reading them."""
        builder = self.table.new_read_builder().with_projection(["order_id"])
        return int(builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows)

    def changes_marker(self) -> int:
        """The current snapshot."""
        return int(self.table.snapshot_manager().get_latest_snapshot().id)

    def changes(self, since: int) -> dict[str, Any]:
        """Files appended since: an incremental scan; removed ones are not offered."""
        snapshots = self.table.snapshot_manager()
        first = snapshots.get_snapshot_by_id(since).time_millis
        last = snapshots.get_latest_snapshot().time_millis
        if last <= first:
            raise Skip("nothing happened since")

        def work() -> int:
            table = self.table.copy({"incremental-between-timestamp": f"{first},{last}"})
            splits = table.new_read_builder().new_scan().plan().splits()
            return sum(len(split.files) for split in splits)

        ms, files = timed(work)
        return {"ms": ms, "files": files}


assert pypaimon

if __name__ == "__main__":
    serve(Driver())
