"""Delete files: equality deletes written and read, position deletes of v2 tables read.

Deletion vectors are not here: they live in Puffin files (`format.vectors.puffin`). Which delete
file applies to which data file is decided in `frazil.scan`.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import avro
from frazil.data.metadata_columns import DELETED_FILE_PATH, DELETED_POS, column_at, path_of
from frazil.data.read.equality import EqualityDeletes
from frazil.data.read.read_files import Reading, read_file
from frazil.data.schema import arrow_schema
from frazil.data.slices import DataFileSlice
from frazil.data.write.row_input import Rows, conformed
from frazil.data.write.write_files import write_rows
from frazil.data.write.write_options import WriteOptions
from frazil.errors import FormatError, InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.iceberg.partitioning import UNPARTITIONED, PartitionSpec
from frazil.iceberg.schema import Schema, prune_columns
from frazil.iceberg.types import VariantType
from frazil.properties.registry import DELETE_TARGET_FILE_SIZE, TARGET_FILE_SIZE
from frazil.storage import Storage
from frazil.value_classes import replace

if TYPE_CHECKING:
    from frazil.format.metadata.derived import DerivedColumn
    from frazil.iceberg.name_mapping import NameMapping

_POSITION_DELETES = Schema(DELETED_FILE_PATH, DELETED_POS)


def equality_schema(
    schema: Schema, equality_ids: Sequence[int], spec: PartitionSpec | None = None
) -> Schema:
    """The columns an equality delete file holds: those compared, and those its partition needs."""
    if not equality_ids:
        raise InvalidInput("An equality delete needs at least one column to compare.")
    for field_id in equality_ids:
        path_of(schema, field_id)
        kind = schema.find_field(field_id).field_type
        if not kind.is_primitive or isinstance(kind, VariantType):
            raise InvalidInput(
                f"Column '{schema.find_column_name(field_id)}' is a {kind}; equality deletes "
                "compare primitive columns only."
            )
    parts = () if spec is None else spec.fields
    sources = {source for part in parts for source in part.source_ids}
    return prune_columns(schema, {*equality_ids, *sources})


def write_equality_deletes(
    rows: Rows,
    *,
    storage: Storage,
    location: str,
    schema: Schema,
    equality_ids: Sequence[int],
    write_id: uuid.UUID,
    spec: PartitionSpec = UNPARTITIONED,
    derived: Sequence[DerivedColumn] = (),
    properties: Mapping[str, str] | None = None,
    written: list[str] | None = None,
) -> EntryBatch:
    """Write rows whose equals are to be deleted, and describe the files.

    With an unpartitioned spec the deletes apply to the whole table, otherwise each file to its
    partition; the rows then need the partition's source columns as well.
    """
    columns = equality_schema(schema, equality_ids, spec)
    table_properties = dict(properties or {})
    table_properties[TARGET_FILE_SIZE.key] = str(DELETE_TARGET_FILE_SIZE.of(table_properties))
    return write_rows(
        conformed(rows, columns),
        storage=storage,
        location=location,
        schema=columns,
        spec=spec,
        write_id=write_id,
        derived=derived,
        properties=table_properties,
        options=WriteOptions.from_properties(table_properties),
        content=ContentType.EQUALITY_DELETES,
        equality_ids=equality_ids,
        written=written,
    )


def read_equality_deletes(
    source: DataFileSlice,
    equality_ids: Sequence[int],
    *,
    storage: Storage,
    schema: Schema,
    name_mapping: NameMapping | None = None,
) -> EqualityDeletes:
    """The rows of an equality delete file, ready to be matched.

    `schema` has every compared column, dropped ones too (`columns.with_dropped`).
    """
    columns = _all_optional(equality_schema(schema, equality_ids))
    reading = Reading(
        storage=storage, schema=columns, table_schema=columns, name_mapping=name_mapping
    )
    batches = list(read_file(source, reading))
    paths = [path_of(columns, field_id) for field_id in equality_ids]
    names = [str(field_id) for field_id in equality_ids]
    if not batches:
        empty = pa.RecordBatch.from_pylist([], arrow_schema(columns))
        batches = [empty]
    tables = [
        pa.RecordBatch.from_arrays([column_at(batch, path) for path in paths], names=names)
        for batch in batches
    ]
    return EqualityDeletes(tuple(equality_ids), pa.Table.from_batches(tables))


def _all_optional(schema: Schema) -> Schema:
    return Schema(*(replace(field, required=False) for field in schema.fields))


def read_position_deletes(
    source: DataFileSlice, *, storage: Storage, paths: Collection[str] | None = None
) -> dict[str, npt.NDArray[np.int64]]:
    """Deleted positions by data file, ascending, from a position delete file of a v2 table.

    Data files go by the path the delete file gives them; `paths` names those of interest.
    """
    targets = None if paths is None else pa.array(sorted(paths), pa.string())
    by_path: dict[str, list[npt.NDArray[np.int64]]] = {}
    for batch in _position_deletes(source, storage):
        if targets is not None:
            batch = batch.filter(pc.is_in(batch.column(0), value_set=targets))
        for path, positions in _by_path(batch):
            by_path.setdefault(path, []).append(positions)
    return {path: np.unique(np.concatenate(parts)) for path, parts in by_path.items()}


def _position_deletes(source: DataFileSlice, storage: Storage) -> Iterable[pa.RecordBatch]:
    """Paths and positions. Avro is decoded as manifests are, which is quicker than by row."""
    if source.file_format.lower() != "avro":
        reading = Reading(storage=storage, schema=_POSITION_DELETES, table_schema=_POSITION_DELETES)
        return read_file(source, reading)
    fields = _POSITION_DELETES.fields
    data = storage.read(source.path)
    deletes = avro.decode(
        data, {(field.field_id,) for field in fields}, path=source.path, limits=storage.limits
    )
    columns = [deletes.arrays.get((field.field_id,)) for field in fields]
    if deletes.num_rows and any(column is None or column.null_count for column in columns):
        raise FormatError("a position delete without path or position", path=source.path)
    if not deletes.num_rows:
        return []
    return [pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields])]


def _by_path(batch: pa.RecordBatch) -> Iterable[tuple[str, npt.NDArray[np.int64]]]:
    encoded: Any = batch.column(0).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    positions = batch.column(1).to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(encoded.dictionary)))
    for path, rows in zip(encoded.dictionary.to_pylist(), np.split(order, ends[:-1]), strict=True):
        yield path, positions[rows]
