"""A reader of v4 manifests that behaves as Iceberg's own does on its main branch.

Written from the behaviour of `V4ManifestReader`, `TrackedFileStruct` and `TrackingStruct` after
release 1.12.0, on pyarrow alone. It shares no declaration and no code with Frazil: fields are
listed here by hand, and bitmaps come in as positions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Declared = tuple[str, str, bool]
"""Name, type, whether required."""

TRACKING: dict[int, Declared] = {
    0: ("status", "int32", True),
    1: ("snapshot_id", "int64", False),
    3: ("sequence_number", "int64", False),
    4: ("file_sequence_number", "int64", False),
    5: ("modified_snapshot_id", "int64", False),
    142: ("first_row_id", "int64", False),
    6: ("deleted_positions", "binary", False),
    7: ("replaced_positions", "binary", False),
}
MANIFEST_INFO: dict[int, Declared] = {
    504: ("added_files_count", "int32", True),
    505: ("existing_files_count", "int32", True),
    506: ("deleted_files_count", "int32", True),
    523: ("replaced_files_count", "int32", True),
    525: ("modified_files_count", "int32", True),
    512: ("added_rows_count", "int64", True),
    513: ("existing_rows_count", "int64", True),
    514: ("deleted_rows_count", "int64", True),
    524: ("replaced_rows_count", "int64", True),
    526: ("modified_rows_count", "int64", True),
    516: ("min_sequence_number", "int64", True),
    522: ("dv", "binary", False),
    521: ("format_version", "int32", True),
}
DELETION_VECTOR: dict[int, Declared] = {
    155: ("location", "string", True),
    144: ("offset", "int64", True),
    145: ("size_in_bytes", "int64", True),
    156: ("cardinality", "int64", True),
    149: ("key_metadata", "binary", False),
}
TRACKED_FILE: dict[int, Declared] = {
    134: ("content_type", "int32", True),
    100: ("location", "string", True),
    101: ("file_format", "string", True),
    103: ("record_count", "int64", True),
    104: ("file_size_in_bytes", "int64", True),
    141: ("spec_id", "int32", False),
    140: ("sort_order_id", "int32", False),
    131: ("key_metadata", "binary", False),
    132: ("split_offsets", "list<element: int64 not null>", False),
    135: ("equality_ids", "list<element: int32 not null>", False),
    158: (
        "column_files",
        "list<element: struct<location: string not null, field_ids: list<element: int32 not null> "
        "not null, file_format: string not null, file_size_in_bytes: int64 not null, "
        "key_metadata: binary> not null>",
        False,
    ),
}
STRUCTS: dict[int, tuple[str, Mapping[int, Declared], bool]] = {
    147: ("tracking", TRACKING, True),
    148: ("deletion_vector", DELETION_VECTOR, False),
    150: ("manifest_info", MANIFEST_INFO, False),
}
PARTITION = 102
LIVE = (0, 1, 4)
ADDED = 1


class Refused(Exception):
    """What Iceberg's reader throws."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """What a reader is told of a manifest by whatever points at it."""

    snapshot_id: int
    sequence_number: int
    first_row_id: int | None
    content: str = "data"
    format_version: int = 4
    dead: Collection[int] = ()


def read(data: pa.Buffer | bytes, told: ManifestFile) -> list[dict[str, Any]]:
    """The entries that a scan would see, each with what it inherits and its position."""
    if told.format_version != 4:
        raise Refused(f"Cannot read manifest with format version {told.format_version}")
    if told.content != "data":
        raise Refused(f"Cannot read manifest with content {told.content}: only data manifests")
    next_row_id = told.first_row_id
    kept = []
    for position, entry in enumerate(_entries(data)):
        tracking = entry["tracking"]
        _inherit(tracking, told)
        if next_row_id is None:
            tracking["first_row_id"] = None
        elif tracking["status"] in LIVE and tracking["first_row_id"] is None:
            tracking["first_row_id"] = next_row_id
            next_row_id += entry["record_count"]
        if tracking["status"] not in LIVE or position in told.dead or not entry["record_count"]:
            continue
        if entry["content_type"] < 3:
            partition(entry)
        kept.append(entry)
    return kept


def partition(entry: Mapping[str, Any]) -> dict[int, Any] | None:
    """The partition of a file, by field id, as Arrow scalars."""
    if entry["partition"] is None and entry["spec_id"] is not None:
        raise Refused(f"Missing partition for spec {entry['spec_id']}")
    found: dict[int, Any] | None = entry["partition"]
    return found


def _inherit(tracking: dict[str, Any], told: ManifestFile) -> None:
    if tracking["snapshot_id"] is None:
        tracking["snapshot_id"] = told.snapshot_id
    if tracking["status"] == ADDED or told.sequence_number == 0:
        for name in ("sequence_number", "file_sequence_number"):
            if tracking[name] is None:
                tracking[name] = told.sequence_number


def _entries(data: pa.Buffer | bytes) -> list[dict[str, Any]]:
    table = pq.read_table(pa.BufferReader(data))
    columns = {_id(field): table.column(index) for index, field in enumerate(table.schema)}
    entries: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
    for name, values in _members(columns, TRACKED_FILE).items():
        for entry, value in zip(entries, values, strict=True):
            entry[name] = value
    for id, (name, declared, required) in STRUCTS.items():
        for entry, value in zip(entries, _structs(columns.get(id), declared, name), strict=False):
            entry[name] = value
        if id not in columns:
            if required:
                raise Refused(f"Missing required field: {name}")
            for entry in entries:
                entry[name] = None
    partitions = columns.get(PARTITION)
    for index, entry in enumerate(entries):
        entry["partition"] = None
        if partitions is not None and partitions[index].is_valid:
            row = partitions[index]
            entry["partition"] = {_id(field): row[field.name] for field in partitions.type}
    return entries


def _members(columns: Mapping[int, pa.ChunkedArray], declared: Mapping[int, Declared]) -> Any:
    found: dict[str, list[Any]] = {}
    rows = len(next(iter(columns.values())))
    for id, (name, kind, required) in declared.items():
        column = columns.get(id)
        if column is None:
            if required:
                raise Refused(f"Missing required field: {name}")
            found[name] = [None] * rows
        elif str(column.type) != kind:
            raise Refused(f"Cannot read {name} ({id}): {column.type}, expected {kind}")
        else:
            found[name] = column.to_pylist()
    return found


def _structs(
    column: pa.ChunkedArray | None, declared: Mapping[int, Declared], name: str
) -> list[dict[str, Any] | None]:
    if column is None:
        return []
    if not pa.types.is_struct(column.type):
        raise Refused(f"{name} is not a struct")
    array = column.combine_chunks()
    parts = zip(array.type, array.flatten(), strict=True)
    members = _members({_id(field): pa.chunked_array([part]) for field, part in parts}, declared)
    return [
        {member: values[row] for member, values in members.items()} if array[row].is_valid else None
        for row in range(len(array))
    ]


def _id(field: pa.Field) -> int:
    return int((field.metadata or {}).get(b"PARQUET:field_id", -1))
