"""Turning a column of one nested shape into another, without loss.

A `Plan` says, per node of the target type, where its values come from: the source as it is, the
source cast, children taken from elsewhere in the source, or a constant. Plans are made once per
input or file (`conform` matches by name, `project` by field id) and applied to every batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Keep:
    """The source column as it is."""

    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Cast:
    """The source column in another primitive type; a value that does not fit is an error."""

    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Fill:
    """The same value in every row, whatever the source."""

    value: pa.Scalar

    @property
    def type(self) -> pa.DataType:
        """Type of the value."""
        return self.value.type


@dataclass(frozen=True, slots=True)
class Made:
    """What a function makes of the source column."""

    type: pa.DataType
    make: Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct whose children come from children of the source struct, by index."""

    type: pa.DataType
    children: tuple[tuple[int | None, Plan], ...]


@dataclass(frozen=True, slots=True)
class List:
    """A list whose elements are reshaped."""

    type: pa.DataType
    element: Plan


@dataclass(frozen=True, slots=True)
class Map:
    """A map whose keys and values are reshaped."""

    type: pa.DataType
    key: Plan
    value: Plan


Plan = Keep | Cast | Fill | Made | Struct | List | Map


def simplified(plan: Plan, source: pa.DataType) -> Plan:
    """`Keep` when the plan changes nothing about a source of this type, else the plan."""
    if source != plan.type:
        return plan
    match plan:
        case Struct():
            as_is = all(
                index == at and isinstance(child, Keep)
                for at, (index, child) in enumerate(plan.children)
            )
        case List():
            as_is = isinstance(plan.element, Keep)
        case Map():
            as_is = isinstance(plan.key, Keep) and isinstance(plan.value, Keep)
        case _:
            as_is = False
    return Keep(plan.type) if as_is else plan


def reshape(plan: Plan, array: pa.Array | None, length: int) -> pa.Array:
    """The column that the plan makes of a source column; `array` is None only for `Fill`.

    Raises pyarrow's errors for a value that does not fit its new type.
    """
    if isinstance(plan, Fill):
        return arrow_values.repeat(plan.value, length)
    if array is None:
        raise AssertionError("only a constant has no source column")
    match plan:
        case Keep():
            return array
        case Cast():
            return pc.cast(plain_values(array), plan.type)
        case Made():
            return plan.make(plain_values(array))
        case Struct():
            return _struct(plan, plain_values(array))
        case List():
            return _list(plan, plain_values(array))
        case Map():
            return _map(plan, plain_values(array))


def plain_values(array: pa.Array) -> pa.Array:
    """The values without extension type, dictionary or run-length encoding."""
    if isinstance(array, pa.ExtensionArray):
        return plain_values(array.storage)
    if pa.types.is_dictionary(array.type):
        return plain_values(_taken(plain_values(array.dictionary), array.indices))
    if pa.types.is_run_end_encoded(array.type):
        return plain_values(pc.run_end_decode(array))
    return array


def _taken(values: pa.Array, indices: pa.Array) -> pa.Array:
    """Values by index; Arrow takes none from views, which polars keeps its categories in."""
    kind = values.type
    if kind == pa.string_view():
        values = pc.cast(values, pa.large_string())
    elif kind == pa.binary_view():
        values = pc.cast(values, pa.large_binary())
    return pc.take(values, indices)


def _struct(plan: Struct, array: pa.StructArray) -> pa.Array:
    children = [
        reshape(child, None if index is None else array.field(index), len(array))
        for index, child in plan.children
    ]
    return pa.StructArray.from_arrays(children, fields=list(plan.type), mask=null_mask(array))


def _list(plan: List, array: pa.Array) -> pa.Array:
    offsets, values = list_parts(array)
    element = reshape(plan.element, values, len(values))
    return pa.ListArray.from_arrays(offsets, element, type=plan.type, mask=null_mask(array))


def _map(plan: Map, array: pa.Array) -> pa.Array:
    offsets, pairs = list_parts(array)
    keys = reshape(plan.key, pairs.field(0), len(pairs))
    values = reshape(plan.value, pairs.field(1), len(pairs))
    return pa.MapArray.from_arrays(offsets, keys, values, type=plan.type, mask=null_mask(array))


def list_parts(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Offsets from zero and the elements of the non-null lists; a map's elements are its pairs."""
    if pa.types.is_map(array.type):
        pair = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
        array = pc.cast(array, pa.list_(pair))
    lengths = arrow_values.to_numpy(
        pc.fill_null(pc.list_value_length(array), arrow_values.scalar(0, pa.int32()))
    )
    offsets = np.zeros(len(array) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    # Arrow makes no empty array of an extension type, as flatten does for lists of nothing.
    elements = array.flatten() if offsets[-1] else array.values.slice(0, 0)
    return pc.cast(arrow_values.array(offsets, pa.int64()), pa.int32()), elements


def null_mask(array: pa.Array) -> pa.Array | None:
    """Where an array is null; None for nowhere."""
    return pc.is_null(array) if array.null_count else None


def record_batch(columns: list[pa.Array], schema: pa.Schema, num_rows: int) -> pa.RecordBatch:
    """A batch of these columns; keeps the row count when there are none."""
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    rows = arrow_values.array([{}] * num_rows, pa.struct([]))
    return pa.RecordBatch.from_struct_array(rows)


def without_nulls_below(array: pa.Array, field: pa.Field) -> pa.Array:
    """The column with no null inside required children, where a parent is null.

    Arrow's Parquet writer refuses a required child with nulls even when every one of them lies
    under a null parent and is never written. Such slots get whatever bytes lie beneath.
    """
    if not _nested_required(field.type):
        return array
    return _filled(array, field)


def _nested_required(arrow: pa.DataType) -> bool:
    children = [arrow.field(index) for index in range(arrow.num_fields)]
    return any(
        (pa.types.is_struct(arrow) and not child.nullable) or _nested_required(child.type)
        for child in children
    )


def _filled(array: pa.Array, field: pa.Field) -> pa.Array:
    arrow = field.type
    mask = None if not field.nullable else null_mask(array)
    if pa.types.is_struct(arrow):
        children = [_filled(array.field(i), arrow.field(i)) for i in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=mask)
    if pa.types.is_list(arrow):
        offsets, values = list_parts(array)
        values = _filled(values, arrow.value_field)
        return pa.ListArray.from_arrays(offsets, values, type=arrow, mask=mask)
    if pa.types.is_map(arrow):
        offsets, pairs = list_parts(array)
        keys = _filled(pairs.field(0), arrow.key_field)
        items = _filled(pairs.field(1), arrow.item_field)
        return pa.MapArray.from_arrays(offsets, keys, items, type=arrow, mask=mask)
    if field.nullable or not array.null_count:
        return array
    buffers: list[Any] = [None, *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers, 0, array.offset)
