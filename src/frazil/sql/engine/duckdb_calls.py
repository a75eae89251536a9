"""DuckDB's errors in the user's words, with positions in the user's text."""

from __future__ import annotations

from frazil.errors import FrazilError
from frazil.parser.duckdb_parser import character_offset, error_details
from frazil.parser.edits import EngineText
from frazil.parser.tokens import Source
from frazil.rows.duckdb.duckdb_failures import duckdb_kind, duckdb_problem
from frazil.sql.engine.sql_engine import SqlEngine


def failure(
    error: Exception,
    source: Source,
    engine: SqlEngine,
    ran: EngineText | None = None,
    *,
    shift: int = 0,
) -> FrazilError:
    """An error of the engine in the user's words and places; after a crash, other statements get
    another database. `shift` is how much stood before the text that ran."""
    if isinstance(error, FrazilError):
        return error
    details = error_details(error)
    if details.is_fatal:
        engine.renew()
    cause = OSError(f"{details.kind} Error: {details.message}") if details.kind else error
    kind = duckdb_kind(cause)
    if kind is None:
        raise error
    problem = duckdb_problem(cause)
    message = details.message if problem == str(cause) else problem
    for own_name, name in sorted(engine.user_names.items(), key=lambda item: -len(item[0])):
        message = message.replace(own_name, name)
    made_error = kind(message[:1].lower() + message[1:] if message[1:2].islower() else message)
    if ran is not None and ran.has_origin and details.offset is not None:
        offset = character_offset(ran.text, details.offset - shift)
        source.with_position(ran.origin(offset), made_error)
    return made_error
