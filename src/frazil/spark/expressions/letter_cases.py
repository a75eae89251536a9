"""`lower(name) = 'x'` in Spark, where a table has statistics of `lower(name)`.

Spark evaluates the condition, and DuckDB evaluated the expression when the rows were written. They
agree where the text that is looked for is plain ASCII: then no letter of the row had a case of its
own in one of them (the dotted I of Turkish, the last sigma of Greek words, German sharp s). Other
conditions prune nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from frazil.filter.bind.bind import predicate
from frazil.filter.bind.expression_column import ExpressionColumn
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.prune.expression_terms import Expressions, call_key
from frazil.iceberg.expressions import BooleanExpression, Column, Op
from frazil.iceberg.literals import literal

Node = Mapping[str, Any]
_FUNCTIONS: Final = {"LOWER": "lower", "UPPER": "upper"}
_FROM_ONE_LETTER: Final = ("SS", "FF", "FI", "FL", "ST")
"""What Java makes of one small letter, such as sharp s, that DuckDB leaves or takes for another."""


def letter_cases(
    filters: Sequence[Node], index: ColumnIndex, expressions: Expressions | None
) -> list[BooleanExpression]:
    """What filters that all have to hold say of such expressions."""
    if expressions is None:
        return []
    parts: list[BooleanExpression] = []
    rest = list(filters)
    while rest:
        node = rest.pop()
        children = node.get("children", [])
        if node.get("op") == "AND":
            rest += children
        elif node.get("op") in ("=", "IN") and len(children) > 1:
            part = _members(children[0], children[1:], index, expressions)
            if part is None and node["op"] == "=":
                part = _members(children[1], children[:1], index, expressions)
            parts += [] if part is None else [part]
    return parts


def _members(
    call: Node, values: Sequence[Node], index: ColumnIndex, expressions: Expressions
) -> BooleanExpression | None:
    function = _FUNCTIONS.get(call.get("op", ""))
    column = _expression(function, call, index, expressions)
    texts = [value.get("value") for value in values if value.get("type") == "STRING"]
    if function is None or column is None or len(texts) < len(values):
        return None
    if not all(isinstance(text, str) and _is_plain(function, text) for text in texts):
        return None
    return predicate(Op.IN, column, [literal(text) for text in texts])


def _expression(
    function: str | None, call: Node, index: ColumnIndex, expressions: Expressions
) -> ExpressionColumn | None:
    children = call.get("children", [])
    if function is None or len(children) != 1 or "column" not in children[0]:
        return None
    path = tuple(children[0]["column"])
    column: Column | None = next((c for c in index.by_id.values() if c.path == path), None)
    if column is None:
        return None
    return expressions.columns.get(call_key(function, column.field.field_id))


def _is_plain(function: str, text: str) -> bool:
    """Whether both engines make this text of the same rows."""
    if not text.isascii():
        return False
    return function == "lower" or not any(part in text for part in _FROM_ONE_LETTER)


__all__ = ["letter_cases"]
