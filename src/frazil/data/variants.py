"""Columns of variants: put together from shredded parts, made of other columns, shown as Python.

Parquet writers may keep parts of variants in columns of their own (`typed_value`), beside a
`value` with what does not fit them. `whole` gives what Iceberg has: a struct of metadata and value.
Types and bytes stay what they were; only a value that was shredded is encoded, in the type of its
column.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from frazil import arrow_values
from frazil.data.reshape import list_parts, null_mask, plain_values
from frazil.errors import FormatError
from frazil.format.values import variant
from frazil.format.values.types import STORAGE
from frazil.format.values.variant_type import has_marked, is_marked, parts_of

METADATA: Final = "metadata"
VALUE: Final = "value"
TYPED: Final = "typed_value"
_Bytes = bytes | None
Names = tuple[str, ...]


def holds_variants(kind: pa.DataType) -> bool:
    """Whether an Arrow type has the form of variants, whole or shredded."""
    if not pa.types.is_struct(kind):
        return False
    names = {field.name for field in kind}
    if not {METADATA} < names <= {METADATA, VALUE, TYPED}:
        return False
    return all(_is_binary(kind.field(name).type) for name in names - {TYPED})


def _is_binary(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def whole(array: pa.Array) -> pa.Array:
    """A column of variants as metadata and value, whatever its parts are."""
    kind = array.type
    metadata = array.field(kind.get_field_index(METADATA)).cast(pa.binary())
    if kind.get_field_index(TYPED) < 0:
        value = array.field(kind.get_field_index(VALUE)).cast(pa.binary())
    else:
        dictionaries = metadata.to_pylist()
        valid = array.is_valid().to_pylist()
        names = [
            _names(data) if ok and data is not None else ()
            for data, ok in zip(dictionaries, valid, strict=True)
        ]
        values = [
            _present(value) if ok else b""
            for value, ok in zip(_values(array, names), valid, strict=True)
        ]
        value = arrow_values.array(values, pa.binary())
    mask = null_mask(array)
    if mask is None and (metadata.null_count or value.null_count):
        raise FormatError("a variant has no metadata or no value")
    return pa.StructArray.from_arrays([metadata, value], fields=list(STORAGE), mask=mask)


def _present(value: _Bytes) -> bytes:
    """Nothing at all, which the specification allows nowhere but in objects, reads as null."""
    return variant.NULL if value is None else value


@lru_cache(maxsize=1024)
def _names(metadata: bytes) -> Names:
    return variant.field_names(metadata)


def _values(array: pa.Array, names: Sequence[Names]) -> list[_Bytes]:
    """The encoded values of a group of value and typed_value; None where the field is missing."""
    kind = array.type
    at, typed_at = kind.get_field_index(VALUE), kind.get_field_index(TYPED)
    rest = [None] * len(array) if at < 0 else array.field(at).to_pylist()
    if typed_at < 0:
        return rest
    typed = plain_values(array.field(typed_at))
    if pa.types.is_struct(typed.type):
        return _objects(typed, rest, names)
    parts = _arrays(typed, names) if _is_list(typed.type) else _primitives(typed)
    return [value if part is None else part for value, part in zip(rest, parts, strict=True)]


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _objects(typed: pa.Array, rest: list[_Bytes], names: Sequence[Names]) -> list[_Bytes]:
    fields = [
        (field.name, _values(plain_values(typed.field(at)), names))
        for at, field in enumerate(typed.type)
    ]
    values = list(rest)
    for row, is_object in enumerate(typed.is_valid().to_pylist()):
        if not is_object:
            continue
        row_names = names[row]
        parts = [
            (_number(row_names, name), name, part)
            for name, column in fields
            if (part := column[row]) is not None
        ]
        left = rest[row]
        if left is not None:
            if variant.basic_type(left) != variant.OBJECT:
                raise FormatError("a shredded object has a rest that is no object")
            shredded = {name for name, _ in fields}
            parts += [
                (number, row_names[number], part)
                for number, part in variant.object_fields(left)
                if number < len(row_names) and row_names[number] not in shredded
            ]
        values[row] = variant.object_of(parts)
    return values


def _number(names: Names, name: str) -> int:
    try:
        return names.index(name)
    except ValueError as error:
        raise FormatError(f"the metadata of a shredded variant lacks the name {name!r}") from error


def _arrays(typed: pa.Array, names: Sequence[Names]) -> list[_Bytes]:
    offsets, elements = list_parts(typed)
    ends = offsets.to_pylist()
    of_elements = [
        names[row] for row in range(len(typed)) for _ in range(ends[row + 1] - ends[row])
    ]
    items = [_present(item) for item in _values(plain_values(elements), of_elements)]
    return [
        variant.array_of(items[ends[row] : ends[row + 1]]) if is_array else None
        for row, is_array in enumerate(typed.is_valid().to_pylist())
    ]


def _primitives(typed: pa.Array) -> list[_Bytes]:
    encode, plain = _encoder(typed.type)
    return [None if value is None else encode(value) for value in plain(typed).to_pylist()]


_Encode = Callable[[Any], bytes]


def _encoder(kind: pa.DataType) -> tuple[_Encode, Callable[[pa.Array], pa.Array]]:
    """How values of an Arrow type are encoded, and what makes them plain numbers or bytes."""
    types = pa.types

    def numbers(column: pa.Array) -> pa.Array:
        if types.is_date32(kind):
            return column.cast(pa.int32())
        return column.cast(pa.int64())

    def same(column: pa.Array) -> pa.Array:
        return column

    if types.is_boolean(kind):
        return lambda value: variant.primitive(
            variant.TYPE_TRUE if value else variant.TYPE_FALSE, b""
        ), same
    whole_number = _WHOLE.get(kind)
    if whole_number is not None:
        return lambda value: variant.fixed_width(whole_number, value), numbers
    if types.is_timestamp(kind):
        number = _MOMENTS.get((kind.unit, kind.tz is not None))
        if number is not None:
            return lambda value: variant.fixed_width(number, value), numbers
    if types.is_float32(kind):
        return lambda value: variant.primitive(variant.TYPE_FLOAT, struct.pack("<f", value)), same
    if types.is_float64(kind):
        return lambda value: variant.primitive(variant.TYPE_DOUBLE, struct.pack("<d", value)), same
    if types.is_decimal(kind):
        return _decimals(kind), same
    if types.is_string(kind) or types.is_large_string(kind):
        return lambda value: variant.text_of_bytes(value), lambda column: column.cast(pa.binary())
    if _is_binary(kind):
        return lambda value: variant.primitive(
            variant.TYPE_BINARY, len(value).to_bytes(4, "little") + value
        ), same
    if types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return lambda value: variant.primitive(variant.TYPE_UUID, value), same
    raise FormatError(f"a variant is shredded as {kind}, which is no type of variants")


_WHOLE: Final = {
    pa.int8(): variant.TYPE_INT8,
    pa.int16(): variant.TYPE_INT16,
    pa.int32(): variant.TYPE_INT32,
    pa.int64(): variant.TYPE_INT64,
    pa.date32(): variant.TYPE_DATE,
    pa.time64("us"): variant.TYPE_TIME,
}
_MOMENTS: Final = {
    ("us", True): variant.TYPE_TIMESTAMPTZ,
    ("us", False): variant.TYPE_TIMESTAMP,
    ("ns", True): variant.TYPE_TIMESTAMPTZ_NS,
    ("ns", False): variant.TYPE_TIMESTAMP_NS,
}


def _decimals(kind: pa.DataType) -> _Encode:
    number, size = next(
        (number, size)
        for number, size, most in zip(variant.DECIMALS, (4, 8, 16), (9, 18, 38), strict=True)
        if kind.precision <= most
    )
    scale = bytes([kind.scale])

    def encode(value: Any) -> bytes:
        sign, digits, _ = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        return variant.primitive(number, scale + unscaled.to_bytes(size, "little", signed=True))

    return encode


# --- variants of other columns, and Python values ------------------------------------------------


def variants_of(array: pa.Array) -> pa.Array:
    """A column as variants: one that holds their parts, or values of any other type."""
    return whole(array) if holds_variants(array.type) else encoded(array.to_pylist())


def encoded(values: Sequence[Any]) -> pa.Array:
    """Python values as a column of variants; None is no value, not a variant that says null."""
    return arrow_values.array(
        [None if value is None else variant_row(value) for value in values], STORAGE
    )


def variant_row(value: Any) -> dict[str, bytes]:
    """A Python value as a row of `STORAGE`."""
    metadata, data = variant.encode(value)
    return {METADATA: metadata, VALUE: data}


def python_value(value: Any, field: pa.Field) -> Any:
    """What `to_pylist` gives for a field, with variants decoded."""
    if value is None:
        return None
    if is_marked(field):
        return variant.decode(value[METADATA], value[VALUE])
    kind = field.type
    if not has_marked(parts_of(kind)):
        return value
    if pa.types.is_struct(kind):
        return {part.name: python_value(value[part.name], part) for part in kind}
    if pa.types.is_map(kind):
        return [
            (python_value(key, kind.key_field), python_value(item, kind.item_field))
            for key, item in value
        ]
    return [python_value(item, kind.value_field) for item in value]


def python_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as dictionaries, with variants decoded."""
    objects: list[dict[str, Any]] = rows.to_pylist()
    marked = [field for field in rows.schema if has_marked([field])]
    for row in objects:
        for field in marked:
            row[field.name] = python_value(row[field.name], field)
    return objects


__all__ = [
    "encoded",
    "holds_variants",
    "python_rows",
    "python_value",
    "variant_row",
    "variants_of",
    "whole",
]
