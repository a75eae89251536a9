"""Entries of one revision of the format as those of another.

Knows how the columns of `format.entries.fields.Revision` relate: what revision 1.12 says of every
entry, 2026-10 says of manifests alone; what 1.12 counts as existing, 2026-10 counts as modified.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import Unsupported
from frazil.format.entries import fields, tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import FILE_VERSION_KEY, FORMAT_VERSION_KEY, Revision
from frazil.properties.registry import FORMAT_REVISION

FORMAT_VERSION = 4

_FILES, _ROWS = "manifest_info.{}_files_count", "manifest_info.{}_rows_count"
_MODIFIED = (_FILES.format("modified"), _ROWS.format("modified"))
_EXISTING = (_FILES.format("existing"), _ROWS.format("existing"))
_MARKER = _FILES.format("added")


def revision_to_write(properties: Mapping[str, str]) -> Revision:
    """The revision that a table's properties ask for."""
    return fields.REVISIONS[FORMAT_REVISION.of(properties)]


def shaped(batch: EntryBatch, revision: Revision) -> EntryBatch:
    """Entries as a manifest of this revision says them. Files are left alone; of leaves, counts and
    spec ids follow the revision."""
    if not batch.num_rows:
        return batch
    is_leaf = tracking.leaf_mask(batch)
    if not is_leaf.any():
        return batch
    if revision is fields.REVISION_1_12:
        return _with_modified_as_existing(batch)
    return _without_spec(_with_modified_counts(batch), is_leaf)


def _with_modified_as_existing(batch: EntryBatch) -> EntryBatch:
    if not any(batch.has(key) for key in _MODIFIED):
        return batch
    for existing, modified in zip(_EXISTING, _MODIFIED, strict=True):
        more = pc.fill_null(batch.column(modified), 0)
        batch = batch.with_column(existing, pc.add(batch.column(existing), more))
    return batch.without(*_MODIFIED)


def _with_modified_counts(batch: EntryBatch, keys: Collection[str] = _MODIFIED) -> EntryBatch:
    """A leaf that an older root described has its modified entries among the existing ones."""
    if not batch.has(_MARKER):
        return batch
    marker = batch.column(_MARKER)
    for key in keys:
        counts = batch.column(key)
        if counts.null_count > marker.null_count:
            counted = pc.is_valid(marker)
            nothing = pc.if_else(counted, pa.scalar(0, counts.type), pa.scalar(None, counts.type))
            batch = batch.with_column(key, pc.coalesce(counts, nothing))
    return batch


def _without_spec(batch: EntryBatch, is_leaf: np.ndarray[Any, np.dtype[np.bool_]]) -> EntryBatch:
    """Leaves have no spec id. Those carried over from v1–v3 keep it: theirs is the only one that
    their entries have."""
    if not batch.has("spec_id"):
        return batch
    loose = is_leaf & (batch.numpy(FORMAT_VERSION_KEY) != 0)
    if not (loose & (batch.numpy("spec_id") >= 0)).any():
        return batch
    specs = batch.column("spec_id")
    return batch.with_column(
        "spec_id", pc.if_else(pa.array(loose), pa.scalar(None, pa.int32()), specs)
    )


def on_disk(batch: EntryBatch, revision: Revision) -> EntryBatch:
    """The columns that a manifest of this revision has, ready to be nested."""
    batch = shaped(batch, revision)
    if revision is not fields.REVISION_1_12:
        return batch
    if not batch.nulls(fields.COLUMN_FILES).all():
        raise Unsupported(
            "revision 1.12 of the format has no column_files (field 158), and entries of the table "
            f"have some; set {FORMAT_REVISION.key} to {fields.LATEST.name}, and compact the table "
            "with merge_columns=True before it is 1.12 again",
            feature="column files in revision 1.12",
        )
    versions = batch.column(FORMAT_VERSION_KEY)
    versions_or_default = pc.fill_null(versions, pa.scalar(FORMAT_VERSION, versions.type))
    return batch.without(FORMAT_VERSION_KEY).with_column(FILE_VERSION_KEY, versions_or_default)


def as_read(batch: EntryBatch, revision: Revision) -> EntryBatch:
    """Entries that `shaped` returned, as a reader of the manifest has them."""
    return _with_modified_counts(batch) if revision is fields.REVISION_1_12 else batch


def keys_on_disk(keys: Collection[str], revision: Revision) -> set[str]:
    """The columns of a manifest that are needed to tell those of `keys`."""
    disk_keys = {*keys, "tracking.status", "content_type"}
    if revision is fields.REVISION_1_12:
        if FORMAT_VERSION_KEY in disk_keys:
            disk_keys.add(FILE_VERSION_KEY)
        if not disk_keys.isdisjoint(_MODIFIED):
            disk_keys.add(_MARKER)
    return disk_keys


def in_memory(
    columns: dict[str, pa.Array], revision: Revision, keys: Collection[str] | None
) -> EntryBatch:
    """The columns of a manifest as an `EntryBatch` has them: all, or those of `keys`."""
    versions = columns.pop(FILE_VERSION_KEY, None)
    batch = EntryBatch.of(columns, len(columns["tracking.status"]))
    if revision is not fields.REVISION_1_12:
        return batch
    if versions is not None:
        is_leaf = tracking.leaf_mask(batch)
        if is_leaf.any():
            nothing = pa.scalar(None, versions.type)
            batch = batch.with_column(
                FORMAT_VERSION_KEY, pc.if_else(pa.array(is_leaf), versions, nothing)
            )
    if keys is None:
        return as_read(batch, revision)
    batch = _with_modified_counts(batch, [key for key in _MODIFIED if key in keys])
    return batch if _MARKER in keys else batch.without(_MARKER)


__all__ = [
    "FORMAT_VERSION",
    "as_read",
    "in_memory",
    "keys_on_disk",
    "on_disk",
    "revision_to_write",
    "shaped",
]
