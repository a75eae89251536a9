"""What looking for files to remove may hold in memory: columns and hashes, no object per file."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import frazil
from frazil.commit.change import Change
from frazil.format.entries.batch import EntryBatch
from frazil.maintenance.removal.listing import FolderPart, by_folder
from frazil.maintenance.removal.orphans import remove_orphan_files
from frazil.maintenance.rewrite_manifests import rewrite_manifests
from frazil.storage import FileInfo, Storage
from frazil.table import Table
from tests.support.history import new_table, rows

FILES = 20_000
NAME = "data/{:0100d}.parquet"  # as long as names are: 117 characters below the table's location


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table whose files need not exist."""
    catalog = frazil.connect(tmp_path)
    table = catalog.create_table(
        "s.t", pa.schema([("id", pa.int64())]), properties={"write.leaf.target-entries": "2000"}
    )
    count = np.full(FILES, 10, dtype=np.int64)
    columns = {
        "tracking.status": pa.array(np.ones(FILES, dtype=np.int32)),
        "content_type": pa.array(np.zeros(FILES, dtype=np.int32)),
        "location": pa.array([NAME.format(number) for number in range(FILES)]),
        "file_format": pa.array(["parquet"] * FILES),
        "record_count": pa.array(count),
        "file_size_in_bytes": pa.array(count),
        "spec_id": pa.array(np.zeros(FILES, dtype=np.int32)),
    }
    table._handle.commit(Change(added=EntryBatch(pa.table(columns))))
    return table.refresh()


def peak_per_file(work: Callable[[], object]) -> float:
    """The most that Python and Arrow held at one time, in bytes for each file of the table."""
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        work()
        return (tracemalloc.get_traced_memory()[1] + (pool.max_memory() or 0)) / FILES
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


def test_orphan_removal_holds_a_listing_as_columns(table: Table) -> None:
    lost = f"{table.location}/data/lost.parquet"

    def files(folder: str) -> Iterator[FileInfo]:
        if folder.endswith("/data"):
            yield FileInfo(path=lost, size=5, modified_ms=0)
            for number in range(FILES):
                path = f"{table.location}/{NAME.format(number)}"
                yield FileInfo(path=path, size=10, modified_ms=0)

    def lister(storage: Storage, folder: str, /, **_: object) -> Iterator[FolderPart]:
        return by_folder(files(folder))

    def look() -> None:
        orphans = remove_orphan_files(table._handle, dry_run=True, lister=lister)
        assert [file.path for file in orphans.files] == [lost]

    look()  # modules are loaded
    assert peak_per_file(look) < 700


def test_orphans_are_found_asking_about_unknown_files_alone(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(6):
        table.append(rows(number))
    lost = Path(table.location.removeprefix("file://"), "data", "lost.parquet")
    lost.write_bytes(b"stray")
    os.utime(lost, (0, 0))
    with table._handle.storage.recording() as calls:
        found = table.remove_orphan_files(older_than=timedelta(0), dry_run=True)
    assert [(file.path, file.size) for file in found.files] == [(f"file://{lost}", 5)]
    asked = [call.path for call in calls if call.verb == "head" and "/data/" in call.path]
    assert asked == [f"file://{lost}"]
    listed = [call.path for call in calls if call.verb == "list"]
    assert len(set(listed)) == len(listed)


def test_expiry_after_a_rewrite_compares_names_without_an_object_for_each(table: Table) -> None:
    handle = table._handle
    leaves = [leaf.location for leaf in handle.reader().tree(handle.tip()).leaves()]
    assert len(leaves) == FILES // 2000
    rewrite_manifests(handle, leaves=leaves)
    table.refresh()

    def look() -> None:
        expired = table.expire_snapshots(older_than=timedelta(0), dry_run=True)
        assert {kind: len(paths) for kind, paths in expired.files.items()} == {
            "leaves": len(leaves),
            "roots": 1,
        }

    look()
    assert peak_per_file(look) < 550
