"""Filters as trees: comparisons of columns with values, AND, OR, NOT and the two constants.

A predicate is *unbound* while it names its column and *bound* when it has the column's field.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from frazil.iceberg.literals import Literal
from frazil.iceberg.types import NestedField
from frazil.value_classes import dataclass


class Op(Enum):
    """One comparison of a column with nothing, one value, or several."""

    IS_NULL = "is null"
    NOT_NULL = "is not null"
    IS_NAN = "is nan"
    NOT_NAN = "is not nan"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "="
    NE = "!="
    STARTS_WITH = "starts with"
    NOT_STARTS_WITH = "not starts with"
    IN = "in"
    NOT_IN = "not in"

    @property
    def negated(self) -> Op:
        """The operator that holds where this one does not, nulls aside."""
        return _NEGATED[self]

    @property
    def mirrored(self) -> Op:
        """The operator with its two sides swapped: `5 < x` is `x > 5`."""
        return _MIRRORED.get(self, self)


UNARY: Final = frozenset({Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN})
SETS: Final = frozenset({Op.IN, Op.NOT_IN})
ORDERED: Final = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})
COMPARISONS: Final = {"=": Op.EQ, "<>": Op.NE, **{op.value: op for op in ORDERED}}
"""Comparisons as SQL writes them."""
PREFIX: Final = frozenset({Op.STARTS_WITH, Op.NOT_STARTS_WITH})

_PAIRS: Final = (
    (Op.IS_NULL, Op.NOT_NULL),
    (Op.IS_NAN, Op.NOT_NAN),
    (Op.LT, Op.GE),
    (Op.GT, Op.LE),
    (Op.EQ, Op.NE),
    (Op.STARTS_WITH, Op.NOT_STARTS_WITH),
    (Op.IN, Op.NOT_IN),
)
_NEGATED: Final = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
_MIRRORED: Final = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}


MAX_DEPTH: Final = 100
"""Levels of AND within OR within AND; a run of the same is one level."""
TOO_DEEP: Final = f"the filter is nested more than {MAX_DEPTH} levels deep; write it flatter"


class BooleanExpression:
    """Any filter."""

    __slots__ = ()

    def __invert__(self) -> BooleanExpression:
        """Its opposite."""
        return Not(self)

    def __and__(self, other: BooleanExpression) -> BooleanExpression:
        return And(self, other)

    def __or__(self, other: BooleanExpression) -> BooleanExpression:
        return Or(self, other)


@dataclass(frozen=True, slots=True)
class AlwaysTrue(BooleanExpression):
    """Every row."""

    def __invert__(self) -> BooleanExpression:
        return AlwaysFalse()


@dataclass(frozen=True, slots=True)
class AlwaysFalse(BooleanExpression):
    """No row."""

    def __invert__(self) -> BooleanExpression:
        return AlwaysTrue()


class _Joined(BooleanExpression):
    """Two sides. More of them are a balanced tree; a constant decides, or is left out."""

    __slots__ = ("left", "right")
    left: BooleanExpression
    right: BooleanExpression

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        assert isinstance(other, _Joined)
        return self.left == other.left and self.right == other.right

    def __hash__(self) -> int:
        return hash((type(self), self.left, self.right))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(left={self.left!r}, right={self.right!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.left, self.right)


class And(_Joined):
    """Rows that pass both sides."""

    __slots__ = ()

    def __new__(cls, *operands: BooleanExpression) -> BooleanExpression:  # type: ignore[misc]
        """The operands joined."""
        return _joined(cls, operands, AlwaysTrue, AlwaysFalse)

    def __invert__(self) -> BooleanExpression:
        return Or(~self.left, ~self.right)


class Or(_Joined):
    """Rows that pass one of the sides."""

    __slots__ = ()

    def __new__(cls, *operands: BooleanExpression) -> BooleanExpression:  # type: ignore[misc]
        """The operands joined."""
        return _joined(cls, operands, AlwaysFalse, AlwaysTrue)

    def __invert__(self) -> BooleanExpression:
        return And(~self.left, ~self.right)


def _joined(
    cls: type[_Joined],
    operands: Sequence[BooleanExpression],
    neutral: type[BooleanExpression],
    deciding: type[BooleanExpression],
) -> BooleanExpression:
    operands = [operand for operand in operands if not isinstance(operand, neutral)]
    if any(isinstance(operand, deciding) for operand in operands):
        return deciding()
    return _balanced(cls, operands) if operands else neutral()


def _balanced(cls: type[_Joined], operands: Sequence[BooleanExpression]) -> BooleanExpression:
    if len(operands) == 1:
        return operands[0]
    middle = (len(operands) + 1) // 2
    node = object.__new__(cls)
    node.left = _balanced(cls, operands[:middle])
    node.right = _balanced(cls, operands[middle:])
    return node


@dataclass(frozen=True, slots=True)
class Not(BooleanExpression):
    """Rows that do not pass."""

    child: BooleanExpression

    def __invert__(self) -> BooleanExpression:
        return self.child


@dataclass(frozen=True, slots=True)
class Reference:
    """A column by its full name."""

    name: str


class Column:
    """A column, or part of one, and its path of names from the root of the schema.

    `field.required` is true only when every enclosing struct is required too: a required field of
    an optional struct is null where the struct is.
    """

    __slots__ = ("field", "path")

    def __init__(self, field: NestedField, path: tuple[str, ...]) -> None:
        self.field = field
        self.path = path

    @property
    def name(self) -> str:
        """The full name, as written in a filter."""
        return ".".join(self.path)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        assert isinstance(other, Column)
        return self.field == other.field and self.path == other.path

    def __hash__(self) -> int:
        return hash((self.field.field_id, self.path))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.field!r}, {self.path!r})"


class UnboundPredicate(BooleanExpression):
    """A comparison of a column that is named."""

    __slots__ = ("literals", "op", "term")

    def __init__(self, op: Op, term: Reference, literals: Sequence[Literal] = ()) -> None:
        self.op = op
        self.term = term
        self.literals = tuple(literals)

    def __invert__(self) -> BooleanExpression:
        return UnboundPredicate(self.op.negated, self.term, self.literals)

    def __eq__(self, other: object) -> bool:
        return _is_same(self, other)

    def __hash__(self) -> int:
        return hash((self.op, self.term, frozenset(self.literals)))

    def __repr__(self) -> str:
        return f"UnboundPredicate({self.op}, {self.term!r}, {self.literals!r})"


class BoundPredicate(BooleanExpression):
    """A comparison of a column; `op` is None where it is none of Iceberg's."""

    __slots__ = ("literals", "op", "term")

    def __init__(self, op: Op | None, term: Column, literals: Sequence[Literal] = ()) -> None:
        self.op = op
        self.term = term
        self.literals = tuple(literals)

    def __invert__(self) -> BooleanExpression:
        assert self.op is not None
        return BoundPredicate(self.op.negated, self.term, self.literals)

    def __eq__(self, other: object) -> bool:
        return _is_same(self, other)

    def __hash__(self) -> int:
        return hash((self.op, self.term, frozenset(self.literals)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.op}, {self.term!r}, {self.literals!r})"


def _is_same(one: UnboundPredicate | BoundPredicate, other: object) -> bool:
    """Whether a predicate is the same; the values of a set have no order."""
    return (
        isinstance(other, UnboundPredicate | BoundPredicate)
        and type(other) is type(one)
        and one.op is other.op
        and one.term == other.term
        and (
            frozenset(one.literals) == frozenset(other.literals)
            if one.op in SETS
            else one.literals == other.literals
        )
    )


def operands_of(expression: Any, kind: type[Any]) -> list[Any]:
    """The operands of a run of ANDs (or ORs), however deep it leans. `kind` may be PyIceberg's."""
    operands: list[Any] = []
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, kind):
            stack.extend((node.right, node.left))
        else:
            operands.append(node)
    return operands


def operator_of(expression: BooleanExpression) -> Op | None:
    """The operator of a predicate, bound or not; None for anything else."""
    if isinstance(expression, UnboundPredicate | BoundPredicate):
        return expression.op
    return None


def literals_of(expression: BooleanExpression) -> tuple[Literal, ...]:
    """What a predicate compares with; empty for null and NaN tests."""
    if isinstance(expression, UnboundPredicate | BoundPredicate):
        return expression.literals
    return ()
