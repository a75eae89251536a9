"""Expressions of polars, read from their JSON form. Parts without a column polars evaluates."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any, Final

from frazil.errors import InvalidInput
from frazil.filter.frames import terms as t
from frazil.iceberg.expressions import Op

_COMPARISONS: Final = {
    "Eq": Op.EQ,
    "NotEq": Op.NE,
    "Lt": Op.LT,
    "LtEq": Op.LE,
    "Gt": Op.GT,
    "GtEq": Op.GE,
}
_BOTH: Final = ("And", "LogicalAnd")
_EITHER: Final = ("Or", "LogicalOr")
_CLOSED: Final = {
    "Both": (Op.GE, Op.LE),
    "Left": (Op.GE, Op.LT),
    "Right": (Op.GT, Op.LE),
    "None": (Op.GT, Op.LT),
}
_FOLDED: Final = ("Literal",)
_FLOATS: Final = ("Float", "Float32", "Float64")


def polars_term(expression: Any) -> t.Term:
    """The condition that the expression says."""
    try:
        tree = json.loads(expression.meta.serialize(format="json"))
    except Exception as error:  # polars' own, such as one for a Python function
        raise InvalidInput(
            f"the polars expression {expression} cannot be serialized, so it cannot be a filter: "
            f"{error}"
        ) from None
    return _term(tree)


def _term(node: dict[str, Any]) -> t.Term:
    (kind, inner), *_ = node.items()
    match kind:
        case "Column" | "Literal":
            return _operand(node)
        case "Alias":
            return _term(inner[0])
        case "BinaryExpr":
            return _binary(inner)
        case "Function":
            return _function(inner["function"], inner["input"], node)
    raise t.refusal(_described(node), t.Logic.POLARS)


def _binary(inner: dict[str, Any]) -> t.Term:
    op, left, right = inner["op"], inner["left"], inner["right"]
    if op in _COMPARISONS:
        return t.Compared(_COMPARISONS[op], _operand(left), _operand(right))
    if op in _BOTH:
        return t.All((_term(left), _term(right)))
    if op in _EITHER:
        return t.AnyOf((_term(left), _term(right)))
    if op == "Xor":
        return t.either_not_both(_term(left), _term(right))
    if op in ("EqValidity", "NotEqValidity") and _is_null(right):
        missing = t.Missing(_column(left))
        return missing if op == "EqValidity" else t.Opposite(missing)
    raise t.refusal(f"the operator {op}", t.Logic.POLARS)


def _function(function: Any, inputs: list[dict[str, Any]], node: dict[str, Any]) -> t.Term:
    match function:
        case {"Boolean": "Not"}:
            return t.Opposite(_term(inputs[0]))
        case {"Boolean": "IsNull"}:
            return t.Missing(_column(inputs[0]))
        case {"Boolean": "IsNotNull"}:
            return t.Opposite(t.Missing(_column(inputs[0])))
        case {"Boolean": "IsNan"}:
            return t.NotNumber(_column(inputs[0]))
        case {"Boolean": "IsNotNan"}:
            return t.Opposite(t.NotNumber(_column(inputs[0])))
        case {"Boolean": "AllHorizontal"}:
            return t.All(tuple(map(_term, inputs)))
        case {"Boolean": "AnyHorizontal"}:
            return t.AnyOf(tuple(map(_term, inputs)))
        case {"Boolean": {"IsIn": options}}:
            return _is_in(inputs, counts_nulls=bool(options.get("nulls_equal")))
        case {"Boolean": {"IsBetween": {"closed": closed}}}:
            low, high = _CLOSED[closed]
            column = _operand(inputs[0])
            return t.All(
                (
                    t.Compared(low, column, _operand(inputs[1])),
                    t.Compared(high, column, _operand(inputs[2])),
                )
            )
        case {"StringExpr": "StartsWith"}:
            return t.HasText(_column(inputs[0]), "starts_with", _text(inputs[1]))
        case {"StringExpr": "EndsWith"}:
            return t.HasText(_column(inputs[0]), "ends_with", _text(inputs[1]))
        case {"StringExpr": {"Contains": {"literal": is_literal}}}:
            text = _text(inputs[1])
            sought = text if is_literal else t.plain_pattern(text, t.Logic.POLARS)
            return t.HasText(_column(inputs[0]), "contains", sought)
        case {"StructExpr": {"FieldByName": _}}:
            return _column(node)
    raise t.refusal(_described(node), t.Logic.POLARS)


def _is_in(inputs: list[dict[str, Any]], *, counts_nulls: bool) -> t.Term:
    values = _values(inputs[1])
    if len(values) == 1 and isinstance(values[0], list):  # a list as one value
        values = values[0]
    return t.OneOf(_column(inputs[0]), tuple(values), counts_nulls)


def _operand(node: dict[str, Any]) -> t.Operand:
    if any(True for _ in _columns(node)):
        return _column(node)
    values = _values(node)
    if len(values) != 1:
        raise t.refusal(f"{len(values)} values where one is expected", t.Logic.POLARS)
    return t.Const(values[0])


def _column(node: dict[str, Any]) -> t.Col:
    match node:
        case {"Column": str(name)}:
            return t.Col((name,))
        case {"Alias": [inner, _]}:
            return _column(inner)
        case {"Function": {"input": [inner], "function": {"StructExpr": {"FieldByName": part}}}}:
            return t.Col((*_column(inner).path, part))
    raise t.refusal(f"{_described(node)} where a column is expected", t.Logic.POLARS)


def _columns(node: Any) -> Iterator[Any]:
    """The columns below a node, and selectors, which stand for columns."""
    if isinstance(node, dict):
        for key, inner in node.items():
            if key in ("Column", "Selector"):
                yield inner
            elif key not in _FOLDED:
                yield from _columns(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _columns(inner)


def _is_null(node: dict[str, Any]) -> bool:
    return not any(True for _ in _columns(node)) and _values(node) == [None]


def _text(node: dict[str, Any]) -> str:
    operand = _operand(node)
    if isinstance(operand, t.Const) and isinstance(operand.value, str):
        return operand.value
    raise t.refusal(f"{_described(node)} where a text is expected", t.Logic.POLARS)


def _values(node: dict[str, Any]) -> list[Any]:
    """What polars makes of a part without columns."""
    import polars

    if _has_no_number(node):
        raise t.refusal("a value that is NaN or infinite", t.Logic.POLARS)
    try:
        constant = polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
        values: list[Any] = polars.select(constant).to_series().to_arrow().to_pylist()
    except (polars.exceptions.PolarsError, ValueError) as error:
        raise t.refusal(f"{_described(node)} ({error})", t.Logic.POLARS) from None
    return values


def _has_no_number(node: Any) -> bool:
    """Whether a float is lost: JSON has neither NaN nor infinity."""
    if not isinstance(node, dict):
        return isinstance(node, list) and any(map(_has_no_number, node))
    return any(
        inner is None if key in _FLOATS else _has_no_number(inner) for key, inner in node.items()
    )


def _described(node: dict[str, Any]) -> str:
    """A part as polars writes it."""
    import polars

    try:
        expression = polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
        return f"the part {expression}"
    except Exception:  # a form that this version of polars cannot read back
        return f"the part {json.dumps(node)[:80]}"
