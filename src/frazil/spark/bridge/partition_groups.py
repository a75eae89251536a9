"""The partitions that the files of a plan lie in, so that Spark can join without a shuffle.

Files of several specs are grouped by the partition fields that all of these specs have. A field
takes part if the query reads its column, which is not part of another one, and if Spark compares
its values as the table does. Truncated values take no part: Spark joins by transforms of a column
alone and a number of buckets, and ignores all fields of a partitioning with any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import partition_key
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    YearTransform,
)
from frazil.iceberg.types import BinaryType
from frazil.rows.planned import Planned
from frazil.spark.types.spark_values import COMPARABLE, catalyst_values
from frazil.tree.partition_tuples import PartitionColumn, PartitionColumns
from frazil.value_classes import frozen

_NAMES = {
    IdentityTransform: "identity",
    BucketTransform: "bucket",
    YearTransform: "years",
    MonthTransform: "months",
    DayTransform: "days",
    HourTransform: "hours",
}
_Part = tuple[int, str]
"""What a partition field is, in whichever spec: its column and its transform."""


@frozen
class PartitionGroups:
    """Transforms of columns, their distinct values, and which of these each file has."""

    fields: Sequence[Mapping[str, Any]]
    keys: Sequence[Sequence[Any]]
    of_files: npt.NDArray[np.int32]

    @staticmethod
    def of(planned: Planned, columns: Schema, *, only: Sequence[str] | None) -> PartitionGroups:
        """The groups of a plan by columns that are read; by the fields of an earlier one if
        given, as the plan of one query keeps its groups when it is narrowed."""
        specs = _specs(planned)
        parts = _fields(specs, columns)
        shared = [part for part, fields in parts.items() if len(fields) == len(specs)]
        described = {_text(part): fields for part, fields in parts.items()}
        names = [_text(part) for part in shared] if only is None else list(only)
        values = [_values(planned, described[name]) for name in names]
        keys, of_files = _distinct(values, planned.num_files)
        fields = [_described(planned, described[name], name) for name in names]
        return PartitionGroups(fields=fields, keys=keys, of_files=of_files)

    @property
    def document(self) -> dict[str, Any]:
        """What the Java side is told, besides the group of each file."""
        return {"fields": self.fields, "keys": self.keys}


def _specs(planned: Planned) -> list[PartitionSpec]:
    """The specs of the files. Without files all specs: a plan that was narrowed to nothing keeps
    the fields of the plan before, which the table's current spec may lack."""
    metadata = planned.scan._handle.metadata
    used = set(np.unique(planned.plan.files.numpy("spec_id", missing=0)).tolist())
    specs = [spec for spec in metadata.partition_specs if spec.spec_id in used]
    return specs or list(metadata.partition_specs)


def _fields(
    specs: Sequence[PartitionSpec], columns: Schema
) -> dict[_Part, dict[int, PartitionField]]:
    """What Spark can compare, with the field of each spec that has it."""
    parts: dict[_Part, dict[int, PartitionField]] = {}
    for spec in specs:
        for field in spec.fields:
            if _is_comparable(field, columns):
                part = (field.source_id, str(field.transform))
                parts.setdefault(part, {})[spec.spec_id] = field
    return parts


def _is_comparable(field: PartitionField, columns: Schema) -> bool:
    transform = type(field.transform)
    known = {column.field_id: column.field_type for column in columns.fields}
    if transform not in _NAMES or field.source_id not in known:
        return False
    kind = known[field.source_id]
    is_hashed = isinstance(kind, BinaryType) and transform is BucketTransform
    return isinstance(kind, COMPARABLE) or is_hashed


def _values(planned: Planned, part: Mapping[int, PartitionField]) -> pa.ChunkedArray:
    """The value of each file. An entry may lack its tuple: its value then comes from statistics,
    which are read only where a value is missing."""
    files = planned.plan.files
    keys = {spec: partition_key(field.field_id) for spec, field in part.items()}
    if any(files.column(key).null_count for key in set(keys.values())):
        columns = PartitionColumns.of(planned.scan._handle.metadata)
        known = {spec: _column(columns.of_spec(spec), key) for spec, key in keys.items()}
        stats = [key for column in known.values() for key in column.stats_keys]
        files = _with_stats(planned, stats)
        return _by_spec(files, {spec: column.values for spec, column in known.items()})
    return _by_spec(files, {spec: _reader(key) for spec, key in keys.items()})


def _column(columns: Sequence[PartitionColumn], key: str) -> PartitionColumn:
    return next(column for column in columns if column.key == key)


def _reader(key: str) -> Callable[[EntryBatch], pa.ChunkedArray]:
    return lambda files: files.column(key)


def _with_stats(planned: Planned, keys: Sequence[str]) -> EntryBatch:
    files = planned.scan.plan(extra_keys=keys).files
    rows = {location: row for row, location in enumerate(files.pylist("location"))}
    return files.take(np.array([rows[path] for path in planned.plan.files.pylist("location")]))


def _by_spec(
    files: EntryBatch, readers: Mapping[int, Callable[[EntryBatch], pa.ChunkedArray]]
) -> pa.ChunkedArray:
    if len(readers) == 1:
        return next(iter(readers.values()))(files)
    specs = files.numpy("spec_id", missing=0)
    rows = {spec: np.flatnonzero(specs == spec) for spec in readers}
    parts = [reader(files.take(rows[spec])) for spec, reader in readers.items()]
    kind = next((part.type for part in parts if not pa.types.is_null(part.type)), pa.null())
    joined = pa.chunked_array([chunk for part in parts for chunk in part.cast(kind).chunks], kind)
    order = np.argsort(np.concatenate(list(rows.values())), kind="stable")
    return joined.take(pa.array(order))


def _distinct(
    values: Sequence[pa.ChunkedArray], files: int
) -> tuple[list[list[Any]], npt.NDArray[np.int32]]:
    """Distinct tuples in the order of their first file, and the number of each file's tuple."""
    numbers = np.zeros(files, np.int64)
    for column in values:
        if pa.types.is_null(column.type):
            continue
        encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Numbered anew for each column, so that products stay below the number of files squared.
        numbers = np.unique(numbers * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
    _, first, numbers = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    firsts = pa.array(first[order])
    columns = [catalyst_values(column.take(firsts)) for column in values]
    keys = [list(key) for key in zip(*columns, strict=True)] if values else [[]] * len(order)
    return keys, places[numbers]


def _text(part: _Part) -> str:
    return f"{part[0]} {part[1]}"


def _described(planned: Planned, part: Mapping[int, PartitionField], key: str) -> dict[str, Any]:
    field = next(iter(part.values()))
    transform = field.transform
    name = planned.scan.table_schema.find_field(field.source_id).name
    width = getattr(transform, "num_buckets", None)
    document = {
        "key": key,
        "transform": _NAMES[type(transform)],
        "name": name,
        "columns": [f"`{name.replace('`', '``')}`"],
    }
    return document if width is None else {**document, "width": width}
