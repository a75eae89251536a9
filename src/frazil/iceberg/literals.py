"""Values in expressions, and what kind of value each is.

Dates, times and timestamps are whole numbers: days, microseconds of a day and microseconds.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Final
from uuid import UUID

_DAY: Final = date(1970, 1, 1)
_MOMENT: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)


class Literal:
    """A value; two are equal when their values are, whatever their kinds."""

    __slots__ = ("value",)
    kind: ClassVar[type] = object
    value: Any

    def __init__(self, value: Any) -> None:
        if not isinstance(value, self.kind):
            raise TypeError(f"{value!r} is not a {self.kind.__name__}")
        self.value = value

    def __eq__(self, other: object) -> bool:
        return self.value == other.value if isinstance(other, Literal) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class BooleanLiteral(Literal):
    """True or false."""

    __slots__ = ()
    kind = bool


class LongLiteral(Literal):
    """A whole number; for columns of timestamps in nanoseconds as well."""

    __slots__ = ()
    kind = int


class FloatLiteral(Literal):
    """A number for a column of 32 bits."""

    __slots__ = ()
    kind = float


class DoubleLiteral(Literal):
    """A number with a point."""

    __slots__ = ()
    kind = float


class DecimalLiteral(Literal):
    """A decimal."""

    __slots__ = ()
    kind = Decimal


class DateLiteral(Literal):
    """A day."""

    __slots__ = ()
    kind = int


class TimeLiteral(Literal):
    """A time of day."""

    __slots__ = ()
    kind = int


class TimestampLiteral(Literal):
    """A moment, with or without a zone."""

    __slots__ = ()
    kind = int


class StringLiteral(Literal):
    """Text; it may stand for a date, a number or whatever the column holds."""

    __slots__ = ()
    kind = str


class UUIDLiteral(Literal):
    """The bytes of a UUID."""

    __slots__ = ()
    kind = bytes


class FixedLiteral(Literal):
    """Bytes for a column of fixed length."""

    __slots__ = ()
    kind = bytes


class BinaryLiteral(Literal):
    """Bytes."""

    __slots__ = ()
    kind = bytes


class AboveMax(Literal):
    """More than every value of the column's type."""

    __slots__ = ()


class BelowMin(Literal):
    """Less than every value of the column's type."""

    __slots__ = ()


def literal(value: Any) -> Literal:
    """A value of Python as a literal. Raises TypeError."""
    if isinstance(value, bool):
        return BooleanLiteral(value)
    if isinstance(value, int):
        return LongLiteral(value)
    if isinstance(value, float):
        return DoubleLiteral(value)
    if isinstance(value, str):
        return StringLiteral(value)
    if isinstance(value, bytes):
        return BinaryLiteral(value)
    if isinstance(value, Decimal):
        return DecimalLiteral(value)
    if isinstance(value, UUID):
        return UUIDLiteral(value.bytes)
    if isinstance(value, datetime):
        epoch = _MOMENT if value.tzinfo is None else _MOMENT.replace(tzinfo=UTC)
        return TimestampLiteral((value - epoch) // _MICROSECOND)
    if isinstance(value, date):
        return DateLiteral((value - _DAY).days)
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return TimeLiteral(seconds * 1_000_000 + value.microsecond)
    raise TypeError(f"{value!r} is not a value of a column")
