"""Values of a filter, placed in the domain of the column they are compared with.

A literal need not be a value of the column's type: `price > 1.5` on an integer column, `id < 1e12`
on a 32-bit one, `day = '2024-01-15T10:00:00'` on a date. `place` says where such a value lies among
the column's values, so that the comparison can be rewritten without changing what it means.

Dates, times and timestamps are integers here (days, microseconds, nanoseconds).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date, time
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final
from uuid import UUID

from frazil.errors import InvalidInput
from frazil.iceberg import types as ice
from frazil.iceberg.literals import (
    AboveMax,
    BelowMin,
    BinaryLiteral,
    BooleanLiteral,
    DateLiteral,
    DecimalLiteral,
    DoubleLiteral,
    FixedLiteral,
    FloatLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimeLiteral,
    TimestampLiteral,
    UUIDLiteral,
)
from frazil.value_classes import frozen

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DAY_NS: Final = 86_400_000_000_000
_NOT_FINITE: Final = re.compile(r"\s*(?:nan|[+-]?inf(?:inity)?)\s*", re.IGNORECASE)
_FLOAT_MAX: Final = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
_DOUBLE_MAX: Final = struct.unpack("<d", b"\xff\xff\xff\xff\xff\xff\xef\x7f")[0]
_INT_RANGE: Final = (-(2**31), 2**31 - 1)
_LONG_RANGE: Final = (-(2**63), 2**63 - 1)
_WIDE: Final = Context(prec=100)
_TIMESTAMP: Final = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<clock>\d{2}:\d{2}(?::\d{2})?)(?:\.(?P<fraction>\d{1,9}))?"
    r" ?(?P<zone>[Zz]|[+-]\d{2}:?\d{2})?)?"
)


class Where(Enum):
    """Where a literal lies among the values of a type."""

    EXACT = "at a value"
    AFTER = "between a value and the next one"
    BELOW = "below every value"
    ABOVE = "above every value"


@frozen
class Place:
    """A literal's place: at `value`, just after it, or outside the type's range."""

    where: Where
    value: Any = None


_LITERALS: Final[dict[type[ice.IcebergType], Callable[[Any], Literal]]] = {
    ice.DecimalType: DecimalLiteral,
    ice.BooleanType: BooleanLiteral,
    ice.FloatType: FloatLiteral,
    ice.DoubleType: DoubleLiteral,
    ice.DateType: DateLiteral,
    ice.TimeType: TimeLiteral,
    ice.TimestampType: TimestampLiteral,
    ice.TimestamptzType: TimestampLiteral,
    ice.StringType: StringLiteral,
    ice.UUIDType: UUIDLiteral,
    ice.FixedType: FixedLiteral,
    ice.BinaryType: BinaryLiteral,
}
_BELOW: Final = Place(where=Where.BELOW)
_ABOVE: Final = Place(where=Where.ABOVE)


def place(literal: Literal, type_: ice.IcebergType) -> Place:
    """Where the literal lies among the values of the type; refuses what cannot be compared."""
    if isinstance(literal, AboveMax):
        return _ABOVE
    if isinstance(literal, BelowMin):
        return _BELOW
    if isinstance(type_, ice.IntegerType):
        return _whole(_number(literal, type_), _INT_RANGE)
    if isinstance(type_, ice.LongType):
        return _whole(_number(literal, type_), _LONG_RANGE)
    if isinstance(type_, ice.DecimalType):
        return _scaled(_number(literal, type_), type_)
    if isinstance(type_, ice.FloatType | ice.DoubleType):
        return _floating(literal, type_)
    if isinstance(type_, ice.DateType):
        return _date(literal, type_)
    if isinstance(
        type_,
        ice.TimestampType | ice.TimestamptzType | ice.TimestampNanoType | ice.TimestamptzNanoType,
    ):
        return _timestamp(literal, type_)
    return Place(where=Where.EXACT, value=_exact(literal, type_))


def typed(value: Any, type_: ice.IcebergType) -> Literal:
    """The literal of a value that `place` returned.

    Nanosecond timestamps are plain longs: a timestamp literal counts microseconds.
    """
    return _LITERALS.get(type(type_), LongLiteral)(value)


def _bad_moment(problem: str) -> InvalidInput:
    """Text that is not a date, time or timestamp of the column's type; engines would guess."""
    return InvalidInput(problem, is_certain=True)


def _mismatch(literal: Literal, type_: ice.IcebergType, hint: str = "") -> InvalidInput:
    text = repr(literal.value)
    return InvalidInput(f"{text} cannot be compared with a {type_} column{hint}")


def _number(literal: Literal, type_: ice.IcebergType) -> Decimal:
    value = literal.value
    if isinstance(literal, LongLiteral | DecimalLiteral):
        return Decimal(value)
    if isinstance(literal, DoubleLiteral | FloatLiteral):
        return Decimal(repr(float(value)))
    if isinstance(literal, StringLiteral):
        try:
            number = Decimal(value.strip())
        except InvalidOperation:
            raise _mismatch(literal, type_) from None
        if number.is_finite():
            return number
    raise _mismatch(literal, type_)


def _whole(number: Decimal, limits: tuple[int, int]) -> Place:
    if not number.is_finite() or number.adjusted() > 20:
        return _ABOVE if number > 0 else _BELOW
    floor = int(number.to_integral_value(ROUND_FLOOR))
    if floor < limits[0]:
        return _BELOW
    if floor > limits[1]:
        return _ABOVE
    return Place(where=Where.EXACT if floor == number else Where.AFTER, value=floor)


def _scaled(number: Decimal, type_: ice.DecimalType) -> Place:
    if not number.is_finite() or number.adjusted() > type_.precision:
        return _ABOVE if number > 0 else _BELOW
    step = Decimal((0, (1,), -type_.scale))
    floor = number.quantize(step, rounding=ROUND_FLOOR, context=_WIDE)
    if floor.is_zero():
        floor = abs(floor)
    limit = Decimal((0, (9,) * type_.precision, -type_.scale))
    if floor > limit:
        return _ABOVE
    if floor < limit.copy_negate():
        return _BELOW
    return Place(where=Where.EXACT if floor == number else Where.AFTER, value=floor)


def _floating(literal: Literal, type_: ice.IcebergType) -> Place:
    """Literals are rounded to the nearest value of the column's type, as Iceberg does."""
    largest = _FLOAT_MAX if isinstance(type_, ice.FloatType) else _DOUBLE_MAX
    if isinstance(literal, StringLiteral) and _NOT_FINITE.fullmatch(literal.value):
        return Place(where=Where.EXACT, value=float(literal.value))
    if isinstance(literal, DoubleLiteral | FloatLiteral) and not math.isfinite(literal.value):
        return Place(where=Where.EXACT, value=literal.value)
    number = _number(literal, type_)
    value = float(number)
    if math.isinf(value):
        return Place(where=Where.EXACT, value=value)
    try:
        if isinstance(type_, ice.FloatType):
            value = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        value = math.inf if number > 0 else -math.inf
    if math.isinf(value):
        return Place(where=Where.AFTER, value=largest if number > 0 else -math.inf)
    return Place(where=Where.EXACT, value=value)


def _nanos(text: str, type_: ice.IcebergType) -> int:
    """Nanoseconds since the epoch of an ISO timestamp or date; without a zone it is UTC."""
    match = _TIMESTAMP.fullmatch(text.strip())
    zoned = isinstance(type_, ice.TimestamptzType | ice.TimestamptzNanoType)
    expected = "'2024-01-15T10:30:00+00:00'" if zoned else "'2024-01-15T10:30:00'"
    problem = f"'{text}' is not a {type_}; write it like {expected}"
    if match is None:
        raise _bad_moment(problem)
    try:
        days = date.fromisoformat(match["day"]).toordinal() - _EPOCH_DAY
        clock = time.fromisoformat(match["clock"] or "00:00")
    except ValueError as error:
        raise _bad_moment(f"{problem} ({error})") from None
    nanos = days * _DAY_NS + _clock_micros(clock) * 1000
    nanos += int((match["fraction"] or "0").ljust(9, "0"))
    zone = match["zone"]
    if zone is None:
        return nanos
    if not zoned:
        raise _bad_moment(f"'{text}' has a zone, but a {type_} column has none; leave '{zone}' out")
    if zone in "Zz":
        return nanos
    digits = zone[1:].replace(":", "")
    offset = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000_000_000
    return nanos + offset if zone[0] == "-" else nanos - offset


def _clock_micros(clock: time) -> int:
    seconds = (clock.hour * 60 + clock.minute) * 60 + clock.second
    return seconds * 1_000_000 + clock.microsecond


def _stepped(count: int, step: int, limits: tuple[int, int]) -> Place:
    floor, rest = divmod(count, step)
    if floor < limits[0]:
        return _BELOW
    if floor > limits[1]:
        return _ABOVE
    return Place(where=Where.AFTER if rest else Where.EXACT, value=floor)


def _date(literal: Literal, type_: ice.IcebergType) -> Place:
    if isinstance(literal, DateLiteral | LongLiteral):
        return _stepped(literal.value, 1, _INT_RANGE)
    if isinstance(literal, TimestampLiteral):
        return _stepped(literal.value, _DAY_NS // 1000, _INT_RANGE)
    if isinstance(literal, StringLiteral):
        text = literal.value.strip()
        try:
            return _stepped(date.fromisoformat(text).toordinal() - _EPOCH_DAY, 1, _INT_RANGE)
        except ValueError:
            match = _TIMESTAMP.fullmatch(text)
            if match is None or match["clock"] is None:
                raise _bad_moment(f"'{text}' is not a date; write it like '2024-01-15'") from None
        return _stepped(_nanos(text, ice.TimestampType()), _DAY_NS, _INT_RANGE)
    raise _mismatch(literal, type_, "; write a date like '2024-01-15'")


def _timestamp(literal: Literal, type_: ice.IcebergType) -> Place:
    unit_ns = 1 if isinstance(type_, ice.TimestampNanoType | ice.TimestamptzNanoType) else 1000
    if isinstance(literal, LongLiteral):
        return _stepped(literal.value, 1, _LONG_RANGE)
    if isinstance(literal, DateLiteral):
        return _stepped(literal.value * _DAY_NS, unit_ns, _LONG_RANGE)
    if isinstance(literal, TimestampLiteral):
        return _stepped(literal.value * 1000, unit_ns, _LONG_RANGE)
    if isinstance(literal, StringLiteral):
        return _stepped(_nanos(literal.value, type_), unit_ns, _LONG_RANGE)
    raise _mismatch(literal, type_, "; write a timestamp like '2024-01-15T10:30:00'")


def _exact(literal: Literal, type_: ice.IcebergType) -> Any:
    """The value itself, for types whose literals are never between two values."""
    value = literal.value
    if isinstance(type_, ice.BooleanType):
        if isinstance(literal, BooleanLiteral):
            return value
        if isinstance(literal, StringLiteral) and value.lower() in ("true", "false"):
            return value.lower() == "true"
    elif isinstance(type_, ice.StringType):
        if isinstance(literal, StringLiteral):
            return value
        raise _mismatch(literal, type_, "; write text in single quotes")
    elif isinstance(type_, ice.TimeType):
        if isinstance(literal, TimeLiteral | LongLiteral):
            return value
        if isinstance(literal, StringLiteral):
            try:
                return _clock_micros(time.fromisoformat(value.strip()))
            except ValueError:
                raise _bad_moment(f"'{value}' is not a time; write it like '10:30:00'") from None
    elif isinstance(type_, ice.UUIDType):
        if isinstance(literal, StringLiteral):
            try:
                return UUID(value.strip()).bytes
            except ValueError:
                raise InvalidInput(f"'{value}' is not a uuid") from None
        if isinstance(value, bytes) and len(value) == 16:
            return value
    elif isinstance(type_, ice.FixedType):
        if isinstance(value, bytes):
            if len(value) == len(type_):
                return value
            raise _mismatch(literal, type_, f": it has {len(value)} bytes")
        raise _mismatch(literal, type_, "; write bytes like X'00ff'")
    elif isinstance(type_, ice.BinaryType):
        if isinstance(value, bytes):
            return value
        raise _mismatch(literal, type_, "; write bytes like X'00ff'")
    raise _mismatch(literal, type_)
