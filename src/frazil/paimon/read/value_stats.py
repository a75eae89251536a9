"""Paimon's file statistics as the flat `content_stats` columns of an `EntryBatch`.

A stats row covers the columns that the entry lists, or that it wrote, or all of its own schema
version's: entries are grouped by that, each group is decoded in bulk, and the results are put
back in file order. Bounds are widened, never narrowed: what is not known for sure stays null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import FormatError, InvalidInput
from frazil.format.entries.fields import stats_key
from frazil.format.entries.stats import MAX_FIELD_ID
from frazil.format.values.types import arrow_type, is_floating, is_variable_length, promote
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import IcebergType, NestedField, PrimitiveType
from frazil.paimon.read import binary_row
from frazil.paimon.read.data_types import DataField
from frazil.paimon.read.table_schema import TableSchema
from frazil.value_classes import frozen

Columns = dict[str, pa.Array]
_SEPARATOR: Final = "\x00"
_ALL: Final = "\x01"


@frozen
class _Group:
    """Entries whose stats rows have the same layout."""

    rows: npt.NDArray[np.int64]
    fields: tuple[DataField, ...]
    schema: TableSchema


@frozen(eq=False)
class _Part:
    """What one group knows of one column, in group order."""

    lower: pa.Array
    upper: pa.Array
    nulls: pa.Array
    values: pa.Array


def content_stats(
    files: pa.Table,
    schemas: Mapping[int, TableSchema],
    schema: Schema,
    *,
    constants: Mapping[int, pa.Array] | None = None,
    exact: npt.NDArray[np.bool_] | None = None,
) -> Columns:
    """Flat statistics of live files, for the top-level primitive columns of an Iceberg schema.

    `schemas` are the versions that files were written in. `constants` gives, by field id, columns
    with the same value in all rows of a file (identity partitions): their bounds are that value.
    `exact` tells files whose every row is live; only their bounds can be called tight.
    """
    groups = list(_groups(files, schemas))
    decoded = [_decode(files.take(pa.array(group.rows)), group) for group in groups]
    order = pa.array(np.argsort(np.concatenate([g.rows for g in groups]), kind="stable"))
    counts = files["row_count"].combine_chunks()
    tightness = np.ones(files.num_rows, bool) if exact is None else exact
    columns: Columns = {}
    for field in schema.fields:
        if not isinstance(field.field_type, PrimitiveType) or field.field_id > MAX_FIELD_ID:
            continue
        constant = (constants or {}).get(field.field_id)
        if constant is not None:
            columns |= _constant_stats(field, constant, counts)
            continue
        parts = [
            _part(field, group, group_columns, counts.take(pa.array(group.rows)))
            for group, group_columns in zip(groups, decoded, strict=True)
        ]
        columns |= _column_stats(field, parts, order, tightness)
    return columns


def _groups(files: pa.Table, schemas: Mapping[int, TableSchema]) -> Iterator[_Group]:
    layouts = pc.coalesce(
        _joined(files["value_stats_cols"]), _joined(files["write_cols"]), pa.scalar(_ALL)
    )
    layouts = layouts.combine_chunks() if isinstance(layouts, pa.ChunkedArray) else layouts
    encoded = layouts.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    ids = files["schema_id"].to_numpy()
    pairs = np.stack([ids, codes]) if len(ids) else np.zeros((2, 0), np.int64)
    unique, inverse = np.unique(pairs, axis=1, return_inverse=True)
    for index, (schema_id, code) in enumerate(unique.T.tolist()):
        schema = schemas[schema_id]
        layout = encoded.dictionary[code].as_py()
        names = _names(layout)
        fields = schema.fields if names is None else schema.select(names)
        rows = np.flatnonzero(inverse.reshape(-1) == index)
        yield _Group(rows=rows, fields=fields, schema=schema)


def _joined(names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Name lists as one text each, so that equal layouts compare equal; null stays null."""
    return pc.binary_join(names, _SEPARATOR)


def _names(layout: str) -> Sequence[str] | None:
    if layout == _ALL:
        return None
    return layout.split(_SEPARATOR) if layout else ()


def _decode(files: pa.Table, group: _Group) -> dict[int, tuple[pa.Array, pa.Array, pa.Array]]:
    """By field id: lower bounds, upper bounds and null counts."""
    types = [field.type for field in group.fields]
    lower = binary_row.decode(files["value_min"], types)
    upper = binary_row.decode(files["value_max"], types)
    nulls = _null_counts(files["value_null_counts"].combine_chunks(), len(types))
    return {field.id: (lower[i], upper[i], nulls[i]) for i, field in enumerate(group.fields)}


def _null_counts(lists: pa.Array, arity: int) -> list[pa.Array]:
    """A null count column per stats column; null where an entry has no counts."""
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    has = lengths > 0
    if (has & (lengths != arity)).any():
        length = int(lengths[has & (lengths != arity)][0])
        raise FormatError(f"has {length} counts; expected {arity}", field="_NULL_COUNTS")
    flat = lists.drop_null().flatten() if lists.null_count else lists.flatten()
    starts = np.cumsum(np.where(has, arity, 0)) - np.where(has, arity, 0)
    columns = []
    for index in range(arity):
        at = pa.array(starts + index, pa.int64(), mask=~has)
        columns.append(flat.take(at) if len(flat) else pa.nulls(len(lists), pa.int64()))
    return columns


def _part(
    field: NestedField,
    group: _Group,
    decoded: Mapping[int, tuple[pa.Array, pa.Array, pa.Array]],
    row_counts: pa.Array,
) -> _Part:
    kind = arrow_type(field.field_type)
    size = len(group.rows)
    if field.field_id in decoded:
        lower, upper, nulls = decoded[field.field_id]
        lower, upper = _in_type(lower, field.field_type), _in_type(upper, field.field_type)
        has_nulls = pc.is_valid(nulls)
        values = pc.if_else(has_nulls, row_counts, pa.scalar(None, pa.int64()))
        return _Part(lower=lower, upper=upper, nulls=nulls, values=values)
    unknown = pa.nulls(size, kind)
    if any(item.id == field.field_id for item in group.schema.fields):
        nothing = pa.nulls(size, pa.int64())
        return _Part(lower=unknown, upper=unknown, nulls=nothing, values=nothing)
    # The column was added after the file was written: it is null in every row.
    return _Part(lower=unknown, upper=unknown, nulls=row_counts, values=row_counts)


def _in_type(values: pa.Array, kind: IcebergType) -> pa.Array:
    """Values in the column's present type; unknown when the change is not a widening."""
    try:
        return promote(values, kind)
    except InvalidInput:
        return pa.nulls(len(values), arrow_type(kind))


def _column_stats(
    field: NestedField,
    parts: Sequence[_Part],
    order: pa.Array,
    exact: npt.NDArray[np.bool_],
) -> Columns:
    def ordered(arrays: Sequence[pa.Array]) -> pa.Array:
        return pa.concat_arrays(arrays).take(order)

    kind = field.field_type
    lower = _widened(ordered([part.lower for part in parts]), kind, towards=-0.0)
    upper = _widened(ordered([part.upper for part in parts]), kind, towards=0.0)
    both = pc.and_(pc.is_valid(lower), pc.is_valid(upper))
    may_be_tight = not (is_floating(kind) or is_variable_length(kind))
    tight = pc.and_(both, pa.array(exact)) if may_be_tight else pa.array(np.zeros(len(exact), bool))
    columns: Columns = {}
    for name, values in (
        ("lower_bound", lower),
        ("upper_bound", upper),
        ("tight_bounds", tight),
        ("value_count", ordered([part.values for part in parts])),
        ("null_value_count", ordered([part.nulls for part in parts])),
    ):
        columns[stats_key(field.field_id, name)] = values
    return _without_unknown(field.field_id, columns)


def _widened(values: pa.Array, kind: IcebergType, *, towards: float) -> pa.Array:
    """Bounds of floats: NaN is none, and a zero of either sign covers both."""
    if not is_floating(kind):
        return values
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    numbers = np.where(numbers == 0, np.asarray(towards, numbers.dtype), numbers)
    missing = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
    return pa.array(numbers, values.type, mask=missing)


def _constant_stats(field: NestedField, values: pa.Array, counts: pa.Array) -> Columns:
    """Statistics of a column that has one value in each file."""
    kind = arrow_type(field.field_type)
    values = _in_type(values, field.field_type)
    is_nan = pc.is_nan(values) if is_floating(field.field_type) else None
    is_valid = pc.is_valid(values)
    nulls = pc.if_else(is_valid, pa.scalar(0, pa.int64()), counts)
    bounds = values if is_nan is None else pc.if_else(is_nan, pa.scalar(None, kind), values)
    stats = {
        "lower_bound": _widened(bounds, field.field_type, towards=-0.0),
        "upper_bound": _widened(bounds, field.field_type, towards=0.0),
        "tight_bounds": pc.and_(is_valid, pa.scalar(not is_floating(field.field_type))),
        "value_count": counts,
        "null_value_count": nulls,
    }
    columns = {stats_key(field.field_id, name): array for name, array in stats.items()}
    return _without_unknown(field.field_id, columns)


def _without_unknown(field_id: int, columns: Columns) -> Columns:
    """Leave out what no file knows; a column nothing is known of has no statistics at all."""
    known_columns = {key: array for key, array in columns.items() if array.null_count < len(array)}
    tight = stats_key(field_id, "tight_bounds")
    return {} if set(known_columns) <= {tight} else known_columns
