"""Every field of a content entry, declared once.

The on-disk schema, column projections, the flat column names of an `EntryBatch` and the tables of
`docs/format.md` all derive from this module. Statistics (`content_stats`) and partition fields
depend on the table; only their enclosing struct is declared here, `frazil.format.stats` knows the
arithmetic of their ids.

A *key* is the dotted path of a leaf field (`tracking.status`). Keys of table-dependent leaves carry
the field id instead of a name: `partition.1000`, `content_stats.7.lower_bound`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import pyarrow as pa


class ContentType(IntEnum):
    """What an entry stands for."""

    DATA = 0
    POSITION_DELETES = 1  # only in manifests of v2 and v3; never written
    EQUALITY_DELETES = 2
    DATA_MANIFEST = 3
    DELETE_MANIFEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One on-disk field: a leaf, or a struct when `children` is given."""

    id: int
    name: str
    doc: str
    type: pa.DataType | None = None
    required: bool = False
    element_id: int | None = None
    children: tuple[Field, ...] = ()


def _leaf(id: int, name: str, type: pa.DataType, doc: str, *, required: bool = False) -> Field:
    return Field(id=id, name=name, type=type, required=required, doc=doc)


_INT, _LONG, _STRING, _BINARY = pa.int32(), pa.int64(), pa.string(), pa.binary()

TRACKING: Final = Field(
    id=147,
    name="tracking",
    required=True,
    doc="status, snapshot, sequence numbers and positions changed",
    children=(
        _leaf(
            0,
            "status",
            _INT,
            "0 EXISTING, 1 ADDED, 2 DELETED, 3 REPLACED, 4 MODIFIED",
            required=True,
        ),
        _leaf(
            1,
            "snapshot_id",
            _LONG,
            "snapshot that added the file, or that deleted or replaced it; null inherits",
        ),
        _leaf(3, "sequence_number", _LONG, "data sequence number; null inherits, only when ADDED"),
        _leaf(
            4,
            "file_sequence_number",
            _LONG,
            "sequence number of the adding snapshot; null inherits, only when ADDED",
        ),
        _leaf(5, "dv_snapshot_id", _LONG, "snapshot in which the deletion vector last changed"),
        _leaf(142, "first_row_id", _LONG, "first row id of the file, or of a leaf's null entries"),
        _leaf(6, "deleted_positions", _BINARY, "leaf positions DELETED by this snapshot"),
        _leaf(7, "replaced_positions", _BINARY, "leaf positions REPLACED by this snapshot"),
    ),
)

DELETION_VECTOR: Final = Field(
    id=148,
    name="deletion_vector",
    doc="the data file's deletion vector",
    children=(
        _leaf(155, "location", _STRING, "Puffin file", required=True),
        _leaf(144, "offset", _LONG, "start of the blob", required=True),
        _leaf(145, "size_in_bytes", _LONG, "length of the blob", required=True),
        _leaf(156, "cardinality", _LONG, "rows deleted", required=True),
        _leaf(149, "key_metadata", _BINARY, "encryption key metadata"),
    ),
)

MANIFEST_INFO: Final = Field(
    id=150,
    name="manifest_info",
    doc="what a leaf holds",
    children=(
        _leaf(504, "added_files_count", _INT, "ADDED entries", required=True),
        _leaf(505, "existing_files_count", _INT, "EXISTING and MODIFIED entries", required=True),
        _leaf(506, "deleted_files_count", _INT, "DELETED entries", required=True),
        _leaf(520, "replaced_files_count", _INT, "REPLACED entries", required=True),
        _leaf(512, "added_rows_count", _LONG, "rows of ADDED entries", required=True),
        _leaf(513, "existing_rows_count", _LONG, "rows of EXISTING entries", required=True),
        _leaf(514, "deleted_rows_count", _LONG, "rows of DELETED entries", required=True),
        _leaf(521, "replaced_rows_count", _LONG, "rows of REPLACED entries", required=True),
        _leaf(516, "min_sequence_number", _LONG, "least data sequence number", required=True),
        _leaf(522, "dv", _BINARY, "manifest deletion vector: every dead position so far"),
    ),
)

PARTITION: Final = Field(
    id=102, name="partition", doc="union of the partition fields of all specs, by field id"
)
CONTENT_STATS: Final = Field(
    id=146, name="content_stats", doc="typed statistics per column; aggregates on manifest entries"
)

ENTRY: Final[tuple[Field, ...]] = (
    TRACKING,
    _leaf(
        134,
        "content_type",
        _INT,
        "0 DATA, 2 EQUALITY_DELETES, 3 DATA_MANIFEST, 4 DELETE_MANIFEST",
        required=True,
    ),
    _leaf(157, "format_version", _INT, "4, or 0 when carried over from v1–v3", required=True),
    _leaf(100, "location", _STRING, "path, relative to the table location", required=True),
    _leaf(101, "file_format", _STRING, "parquet, avro or orc", required=True),
    _leaf(103, "record_count", _LONG, "rows of a file, entries of a leaf", required=True),
    _leaf(104, "file_size_in_bytes", _LONG, "file size", required=True),
    _leaf(141, "spec_id", _INT, "partition spec; null is unpartitioned or mixed"),
    PARTITION,
    CONTENT_STATS,
    _leaf(140, "sort_order_id", _INT, "sort order of the rows"),
    DELETION_VECTOR,
    MANIFEST_INFO,
    _leaf(131, "key_metadata", _BINARY, "encryption key metadata"),
    Field(
        id=132,
        name="split_offsets",
        type=pa.list_(_LONG),
        element_id=133,
        doc="where a reader may split the file",
    ),
    Field(
        id=135,
        name="equality_ids",
        type=pa.list_(_INT),
        element_id=136,
        doc="columns an equality delete compares",
    ),
    _leaf(143, "referenced_file", _STRING, "data manifest a delete manifest belongs to"),
)


def _flat() -> dict[str, Field]:
    leaves: dict[str, Field] = {}
    for field in ENTRY:
        if field.children:
            leaves.update({f"{field.name}.{child.name}": child for child in field.children})
        elif field.type is not None:
            leaves[field.name] = field
    return leaves


LEAVES: Final[dict[str, Field]] = _flat()
"""Key to declaration, for every leaf that does not depend on the table; in on-disk order."""

REQUIRED_KEYS: Final[tuple[str, ...]] = tuple(
    key
    for key, field in LEAVES.items()
    if field.required and not key.startswith(("deletion_vector.", "manifest_info."))
)
"""Keys that every entry must have a value for."""

FILE_PATH: Final = 2_147_483_546
"""Field id of `file_path` in position delete files; that of `pos` is one less."""

STATS_PREFIX: Final = "content_stats."
PARTITION_PREFIX: Final = "partition."


def partition_key(partition_field_id: int) -> str:
    """The key of a partition field's column."""
    return f"{PARTITION_PREFIX}{partition_field_id}"


def stats_key(field_id: int, name: str) -> str:
    """The key of one statistic of a column, e.g. `content_stats.7.lower_bound`."""
    return f"{STATS_PREFIX}{field_id}.{name}"


def split_stats_key(key: str) -> tuple[int, str]:
    """The column and statistic that a stats key names."""
    _, field_id, name = key.split(".")
    return int(field_id), name
