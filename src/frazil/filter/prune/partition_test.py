"""Conditions judged by partition tuples.

Every row of a file has the same transformed value, the one in its partition tuple, so a projected
condition is simply evaluated on that value. Manifest entries have no tuple, and a file's tuple only
has the fields of the file's own spec: elsewhere nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pyiceberg.expressions import BoundPredicate
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import Transform, VoidTransform
from pyiceberg.types import IcebergType

from frazil.filter.bind.comparable import Comparable, Mask
from frazil.filter.bind.operators import Op, literals_of, operator_of
from frazil.value_classes import dataclass


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
        projected = project("value", predicate)
    except (ArithmeticError, TypeError, ValueError):
        # A value that PyIceberg's calendar arithmetic cannot hold, or an operator it does not
        # expect on the type: not projecting is always allowed.
        return None
    if projected is None:
        return None
    op = operator_of(projected)
    if op is None:
        return None
    values = tuple(literal.value for literal in literals_of(projected))
    return ComparedValues(op=op, type=transform.result_type(source), values=values)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTest:
    """What a predicate asks of one partition field, in the specs that have it."""

    partition_field_id: int
    spec_ids: tuple[int, ...]
    inclusive: ComparedValues | None
    strict: ComparedValues | None


def partition_tests(
    predicate: BoundPredicate, specs: Mapping[int, PartitionSpec]
) -> tuple[PartitionTest, ...]:
    """The tests of the partition fields made from the predicate's column."""
    source_id = predicate.term.ref().field.field_id
    specs_with: dict[tuple[int, str], list[int]] = {}
    transforms: dict[tuple[int, str], Transform[Any, Any]] = {}
    for spec_id, spec in specs.items():
        for field in spec.fields:
            if field.source_id != source_id or isinstance(field.transform, VoidTransform):
                continue
            same = (field.field_id, str(field.transform))
            specs_with.setdefault(same, []).append(spec_id)
            transforms[same] = field.transform
    tests = (
        PartitionTest(
            partition_field_id=same[0],
            spec_ids=tuple(spec_ids),
            inclusive=inclusive(transforms[same], predicate),
            strict=strict(transforms[same], predicate),
        )
        for same, spec_ids in specs_with.items()
    )
    return tuple(test for test in tests if test.inclusive or test.strict)


def holds(condition: ComparedValues, values: Comparable | None, count: int) -> Mask:
    """Where the value itself satisfies the condition; `values` is None when all are null."""
    op = condition.op
    if values is None:
        return np.full(count, op in (Op.IS_NULL, Op.NOT_NAN))
    known = values.known
    if op is Op.IS_NULL:
        return np.zeros(count, dtype=np.bool_) if known is None else ~known
    if op is Op.NOT_NULL:
        return np.ones(count, dtype=np.bool_) if known is None else known
    if op is Op.NOT_NAN:
        return ~values.nan() if known is None else ~values.nan() | ~known
    mask = _compared(condition, values)
    return mask if known is None else mask & known


def _compared(condition: ComparedValues, values: Comparable) -> Mask:
    op = condition.op
    if op is Op.IS_NAN:
        return values.nan()
    if op is Op.IN:
        return values.among(condition.values)
    if op is Op.NOT_IN:
        return ~values.among(condition.values)
    value = condition.value
    if op is Op.EQ:
        return values.equal(value)
    if op is Op.NE:
        return ~values.equal(value)
    if op is Op.LT:
        return values.less(value)
    if op is Op.GT:
        return ~values.less(value) & ~values.equal(value)
    if op is Op.STARTS_WITH:
        return values.starts_with(value)
    if op is Op.NOT_STARTS_WITH:
        return ~values.starts_with(value)
    if op is Op.LE:
        return values.less(value) | values.equal(value)
    return ~values.less(value)  # NaN is greater than every number
