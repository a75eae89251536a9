"""Filters that Spark pushes into a scan, as expressions that prune the tree.

They come as JSON trees of Spark's public predicates. What has no counterpart is left out of an AND
and makes an OR or NOT unknown: that costs files, never rows, because Spark applies every filter
itself.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isnan
from typing import Any, Final

from frazil.errors import InvalidInput
from frazil.filter.bind.bind import conjunction, disjunction, predicate
from frazil.filter.bind.file_predicates import BoxPredicate, ExpressionColumn, Window
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.prune.expression_terms import Expressions, call_key
from frazil.filter.prune.variant_terms import VariantPath
from frazil.format.values.types import is_geo
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import (
    COMPARISONS,
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    Column,
    Op,
)
from frazil.iceberg.literals import Literal, literal
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import DoubleType, FloatType, VariantType
from frazil.value_classes import frozen

CALL: Final = "variant_get"
_STEP: Final = re.compile(r"""\.([^.\[]+)|\['([^']*)'\]|\["([^"]*)"\]""")
_TYPES: Final[dict[str, ice.PrimitiveType]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), ice.LongType()),
    "DOUBLE": ice.DoubleType(),
    "STRING": ice.StringType(),
    "DATE": ice.DateType(),
    "TIMESTAMP_NTZ": ice.TimestampType(),
}
_EPOCH: Final = datetime(1970, 1, 1)
_NOT: Final = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_WHOLE: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_FRACTIONS: Final = frozenset({"FLOAT", "DOUBLE"})
Node = Mapping[str, Any]
_FUNCTIONS: Final = {"LOWER": "lower", "UPPER": "upper"}
_FROM_ONE_LETTER: Final = ("SS", "FF", "FI", "FL", "ST")
"""What Java makes of one small letter, such as sharp s, that DuckDB leaves or takes for another."""
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


@frozen
class Pushed:
    """What the tree understood of a query's filters, and whether that was all of it."""

    expression: BooleanExpression
    is_exact: bool


def understood(
    filters: Sequence[Node],
    schema: Schema,
    *,
    is_all: bool,
    expressions: Expressions | None = None,
) -> Pushed:
    """The conjunction of the filters that the tree understands."""
    index = ColumnIndex.of(schema)
    parts = [_whole(node, index, negated=False) for node in filters]
    terms = [part for part in parts if part is not None]
    terms += letter_cases(filters, index, expressions)
    terms += windows(filters, index)
    loose = [_conjuncts(n, index) for n, part in zip(filters, parts, strict=True) if part is None]
    terms += [part for parts in loose for part in parts]
    expression = conjunction(terms) if terms else AlwaysTrue()
    is_exact = is_all and None not in parts and not any(_has_call(node) for node in filters)
    return Pushed(expression=expression, is_exact=is_exact)


def _has_call(node: Node) -> bool:
    """Whether a filter has a part that prunes and proves nothing of rows."""
    return node.get("op") == CALL or any(map(_has_call, node.get("children", ())))


def _conjuncts(node: Node, index: ColumnIndex) -> list[BooleanExpression]:
    if node.get("op") != "AND":
        return []
    parts: list[BooleanExpression] = []
    for child in node["children"]:
        whole = _whole(child, index, negated=False)
        parts += [whole] if whole is not None else _conjuncts(child, index)
    return parts


def _whole(node: Node, index: ColumnIndex, *, negated: bool) -> BooleanExpression | None:
    """The whole condition, or None where a part of it is not understood."""
    op = node.get("op")
    if op is None:
        return _flag(node, index, negated=negated)
    children = node.get("children", [])
    if op == "NOT":
        return _whole(children[0], index, negated=not negated)
    if op in ("AND", "OR"):
        parts = [_whole(child, index, negated=negated) for child in children]
        if None in parts:
            return None
        terms = [part for part in parts if part is not None]
        return conjunction(terms) if (op == "AND") != negated else disjunction(terms)
    if op in ("ALWAYS_TRUE", "ALWAYS_FALSE"):
        return AlwaysTrue() if (op == "ALWAYS_TRUE") != negated else AlwaysFalse()
    try:
        return _comparison(op, children, index, negated=negated)
    except InvalidInput:
        return None  # a literal that the column's type has no place for


def _flag(node: Node, index: ColumnIndex, *, negated: bool) -> BooleanExpression | None:
    if "column" in node:
        column = _column(node, index)
        return None if column is None else predicate(Op.EQ, column, [literal(not negated)])
    if node.get("type") == "BOOLEAN" and node["value"] is not None:
        return AlwaysTrue() if bool(node["value"]) != negated else AlwaysFalse()
    return None


def _comparison(
    op: str, children: Sequence[Node], index: ColumnIndex, *, negated: bool
) -> BooleanExpression | None:
    column = _column(children[0], index) if children else None
    if op in COMPARISONS and column is None:
        mirrored = COMPARISONS[op].mirrored.value
        sign = "<>" if mirrored == "!=" else mirrored
        column = _column(children[1], index)
        return None if column is None else _ordered(sign, column, children[0], negated=negated)
    if column is None:
        return None
    if op in COMPARISONS:
        return _ordered(op, column, children[1], negated=negated)
    if op == "<=>" and not negated:
        if children[1].get("value") is None:
            return predicate(Op.IS_NULL, column) if "type" in children[1] else None
        return _ordered("=", column, children[1], negated=False)
    if op in ("IS_NULL", "IS_NOT_NULL"):
        return predicate(Op.IS_NULL if (op == "IS_NULL") != negated else Op.NOT_NULL, column)
    if op == "IN" and not negated:
        return _members(column, children[1:])
    if op == "STARTS_WITH" and not negated:
        value = _literal(children[1])
        return None if value is None else predicate(Op.STARTS_WITH, column, [value])
    return None


def _ordered(sign: str, column: Column, value: Node, *, negated: bool) -> BooleanExpression | None:
    sign = _NOT[sign] if negated else sign
    if isinstance(column.field.field_type, FloatType | DoubleType):
        return _fraction(sign, column, value)
    constant = _literal(value)
    return None if constant is None else predicate(COMPARISONS[sign], column, [constant])


def _fraction(sign: str, column: Column, value: Node) -> BooleanExpression | None:
    """Spark holds NaN to be equal to itself and above every number."""
    if _is_nan(value):
        return predicate(Op.IS_NAN, column) if sign in ("=", ">=") else None
    constant = _literal(value)
    if constant is None:
        return None
    part = predicate(COMPARISONS[sign], column, [constant])
    # A field inside variants that may be NaN has no bounds.
    if sign in (">", ">=", "<>") and not isinstance(column, VariantPath):
        return disjunction([part, predicate(Op.IS_NAN, column)])
    return part


def _members(column: Column, values: Sequence[Node]) -> BooleanExpression | None:
    nodes = [node for node in values if node.get("value") is not None]
    if isinstance(column.field.field_type, FloatType | DoubleType):
        parts = [_fraction("=", column, node) for node in nodes]
        whole = [part for part in parts if part is not None]
        if len(whole) < len(parts):
            return None
        return disjunction(whole) if whole else AlwaysFalse()
    literals = [_literal(node) for node in nodes]
    known = [value for value in literals if value is not None]
    return predicate(Op.IN, column, known) if len(known) == len(literals) else None


def _is_nan(node: Node) -> bool:
    is_fraction = node.get("type") in _FRACTIONS and node.get("value") is not None
    return is_fraction and isnan(float(node["value"]))


def _column(node: Node, index: ColumnIndex) -> Column | None:
    path = node.get("column")
    if path is None:
        return variant_field(node, index)
    names = tuple(path)
    return next((column for column in index.by_id.values() if column.path == names), None)


def _literal(node: Node) -> Literal | None:
    kind, value = node.get("type"), node.get("value")
    if kind is None or value is None:
        return None
    if kind == "BOOLEAN":
        return literal(bool(value))
    if kind in _WHOLE:
        return literal(int(value))
    if kind in _FRACTIONS:
        return None if _is_nan(node) else literal(float(value))
    if kind.startswith("DECIMAL"):
        return literal(Decimal(value))
    if kind == "STRING" or re.match(r"(VAR)?CHAR", kind):
        return literal(str(value))
    if kind == "DATE":
        return literal(date(1970, 1, 1) + timedelta(days=int(value)))
    if kind in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        moment = _EPOCH + timedelta(microseconds=int(value))
        return literal(moment.replace(tzinfo=UTC) if kind == "TIMESTAMP" else moment)
    if kind == "BINARY":
        return literal(base64.b64decode(value))
    return None


def letter_cases(
    filters: Sequence[Node], index: ColumnIndex, expressions: Expressions | None
) -> list[BooleanExpression]:
    """What filters that all have to hold say of `lower(name) = 'x'`, where a table has statistics
    of `lower(name)`.

    Spark evaluates the condition, and DuckDB evaluated the expression when the rows were written.
    They agree where the text that is looked for is plain ASCII: then no letter of the row had a
    case of its own in one of them (the dotted I of Turkish, the last sigma of Greek words, German
    sharp s). Other conditions prune nothing here.
    """
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
            part = _cases_in(children[0], children[1:], index, expressions)
            if part is None and node["op"] == "=":
                part = _cases_in(children[1], children[:1], index, expressions)
            parts += [] if part is None else [part]
    return parts


def _cases_in(
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


def windows(filters: Sequence[Node], index: ColumnIndex) -> list[BoxPredicate]:
    """The windows `bbox(shape, xmin, ymin, xmax, ymax)` of filters that all have to hold."""
    boxes: list[BoxPredicate] = []
    rest = list(filters)
    while rest:
        node = rest.pop()
        children = node.get("children", [])
        if node.get("op") in ("AND", "BOOLEAN_EXPRESSION"):
            rest += children
        elif node.get("op") == "bbox" and len(children) == 5:
            window = _window(children, index)
            boxes += [] if window is None else [window]
    return boxes


def _window(children: Sequence[Node], index: ColumnIndex) -> BoxPredicate | None:
    path = tuple(children[0].get("column", ()))
    column = next((one for one in index.by_id.values() if one.path == path), None)
    if column is None or not is_geo(column.field.field_type):
        return None
    ends = [_number(node) for node in children[1:]]
    if any(end is None or end != end for end in ends):
        return None
    west, south, east, north = (float(end) for end in ends if end is not None)
    window = Window(west=west, south=min(south, north), east=east, north=max(south, north))
    return BoxPredicate(column, window)


def _number(node: Node) -> float | None:
    value = node.get("value")
    if value is None or not str(node.get("type", "")).startswith(_NUMBERS):
        return None
    return float(value)


__all__ = ["CALL", "letter_cases", "variant_field", "windows"]


def variant_field(node: Mapping[str, Any], index: ColumnIndex) -> VariantPath | None:
    """The field inside variants that `variant_get(v, '$.price', 'int')` reads; None for other parts
    of a condition, and inside arrays.

    Spark cuts what a cast to an integer rounds in DuckDB; both lie within the field's bounds.
    """
    if node.get("op") != CALL or len(node["children"]) != 1:
        return None
    path = tuple(node["children"][0].get("column", ()))
    column = next((one for one in index.by_id.values() if one.path == path), None)
    kind = _TYPES.get(str(node["type"]))
    names = _names(str(node["path"]))
    if column is None or kind is None or names is None:
        return None
    if not isinstance(column.field.field_type, VariantType):
        return None
    return VariantPath(column, names, kind, is_cast=True)


def _names(path: str) -> list[str] | None:
    if not path.startswith("$"):
        return None
    names, at = [], 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        names.append(next(name for name in step.groups() if name is not None))
        at = step.end()
    return names
