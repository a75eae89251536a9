"""A v1 to v3 snapshot's manifest list as the root of a tree.

Knows how a row of a manifest list maps to a manifest entry of a root: counts, sequence numbers, row
ids, and partition summaries as statistics of the columns they speak of, so that the pruning that
serves v4 roots serves these too. An identity partition's summary bounds its source column; that of
another transform bounds the derived column of its partition field.

Entries have format version 0. A manifest that the snapshot itself added is ADDED, every other one
EXISTING. Very old v1 snapshots name their manifests directly, and old v1 lists leave out counts:
then the manifests themselves are read, for their statuses and counts alone.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import avro
from frazil.avro.walker import Path
from frazil.errors import FormatError
from frazil.format import paths
from frazil.format.entries import fields
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.format.values.types import is_floating
from frazil.legacy.read import manifest_entries
from frazil.limits import DEFAULT, Limits
from frazil.storage import Storage
from frazil.tree.table_shape import Summarised, TableShape, shape_of

PARTITIONS: Final = 507
SUMMARY_PARTS: Final = {
    509: "contains_null",
    518: "contains_nan",
    510: "lower_bound",
    511: "upper_bound",
}
_CONTAINS_NULL, _LOWER, _UPPER, _CONTAINS_NAN = 509, 510, 511, 518
_COUNTS: Final[dict[str, Path]] = {
    "manifest_info.added_files_count": (504,),
    "manifest_info.existing_files_count": (505,),
    "manifest_info.deleted_files_count": (506,),
    "manifest_info.added_rows_count": (512,),
    "manifest_info.existing_rows_count": (513,),
    "manifest_info.deleted_rows_count": (514,),
}
_FILES: Final = tuple(_COUNTS)[:3]
_PATHS: Final[dict[str, Path]] = {
    "location": (500,),
    "file_size_in_bytes": (501,),
    "spec_id": (502,),
    "tracking.snapshot_id": (503,),
    "tracking.sequence_number": (515,),
    "manifest_info.min_sequence_number": (516,),
    "content_type": (517,),
    "key_metadata": (519,),
    "tracking.first_row_id": (520,),
    **_COUNTS,
}
_REQUIRED: Final = ("location", "file_size_in_bytes", "spec_id", "tracking.snapshot_id")
_DEFAULTS: Final = {
    "tracking.sequence_number": 0,
    "manifest_info.min_sequence_number": 0,
    "content_type": 0,
}


def root_of(
    snapshot: Snapshot, *, metadata: TableMetadata, location: str, storage: Storage
) -> EntryBatch:
    """The manifests of a v1 to v3 snapshot as the entries of a root."""
    if snapshot.manifest_list is None:
        return _from_manifests(snapshot, location=location, storage=storage)
    path = address(location, snapshot.manifest_list)
    batch = entries_of(
        storage.read(path),
        path=path,
        snapshot_id=snapshot.snapshot_id,
        metadata=metadata,
        location=location,
        limits=storage.limits,
    )
    return _with_counts(batch, location=location, storage=storage)


def address(location: str, path: str) -> str:
    """Where a file that a v1 to v3 snapshot names lies."""
    if path.startswith("/"):
        return paths.resolve_legacy(location, path)
    return paths.resolve(location, path)


def entries_of(
    data: bytes,
    *,
    path: str,
    snapshot_id: int,
    metadata: TableMetadata,
    location: str,
    limits: Limits = DEFAULT,
) -> EntryBatch:
    """The rows of a manifest list as manifest entries; counts a v1 list leaves out stay null."""
    shape = shape_of(metadata)
    slots = max((len(summaries) for summaries in shape.summaries.values()), default=0)
    field_paths = set(_PATHS.values()) | {
        (PARTITIONS, slot, part) for slot in range(slots) for part in SUMMARY_PARTS
    }
    columns = avro.decode(data, field_paths, path=path, limits=limits)
    rows = columns.num_rows
    if not rows:
        return EntryBatch.empty()
    built: dict[str, pa.Array] = {}
    for key, leaf in _PATHS.items():
        array = columns.arrays.get(leaf)
        if key in _REQUIRED and (array is None or array.null_count):
            raise FormatError("a manifest has no value for it", path=path, field=key)
        kind = fields.LEAVES[key].type
        if array is not None:
            built[key] = manifest_entries.declared(array, key, path=path)
            if key in _DEFAULTS:
                built[key] = pc.fill_null(built[key], pa.scalar(_DEFAULTS[key], kind))
        elif key in _DEFAULTS:
            built[key] = pa.repeat(pa.scalar(_DEFAULTS[key], kind), rows)
    built["content_type"] = _content_types(built["content_type"], path)
    added = pc.equal(built["tracking.snapshot_id"], snapshot_id)
    built["tracking.status"] = pc.if_else(
        added, pa.scalar(Status.ADDED, pa.int32()), pa.scalar(Status.EXISTING, pa.int32())
    )
    built["file_format"] = _file_formats(built["location"])
    built["location"] = manifest_entries.stored_paths(location, built["location"])
    built |= _constants(rows)
    try:
        built |= _summaries(columns, built["spec_id"], shape)
    except FormatError as error:
        raise error.at(path) from error
    return EntryBatch(pa.table(built | _record_counts(built)))


def _content_types(content: pa.Array, path: str) -> pa.Array:
    values = content.to_numpy()
    if ((values < 0) | (values > 1)).any():
        raise FormatError("content is not 0 (data) or 1 (deletes)", path=path, field="content")
    return pa.array(values + ContentType.DATA_MANIFEST, pa.int32())


def _file_formats(locations: pa.Array) -> pa.Array:
    is_parquet = pc.ends_with(locations, ".parquet")
    return pc.if_else(is_parquet, pa.scalar("parquet"), pa.scalar("avro"))


def _constants(rows: int) -> dict[str, pa.Array]:
    kinds = {
        "manifest_info.format_version": pa.int32(),
        "manifest_info.replaced_files_count": pa.int32(),
        "manifest_info.replaced_rows_count": pa.int64(),
        "manifest_info.modified_files_count": pa.int32(),
        "manifest_info.modified_rows_count": pa.int64(),
    }
    return {key: pa.repeat(pa.scalar(0, kind), rows) for key, kind in kinds.items()}


def _record_counts(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Entries per manifest: the sum of its counts by status, null where one is not known."""
    counts = [columns.get(key) for key in _FILES]
    if any(count is None for count in counts):
        return {}
    added, existing, deleted = (count.cast(pa.int64()) for count in counts if count is not None)
    return {"record_count": pc.add(pc.add(added, existing), deleted)}


def _summaries(
    columns: avro.RecordColumns, spec_ids: pa.Array, shape: TableShape
) -> dict[str, pa.Array]:
    """Partition summaries as statistics of the columns they speak of."""
    built: dict[str, pa.Array] = {}
    specs = spec_ids.to_numpy()
    for spec_id in np.unique(specs):
        rows = pa.array(specs == spec_id)
        for slot, about in enumerate(shape.summaries.get(int(spec_id), ())):
            if about is None:
                continue
            for name, array in _summary(columns, slot, rows, about).items():
                key = fields.stats_key(about.field_id, name)
                built[key] = pc.coalesce(built[key], array) if key in built else array
    return built


def _summary(
    columns: avro.RecordColumns, slot: int, rows: pa.Array, about: Summarised
) -> dict[str, pa.Array]:
    """One field's summaries in the manifests of one spec, null in the others.

    A summary says whether there are nulls and NaNs, not how many: none is a count of 0, some is
    unknown.
    """
    by_part: dict[str, pa.Array] = {}
    for name, part in (("lower_bound", _LOWER), ("upper_bound", _UPPER)):
        raw = columns.arrays.get((PARTITIONS, slot, part))
        if raw is not None:
            masked = pc.if_else(rows, raw, pa.scalar(None, raw.type))
            by_part |= manifest_entries.bounds(masked, about.type, name)
    for name, part in (("null_value_count", _CONTAINS_NULL), ("nan_value_count", _CONTAINS_NAN)):
        contains = columns.arrays.get((PARTITIONS, slot, part))
        if contains is not None and (name == "null_value_count" or is_floating(about.type)):
            none = pc.and_(rows, pc.fill_null(pc.invert(contains), False))
            by_part[name] = pc.if_else(none, pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64()))
    return by_part


def _with_counts(batch: EntryBatch, *, location: str, storage: Storage) -> EntryBatch:
    """The batch with counts that its list left out, taken from the manifests themselves."""
    required = ("record_count", *_COUNTS)
    if not batch.num_rows or not any(batch.column(key).null_count for key in required):
        return batch
    lacking = [key for key in required if batch.column(key).null_count]
    values = {key: batch.pylist(key) for key in lacking}
    for row in range(batch.num_rows):
        if all(values[key][row] is not None for key in lacking):
            continue
        path = paths.resolve(location, batch.pylist("location")[row])
        counted = _counts(storage.read(path), path=path, limits=storage.limits)
        for key in lacking:
            values[key][row] = counted[key]
    for key in lacking:
        batch = batch.with_column(key, pa.array(values[key], fields.LEAVES[key].type))
    return batch


def _counts(data: bytes, *, path: str, limits: Limits) -> dict[str, Any]:
    """Entries and rows of a manifest by status."""
    columns = manifest_entries.read_columns(data, {(0,), (2, 103)}, path=path, limits=limits)
    counted: dict[str, Any] = {"record_count": columns.num_rows}
    if not columns.num_rows:
        return counted | dict.fromkeys(_COUNTS, 0)
    status = columns.arrays[(0,)].to_numpy()
    rows = columns.arrays[(2, 103)].to_numpy()
    for name, value in (("added", 1), ("existing", 0), ("deleted", 2)):
        chosen = status == value
        counted[f"manifest_info.{name}_files_count"] = int(chosen.sum())
        counted[f"manifest_info.{name}_rows_count"] = int(rows[chosen].sum())
    return counted


def _from_manifests(snapshot: Snapshot, *, location: str, storage: Storage) -> EntryBatch:
    """A snapshot without a manifest list: every manifest is opened for what a list would say."""
    rows: list[dict[str, Any]] = []
    for manifest in snapshot.manifests or ():
        path = address(location, manifest)
        data = storage.read(path)
        columns = manifest_entries.read_columns(data, {(1,)}, path=path, limits=storage.limits)
        ids = columns.arrays.get((1,))
        added = ids is not None and bool(pc.any(pc.equal(ids, snapshot.snapshot_id)).as_py())
        rows.append(
            {
                "tracking.status": int(Status.ADDED if added else Status.EXISTING),
                "tracking.snapshot_id": snapshot.snapshot_id,
                "tracking.sequence_number": 0,
                "content_type": int(ContentType.DATA_MANIFEST),
                "manifest_info.format_version": 0,
                "location": paths.relativise(location, manifest),
                "file_format": "avro",
                "file_size_in_bytes": len(data),
                "spec_id": int(columns.metadata.get("partition-spec-id", 0)),
                "manifest_info.replaced_files_count": 0,
                "manifest_info.replaced_rows_count": 0,
                "manifest_info.modified_files_count": 0,
                "manifest_info.modified_rows_count": 0,
                "manifest_info.min_sequence_number": 0,
                **_counts(data, path=path, limits=storage.limits),
            }
        )
    return EntryBatch.from_rows(rows)
