"""What a query may use: decided on DuckDB's tree, before anything runs.

Tables are named; whether a name is one of the catalog's is for the caller to say. Of table
functions, those on a list may be called: every other one may read files, the network or the
process. Functions that give values are refused if they show the process or change it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from frazil.errors import Unsupported
from frazil.parser import nodes as n
from frazil.parser.duckdb_parser import character_offset
from frazil.parser.tokens import Source
from frazil.parser.tree import QUERY_TYPES, function_name

TABLE_FUNCTIONS: Final = frozenset(
    {"generate_series", "range", "repeat", "repeat_row", "unnest", "json_each", "json_tree"}
)
"""Table functions that make rows from their arguments alone."""
REFUSED_FUNCTIONS: Final = frozenset(
    {
        "current_connection_id",
        "current_query",
        "current_query_id",
        "current_setting",
        "current_transaction_id",
        "currval",
        "get_block_size",
        "getenv",
        "getvariable",
        "in_search_path",
        "json_serialize_plan",
        "nextval",
        "setval",
        "sleep_ms",
        "txid_current",
        "vector_type",
        "write_log",
    }
)
"""Functions that give values of the process or of DuckDB's settings, or change them."""
_TABLES: Final = frozenset(
    {"BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "PIVOT", "EMPTY"}
)
_TABLE_KEYS: Final = {
    "SELECT_NODE": ("from_table",),
    "JOIN": ("left", "right"),
    "PIVOT": ("source",),
}
_SHOWN: Final = ("SUMMARY", "DESCRIBE")
_OWN_SCHEMAS: Final = ("", "main", "system.main", "system", "pg_catalog", "memory.main")


def check(
    query: n.Query | n.Expression,
    source: Source,
    *,
    allow_files: bool = False,
    own: Collection[str] = (),
) -> None:
    """Refuse a query that uses more than its tables and its own values. `allow_files` lets it call
    every function: only a Python process may ask for that. `own` are table functions of ours."""
    for kind, raw in _parts(query.raw):
        offset = raw.get("query_location", 0)
        for key in _TABLE_KEYS.get(kind, ()):
            _check_table(raw.get(key), source)
        if kind == "TABLE_FUNCTION":
            if function_name(raw["function"])[1] not in own:
                _check_table_function(raw, source, offset, allow_files)
        elif kind == "FUNCTION" and function_name(raw)[1] not in own:
            _check_function(raw, source, offset, allow_files)
            _check_state(raw, source, offset)


def _check_table(raw: n.Json | None, source: Source) -> None:
    kind = "EMPTY" if raw is None else raw["type"]
    if raw is None or kind in _TABLES:
        return
    if kind == "SHOW_REF" and raw.get("show_type") in _SHOWN and raw.get("query"):
        return
    name = raw.get("table_name") or kind
    raise source.unsupported(0, f"a query may not have {name} in FROM", feature=str(name))


def _check_table_function(raw: n.Json, source: Source, offset: int, allow_files: bool) -> None:
    schema, name = function_name(raw["function"])
    if schema in _OWN_SCHEMAS and (name in TABLE_FUNCTIONS or allow_files):
        return
    raise source.unsupported(
        character_offset(source.text, offset),
        f"the table function {name} may not be called here"
        f"{_reads(name)}; allowed are {', '.join(sorted(TABLE_FUNCTIONS))}",
        feature=f"table function {name}",
    )


def _reads(name: str) -> str:
    if name.startswith(("read_", "parquet_", "glob", "sniff_")) or name.endswith("_scan"):
        return ": it reads files, which catalog.sql(…, allow_files=True) permits in Python"
    return ""


def _check_function(raw: n.Json, source: Source, offset: int, allow_files: bool) -> None:
    schema, name = function_name(raw)
    # Those called pg_ look into DuckDB's own catalog, where our scans are, or wait.
    refused = name in REFUSED_FUNCTIONS or (name.startswith("pg_") and name != "pg_typeof")
    if not refused or allow_files:
        return  # what stands before a name may be a column: a.lower() is lower(a)
    qualified = f"{schema}.{name}" if schema and schema not in _OWN_SCHEMAS else name
    raise source.unsupported(
        character_offset(source.text, offset),
        f"the function {qualified} may not be called here",
        feature=qualified,
    )


def _check_state(raw: n.Json, source: Source, offset: int) -> None:
    """States of aggregates have no type of ours, and DuckDB crashes with those of booleans when
    they become Arrow."""
    if raw.get("export_state") or function_name(raw)[1] == "to_aggregate_state":
        raise source.unsupported(
            character_offset(source.text, offset),
            "the state of an aggregate is not a value here; query the aggregate itself",
            feature="EXPORT_STATE",
        )


def _parts(value: Any) -> Iterator[tuple[str, n.Json]]:
    """Every part of the tree that has a kind, wherever it is."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            kind = part.get("class") or part.get("type")
            if isinstance(kind, str):
                if kind.endswith("_NODE") and kind not in QUERY_TYPES:
                    raise Unsupported(f"a query with {kind} is not supported", feature=kind)
                yield kind, part
            waiting += reversed(list(part.values()))
        elif isinstance(part, list):
            waiting += reversed(part)
