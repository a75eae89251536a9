"""Filters bound to a schema: names become columns, literals take the column's type, NOT is gone.

What comes out is made of bound predicates over `Column`, AND, OR and the two constants. Comparisons
mean what SQL means: a null matches nothing but IS NULL and IS NOT NAN. NaN equals itself and is
greater than every number. A negated comparison is the opposite comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from frazil.errors import InvalidInput, Unsupported
from frazil.filter.bind.file_predicates import BoxPredicate, is_of_files
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.bind.literals import Place, Where, place, typed
from frazil.iceberg.expressions import (
    MAX_DEPTH,
    ORDERED,
    PREFIX,
    SETS,
    TOO_DEEP,
    UNARY,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    BoundPredicate,
    Column,
    Not,
    Op,
    Or,
    UnboundPredicate,
    literals_of,
    operands_of,
    operator_of,
)
from frazil.iceberg.literals import Literal
from frazil.iceberg.types import DoubleType, FloatType, PrimitiveType, StringType, VariantType


def bind(
    expression: BooleanExpression, columns: ColumnIndex, *, case_sensitive: bool = True
) -> BooleanExpression:
    """An expression, bound or not, bound to the columns and free of NOT."""
    return _bind(expression, columns, case_sensitive, negated=False)


def predicate(op: Op, column: Column, literals: Sequence[Literal] = ()) -> BooleanExpression:
    """One comparison, its literals converted to the column's type without changing its meaning."""
    type_ = column.field.field_type
    if op in (Op.IS_NULL, Op.NOT_NULL):
        return _null_test(op, column)
    if not isinstance(type_, PrimitiveType) or isinstance(type_, VariantType):
        raise InvalidInput(
            f"column '{column.name}' is a {_kind(type_)}; only IS NULL and IS NOT NULL apply to it"
        )
    if op in UNARY:
        if not isinstance(type_, FloatType | DoubleType):
            raise InvalidInput(f"column '{column.name}' is a {type_}, which cannot be NaN")
        return BoundPredicate(op, column)
    if op in PREFIX and not isinstance(type_, StringType):
        raise InvalidInput(f"column '{column.name}' is a {type_}; only text starts with something")
    try:
        places = [place(literal, type_) for literal in literals]
    except InvalidInput as problem:
        raise InvalidInput(f"column '{column.name}': {problem}") from None
    if any(place.value != place.value for place in places):
        return _with_nan(op, column, [place for place in places if place.value == place.value])
    if op in SETS or op in (Op.EQ, Op.NE):
        exact = {typed(p.value, type_) for p in places if p.where is Where.EXACT}
        return _equality(op, column, tuple(exact))
    where, value = places[0].where, places[0].value
    if op in PREFIX and not value:
        return _null_test(Op.NOT_NULL, column) if op is Op.STARTS_WITH else AlwaysFalse()
    if where is Where.EXACT:
        return BoundPredicate(op, column, (typed(value, type_),))
    assert op in ORDERED
    if where is Where.AFTER:
        below = Op.LE if op in (Op.LT, Op.LE) else Op.GT
        return BoundPredicate(below, column, (typed(value, type_),))
    everything = (op in (Op.LT, Op.LE)) == (where is Where.ABOVE)
    return _null_test(Op.NOT_NULL, column) if everything else AlwaysFalse()


def _null_test(op: Op, column: Column) -> BooleanExpression:
    """Whether the value is null, or is not, which is known where the column is required."""
    if not column.field.required:
        return BoundPredicate(op, column)
    return AlwaysFalse() if op is Op.IS_NULL else AlwaysTrue()


def _with_nan(op: Op, column: Column, other_places: Sequence[Place]) -> BooleanExpression:
    """A comparison with NaN, which equals itself and is greater than every number."""
    if op in (Op.IN, Op.EQ):
        parts: list[BooleanExpression] = [BoundPredicate(Op.IS_NAN, column)]
        if other_places:
            parts.append(predicate(op, column, [_literal(place, column) for place in other_places]))
        return disjunction(parts)
    if op in (Op.NOT_IN, Op.NE):
        parts = [_null_test(Op.NOT_NULL, column), BoundPredicate(Op.NOT_NAN, column)]
        if other_places:
            parts.append(predicate(op, column, [_literal(place, column) for place in other_places]))
        return conjunction(parts)
    if op is Op.GE:
        return BoundPredicate(Op.IS_NAN, column)
    if op is Op.GT:
        return AlwaysFalse()
    if op is Op.LE:
        return _null_test(Op.NOT_NULL, column)
    return conjunction([_null_test(Op.NOT_NULL, column), BoundPredicate(Op.NOT_NAN, column)])


def _literal(place: Place, column: Column) -> Literal:
    return typed(place.value, column.field.field_type)


def keys_predicate(
    column: Column, keys: Sequence[Literal], *, is_all: bool, has_nan: bool = False
) -> BooleanExpression:
    """A filter that rows with one of these keys pass. `is_all` false: the keys are the smallest and
    the largest of many; where that is not a number, only the smallest."""
    nan = [predicate(Op.IS_NAN, column)] if has_nan else []
    if is_all or not keys:
        return disjunction([predicate(Op.IN, column, keys), *nan])
    ends = zip((Op.GE, Op.LE), keys, strict=False)
    return disjunction([conjunction(predicate(op, column, [key]) for op, key in ends), *nan])


def conjunction(parts: Iterable[BooleanExpression]) -> BooleanExpression:
    """AND of the parts, as a balanced tree."""
    operands = list(parts)
    return operands[0] if len(operands) == 1 else And(*operands)


def disjunction(parts: Iterable[BooleanExpression]) -> BooleanExpression:
    """OR of the parts, as a balanced tree."""
    operands = list(parts)
    return operands[0] if len(operands) == 1 else Or(*operands)


def _equality(op: Op, column: Column, literals: tuple[Literal, ...]) -> BooleanExpression:
    positive = op in (Op.EQ, Op.IN)
    if not literals:
        return AlwaysFalse() if positive else _null_test(Op.NOT_NULL, column)
    if len(literals) == 1:
        return BoundPredicate(Op.EQ if positive else Op.NE, column, literals)
    return BoundPredicate(Op.IN if positive else Op.NOT_IN, column, literals)


def _kind(type_: Any) -> str:
    return str(type_).split("<", 1)[0]


def _bind(
    expression: BooleanExpression,
    columns: ColumnIndex,
    case_sensitive: bool,
    *,
    negated: bool,
    depth: int = 0,
) -> BooleanExpression:
    if depth > MAX_DEPTH:
        raise InvalidInput(TOO_DEEP)
    below = depth + 1
    if isinstance(expression, Not):
        return _bind(expression.child, columns, case_sensitive, negated=not negated, depth=below)
    if isinstance(expression, And | Or):
        kind: type[Any] = And if isinstance(expression, And) else Or
        parts = [
            _bind(part, columns, case_sensitive, negated=negated, depth=below)
            for part in operands_of(expression, kind)
        ]
        return conjunction(parts) if (kind is And) != negated else disjunction(parts)
    if isinstance(expression, AlwaysTrue | AlwaysFalse):
        return ~expression if negated else expression
    if isinstance(expression, BoxPredicate):
        column = columns.with_id(expression.term.field.field_id)
        return AlwaysTrue() if negated else BoxPredicate(column, expression.window)
    if is_of_files(expression):
        return AlwaysTrue() if negated else expression
    op = operator_of(expression)
    if op is None:
        raise Unsupported(
            f"a filter cannot contain {type(expression).__name__}", feature="filter expression"
        )
    if isinstance(expression, BoundPredicate):
        column = columns.with_id(expression.term.field.field_id)
    else:
        assert isinstance(expression, UnboundPredicate)
        column = columns.named(expression.term.name, case_sensitive=case_sensitive)
    return predicate(op.negated if negated else op, column, literals_of(expression))
