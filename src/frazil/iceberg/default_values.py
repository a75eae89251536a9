"""Default values of columns in metadata: Iceberg's JSON of single values, and Python's values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, DecimalException
from typing import Any, Final
from uuid import UUID

from frazil.iceberg import types as ice

_DAY: Final = date(1970, 1, 1)
_MOMENT: Final = datetime(1970, 1, 1)


def default_of_json(value: Any, kind: ice.IcebergType) -> Any:
    """The value that JSON says. Dates, times and timestamps may be numbers, as they are held in
    files. Raises ValueError."""
    read = _READ.get(type(kind))
    if read is None:
        raise ValueError(f"a default of type {kind} cannot be read")
    try:
        return read(value)
    except (ValueError, TypeError, AttributeError, OverflowError, DecimalException) as error:
        raise ValueError(f"the default {value!r} is not a value of type {kind}: {error}") from error


def json_of_default(value: Any, kind: ice.IcebergType) -> Any:
    """A value as JSON has it."""
    written = default_of_json(value, kind)
    if isinstance(written, bytes):
        return written.hex()
    if isinstance(written, date | time):  # a datetime is a date
        return written.isoformat()
    if isinstance(written, Decimal | UUID):
        return str(written)
    return written


def _same(*kinds: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(f"expected {' or '.join(kind.__name__ for kind in kinds)}")
        return value

    return read


def _date(value: Any) -> date:
    if isinstance(value, int):
        return _DAY + timedelta(days=value)
    return value if isinstance(value, date) else date.fromisoformat(value)


def _time(value: Any) -> time:
    if isinstance(value, int):
        return (_MOMENT + timedelta(microseconds=value)).time()
    return value if isinstance(value, time) else time.fromisoformat(value)


def _timestamp(value: Any) -> datetime:
    if isinstance(value, int):
        return _MOMENT + timedelta(microseconds=value)
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    if moment.tzinfo is not None:
        raise ValueError("it has a zone")
    return moment


def _timestamptz(value: Any) -> datetime:
    if isinstance(value, int):
        return _MOMENT.replace(tzinfo=UTC) + timedelta(microseconds=value)
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("it has no zone")
    return moment.astimezone(UTC)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else bytes.fromhex(value)


def _decimal(value: Any) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(value)


def _uuid(value: Any) -> UUID:
    if isinstance(value, UUID):
        return value
    return UUID(bytes=value) if isinstance(value, bytes) else UUID(value)


_READ: Final[dict[type[ice.IcebergType], Callable[[Any], Any]]] = {
    ice.BooleanType: _same(bool),
    ice.IntegerType: _same(int),
    ice.LongType: _same(int),
    ice.FloatType: _same(float, int),
    ice.DoubleType: _same(float, int),
    ice.StringType: _same(str),
    ice.DateType: _date,
    ice.TimeType: _time,
    ice.TimestampType: _timestamp,
    ice.TimestamptzType: _timestamptz,
    ice.FixedType: _bytes,
    ice.BinaryType: _bytes,
    ice.DecimalType: _decimal,
    ice.UUIDType: _uuid,
}
