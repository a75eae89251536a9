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
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.prune.expression_terms import Expressions
from frazil.filter.prune.variant_terms import VariantPath
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
from frazil.iceberg.types import DoubleType, FloatType
from frazil.spark.expressions.letter_cases import letter_cases
from frazil.spark.expressions.variant_fields import CALL, variant_field
from frazil.spark.expressions.windows import windows
from frazil.value_classes import dataclass

_EPOCH: Final = datetime(1970, 1, 1)
_NOT: Final = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_WHOLE: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_FRACTIONS: Final = frozenset({"FLOAT", "DOUBLE"})
Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
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
    known = [part for part in parts if part is not None]
    known += letter_cases(filters, index, expressions)
    known += windows(filters, index)
    loose = [_conjuncts(n, index) for n, part in zip(filters, parts, strict=True) if part is None]
    known += [part for parts in loose for part in parts]
    expression = conjunction(known) if known else AlwaysTrue()
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
        known = [part for part in parts if part is not None]
        return conjunction(known) if (op == "AND") != negated else disjunction(known)
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
