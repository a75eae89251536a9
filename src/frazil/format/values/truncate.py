"""Shorter bounds of strings and bytes that are still bounds.

A lower bound is cut; an upper bound is cut and then rounded up to the next value of that length,
so that everything with the same beginning stays below it. Strings count code points, and UTF-8
order is code point order. Where nothing larger of that length exists there is no upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import pyarrow as pa

from frazil import arrow_compute as pc

Value = TypeVar("Value", str, bytes)
Column = TypeVar("Column", pa.Array, pa.ChunkedArray)

_LAST_CODE_POINT: Final = 0x10FFFF
_BEFORE_SURROGATES: Final = 0xD7FF
_AFTER_SURROGATES: Final = 0xE000


def truncate_lower(value: Value, length: int) -> Value:
    """The first `length` code points or bytes: not above the value."""
    return value[:length]


def truncate_upper(value: Value, length: int) -> Value | None:
    """At most `length`, and not below any value with the same beginning; None: there is none."""
    if len(value) <= length:
        return value
    return _incremented(value[:length])


def truncate_upper_bounds(column: Column, length: int) -> Column:
    """`truncate_upper` of every value of a string or binary column; null where there is none."""
    if isinstance(column, pa.ChunkedArray):
        chunks = [truncate_upper_bounds(chunk, length) for chunk in column.chunks]
        return pa.chunked_array(chunks, column.type)
    too_long = pc.greater(_measure(column.type)(column), length)
    if not pc.any(too_long, min_count=0).as_py():
        return column
    return pc.if_else(too_long, _round_up(column, length), column)


def _round_up(column: pa.Array, length: int) -> pa.Array:
    """Prefixes of `length`, rounded up; only values that are longer come out right.

    Last characters repeat, so each is incremented once; the few that cannot be are done alone.
    """
    cut = _slicer(column.type)
    head, last = cut(column, 0, length - 1), pc.dictionary_encode(cut(column, length - 1, length))
    lasts = last.dictionary.to_pylist()
    following = [_next(value) for value in lasts]
    rounded = pc.take(pa.array(following, column.type), last.indices)
    joined = pc.binary_join_element_wise(head, rounded, pa.scalar(lasts[0][:0], column.type))
    if None not in following:
        return joined
    stuck = pc.and_(pc.is_valid(column), pc.is_null(rounded))
    full = cut(pc.filter(column, stuck), 0, length)
    carried = [_incremented(value) for value in full.to_pylist()]
    return pc.replace_with_mask(joined, stuck, pa.array(carried, column.type))


def _incremented(prefix: Value) -> Value | None:
    """The least value that is above everything that begins with the prefix, or None."""
    for end in range(len(prefix), 0, -1):
        following = _next(prefix[end - 1 : end])
        if following is not None:
            return prefix[: end - 1] + following
    return None


def _next(last: Value) -> Value | None:
    """The next code point or byte value; None after the last one."""
    if isinstance(last, bytes):
        return last if not last else None if last == b"\xff" else bytes([last[0] + 1])
    if not last:
        return last
    point = ord(last)
    if point == _LAST_CODE_POINT:
        return None
    return chr(_AFTER_SURROGATES if point == _BEFORE_SURROGATES else point + 1)


def _slicer(kind: pa.DataType) -> Callable[..., Any]:
    cut: Callable[..., Any] = (
        pc.utf8_slice_codeunits if pa.types.is_string(kind) else pc.binary_slice
    )
    return cut


def _measure(kind: pa.DataType) -> Callable[..., Any]:
    size: Callable[..., Any] = pc.utf8_length if pa.types.is_string(kind) else pc.binary_length
    return size
