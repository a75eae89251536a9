"""Paimon's manifest lists, manifests and index manifests as Arrow tables, and which entries live.

Files are Avro or ORC, told apart by their first bytes, and read by field name: a field that an
older Paimon did not write is null. Column names here are Paimon's without the underscores. Reads no
files.

An entry is known by partition, bucket, level, file name, extra files, embedded index and external
path; statistics are not part of it. All DELETE entries are taken first, then the ADDs they name are
dropped: the order of manifests does not matter. The level belongs to the key because an LSM tree
moves a file up as DELETE at the old level plus ADD at the new one, under the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.orc as orc

from frazil import arrow_compute as pc
from frazil.avro import by_name
from frazil.avro.container import MAGIC as AVRO_MAGIC
from frazil.errors import FormatError, Unsupported
from frazil.limits import DEFAULT, Limits
from frazil.value_classes import frozen

ORC_MAGIC: Final = b"ORC"
ADD: Final = 0
DELETE: Final = 1
DELETION_VECTORS: Final = "DELETION_VECTORS"
HASH: Final = "HASH"

_INT, _LONG, _TEXT, _BINARY = pa.int32(), pa.int64(), pa.string(), pa.binary()
_COUNTS, _NAMES = pa.list_(_LONG), pa.list_(_TEXT)
_RANGES: Final = pa.list_(
    pa.struct([("f0", _TEXT), ("f1", _LONG), ("f2", _LONG), ("_CARDINALITY", _LONG)])
)


@frozen
class ManifestColumn:
    """One column: where Paimon keeps it, and whether every version wrote it."""

    source: str
    type: pa.DataType
    required: bool = False


def _required(source: str, type: pa.DataType) -> ManifestColumn:
    return ManifestColumn(source=source, type=type, required=True)


def _optional(source: str, type: pa.DataType) -> ManifestColumn:
    return ManifestColumn(source=source, type=type)


MANIFEST_LIST: Final[Mapping[str, ManifestColumn]] = {
    "version": _required("_VERSION", _INT),
    "file_name": _required("_FILE_NAME", _TEXT),
    "file_size": _required("_FILE_SIZE", _LONG),
    "num_added_files": _required("_NUM_ADDED_FILES", _LONG),
    "num_deleted_files": _required("_NUM_DELETED_FILES", _LONG),
    "partition_min": _optional("_PARTITION_STATS._MIN_VALUES", _BINARY),
    "partition_max": _optional("_PARTITION_STATS._MAX_VALUES", _BINARY),
    "partition_null_counts": _optional("_PARTITION_STATS._NULL_COUNTS", _COUNTS),
    "schema_id": _required("_SCHEMA_ID", _LONG),
    "min_bucket": _optional("_MIN_BUCKET", _INT),
    "max_bucket": _optional("_MAX_BUCKET", _INT),
    "min_level": _optional("_MIN_LEVEL", _INT),
    "max_level": _optional("_MAX_LEVEL", _INT),
    "min_row_id": _optional("_MIN_ROW_ID", _LONG),
    "max_row_id": _optional("_MAX_ROW_ID", _LONG),
}

MANIFEST: Final[Mapping[str, ManifestColumn]] = {
    "version": _required("_VERSION", _INT),
    "kind": _required("_KIND", _INT),
    "partition": _required("_PARTITION", _BINARY),
    "bucket": _required("_BUCKET", _INT),
    "total_buckets": _required("_TOTAL_BUCKETS", _INT),
    "file_name": _required("_FILE._FILE_NAME", _TEXT),
    "file_size": _required("_FILE._FILE_SIZE", _LONG),
    "row_count": _required("_FILE._ROW_COUNT", _LONG),
    "min_key": _optional("_FILE._MIN_KEY", _BINARY),
    "max_key": _optional("_FILE._MAX_KEY", _BINARY),
    "key_min": _optional("_FILE._KEY_STATS._MIN_VALUES", _BINARY),
    "key_max": _optional("_FILE._KEY_STATS._MAX_VALUES", _BINARY),
    "key_null_counts": _optional("_FILE._KEY_STATS._NULL_COUNTS", _COUNTS),
    "value_min": _optional("_FILE._VALUE_STATS._MIN_VALUES", _BINARY),
    "value_max": _optional("_FILE._VALUE_STATS._MAX_VALUES", _BINARY),
    "value_null_counts": _optional("_FILE._VALUE_STATS._NULL_COUNTS", _COUNTS),
    "min_sequence_number": _optional("_FILE._MIN_SEQUENCE_NUMBER", _LONG),
    "max_sequence_number": _optional("_FILE._MAX_SEQUENCE_NUMBER", _LONG),
    "schema_id": _required("_FILE._SCHEMA_ID", _LONG),
    "level": _required("_FILE._LEVEL", _INT),
    "extra_files": _optional("_FILE._EXTRA_FILES", _NAMES),
    "creation_time_ms": _optional("_FILE._CREATION_TIME", _LONG),
    "delete_row_count": _optional("_FILE._DELETE_ROW_COUNT", _LONG),
    "embedded_file_index": _optional("_FILE._EMBEDDED_FILE_INDEX", _BINARY),
    "file_source": _optional("_FILE._FILE_SOURCE", _INT),
    "value_stats_cols": _optional("_FILE._VALUE_STATS_COLS", _NAMES),
    "external_path": _optional("_FILE._EXTERNAL_PATH", _TEXT),
    "first_row_id": _optional("_FILE._FIRST_ROW_ID", _LONG),
    "write_cols": _optional("_FILE._WRITE_COLS", _NAMES),
}

INDEX_MANIFEST: Final[Mapping[str, ManifestColumn]] = {
    "version": _required("_VERSION", _INT),
    "kind": _required("_KIND", _INT),
    "partition": _required("_PARTITION", _BINARY),
    "bucket": _required("_BUCKET", _INT),
    "index_type": _required("_INDEX_TYPE", _TEXT),
    "file_name": _required("_FILE_NAME", _TEXT),
    "file_size": _required("_FILE_SIZE", _LONG),
    "row_count": _required("_ROW_COUNT", _LONG),
    "ranges": _optional("_DELETIONS_VECTORS_RANGES", _RANGES),
    "external_path": _optional("_EXTERNAL_PATH", _TEXT),
}


_DOMAINS: Final = {"_VERSION": 3, "_KIND": 2}
"""How many values these fields take from zero on; helps to find where records start."""


def read_manifest_list(
    data: bytes, path: str | None = None, *, limits: Limits = DEFAULT
) -> pa.Table:
    """A manifest list with the columns of `MANIFEST_LIST`."""
    return _read(data, MANIFEST_LIST, path, versions=(2,), limits=limits)


def read_manifest(data: bytes, path: str | None = None, *, limits: Limits = DEFAULT) -> pa.Table:
    """A data manifest with the columns of `MANIFEST`, ADD and DELETE entries in file order."""
    return _read(data, MANIFEST, path, versions=(2,), limits=limits)


def read_index_manifest(
    data: bytes, path: str | None = None, *, limits: Limits = DEFAULT
) -> pa.Table:
    """An index manifest with the columns of `INDEX_MANIFEST`."""
    return _read(data, INDEX_MANIFEST, path, versions=(1,), limits=limits)


def empty(columns: Mapping[str, ManifestColumn]) -> pa.Table:
    """A table of those columns without rows."""
    return pa.table({name: pa.array([], column.type) for name, column in columns.items()})


def _read(
    data: bytes,
    columns: Mapping[str, ManifestColumn],
    path: str | None,
    *,
    versions: tuple[int, ...],
    limits: Limits,
) -> pa.Table:
    try:
        raw = _raw(data, columns, limits)
        table = pa.table({name: _conform(raw, column) for name, column in columns.items()})
        for version in pc.unique(table["version"]).to_pylist():
            if version not in versions:
                raise Unsupported(
                    f"{path or 'manifest'}: _VERSION is {version}; expected {versions[0]}. "
                    "Rewrite the table with a current Paimon",
                    feature="paimon-manifest-version",
                )
    except FormatError as error:
        raise (error if path is None else error.at(path)) from None
    return table


def _raw(data: bytes, columns: Mapping[str, ManifestColumn], limits: Limits) -> pa.Table:
    if data[:3] == ORC_MAGIC:
        return _read_orc(data, columns, limits)
    if data[:4] != AVRO_MAGIC:
        raise FormatError(f"starts with {data[:4].hex(' ')}; expected Avro or ORC")
    sources = [column.source for column in columns.values()]
    return by_name.read(data, sources, domains=_DOMAINS, limits=limits)


def _read_orc(data: bytes, columns: Mapping[str, ManifestColumn], limits: Limits) -> pa.Table:
    sources = {column.source for column in columns.values()}
    try:
        file = orc.ORCFile(pa.BufferReader(data))
        limits.check(file.nrows * len(columns), stored=len(data))
        table = file.read()
        while any(
            pa.types.is_struct(field.type) and field.name not in sources for field in table.schema
        ):
            table = table.flatten()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"not a readable ORC file: {error}") from None
    return table


def _conform(raw: pa.Table, column: ManifestColumn) -> pa.ChunkedArray:
    """The column in its fixed type; null when the file has no such field."""
    index = raw.schema.get_field_index(column.source)
    if index < 0:
        if column.required:
            raise FormatError("the field is missing", field=column.source)
        return pa.chunked_array([pa.nulls(raw.num_rows, column.type)])
    values = raw.column(index)
    if column.required and values.null_count:
        raise FormatError("is null; expected a value", field=column.source)
    if values.type == column.type:
        return values
    try:
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
        if column.type == _RANGES:
            return _ranges(values)
        return values.cast(column.type)
    except (pa.ArrowException, ValueError) as error:
        raise FormatError(f"is {values.type}: {error}", field=column.source) from None


def _ranges(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ranges of deletion vectors; Paimon before 1.0 wrote no cardinality."""
    fields = [field.name for field in _RANGES.value_type]
    kind = values.type
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        raise FormatError(f"is {kind}; expected a list of ranges")
    rows = [
        None if row is None else [{name: item.get(name) for name in fields} for item in row]
        for row in values.to_pylist()
    ]
    return pa.chunked_array([pa.array(rows, _RANGES)])


_LIST_SEPARATOR: Final = "\x00"


def live_entries(entries: pa.Table) -> pa.Table:
    """The ADD entries that no DELETE entry names, in order, each once."""
    kinds = entries["kind"].to_numpy()
    unknown = (kinds != ADD) & (kinds != DELETE)
    if unknown.any():
        raise FormatError(
            f"is {int(kinds[np.argmax(unknown)])}; expected 0 (ADD) or 1 (DELETE)", field="_KIND"
        )
    is_add = kinds == ADD
    keys = entry_keys(entries)
    alive = is_add & ~np.isin(keys, keys[~is_add]) if not is_add.all() else is_add
    first = np.zeros(len(keys), bool)
    positions = np.flatnonzero(alive)
    first[positions[np.unique(keys[positions], return_index=True)[1]]] = True
    return entries.filter(pa.array(first))


def entry_keys(entries: pa.Table) -> npt.NDArray[np.int64]:
    """A number per entry, equal for entries that stand for the same file."""
    codes = np.zeros(entries.num_rows, np.int64)
    for column in (
        entries["file_name"],
        entries["level"],
        entries["bucket"],
        entries["partition"],
        pc.binary_join(entries["extra_files"], _LIST_SEPARATOR),
        entries["embedded_file_index"],
        entries["external_path"],
    ):
        codes = _combine(codes, _codes(column))
    return codes


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    if column.null_count == len(column):
        return np.zeros(len(column), np.int64)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    indices: npt.NDArray[Any] = encoded.indices.to_numpy(zero_copy_only=False)
    return indices.astype(np.int64)


def _combine(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Codes of pairs, kept dense so that no product of sizes can overflow."""
    width = int(right.max(initial=0)) + 1
    if width == 1:
        return left
    paired = left * width + right
    if int(paired.max(initial=0)) < 2 * len(paired):
        return paired
    dense: npt.NDArray[np.int64] = np.unique(paired, return_inverse=True)[1].astype(np.int64)
    return dense
