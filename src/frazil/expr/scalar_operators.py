"""Operators of scalar expressions: arithmetic, comparison, text.

Whole numbers overflow loudly. Whole numbers divided give a double; decimals follow SQL's rules of
digits, kept to 38.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions.literals import DecimalLiteral, LongLiteral
from pyiceberg.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    StringType,
    UnknownType,
)

from frazil.errors import InvalidInput
from frazil.expr.scalar import Call, Constant, Node, coerced, unified
from frazil.expr.scalar_cast import (
    Values,
    as_decimal,
    capped,
    is_number,
    rounded,
)
from frazil.format.types import is_floating

_ARITHMETIC: Final[dict[str, str]] = {
    "+": "add_checked",
    "-": "subtract_checked",
    "*": "multiply_checked",
    "/": "divide_checked",
    "%": "remainder_checked",
}
COMPARISONS: Final[dict[str, str]] = {
    "=": "equal",
    "==": "equal",
    "!=": "not_equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def kernel(name: str) -> Callable[..., Values]:
    """An Arrow function by name."""

    def run(*arguments: Values) -> Values:
        return pc.call_function(name, list(arguments))

    return run


def arithmetic(sign: str, left: Node, right: Node) -> Node:
    """Two numbers combined by `+ - * / %`."""
    for node in (left, right):
        if not is_number(node.type) and not isinstance(node.type, UnknownType):
            raise InvalidInput(f"{sign} takes numbers, found {node.type}{_hint(sign, node)}")
    types = [node.type for node in (left, right)]
    if any(isinstance(kind, UnknownType) for kind in types):
        known = next((k for k in types if not isinstance(k, UnknownType)), types[0])
        return Constant(literal=None, type=known)
    run = kernel(_ARITHMETIC[sign])
    if any(is_floating(kind) for kind in types):
        return _floating(run, left, right)
    if any(isinstance(kind, DecimalType) for kind in types):
        return _decimal(sign, run, left, right)
    if sign == "/":
        arguments = tuple(_as_double(node) for node in (left, right))
        return Call(type=DoubleType(), arguments=arguments, run=run)
    arguments = unified([left, right])
    return Call(type=arguments[0].type, arguments=arguments, run=run)


def negated(node: Node) -> Node:
    """Unary minus."""
    if isinstance(node, Constant) and isinstance(node.literal, LongLiteral):
        return Constant.of(LongLiteral(-node.literal.value))
    if isinstance(node, Constant) and isinstance(node.literal, DecimalLiteral):
        return Constant.of(DecimalLiteral(-node.literal.value))
    if isinstance(node.type, UnknownType):
        return node
    if not is_number(node.type):
        raise InvalidInput(f"- takes a number, found {node.type}")
    return Call(type=node.type, arguments=(node,), run=kernel("negate_checked"))


def compared(sign: str, left: Node, right: Node) -> Node:
    """Two values compared."""
    if any(isinstance(node, Constant) and node.literal is None for node in (left, right)):
        raise InvalidInput("nothing equals NULL; write IS NULL or IS NOT NULL")
    arguments = unified([left, right])
    if not arguments[0].type.is_primitive:
        raise InvalidInput(f"values of {arguments[0].type} cannot be compared")
    return Call(type=BooleanType(), arguments=arguments, run=kernel(COMPARISONS[sign]))


def among(node: Node, items: Sequence[Node]) -> Node:
    """IN a list of literals; null where the value is null."""
    same = unified([node, *items])
    value, wanted = same[0], same[1:]

    def run(values: Values, *found: pa.Scalar) -> Values:
        value_set = pa.concat_arrays([pa.repeat(item, 1) for item in found])
        hit = pc.is_in(values, value_set=value_set)
        return pc.if_else(pc.is_valid(values), hit, pa.scalar(None, pa.bool_()))

    return Call(type=BooleanType(), arguments=(value, *wanted), run=run)


def like(node: Node, pattern: str) -> Node:
    """LIKE with any pattern; a backslash escapes."""
    text = coerced(node, StringType())
    run = lambda values: pc.match_like(values, pattern=pattern)  # noqa: E731
    return Call(type=BooleanType(), arguments=(text,), run=run)


def inverted(node: Node) -> Node:
    """NOT of a condition."""
    return Call(type=BooleanType(), arguments=(node,), run=pc.invert)


def is_null(node: Node) -> Node:
    """IS NULL."""
    return Call(type=BooleanType(), arguments=(node,), run=pc.is_null)


def is_nan(node: Node) -> Node:
    """IS NAN; false for null."""
    if not is_floating(node.type):
        raise InvalidInput(f"IS NAN takes a float or double, found {node.type}")
    run = lambda values: pc.fill_null(pc.is_nan(values), False)  # noqa: E731
    return Call(type=BooleanType(), arguments=(node,), run=run)


def is_truth(node: Node, value: bool) -> Node:
    """IS TRUE or IS FALSE; false for null."""
    found = coerced(node, BooleanType())

    def run(values: Values) -> Values:
        same = pc.equal(values, pa.scalar(value))
        return pc.fill_null(same, False)

    return Call(type=BooleanType(), arguments=(found,), run=run)


def joined(nodes: Sequence[Node], what: str) -> Node:
    """Texts one after the other; null when one of them is."""
    texts = []
    for node in nodes:
        if not isinstance(node.type, StringType | UnknownType):
            raise InvalidInput(f"{what} takes text, found {node.type}; write cast(… as string)")
        texts.append(coerced(node, StringType()))

    def run(*values: Values) -> Values:
        return pc.binary_join_element_wise(*values, "")

    return Call(type=StringType(), arguments=tuple(texts), run=run)


def _hint(sign: str, node: Node) -> str:
    text = isinstance(node.type, StringType)
    return "; texts are joined with ||" if sign == "+" and text else ""


def _floating(run: Callable[..., Values], left: Node, right: Node) -> Node:
    """At least one side is a float or double; constants take its type."""
    firm = {type(n.type) for n in (left, right) if not isinstance(n, Constant)}
    kind: IcebergType = FloatType() if firm == {FloatType} else DoubleType()
    arguments = tuple(
        coerced(node, kind)
        if isinstance(node, Constant) or kind == FloatType()
        else _as_double(node)
        for node in (left, right)
    )
    return Call(type=kind, arguments=arguments, run=run)


def _as_double(node: Node) -> Node:
    """The nearest double: what arithmetic between exact and inexact numbers takes."""
    if isinstance(node, Constant) or isinstance(node.type, DoubleType):
        return coerced(node, DoubleType())
    run = lambda values: pc.cast(values, pa.float64(), safe=False)  # noqa: E731
    return Call(type=DoubleType(), arguments=(node,), run=run)


def _decimal(sign: str, run: Callable[..., Values], left: Node, right: Node) -> Node:
    kinds = [as_decimal(_digits_of(node)) for node in (left, right)]
    arguments = tuple(coerced(node, kind) for node, kind in zip((left, right), kinds, strict=True))
    wide = [pa.decimal256(kind.precision, kind.scale) for kind in kinds]
    try:
        result = run(*(pa.array([], kind) for kind in wide)).type
    except pa.ArrowInvalid:
        raise InvalidInput(
            f"{kinds[0]} {sign} {kinds[1]} has more digits than can be calculated with; "
            "cast one side to a smaller decimal"
        ) from None
    final = capped(result.precision, result.scale)

    def calculate(*values: Values) -> Values:
        given = (value.cast(kind) for value, kind in zip(values, wide, strict=True))
        return rounded(run(*given), final)

    return Call(type=final, arguments=arguments, run=calculate)


def _digits_of(node: Node) -> IcebergType:
    """The type of an operand; a whole constant needs only the digits it has."""
    if isinstance(node, Constant) and isinstance(node.literal, LongLiteral):
        return DecimalType(min(38, len(str(abs(node.literal.value)))), 0)
    return node.type
