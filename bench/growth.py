"""How costs grow: against files, commits, columns, branches and tags, and writers.

Each question is asked of tables of growing size, in one process that has done the same before. What
is stated is processor time, as it does not depend on what else the machine is doing: the least of
several calls. A plot is drawn per dimension, and a table says by which power of the size the cost
grew over the last step: 0 is flat, 1 is in proportion, above 1 is super-linear.

    python -m bench.growth [files commits columns refs writers] [--out bench/results]
    python -m bench.growth --render bench/results/growth.json --docs docs/assets/bench

Tables of many files are simulated: all leaves of a root are one file, each with bounds of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import frazil
from bench import machine, plots
from bench.drivers import shop
from bench.drivers.frazil_driver import entries_of, schema_of
from bench.scale import Simulated
from bench.thresholds import best, spent
from frazil.commit.change import Change
from frazil.commit.updates import SetRef
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import RefKind, SnapshotId, SnapshotRef
from frazil.table import Table

HERE = Path(__file__).parent
NAME = "shop.orders"
LEAF = 20_000
FILES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
COMMITS = (10, 100, 1_000, 10_000)
CHECKED = 1_000
"""The most commits whose whole history is checked: the check reads every root and leaf."""
COLUMNS = (10, 30, 100, 300, 1_000, 2_000)
REFS = (1, 10, 100, 1_000, 10_000)
WRITERS = (1, 2, 4, 8, 16, 32)
TIMES = 5

Costs = dict[str, dict[int, float]]
"""Milliseconds of processor time of each operation, by size."""


class Repeated(Simulated):
    """A table of any number of files, of whose leaves one exists, under the name of all."""

    def _opened(self) -> list[int]:
        return [0]

    def _all_leaves(self, sample: EntryBatch) -> EntryBatch:
        root = super()._all_leaves(sample)
        return root.with_column("location", pa.array(sample.pylist("location") * root.num_rows))


def files(folder: Path) -> Iterator[tuple[int, str, float]]:
    """Plans, counts and a commit, by the number of files."""
    for size in FILES:
        subject = Repeated(str(folder / str(size)), size, min(size, LEAF))
        one = subject.wanted["order"]
        subject.plan(one)
        times = 1 if size >= 10_000_000 else TIMES
        yield size, "plan of one order, cold", best(partial(subject.plan, one), TIMES).cpu_ms
        yield size, "the same, warm", best(subject.table.scan(where=one).plan, TIMES).cpu_ms
        yield size, "plan of all files, cold", best(partial(subject.plan, None), times).cpu_ms
        yield size, "count of all rows, cold", best(partial(_count, subject), times).cpu_ms
        yield size, "commit of one file", _commits(subject.table, size, subject.total + 1)


def _count(subject: Repeated) -> int:
    subject.catalog._cache.clear()
    return subject.table.scan().count()


def _commits(table: Table, total: int, first: int, *, columns: int = 12, count: int = 12) -> float:
    """The median commit that adds one file; the first is not counted."""
    expression = table.metadata.expressions[0].expr_id
    costs = []
    for index in range(first, first + count):
        batch = entries_of(shop.files(index, index + 1, total=total, columns=columns), expression)
        costs.append(spent(partial(table._add_entries, batch)).cpu_ms)
    return median(costs[1:])


def _table(catalog: frazil.Catalog, columns: int = 12) -> Table:
    return catalog.create_table(NAME, schema_of(columns), partition_by=["day(order_date)"])


def commits(folder: Path) -> Iterator[tuple[int, str, float]]:
    """What a history of small commits costs the next commit, and those who read all of it."""
    table = _table(frazil.connect(folder))
    _commits(_table(frazil.connect(folder / "other")), 100, 0)  # loads what commits need
    first = table.metadata.expressions[0].expr_id
    done = 0
    for size in COMMITS:
        while done < size - 12:
            batch = entries_of(shop.files(done, done + 1, total=COMMITS[-1]), first)
            table._add_entries(batch)
            done += 1
        yield size, "commit of one file", _commits(table, COMMITS[-1], done, count=size - done)
        done = size
        yield size, "open and plan one order", best(partial(_opened, folder, size), TIMES).cpu_ms
        expiry = partial(table.expire_snapshots, older_than=timedelta(0), dry_run=True)
        yield size, "expire all but one, dry run", best(expiry, 1).cpu_ms
        yield size, "list of all snapshots", best(lambda: list(table.snapshots()), TIMES).cpu_ms
        if size <= CHECKED:
            yield size, "check of the whole history", best(table.check, 1).cpu_ms


def _opened(folder: Path, total: int) -> None:
    with frazil.connect(folder) as catalog:
        catalog.load_table(NAME).scan(where=f"order_id = {shop.wanted_order(total)}").plan()


def columns(folder: Path) -> Iterator[tuple[int, str, float]]:
    """A table with statistics of all of its columns."""
    for size in COLUMNS:
        catalog = frazil.connect(folder / str(size))
        _table(frazil.connect(folder / f"{size} before"), 3)  # loads what a table needs
        made = spent(partial(_table, catalog, size))
        table = made.result
        yield size, "create the table", made.cpu_ms
        yield size, "commit of one file", _commits(table, 100, 0, columns=size, count=8)
        where = f"order_id = {shop.wanted_order(8)} and country = 'US'"
        plan = partial(_cold, catalog, table, where)
        plan()
        yield size, "plan on two columns, cold", best(plan, TIMES).cpu_ms
        rows = pa.table({name: pa.array(np.zeros(10)) for name in shop.names(size)[3:][1::3]})
        append = partial(table.append, rows)
        append()
        yield size, "append of ten rows", best(append, 3).cpu_ms
        added = entries_of(
            shop.files(100, 600, total=1_000, columns=size), table.metadata.expressions[0].expr_id
        )
        yield size, "commit of 500 files", spent(partial(table._add_entries, added)).cpu_ms


def _cold(catalog: frazil.Catalog, table: Table, where: str) -> None:
    catalog._cache.clear()
    table.scan(where=where).plan()


def refs(folder: Path) -> Iterator[tuple[int, str, float]]:
    """Branches and tags, half and half."""
    table = _table(frazil.connect(folder))
    _commits(table, 100, 0)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    held = 0
    for size in REFS:
        kinds = [RefKind.TAG if number % 2 else RefKind.BRANCH for number in range(held, size)]
        updates = tuple(
            SetRef(
                name=f"ref-{held + at}",
                ref=SnapshotRef(snapshot_id=SnapshotId(snapshot.snapshot_id), kind=kind),
                expected=None,
            )
            for at, kind in enumerate(kinds)
        )
        table._handle.commit(Change(updates=updates))
        held = size
        yield size, "create a tag and drop it", best(partial(_tagged, table), TIMES).cpu_ms
        yield size, "commit of one file", _commits(table, 100, 12)
        yield size, "open and plan one order", best(partial(_opened, folder, 12), TIMES).cpu_ms
        yield size, "the tags by name", best(lambda: dict(table.metadata.refs), TIMES).cpu_ms


def _tagged(table: Table) -> None:
    table.tag("one-more")
    table.drop_tag("one-more")


def writers(folder: Path) -> Iterator[tuple[int, str, float]]:
    """Processes that append to one table at the same time: processor time of all of them."""
    for size in WRITERS:
        with frazil.connect(folder / str(size)) as catalog:
            _table(catalog)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["bench.scale", "bench.plots"])
        each = max(3, 96 // size)
        ready = context.Barrier(size)
        with context.Pool(size, initializer=_ready, initargs=(ready,)) as pool:
            jobs = [(folder / str(size), number * (each + 1), each) for number in range(size)]
            answers = pool.map(_written, jobs, chunksize=1)
        total = size * each
        yield size, "commit of one file", sum(cpu for cpu, _, _ in answers) / total
        attempts = sum(attempts for _, attempts, _ in answers)
        yield size, "attempts per commit (a number)", attempts / total
        yield size, "on the clock, per commit", max(wall for *_, wall in answers) / total


_together: Any = None


def _ready(ready: Any) -> None:
    global _together
    _together = ready


def _written(job: tuple[Path, int, int]) -> tuple[float, int, float]:
    """Processor milliseconds, attempts and milliseconds on the clock of some commits."""
    folder, first, count = job
    with frazil.connect(folder) as catalog:
        table = catalog.load_table(NAME)
        expression = table.metadata.expressions[0].expr_id
        batches = [
            entries_of(shop.files(index, index + 1, total=10_000), expression)
            for index in range(first, first + count + 1)
        ]
        table._add_entries(batches.pop())  # loads what a first commit needs
        _together.wait()
        done = [spent(partial(table._add_entries, batch)) for batch in batches]
    attempts = sum(one.result.attempts for one in done)
    return sum(one.cpu_ms for one in done), attempts, sum(one.wall_ms for one in done)


DIMENSIONS: dict[str, tuple[str, Callable[[Path], Iterator[tuple[int, str, float]]]]] = {
    "files": ("files in the table", files),
    "commits": ("commits in the history", commits),
    "columns": ("columns with statistics", columns),
    "refs": ("branches and tags", refs),
    "writers": ("writers at the same time", writers),
}


def power(costs: dict[int, float]) -> float:
    """By which power of the size the cost grew over the last step."""
    (before, cost_before), (last, cost) = list(costs.items())[-2:]
    return math.log(max(cost, 1e-3) / max(cost_before, 1e-3)) / math.log(last / before)


def rendered(run: dict[str, Any]) -> str:
    """Tables in Markdown, one per dimension."""
    about = run["machine"]
    lines = [
        f"{about['processor']}, {about['cores']} cores, Python {about['python']}, "
        f"{about['when'][:10]}; load when it began: {about['load_before']}."
    ]
    for name, (title, _) in DIMENSIONS.items():
        if name not in run["costs"]:
            continue
        costs = {
            operation: {int(size): cost for size, cost in by_size.items()}
            for operation, by_size in run["costs"][name].items()
        }
        sizes = sorted({size for by_size in costs.values() for size in by_size})
        heads = " | ".join(f"{size:,}" for size in sizes)
        lines += ["", f"| {title} | {heads} | last step |", "|---|" + "---|" * (len(sizes) + 1)]
        for operation, by_size in costs.items():
            cells = " | ".join(_ms(by_size.get(size)) for size in sizes)
            lines.append(f"| {operation} | {cells} | size^{power(by_size):.1f} |")
    return "\n".join(lines)


def _ms(cost: float | None) -> str:
    if cost is None:
        return ""
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.1f}" if cost >= 1 else f"{cost:.2f}"


def main() -> None:
    """Measure, print the tables and draw the plots."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*DIMENSIONS, []], default=[])
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--render", type=Path)
    parser.add_argument("--docs", type=Path, help="a second folder for the plots")
    arguments = parser.parse_args()
    result = arguments.render or arguments.out / "growth.json"
    run: dict[str, Any] = json.loads(result.read_text()) if result.exists() else {"costs": {}}
    if arguments.render is None:
        run["machine"] = machine.described()
        for name in arguments.names or DIMENSIONS:
            run["costs"][name] = _measured(name, arguments.work)
            result.write_text(json.dumps(run, indent=1) + "\n")
    print(rendered(run))
    titles = {name: title for name, (title, _) in DIMENSIONS.items()}
    for folder in filter(None, (result.parent, arguments.docs)):
        plots.draw_growth(run["costs"], titles, folder)


def _measured(name: str, work: Path | None) -> Costs:
    costs: Costs = {}
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for size, operation, cost in DIMENSIONS[name][1](Path(folder)):
            costs.setdefault(operation, {})[size] = round(cost, 3)
            print(f"{name} {size:,}: {operation} {_ms(cost)}", flush=True)
    print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    return costs


if __name__ == "__main__":
    main()
