"""DuckDB asked about text: its tree, and the values of constants.

One connection of the process does nothing else. It knows no tables and no files, and text that is
asked about is never executed.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import InvalidInput
from frazil.parser.tokens import Source
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    import duckdb

TOO_DEEP: Final = "it is nested too deeply; use IN or a table for long lists, parts for long sums"
Json = Mapping[str, Any]
_KEPT_TREES: Final = 64
_MAX_KEPT_TEXT: Final = 20_000
_TREE: Final = "SELECT json_serialize_sql({}::VARCHAR, skip_default := true, skip_null := true)"
# Not skip_empty: it drops the empty grouping set of ROLLUP.
_PREPARED_TREE: Final = "EXECUTE tree({})"
_VALUES: Final = "SELECT * FROM json_execute_serialized_sql({}::JSON)"
_TEXT: Final = "SELECT json_deserialize_sql({}::JSON)"
_JSON: Final = re.compile(r'([{}\[\],:])|("(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+)')
_FAILED_RESULT: Final = "Attempting to fetch from an unsuccessful query result\nError: "
_lock = threading.Lock()
_connection: duckdb.DuckDBPyConnection | None = None
_kept: OrderedDict[str, Json] = OrderedDict()
calls = 0
"""How many times DuckDB has been asked for a tree; tests count parses with it."""


CLOSED: Final[dict[str, str | bool | int | float | list[str]]] = {
    "threads": 1,
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""The settings of a database that opens no file and loads nothing."""


def _own() -> duckdb.DuckDBPyConnection:
    """The connection of the process. Must be called with the lock held."""
    global _connection
    import _duckdb

    if _connection is None:
        _connection = _duckdb.connect(
            ":memory:",
            config={**CLOSED, "errors_as_json": "true"},
        )
        _connection.execute("SET TimeZone = 'UTC'")
        _connection.execute("SET lock_configuration = true")
        # Planned once: planning the question takes longer than answering it.
        _connection.execute("PREPARE tree AS " + _TREE.format("$1"))
    return _connection


def _answer(connection: duckdb.DuckDBPyConnection, question: str, value: str) -> str:
    ((text,),) = connection.execute(question.format(_literal(value))).fetchall()
    return str(text)


def _literal(text: str) -> str:
    """A text as a literal: given as a parameter, DuckDB would import pandas to look at it."""
    return "'" + text.replace("'", "''") + "'"


def query_json(source: Source, near: duckdb.DuckDBPyConnection | None = None) -> Json:
    """DuckDB's tree of a text that is exactly one query. A connection that is open anyway may be
    given: until something else needs a database for questions, none is opened, which takes as long
    as to import a small library."""
    global calls
    text = source.text
    with _lock:
        kept = _kept.get(text)
        if kept is not None:
            _kept.move_to_end(text)
            return kept
        calls += 1
        try:
            if near is None or _connection is not None:
                answer = decoded(_answer(_own(), _PREPARED_TREE, text))
            else:
                with near.cursor() as beside:  # what the connection reads goes on
                    answer = decoded(_answer(beside, _TREE, text))
        except MemoryError:
            raise source.problem(0, TOO_DEEP) from None
    if answer["error"]:
        raise _problem(source, answer)
    nodes = [statement["node"] for statement in answer["statements"]]
    if len(nodes) != 1:
        raise source.problem(0, f"expected one query, found {len(nodes)}")
    with _lock:
        if len(text) <= _MAX_KEPT_TEXT:
            _kept[text] = nodes[0]
            if len(_kept) > _KEPT_TREES:
                _kept.popitem(last=False)
    node: Json = nodes[0]
    return node


def decoded(text: str) -> Any:
    """JSON, however deep it is: Python's own decoder calls itself for every part inside another."""
    try:
        return json.loads(text)
    except RecursionError:
        pass
    top: list[Any] = []
    open_parts: list[Any] = [top]
    keys: list[str] = []
    is_key = False
    for match in _JSON.finditer(text):
        sign, rest = match.groups()
        if sign in ("]", "}"):
            open_parts.pop()
            is_key = False
            continue
        if sign in (",", ":"):
            is_key = sign == "," and isinstance(open_parts[-1], dict)
            continue
        if is_key:
            keys.append(json.loads(rest))
            continue
        value: Any = {} if sign == "{" else [] if sign == "[" else json.loads(rest)
        inside = open_parts[-1]
        if isinstance(inside, dict):
            inside[keys.pop()] = value
        else:
            inside.append(value)
        if sign:
            open_parts.append(value)
        is_key = sign == "{"
    return top[0]


def _problem(source: Source, answer: Json) -> InvalidInput:
    message = str(answer.get("error_message", "the text cannot be read"))
    if message.startswith("Max expression depth"):
        message = TOO_DEEP
    at = character_offset(source.text, int(answer.get("position", 0)))
    return source.problem(at, message)


def character_offset(text: str, offset: int) -> int:
    """DuckDB counts bytes."""
    if text.isascii():
        return min(offset, len(text))
    return len(text.encode()[:offset].decode(errors="ignore"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDetails:
    """What an error of DuckDB says, and where it is: in bytes of the text that ran."""

    message: str
    kind: str
    offset: int | None = None

    @property
    def is_fatal(self) -> bool:
        """Whether the database can run nothing any more."""
        return self.kind in ("INTERNAL", "FATAL")


def error_details(error: Exception) -> ErrorDetails:
    """What an error says. Connections that `errors_as_json` was set on say it in JSON; others only
    have a message."""
    text = str(error)
    kind, _, rest = text.partition(" Error: ")
    if text.startswith("{"):  # in the middle of a stream, the kind is missing
        kind, rest = "", text
    if rest.startswith("{"):
        try:
            value = json.loads(rest[: rest.rindex("}") + 1])
            inner = str(value["exception_message"]).partition(_FAILED_RESULT)[2]
            if inner:
                return error_details(ValueError(inner))
            position = value.get("position")
            return ErrorDetails(
                message=str(value["exception_message"]),
                kind=str(value.get("exception_type", kind)),
                offset=None if position is None else int(position),
            )
        except (ValueError, KeyError, TypeError):
            pass
    return ErrorDetails(message=rest or text, kind=kind)


def _as_query(expressions: Sequence[Json]) -> str:
    node = {
        "type": "SELECT_NODE",
        "cte_map": {"map": []},
        "select_list": list(expressions),
        "from_table": {"type": "EMPTY"},
        "aggregate_handling": "STANDARD_HANDLING",
    }
    return json.dumps({"error": False, "statements": [{"node": node}]})


def values_of(expressions: Sequence[Json]) -> tuple[Any, ...]:
    """The values of expressions without columns, which were judged before; InvalidInput if DuckDB
    or Python cannot tell them."""
    import duckdb

    with _lock:
        try:
            # As Arrow: as Python values, infinity would be the last day of the year 9999.
            rows = _own().sql(_VALUES.format(_literal(_as_query(expressions))))
            wide = [str(kind) in ("HUGEINT", "UHUGEINT") for kind in rows.types]
            values = rows.fetchall()[0] if any(wide) else ()
            columns = [] if all(wide) else rows.to_arrow_table().columns
            return tuple(
                values[number] if is_wide else columns[number][0].as_py()
                for number, is_wide in enumerate(wide)
            )
        except duckdb.Error as error:
            raise InvalidInput(error_details(error).message) from None
        except RecursionError:
            raise InvalidInput(TOO_DEEP) from None
        except (ArithmeticError, ValueError, TypeError) as error:
            raise InvalidInput(f"a value that Python does not have: {error}") from None


def text_of(expression: Json) -> str:
    """DuckDB's own text of an expression."""
    with _lock:
        text = _answer(_own(), _TEXT, _as_query([expression]))
    return text.removeprefix("SELECT ")
