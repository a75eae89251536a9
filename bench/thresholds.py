"""Where the tree should adapt: the measurement behind the defaults in `frazil.tree.policy`.

Commits one file at a time with different sizes of the root, and plans a large table with different
sizes of leaves. Processor time is reported beside wall time because it does not depend on what else
the machine is doing.

    python -m bench.thresholds [--commits 1000] [--files 400000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import frazil
from bench.drivers import shop
from bench.drivers.frazil_driver import entries_of, schema_of
from frazil.properties.registry import LEAF_TARGET_ENTRIES, ROOT_MAX_DATA_ENTRIES

ROOTS = (25, 50, 64, 100, 200, 500)
GROWTH = (25, 50, 64, 100)
LEAVES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """One call: processor and wall milliseconds, and its result."""

    cpu_ms: float
    wall_ms: float
    result: Any


def spent(work: Callable[[], Any]) -> Spent:
    """Run and time."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return Spent(
        cpu_ms=(time.process_time() - cpu) * 1000,
        wall_ms=(time.perf_counter() - wall) * 1000,
        result=result,
    )


def quick_of(times: list[float]) -> float:
    """The tenth percentile: what a call costs when nothing else interferes."""
    return sorted(times)[len(times) // 10]


def best(work: Callable[[], Any], times: int = 5) -> Spent:
    """The cheapest of several runs."""
    return min((spent(work) for _ in range(times)), key=lambda one: one.cpu_ms)


class Subject:
    """A table with given thresholds."""

    def __init__(self, folder: str, total: int, **properties: str) -> None:
        self.total = total
        self.catalog = frazil.connect(folder)
        self.table = self.catalog.create_table(
            "shop.orders",
            schema_of(12),
            partition_by=["day(order_date)"],
            properties={"write.metadata.json-every": "0", **properties},
        )
        self.expression = self.table.metadata.expressions[0].expr_id
        self.folder = Path(folder)

    def entries(self, start: int, stop: int) -> Any:
        """Files as entries."""
        return entries_of(shop.files(start, stop, total=self.total), self.expression)

    def plan(self, where: str | None) -> Any:
        """A plan with nothing decoded before."""
        self.catalog._cache.clear()
        return self.table.scan(where=where).plan()

    def leaf_bytes(self) -> int:
        """Bytes of all leaves ever written."""
        return sum(path.stat().st_size for path in self.folder.rglob("leaf-*.parquet"))


def root_sizes(commits: int) -> str:
    """A table: what the largest number of entries in a root costs.

    Tables with different limits take turns commit by commit, so that all see the same machine.
    """
    lines = [
        "| entries in the root | commit, mean | p50 | p99 | bytes per commit | leaves after "
        "| plan one order | plan all |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        subjects = {
            entries: Subject(f"{folder}/{entries}", commits, **_limit(entries)) for entries in ROOTS
        }
        found: dict[int, list[Spent]] = {entries: [] for entries in ROOTS}
        for subject in subjects.values():
            warm_up(subject)
        for index in range(commits):
            for entries, subject in subjects.items():
                batch = subject.entries(index, index + 1)
                found[entries].append(spent(partial(subject.table._add_entries, batch)))
        order = f"order_id = {shop.wanted_order(commits)}"
        for entries, subject in subjects.items():
            one = best(partial(subject.plan, order))
            everything = best(partial(subject.plan, None))
            wall = sorted(each.wall_ms for each in found[entries])
            size = mean(each.result.metadata_bytes for each in found[entries])
            lines.append(
                f"| {entries} | {mean(wall):.2f} ms | {median(wall):.2f} ms "
                f"| {wall[int(len(wall) * 0.99)]:.1f} ms | {size / 1000:.1f} kB "
                f"| {everything.result.report.leaves.manifests_read} | {one.wall_ms:.1f} ms "
                f"| {everything.wall_ms:.1f} ms |"
            )
    return "\n".join(lines)


def _limit(entries: int) -> dict[str, str]:
    return {ROOT_MAX_DATA_ENTRIES.key: str(entries)}


def warm_up(subject: Subject) -> None:
    """First calls import and compile things; they are not what is asked."""
    for index in range(5):
        other = subject.entries(subject.total + index, subject.total + index + 1)
        subject.table._add_entries(other)
    subject.plan("order_id = 1")


def growth(commits: int, ends: int = 50) -> str:
    """A table: late commits of one table beside first commits of another, taking turns.

    Comparing the end of a run with its beginning also compares the machine then and now; turns
    do not.
    """
    lines = [
        "| entries in the root | first commits, p50 | late commits, p50 | ratio of p50 "
        "| ratio of tenth percentiles |",
        "|---|---|---|---|---|",
    ]
    for entries in GROWTH:
        with tempfile.TemporaryDirectory() as folder:
            old = Subject(f"{folder}/old", commits, **_limit(entries))
            for index in range(commits - ends):
                old.table._add_entries(old.entries(index, index + 1))
            new = Subject(f"{folder}/new", commits, **_limit(entries))
            first: list[float] = []
            late: list[float] = []
            for index in range(ends):
                for subject, at, times in (
                    (new, index, first),
                    (old, commits - ends + index, late),
                ):
                    batch = subject.entries(at, at + 1)
                    times.append(spent(partial(subject.table._add_entries, batch)).wall_ms)
            lines.append(
                f"| {entries} | {median(first):.2f} ms | {median(late):.2f} ms "
                f"| {median(late) / median(first):.2f} | {quick_of(late) / quick_of(first):.2f} |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines)


def leaf_sizes(files: int) -> str:
    """A table: what the size of leaves costs a large table."""
    lines = [
        "| entries per leaf | leaves | bytes per entry | root bytes | list all, cpu "
        "| list all, wall | one day and country, cpu | one order, cpu | bytes read for it "
        "| remove one file, bytes |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for entries in LEAVES:
        with tempfile.TemporaryDirectory() as folder:
            subject = Subject(folder, files, **{LEAF_TARGET_ENTRIES.key: str(entries)})
            done = subject.table._add_entries(subject.entries(0, files))
            assert done is not None
            size = subject.leaf_bytes()
            everything = best(lambda subject=subject: subject.plan(None), 3)
            day = f"order_date = '{shop.WANTED_DAY}' and country = '{shop.WANTED_COUNTRY}'"
            one_day = best(lambda subject=subject, day=day: subject.plan(day))
            order = f"order_id = {shop.wanted_order(files)}"
            one = best(lambda subject=subject, order=order: subject.plan(order))
            path = shop.files(files // 3, files // 3 + 1, total=files).paths[0]
            removed = subject.table.row_delta().remove_file(path).commit()
            lines.append(
                f"| {entries:,} | {everything.result.report.leaves.manifests_read} "
                f"| {size / files:.0f} | {(done.metadata_bytes - size) / 1000:.0f} kB "
                f"| {everything.cpu_ms:.0f} ms | {everything.wall_ms:.0f} ms "
                f"| {one_day.cpu_ms:.1f} ms | {one.cpu_ms:.1f} ms "
                f"| {one.result.report.leaves.bytes_read / 1000:.0f} kB "
                f"| {removed.metadata_bytes / 1000:.1f} kB |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--files", type=int, default=400_000)
    arguments = parser.parse_args()
    print(root_sizes(arguments.commits), "\n")
    print(growth(arguments.commits), "\n")
    print(leaf_sizes(arguments.files))


if __name__ == "__main__":
    main()
