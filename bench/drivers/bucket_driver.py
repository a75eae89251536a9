"""Appends to a table in a bucket, and selective plans of it: Frazil's catalog lies in the bucket,
those of delta-rs and Lance are their logs there, PyIceberg's is a SQLite file beside it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyarrow as pa

from bench.drivers.base import compete, serve, timed

SCHEMA = pa.schema([("id", pa.int64()), ("writer", pa.int64()), ("name", pa.string())])
ROWS = 100


def rows(number: int, writer: int = 0) -> pa.Table:
    """A hundred rows whose ids no other append has."""
    ids = range(number * ROWS, number * ROWS + ROWS)
    columns = {"id": ids, "writer": [writer] * ROWS, "name": [f"name {id}" for id in ids]}
    return pa.table(columns, schema=SCHEMA)


class Bucket:
    """What the workload asks for; subclasses call one library."""

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {"version": self.version(), "settings": "a bucket of versitygw on loopback"}

    def connect(self, place: dict[str, str], folder: str) -> None:
        """Remember where the table is."""
        self.place, self.folder = place, folder

    def create(self) -> None:
        """Make the table, with one append."""
        self.make()
        self.open()
        self.append(rows(0))

    def appends(self, start: int, count: int) -> list[float]:
        """Milliseconds of each append of a handle that stays open."""
        self.open()
        return self.more(start, count)

    def more(self, start: int, count: int) -> list[float]:
        """The same, without opening the table."""
        return [timed(partial(self.append, rows(at)))[0] for at in range(start, start + count)]

    def compete(self, writer: int, count: int) -> dict[str, Any]:
        """Append while others do."""
        self.open()

        def commit(number: int) -> int:
            self.append(rows((writer + 1) * 100_000 + number, writer))
            return 0

        return compete(count, commit, self.open)

    def plan(self, number: int) -> dict[str, Any]:
        """Open the table as a new process does and find the files of one id."""
        self.forget()
        opened, _ = timed(self.open)
        ms, files = timed(partial(self.files_of, number * ROWS))
        return {"ms": opened + ms, "files": files}

    def forget(self) -> None:
        """Drop what is known of the table."""

    def version(self) -> str:
        """Of the library."""
        raise NotImplementedError

    def make(self) -> None:
        """Create the table."""
        raise NotImplementedError

    def open(self) -> None:
        """Open the table at its current state."""
        raise NotImplementedError

    def append(self, table: pa.Table) -> None:
        """Commit rows."""
        raise NotImplementedError

    def files_of(self, id: int) -> int:
        """How many files may hold an id."""
        raise NotImplementedError


class Frazil(Bucket):
    """Catalog and table in the bucket."""

    def version(self) -> str:
        import frazil

        return str(frazil.__version__)

    def connect(self, place: dict[str, str], folder: str) -> None:
        import frazil

        super().connect(place, folder)
        self.catalog = frazil.connect(f"s3://{place['bucket']}/frazil", **_iceberg(place))

    def forget(self) -> None:
        self.connect(self.place, self.folder)

    def make(self) -> None:
        self.catalog.create_table("bench.t", SCHEMA, properties={"commit.retry.num-retries": "100"})

    def open(self) -> None:
        self.table = self.catalog.load_table("bench.t")

    def append(self, table: pa.Table) -> None:
        self.table.append(table)

    def files_of(self, id: int) -> int:
        return len(list(self.table.scan(f"id = {id}").tasks()))


class PyIceberg(Bucket):
    """A SQL catalog on the local disk, files in the bucket."""

    def version(self) -> str:
        import pyiceberg

        return str(pyiceberg.__version__)

    def connect(self, place: dict[str, str], folder: str) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        super().connect(place, folder)
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.catalog = SqlCatalog(
            "bench",
            uri=f"sqlite:///{folder}/catalog.db?timeout=60",
            warehouse=f"s3://{place['bucket']}/pyiceberg",
            **_iceberg(place),
        )

    def forget(self) -> None:
        self.connect(self.place, self.folder)

    def make(self) -> None:
        self.catalog.create_namespace("bench")
        # Its waits double from 100 ms to a minute: with so few commits a lost race would be all.
        retries = {"commit.retry.num-retries": "100", "commit.retry.max-wait-ms": "1000"}
        self.catalog.create_table("bench.t", SCHEMA, properties=retries)

    def open(self) -> None:
        self.table = self.catalog.load_table("bench.t")

    def append(self, table: pa.Table) -> None:
        self.table.append(table)

    def files_of(self, id: int) -> int:
        return len(list(self.table.scan(f"id = {id}").plan_files()))


class Delta(Bucket):
    """A log in the bucket; commits are created with If-None-Match."""

    def version(self) -> str:
        import deltalake

        return str(deltalake.__version__)

    def connect(self, place: dict[str, str], folder: str) -> None:
        super().connect(place, folder)
        self.path, self.options = f"s3://{place['bucket']}/delta", _aws(place)

    def make(self) -> None:
        from deltalake import DeltaTable
        from deltalake.schema import Schema

        DeltaTable.create(self.path, Schema.from_arrow(SCHEMA), storage_options=self.options)

    def open(self) -> None:
        from deltalake import DeltaTable

        self.table = DeltaTable(self.path, storage_options=self.options)

    def append(self, table: pa.Table) -> None:
        from deltalake import CommitProperties, write_deltalake

        write_deltalake(
            self.table,
            table,
            mode="append",
            commit_properties=CommitProperties(max_commit_retries=100),
        )

    def files_of(self, id: int) -> int:
        import pyarrow.compute as pc

        actions = pa.table(self.table.get_add_actions(flatten=True))
        low, high = actions["min.id"], actions["max.id"]
        return int(pc.sum(pc.and_(pc.less_equal(low, id), pc.greater_equal(high, id))).as_py() or 0)


class Lance(Bucket):
    """Numbered manifests in the bucket."""

    def version(self) -> str:
        import lance

        return str(lance.__version__)

    def connect(self, place: dict[str, str], folder: str) -> None:
        super().connect(place, folder)
        self.path, self.options = f"s3://{place['bucket']}/lance", _aws(place)

    def make(self) -> None:
        import lance

        lance.write_dataset(SCHEMA.empty_table(), self.path, storage_options=self.options)

    def open(self) -> None:
        import lance

        self.table = lance.dataset(self.path, storage_options=self.options)

    def append(self, table: pa.Table) -> None:
        import lance

        self.table = lance.write_dataset(
            table, self.table, mode="append", storage_options=self.options
        )

    def files_of(self, id: int) -> int:
        # Lance keeps no statistics of fragments: a filter is evaluated where the rows are.
        return len(self.table.get_fragments())


def _iceberg(place: dict[str, str]) -> dict[str, str]:
    return {
        "s3.endpoint": place["endpoint"],
        "s3.access-key-id": place["key"],
        "s3.secret-access-key": place["secret"],
        "s3.region": "us-east-1",
    }


def _aws(place: dict[str, str]) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": place["endpoint"],
        "AWS_ACCESS_KEY_ID": place["key"],
        "AWS_SECRET_ACCESS_KEY": place["secret"],
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "aws_conditional_put": "etag",
    }


DRIVERS = {"frazil": Frazil, "pyiceberg": PyIceberg, "delta": Delta, "lance": Lance}

if __name__ == "__main__":
    serve(DRIVERS[sys.argv[1]]())
