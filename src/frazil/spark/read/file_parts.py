"""The files that Spark's Parquet reader opens in place of data files with column files.

Every column is read from the one file that has it. Where one file has all columns that are asked
for, it is read alone; the Java side joins several by the position of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from frazil.data.metadata_columns import FILE, LINEAGE_IDS, RESERVED_IDS
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField, UnknownType
from frazil.rows.duckdb.duckdb_parts import FilePart, parts_by_row
from frazil.rows.planned import Planned

Parts: TypeAlias = Mapping[int, tuple[FilePart, ...]]
"""Files by the row of a plan. The first of them gives the rows and their positions: the data file
if it is one of them."""
_MAX_READERS: Final = 64
"""Different sets of columns that files of a plan have; each takes the driver a reader."""


def is_stored(field: NestedField) -> bool:
    """Whether files may hold the column: row lineage, and everything that is neither a metadata
    column nor without any value."""
    if field.field_id in LINEAGE_IDS:
        return True
    return field.field_id not in RESERVED_IDS and not isinstance(field.field_type, UnknownType)


def file_parts(planned: Planned, asked: Schema) -> Parts:
    """The files of these columns, of data files with column files. Those that Spark should not
    join are left out."""
    stored = [column for column in asked.fields if is_stored(column)]
    needs_base = not stored or FILE.field_id in asked.field_ids
    found = {
        row: parts if parts[0].is_base else tuple(sorted(parts, key=_bytes, reverse=True))
        for row, parts in parts_by_row(planned, stored, needs_base=needs_base).items()
    }
    kinds = {tuple((part.is_own, part.ids) for part in parts) for parts in found.values()}
    return {} if sum(map(len, kinds)) > _MAX_READERS else found


def _bytes(part: FilePart) -> int:
    return part.source.file_size_in_bytes


__all__ = ["Parts", "file_parts", "is_stored"]
