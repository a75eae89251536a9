"""Filters bound to a schema: names become columns, literals take the column's type, NOT is gone.

What comes out is a PyIceberg expression made of bound predicates over `Column`, AND, OR and the two
constants. Comparisons mean what SQL means: a null matches nothing but IS NULL and IS NOT NAN. NaN
equals itself and is greater than every number. A negated comparison is the opposite comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    BoundPredicate,
    BoundReference,
    Not,
    Or,
    Reference,
    UnboundPredicate,
)
from pyiceberg.expressions.literals import Literal
from pyiceberg.types import DoubleType, FloatType, PrimitiveType, StringType

from frazil.errors import InvalidInput, Unsupported
from frazil.filter.bind.box_predicate import BoxPredicate
from frazil.filter.bind.expression_column import is_of_files
from frazil.filter.bind.filter_columns import Column, ColumnIndex
from frazil.filter.bind.literals import Place, Where, place, typed
from frazil.filter.bind.operators import (
    ORDERED,
    PREFIX,
    SETS,
    UNARY,
    Op,
    bound,
    literals_of,
    operator_of,
)
from frazil.format.values.variant_type import VariantType


def bind(
    expression: BooleanExpression, columns: ColumnIndex, *, case_sensitive: bool = True
) -> BooleanExpression:
    """A PyIceberg expression, bound or not, bound to the columns and free of NOT."""
    return _bind(expression, columns, case_sensitive, negated=False)


def predicate(op: Op, column: Column, literals: Sequence[Literal[Any]] = ()) -> BooleanExpression:
    """One comparison, its literals converted to the column's type without changing its meaning."""
    type_ = column.field.field_type
    if op in (Op.IS_NULL, Op.NOT_NULL):
        return bound(op, column)
    if not isinstance(type_, PrimitiveType) or isinstance(type_, VariantType):
        raise InvalidInput(
            f"column '{column.name}' is a {_kind(type_)}; only IS NULL and IS NOT NULL apply to it"
        )
    if op in UNARY:
        if not isinstance(type_, FloatType | DoubleType):
            raise InvalidInput(f"column '{column.name}' is a {type_}, which cannot be NaN")
        return bound(op, column)
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
        return bound(Op.NOT_NULL, column) if op is Op.STARTS_WITH else AlwaysFalse()
    if where is Where.EXACT:
        return bound(op, column, (typed(value, type_),))
    assert op in ORDERED
    if where is Where.AFTER:
        below = Op.LE if op in (Op.LT, Op.LE) else Op.GT
        return bound(below, column, (typed(value, type_),))
    everything = (op in (Op.LT, Op.LE)) == (where is Where.ABOVE)
    return bound(Op.NOT_NULL, column) if everything else AlwaysFalse()


def _with_nan(op: Op, column: Column, others: Sequence[Place]) -> BooleanExpression:
    """A comparison with NaN, which equals itself and is greater than every number."""
    if op in (Op.IN, Op.EQ):
        parts = [bound(Op.IS_NAN, column)]
        if others:
            parts.append(predicate(op, column, [_literal(place, column) for place in others]))
        return disjunction(parts)
    if op in (Op.NOT_IN, Op.NE):
        parts = [bound(Op.NOT_NULL, column), bound(Op.NOT_NAN, column)]
        if others:
            parts.append(predicate(op, column, [_literal(place, column) for place in others]))
        return conjunction(parts)
    if op is Op.GE:
        return bound(Op.IS_NAN, column)
    if op is Op.GT:
        return AlwaysFalse()
    if op is Op.LE:
        return bound(Op.NOT_NULL, column)
    return conjunction([bound(Op.NOT_NULL, column), bound(Op.NOT_NAN, column)])


def _literal(place: Place, column: Column) -> Literal[Any]:
    return typed(place.value, column.field.field_type)


def keys_predicate(
    column: Column, keys: Sequence[Literal[Any]], *, is_all: bool, has_nan: bool = False
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


def _equality(op: Op, column: Column, literals: tuple[Literal[Any], ...]) -> BooleanExpression:
    positive = op in (Op.EQ, Op.IN)
    if not literals:
        return AlwaysFalse() if positive else bound(Op.NOT_NULL, column)
    if len(literals) == 1:
        return bound(Op.EQ if positive else Op.NE, column, literals)
    return bound(Op.IN if positive else Op.NOT_IN, column, literals)


def _kind(type_: Any) -> str:
    return str(type_).split("<", 1)[0]


def _chain(expression: BooleanExpression, kind: type[Any]) -> list[BooleanExpression]:
    """The operands of a run of ANDs (or ORs), however deep it leans."""
    operands: list[BooleanExpression] = []
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, kind):
            stack.extend((node.right, node.left))
        else:
            operands.append(node)
    return operands


def _bind(
    expression: BooleanExpression, columns: ColumnIndex, case_sensitive: bool, *, negated: bool
) -> BooleanExpression:
    if isinstance(expression, Not):
        return _bind(expression.child, columns, case_sensitive, negated=not negated)
    if isinstance(expression, And | Or):
        kind: type[Any] = And if isinstance(expression, And) else Or
        parts = [
            _bind(part, columns, case_sensitive, negated=negated)
            for part in _chain(expression, kind)
        ]
        return conjunction(parts) if (kind is And) != negated else disjunction(parts)
    if isinstance(expression, AlwaysTrue | AlwaysFalse):
        return ~expression if negated else expression
    if isinstance(expression, BoxPredicate):
        column = columns.with_id(expression.term.ref().field.field_id)
        return AlwaysTrue() if negated else BoxPredicate(column, **expression.window)
    if is_of_files(expression):
        return AlwaysTrue() if negated else expression
    op = operator_of(expression)
    if op is None:
        raise Unsupported(
            f"a filter cannot contain {type(expression).__name__}", feature="filter expression"
        )
    if isinstance(expression, UnboundPredicate) and isinstance(expression.term, Reference):
        column = columns.named(expression.term.name, case_sensitive=case_sensitive)
    elif isinstance(expression, BoundPredicate) and isinstance(expression.term, BoundReference):
        column = columns.with_id(expression.term.field.field_id)
    else:
        raise Unsupported(
            f"a filter compares columns; {expression} compares something else",
            feature="filter on a transform",
        )
    return predicate(op.negated if negated else op, column, literals_of(expression))
