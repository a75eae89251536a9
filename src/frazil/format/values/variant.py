"""The binary encoding of variants, as Parquet specifies it: decoded, encoded, and looked into.

A variant is a dictionary of field names (`metadata`) and a value that refers to them by number.
Python's values for the types: None, bool, int, float, str, bytes, Decimal, date, time, datetime,
UUID, dict and list; moments that a datetime cannot hold become numpy's datetime64.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np

from frazil.argument_checks import short_repr
from frazil.errors import FormatError, InvalidInput

MAX_DEPTH: Final = 200
"""Levels of objects and arrays: more than anybody nests, and fewer than Python's stack takes."""
EMPTY_METADATA: Final = b"\x01\x00\x00"
NULL: Final = b"\x00"
"""The value that says null; not the same as no value."""

_VERSION: Final = 1
_SORTED: Final = 0x10
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)

PRIMITIVE, SHORT_STRING, OBJECT, ARRAY = range(4)
(
    TYPE_NULL,
    TYPE_TRUE,
    TYPE_FALSE,
    TYPE_INT8,
    TYPE_INT16,
    TYPE_INT32,
    TYPE_INT64,
    TYPE_DOUBLE,
    TYPE_DECIMAL4,
    TYPE_DECIMAL8,
    TYPE_DECIMAL16,
    TYPE_DATE,
    TYPE_TIMESTAMPTZ,
    TYPE_TIMESTAMP,
    TYPE_FLOAT,
    TYPE_BINARY,
    TYPE_STRING,
    TYPE_TIME,
    TYPE_TIMESTAMPTZ_NS,
    TYPE_TIMESTAMP_NS,
    TYPE_UUID,
) = range(21)
INTEGERS: Final = (TYPE_INT8, TYPE_INT16, TYPE_INT32, TYPE_INT64)
DECIMALS: Final = (TYPE_DECIMAL4, TYPE_DECIMAL8, TYPE_DECIMAL16)
_SIZES: Final = {
    TYPE_NULL: 0,
    TYPE_TRUE: 0,
    TYPE_FALSE: 0,
    TYPE_INT8: 1,
    TYPE_INT16: 2,
    TYPE_INT32: 4,
    TYPE_INT64: 8,
    TYPE_DOUBLE: 8,
    TYPE_DECIMAL4: 5,
    TYPE_DECIMAL8: 9,
    TYPE_DECIMAL16: 17,
    TYPE_DATE: 4,
    TYPE_TIMESTAMPTZ: 8,
    TYPE_TIMESTAMP: 8,
    TYPE_FLOAT: 4,
    TYPE_TIME: 8,
    TYPE_TIMESTAMPTZ_NS: 8,
    TYPE_TIMESTAMP_NS: 8,
    TYPE_UUID: 16,
}


# --- the dictionary ------------------------------------------------------------------------------


def field_names(metadata: bytes) -> tuple[str, ...]:
    """The names that a value may refer to, by number."""
    if not metadata or metadata[0] & 0x0F != _VERSION:
        raise FormatError("a variant's metadata is not of version 1")
    size = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, size)
    first = 1 + size
    start = first + (count + 1) * size
    if count < 0 or start > len(metadata):
        raise FormatError(f"a variant's metadata has {len(metadata)} bytes and {count} names")
    names, begin = [], _number(metadata, first, size)
    for at in range(1, count + 1):
        end = _number(metadata, first + at * size, size)
        if not begin <= end <= len(metadata) - start:
            raise FormatError("the names in a variant's metadata overlap or end too late")
        names.append(_text(metadata[start + begin : start + end]))
        begin = end
    return tuple(names)


def metadata_size(metadata: bytes) -> int:
    """How many bytes the dictionary at the beginning takes."""
    if not metadata:
        raise FormatError("a variant's metadata has no bytes")
    size = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, size)
    ends = 1 + size + count * size
    return ends + size + _number(metadata, ends, size)


def metadata_of(names: Iterable[str]) -> bytes:
    """The dictionary of these names, in order."""
    encoded = sorted({name.encode() for name in names})
    if not encoded:
        return EMPTY_METADATA
    ends = [0]
    for name in encoded:
        ends.append(ends[-1] + len(name))
    size = _width(max(ends[-1], len(encoded)))
    header = _VERSION | _SORTED | ((size - 1) << 6)
    numbers = b"".join(end.to_bytes(size, "little") for end in (len(encoded), *ends))
    return bytes([header]) + numbers + b"".join(encoded)


# --- looking into values -------------------------------------------------------------------------


def basic_type(value: bytes) -> int:
    """Primitive, short string, object or array."""
    if not value:
        raise FormatError("a variant's value has no bytes")
    return value[0] & 3


def primitive_type(value: bytes) -> int | None:
    """The number of a primitive's type; short strings are strings, nested values None."""
    kind = basic_type(value)
    if kind == SHORT_STRING:
        return TYPE_STRING
    return value[0] >> 2 if kind == PRIMITIVE else None


def value_size(value: bytes, start: int = 0) -> int:
    """How many bytes the value that begins there takes."""
    header = _byte(value, start)
    kind, rest = header & 3, header >> 2
    if kind == SHORT_STRING:
        return 1 + rest
    if kind == PRIMITIVE:
        if rest in (TYPE_BINARY, TYPE_STRING):
            return 5 + _number(value, start + 1, 4)
        size = _SIZES.get(rest)
        if size is None:
            raise FormatError(f"a variant has a value of type {rest}, which is not known")
        return 1 + size
    parts = _parts(value, start)
    return parts.values + parts.size - start


class _Parts:
    """Where the parts of an object or an array lie."""

    __slots__ = ("count", "id_size", "ids", "offset_size", "offsets", "size", "values")

    def __init__(self, value: bytes, start: int) -> None:
        header = _byte(value, start)
        layout = header >> 2
        if header & 3 == OBJECT:
            self.id_size = ((layout >> 2) & 3) + 1
            is_large = layout & 0x10
        else:
            self.id_size = 0
            is_large = layout & 0x04
        self.offset_size = (layout & 3) + 1
        count_size = 4 if is_large else 1
        self.count = _number(value, start + 1, count_size)
        self.ids = start + 1 + count_size
        self.offsets = self.ids + self.count * self.id_size
        self.values = self.offsets + (self.count + 1) * self.offset_size
        if self.values > len(value):
            raise FormatError(f"a variant's value ends before its {self.count} parts")
        self.size = _number(value, self.values - self.offset_size, self.offset_size)
        if self.values + self.size > len(value):
            raise FormatError("the parts of a variant's value end too late")


_parts = _Parts


def object_fields(value: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """The numbers of an object's names, and the values below them."""
    parts = _parts(value, start)
    for at in range(parts.count):
        number = _number(value, parts.ids + at * parts.id_size, parts.id_size)
        yield number, _part(value, parts, at)


def array_items(value: bytes, start: int = 0) -> Iterator[bytes]:
    """The values of an array."""
    parts = _parts(value, start)
    for at in range(parts.count):
        yield _part(value, parts, at)


def _part(value: bytes, parts: _Parts, at: int) -> bytes:
    offset = _number(value, parts.offsets + at * parts.offset_size, parts.offset_size)
    begin = parts.values + offset
    if offset >= parts.size:
        raise FormatError("a part of a variant's value begins after its end")
    # A nested part says itself how far it goes; the offsets of an object are in no order.
    end = begin + value_size(value, begin)
    if end > parts.values + parts.size:
        raise FormatError("a part of a variant's value ends after it")
    return value[begin:end]


# --- decoding ------------------------------------------------------------------------------------


def decode(metadata: bytes, value: bytes) -> Any:
    """A variant as a Python value."""
    return decoded(field_names(metadata), value)


def decoded(names: Sequence[str], value: bytes, depth: int = 0) -> Any:
    """A value as Python has it, with the names of its dictionary."""
    if depth > MAX_DEPTH:
        raise FormatError(f"a variant has more than {MAX_DEPTH} levels")
    kind = basic_type(value)
    if kind == OBJECT:
        return {
            _name(names, number): decoded(names, part, depth + 1)
            for number, part in object_fields(value)
        }
    if kind == ARRAY:
        return [decoded(names, part, depth + 1) for part in array_items(value)]
    if len(value) < value_size(value):
        raise FormatError(f"a variant's value has {len(value)} bytes; expected {value_size(value)}")
    if kind == SHORT_STRING:
        return _text(value[1 : 1 + (value[0] >> 2)])
    return _DECODERS[value[0] >> 2](value)


def _name(names: Sequence[str], number: int) -> str:
    if number >= len(names):
        raise FormatError(f"a variant refers to name {number}; its metadata has {len(names)}")
    return names[number]


def _signed(value: bytes, start: int, size: int) -> int:
    return int.from_bytes(value[start : start + size], "little", signed=True)


def _decimal(value: bytes) -> Decimal:
    unscaled = _signed(value, 2, len(value) - 2)
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -value[1]))


def _date(value: bytes) -> Any:
    days = _signed(value, 1, 4)
    try:
        return date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        return np.datetime64(days, "D")


def _moment(value: bytes, epoch: datetime) -> Any:
    micros = _signed(value, 1, 8)
    try:
        return epoch + timedelta(microseconds=micros)
    except OverflowError:
        return np.datetime64(micros, "us")


def _nano_moment(value: bytes, epoch: datetime) -> Any:
    nanos = _signed(value, 1, 8)
    if nanos % 1000:
        return np.datetime64(nanos, "ns")
    return epoch + timedelta(microseconds=nanos // 1000)


def _time(value: bytes) -> time:
    micros = _signed(value, 1, 8)
    if not 0 <= micros < 86_400_000_000:
        raise FormatError(f"a variant's time is {micros} microseconds")
    return (_EPOCH + timedelta(microseconds=micros)).time()


_DECODERS: Final[dict[int, Callable[[bytes], Any]]] = {
    TYPE_NULL: lambda _: None,
    TYPE_TRUE: lambda _: True,
    TYPE_FALSE: lambda _: False,
    TYPE_INT8: lambda value: _signed(value, 1, 1),
    TYPE_INT16: lambda value: _signed(value, 1, 2),
    TYPE_INT32: lambda value: _signed(value, 1, 4),
    TYPE_INT64: lambda value: _signed(value, 1, 8),
    TYPE_DOUBLE: lambda value: struct.unpack_from("<d", value, 1)[0],
    TYPE_DECIMAL4: lambda value: _decimal(value[:6]),
    TYPE_DECIMAL8: lambda value: _decimal(value[:10]),
    TYPE_DECIMAL16: lambda value: _decimal(value[:18]),
    TYPE_DATE: _date,
    TYPE_TIMESTAMPTZ: lambda value: _moment(value, _EPOCH_UTC),
    TYPE_TIMESTAMP: lambda value: _moment(value, _EPOCH),
    TYPE_FLOAT: lambda value: struct.unpack_from("<f", value, 1)[0],
    TYPE_BINARY: lambda value: bytes(value[5 : 5 + _number(value, 1, 4)]),
    TYPE_STRING: lambda value: _text(value[5 : 5 + _number(value, 1, 4)]),
    TYPE_TIME: _time,
    TYPE_TIMESTAMPTZ_NS: lambda value: _nano_moment(value, _EPOCH_UTC),
    TYPE_TIMESTAMP_NS: lambda value: _nano_moment(value, _EPOCH),
    TYPE_UUID: lambda value: uuid.UUID(bytes=bytes(value[1:17])),
}


# --- encoding ------------------------------------------------------------------------------------


def encode(value: Any) -> tuple[bytes, bytes]:
    """A Python value as metadata and value."""
    names: set[str] = set()
    _collect_names(value, names, 0)
    ordered = sorted(names, key=str.encode)
    numbers = {name: at for at, name in enumerate(ordered)}
    return metadata_of(ordered), encoded(value, numbers)


def _collect_names(value: Any, names: set[str], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInput(f"a variant has at most {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(name, str):
                raise InvalidInput(f"a field of a variant is called {name!r}; expected a string")
            names.add(name)
            _collect_names(item, names, depth + 1)
    elif isinstance(value, list | tuple | np.ndarray):
        for item in value:
            _collect_names(item, names, depth + 1)


def encoded(value: Any, numbers: Mapping[str, int]) -> bytes:
    """A Python value with its names replaced by numbers."""
    if isinstance(value, Mapping):
        return object_of((numbers[name], name, encoded(value[name], numbers)) for name in value)
    if isinstance(value, list | tuple | np.ndarray):
        return array_of([encoded(item, numbers) for item in value])
    return _encoded_primitive(value)


def _encoded_primitive(value: Any) -> bytes:
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    match value:
        case None:
            return NULL
        case bool():
            return primitive(TYPE_TRUE if value else TYPE_FALSE, b"")
        case int():
            return integer(value)
        case float():
            return primitive(TYPE_DOUBLE, struct.pack("<d", value))
        case str():
            return text(value)
        case bytes() | bytearray():
            return primitive(TYPE_BINARY, len(value).to_bytes(4, "little") + bytes(value))
        case Decimal():
            return _encoded_decimal(value)
        case uuid.UUID():
            return primitive(TYPE_UUID, value.bytes)
        case datetime():
            if getattr(value, "nanosecond", 0):
                raise InvalidInput(f"{value!r} has nanoseconds; hand it over as a datetime64")
            zoned = value.tzinfo is not None
            micros = (value - (_EPOCH_UTC if zoned else _EPOCH)) // _MICROSECOND
            return fixed_width(TYPE_TIMESTAMPTZ if zoned else TYPE_TIMESTAMP, micros)
        case date():
            return fixed_width(TYPE_DATE, value.toordinal() - _EPOCH_DAY)
        case time() if value.tzinfo is None:
            since = datetime.combine(_EPOCH, value) - _EPOCH
            return fixed_width(TYPE_TIME, since // _MICROSECOND)
        case np.datetime64():
            return _encoded_moment(value)
    raise InvalidInput(f"{short_repr(value)} ({type(value).__name__}) is not a variant value")


def _encoded_moment(value: Any) -> bytes:
    nanos = value.astype("datetime64[ns]")
    if np.isnat(value) or nanos != value:
        raise InvalidInput(f"{value!r} is not a variant value")
    return fixed_width(TYPE_TIMESTAMP_NS, int(nanos.astype(np.int64)))


def primitive(kind: int, data: bytes) -> bytes:
    """A value of a primitive type."""
    return bytes([kind << 2]) + data


def fixed_width(kind: int, number: int) -> bytes:
    """A whole number as a value of a type that holds one."""
    try:
        return primitive(kind, number.to_bytes(_SIZES[kind], "little", signed=True))
    except OverflowError as error:
        raise InvalidInput(f"{number} does not fit a variant") from error


def integer(value: int) -> bytes:
    """A whole number in the narrowest type that holds it."""
    for kind in INTEGERS:
        if -(1 << (8 * _SIZES[kind] - 1)) <= value < 1 << (8 * _SIZES[kind] - 1):
            return fixed_width(kind, value)
    return decimal(value, 0)


def _encoded_decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidInput(f"{value} is not a variant value")
    unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    if exponent > 0:
        unscaled, exponent = unscaled * 10**exponent, 0
    return decimal(unscaled, -exponent)


def decimal(unscaled: int, scale: int) -> bytes:
    """A decimal in the narrowest type that holds it."""
    digits = max(len(str(abs(unscaled))), scale)
    if digits > 38:
        raise InvalidInput(f"a number of {digits} digits does not fit a variant; 38 do")
    kind, size = next(
        (kind, size)
        for kind, size, most in zip(DECIMALS, (4, 8, 16), (9, 18, 38), strict=True)
        if digits <= most
    )
    return primitive(kind, bytes([scale]) + unscaled.to_bytes(size, "little", signed=True))


def text(value: str) -> bytes:
    """A string."""
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{short_repr(value)} is not valid text: {error}") from error
    return text_of_bytes(data)


def text_of_bytes(data: bytes) -> bytes:
    """A string, of its UTF-8."""
    if len(data) < 64:
        return bytes([len(data) << 2 | SHORT_STRING]) + data
    return primitive(TYPE_STRING, len(data).to_bytes(4, "little") + data)


def object_of(fields: Iterable[tuple[int, str, bytes]]) -> bytes:
    """An object of fields: the number of the name, the name, the value."""
    ordered = sorted(fields, key=lambda field: field[1].encode())
    values = [value for _, _, value in ordered]
    highest = max((number for number, _, _ in ordered), default=0)
    id_size = _width(highest)
    size, offsets = _offsets(values)
    is_large = len(ordered) > 255
    header = OBJECT | ((size - 1) | (id_size - 1) << 2 | is_large << 4) << 2
    ids = b"".join(number.to_bytes(id_size, "little") for number, _, _ in ordered)
    count = len(ordered).to_bytes(4 if is_large else 1, "little")
    return b"".join((bytes([header]), count, ids, offsets, *values))


def array_of(values: Sequence[bytes]) -> bytes:
    """An array of values."""
    size, offsets = _offsets(values)
    is_large = len(values) > 255
    header = ARRAY | ((size - 1) | is_large << 2) << 2
    count = len(values).to_bytes(4 if is_large else 1, "little")
    return b"".join((bytes([header]), count, offsets, *values))


def _offsets(values: Sequence[bytes]) -> tuple[int, bytes]:
    ends = [0]
    for value in values:
        ends.append(ends[-1] + len(value))
    size = _width(ends[-1])
    return size, b"".join(end.to_bytes(size, "little") for end in ends)


# --- bytes ---------------------------------------------------------------------------------------


def _width(number: int) -> int:
    width = max(1, (number.bit_length() + 7) // 8)
    if width > 4:
        raise InvalidInput("a variant has at most 4 GiB")
    return width


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise FormatError("a variant's value ends too early")
    return data[at]


def _number(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise FormatError("a variant ends in the middle of a number")
    return int.from_bytes(data[at : at + size], "little")


def _text(data: bytes) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"a variant has text that is not UTF-8: {error}") from error
