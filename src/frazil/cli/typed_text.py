"""Text of files as values of a type. A value that does not fit is named with its line."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import InvalidInput

_ZONE: Final = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"
_TIME: Final = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?$"
_GUESSES: Final = (pa.int64(), pa.date32())


def fitted(
    column: pa.ChunkedArray | pa.Array,
    kind: pa.DataType,
    name: str,
    file: str,
    *,
    lines: int | None,
) -> pa.ChunkedArray | pa.Array:
    """Text in a type. `lines` is the line of the first value, None where lines mean nothing."""
    if pa.types.is_string(kind):
        return column
    try:
        return cast(column, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        at = _first_misfit(column, kind)
        where = "" if lines is None else f", line {lines + at}"
        problem = f"{column[at].as_py()!r} is not of type {kind}"
        raise InvalidInput(f"{file}{where}, column {name!r}: {problem}") from None


def guessed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as numbers or dates if all of it is, else as it is. Numbers that begin with a zero
    would lose it."""
    if pc.any(pc.match_substring_regex(column, "^0[0-9]")).as_py():
        return column
    for kind in _GUESSES:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return column


def is_time(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Which texts are a date with a time of day."""
    return pc.match_substring_regex(column, _TIME)


def has_zone(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Which texts of times say a zone."""
    return pc.match_substring_regex(column, _ZONE)


def cast(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Text in a type; an Arrow error if a value does not fit."""
    if not pa.types.is_timestamp(kind):
        return column.cast(kind)
    zoned = has_zone(column)
    if kind.tz is None:
        if pc.any(zoned).as_py():
            raise pa.ArrowInvalid("a time with a zone")
        return column.cast(kind)
    # A time that says no zone is one of UTC, as everywhere in Frazil.
    return pc.if_else(zoned, column, pc.binary_join_element_wise(column, "Z", "")).cast(kind)


def _first_misfit(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> int:
    """The first value that cannot be cast, by halves."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cast(column.slice(low, middle - low), kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            high = middle
        else:
            low = middle
    return low
