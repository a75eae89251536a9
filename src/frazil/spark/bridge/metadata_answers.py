"""What metadata alone answers of a scan: aggregates, statistics of columns, filters that files
already fulfil."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import partition_key, stats_key
from frazil.format.metadata.statistics_files import distinct_counts
from frazil.iceberg import types as ice
from frazil.iceberg.transforms import IdentityTransform
from frazil.iceberg.types import NestedField
from frazil.rows.scan import Scan
from frazil.scan.plan import COUNT_KEYS, FILE_KEYS, Plan
from frazil.spark.types.spark_values import COMPARABLE, catalyst_values

_COUNTS: Final = ("value_count", "null_value_count")
_BOUNDS: Final = ("lower_bound", "upper_bound", "tight_bounds")


def is_settled(scan: Scan) -> bool:
    """Whether every row of every file that a scan's filter leaves matches it."""
    return bool(scan.plan(keys=FILE_KEYS).count_mask().all())


def aggregates(scan: Scan, asked: Sequence[Sequence[Any]]) -> list[Any] | None:
    """Counts, least and greatest values of the matching rows; None where rows must be read."""
    columns = {str(name): _column(scan, str(name)) for _, *names in asked for name in names}
    if None in columns.values():
        return None
    keys = [key for field in columns.values() if field is not None for key in _keys(field)]
    plan = scan.plan(
        keys=COUNT_KEYS if scan.condition.is_everything else FILE_KEYS, extra_keys=keys
    )
    if not plan.count_mask().all():
        return None
    values = [
        _aggregate(plan, kind, *(columns[str(name)] for name in names)) for kind, *names in asked
    ]
    return None if any(value is _UNKNOWN for value in values) else values


def column_statistics(scan: Scan, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Nulls, least and greatest values and sizes of columns, as far as metadata tells."""
    fields = [field for name in names if (field := _column(scan, name)) is not None]
    keys = [key for field in fields for key in _keys(field)]
    plan = scan.plan(extra_keys=keys)
    return {field.name: _statistics(scan, plan, field) for field in fields}


def average_sizes(files: EntryBatch, fields: Sequence[NestedField]) -> dict[str, int]:
    """The bytes that a value of each text or binary column takes, where files say so."""
    records = files.numpy("record_count", missing=0)
    sizes = {}
    for field in fields:
        if _is_sized(field) and files.has(key := _size_key(field)):
            averages = files.numpy(key)
            known = averages >= 0
            weight = records[known].sum()
            if weight:
                sizes[field.name] = int((averages[known] * records[known]).sum() // weight)
    return sizes


def size_keys(fields: Sequence[NestedField]) -> list[str]:
    """Where files say how long the values of columns are."""
    return [_size_key(field) for field in fields if _is_sized(field)]


def _is_sized(field: NestedField) -> bool:
    return isinstance(field.field_type, ice.StringType | ice.BinaryType)


def _size_key(field: NestedField) -> str:
    return stats_key(field.field_id, "avg_value_size_in_bytes")


_UNKNOWN: Final = object()


def _column(scan: Scan, name: str) -> NestedField | None:
    """A column of the table, not a part of one."""
    return next((field for field in scan.table_schema.fields if field.name == name), None)


def _keys(field: NestedField) -> list[str]:
    if not field.field_type.is_primitive:
        return [stats_key(field.field_id, name) for name in _COUNTS]
    return [stats_key(field.field_id, name) for name in (*_COUNTS, *_BOUNDS)]


def _aggregate(plan: Plan, kind: str, field: NestedField | None = None) -> Any:
    rows = int(plan.live_records().sum())
    if kind == "count" and (field is None or field.required):
        return rows
    assert field is not None
    counts = [_column_of(plan.files, field, name) for name in _COUNTS]
    has_vector = pc.any(pc.is_valid(plan.files.column("deletion_vector.location"))).as_py()
    if has_vector or any(column.null_count for column in counts):
        return _UNKNOWN
    values, nulls = (column.to_numpy(zero_copy_only=False) for column in counts)
    if not np.array_equal(values, plan.files.numpy("record_count")):
        return _UNKNOWN
    if kind == "count":
        return int((values - nulls).sum())
    return _extreme(plan.files, field, kind, filled=nulls < values)


def _extreme(files: EntryBatch, field: NestedField, kind: str, *, filled: Any) -> Any:
    """The least or greatest value of files that have one; their bounds must be values of rows."""
    if not isinstance(field.field_type, COMPARABLE):
        return _UNKNOWN
    mask = pa.array(filled)
    bounds = _column_of(files, field, "lower_bound" if kind == "min" else "upper_bound").filter(
        mask
    )
    tight = _column_of(files, field, "tight_bounds").filter(mask)
    if bounds.null_count or not pc.all(pc.fill_null(tight, False), min_count=0).as_py():
        return _UNKNOWN
    return catalyst_values(_extreme_of(bounds, kind))[0]


def _extreme_of(bounds: pa.ChunkedArray, kind: str) -> pa.Array:
    extreme = pc.min(bounds) if kind == "min" else pc.max(bounds)
    return pa.array([extreme.as_py()], bounds.type)


def _statistics(scan: Scan, plan: Plan, field: NestedField) -> dict[str, Any]:
    files = plan.files
    statistics: dict[str, Any] = {}
    nulls = _column_of(files, field, "null_value_count")
    if not nulls.null_count:
        statistics["nulls"] = int(pc.sum(nulls, min_count=0).as_py())
    if field.field_type.is_primitive and isinstance(field.field_type, COMPARABLE):
        for name, kind in (("lower_bound", "min"), ("upper_bound", "max")):
            bounds = _column_of(files, field, name)
            if len(bounds) > bounds.null_count and not pa.types.is_null(bounds.type):
                statistics[kind] = catalyst_values(_extreme_of(bounds, kind))[0]
    distinct = _distinct(scan, files, field)
    if distinct is None:
        distinct = distinct_counts(scan._handle.metadata, scan.snapshot).get(field.field_id)
    if distinct is not None:
        statistics["distinct"] = min(distinct, int(plan.live_records().sum()))
    return statistics


def _distinct(scan: Scan, files: EntryBatch, field: NestedField) -> int | None:
    """The number of values of a column that all files are partitioned by."""
    spec = scan._handle.metadata.spec()
    part = next(
        (
            part
            for part in spec.fields
            if part.source_id == field.field_id and isinstance(part.transform, IdentityTransform)
        ),
        None,
    )
    if part is None or set(files.pylist("spec_id")) - {spec.spec_id}:
        return None
    values = files.column(partition_key(part.field_id))
    return len(pc.unique(values.drop_null()))


def _column_of(files: EntryBatch, field: NestedField, name: str) -> pa.ChunkedArray:
    return files.column(stats_key(field.field_id, name))
