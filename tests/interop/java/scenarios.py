"""Random manifests of one table that has every primitive type, and what a reader must make of them.

An entry is a mapping from flat keys to plain values, the same that goes into an `EntryBatch`.
`as_read` is the model: it says, from the format's rules alone, what a reader of the file sees.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from frazil.format.vectors import bitmap
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from tests.support.values import arrow_type, to_json

TABLE_LOCATION = "file:/warehouse/every_type"
SNAPSHOT_ID, SEQUENCE_NUMBER, FIRST_ROW_ID = 3_000_000_000_000_000_001, 42, 10_000

Entry = dict[str, Any]

SCHEMA = Schema(
    ice.NestedField(1, "flag", ice.BooleanType(), required=False),
    ice.NestedField(2, "small", ice.IntegerType(), required=False),
    ice.NestedField(3, "big", ice.LongType(), required=False),
    ice.NestedField(4, "single", ice.FloatType(), required=False),
    ice.NestedField(5, "double", ice.DoubleType(), required=False),
    ice.NestedField(6, "day", ice.DateType(), required=False),
    ice.NestedField(7, "clock", ice.TimeType(), required=False),
    ice.NestedField(8, "stamp", ice.TimestampType(), required=False),
    ice.NestedField(9, "stamp_tz", ice.TimestamptzType(), required=False),
    ice.NestedField(10, "nano", ice.TimestampNanoType(), required=False),
    ice.NestedField(11, "nano_tz", ice.TimestamptzNanoType(), required=False),
    ice.NestedField(12, "text", ice.StringType(), required=False),
    ice.NestedField(13, "key", ice.UUIDType(), required=False),
    ice.NestedField(14, "four", ice.FixedType(4), required=False),
    ice.NestedField(15, "bytes", ice.BinaryType(), required=False),
    ice.NestedField(16, "cents", ice.DecimalType(9, 2), required=False),
    ice.NestedField(17, "mills", ice.DecimalType(18, 3), required=False),
    ice.NestedField(18, "wide", ice.DecimalType(38, 10), required=False),
    ice.NestedField(
        19,
        "nested",
        ice.StructType(
            ice.NestedField(20, "inner", ice.IntegerType(), required=False),
            ice.NestedField(21, "label", ice.StringType(), required=False),
        ),
        required=False,
    ),
    ice.NestedField(
        22,
        "items",
        ice.ListType(element_id=23, element_type=ice.IntegerType(), element_required=False),
        required=False,
    ),
)

STATS_IDS = (*range(1, 19), 20, 21)
_IDENTITY_IDS = tuple(range(1, 19))

UNPARTITIONED = PartitionSpec(spec_id=0)
BY_IDENTITY = PartitionSpec(
    *(
        PartitionField(
            source_id=id,
            field_id=1000 + id,
            transform=IdentityTransform(),
            name=f"{SCHEMA.find_column_name(id)}_identity",
        )
        for id in _IDENTITY_IDS
    ),
    spec_id=1,
)
BY_TRANSFORM = PartitionSpec(
    PartitionField(source_id=3, field_id=1101, transform=BucketTransform(16), name="big_bucket"),
    PartitionField(source_id=12, field_id=1102, transform=TruncateTransform(4), name="text_trunc"),
    PartitionField(source_id=6, field_id=1103, transform=YearTransform(), name="day_year"),
    PartitionField(source_id=8, field_id=1104, transform=MonthTransform(), name="stamp_month"),
    PartitionField(source_id=9, field_id=1105, transform=DayTransform(), name="stamp_tz_day"),
    PartitionField(source_id=11, field_id=1106, transform=HourTransform(), name="nano_tz_hour"),
    spec_id=2,
)
SPECS = (UNPARTITIONED, BY_IDENTITY, BY_TRANSFORM)

DERIVED = {
    field.field_id: 100 + number for number, field in enumerate(BY_TRANSFORM.fields, start=1)
}
"""Partition field id to the id of its derived column."""


def partition_type(field: PartitionField) -> ice.IcebergType:
    """The type of a partition field's values."""
    return field.transform.result_type(SCHEMA.find_type(field.source_id))


PARTITION_TYPES: dict[int, ice.IcebergType] = {
    field.field_id: partition_type(field) for spec in SPECS for field in spec.fields
}
STATS_TYPES: dict[int, ice.IcebergType] = {
    **{id: SCHEMA.find_type(id) for id in STATS_IDS},
    **{derived: PARTITION_TYPES[field_id] for field_id, derived in DERIVED.items()},
}

SCHEMA_WITH_DERIVED = Schema(
    *SCHEMA.fields,
    *(
        ice.NestedField(
            DERIVED[field.field_id], f"{field.name}_derived", partition_type(field), required=False
        )
        for field in BY_TRANSFORM.fields
    ),
)
"""Derived columns as if they were columns: shows a reader's view of their statistics."""

COUNTS = ("value_count", "null_value_count", "nan_value_count")


def column_types() -> dict[str, pa.DataType]:
    """Arrow types of the flat columns that depend on the table."""
    types = {f"partition.{id}": arrow_type(kind) for id, kind in PARTITION_TYPES.items()}
    for id, kind in STATS_TYPES.items():
        prefix = f"content_stats.{id}."
        types |= {prefix + bound: arrow_type(kind) for bound in ("lower_bound", "upper_bound")}
        types |= {prefix + count: pa.int64() for count in COUNTS}
        types |= {prefix + "tight_bounds": pa.bool_()}
        types |= {prefix + "avg_value_size_in_bytes": pa.int32()}
    return types


# --- strategies ------------------------------------------------------------------------------

_longs = st.integers(-(2**63), 2**63 - 1)
_counts = st.integers(0, 2**40)
_ints = st.integers(-(2**31), 2**31 - 1)
_texts = st.text(st.characters(codec="utf-8"), max_size=12)


def plain_values(kind: ice.IcebergType) -> st.SearchStrategy[Any]:
    """Any value that a bound or partition field of the type may hold."""
    match kind:
        case ice.BooleanType():
            return st.booleans()
        case ice.IntegerType() | ice.DateType():
            return _ints
        case ice.FloatType():
            return st.floats(width=32, allow_nan=False)
        case ice.DoubleType():
            return st.floats(allow_nan=False)
        case ice.TimeType():
            return st.integers(0, 86_399_999_999)
        case ice.StringType():
            return _texts
        case ice.UUIDType():
            return st.binary(min_size=16, max_size=16)
        case ice.FixedType():
            return st.binary(min_size=len(kind), max_size=len(kind))
        case ice.BinaryType():
            return st.binary(max_size=12)
        case ice.DecimalType():
            digits, scale = kind.precision, kind.scale
            unscaled = st.integers(-(10**digits) + 1, 10**digits - 1)
            return unscaled.map(lambda value: Decimal(value).scaleb(-scale, _EXACT))
        case _:
            return _longs


_EXACT = Context(prec=60)


def sort_key(kind: ice.IcebergType, value: Any) -> Any:
    """The order of bounds: −0.0 below +0.0, everything else as Python compares it."""
    if isinstance(kind, ice.FloatType | ice.DoubleType):
        return (value, np.copysign(1.0, value))
    return value


@st.composite
def field_stats(draw: st.DrawFn, id: int, *, rows: int) -> Entry:
    """Statistics of one column over a file with `rows` rows; any part may be missing."""
    kind = STATS_TYPES[id]
    nulls = draw(st.integers(0, rows))
    stats: Entry = {}
    if nulls < rows and draw(st.booleans()):
        bounds = draw(st.lists(plain_values(kind), min_size=2, max_size=2))
        lower, upper = sorted(bounds, key=lambda value: sort_key(kind, value))
        if draw(st.integers(0, 4)) == 0:
            lower = upper
        stats["lower_bound"], stats["upper_bound"] = lower, upper
        stats["tight_bounds"] = draw(st.sampled_from([None, True, False]))
        if draw(st.integers(0, 5)) == 0:
            del stats[draw(st.sampled_from(["lower_bound", "upper_bound"]))]
    if draw(st.integers(0, 3)):
        stats["value_count"] = rows
        if draw(st.integers(0, 3)):
            stats["null_value_count"] = nulls
    if isinstance(kind, ice.FloatType | ice.DoubleType) and draw(st.booleans()):
        nans = rows - nulls if "lower_bound" not in stats else draw(st.integers(0, rows - nulls))
        stats["nan_value_count"] = nans
    if isinstance(kind, ice.StringType | ice.BinaryType) and draw(st.booleans()):
        stats["avg_value_size_in_bytes"] = draw(st.integers(0, 2**31 - 1))
    return {f"content_stats.{id}.{name}": value for name, value in stats.items()}


@st.composite
def bitmaps(draw: st.DrawFn) -> bytes:
    """A Mumbling bitmap of positions."""
    positions = draw(st.sets(st.integers(0, 3000), max_size=12))
    if draw(st.integers(0, 3)) == 0:
        start = draw(st.integers(0, 2**21 - 301))
        positions |= set(range(start, start + 300))
    return bitmap.encode(np.array(sorted(positions), dtype=np.int64))


_segments = st.text(
    st.characters(categories=("Ll", "Lu", "Nd"), include_characters=" ='%+é"),
    min_size=1,
    max_size=8,
)


@st.composite
def locations(draw: st.DrawFn, extension: str) -> str:
    """A location, relative to the table or absolute."""
    stem = "/".join(draw(st.lists(_segments, min_size=1, max_size=3)))
    prefix = draw(st.sampled_from(["data/", "metadata/", "", "file:/elsewhere/", "s3://bucket/"]))
    return f"{prefix}{stem}.{extension}"


@st.composite
def trackings(draw: st.DrawFn, *, explicit: bool) -> Entry:
    """Tracking of one entry: complete, or with nulls to inherit where a leaf may have them."""
    status = draw(st.integers(0, 4))
    tracking: Entry = {"tracking.status": status}
    if explicit or draw(st.booleans()):
        tracking["tracking.snapshot_id"] = draw(st.integers(1, 2**62))
    if explicit or status != 1 or draw(st.booleans()):
        tracking["tracking.sequence_number"] = draw(st.integers(0, 2**40))
    if explicit or status != 1 or draw(st.booleans()):
        tracking["tracking.file_sequence_number"] = draw(st.integers(0, 2**40))
    if draw(st.booleans()):
        tracking["tracking.modified_snapshot_id"] = draw(st.integers(1, 2**62))
    if explicit or draw(st.booleans()):
        tracking["tracking.first_row_id"] = draw(st.integers(0, 2**50))
    return tracking


@st.composite
def _common(draw: st.DrawFn, stats_ids: Sequence[int], *, root: bool, rows: int) -> Entry:
    entry: Entry = {
        **draw(trackings(explicit=root)),
        "record_count": rows,
        "file_size_in_bytes": draw(_counts),
    }
    for id in stats_ids:
        if draw(st.integers(0, 3)):
            entry |= draw(field_stats(id, rows=rows))
    if draw(st.integers(0, 4)) == 0:
        entry["key_metadata"] = draw(st.binary(max_size=6))
    return entry


@st.composite
def data_entries(draw: st.DrawFn, stats_ids: Sequence[int], *, root: bool) -> Entry:
    """A data file: any spec, perhaps a deletion vector, split offsets, a sort order."""
    rows = draw(st.integers(1, 2**33))
    entry = draw(_common(stats_ids, root=root, rows=rows))
    entry |= {
        "content_type": 0,
        "location": draw(locations("parquet")),
        "file_format": draw(st.sampled_from(["parquet", "avro", "orc"])),
    }
    entry |= draw(partitions())
    if draw(st.booleans()):
        entry["sort_order_id"] = draw(st.integers(0, 9))
    if draw(st.booleans()):
        entry["split_offsets"] = sorted(draw(st.lists(_counts, min_size=1, max_size=3)))
    if draw(st.integers(0, 2)) == 0:
        entry |= {
            "deletion_vector.location": draw(locations("puffin")),
            "deletion_vector.offset": draw(_counts),
            "deletion_vector.size_in_bytes": draw(_counts),
            "deletion_vector.cardinality": draw(st.integers(1, rows)),
        }
        if draw(st.booleans()):
            entry["deletion_vector.key_metadata"] = draw(st.binary(max_size=6))
    return entry


@st.composite
def partitions(draw: st.DrawFn) -> Entry:
    """A spec and a tuple of it: none, the unpartitioned one, or values that may be null."""
    spec = draw(st.sampled_from([None, *SPECS]))
    if spec is None:
        return {}
    entry: Entry = {"spec_id": spec.spec_id}
    fields = draw(st.lists(st.sampled_from(spec.fields), max_size=4)) if spec.fields else []
    for field in fields:
        key = f"partition.{field.field_id}"
        entry[key] = draw(plain_values(PARTITION_TYPES[field.field_id]))
    return entry


@st.composite
def equality_delete_entries(draw: st.DrawFn, stats_ids: Sequence[int], *, root: bool) -> Entry:
    """An equality delete file."""
    entry = draw(_common(stats_ids, root=root, rows=draw(st.integers(1, 2**33))))
    entry |= draw(partitions())
    ids = draw(st.lists(st.sampled_from(STATS_IDS), min_size=1, max_size=3, unique=True))
    return entry | {
        "content_type": 2,
        "location": draw(locations("parquet")),
        "file_format": "parquet",
        "equality_ids": ids,
    }


@st.composite
def manifest_entries(draw: st.DrawFn, stats_ids: Sequence[int]) -> Entry:
    """A leaf manifest in a root: counts, a manifest DV, positions of this snapshot."""
    content = draw(st.sampled_from([3, 4]))
    legacy = draw(st.booleans())
    entry = draw(_common(stats_ids, root=True, rows=draw(st.integers(1, 10**6))))
    extension = "avro" if legacy else "parquet"
    entry |= {
        "content_type": content,
        "manifest_info.format_version": 0 if legacy else 4,
        "location": draw(locations(extension)),
        "file_format": extension,
    }
    small, large = st.integers(0, 2**30 - 1), _counts
    for status in ("added", "existing", "deleted", "replaced", "modified"):
        entry[f"manifest_info.{status}_files_count"] = draw(small)
        entry[f"manifest_info.{status}_rows_count"] = draw(large)
    entry["manifest_info.min_sequence_number"] = draw(large)
    for key in (
        "manifest_info.dv",
        "tracking.deleted_positions",
        "tracking.replaced_positions",
    ):
        if draw(st.integers(0, 2)) == 0:
            entry[key] = draw(bitmaps())
    if content == 4 and draw(st.booleans()):
        entry["referenced_file"] = draw(locations("parquet"))
    return entry


_stats_subsets = st.lists(st.sampled_from(list(STATS_TYPES)), max_size=5, unique=True)


@st.composite
def roots(draw: st.DrawFn) -> list[Entry]:
    """Entries of a root: every content type, tracking explicit."""
    ids = draw(_stats_subsets)
    one = st.one_of(
        data_entries(ids, root=True),
        equality_delete_entries(ids, root=True),
        manifest_entries(ids),
    )
    return draw(st.lists(one, min_size=1, max_size=4))


@st.composite
def leaves(draw: st.DrawFn) -> list[Entry]:
    """Entries of a data leaf, with nulls to inherit."""
    ids = draw(_stats_subsets)
    return draw(st.lists(data_entries(ids, root=False), min_size=1, max_size=5))


@st.composite
def delete_leaves(draw: st.DrawFn) -> list[Entry]:
    """Entries of a leaf of equality deletes."""
    ids = draw(_stats_subsets)
    return draw(st.lists(equality_delete_entries(ids, root=False), min_size=1, max_size=3))


# --- the model -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """What a manifest's entry in the root (or the snapshot, for a root) hands down."""

    snapshot_id: int = SNAPSHOT_ID
    sequence_number: int = SEQUENCE_NUMBER
    first_row_id: int | None = FIRST_ROW_ID


def as_read(entries: Sequence[Entry], inherited: Inherited) -> list[Entry]:
    """The entries as flat keys, plain values in their exact JSON form, nulls left out; named and
    counted as revision 1.12 does."""
    next_row_id = inherited.first_row_id
    result = []
    for entry in entries:
        seen = {key: value for key, value in entry.items() if value is not None}
        seen.pop("referenced_file", None)
        seen["format_version"] = seen.pop("manifest_info.format_version", 4)
        if "tracking.modified_snapshot_id" in seen:
            seen["tracking.dv_snapshot_id"] = seen.pop("tracking.modified_snapshot_id")
        if "manifest_info.existing_files_count" in seen:
            for what in ("files", "rows"):
                modified = seen.pop(f"manifest_info.modified_{what}_count")
                seen[f"manifest_info.existing_{what}_count"] += modified
        seen.setdefault("tracking.snapshot_id", inherited.snapshot_id)
        if seen["tracking.status"] == 1:
            seen.setdefault("tracking.sequence_number", inherited.sequence_number)
            seen.setdefault("tracking.file_sequence_number", inherited.sequence_number)
        live = seen["tracking.status"] in (0, 1, 4)
        if next_row_id is None:
            seen.pop("tracking.first_row_id", None)
        elif live and "tracking.first_row_id" not in seen:
            seen["tracking.first_row_id"] = next_row_id
            next_row_id += seen["record_count"]
        result.append({key: _shown(key, value) for key, value in seen.items()})
    for seen in result:
        for key in [key for key in seen if key.endswith(".tight_bounds") and not seen[key]]:
            del seen[key]
    return result


def _shown(key: str, value: Any) -> Any:
    if key in ("location", "deletion_vector.location"):
        absolute = value.startswith(("file:", "s3:"))
        return value if absolute else f"{TABLE_LOCATION}/{value}"
    if key.endswith(("_positions", "manifest_info.dv")):
        return [int(position) for position in bitmap.decode(value)]
    if key.startswith("partition."):
        return to_json(PARTITION_TYPES[int(key.split(".")[1])], value)
    if key.endswith(("lower_bound", "upper_bound")):
        return to_json(STATS_TYPES[int(key.split(".")[1])], value)
    return value.hex() if isinstance(value, bytes) else value


def flattened(dump: Mapping[str, Any], prefix: str = "") -> Entry:
    """An entry of the Java dump as flat keys; nulls, and `tight_bounds` that is false, left out."""
    flat: Entry = {}
    for key, value in dump.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and set(value) == {"cardinality", "positions"}:
            assert value["cardinality"] == len(value["positions"])
            flat[path] = value["positions"]
        elif isinstance(value, dict):
            flat |= flattened(value, f"{path}.")
        elif value is not None and not (key == "tight_bounds" and value is False):
            flat[path] = value
    flat.pop("tracking.manifest_pos", None)
    return flat


def new_name() -> str:
    """A file name that no other test uses."""
    return f"{uuid.uuid4()}.parquet"
