"""Predicates on a column turned into predicates on what a partition transform makes of it.

*Inclusive*: every row that matches the predicate has a transformed value that matches the
projection, so a file whose transformed values do not match has no such row. *Strict*: every row
whose transformed value matches the projection matches the predicate.

The rules are PyIceberg's (`Transform.project`, `Transform.strict_project`); this module makes a
`ComparedValues` of their answer, and "no projection" of what they cannot do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyiceberg.expressions import BoundPredicate
from pyiceberg.transforms import Transform
from pyiceberg.types import IcebergType

from frazil.expr.operators import Op, literals_of, operator_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedValues:
    """An operator and the plain values it compares with; `type` is the type of what is compared."""

    op: Op
    type: IcebergType
    values: tuple[Any, ...] = ()

    @property
    def value(self) -> Any:
        """The one value."""
        return self.values[0]


def condition(predicate: BoundPredicate) -> ComparedValues:
    """The condition a bound predicate puts on its own column."""
    op = operator_of(predicate)
    assert op is not None
    values = tuple(literal.value for literal in literals_of(predicate))
    return ComparedValues(op=op, type=predicate.term.ref().field.field_type, values=values)


def inclusive(transform: Transform[Any, Any], predicate: BoundPredicate) -> ComparedValues | None:
    """What the transformed value of a matching row satisfies; None when nothing can be said."""
    return _projected(transform, predicate, strict=False)


def strict(transform: Transform[Any, Any], predicate: BoundPredicate) -> ComparedValues | None:
    """What a transformed value must satisfy for its row to match; None when nothing suffices."""
    return _projected(transform, predicate, strict=True)


def _projected(
    transform: Transform[Any, Any], predicate: BoundPredicate, *, strict: bool
) -> ComparedValues | None:
    source = predicate.term.ref().field.field_type
    if not transform.can_transform(source):
        return None
    project = transform.strict_project if strict else transform.project
    try:
        found = project("value", predicate)
    except (ArithmeticError, TypeError, ValueError):
        # A value that PyIceberg's calendar arithmetic cannot hold, or an operator it does not
        # expect on the type: not projecting is always allowed.
        return None
    if found is None:
        return None
    op = operator_of(found)
    if op is None:
        return None
    values = tuple(literal.value for literal in literals_of(found))
    return ComparedValues(op=op, type=transform.result_type(source), values=values)
