"""Every field of a content entry, declared once per revision of the format.

The revision of a manifest follows from its shape (`revision_of`), so one tree may hold both. In
memory there is one set of columns, named as in the latest revision; `format.entries.revisions`
converts. The on-disk schema, column projections, the flat column names of an `EntryBatch` and the
tables of `docs/format.md` all derive from this module. Statistics (`content_stats`) and partition
fields depend on the table; only their enclosing struct is declared here, `format.entries.stats`
knows the arithmetic of their ids.

A *key* is the dotted path of a leaf field (`tracking.status`). Keys of table-dependent leaves carry
the field id instead of a name: `partition.1000`, `content_stats.7.lower_bound`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Final

import pyarrow as pa

from frazil.value_classes import field, frozen


class ContentType(IntEnum):
    """What an entry stands for."""

    DATA = 0
    POSITION_DELETES = 1  # only in manifests of v2 and v3; never written
    EQUALITY_DELETES = 2
    DATA_MANIFEST = 3
    DELETE_MANIFEST = 4


@frozen
class Field:
    """One on-disk field: a leaf, or a struct when `children` is given."""

    id: int
    name: str
    doc: str
    type: pa.DataType | None = None
    required: bool = False
    element_id: int | None = None
    children: tuple[Field, ...] = ()
    memory_name: str | None = None

    @property
    def key(self) -> str:
        """What the field is called in memory: its name, unless revisions name it differently."""
        return self.memory_name or self.name


def _leaf(
    id: int,
    name: str,
    type: pa.DataType,
    doc: str,
    *,
    required: bool = False,
    memory_name: str | None = None,
) -> Field:
    return Field(id=id, name=name, type=type, required=required, doc=doc, memory_name=memory_name)


_INT, _LONG, _STRING, _BINARY = pa.int32(), pa.int64(), pa.string(), pa.binary()

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
VECTOR_KEYS: Final = (
    "deletion_vector.location",
    "deletion_vector.offset",
    "deletion_vector.size_in_bytes",
    "deletion_vector.cardinality",
)
"""Where a vector is and how many rows it deletes."""
PARTITION: Final = Field(
    id=102, name="partition", doc="union of the partition fields of all specs, by field id"
)
CONTENT_STATS: Final = Field(
    id=146, name="content_stats", doc="typed statistics per column; aggregates on manifest entries"
)
COLUMN_FILES_ID: Final = 158
COLUMN_FILES: Final = "column_files"


def _part(id: int, name: str, type: pa.DataType, *, required: bool = True) -> pa.Field:
    metadata = {b"PARQUET:field_id": str(id)}
    return pa.field(name, type, nullable=not required, metadata=metadata)


COLUMN_FILE: Final = pa.struct(
    [
        _part(160, "location", _STRING),
        _part(161, "field_ids", pa.list_(_part(162, "element", _INT))),
        _part(163, "file_format", _STRING),
        _part(164, "file_size_in_bytes", _LONG),
        _part(165, "key_metadata", _BINARY, required=False),
    ]
)
"""Columns of a data file that are stored in a file of their own."""
COLUMN_FILES_TYPE: Final = pa.list_(_part(159, "element", COLUMN_FILE))


def _tracking(modified: Field) -> Field:
    return Field(
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
            _leaf(
                3, "sequence_number", _LONG, "data sequence number; null inherits, only when ADDED"
            ),
            _leaf(
                4,
                "file_sequence_number",
                _LONG,
                "sequence number of the adding snapshot; null inherits, only when ADDED",
            ),
            modified,
            _leaf(
                142, "first_row_id", _LONG, "first row id of the file, or of a leaf's null entries"
            ),
            _leaf(6, "deleted_positions", _BINARY, "leaf positions DELETED by this snapshot"),
            _leaf(7, "replaced_positions", _BINARY, "leaf positions REPLACED by this snapshot"),
        ),
    )


def _manifest_info(*children: Field) -> Field:
    return Field(id=150, name="manifest_info", doc="what a leaf holds", children=children)


def _entry(
    tracking: Field, manifest_info: Field, *, version: Field | None, last: tuple[Field, ...]
) -> tuple[Field, ...]:
    return (
        tracking,
        _leaf(
            134,
            "content_type",
            _INT,
            "0 DATA, 2 EQUALITY_DELETES, 3 DATA_MANIFEST, 4 DELETE_MANIFEST",
            required=True,
        ),
        *(() if version is None else (version,)),
        _leaf(100, "location", _STRING, "path, relative to the table location", required=True),
        _leaf(101, "file_format", _STRING, "parquet, avro or orc", required=True),
        _leaf(103, "record_count", _LONG, "rows of a file, entries of a leaf", required=True),
        _leaf(104, "file_size_in_bytes", _LONG, "file size", required=True),
        _leaf(141, "spec_id", _INT, "partition spec; null is unpartitioned"),
        PARTITION,
        CONTENT_STATS,
        _leaf(140, "sort_order_id", _INT, "sort order of the rows"),
        DELETION_VECTOR,
        manifest_info,
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
        *last,
    )


@frozen(eq=False, repr=False)
class Revision:
    """One shape of the content entry. `foreign` are ids inside `manifest_info` that only the other
    revision has, each with the type that gives it away, or None for any."""

    name: str
    source: str
    entry: tuple[Field, ...]
    foreign: Mapping[int, pa.DataType | None]
    leaves: Mapping[str, Field] = field(init=False)
    """Key to declaration, for every leaf that does not depend on the table; in on-disk order."""
    renamed: Mapping[str, str] = field(init=False)
    """Keys of leaves that have another name on disk, and their dotted path there."""
    required: tuple[str, ...] = field(init=False)
    """Keys that every entry must have a value for."""

    def __repr__(self) -> str:
        return f"Revision({self.name!r})"

    def __post_init__(self) -> None:
        leaves: dict[str, Field] = {}
        for declared in self.entry:
            if declared.children:
                leaves.update({f"{declared.name}.{leaf.key}": leaf for leaf in declared.children})
            elif declared.type is not None:
                leaves[declared.key] = declared
        object.__setattr__(self, "leaves", leaves)
        renamed = {
            f"{group.name}.{leaf.key}": f"{group.name}.{leaf.name}"
            for group in self.entry
            for leaf in group.children
            if leaf.key != leaf.name
        }
        object.__setattr__(self, "renamed", renamed)
        optional = ("deletion_vector.", "manifest_info.")
        required = (key for key, leaf in leaves.items() if leaf.required)
        object.__setattr__(
            self, "required", tuple(key for key in required if not key.startswith(optional))
        )


FORMAT_VERSION_KEY: Final = "manifest_info.format_version"
FILE_VERSION_KEY: Final = "format_version"
"""Column 157 of revision 1.12. In memory its value is `manifest_info.format_version`."""

REVISION_1_12: Final = Revision(
    name="1.12",
    source="Iceberg Java 1.12.0",
    foreign={523: pa.int32(), 524: None, 525: None, 526: None},
    entry=_entry(
        _tracking(
            _leaf(
                5,
                "dv_snapshot_id",
                _LONG,
                "snapshot in which the deletion vector last changed",
                memory_name="modified_snapshot_id",
            )
        ),
        _manifest_info(
            _leaf(504, "added_files_count", _INT, "ADDED entries", required=True),
            _leaf(505, "existing_files_count", _INT, "EXISTING, MODIFIED entries", required=True),
            _leaf(506, "deleted_files_count", _INT, "DELETED entries", required=True),
            _leaf(520, "replaced_files_count", _INT, "REPLACED entries", required=True),
            _leaf(512, "added_rows_count", _LONG, "rows of ADDED entries", required=True),
            _leaf(513, "existing_rows_count", _LONG, "rows of EXISTING, MODIFIED", required=True),
            _leaf(514, "deleted_rows_count", _LONG, "rows of DELETED entries", required=True),
            _leaf(521, "replaced_rows_count", _LONG, "rows of REPLACED entries", required=True),
            _leaf(516, "min_sequence_number", _LONG, "least data sequence number", required=True),
            _leaf(522, "dv", _BINARY, "manifest deletion vector: every dead position so far"),
        ),
        version=_leaf(
            157, FILE_VERSION_KEY, _INT, "4, or 0 when carried over from v1–v3", required=True
        ),
        last=(
            _leaf(143, "referenced_file", _STRING, "data manifest a delete manifest belongs to"),
        ),
    ),
)
"""What Iceberg Java 1.12.0 reads."""

REVISION_2026_10: Final = Revision(
    name="2026-10",
    source="Iceberg's main branch, October 2026",
    foreign={520: None},
    entry=_entry(
        _tracking(_leaf(5, "modified_snapshot_id", _LONG, "snapshot that last modified the entry")),
        _manifest_info(
            _leaf(504, "added_files_count", _INT, "ADDED entries", required=True),
            _leaf(505, "existing_files_count", _INT, "EXISTING entries", required=True),
            _leaf(506, "deleted_files_count", _INT, "DELETED entries", required=True),
            _leaf(523, "replaced_files_count", _INT, "REPLACED entries", required=True),
            _leaf(525, "modified_files_count", _INT, "MODIFIED entries", required=True),
            _leaf(512, "added_rows_count", _LONG, "rows of ADDED entries", required=True),
            _leaf(513, "existing_rows_count", _LONG, "rows of EXISTING entries", required=True),
            _leaf(514, "deleted_rows_count", _LONG, "rows of DELETED entries", required=True),
            _leaf(524, "replaced_rows_count", _LONG, "rows of REPLACED entries", required=True),
            _leaf(526, "modified_rows_count", _LONG, "rows of MODIFIED entries", required=True),
            _leaf(516, "min_sequence_number", _LONG, "least data sequence number", required=True),
            _leaf(522, "dv", _BINARY, "manifest deletion vector: every dead position so far"),
            _leaf(521, "format_version", _INT, "4, or 0 for a leaf of v1–v3", required=True),
        ),
        version=None,
        last=(
            Field(
                id=COLUMN_FILES_ID,
                name=COLUMN_FILES,
                type=COLUMN_FILES_TYPE,
                element_id=159,
                doc="columns of the data file that are stored in files of their own",
            ),
        ),
    ),
)
"""Iceberg's sources and text after the entry structures were merged in October 2026."""

REVISIONS: Final[Mapping[str, Revision]] = {
    revision.name: revision for revision in (REVISION_1_12, REVISION_2026_10)
}
LATEST: Final = REVISION_2026_10
_FILE_VERSION_ID: Final = 157


def revision_of(top_level_ids: Collection[int]) -> Revision:
    """The revision of a manifest, by the ids of its top-level columns."""
    return REVISION_1_12 if _FILE_VERSION_ID in top_level_ids else REVISION_2026_10


LEAVES: Final[Mapping[str, Field]] = {
    **{key: leaf for key, leaf in REVISION_1_12.leaves.items() if key != FILE_VERSION_KEY},
    **REVISION_2026_10.leaves,
}
"""Key to declaration of every column that an `EntryBatch` may have, whatever the table."""

REQUIRED_KEYS: Final = REVISION_2026_10.required
"""Keys that every entry in memory has a value for."""

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
