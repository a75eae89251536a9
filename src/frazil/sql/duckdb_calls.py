"""DuckDB as the engine of SQL: single values, and its errors with positions in the user's text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import FrazilError, InvalidInput
from frazil.rows.duckdb_scan import duckdb_kind, duckdb_problem
from frazil.sql.rewriting import EngineText
from frazil.sql.text import Source

if TYPE_CHECKING:
    import duckdb

_LINE: Final = re.compile(r"\n+LINE (\d+): (.*)\n( *)\^", re.DOTALL)
_KIND: Final = re.compile(r"^[A-Z][A-Za-z ]* Error: ")


def value_of(connection: duckdb.DuckDBPyConnection, text: str) -> Any:
    """The value of an expression without columns."""
    import duckdb

    try:
        return connection.sql(f"SELECT {text} AS v").to_arrow_table().column("v")[0].as_py()
    except duckdb.Error as error:
        raise InvalidInput(f"{text}: {_message(str(error))}") from None


def failure(
    error: Exception,
    source: Source,
    shown: Mapping[str, str],
    ran: EngineText | None = None,
) -> FrazilError:
    """An error of the engine in the user's words and places."""
    if isinstance(error, FrazilError):
        return error
    kind = duckdb_kind(error)
    if kind is None:
        raise error
    text = str(error)
    message = _message(duckdb_problem(error))
    for made, name in sorted(shown.items(), key=lambda item: -len(item[0])):
        message = message.replace(made, name)
    place = "" if ran is None else _place(text, source, ran)
    return kind(f"{place}{message}")


def _message(text: str) -> str:
    plain = _LINE.split(text)[0].strip()
    plain = _KIND.sub("", plain)
    return plain[:1].lower() + plain[1:] if plain[1:2].islower() else plain


def _place(text: str, source: Source, ran: EngineText) -> str:
    """Where the engine's caret points, in the user's text."""
    match = _LINE.search(text)
    if match is None:
        return ""
    line, excerpt, blanks = int(match[1]), match[2], len(match[3])
    column = blanks - len(f"LINE {line}: ")
    lines = ran.text.split("\n")
    if line > len(lines):
        return ""
    cut = 3 if excerpt.startswith("...") else 0
    start = lines[line - 1].find(excerpt.removeprefix("...").removesuffix("..."))
    if start < 0 or column < cut:
        return ""
    offset = sum(len(each) + 1 for each in lines[: line - 1]) + start + column - cut
    return f"{source.place(ran.origin(offset))}: "
