"""Functions of scalar expressions, by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions.literals import LongLiteral, StringLiteral
from pyiceberg.types import (
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

from frazil.errors import InvalidInput
from frazil.expr.scalar import Call, Choice, Constant, FirstKnown, Node, boolean, coerced, unified
from frazil.expr.scalar_cast import Values, is_number
from frazil.expr.scalar_operators import arithmetic, compared, joined, kernel

_DAYS: Final = (DateType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    """How many arguments a function takes, and the expression it makes of them."""

    least: int
    most: int | None
    build: Callable[[str, Sequence[Node]], Node]


def call(name: str, arguments: Sequence[Node]) -> Node:
    """The call of a function by its name, in any case."""
    known = name.lower()
    function = _FUNCTIONS.get(known)
    if function is None:
        close = difflib.get_close_matches(known, _FUNCTIONS, n=1)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise InvalidInput(
            f"unknown function {name}. {hint}Known functions: {', '.join(sorted(_FUNCTIONS))}"
        )
    count = len(arguments)
    if count < function.least or (function.most is not None and count > function.most):
        if function.most is None:
            expected = f"{function.least} or more"
        elif function.least == function.most:
            expected = str(function.least)
        else:
            expected = f"{function.least} to {function.most}"
        raise InvalidInput(f"{known} takes {expected} arguments, found {count}")
    return function.build(known, arguments)


def _text_argument(name: str, node: Node) -> Node:
    try:
        return coerced(node, StringType())
    except InvalidInput:
        raise InvalidInput(
            f"{name} takes text, found {node.type}; write cast(… as string)"
        ) from None


def _number_argument(name: str, node: Node) -> Node:
    if not is_number(node.type):
        raise InvalidInput(f"{name} takes a number, found {node.type}")
    return node


def _text(function: str) -> Callable[[str, Sequence[Node]], Node]:
    def build(name: str, arguments: Sequence[Node]) -> Node:
        found = _text_argument(name, arguments[0])
        return Call(type=StringType(), arguments=(found,), run=kernel(function))

    return build


def _number(function: str) -> Callable[[str, Sequence[Node]], Node]:
    """A function from numbers to numbers of the same type."""

    def build(name: str, arguments: Sequence[Node]) -> Node:
        found = _number_argument(name, arguments[0])
        kind = found.type
        whole = isinstance(kind, IntegerType) or str(kind) == "long"
        if whole and function in ("floor", "ceil"):
            return found
        return Call(type=kind, arguments=(found,), run=kernel(function))

    return build


def _length(name: str, arguments: Sequence[Node]) -> Node:
    found = _text_argument(name, arguments[0])
    return Call(type=IntegerType(), arguments=(found,), run=pc.utf8_length)


def _constant(name: str, node: Node, kind: type[Any], what: str) -> Any:
    if not isinstance(node, Constant) or not isinstance(node.literal, kind):
        raise InvalidInput(f"{name} takes {what} written out here, found {node.type}")
    return node.literal.value


def _substring(name: str, arguments: Sequence[Node]) -> Node:
    found = _text_argument(name, arguments[0])
    start = _constant(name, arguments[1], LongLiteral, "a start from 1")
    length = None
    if len(arguments) == 3:
        length = _constant(name, arguments[2], LongLiteral, "a length")
    if start < 1 or (length is not None and length < 0):
        raise InvalidInput(f"{name} counts characters from 1; the length is 0 or more")
    stop = None if length is None else start - 1 + length

    def run(values: Values) -> Values:
        return pc.utf8_slice_codeunits(values, start=start - 1, stop=stop)

    return Call(type=StringType(), arguments=(found,), run=run)


def _replace(name: str, arguments: Sequence[Node]) -> Node:
    found = _text_argument(name, arguments[0])
    old = _constant(name, arguments[1], StringLiteral, "text to look for")
    new = _constant(name, arguments[2], StringLiteral, "text to put there")
    if not old:
        return found

    def run(values: Values) -> Values:
        return pc.replace_substring(values, pattern=old, replacement=new)

    return Call(type=StringType(), arguments=(found,), run=run)


def _concat(name: str, arguments: Sequence[Node]) -> Node:
    return joined(arguments, name)


def _coalesce(name: str, arguments: Sequence[Node]) -> Node:
    same = unified(arguments)
    return FirstKnown(type=same[0].type, arguments=same)


def _nullif(name: str, arguments: Sequence[Node]) -> Node:
    value, other = arguments
    result = value if not isinstance(value, Constant) else unified(arguments)[0]
    null = Constant(literal=None, type=result.type)
    return Choice(
        type=result.type, branches=((compared("=", value, other), null),), otherwise=result
    )


def _if(name: str, arguments: Sequence[Node]) -> Node:
    condition, then, otherwise = arguments
    then, otherwise = unified([then, otherwise])
    branches = ((boolean(condition, name), then),)
    return Choice(type=then.type, branches=branches, otherwise=otherwise)


def _extreme(function: Callable[..., Values]) -> Callable[[str, Sequence[Node]], Node]:
    """The least or greatest argument; null only when all are."""

    def build(name: str, arguments: Sequence[Node]) -> Node:
        same = unified(arguments)
        return Call(type=same[0].type, arguments=same, run=function)

    return build


def _round(name: str, arguments: Sequence[Node]) -> Node:
    found = _number_argument(name, arguments[0])
    digits = _constant(name, arguments[1], LongLiteral, "digits") if len(arguments) == 2 else 0
    kind = found.type

    def run(values: Values) -> Values:
        if isinstance(kind, DecimalType):
            # A digit more: 9.95 becomes 10.0 before it is known to fit.
            values = values.cast(pa.decimal256(min(76, kind.precision + 1), kind.scale))
        found = pc.round(values, ndigits=digits, round_mode="half_towards_infinity")
        return (
            found.cast(pa.decimal128(kind.precision, kind.scale))
            if isinstance(kind, DecimalType)
            else found
        )

    return Call(type=kind, arguments=(found,), run=run)


def _mod(name: str, arguments: Sequence[Node]) -> Node:
    return arithmetic("%", *arguments)


def _part(function: Callable[..., Values]) -> Callable[[str, Sequence[Node]], Node]:
    """A part of a date or timestamp, in UTC."""

    def build(name: str, arguments: Sequence[Node]) -> Node:
        found = arguments[0]
        kind: IcebergType = found.type
        if not isinstance(kind, _DAYS):
            raise InvalidInput(f"{name} takes a date or timestamp, found {kind}")
        if isinstance(kind, DateType) and name in ("hour", "minute", "second"):
            raise InvalidInput(f"{name} takes a timestamp, found {kind}")

        def run(values: Values) -> Values:
            return function(values).cast(pa.int32())

        return Call(type=IntegerType(), arguments=(found,), run=run)

    return build


def _fixed(count: int, build: Callable[[str, Sequence[Node]], Node]) -> _Function:
    return _Function(least=count, most=count, build=build)


_FUNCTIONS: Final[dict[str, _Function]] = {
    "upper": _fixed(1, _text("utf8_upper")),
    "lower": _fixed(1, _text("utf8_lower")),
    "trim": _fixed(1, _text("utf8_trim_whitespace")),
    "ltrim": _fixed(1, _text("utf8_ltrim_whitespace")),
    "rtrim": _fixed(1, _text("utf8_rtrim_whitespace")),
    "reverse": _fixed(1, _text("utf8_reverse")),
    "length": _fixed(1, _length),
    "substring": _Function(least=2, most=3, build=_substring),
    "substr": _Function(least=2, most=3, build=_substring),
    "replace": _fixed(3, _replace),
    "concat": _Function(least=1, most=None, build=_concat),
    "coalesce": _Function(least=1, most=None, build=_coalesce),
    "ifnull": _fixed(2, _coalesce),
    "nullif": _fixed(2, _nullif),
    "if": _fixed(3, _if),
    "least": _Function(least=1, most=None, build=_extreme(pc.min_element_wise)),
    "greatest": _Function(least=1, most=None, build=_extreme(pc.max_element_wise)),
    "abs": _fixed(1, _number("abs_checked")),
    "floor": _fixed(1, _number("floor")),
    "ceil": _fixed(1, _number("ceil")),
    "ceiling": _fixed(1, _number("ceil")),
    "round": _Function(least=1, most=2, build=_round),
    "mod": _fixed(2, _mod),
    "year": _fixed(1, _part(pc.year)),
    "month": _fixed(1, _part(pc.month)),
    "day": _fixed(1, _part(pc.day)),
    "hour": _fixed(1, _part(pc.hour)),
    "minute": _fixed(1, _part(pc.minute)),
    "second": _fixed(1, _part(pc.second)),
}
