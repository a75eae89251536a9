"""Manifests of v1 to v3 as an `EntryBatch`: their columns under v4's keys.

Knows how an entry of old maps to a content entry: its fields, what v1 leaves out, bounds that were
bytes, partition tuples, and statistics of derived columns that follow from the tuple. Whether the
file is Avro, or the Parquet that early v4 writers used, is told by its first bytes
(`avro.by_field_id`, `legacy.read.java_112_tables`). What an entry inherits from its manifest is
not filled in here: `format.entries.tracking.inherit` does that for manifests of every version.

Delete files of v2 and v3 keep their own entries, which v4 does not have: a position delete file has
content type 1 and names the one data file it applies to, if it is one, in `referenced_file`. A
deletion vector is such an entry with its blob in the `deletion_vector` columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import avro
from frazil.avro.by_field_id import RecordColumns
from frazil.avro.walker import Path
from frazil.errors import FormatError, InvalidInput
from frazil.format import paths
from frazil.format.entries import fields, stats
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import VECTOR_KEYS, ContentType
from frazil.format.metadata.metadata import TableMetadata
from frazil.format.values import single_value
from frazil.format.values.types import arrow_type, is_geo, promote
from frazil.iceberg import types as ice
from frazil.iceberg.types import IcebergType
from frazil.legacy.read import java_112_tables
from frazil.limits import DEFAULT, Limits
from frazil.text_format import first_line
from frazil.tree.table_shape import DerivedType, TableShape, shape_of

_DATA_FILE: Final = 2
_PARTITION: Final = 102
COUNTS: Final = {"value_count": 109, "null_value_count": 110, "nan_value_count": 137}
BOUNDS: Final = {"lower_bound": 125, "upper_bound": 128}

PATHS: Final[Mapping[str, Path]] = {
    "tracking.status": (0,),
    "tracking.snapshot_id": (1,),
    "tracking.sequence_number": (3,),
    "tracking.file_sequence_number": (4,),
    "tracking.first_row_id": (_DATA_FILE, 142),
    "content_type": (_DATA_FILE, 134),
    "location": (_DATA_FILE, 100),
    "file_format": (_DATA_FILE, 101),
    "record_count": (_DATA_FILE, 103),
    "file_size_in_bytes": (_DATA_FILE, 104),
    "sort_order_id": (_DATA_FILE, 140),
    "key_metadata": (_DATA_FILE, 131),
    "split_offsets": (_DATA_FILE, 132),
    "equality_ids": (_DATA_FILE, 135),
    "referenced_file": (_DATA_FILE, 143),
    "deletion_vector.offset": (_DATA_FILE, 144),
    "deletion_vector.size_in_bytes": (_DATA_FILE, 145),
}
"""Keys to the fields of a manifest entry they are found in."""
_REQUIRED: Final = ("tracking.status", "location", "file_format", "record_count")
_SEQUENCE_KEYS: Final = ("tracking.sequence_number", "tracking.file_sequence_number")
_VECTOR_KEYS: Final = ("deletion_vector.location", "deletion_vector.cardinality")
_DOMAINS: Final = {(0,): 3, (_DATA_FILE, 134): 3}
"""Status and content have three values each: what tells a record's start from other bytes."""


def entries_of(
    data: bytes,
    *,
    path: str,
    content_type: ContentType,
    spec_id: int | None,
    metadata: TableMetadata,
    location: str,
    keys: Collection[str] | None = None,
    limits: Limits = DEFAULT,
    is_exact: bool = False,
) -> EntryBatch:
    """The entries of a v1 to v3 manifest, in file order, dead ones included.

    `is_exact` keeps the spelling of paths, for files that others will look up by it.

    `keys` limits the columns that are decoded (status and content type always are); None reads
    all, with the statistics of the current schema's columns. Null tracking is left null, except
    for v1 manifests, which have no sequence numbers: theirs are 0. `content_type` is that of the
    manifest's own entry.
    """
    shape = shape_of(metadata)
    entry_keys = frozenset(
        _all_keys(shape) if keys is None else {*keys, "tracking.status", "content_type"}
    )
    try:
        columns = read_columns(data, _wanted_paths(entry_keys, shape), path=path, limits=limits)
        built = _fixed_columns(columns, entry_keys, path, location, is_exact)
        built |= _partition_columns(columns, entry_keys, shape)
        built |= _stats_columns(columns, entry_keys, shape)
    except FormatError as error:
        raise error.at(path) from error
    rows = columns.num_rows
    constants: dict[str, int] = {}
    if "content_type" not in built:
        if content_type is ContentType.DELETE_MANIFEST and rows:
            raise FormatError("a delete manifest without content", path=path, field="content")
        constants["content_type"] = ContentType.DATA
    spec = spec_id if spec_id is not None else columns.metadata.get("partition-spec-id")
    if spec is not None:
        constants["spec_id"] = int(spec)
    for key, value in constants.items():
        if key in entry_keys:
            built[key] = pa.repeat(pa.scalar(value, pa.int32()), rows)
    return EntryBatch(pa.table(built))


def read_columns(
    data: bytes, field_paths: Collection[Path], *, path: str, limits: Limits = DEFAULT
) -> RecordColumns:
    """The wanted leaves of a manifest, Avro or Parquet as its first bytes say."""
    if data[:4] == java_112_tables.MAGIC:
        return java_112_tables.decode(data, field_paths, path=path, limits=limits)
    return avro.decode(data, field_paths, path=path, domains=_DOMAINS, limits=limits)


def _all_keys(shape: TableShape) -> set[str]:
    keys = {*PATHS, *_VECTOR_KEYS, "content_type", "spec_id"}
    keys |= {fields.partition_key(field_id) for field_id in shape.partition_types}
    for field_id in (*(field.id for field in shape.current), *shape.derived_types):
        kind = shape.column_types.get(field_id) or shape.derived_types[field_id].type
        tracked = stats.TrackedField(id=field_id, full_name="", type=kind)
        keys |= {column.key for column in stats.stats_columns(tracked)}
    return keys


def _wanted_paths(keys: frozenset[str], shape: TableShape) -> set[Path]:
    field_paths = {PATHS[key] for key in keys if key in PATHS}
    if keys.intersection(VECTOR_KEYS):
        field_paths |= {
            PATHS[key] for key in ("deletion_vector.offset", "location", "record_count")
        }
    for key in keys:
        if key.startswith(fields.PARTITION_PREFIX):
            field_paths.add(
                (_DATA_FILE, _PARTITION, int(key.removeprefix(fields.PARTITION_PREFIX)))
            )
        elif key.startswith(fields.STATS_PREFIX):
            field_id, name = fields.split_stats_key(key)
            derived = shape.derived_types.get(field_id)
            if derived is not None:
                field_paths.add((_DATA_FILE, _PARTITION, derived.partition_field_id))
                field_paths.add(PATHS["record_count"])
            elif name in COUNTS:
                field_paths.add((_DATA_FILE, COUNTS[name], field_id))
            elif name.startswith("lower_"):
                field_paths.add((_DATA_FILE, BOUNDS["lower_bound"], field_id))
            elif name.startswith("upper_"):
                field_paths.add((_DATA_FILE, BOUNDS["upper_bound"], field_id))
    return field_paths


def _fixed_columns(
    columns: RecordColumns, keys: frozenset[str], path: str, location: str, is_exact: bool
) -> dict[str, pa.Array]:
    stored = exact_paths if is_exact else stored_paths
    built: dict[str, pa.Array] = {}
    for key, leaf in PATHS.items():
        if key not in keys:
            continue
        array = columns.arrays.get(leaf)
        if key in _REQUIRED and columns.num_rows and (array is None or array.null_count):
            raise FormatError("an entry has no value for it", path=path, field=key)
        if array is not None:
            built[key] = declared(array, key, path=path)
    for key in _SEQUENCE_KEYS:
        if key in keys and PATHS[key] not in columns.leaves and _is_first_version(columns):
            built[key] = pa.repeat(pa.scalar(0, pa.int64()), columns.num_rows)
    if "location" in built:
        built["location"] = stored(location, built["location"])
    if "referenced_file" in built:
        # DuckDB writes an empty text where there is none.
        referenced = pc.if_else(
            pc.equal(built["referenced_file"], ""), None, built["referenced_file"]
        )
        built["referenced_file"] = stored(location, referenced)
    if "file_format" in built:
        built["file_format"] = pc.utf8_lower(built["file_format"])
    offsets = columns.arrays.get(PATHS["deletion_vector.offset"])
    if offsets is not None and keys & frozenset(_VECTOR_KEYS):
        has_vector = pc.is_valid(offsets)
        puffin = stored(location, columns.arrays[PATHS["location"]])
        count = columns.arrays[PATHS["record_count"]]
        built["deletion_vector.location"] = pc.if_else(has_vector, puffin, None)
        built["deletion_vector.cardinality"] = pc.if_else(has_vector, count, None)
    return {key: array for key, array in built.items() if key in keys}


def declared(array: pa.Array, key: str, *, path: str) -> pa.Array:
    """A column of a manifest in the type that the format gives it."""
    kind = fields.LEAVES[key].type
    if kind is None or array.type == kind:
        return array
    try:
        return array.cast(kind)
    except pa.ArrowException as error:
        text = f"is {array.type}; expected {kind} ({first_line(error)})"
        raise FormatError(text, path=path, field=key) from error


def _is_first_version(columns: RecordColumns) -> bool:
    return columns.metadata.get("format-version", "1") == "1"


def stored_paths(location: str, array: pa.Array) -> pa.Array:
    """Paths of v1 to v3 as v4 metadata stores them: relative where they lie under the table."""
    prefix = f"{location.rstrip('/')}/"
    if pc.all(pc.starts_with(array, prefix)).as_py():
        # As nearly always. A tail that needs a closer look has a dot segment or a scheme.
        tails = pc.utf8_slice_codeunits(array, len(prefix))
        odd = pc.or_(pc.starts_with(tails, "."), pc.match_substring(tails, "/."))
        odd = pc.or_(odd, pc.or_(pc.match_substring(tails, ":"), pc.equal(tails, "")))
        if not pc.any(odd).as_py():
            return tails
    stored = paths.relativise_all(location, pa.chunked_array([array]))
    return stored.combine_chunks() if isinstance(stored, pa.ChunkedArray) else stored


def exact_paths(location: str, array: pa.Array) -> pa.Array:
    """Paths of v1 to v3 as v4 metadata stores them so that their spelling is kept."""
    stored = paths.stored_exactly(location, pa.chunked_array([array]))
    return stored.combine_chunks() if isinstance(stored, pa.ChunkedArray) else stored


def _partition_columns(
    columns: RecordColumns, keys: frozenset[str], shape: TableShape
) -> dict[str, pa.Array]:
    built: dict[str, pa.Array] = {}
    for key in keys:
        if key.startswith(fields.PARTITION_PREFIX):
            field_id = int(key.removeprefix(fields.PARTITION_PREFIX))
            array = _partition(columns, field_id, shape.partition_types.get(field_id))
            if array is not None:
                built[key] = array
    return built


def _partition(columns: RecordColumns, field_id: int, kind: IcebergType | None) -> pa.Array | None:
    array = columns.arrays.get((_DATA_FILE, _PARTITION, field_id))
    if array is None or kind is None:
        return array
    try:
        return _typed(array, kind)
    except FormatError as error:
        raise FormatError(error.problem, field=fields.partition_key(field_id)) from error


def _stats_columns(
    columns: RecordColumns, keys: frozenset[str], shape: TableShape
) -> dict[str, pa.Array]:
    stats_by_column: dict[int, set[str]] = {}
    for key in keys:
        if key.startswith(fields.STATS_PREFIX):
            field_id, name = fields.split_stats_key(key)
            stats_by_column.setdefault(field_id, set()).add(name)
    built: dict[str, pa.Array] = {}
    for field_id, names in stats_by_column.items():
        if field_id in shape.derived_types:
            field_stats = _derived_stats(columns, shape.derived_types[field_id])
        else:
            field_stats = _column_stats(columns, field_id, shape.column_types.get(field_id))
        built |= {
            fields.stats_key(field_id, name): field_stats[name]
            for name in names & field_stats.keys()
        }
    return built


def _column_stats(
    columns: RecordColumns, field_id: int, kind: IcebergType | None
) -> dict[str, pa.Array]:
    by_part: dict[str, pa.Array] = {}
    for name, map_id in COUNTS.items():
        counts = columns.arrays.get((_DATA_FILE, map_id, field_id))
        if counts is not None:
            by_part[name] = counts
    if kind is None or not stats.has_bounds(kind):
        return by_part
    for name, map_id in BOUNDS.items():
        raw = columns.arrays.get((_DATA_FILE, map_id, field_id))
        if raw is None:
            continue
        try:
            by_part |= bounds(raw, kind, name)
        except FormatError as error:
            raise FormatError(error.problem, field=fields.stats_key(field_id, name)) from error
    return by_part


def bounds(raw: pa.Array, kind: IcebergType, name: str) -> dict[str, pa.Array]:
    """Serialised bounds as the columns of `lower_bound` or `upper_bound`; points for geo types."""
    if not is_geo(kind):
        return {name: single_value.decode_bounds(raw, kind)}
    side = name.removesuffix("bound")
    return {side + axis: array for axis, array in single_value.decode_points(raw).items()}


def _derived_stats(columns: RecordColumns, derived: DerivedType) -> dict[str, pa.Array]:
    """Statistics of a transform's result: the file has one value of it, its partition's."""
    value = _partition(columns, derived.partition_field_id, derived.type)
    if value is None:
        return {}
    rows = columns.arrays[PATHS["record_count"]]
    is_null = np.asarray(pc.is_null(value))
    no_rows = np.zeros(len(value), dtype=np.int64)
    return {
        "lower_bound": value,
        "upper_bound": value,
        "tight_bounds": pa.array(~is_null, mask=is_null),
        "value_count": rows,
        "null_value_count": pa.array(np.where(is_null, rows.to_numpy(), no_rows)),
    }


def _typed(array: pa.Array, kind: ice.IcebergType) -> pa.Array:
    """Partition values as stored in a file, in the Arrow type of their Iceberg type."""
    target = arrow_type(kind)
    source = array.type
    if source == target:
        return array
    try:
        if isinstance(kind, ice.DecimalType) and not pa.types.is_decimal(source):
            return single_value.decode_bounds(array.cast(pa.binary()), kind)
        if isinstance(kind, ice.FixedType | ice.UUIDType):
            return array.cast(pa.binary()).cast(target)
        if pa.types.is_integer(source):
            if isinstance(kind, ice.DateType):
                return array.cast(pa.int32()).cast(target)
            return array.cast(target)
        return promote(array, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidInput) as error:
        raise FormatError(f"values of {source} do not fit {kind}: {error}") from error
