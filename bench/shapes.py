"""A window over a large table of points: leaves and files that it opens, and its plan's time.

The table has files that need not exist, each with the box of a square of the map; neighbours in the
order of writing are neighbours on the map, as they are when rows arrive by region. Beside it, a few
real files are read by Frazil and, as plain Parquet with the same statistics, by DuckDB.

    python -m bench.shapes [--files 100000] [--real 400]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import frazil
from frazil.format.entries.batch import EntryBatch
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType()), ice.NestedField(2, "g", ice.GeometryType())
)
ROWS = 500
BLOCK = 16
WINDOWS = ((10.2, 10.2, 10.8, 10.8), (10.2, 10.2, 14.8, 14.8), (0, 0, 40, 40))


def places(files: int) -> tuple[Any, Any]:
    """West and south of each file's square: blocks of 16 by 16 squares, block after block."""
    number = np.arange(files)
    block, inside = number // BLOCK**2, number % BLOCK**2
    wide = max(1, round((files / BLOCK**2) ** 0.5))
    west = block % wide * BLOCK + inside % BLOCK
    south = block // wide * BLOCK + inside // BLOCK
    return west.astype(float), south.astype(float)


def entries(first: int, west: Any, south: Any) -> EntryBatch:
    """Files of one square each."""
    count = len(west)
    columns: dict[str, Any] = {
        "tracking.status": np.ones(count, np.int32),
        "content_type": np.zeros(count, np.int32),
        "location": [f"data/{first + at:08d}.parquet" for at in range(count)],
        "file_format": ["parquet"] * count,
        "record_count": np.full(count, ROWS),
        "file_size_in_bytes": np.full(count, 20_000),
        "content_stats.2.lower_x": west,
        "content_stats.2.lower_y": south,
        "content_stats.2.upper_x": west + 1,
        "content_stats.2.upper_y": south + 1,
        "content_stats.2.value_count": np.full(count, ROWS),
        "content_stats.2.null_value_count": np.zeros(count, np.int64),
    }
    return EntryBatch(pa.table(columns))


def where(window: tuple[float, ...]) -> str:
    """A condition on the points."""
    return f"bbox(g, {', '.join(map(str, window))})"


def planned(folder: Path, files: int) -> list[str]:
    """Plans on a table of many files."""
    catalog = frazil.connect(folder)
    table = catalog.create_table("bench.shapes", SCHEMA)
    west, south = places(files)
    for start in range(0, files, 20_000):
        part = slice(start, start + 20_000)
        table._add_entries(entries(start, west[part], south[part]))
    lines = []
    for window in WINDOWS:
        cpu, report = [], None
        for _ in range(3):
            fresh = frazil.connect(folder).load_table("bench.shapes")
            start_s = time.process_time()
            report = fresh.scan(where(window)).plan().report
            cpu.append((time.process_time() - start_s) * 1000)
        assert report is not None
        considered = report.root.considered
        lines.append(
            f"| {files:,} files, {where(window)} | {report.leaves.manifests_read} of {considered} "
            f"| {report.files:,} | {min(cpu):.1f} ms |"
        )
    return [*lines, published(catalog, files)]


def published(catalog: frazil.Catalog, files: int) -> str:
    """The same table as Iceberg v3: its manifest list has no boxes, and PyIceberg has no condition
    on shapes, so that every manifest is read and every file is left for the engine."""
    table = catalog.load_table("bench.shapes")
    table.publish(format_version=3)
    cpu, tasks = [], 0
    for _ in range(3):
        static = frazil.to_pyiceberg(table)
        start_s = time.process_time()
        tasks = len(list(static.scan().plan_files()))
        cpu.append((time.process_time() - start_s) * 1000)
    snapshot = static.current_snapshot()
    assert snapshot is not None
    manifests = len(snapshot.manifests(static.io))
    return (
        f"| {files:,} files published as Iceberg v3, PyIceberg | {manifests} of {manifests} "
        f"| {tasks:,} | {min(cpu):.0f} ms |"
    )


def read(folder: Path, files: int) -> list[str]:
    """Rows of real files, by Frazil and by DuckDB from the same files without the table."""
    catalog = frazil.connect(folder)
    table = catalog.create_table("bench.shapes", SCHEMA)
    west, south = places(files)
    generator = np.random.default_rng(1)
    for at in range(files):
        xy = generator.uniform(0, 1, (ROWS, 2)) + np.array([west[at], south[at]])
        head = np.frombuffer(b"\x01\x01\x00\x00\x00", np.uint8)
        data = np.hstack([np.tile(head, (ROWS, 1)), xy.astype("<f8").view(np.uint8)])
        shapes = pa.array(list(map(bytes, data)), pa.binary())
        table.append(pa.table({"id": np.arange(ROWS) + at * ROWS, "g": shapes}))
    window = WINDOWS[0]
    x1, y1, x2, y2 = window
    area = f"POLYGON(({x1} {y1},{x2} {y1},{x2} {y2},{x1} {y2},{x1} {y1}))"
    glob = table.location.removeprefix("file://") + "/data/*.parquet"
    plain = f"SELECT count(*) FROM '{glob}' WHERE g && '{area}'::GEOMETRY"
    scan = table.scan(where(window))
    spent = []
    for ask in (scan.count, lambda: duckdb.connect().sql(plain).fetchall()[0][0]):
        cpu = []
        for _ in range(3):
            start_s = time.process_time()
            rows = ask()
            cpu.append((time.process_time() - start_s) * 1000)
        spent.append((rows, min(cpu)))
    (ours, our_ms), (theirs, their_ms) = spent
    assert ours == theirs
    opened = scan.plan().report.files
    return [
        f"| {files:,} real files, {where(window)}: Frazil | – | {opened:,} | {our_ms:.0f} ms |",
        f"| the same files, DuckDB without a table | – | {files:,} | {their_ms:.0f} ms |",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--real", type=int, default=400)
    arguments = parser.parse_args()
    print("| case | leaves opened | files opened | least processor time |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(planned(Path(folder), arguments.files)), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(read(Path(folder), arguments.real)))


if __name__ == "__main__":
    main()
