"""DuckDB's errors as Frazil's, and what our own code raised while DuckDB was calling it.

DuckDB asks Frazil for parts of files and for rows. It hands on only the text of an exception that
it meets there, wrapped in its own. So the exception is kept here, and what DuckDB gets to see is
its number.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

from frazil.errors import FormatError, FrazilError, InvalidInput, StorageError
from frazil.parser.duckdb_parser import error_details

_MAX_KEPT: Final = 256
_NUMBER: Final = re.compile(r"frazil-failure-(\d+);")
_ERROR: Final = re.compile(r"([A-Z][A-Za-z ]*) Error: ")
_JSON_ERROR: Final = '{"exception_type"'
_JSON_KIND: Final = re.compile(r'\{"exception_type":"([A-Za-z ]+)"')
"""Errors of connections that are set to give them as JSON."""
_DAMAGE: Final = re.compile(
    r"No magic bytes found|metadata is corrupt|too small to be a Parquet file"
    r"|[Ff]ailed to read (?:Parquet )?file|corrupt"
)


class _Failures:
    """The latest exceptions by number."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, BaseException] = OrderedDict()
        self._numbers = count(1)
        self._lock = threading.Lock()

    def keep(self, error: BaseException) -> int:
        with self._lock:
            number = next(self._numbers)
            self._kept[number] = error
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
            return number

    def named_in(self, message: str) -> BaseException | None:
        match = _NUMBER.search(message)
        with self._lock:
            return None if match is None else self._kept.get(int(match[1]))


_failures = _Failures()


class RaisedForDuckDb(Exception):
    """Stands for an exception that is kept."""


@contextmanager
def kept() -> Iterator[None]:
    """Around code that DuckDB calls: what it raises is found again by `explained`."""
    try:
        yield
    except (RaisedForDuckDb, GeneratorExit):
        raise
    except BaseException as error:
        raise RaisedForDuckDb(f"frazil-failure-{_failures.keep(error)};") from error


@contextmanager
def explained(what: str) -> Iterator[None]:
    """DuckDB's errors as ours: most say that an expression is wrong."""
    import _duckdb as duckdb

    try:
        yield
    except (duckdb.Error, OSError) as error:
        kind = duckdb_kind(error)
        if kind is None:
            raise
        problem = duckdb_problem(error)
        if _JSON_ERROR in problem:
            details = error_details(error)
            problem = f"{details.kind} Error: {details.message}"
        problem = problem.replace("\n", " ")
        if kind is FrazilError:
            problem += " Raise the engine's memory limit"
        raise kind(f"{what}: {problem}") from error


def duckdb_kind(error: Exception) -> type[FrazilError] | None:
    """The error of ours that one of DuckDB is; None for those of others.

    What DuckDB finds wrong in the middle of an Arrow stream arrives as an OSError with its text.
    """
    import _duckdb as duckdb

    text = str(error)
    below = _failures.named_in(text)
    if below is not None and not isinstance(below, Exception):
        raise below  # an interrupt, which met our code while DuckDB was reading from it
    if below is not None:
        return type(below) if isinstance(below, FrazilError) else StorageError
    match = _ERROR.match(text) or _JSON_KIND.match(text)
    if not isinstance(error, duckdb.Error) and match is None:
        return None
    name = "" if match is None else match[1]
    if name in ("IO", "HTTP") or isinstance(error, duckdb.IOException | duckdb.HTTPException):
        return StorageError
    if name == "Out of Memory" or isinstance(error, duckdb.OutOfMemoryException):
        return FrazilError
    is_invalid = name == "Invalid Input" or isinstance(error, duckdb.InvalidInputException)
    return FormatError if is_invalid and _DAMAGE.search(text) else InvalidInput


def duckdb_problem(error: Exception) -> str:
    """What DuckDB says; of an error in what Frazil gave it, what that one said."""
    below = _failures.named_in(str(error))
    return str(error).split("\n\nLINE ")[0] if below is None else str(below)
