"""Where Paimon keeps things: directories of a table and the names of partition directories.

Data files are known by name only; their directory follows from partition and bucket. Directory
names are a rendering of values, not a record of them (null, empty and blank share one name), so
values never come from paths. A few types are rendered in ways that differ between writers; files
of such partitions are found by listing (`frazil.paimon.adoption.verify`). Reads no files.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from frazil.paimon.read.data_types import STRINGS, DataField, DataType, TypeName
from frazil.paimon.read.table_schema import TableSchema

POSTPONE_BUCKET: Final = -2
MAIN_BRANCH: Final = "main"
_EPOCH: Final = datetime.date(1970, 1, 1)
_ESCAPED: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")
_EXACT: Final = STRINGS | {
    *(TypeName.BOOLEAN, TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT),
    *(TypeName.DATE, TypeName.DECIMAL, TypeName.TIMESTAMP),
}


def schema_path(root: str, schema_id: int, branch: str | None = None) -> str:
    """The file of a schema version."""
    return f"{branch_root(root, branch)}/schema/schema-{schema_id}"


def snapshot_path(root: str, snapshot_id: int, branch: str | None = None) -> str:
    """The file of a snapshot."""
    return f"{branch_root(root, branch)}/snapshot/snapshot-{snapshot_id}"


def branch_root(root: str, branch: str | None) -> str:
    """Where a branch keeps schemas, snapshots and tags; its manifests and data are the table's."""
    return root if branch in (None, MAIN_BRANCH) else f"{root}/branch/branch-{branch}"


def manifest_path(root: str, name: str) -> str:
    """The file of a manifest, manifest list or index manifest."""
    return f"{root}/manifest/{name}"


def escape(text: str) -> str:
    """A name or value as Paimon writes it in a path."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def is_exact(type: DataType) -> bool:
    """Whether the rendering of a partition value is the same for every writer."""
    return type.name in _EXACT


def bucket_directories(
    schema: TableSchema, partitions: Sequence[pa.Array], buckets: Sequence[int]
) -> list[str]:
    """The directory of each (partition, bucket), relative to the table.

    `partitions` has one column per partition key, as long as `buckets`.
    """
    fields = schema.partition_fields
    values = [column.to_pylist() for column in partitions]
    prefix = "" if schema.data_directory is None else schema.data_directory.strip("/") + "/"
    directories = []
    for row, bucket in enumerate(buckets):
        parts = [
            f"{escape(field.name)}={escape(_rendered(schema, field, column[row]))}/"
            for field, column in zip(fields, values, strict=True)
        ]
        name = "postpone" if bucket == POSTPONE_BUCKET else str(bucket)
        directories.append(f"{prefix}{''.join(parts)}bucket-{name}")
    return directories


def _rendered(schema: TableSchema, field: DataField, value: Any) -> str:
    text = "" if value is None else _text(field.type, value, schema.legacy_partition_names)
    return text if text.strip() else schema.default_partition_name


def _text(type: DataType, value: Any, legacy: bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return _java_date_time(value) if legacy else _sql_date_time(value, type.precision)
    if isinstance(value, datetime.date):
        return str((value - _EPOCH).days) if legacy else value.isoformat()
    if isinstance(value, datetime.time):
        millis = (value.hour * 60 + value.minute) * 60_000 + value.second * 1000
        return str(millis + value.microsecond // 1000) if legacy else value.isoformat()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if type.name is TypeName.DECIMAL:
        return format(value, "f")
    return str(value)


def _java_date_time(value: datetime.datetime) -> str:
    """`java.time.LocalDateTime.toString`: seconds and fraction only when not zero."""
    text = value.strftime("%Y-%m-%dT%H:%M").rjust(16, "0")
    if value.microsecond:
        digits = f"{value.microsecond:06d}"
        fraction = digits[:3] if digits.endswith("000") else digits
        return f"{text}:{value.second:02d}.{fraction}"
    return f"{text}:{value.second:02d}" if value.second else text


def _sql_date_time(value: datetime.datetime, precision: int) -> str:
    """Date and time with as many fraction digits as the type has."""
    text = value.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
    fraction = f"{value.microsecond:06d}".ljust(9, "0")[:precision]
    return f"{text}.{fraction}" if fraction else text
