"""Frames that the caller of `sql` has as variables: `FROM df`.

Only code that calls `sql` in Python has variables to look in; the command line, the server and
Spark hand over text of somebody else. DuckDB's own search of variables stays off.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

_OWN: Final = __name__.partition(".")[0]
_ENTRANCES: Final = tuple(f"{_OWN}.{part}" for part in ("sql", "table", "argument_checks"))


def is_outside() -> bool:
    """Whether code that is no part of Frazil asked for the statement."""
    for frame in _frames():
        name = _module(frame)
        if not any(name == entrance or name.startswith(f"{entrance}.") for entrance in _ENTRANCES):
            return not _is_own(name)
    return False


def variable(name: str) -> Any:
    """A frame or Arrow data in a variable of the caller, or None."""
    for frame in _frames():
        if not _is_own(_module(frame)):
            for variables in (frame.f_locals, frame.f_globals):
                if name in variables:
                    value = variables[name]
                    return value if _has_rows(value) else None
            return None
    return None


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_own(module: str) -> bool:
    return module == _OWN or module.startswith(f"{_OWN}.")


def _has_rows(value: Any) -> bool:
    kind = type(value)
    is_dataset = kind.__module__.startswith("pyarrow") and hasattr(value, "scanner")
    return is_dataset or is_lazy_frame(value) or hasattr(kind, "__arrow_c_stream__")


def is_lazy_frame(value: Any) -> bool:
    """Whether a value is a lazy frame of polars, whose rows are there once it is collected."""
    return type(value).__module__.startswith("polars") and type(value).__name__ == "LazyFrame"
