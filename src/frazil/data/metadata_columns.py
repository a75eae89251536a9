"""Columns that a reader can select in addition to the table's own, and finding columns by field id.

Metadata columns have reserved field ids, the same as in Iceberg, and names that start with `_`.
Two of them, the row lineage, say which row this is and which commit last changed it. A file may
store both (rows that moved keep their identity); where it does not, or holds null, a row's id
follows from the file's first row id and the row's position, and its sequence number is the file's.
A file without a first row id has neither. The other columns are computed while reading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.data.slices import DataFileSlice
from frazil.errors import InvalidInput
from frazil.format.entries import stats
from frazil.format.entries.fields import FILE_PATH
from frazil.format.vectors.puffin import POSITION_FIELD_ID
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import IntegerType, LongType, NestedField, StringType, StructType
from frazil.value_classes import replace

FILE: Final = NestedField(field_id=2147483646, name="_file", field_type=StringType(), required=True)
POS: Final = NestedField(
    field_id=POSITION_FIELD_ID, name="_pos", field_type=LongType(), required=True
)
SPEC_ID: Final = NestedField(field_id=2147483643, name="_spec_id", field_type=IntegerType())
PARTITION_ID: Final = 2147483642
DELETED_FILE_PATH: Final = NestedField(
    field_id=FILE_PATH, name="file_path", field_type=StringType(), required=True
)
DELETED_POS: Final = NestedField(
    field_id=2147483545, name="pos", field_type=LongType(), required=True
)
ROW_ID: Final = NestedField(field_id=stats.ROW_ID, name="_row_id", field_type=LongType())
LAST_UPDATED: Final = NestedField(
    field_id=stats.LAST_UPDATED_SEQUENCE_NUMBER,
    name="_last_updated_sequence_number",
    field_type=LongType(),
)

LINEAGE: Final = (ROW_ID, LAST_UPDATED)
METADATA_COLUMNS: Final = {
    field.name: field for field in (FILE, POS, SPEC_ID, ROW_ID, LAST_UPDATED)
}
"""Metadata columns by name; `_partition` depends on the table, see `partition_column`."""

RESERVED_IDS: Final = frozenset(
    {PARTITION_ID, *(field.field_id for field in METADATA_COLUMNS.values())}
)


def partition_column(specs: Iterable[PartitionSpec], schema: Schema) -> NestedField:
    """The `_partition` column of a table: the partition fields of all its specs, by field id.

    A field of an old spec whose source was dropped is left out: nothing says its type any more.
    """
    fields: dict[int, NestedField] = {}
    for spec in specs:
        for part in spec.fields:
            if part.source_id not in schema.field_ids:
                continue
            source = schema.find_field(part.source_id)
            fields[part.field_id] = NestedField(
                field_id=part.field_id,
                name=part.name,
                field_type=part.transform.result_type(source.field_type),
                required=False,
            )
    kind = StructType(*fields.values())
    return NestedField(field_id=PARTITION_ID, name="_partition", field_type=kind, required=False)


def with_columns(schema: Schema, extra: Iterable[NestedField]) -> Schema:
    """The schema with metadata columns after its own."""
    added = tuple(extra)
    clashes = {field.name for field in schema.fields} & {field.name for field in added}
    if clashes:
        raise InvalidInput(
            f"The table has columns named {', '.join(sorted(clashes))}; those names are reserved "
            "for metadata columns. Rename them to read both."
        )
    return Schema(*schema.fields, *added)


def covering(projected: Schema, table: Schema, needed: Collection[int]) -> Schema:
    """The schema asked for, widened to the columns that a filter or delete looks at.

    A column that holds a needed field the projection left out is taken whole.
    """
    missing = set(needed) - _all_ids(projected.fields)
    if not missing:
        return projected
    extra: dict[int, NestedField] = {}
    for field in (*table.fields, *METADATA_COLUMNS.values()):
        if missing & _all_ids((field,)):
            extra.setdefault(field.field_id, field)
    fields = [extra.pop(field.field_id, field) for field in projected.fields]
    return Schema(*fields, *extra.values())


def _all_ids(fields: Iterable[NestedField]) -> set[int]:
    ids: set[int] = set()
    for field in fields:
        ids.add(field.field_id)
        if isinstance(field.field_type, StructType):
            ids |= _all_ids(field.field_type.fields)
    return ids


def with_dropped(current: Schema, older: Iterable[Schema]) -> Schema:
    """The schema with the top-level columns that only older schemas had.

    Equality deletes may compare columns that were dropped since. A dropped column whose name is
    taken again goes by name and field id.
    """
    fields = {field.field_id: field for field in current.fields}
    names = {field.name for field in current.fields}
    for schema in older:
        for field in schema.fields:
            if field.field_id in fields:
                continue
            name = field.name if field.name not in names else f"{field.name}#{field.field_id}"
            names.add(name)
            fields[field.field_id] = replace(field, name=name, required=False)
    return Schema(*fields.values())


def path_of(schema: Schema, field_id: int) -> tuple[int, ...]:
    """Indices from the root of the schema, through structs, to a field."""
    path = _path(schema.fields, field_id)
    if path is None:
        raise InvalidInput(
            f"Field id {field_id} is not a column of the table, or is inside a list or map."
        )
    return path


def _path(fields: tuple[NestedField, ...], field_id: int) -> tuple[int, ...] | None:
    for index, field in enumerate(fields):
        if field.field_id == field_id:
            return (index,)
        if isinstance(field.field_type, StructType):
            below = _path(field.field_type.fields, field_id)
            if below is not None:
                return (index, *below)
    return None


def column_at(batch: pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    """The column at a path of indices; null where a struct on the way is null."""
    array = batch.column(path[0])
    return pc.struct_field(array, list(path[1:])) if len(path) > 1 else array


def with_lineage(schema: Schema) -> Schema:
    """The schema of rows that carry both lineage columns, for files that store them."""
    return with_columns(schema, LINEAGE)


def row_ids(stored: pa.Array, positions: npt.NDArray[np.int64], source: DataFileSlice) -> pa.Array:
    """`_row_id` of rows at these positions; `stored` is the file's own column, null where it is
    silent."""
    if source.first_row_id is None:
        return stored
    return with_defaults(stored, positions + source.first_row_id)


def with_defaults(stored: pa.Array, own: npt.NDArray[np.int64]) -> pa.Array:
    """A file's own column, with the values that follow from metadata where it is silent."""
    if stored.null_count == 0:
        return stored
    values = arrow_values.array(own, pa.int64())
    return values if stored.null_count == len(stored) else pc.coalesce(stored, values)


def last_updated(stored: pa.Array, source: DataFileSlice) -> pa.Array:
    """`_last_updated_sequence_number` of rows; `stored` as in `row_ids`."""
    if source.first_row_id is None or source.data_sequence_number is None:
        return stored
    return pc.fill_null(stored, pa.scalar(source.data_sequence_number, pa.int64()))


LINEAGE_IDS = (ROW_ID.field_id, LAST_UPDATED.field_id)
