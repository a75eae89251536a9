"""Bounds of the fields inside variants: objects whose names are paths, as Iceberg writes them.

A path is a normalized JSON path (`$['price']`, `$['a']['b']`; `$` for values that are no object).
It has a bound if all of its values are of one kind: whole numbers and decimals, floating-point
numbers, text, dates, or times. Nulls and rows without the field do not count; fields inside arrays
have none. A path that has no bound is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from frazil.errors import FormatError
from frazil.format.values import variant
from frazil.format.values.truncate import truncate_lower, truncate_upper

Bounds = Mapping[str, Any]
"""The least, or the greatest, values by path."""
Row = Mapping[str, bytes]
"""Metadata and value."""
MAX_PATHS: Final = 200
"""Paths of one column that have bounds: those that are seen first."""
MAX_STEPS: Final = 8
"""Names in a path."""
ROOT: Final = "$"

_EXACT, _FLOATING, _TEXT, _DATE, _NAIVE, _ZONED = range(6)
_KINDS: Final = {
    **dict.fromkeys((*variant.INTEGERS, *variant.DECIMALS), _EXACT),
    variant.TYPE_DOUBLE: _FLOATING,
    variant.TYPE_FLOAT: _FLOATING,
    variant.TYPE_STRING: _TEXT,
    variant.TYPE_DATE: _DATE,
    variant.TYPE_TIMESTAMP: _NAIVE,
    variant.TYPE_TIMESTAMPTZ: _ZONED,
}


def path_text(names: Sequence[str]) -> str:
    """The normalized JSON path of a field."""
    return ROOT + "".join(f"['{_quoted(name)}']" for name in names)


def _quoted(name: str) -> str:
    escaped = json.dumps(name, ensure_ascii=False)[1:-1]
    return escaped.replace('\\"', '"').replace("'", "\\'")


def kind_of(value: Any) -> int | None:
    """Which values a bound may be compared with; None for what has no bounds."""
    match value:
        case bool():
            return None
        case int() | Decimal():
            return _EXACT
        case float():
            return _FLOATING if value == value else None
        case str():
            return _TEXT
        case datetime():
            return _NAIVE if value.tzinfo is None else _ZONED
        case date():
            return _DATE
    return None


class VariantBounds:
    """The bounds of the values of one column of a file."""

    def __init__(self, length: int | None) -> None:
        self._length = length
        self._ends: dict[tuple[str, ...], tuple[int, Any, Any] | None] = {}
        """Kind, least and greatest value by path; None for paths that have no bounds."""
        self._is_damaged = False

    def update(self, column: pa.Array | pa.ChunkedArray) -> None:
        """Count more variants."""
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        for chunk in chunks:
            metadata, values = (chunk.field(at).to_pylist() for at in (0, 1))
            for names, value, valid in zip(
                metadata, values, chunk.is_valid().to_pylist(), strict=True
            ):
                if valid and not self._is_damaged:
                    self._row(names, value)

    def _row(self, metadata: bytes, value: bytes) -> None:
        try:
            self._value(_names(metadata), value, ())
        except FormatError:  # reading the value says so
            self._is_damaged = True

    def _value(self, names: tuple[str, ...], value: bytes, path: tuple[str, ...]) -> None:
        basic = variant.basic_type(value)
        if basic == variant.OBJECT:
            self._exclude(path)
            if len(path) < MAX_STEPS:
                for number, part in variant.object_fields(value):
                    self._value(names, part, (*path, _name(names, number)))
            return
        kind = None if basic == variant.ARRAY else _KINDS.get(variant.primitive_type(value) or 0)
        if kind is None:
            if value[0] != variant.TYPE_NULL:
                self._exclude(path)
            return
        if path in self._ends:
            ends = self._ends[path]
            if ends is None:
                return
            self._widen(path, ends, kind, variant.decoded(names, value))
        elif len(self._ends) < MAX_PATHS:
            values = variant.decoded(names, value)
            self._ends[path] = None if kind_of(values) != kind else (kind, values, values)

    def _exclude(self, path: tuple[str, ...]) -> None:
        if path in self._ends or len(self._ends) < MAX_PATHS:
            self._ends[path] = None

    def _widen(
        self, path: tuple[str, ...], ends: tuple[int, Any, Any], kind: int, value: Any
    ) -> None:
        bound, low, high = ends
        if bound != kind or kind_of(value) != kind:
            self._ends[path] = None
        elif value < low:
            self._ends[path] = kind, value, high
        elif value > high:
            self._ends[path] = kind, low, value

    def finish(self) -> tuple[Row | None, Row | None]:
        """The lower and the upper bound; None where no path has one."""
        lower: dict[str, Any] = {}
        upper: dict[str, Any] = {}
        for path, ends in self._ends.items():
            if ends is None or self._is_damaged:
                continue
            kind, low, high = ends
            if kind == _TEXT and self._length is not None:
                low, high = truncate_lower(low, self._length), truncate_upper(high, self._length)
            name = path_text(path)
            lower[name] = low
            if high is not None:
                upper[name] = high
        return encoded_bounds(lower), encoded_bounds(upper)


def _name(names: tuple[str, ...], number: int) -> str:
    if number >= len(names):
        raise FormatError(f"a variant refers to name {number}; its metadata has {len(names)}")
    return names[number]


@lru_cache(maxsize=1024)
def _names(metadata: bytes) -> tuple[str, ...]:
    return variant.field_names(metadata)


def encoded_bounds(bounds: Bounds) -> Row | None:
    """Bounds as metadata and value; None for none."""
    if not bounds:
        return None
    metadata, value = variant.encode(bounds)
    return {"metadata": metadata, "value": value}


def decoded_bounds(row: Row | None) -> Bounds | None:
    """Bounds by path; None where there are none, or they are not an object."""
    if row is None:
        return None
    try:
        bounds = variant.decoded(_names(row["metadata"]), row["value"])
    except FormatError:
        return None
    return bounds if isinstance(bounds, dict) else None


def bound_at(row: Row | None, path: str) -> Any:
    """The bound of one path; None where it is unknown."""
    if row is None:
        return None
    try:
        names = _names(row["metadata"])
        if path not in names or variant.basic_type(row["value"]) != variant.OBJECT:
            return None
        number = names.index(path)
        for field, part in variant.object_fields(row["value"]):
            if field == number:
                return variant.decoded(names, part)
    except FormatError:
        return None
    return None


def united(rows: Iterable[Row | None], *, upper: bool) -> Row | None:
    """The bound that encloses others: paths that all have, with values of one kind."""
    ends: dict[str, Any] | None = None
    for row in rows:
        bounds = decoded_bounds(row)
        if bounds is None:
            return None
        if ends is None:
            ends = {path: end for path, end in bounds.items() if kind_of(end) is not None}
            continue
        for path in list(ends):
            bound, end = ends[path], bounds.get(path)
            if kind_of(end) != kind_of(bound):
                del ends[path]
            elif end > bound if upper else end < bound:
                ends[path] = end
    return encoded_bounds(ends or {})


# --- as bytes, in versions before 4 --------------------------------------------------------------


def joined(column: pa.Array) -> pa.Array:
    """Bounds as Iceberg v3 has them in its maps: the value behind the metadata."""
    return pa.array(
        [None if row is None else row["metadata"] + row["value"] for row in column.to_pylist()],
        pa.binary(),
    )


def split(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same as metadata and value; what is not of this form is no bound."""
    return pa.array([None if raw is None else _split(raw) for raw in column.to_pylist()], kind)


def _split(raw: bytes) -> Row | None:
    try:
        size = variant.metadata_size(raw)
        if variant.value_size(raw, size) != len(raw) - size:
            return None
    except FormatError:
        return None
    return {"metadata": raw[:size], "value": raw[size:]}


__all__ = [
    "VariantBounds",
    "bound_at",
    "encoded_bounds",
    "joined",
    "kind_of",
    "path_text",
    "split",
    "united",
]
