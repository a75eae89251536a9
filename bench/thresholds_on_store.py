"""Thresholds of the tree swept on an object store: `bench.object_store`, 30 ms before a request.

Requests and bytes do not depend on the machine. Tables of one sweep make the same commits.

    python -m bench.thresholds_on_store [--commits 120]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import mean, median
from typing import Any

import numpy as np
import pyarrow as pa

import frazil
from bench.drivers import shop
from bench.drivers.frazil_driver import entries_of, schema_of
from bench.object_store import BUCKET, ObjectStore
from frazil.format.entries.fields import ContentType
from frazil.properties.registry import (
    LEAF_MAX_DEAD_RATIO,
    LEAF_TARGET_ENTRIES,
    ROOT_MAX_DATA_ENTRIES,
    ROOT_MAX_DELETE_ENTRIES,
    ROOT_TARGET_BYTES,
)

DELAY_MS = 30
WIDE = 300
TARGETS = (128, 512, 2048)
RATIOS = (0.1, 0.25, 0.5, 1.0)
DELETES = (10, 25, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What one commit took."""

    ms: float
    requests: int
    sent: int
    received: int


class Subject:
    """A table on the store, with properties."""

    def __init__(self, store: ObjectStore, folder: str, name: str, columns: int, **more: Any):
        self.store = store
        self.columns = columns
        self.catalog = frazil.connect(
            f"sqlite:///{folder}/{name}.db",
            warehouse=f"s3://{BUCKET}/{name}",
            **{
                "s3.endpoint": store.endpoint,
                "s3.access-key-id": "bench",
                "s3.secret-access-key": "bench",
                "s3.region": "us-east-1",
            },
        )
        self.table = self.catalog.create_table(
            "shop.orders",
            schema_of(columns),
            partition_by=["day(order_date)"],
            properties={"write.metadata.json-every": "0", **more},
        )
        self.expression = self.table.metadata.expressions[0].expr_id

    def entries(self, start: int, stop: int, total: int) -> Any:
        """Files as entries."""
        files = shop.files(start, stop, total=total, columns=self.columns)
        return entries_of(files, self.expression)

    def took(self, work: Callable[[], Any]) -> Commit:
        """Carry something out, every request delayed and counted."""
        self.store.reset()
        self.store.delay_ms = DELAY_MS
        start = time.perf_counter()
        work()
        spent = (time.perf_counter() - start) * 1000
        self.store.delay_ms = 0
        return Commit(
            ms=spent,
            requests=self.store.total,
            sent=self.store.sent,
            received=self.store.received,
        )

    def plan(self, where: str | None) -> Commit:
        """A plan with nothing decoded before."""
        self.catalog._cache.clear()
        return self.took(lambda: self.table.scan(where=where).plan())


def _row(value: object, commits: list[Commit], selective: Commit, everything: Commit) -> str:
    return (
        f"| {value} | {median(c.ms for c in commits):.0f} ms "
        f"| {mean(c.requests for c in commits):.2f} | {mean(c.sent for c in commits) / 1e3:.1f} kB "
        f"| {max(c.sent for c in commits) / 1e3:.0f} kB "
        f"| {selective.requests}, {selective.received / 1e3:.0f} kB, {selective.ms:.0f} ms "
        f"| {everything.requests}, {everything.received / 1e3:.0f} kB, {everything.ms:.0f} ms |"
    )


def _head(name: str) -> list[str]:
    return [
        f"| {name} | commit, p50 | requests | sent, mean | sent, most "
        "| plan one order | plan all |",
        "|---|---|---|---|---|---|---|",
    ]


def target_bytes(commits: int) -> Iterator[str]:
    """A wide table, whose root is heavy with few entries: commits of one file each."""
    yield from _head("bytes of the root, KiB")
    with _store() as (store, folder):
        for kib in TARGETS:
            properties = {
                ROOT_TARGET_BYTES.key: str(kib * 1024),
                ROOT_MAX_DATA_ENTRIES.key: "100000",
            }
            subject = Subject(store, folder, f"target{kib}", WIDE, **properties)
            took = []
            for at in range(commits):
                batch = subject.entries(at, at + 1, commits)
                took.append(subject.took(partial(subject.table._add_entries, batch)))
            yield _ended(subject, kib, took, commits)


def dead_ratio(commits: int) -> Iterator[str]:
    """Ten leaves of 1,000 files. Commits remove 100 files of one leaf and add a file, in turns: a
    leaf is rewritten by a commit that does not touch it."""
    yield from _head("share of dead entries")
    total, size = 10_000, 1_000
    with _store() as (store, folder):
        for ratio in RATIOS:
            properties = {
                LEAF_MAX_DEAD_RATIO.key: str(ratio),
                LEAF_TARGET_ENTRIES.key: str(size),
            }
            subject = Subject(store, folder, f"dead{ratio}", 12, **properties)
            for start in range(0, total, size):
                subject.table._add_entries(subject.entries(start, start + size, total))
            draw = np.random.default_rng(7)
            paths = np.array(shop.files(0, total, total=total).paths).reshape(-1, size)
            orders = [draw.permutation(size) for _ in paths]
            took = []
            for at in range(commits):
                leaf, turn = at % len(paths), at // len(paths)
                delta = subject.table.row_delta()
                for place in orders[leaf][turn * 100 : turn * 100 + 100]:
                    delta.remove_file(str(paths[leaf][place]))
                took.append(subject.took(delta.commit))
                batch = subject.entries(total + at, total + at + 1, total + commits)
                took.append(subject.took(partial(subject.table._add_entries, batch)))
            yield _ended(subject, ratio, took, total)


def delete_entries(commits: int) -> Iterator[str]:
    """Commits of one equality delete file each, as clients of older versions write them."""
    yield from _head("delete files in the root")
    with _store() as (store, folder):
        for entries in DELETES:
            properties = {ROOT_MAX_DELETE_ENTRIES.key: str(entries)}
            subject = Subject(store, folder, f"deletes{entries}", 12, **properties)
            subject.table._add_entries(subject.entries(0, 1_000, 1_000))
            took = []
            for at in range(commits):
                batch = subject.entries(at, at + 1, commits)
                kind = pa.array([int(ContentType.EQUALITY_DELETES)], pa.int32())
                batch = batch.with_column("content_type", kind)
                batch = batch.with_column("location", pa.array([f"data/delete-{at}.parquet"]))
                ids = pa.array([[1]], pa.list_(pa.int32()))
                batch = batch.with_column("equality_ids", ids)
                took.append(subject.took(partial(subject.table._add_entries, batch)))
            yield _ended(subject, entries, took, commits)


def _ended(subject: Subject, value: object, took: list[Commit], total: int) -> str:
    one = subject.plan(f"order_id = {shop.wanted_order(total)}")
    return _row(value, took, one, subject.plan(None))


@contextmanager
def _store() -> Iterator[tuple[ObjectStore, str]]:
    with ObjectStore(0) as store, tempfile.TemporaryDirectory() as folder:
        yield store, folder


SWEEPS = (target_bytes, dead_ratio, delete_entries)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--sweep", choices=[s.__name__ for s in SWEEPS])
    arguments = parser.parse_args()
    chosen = [s for s in SWEEPS if arguments.sweep in (None, s.__name__)]
    for sweep in chosen:
        for line in sweep(arguments.commits):
            print(line, flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
