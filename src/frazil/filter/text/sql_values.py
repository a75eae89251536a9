"""Python values as SQL literals of DuckDB, and types by their names: the only writer of both.

Each literal is one operand that keeps its type wherever it stands: `2 - ?` with -5 is no comment,
a float stays a double beside decimals.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from frazil.errors import InvalidInput, Unsupported
from frazil.filter.text.quotes import literal, quoted
from frazil.iceberg import types as ice
from frazil.iceberg.types import VariantType

_TYPES: Final[dict[type[ice.IcebergType], str]] = {
    ice.BooleanType: "BOOLEAN",
    ice.IntegerType: "INTEGER",
    ice.LongType: "BIGINT",
    ice.FloatType: "FLOAT",
    ice.DoubleType: "DOUBLE",
    ice.DateType: "DATE",
    ice.TimeType: "TIME",
    ice.TimestampType: "TIMESTAMP",
    ice.TimestamptzType: "TIMESTAMP WITH TIME ZONE",
    ice.TimestampNanoType: "TIMESTAMP_NS",
    ice.TimestamptzNanoType: "TIMESTAMPTZ_NS",
    ice.StringType: "VARCHAR",
    ice.UUIDType: "UUID",
    ice.BinaryType: "BLOB",
    ice.FixedType: "BLOB",
    ice.GeometryType: "BLOB",
    ice.GeographyType: "BLOB",
    ice.UnknownType: '"NULL"',
    VariantType: "VARIANT",
}


def string_text(value: str) -> str:
    """A text literal. The parser stops at a zero byte, so text with one is decoded from bytes."""
    if "\0" in value:
        return f"decode({blob_text(value.encode())})"
    return literal(value)


def blob_text(value: bytes) -> str:
    """Bytes as a literal, in the one form that every version of DuckDB reads as a BLOB."""
    return f"CAST({escaped_text(value)} AS BLOB)"


def escaped_text(value: bytes) -> str:
    """Bytes as a text literal that DuckDB casts to them."""
    return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'"


def double_text(value: float) -> str:
    """A float as a literal of type DOUBLE; with an exponent, plain filters can read it too."""
    if not math.isfinite(value):
        return f"CAST('{value}' AS DOUBLE)"
    digits = repr(value)
    return digits if "e" in digits else f"{digits}e0"


def value_text(value: Any) -> str:
    """A Python value as an SQL literal."""
    item = getattr(value, "item", None)
    if item is not None and type(value).__module__ == "numpy":
        value = item()
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return _operand(str(value))
        case float():
            return _operand(double_text(value))
        case Decimal():
            return _decimal(value)
        case str():
            return string_text(value)
        case datetime():
            zoned = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
            return f"{zoned} '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case time():
            return f"TIME '{value.isoformat()}'"
        case timedelta():
            micros = (value.days * 86400 + value.seconds) * 10**6 + value.microseconds
            return f"to_microseconds({micros})"
        case uuid.UUID():
            return f"UUID '{value}'"
        case bytes() | bytearray():
            return blob_text(bytes(value))
        case list() | tuple():
            return f"[{', '.join(map(value_text, value))}]"
        case Mapping():
            pairs = (f"{string_text(str(k))}: {value_text(v)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
    raise InvalidInput(f"a {type(value).__name__} cannot be used as a value in SQL: {value!r}")


def _operand(digits: str) -> str:
    """A number that a sign or an operator beside it cannot change: -5::TEXT is -(5::TEXT)."""
    return f"({digits})" if digits.startswith("-") else digits


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        return f"CAST('{value}' AS DOUBLE)"
    digits = f"{value:f}"
    return _operand(digits if "." in digits else f"{digits}.")


def type_text(kind: ice.IcebergType) -> str:
    """A type as DuckDB writes it; refuses zoned nanoseconds, which DuckDB would cut."""
    match kind:
        case ice.DecimalType():
            return f"DECIMAL({kind.precision},{kind.scale})"
        case ice.StructType():
            inner = (f"{quoted(part.name)} {type_text(part.field_type)}" for part in kind.fields)
            return f"STRUCT({', '.join(inner)})"
        case ice.ListType():
            return f"{type_text(kind.element_type)}[]"
        case ice.MapType():
            return f"MAP({type_text(kind.key_type)}, {type_text(kind.value_type)})"
    name = _TYPES.get(type(kind))
    if name is None:
        raise Unsupported(f"DuckDB has no type for {kind}", feature=str(kind))
    return name
