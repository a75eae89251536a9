"""The operators of a filter: their names, their negations, and PyIceberg's classes for them."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from pyiceberg import expressions as ice
from pyiceberg.expressions import BooleanExpression, BoundTerm
from pyiceberg.expressions.literals import Literal


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

_CLASSES: Final[dict[Op, tuple[type[Any], type[Any]]]] = {
    Op.IS_NULL: (ice.IsNull, ice.BoundIsNull),
    Op.NOT_NULL: (ice.NotNull, ice.BoundNotNull),
    Op.IS_NAN: (ice.IsNaN, ice.BoundIsNaN),
    Op.NOT_NAN: (ice.NotNaN, ice.BoundNotNaN),
    Op.LT: (ice.LessThan, ice.BoundLessThan),
    Op.LE: (ice.LessThanOrEqual, ice.BoundLessThanOrEqual),
    Op.GT: (ice.GreaterThan, ice.BoundGreaterThan),
    Op.GE: (ice.GreaterThanOrEqual, ice.BoundGreaterThanOrEqual),
    Op.EQ: (ice.EqualTo, ice.BoundEqualTo),
    Op.NE: (ice.NotEqualTo, ice.BoundNotEqualTo),
    Op.STARTS_WITH: (ice.StartsWith, ice.BoundStartsWith),
    Op.NOT_STARTS_WITH: (ice.NotStartsWith, ice.BoundNotStartsWith),
    Op.IN: (ice.In, ice.BoundIn),
    Op.NOT_IN: (ice.NotIn, ice.BoundNotIn),
}
_OF_CLASS: Final = {cls: op for op, classes in _CLASSES.items() for cls in classes}


def operator_of(predicate: BooleanExpression) -> Op | None:
    """The operator of a PyIceberg predicate, bound or not; None for anything else."""
    return _OF_CLASS.get(type(predicate))


def literals_of(predicate: BooleanExpression) -> tuple[Literal[Any], ...]:
    """The literals a PyIceberg predicate compares with; empty for null and NaN tests."""
    if isinstance(predicate, ice.LiteralPredicate | ice.BoundLiteralPredicate):
        return (predicate.literal,)
    if isinstance(predicate, ice.SetPredicate | ice.BoundSetPredicate):
        return tuple(predicate.literals)
    return ()


def bound(op: Op, term: BoundTerm, literals: tuple[Literal[Any], ...] = ()) -> BooleanExpression:
    """PyIceberg's bound predicate for an operator."""
    cls = _CLASSES[op][1]
    if op in UNARY:
        predicate = cls(term)
    elif op in SETS:
        predicate = cls(term, set(literals))
    else:
        predicate = cls(term, literals[0])
    assert isinstance(predicate, BooleanExpression)
    return predicate
