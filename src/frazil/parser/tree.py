"""DuckDB's JSON tree as nodes. The only module that knows its shape.

What is not known becomes a plain `Expression`, `TableRef` or `Query` with everything that is inside
it, so that nothing is passed over.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import InvalidInput
from frazil.parser import nodes as n
from frazil.parser.duckdb_parser import query_json
from frazil.parser.tokens import Source

if TYPE_CHECKING:
    import duckdb

Json = n.Json
QUERY_TYPES: Final = frozenset(
    {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE", "STATEMENT_NODE"}
)
_COMPARISONS: Final = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_DISTINCT_FROM": "IS DISTINCT FROM",
    "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
}
_OPERATORS: Final = {
    "OPERATOR_NOT": "NOT",
    "OPERATOR_IS_NULL": "IS NULL",
    "OPERATOR_IS_NOT_NULL": "IS NOT NULL",
    "COMPARE_IN": "IN",
    "COMPARE_NOT_IN": "NOT IN",
    "OPERATOR_COALESCE": "COALESCE",
    "ARRAY_EXTRACT": "ARRAY_EXTRACT",
    "STRUCT_EXTRACT": "STRUCT_EXTRACT",
}
_OWN_SCHEMAS: Final = ("", "main", "system", "pg_catalog")
_POSITIONS: Final = ("query_location", "query_location_length")
_NOT_INSIDE: Final = ("type_expr", "literal")


def parse_query(text: str | Source, near: duckdb.DuckDBPyConnection | None = None) -> n.Query:
    """The tree of a text that is one query; InvalidInput otherwise. `near` as `query_json`'s."""
    source = text if isinstance(text, Source) else Source(text)
    return _Reader(source.text).query(query_json(source, near))


def parse_expression(text: str) -> n.Expression:
    """The tree of a text that is exactly one expression: neither more (`1) FROM x --`, `1, 2`,
    `1 AS a`) nor less. Offsets are those of the text."""
    prefix = "SELECT "
    source = Source(text)
    try:
        node = parse_query(prefix + text + "\n")
    except InvalidInput as error:
        raise _shifted(error, len(prefix), source) from None
    if not (
        isinstance(node, n.Select)
        and len(node.outputs) == 1
        and not node.outputs[0].alias
        and node.source is None
        and not node.ctes
        and not isinstance(node.outputs[0], n.Star)
    ):
        raise source.problem(0, "expected one expression")
    # In brackets, nothing but an expression has the same tree: no clause can follow it.
    try:
        bracketed = query_json(Source(f"SELECT (\n{text}\n)"))
    except InvalidInput:
        raise source.problem(0, "expected one expression") from None
    if not is_same_tree(bracketed, node.raw):
        raise source.problem(0, "expected one expression")
    reader = _Reader(prefix + text + "\n", shift=len(prefix))
    return reader.expression(node.outputs[0].raw)


def _shifted(error: InvalidInput, size: int, source: Source) -> InvalidInput:
    line, column = error.position or (1, 1)
    if line == 1:
        column = max(column - size, 1)
    shifted = InvalidInput(error.message)
    shifted.position = (line, column) if source.text else (1, 1)
    return shifted


def is_same_tree(one: Any, other: Any, seen_as: Callable[[Json], Json] = lambda part: part) -> bool:
    """Whether two trees are equal but for positions; their parts are compared as `seen_as`."""
    waiting = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            left, right = seen_as(left), seen_as(right)
            keys = [key for key in left if key not in _POSITIONS]
            if sorted(keys) != sorted(key for key in right if key not in _POSITIONS):
                return False
            waiting.extend((left[key], right[key]) for key in keys)
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            waiting.extend(zip(left, right, strict=True))
        elif left != right:
            return False
    return True


def table_path(raw: Json) -> tuple[str, ...]:
    """The name of a table in its parts."""
    return tuple(raw["qualified_name"]["path"])


def function_name(raw: Json) -> tuple[str, str]:
    """The schema and the name of a function, in lower case."""
    *schema, name = (str(part).lower() for part in raw["qualified_name"]["path"])
    return ".".join(schema), name


class _Reader:
    def __init__(self, text: str, *, shift: int = 0) -> None:
        self._ends = None if text.isascii() else list(accumulate(len(c.encode()) for c in text))
        self._shift = shift

    def _start(self, raw: Json) -> int | None:
        at = raw.get("query_location")
        if at is None:
            return None
        return (at if self._ends is None else bisect_right(self._ends, at)) - self._shift

    # Queries

    def query(self, raw: Json) -> n.Query:
        kind = raw["type"]
        ctes = tuple(self._ctes(raw))
        modifiers = raw.get("modifiers") or []
        common: dict[str, Any] = {
            "kind": kind,
            "raw": raw,
            "ctes": ctes,
            "is_limited": any(map(_limits, modifiers)),
        }
        expressions, queries, _ = self._inside(modifiers)
        if kind == "SELECT_NODE":
            return self._select(raw, {**common, "expressions": expressions, "queries": queries})
        if kind == "SET_OPERATION_NODE":
            sides = raw["children"]
            return n.SetOperation(
                **common,
                expressions=expressions,
                queries=(*(self.query(side) for side in sides), *queries),
                operator=raw["setop_type"],
            )
        rest = {k: v for k, v in raw.items() if k != "cte_map"}
        expressions, queries, tables = self._inside(rest)
        queries += tuple(inner for table in tables for inner in table.queries)
        return n.Query(**common, expressions=expressions, queries=queries)

    def _ctes(self, raw: Json) -> Iterator[n.Cte]:
        for entry in (raw.get("cte_map") or {}).get("map") or ():
            value = entry["value"]
            yield n.Cte(
                name=entry["key"],
                columns=tuple(value.get("aliases") or ()),
                query=self.query(value["query_node"]),
            )

    def _select(self, raw: Json, common: dict[str, Any]) -> n.Select:
        source = raw.get("from_table") or {"type": "EMPTY"}
        empty = source["type"] == "EMPTY"
        keys = tuple(self.expression(key) for key in raw.get("group_expressions") or ())
        sets = raw.get("group_sets") or []
        forced = raw.get("aggregate_handling") != "STANDARD_HANDLING"
        return n.Select(
            **common,
            outputs=tuple(self.expression(output) for output in raw["select_list"]),
            source=None if empty else self.table(source),
            where=self._maybe(raw.get("where_clause")),
            keys=keys,
            has_plain_keys=bool(keys) and not forced and sets == [list(range(len(keys)))],
            is_grouped=bool(keys) or bool(sets) or forced,
            having=self._maybe(raw.get("having")),
            qualify=self._maybe(raw.get("qualify")),
            is_sampled=raw.get("sample") is not None,
        )

    def _maybe(self, raw: Json | None) -> n.Expression | None:
        return None if raw is None else self.expression(raw)

    # FROM

    def table(self, raw: Json) -> n.TableRef:
        kind = raw["type"]
        common: dict[str, Any] = {
            "kind": kind,
            "raw": raw,
            "start": self._start(raw),
            "alias": raw.get("alias", ""),
            "columns": tuple(raw.get("column_name_alias") or ()),
            "is_sampled": raw.get("sample") is not None,
        }
        match kind:
            case "BASE_TABLE":
                at = raw.get("at_clause")
                expressions, queries, _ = self._inside(at or {})
                return n.BaseTable(
                    **common,
                    path=table_path(raw),
                    has_at=at is not None,
                    expressions=expressions,
                    queries=queries,
                )
            case "JOIN":
                condition = self._maybe(raw.get("condition"))
                return n.JoinRef(
                    **common,
                    type=raw["join_type"],
                    method=raw["ref_type"],
                    condition=condition,
                    using=tuple(raw.get("using_columns") or ()),
                    inside=(self.table(raw["left"]), self.table(raw["right"])),
                    expressions=() if condition is None else (condition,),
                )
            case "SUBQUERY":
                query = self.query(raw["subquery"]["node"])
                return n.SubqueryRef(**common, query=query, queries=(query,))
            case "TABLE_FUNCTION":
                function = self.expression(raw["function"])
                return n.TableFunction(**common, function=function, expressions=(function,))
        expressions, queries, tables = self._inside(
            {key: value for key, value in raw.items() if key != "sample"}
        )
        return n.TableRef(**common, expressions=expressions, queries=queries, inside=tables)

    # Expressions

    def expression(self, raw: Json) -> n.Expression:
        outer: list[Json] = []
        while raw["class"] == "FUNCTION" and (first := _first_call(raw)) is not None:
            outer.append(raw)  # a long sum is as deep as it is long
            raw = first
        node = self._expression(raw)
        for call in reversed(outer):
            node = self._function(call, self._common(call), node)
        return node

    def _common(self, raw: Json) -> dict[str, Any]:
        return {
            "kind": raw["class"],
            "raw": raw,
            "start": self._start(raw),
            "alias": raw.get("alias", ""),
        }

    def _expression(self, raw: Json) -> n.Expression:
        kind = raw["class"]
        common = self._common(raw)
        match kind:
            case "COLUMN_REF":
                return n.ColumnRef(**common, names=tuple(raw["column_names"]))
            case "CONSTANT":
                return _constant(raw, common)
            case "COMPARISON" if raw["type"] in _COMPARISONS:
                sides = (self.expression(raw["left"]), self.expression(raw["right"]))
                return n.Comparison(**common, operator=_COMPARISONS[raw["type"]], children=sides)
            case "CAST":
                return self._cast(raw, common)
            case "BETWEEN" if raw["type"] == "COMPARE_BETWEEN":
                inside = (raw["input"], raw["lower"], raw["upper"])
                return n.Between(**common, children=tuple(map(self.expression, inside)))
            case "FUNCTION":
                return self._function(raw, common)
        expressions, queries, _ = self._inside(raw)
        common |= {"children": expressions, "queries": queries}
        match kind:
            case "CONJUNCTION":
                return n.Conjunction(**common, operator=raw["type"].removeprefix("CONJUNCTION_"))
            case "OPERATOR":
                return n.Operator(**common, name=_OPERATORS.get(raw["type"], str(raw["type"])))
            case "SUBQUERY":
                return n.SubqueryExpression(**common)
            case "WINDOW":
                return n.Window(**common)
            case "STAR":
                more = ("exclude_list", "replace_list", "rename_list", "qualified_exclude_list")
                is_simple = not any(raw.get(key) for key in (*more, "columns", "expr"))
                relation = raw.get("relation_name", "")
                return n.Star(**common, relation=relation, is_plain=is_simple)
        return n.Expression(**common)

    def _cast(self, raw: Json, common: dict[str, Any]) -> n.Expression:
        child = self.expression(raw["child"])
        is_try = bool(raw.get("try_cast"))
        return n.Cast(**common, children=(child,), type=_type_name(raw), is_try=is_try)

    def _function(
        self, raw: Json, common: dict[str, Any], first: n.Expression | None = None
    ) -> n.Function:
        """A call, whose first argument may have been read before."""
        arguments = _arguments(raw)[0 if first is None else 1 :]
        before = () if first is None else (first,)
        children = (*before, *(self.expression(argument) for argument in arguments))
        rest = {k: v for k, v in raw.items() if k != "arguments"}
        more, queries, _ = self._inside(rest)
        schema, name = function_name(raw)
        return n.Function(
            **common,
            name=name,
            children=(*children, *more),
            queries=queries,
            is_plain=schema in _OWN_SCHEMAS and not more and not raw.get("distinct"),
        )

    def _inside(
        self, value: Any
    ) -> tuple[tuple[n.Expression, ...], tuple[n.Query, ...], tuple[n.TableRef, ...]]:
        """Expressions, queries and tables that are nearest inside a part of the tree."""
        expressions: list[n.Expression] = []
        queries: list[n.Query] = []
        tables: list[n.TableRef] = []
        for inner in _nearest(value):
            if "class" in inner:
                expressions.append(self.expression(inner))
            elif inner["type"] in QUERY_TYPES:
                queries.append(self.query(inner))
            else:
                tables.append(self.table(inner))
        return tuple(expressions), tuple(queries), tuple(tables)


def _arguments(raw: Json) -> list[Json]:
    return [argument["expression"] for argument in raw.get("arguments") or ()]


def _first_call(raw: Json) -> Json | None:
    """The first argument of a call if it is a call, too."""
    arguments = _arguments(raw)[:1]
    return arguments[0] if arguments and arguments[0]["class"] == "FUNCTION" else None


TABLE_TYPES: Final = frozenset(
    {
        "BASE_TABLE",
        "SUBQUERY",
        "JOIN",
        "TABLE_FUNCTION",
        "EXPRESSION_LIST",
        "CTE",
        "PIVOT",
        "SHOW_REF",
        "COLUMN_DATA",
        "DELIM_GET",
        "BOUND_TABLE_REF",
        "EMPTY",
        "EMPTY_FROM",
    }
)


def _nearest(value: Any) -> Iterator[Json]:
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in inside:
        if key in _NOT_INSIDE:
            continue
        if isinstance(inner, dict):
            kind = inner.get("type")
            if "class" in inner or (
                isinstance(kind, str) and (kind in QUERY_TYPES or kind in TABLE_TYPES)
            ):
                yield inner
            else:
                yield from _nearest(inner)
        elif isinstance(inner, list):
            yield from _nearest(inner)


def _limits(modifier: Json) -> bool:
    return modifier["type"] != "ORDER_MODIFIER" and (
        modifier["type"] != "DISTINCT_MODIFIER" or bool(modifier.get("distinct_on_targets"))
    )


def _type_name(raw: Json) -> str:
    kind = raw["type_expr"]
    name = str(kind.get("type_name", "")).upper()
    sizes = [child.get("literal", {}).get("text", "") for child in kind.get("children") or ()]
    return f"{name}({','.join(sizes)})" if name == "DECIMAL" and sizes else name


_INTEGER: Final = re.compile(r"-?\d+")


def _constant(raw: Json, common: dict[str, Any]) -> n.Expression:
    kind, text = raw["literal"]["kind"], raw["literal"].get("text", "")
    match kind:
        case "NULL_LITERAL":
            return n.Constant(**common, value=None, type="NULL")
        case "STRING":
            return n.Constant(**common, value=text, type="VARCHAR")
        case "BOOLEAN":
            return n.Constant(**common, value=text.lower() == "true", type="BOOLEAN")
        case "INTEGER" | "NUMERIC":
            return _number(text.replace("_", ""), common)
    return n.Expression(**common)


def _number(text: str, common: dict[str, Any]) -> n.Constant:
    """A number as DuckDB types it: a decimal unless it has an exponent or too many digits."""
    digits = sum(char.isdigit() for char in text)
    if _INTEGER.fullmatch(text):
        value = int(text)
        if -(2**127) <= value < 2**127:
            kind = "INTEGER" if -(2**31) <= value < 2**31 else "BIGINT"
            kind = kind if -(2**63) <= value < 2**63 else "HUGEINT"
            return n.Constant(**common, value=value, type=kind)
    elif "e" not in text.lower() and digits <= 38:
        return n.Constant(**common, value=Decimal(text), type="DECIMAL")
    return n.Constant(**common, value=float(text), type="DOUBLE")
