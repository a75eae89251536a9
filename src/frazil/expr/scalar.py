"""Scalar expressions as trees that know their type and evaluate over Arrow columns.

A tree is built by `scalar_text` from text, with the operators of `scalar_operators` and the
functions of `scalar_functions`; `coerced` fits it to the type that is expected of it. Constants
take the type of what they meet: `'2024-01-15'` is a date beside a date, `1.1` a double beside a
double. CASE, COALESCE, AND and OR evaluate an operand only for the rows that need it: a guarded
division by zero never happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions.literals import (
    BinaryLiteral,
    BooleanLiteral,
    DateLiteral,
    DecimalLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimeLiteral,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimeType,
    UnknownType,
    UUIDType,
)

from frazil.errors import InvalidInput
from frazil.expr.filter_columns import Column
from frazil.expr.literals import Where, place
from frazil.expr.scalar_cast import (
    Values,
    common_type,
    converter,
    happens_unasked,
    is_number,
)
from frazil.format.types import arrow_type, scalar

Mask = np.ndarray[Any, np.dtype[np.bool_]]
_MAX_DIGITS: Final = 38


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The top-level columns that an expression looks at, of some rows."""

    columns: Mapping[str, pa.Array]
    num_rows: int

    def take(self, indices: np.ndarray[Any, Any]) -> Rows:
        """Some of the rows."""
        chosen = pa.array(indices)
        taken = {name: column.take(chosen) for name, column in self.columns.items()}
        return Rows(columns=taken, num_rows=len(indices))

    def array(self, values: Values) -> pa.Array:
        """Values as one array with an element per row."""
        if isinstance(values, pa.Scalar):
            return pa.repeat(values, self.num_rows)
        return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constant:
    """A literal, or NULL when `literal` is None."""

    literal: Literal[Any] | None
    type: IcebergType

    @staticmethod
    def of(literal: Literal[Any] | None) -> Constant:
        """The literal in the type it has by itself."""
        return Constant(literal=literal, type=_natural_type(literal))

    @property
    def adapts(self) -> bool:
        """Whether it takes the type of what it meets: text, numbers and NULL do."""
        if isinstance(self.literal, StringLiteral):
            return isinstance(self.type, StringType)
        return self.literal is None or isinstance(self.literal, LongLiteral | DecimalLiteral)

    def values(self, rows: Rows) -> Values:
        """The same value for every row."""
        if self.literal is None:
            return pa.scalar(None, arrow_type(self.type))
        return scalar(place(self.literal, self.type).value, self.type)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reference:
    """A column, through its structs."""

    column: Column

    @property
    def type(self) -> IcebergType:
        """The column's type."""
        return self.column.field.field_type

    def values(self, rows: Rows) -> Values:
        """The column; null where a struct around it is null."""
        name, *inner = self.column.path
        values = rows.columns[name]
        if inner:
            values = pc.struct_field(values, inner)
        if isinstance(values.type, pa.BaseExtensionType):
            values = values.cast(values.type.storage_type)
        if self.type.is_primitive and values.type != arrow_type(self.type):
            values = values.cast(arrow_type(self.type))
        return values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call:
    """An operator or function over the values of its arguments."""

    type: IcebergType
    arguments: tuple[Node, ...]
    run: Callable[..., Values]

    def values(self, rows: Rows) -> Values:
        """The results."""
        return self.run(*(argument.values(rows) for argument in self.arguments))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """CASE: the result beside the first condition that is true, else `otherwise`."""

    type: IcebergType
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node

    def values(self, rows: Rows) -> Values:
        """Each result, evaluated only for its own rows."""
        pieces: list[tuple[np.ndarray[Any, Any], pa.Array]] = []
        left, open_rows = np.arange(rows.num_rows), rows
        for condition, result in self.branches:
            hit = _true(condition, open_rows)
            if hit.any():
                chosen = open_rows.take(np.flatnonzero(hit))
                pieces.append((left[hit], chosen.array(result.values(chosen))))
                left, open_rows = left[~hit], open_rows.take(np.flatnonzero(~hit))
        if left.size or not pieces:
            pieces.append((left, open_rows.array(self.otherwise.values(open_rows))))
        return _scattered(pieces)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstKnown:
    """COALESCE: the first argument that is not null."""

    type: IcebergType
    arguments: tuple[Node, ...]

    def values(self, rows: Rows) -> Values:
        """Each argument, evaluated only where those before it are null."""
        pieces: list[tuple[np.ndarray[Any, Any], pa.Array]] = []
        left, open_rows = np.arange(rows.num_rows), rows
        for number, argument in enumerate(self.arguments, 1):
            found = open_rows.array(argument.values(open_rows))
            known = np.asarray(found.is_valid().to_numpy(zero_copy_only=False))
            if number == len(self.arguments) or known.all():
                pieces.append((left, found))
                break
            pieces.append((left[known], found.filter(pa.array(known))))
            left, open_rows = left[~known], open_rows.take(np.flatnonzero(~known))
        return _scattered(pieces)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Logic:
    """AND or OR, in three-valued logic; the right side only where the left does not decide."""

    left: Node
    right: Node
    is_and: bool

    @property
    def type(self) -> IcebergType:
        """Always boolean."""
        return BooleanType()

    def values(self, rows: Rows) -> Values:
        """The truth values."""
        left = rows.array(self.left.values(rows))
        decided = np.asarray(pc.fill_null(left, self.is_and).to_numpy(zero_copy_only=False))
        undecided = decided if self.is_and else ~decided
        if not undecided.any():
            return left
        at = np.flatnonzero(undecided)
        some = rows.take(at)
        right = _scattered(
            [
                (at, some.array(self.right.values(some))),
                (np.flatnonzero(~undecided), pa.nulls(rows.num_rows - at.size, pa.bool_())),
            ]
        )
        return (pc.and_kleene if self.is_and else pc.or_kleene)(left, right)


Node = Constant | Reference | Call | Choice | FirstKnown | Logic


def columns_in(node: Node) -> Iterator[Column]:
    """The columns that an expression looks at."""
    if isinstance(node, Reference):
        yield node.column
    for child in _children(node):
        yield from columns_in(child)


def _children(node: Node) -> Iterable[Node]:
    if isinstance(node, Call | FirstKnown):
        return node.arguments
    if isinstance(node, Choice):
        return [*(part for branch in node.branches for part in branch), node.otherwise]
    if isinstance(node, Logic):
        return (node.left, node.right)
    return ()


def coerced(node: Node, wanted: IcebergType) -> Node:
    """The expression as values of a type; refuses what would need a CAST."""
    if isinstance(node, Constant):
        return _placed(node, wanted)
    if node.type == wanted:
        return node
    if isinstance(node, Choice):
        return Choice(
            type=wanted,
            branches=tuple((test, coerced(result, wanted)) for test, result in node.branches),
            otherwise=coerced(node.otherwise, wanted),
        )
    if isinstance(node, FirstKnown):
        arguments = tuple(coerced(argument, wanted) for argument in node.arguments)
        return FirstKnown(type=wanted, arguments=arguments)
    if not happens_unasked(node.type, wanted):
        hint = f"; write cast(… as {wanted})" if _castable(node.type, wanted) else ""
        raise InvalidInput(f"found {node.type}, expected {wanted}{hint}")
    return Call(type=wanted, arguments=(node,), run=converter(node.type, wanted))


def cast_to(node: Node, wanted: IcebergType) -> Node:
    """CAST: any conversion there is."""
    if isinstance(node, Constant) and node.literal is None:
        return Constant(literal=None, type=wanted)
    return Call(type=wanted, arguments=(node,), run=converter(node.type, wanted))


def unified(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The expressions in one common type."""
    firm = [node.type for node in nodes if not (isinstance(node, Constant) and node.adapts)]
    numbers = [
        node
        for node in nodes
        if isinstance(node, Constant) and isinstance(node.literal, LongLiteral | DecimalLiteral)
    ]
    wanted = _common(firm or [node.type for node in numbers] or [node.type for node in nodes])
    if is_number(wanted):
        wanted = _common([wanted, *(n.type for n in numbers if not _fits(n, wanted))])
    return tuple(coerced(node, wanted) for node in nodes)


def boolean(node: Node, what: str) -> Node:
    """The expression as a condition."""
    try:
        return coerced(node, BooleanType())
    except InvalidInput:
        raise InvalidInput(f"{what} takes true or false, found {node.type}") from None


def _common(types: Sequence[IcebergType]) -> IcebergType:
    def step(left: IcebergType, right: IcebergType) -> IcebergType:
        found = common_type(left, right)
        if found is None:
            raise InvalidInput(f"{left} and {right} have no common type; write a cast")
        return found

    return reduce(step, types)


def _castable(found: IcebergType, wanted: IcebergType) -> bool:
    try:
        converter(found, wanted)
    except InvalidInput:
        return False
    return True


def _fits(node: Constant, wanted: IcebergType) -> bool:
    assert node.literal is not None
    return place(node.literal, wanted).where is Where.EXACT


def _placed(node: Constant, wanted: IcebergType) -> Constant:
    literal = node.literal
    if literal is None:
        return Constant(literal=None, type=wanted)
    # A bare number is no date: days since 1970 are nothing people write.
    numeric = isinstance(literal, LongLiteral | DecimalLiteral)
    # `timestamp '…'` is no longer text.
    typed = isinstance(literal, StringLiteral) and not isinstance(node.type, StringType)
    textual = typed and isinstance(wanted, StringType)
    if textual or (numeric and not is_number(wanted)) or not wanted.is_primitive:
        raise InvalidInput(f"found {node.type}, expected {wanted}")
    try:
        found = place(literal, wanted)
    except InvalidInput as problem:
        if isinstance(literal, StringLiteral):
            raise InvalidInput(f"found text {literal.value!r}, expected {wanted}") from problem
        raise InvalidInput(f"found {node.type}, expected {wanted}") from None
    if found.where is not Where.EXACT:
        raise InvalidInput(f"found {literal.value}, which does not fit {wanted}")
    return Constant(literal=literal, type=wanted)


def _natural_type(literal: Literal[Any] | None) -> IcebergType:
    match literal:
        case None:
            return UnknownType()
        case LongLiteral(value=value):
            if -(2**31) <= value < 2**31:
                return IntegerType()
            if -(2**63) <= value < 2**63:
                return LongType()
            return _decimal_type(len(str(abs(value))), 0)
        case DecimalLiteral(value=value):
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return _decimal_type(max(len(digits) + max(0, int(exponent)), scale), scale)
        case BooleanLiteral():
            return BooleanType()
        case StringLiteral():
            return StringType()
        case DateLiteral():
            return DateType()
        case TimeLiteral():
            return TimeType()
        case BinaryLiteral():
            return BinaryType()
    return UUIDType()


def _decimal_type(precision: int, scale: int) -> IcebergType:
    return DecimalType(precision, scale) if precision <= _MAX_DIGITS else DoubleType()


def _true(condition: Node, rows: Rows) -> Mask:
    found = rows.array(condition.values(rows))
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False))


def _scattered(pieces: Sequence[tuple[np.ndarray[Any, Any], pa.Array]]) -> pa.Array:
    """Values of several groups of rows, back in the order of the rows."""
    if len(pieces) == 1:
        return pieces[0][1]
    order = np.argsort(np.concatenate([at for at, _ in pieces]), kind="stable")
    return pa.concat_arrays([values for _, values in pieces]).take(pa.array(order))
