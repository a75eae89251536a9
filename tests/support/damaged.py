"""Manifests with entries that a writer would never write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.tracking import Status
from frazil.table import Table
from frazil.tree.table_shape import shape_of

Edit = Callable[[EntryBatch], EntryBatch]

_KEPT = ("table-uuid", "snapshot-id", "sequence-number", "frazil.snapshot")


def path_of(table: Table, location: str) -> Path:
    """A file of a local table."""
    return Path(f"{table.location}/{location}".removeprefix("file://"))


def root_of(table: Table) -> str:
    """The current root, as metadata calls it."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.root_manifest is not None
    return snapshot.root_manifest


def damage(table: Table, location: str, edit: Edit) -> None:
    """Rewrite a manifest with other entries."""
    path = path_of(table, location)
    read = manifest.decode(path.read_bytes(), path=str(path))
    data = manifest.encode(
        edit(read.batch),
        content=read.content,
        names=shape_of(table.metadata).names,
        codec="none",
        metadata={key: value for key, value in read.metadata.items() if key in _KEPT},
    )
    path.write_bytes(data)
    table._handle.context.cache.clear()


def set_value(key: str, row: int, value: Any) -> Edit:
    """Another value in one entry."""

    def edit(batch: EntryBatch) -> EntryBatch:
        values = batch.pylist(key)
        values[row] = value
        return batch.with_column(key, pa.array(values, batch.column(key).type))

    return edit


def root_row(table: Table, *, status: Status | None = None, leaf: bool = False) -> int:
    """The row of the current root that has a status, or is a leaf."""
    root = table._handle.reader().tree(table.current_snapshot()).root
    for row in range(root.num_rows):
        is_leaf = root.pylist("content_type")[row] >= 3
        if is_leaf == leaf and status in (None, root.pylist("tracking.status")[row]):
            return row
    raise AssertionError("no such entry")
