"""Why this design: what a small change costs in the layouts that were considered, and bitmap sizes.

The alternatives are simulated with Frazil's own manifest writer, so that only the layout differs:
every design is charged for real Parquet manifests of the same entries. The chosen one is not
simulated: a table is committed to and the bytes it wrote are counted.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

import frazil
from bench import bitmaps as bitmap_table
from bench.course import BenchRun
from bench.drivers import shop
from bench.drivers.frazil_driver import entries_of, schema_of
from bench.results import Outcome
from frazil.format.entries import manifest
from frazil.format.entries.nest import ColumnNames
from frazil.format.vectors import bitmap

LEAF = 10_000
CHECKPOINT_EVERY = 100
MERGE_AT = 100


def bitmaps(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Bytes of a set of dead positions by encoding; the whole table is in docs/bitmaps.md."""
    rng = np.random.default_rng(bitmap_table.SEED)
    for size in workload["sizes"]:
        for density in bitmap_table.DENSITIES:
            count = max(1, round(size * density))
            positions = np.sort(rng.choice(size, count, replace=False)).astype(np.int64)
            for method in bitmap_table.METHODS:
                length = len(method.encode(positions))
                peer = "Frazil" if method.name == "Mumbling" else method.name
                outcome.add(f"{size:,} entries, {density:.0%} dead", "size", peer, length, "B")
    outcome.note("random positions; `python bench/bitmaps.py` prints the full comparison.")


def designs(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Bytes written per commit, for appends and for changes spread over the table."""
    files, commits = workload["files"], workload["commits"]
    sizes = _Sizes()
    leaves = -(-files // LEAF)
    for name, (appended, changed, objects) in _simulated(sizes, files, leaves, commits).items():
        outcome.add("append one file", "bytes per commit", name, appended, "B")
        outcome.add("a vector on one random file", "bytes per commit", name, changed, "B")
        outcome.add("a vector on one random file", "objects per commit", name, objects, "")
    appended, changed, objects = _chosen(files, commits)
    outcome.add("append one file", "bytes per commit", "Frazil", appended, "B")
    outcome.add("a vector on one random file", "bytes per commit", "Frazil", changed, "B")
    outcome.add("a vector on one random file", "objects per commit", "Frazil", objects, "")
    outcome.note(
        f"a table of {files:,} files in leaves of {LEAF:,}, {commits} commits of each kind. The "
        "Puffin file with the data vector is left out in all designs."
    )


def _chosen(files: int, commits: int) -> tuple[float, float, float]:
    """The adaptive tree as it is: bytes per append, bytes and objects per change."""
    with tempfile.TemporaryDirectory() as folder, frazil.connect(folder) as catalog:
        properties = {"write.metadata.json-every": "0"}
        table = catalog.create_table(
            "shop.orders", schema_of(12), partition_by=["day(order_date)"], properties=properties
        )
        expression = table.metadata.expressions[0].expr_id

        def entries(start: int, stop: int) -> Any:
            return entries_of(shop.files(start, stop, total=files), expression)

        table._add_entries(entries(0, files))
        appended = []
        for index in range(files, files + commits):
            done = table._add_entries(entries(index, index + 1))
            assert done is not None
            appended.append(done.metadata_bytes)
        rng = np.random.default_rng(7)
        changed, objects = [], []
        for index in rng.choice(files, commits, replace=False):
            path = shop.files(int(index), int(index) + 1, total=files).paths[0]
            landed = table.row_delta().delete_rows(path, [5]).commit()
            changed.append(landed.metadata_bytes)
            objects.append(landed.metadata_files)
    return float(np.mean(appended)), float(np.mean(changed)), float(np.mean(objects))


def _simulated(
    sizes: _Sizes, files: int, leaves: int, commits: int
) -> dict[str, tuple[float, float, float]]:
    """Bytes per append, bytes and objects per change, of the other layouts."""
    small = range(1, MERGE_AT + 1)
    listed = float(np.mean([sizes.of(leaves + n) for n in small]))
    one = sizes.of(1)
    leaf, whole = sizes.of(min(LEAF, files)), sizes.of(files)
    vectors = _vector_bytes(files, leaves, commits)
    return {
        "one flat manifest": (whole, whole, 1),
        "manifest and list per commit": (one + listed, one + listed, 2),
        "rewrite the leaf": (listed, leaf + sizes.of(leaves), 2),
        "vectors of leaves in own files": (listed, sizes.of(leaves) + vectors, 2),
        "log with checkpoints": (
            _action() + whole / CHECKPOINT_EVERY,
            2 * _action() + whole / CHECKPOINT_EVERY,
            1 + 1 / CHECKPOINT_EVERY,
        ),
    }


def _vector_bytes(files: int, leaves: int, commits: int) -> float:
    """The mean size of the vector that one change rewrites, as changes pile up."""
    size = max(1, files // leaves)
    rng = np.random.default_rng(7)
    per_leaf = [max(1, round(done / leaves)) for done in range(1, commits + 1)]
    lengths = [
        len(bitmap.encode(np.sort(rng.choice(size, min(n, size), replace=False)).astype(np.int64)))
        for n in per_leaf
    ]
    return float(np.mean(lengths))


def _action() -> float:
    """One file as a JSON action with the same statistics: name, bound and count texts."""
    described = shop.files(0, 1, total=1)
    names = shop.names(12)
    bounds = [described.bounds(column, 0) for column in range(12)]
    text = 3 * sum(len(name) + 4 for name in names) + sum(
        len(str(b)) for pair in bounds for b in pair
    )
    return text + len(described.paths[0]) + 150.0


class _Sizes:
    """Bytes of real manifests with so many entries."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        names = dict(enumerate(shop.names(12), start=1))
        self._names = ColumnNames(
            stats={**names, 1_000: "order_date_day"}, partition={1000: "order_date_day"}
        )

    def of(self, entries: int) -> int:
        """Bytes of a manifest with so many entries, in the codec a tree would use for it."""
        if entries not in self._known:
            batch = entries_of(shop.files(0, entries, total=max(entries, 1000)), 1_000)
            data = manifest.encode(
                batch,
                content="data",
                names=self._names,
                codec="zstd" if entries > MERGE_AT else "lz4",
            )
            self._known[entries] = len(data)
        return self._known[entries]
