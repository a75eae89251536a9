"""Values of tables as text for people. Ids and decimals stay text, so that no digit is lost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

MAX_TEXT = 200


def text(value: Any, *, most: int = MAX_TEXT) -> str | None:
    """One value; None stays None. Long text is cut."""
    if value is None:
        return None
    found = _plain(value)
    return found if len(found) <= most else f"{found[: most - 1]}…"


def _plain(value: Any) -> str:
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
            inner = ", ".join(f"{key}: {_inner(each)}" for key, each in value.items())
            return f"{{{inner}}}"
        case list() | tuple():
            return f"[{', '.join(_inner(each) for each in value)}]"
    return str(value)


def _inner(value: Any) -> str:
    return "null" if value is None else _plain(value)


def texts(column: pa.Array | pa.ChunkedArray, *, most: int = MAX_TEXT) -> list[str | None]:
    """A column as text. Times beyond Python's calendar are shown as Arrow writes them."""
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError, pa.ArrowInvalid):
        values = column.cast(pa.string()).to_pylist()
    return [text(value, most=most) for value in values]


def ids(values: list[int | None]) -> list[str | None]:
    """Snapshot ids, which do not fit a number of JavaScript."""
    return [None if value is None or value < 0 else str(value) for value in values]
