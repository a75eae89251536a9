"""Expressions that a table may keep statistics of: judged before they are declared.

Bounds of `lower(name)` rule a file out years after they were written. So the values must follow
from the row alone: scalar functions that DuckDB calls consistent, over columns of the table. What
depends on the session (time zones) or on the version (hashes) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from frazil.data.schema import arrow_schema, iceberg_schema
from frazil.data.statistics.expression_stats import ROWS, connection
from frazil.errors import InvalidInput, Unsupported
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.prune.expression_terms import tree_key
from frazil.filter.text.sql_text import columns_of_schema, judged
from frazil.format.entries.stats import has_bounds
from frazil.format.expressions import Declaration, written
from frazil.format.values.types import is_geo
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import Column
from frazil.iceberg.schema import Schema
from frazil.parser import nodes as n
from frazil.parser.duckdb_parser import error_details, text_of

MAX_EXPRESSIONS: Final = 100
"""More statistics than anybody asks for beside those of the columns."""
_WHAT: Final = "expression"
_KINDS: Final = frozenset(
    {
        "BETWEEN",
        "CASE",
        "CAST",
        "COLUMN_REF",
        "COMPARISON",
        "CONJUNCTION",
        "CONSTANT",
        "FUNCTION",
        "OPERATOR",
    }
)
_OF_THE_VERSION: Final = frozenset({"hash", "typeof", "version", "json_structure"})
"""Functions that DuckDB calls consistent, and whose values change from version to version."""
_NO_SOURCES: Final = (ice.UUIDType, ice.FixedType, ice.TimestampNanoType, ice.UnknownType)
"""Types that rows in memory have in another form than DuckDB does when it reads a file."""
_ZONED: Final = (ice.TimestamptzType, ice.TimestamptzNanoType)


def declarations(texts: Sequence[str], schema: Schema) -> list[Declaration]:
    """The expressions that texts say, each once; refuses what cannot have lasting statistics."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise InvalidInput(f"expressions takes a list of texts: expressions=[{texts!r}]")
    if len(texts) > MAX_EXPRESSIONS:
        raise InvalidInput(f"{len(texts)} expressions; a table has at most {MAX_EXPRESSIONS}")
    declared: dict[str, Declaration] = {}
    for text in texts:
        if not isinstance(text, str):
            raise InvalidInput(f"an expression is {text!r}; expected text such as 'lower(name)'")
        key, declaration = _declaration(text, schema)
        if key in declared:
            raise InvalidInput(f"expression {text} is given twice")
        declared[key] = declaration
    return list(declared.values())


def _declaration(text: str, schema: Schema) -> tuple[str, Declaration]:
    _, tree = judged(text, {"t": columns_of_schema(schema)}, case_sensitive=False, what=_WHAT)
    if isinstance(tree, n.ColumnRef):
        raise InvalidInput(f"expression {text} is a column, which has statistics anyway")
    index = ColumnIndex.of(schema)
    sources: dict[int, Column] = {}
    places: dict[int, int] = {}
    for node in tree.walk():
        _check(node, text)
        if isinstance(node, n.ColumnRef):
            column = _source(node, index, text)
            places[id(node.raw)] = column.field.field_id
            sources[column.field.field_id] = column
    if not sources:
        raise InvalidInput(f"expression {text} has no column of the table")
    ids = tuple(sources)
    sql = text_of(_with_parameters(tree.raw, places, ids))
    key = tree_key(tree, lambda node: places.get(id(node.raw)))
    assert key is not None
    kind = _type(tree, sql, text, [column.path for column in sources.values()], schema)
    return key, Declaration(sql=sql, source_ids=ids, type=kind)


def _check(node: n.Expression, text: str) -> None:
    if node.kind not in _KINDS or node.queries:
        what = node.kind.lower().replace("_", " ")
        raise _refused(text, f"{what} is not a value of one row", what)
    if not isinstance(node, n.Function):
        return
    if not node.is_plain or node.name not in _consistent() or node.name in _OF_THE_VERSION:
        reason = f"{node.name} may give other values for the same row, or is no scalar function"
        raise _refused(text, reason, node.name)
    if not node.children:
        raise _refused(text, f"{node.name}() has no column", node.name)


def _refused(text: str, reason: str, feature: str) -> Unsupported:
    return Unsupported(
        f"expression {text} cannot have statistics: {reason}",
        feature=f"{feature} in expressions with statistics",
    )


@lru_cache(maxsize=1)
def _consistent() -> frozenset[str]:
    """Functions all of whose forms are scalar and say that equal arguments give equal values."""
    rows = connection().execute(
        "SELECT function_name FROM duckdb_functions() GROUP BY function_name "
        "HAVING bool_and(function_type = 'scalar' AND stability = 'CONSISTENT')"
    )
    return frozenset(name.lower() for (name,) in rows.fetchall())


def _source(node: n.ColumnRef, index: ColumnIndex, text: str) -> Column:
    names = node.names[1:] if node.names[0] == "t" and len(node.names) > 1 else node.names
    column = index.named(".".join(names), case_sensitive=False)
    kind = column.field.field_type
    for part in _types_in(kind):
        if isinstance(part, _ZONED):
            raise _refused(text, f"column '{column.name}' depends on a time zone", "timestamptz")
        if isinstance(part, _NO_SOURCES) or is_geo(part):
            raise _refused(text, f"column '{column.name}' is a {part}", str(part))
    return column


def _types_in(kind: ice.IcebergType) -> Iterator[ice.IcebergType]:
    yield kind
    if isinstance(kind, ice.StructType):
        for field in kind.fields:
            yield from _types_in(field.field_type)
    elif isinstance(kind, ice.ListType):
        yield from _types_in(kind.element_type)
    elif isinstance(kind, ice.MapType):
        yield from _types_in(kind.key_type)
        yield from _types_in(kind.value_type)


def _with_parameters(raw: Any, places: dict[int, int], ids: tuple[int, ...]) -> Any:
    """A tree with `$1` for the first column and so on."""
    if isinstance(raw, list):
        return [_with_parameters(item, places, ids) for item in raw]
    if not isinstance(raw, dict):
        return raw
    field_id = places.get(id(raw))
    if field_id is not None:
        number = str(ids.index(field_id) + 1)
        return {"class": "PARAMETER", "type": "VALUE_PARAMETER", "identifier": number}
    return {key: _with_parameters(value, places, ids) for key, value in raw.items()}


def _type(
    tree: n.Expression, sql: str, text: str, paths: Sequence[tuple[str, ...]], schema: Schema
) -> ice.PrimitiveType:
    import duckdb

    rows = arrow_schema(schema).empty_table()
    names = [path_text(path) for path in paths]
    inner = [text_of(node.raw) for node in tree.walk() if not isinstance(node, n.Constant)]
    try:
        relation = connection().from_arrow(rows).set_alias(ROWS)
        result = relation.project(written(sql, names))
        kinds = relation.project(", ".join(inner)).types
        arrow: pa.Schema = result.to_arrow_table().schema
    except duckdb.Error as error:
        raise InvalidInput(f"expression {text}: {error_details(error).message}") from None
    zoned = next((kind for kind in (*kinds, *result.types) if "TIME ZONE" in str(kind)), None)
    if zoned is not None:
        raise _refused(text, f"a part of it is a {zoned}", "time zones")
    duck = str(result.types[0])
    try:
        kind = iceberg_schema(arrow).fields[0].field_type
    except (InvalidInput, Unsupported):
        kind = ice.UnknownType()
    if duck == "JSON" or duck == "HUGEINT" or not has_bounds(kind) or isinstance(kind, _NO_SOURCES):
        hint = "; write json_extract_string for text" if duck == "JSON" else ""
        raise _refused(text, f"its values are {duck}, which has no bounds{hint}", duck)
    assert isinstance(kind, ice.PrimitiveType)
    return kind


def path_text(path: Sequence[str]) -> str:
    """A column of the rows, in quotes."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in path)


__all__ = ["declarations"]
