"""Arrow values from Python's and numpy's, and back, without loading pandas.

pyarrow's own `pa.array`, `pa.scalar`, `pa.repeat` and `np.asarray(array)` import pandas wherever it
is installed, only to ask whether they were given one of its objects: a seventh of a second in every
new process. What is made here comes from buffers. Values and types that are not known here go to
pyarrow, so results and errors are the same.
"""

from __future__ import annotations

import datetime
import enum
from array import array as Array  # noqa: N812  (the module has an `array` of its own)
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from types import NoneType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from frazil import arrow_compute

_DATE_EPOCH = datetime.date(1970, 1, 1).toordinal()
_EPOCH = datetime.datetime(1970, 1, 1)
_UTC_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_LONG = 1_000
_INFERRED = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime.date: pa.date32(),
}
_NUMPY = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.uint8(): np.uint8,
    pa.uint16(): np.uint16,
    pa.uint32(): np.uint32,
    pa.uint64(): np.uint64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}
_CODES = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.uint8(): "B",
    pa.uint16(): "H",
    pa.uint32(): "I",
    pa.uint64(): "Q",
    pa.float32(): "f",
    pa.float64(): "d",
}
"""The physical values of a type as Python's own arrays hold them. An entry has about a hundred
columns of one value, for which numpy takes three times as long."""
_PYTHON: dict[pa.DataType, type] = {
    **{kind: int for kind in _NUMPY if pa.types.is_integer(kind)},
    pa.float32(): float,
    pa.float64(): float,
    pa.bool_(): bool,
    pa.string(): str,
    pa.binary(): bytes,
    pa.date32(): datetime.date,
}

Values = Sequence[Any] | np.ndarray[Any, np.dtype[Any]]


def array(
    values: Values,
    type: pa.DataType | None = None,
    *,
    mask: np.ndarray[Any, np.dtype[np.bool_]] | None = None,
) -> pa.Array:
    """`pa.array(values, type, mask)`; the mask is true where a value of numpy's is null."""
    if isinstance(values, np.ndarray):
        return _from_numpy(values, type, mask)
    if isinstance(values, list | tuple):
        kind = _inferred(values) if type is None else type
        if kind is not None:
            built = _from_list(values, kind)
            if built is not None:
                return built
    return pa.array(values, type)


def scalar(value: Any, type: pa.DataType | None = None) -> pa.Scalar:
    """`pa.scalar(value, type)`."""
    kind = _INFERRED.get(value.__class__) if type is None else type
    built = None if kind is None else _from_list([value], kind)
    return pa.scalar(value, type) if built is None else built[0]


_repeated: WeakValueDictionary[tuple[pa.DataType, int | str, int], pa.Array] = WeakValueDictionary()
"""Long columns of one value that are in use: a table of a million files has twenty for each
of its leaves, which are of one length."""


def repeat(value: pa.Scalar, count: int) -> pa.Array:
    """`pa.repeat(value, count)` for a scalar of Arrow's. Long columns that are equal are one."""
    if not value.is_valid:
        return pa.nulls(count, value.type)
    plain = value.as_py()
    if count < _LONG or not isinstance(plain, int | str):
        return _repeat(plain, value, count)
    key = (value.type, plain, count)
    cached = _repeated.get(key)
    if cached is None:
        cached = _repeated[key] = _repeat(plain, value, count)
    return cached


def _repeat(plain: Any, value: pa.Scalar, count: int) -> pa.Array:
    dtype = _NUMPY.get(value.type)
    if dtype is not None:
        return _from_numpy(np.full(count, plain, dtype=dtype))
    single = _from_list([plain], value.type)
    if single is None:
        return pa.repeat(value, count)
    return arrow_compute.take(single, _from_numpy(np.zeros(count, dtype=np.int64)))


def struct_array(
    children: Sequence[pa.Array],
    fields: Sequence[pa.Field],
    missing: np.ndarray[Any, np.dtype[np.bool_]] | None,
) -> pa.StructArray:
    """`pa.StructArray.from_arrays(children, fields=fields, mask=missing)`."""
    if missing is None:
        return pa.StructArray.from_arrays(children, fields=fields)
    kind = pa.struct(fields)
    return pa.Array.from_buffers(kind, missing.size, [_bits(~missing)], children=list(children))


def shared(column: pa.Array) -> pa.Array:
    """A column of whole numbers as it is or, if it is long and has one value in all rows, in the
    memory of others like it."""
    if len(column) < _LONG or column.null_count:
        return column
    values = to_numpy(column)
    return repeat(column[0], len(column)) if (values == values[0]).all() else column


def to_numpy(column: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[Any]]:
    """`np.asarray(column)`. The result may share the column's memory and be read-only."""
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return to_numpy(column.chunk(0))
        if column.null_count or not _has_numpy(column.type):
            return np.asarray(column)
        empty = np.zeros(0, dtype=_NUMPY.get(column.type, np.bool_))
        return np.concatenate([empty, *map(to_numpy, column.chunks)])
    if column.null_count or not _has_numpy(column.type):
        return np.asarray(column)
    data, start, rows = column.buffers()[1], column.offset, len(column)
    if pa.types.is_boolean(column.type):
        bits = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
        unpacked = np.unpackbits(bits, count=start + rows, bitorder="little")[start:]
        return unpacked.view(np.bool_)
    dtype = np.dtype(_NUMPY[column.type])
    if data is None or not rows:
        return np.zeros(rows, dtype=dtype)
    return np.frombuffer(data, dtype=dtype, count=rows, offset=start * dtype.itemsize)


def _has_numpy(kind: pa.DataType) -> bool:
    return kind in _NUMPY or pa.types.is_boolean(kind)


def _from_numpy(
    values: np.ndarray[Any, np.dtype[Any]],
    type: pa.DataType | None = None,
    mask: np.ndarray[Any, np.dtype[np.bool_]] | None = None,
) -> pa.Array:
    if values.ndim != 1 or values.dtype.kind not in "biuf" or not values.dtype.isnative:
        return pa.array(values, type, mask=mask)
    validity = None if mask is None else _bits(~mask)
    if values.dtype == np.bool_:
        built = pa.Array.from_buffers(pa.bool_(), values.size, [validity, _bits(values)])
    else:
        kind = pa.from_numpy_dtype(values.dtype)
        data = pa.py_buffer(np.ascontiguousarray(values))
        built = pa.Array.from_buffers(kind, values.size, [validity, data])
    return built if type is None or type == built.type else arrow_compute.cast(built, type)


def _bits(flags: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _inferred(values: Iterable[Any]) -> pa.DataType | None:
    kinds = {value.__class__ for value in values if value is not None}
    return _INFERRED.get(kinds.pop()) if len(kinds) == 1 else None


def _from_list(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """The values as an array of this type; None where pyarrow is to decide."""
    python = _PYTHON.get(kind)
    if python is None:
        python = _python_of(kind)
    classes = set(map(type, values))
    has_nulls = NoneType in classes
    classes.discard(NoneType)
    if python is None or not all(cls is python or _stands_for(cls, python) for cls in classes):
        return None
    validity = _bits(np.array([v is not None for v in values], np.bool_)) if has_nulls else None
    if python is dict:
        return _structs(values, kind, validity)
    if python is list:
        return _lists(values, kind, validity)
    if python in (str, bytes):
        return _texts(values, kind, validity)
    if python is bool:
        flags = _bits(np.array([value is True for value in values], dtype=np.bool_))
        return pa.Array.from_buffers(kind, len(values), [validity, flags])
    numbers = _numbers(values, kind)
    if numbers is None:
        return None
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(numbers)])


def _stands_for(given: type, python: type) -> bool:
    """Whether values of another class are taken as well. Days and moments may be numbers already,
    and enumerations of numbers are numbers."""
    if python in (datetime.date, datetime.datetime):
        return given is int
    return python is int and issubclass(given, enum.IntEnum)


def _python_of(kind: pa.DataType) -> type | None:
    if pa.types.is_struct(kind):
        return dict
    if pa.types.is_list(kind):
        return list
    return datetime.datetime if pa.types.is_timestamp(kind) and kind.unit == "us" else None


def _structs(
    values: Sequence[Any], kind: pa.DataType, validity: pa.Buffer | None
) -> pa.Array | None:
    children: list[pa.Array] = []
    for field in kind:
        inner = [None if value is None else value.get(field.name) for value in values]
        child = _from_list(inner, field.type)
        if child is None or (child.null_count and not field.nullable):
            return None
        children.append(child)
    return pa.Array.from_buffers(kind, len(values), [validity], children=children)


def _lists(values: Sequence[Any], kind: pa.DataType, validity: pa.Buffer | None) -> pa.Array | None:
    elements = [element for value in values if value is not None for element in value]
    child = _from_list(elements, kind.value_type)
    if child is None or (child.null_count and not kind.value_field.nullable):
        return None
    offsets = _offsets([len(value or ()) for value in values])
    if offsets is None:
        return None
    buffers = [validity, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, len(values), buffers, children=[child])


def _texts(values: Sequence[Any], kind: pa.DataType, validity: pa.Buffer | None) -> pa.Array | None:
    try:
        parts = [v.encode() if isinstance(v, str) else v or b"" for v in values]
    except UnicodeEncodeError:
        return None
    offsets = _offsets(map(len, parts))
    if offsets is None:
        return None
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(kind, len(parts), buffers)


def _offsets(lengths: Iterable[int]) -> Array[int] | None:
    """Where each value begins, and the end of the last; None if that is too far for 32 bits."""
    try:
        return Array("i", accumulate(lengths, initial=0))
    except OverflowError:
        return None


def _numbers(values: Sequence[Any], kind: pa.DataType) -> Array[Any] | None:
    """The physical values, 0 where null; None if one is out of range."""
    if pa.types.is_date32(kind):
        return _converted(values, lambda day: day.toordinal() - _DATE_EPOCH, "i")
    if pa.types.is_timestamp(kind):
        moments = [value for value in values if isinstance(value, datetime.datetime)]
        if any((moment.tzinfo is None) != (kind.tz is None) for moment in moments):
            return None  # pyarrow's rules for the other zone
        epoch = _EPOCH if kind.tz is None else _UTC_EPOCH
        return _converted(values, lambda moment: (moment - epoch) // _MICROSECOND, "q")
    return _converted(values, lambda number: number, _CODES[kind])


def _converted(
    values: Sequence[Any], convert: Callable[[Any], Any], code: str
) -> Array[Any] | None:
    try:
        numbers = [0 if v is None else v if type(v) is int else convert(v) for v in values]
        return Array(code, numbers)
    except OverflowError:
        return None


def first_rows(batches: Iterable[pa.RecordBatch], rows: int | None) -> Iterator[pa.RecordBatch]:
    """Batches of the first rows, or of all; no more batches are taken than are needed."""
    left = rows
    if left == 0:
        return
    for batch in batches:
        if left is not None:
            batch = batch.slice(0, left)
            left -= batch.num_rows
        if batch.num_rows:
            yield batch
        if left == 0:
            return
