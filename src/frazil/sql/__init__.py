"""SQL on the tables of a catalog: text → statements → operations; DuckDB is the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frazil.sql.output.query_result import Result
    from frazil.sql.session import Session

__all__ = ["Result", "Session"]


def __getattr__(name: str) -> Any:
    """Parser and engine are loaded when first used: they take a third of a second."""
    if name == "Result":
        from frazil.sql.output.query_result import Result

        return Result
    if name == "Session":
        from frazil.sql.session import Session

        return Session
    raise AttributeError(f"module 'frazil.sql' has no attribute {name!r}")
