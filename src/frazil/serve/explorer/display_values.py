"""Values of tables as text for people. Ids and decimals stay text, so that no digit is lost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from frazil.data.variants import python_value
from frazil.format.values.variant_type import has_marked

MAX_TEXT = 200
_MAX_WHOLE_BYTES = 1 << 20
"""Of a column whose values become Python's all at once, which takes ten times as much."""


def text(value: Any, *, max_length: int = MAX_TEXT) -> str | None:
    """One value; None stays None. Long text is cut."""
    if value is None:
        return None
    rendered = _text_of(value)
    return rendered if len(rendered) <= max_length else f"{rendered[: max_length - 1]}…"


def is_cut(shown: str | None, *, max_length: int = MAX_TEXT) -> bool:
    """Whether a text that is shown is the beginning of a longer one."""
    return shown is not None and len(shown) == max_length and shown.endswith("…")


def _text_of(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case bytes():
            return value.hex()
        case float():
            return repr(value)
        case datetime():
            return value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case Decimal() | UUID() | int() | timedelta():
            return str(value)
        case Mapping():
            inner = ", ".join(f"{key}: {_inner(item)}" for key, item in value.items())
            return f"{{{inner}}}"
        case list() | tuple():
            return f"[{', '.join(_inner(item) for item in value)}]"
    return str(value)


def _inner(value: Any) -> str:
    return "null" if value is None else _text_of(value)


def texts(
    column: pa.Array | pa.ChunkedArray,
    *,
    field: pa.Field | None = None,
    max_length: int = MAX_TEXT,
) -> list[str | None]:
    """A column as text. Times beyond Python's calendar are shown as Arrow writes them, variants
    decoded where the field says that it holds some and they are not too large."""
    if column.nbytes > _MAX_WHOLE_BYTES:
        return [text(_start(value, max_length), max_length=max_length) for value in column]
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError, pa.ArrowInvalid):
        values = column.cast(pa.string()).to_pylist()
    if field is not None and has_marked([field]):
        values = [python_value(value, field) for value in values]
    return [text(value, max_length=max_length) for value in values]


def _start(value: pa.Scalar, max_length: int) -> Any:
    """A value in Python, without what is certainly behind the part of its text that is shown."""
    match value:
        case _ if not value.is_valid:
            return None
        case pa.StringScalar() | pa.LargeStringScalar() | pa.StringViewScalar():
            return value.as_py()[: max_length + 1]
        case pa.BinaryScalar() | pa.LargeBinaryScalar() | pa.BinaryViewScalar():
            return value.as_py()[: max_length + 1]
        case pa.StructScalar():
            return {name: _start(value[name], max_length) for name in value}
        case pa.MapScalar():
            entries = value.values.slice(0, max_length + 1)
            return {
                str(_start(entry["key"], max_length)): _start(entry["value"], max_length)
                for entry in entries
            }
        case pa.ListScalar() | pa.LargeListScalar() | pa.FixedSizeListScalar():
            return [_start(item, max_length) for item in value.values.slice(0, max_length + 1)]
    try:
        return value.as_py()
    except (OverflowError, ValueError, pa.ArrowInvalid):
        return str(value.cast(pa.string()))


def ids(values: list[int | None]) -> list[str | None]:
    """Snapshot ids, which do not fit a number of JavaScript."""
    return [None if value is None or value < 0 else str(value) for value in values]
