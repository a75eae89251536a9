"""SQL on the tables of a catalog: text → statements → operations; DuckDB is the engine."""

from frazil.sql.result import Result
from frazil.sql.session import Session

__all__ = ["Result", "Session"]
