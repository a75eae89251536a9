"""Conditions judged by partition tuples.

Every row of a file has the same transformed value, the one in its partition tuple, so a projected
condition is simply evaluated on that value. Manifest entries have no tuple, and a file's tuple only
has the fields of the file's own spec: elsewhere nothing is known.

Conditions together ask of a transform of several columns: `a = 1 AND b IN (2, 3)` leaves two
buckets of `bucket[16](a, b)`; a condition on `a` alone leaves all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa

from frazil import arrow_values
from frazil.errors import InvalidInput
from frazil.filter.bind.comparable import Comparable, Mask
from frazil.filter.transforms import joint_array
from frazil.format.values.types import arrow_type, scalar_value
from frazil.iceberg.expressions import ORDERED, PREFIX, BoundPredicate, Op, literals_of, operator_of
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.transforms import (
    IdentityTransform,
    JointBucketTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
)
from frazil.iceberg.types import DecimalType, IcebergType, IntegerType
from frazil.value_classes import frozen


@frozen
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
    return ComparedValues(op=op, type=predicate.term.field.field_type, values=values)


def inclusive(transform: Transform, predicate: BoundPredicate) -> ComparedValues | None:
    """What the transformed value of a matching row satisfies; None when nothing can be said."""
    return _projected(transform, predicate, strict=False)


def strict(transform: Transform, predicate: BoundPredicate) -> ComparedValues | None:
    """What a transformed value must satisfy for its row to match; None when nothing suffices."""
    return _projected(transform, predicate, strict=True)


def _projected(
    transform: Transform, predicate: BoundPredicate, *, strict: bool
) -> ComparedValues | None:
    source, op = predicate.term.field.field_type, predicate.op
    if op is None or isinstance(transform, JointBucketTransform):
        return None  # one value of several tells no bucket
    if not transform.can_transform(source):
        return None
    result = transform.result_type(source)
    values = [literal.value for literal in predicate.literals]
    if isinstance(transform, IdentityTransform) or op in (Op.IS_NULL, Op.NOT_NULL):
        return ComparedValues(op=op, type=result, values=tuple(values))
    if op in PREFIX:
        return _prefix(transform, op, values[0], result, strict=strict)
    if op in ORDERED and transform.preserves_order:
        op, values = _ordered(op, values[0], source, strict=strict)
    elif op not in ((Op.NE, Op.NOT_IN) if strict else (Op.EQ, Op.IN)):
        return None
    results = _results(transform, values, source)
    return None if results is None else ComparedValues(op=op, type=result, values=results)


def _ordered(op: Op, value: Any, source: IcebergType, *, strict: bool) -> tuple[Op, list[Any]]:
    """What the result must be, and the value it is compared with the result of.

    `x < 10` leaves results up to that of 9, and is certain below that of 10; numbers have a next
    one, text has none.
    """
    is_below = op in (Op.LT, Op.LE)
    step = 0
    if op in ((Op.LE, Op.GE) if strict else (Op.LT, Op.GT)) and not isinstance(value, str | bytes):
        step = 1 if is_below == strict else -1
    unit = Decimal(1).scaleb(-source.scale) if isinstance(source, DecimalType) else 1
    if strict:
        return Op.LT if is_below else Op.GT, [value + step * unit if step else value]
    return Op.LE if is_below else Op.GE, [value + step * unit if step else value]


def _prefix(
    transform: Transform, op: Op, prefix: str, result: IcebergType, *, strict: bool
) -> ComparedValues | None:
    """Text that begins with something: all of that is in the result, or the beginning of it."""
    if not isinstance(transform, TruncateTransform):
        return None
    width = transform.width
    if len(prefix) > width and (op is Op.STARTS_WITH) == strict:
        return None  # the result does not tell what comes after it
    if len(prefix) >= width:
        op = Op.EQ if op is Op.STARTS_WITH else Op.NE
    return ComparedValues(op=op, type=result, values=(prefix[:width],))


def _results(
    transform: Transform, values: Sequence[Any], source: IcebergType
) -> tuple[Any, ...] | None:
    """What the transform makes of values; None where one of them is none of the type."""
    from frazil.filter.transforms import transform_array

    try:
        column = arrow_values.array(values, arrow_type(source))
        return tuple(scalar_value(one) for one in transform_array(transform, column, source))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, InvalidInput):
        return None  # it is next to the end of the type's range: not projecting is always allowed


@frozen
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
    source_id = predicate.term.field.field_id
    specs_with: dict[tuple[int, str], list[int]] = {}
    transforms: dict[tuple[int, str], Transform] = {}
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
    has_value = values.known
    if op is Op.IS_NULL:
        return np.zeros(count, dtype=np.bool_) if has_value is None else ~has_value
    if op is Op.NOT_NULL:
        return np.ones(count, dtype=np.bool_) if has_value is None else has_value
    if op is Op.NOT_NAN:
        return ~values.nan() if has_value is None else ~values.nan() | ~has_value
    mask = _compared(condition, values)
    return mask if has_value is None else mask & has_value


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


_MAX_COMBINATIONS: Final = 1_000
"""Combinations of values that are hashed for one filter; more of them leave hardly a bucket out."""


@frozen
class JointCondition:
    """The buckets that conditions leave, and which of them say so."""

    predicates: tuple[BoundPredicate, ...]
    buckets: ComparedValues


@frozen
class Equalities:
    """The predicates of a conjunction that name the values of a column, by its id."""

    by_column: Mapping[int, BoundPredicate]

    @staticmethod
    def of(conjuncts: Sequence[object]) -> Equalities:
        """Of several predicates on a column, the one with the fewest values."""
        chosen: dict[int, BoundPredicate] = {}
        for predicate in conjuncts:
            if not isinstance(predicate, BoundPredicate):
                continue
            if operator_of(predicate) not in (Op.EQ, Op.IN):
                continue
            field_id = predicate.term.field.field_id
            narrowest = chosen.get(field_id)
            if narrowest is None or len(literals_of(predicate)) < len(literals_of(narrowest)):
                chosen[field_id] = predicate
        return Equalities(by_column=chosen)

    def buckets(self, sources: Sequence[int], transform: Transform) -> JointCondition | None:
        """The buckets of rows that pass; None when that may be any."""
        if not isinstance(transform, JointBucketTransform):
            return None
        if not all(source in self.by_column for source in sources):
            return None
        predicates = tuple(self.by_column[source] for source in sources)
        values = [[literal.value for literal in literals_of(one)] for one in predicates]
        if prod(len(options) for options in values) > _MAX_COMBINATIONS:
            return None
        kinds = [one.term.field.field_type for one in predicates]
        if not all(transform.can_transform(kind) for kind in kinds):
            return None
        rows = list(product(*values))
        columns = [_array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
        buckets = sorted(set(joint_array(transform, columns, kinds).to_pylist()))
        compared = ComparedValues(op=Op.IN, type=IntegerType(), values=tuple(buckets))
        return JointCondition(predicates=predicates, buckets=compared)


def joint_tests(
    equalities: Equalities, specs: Mapping[int, PartitionSpec]
) -> list[tuple[JointCondition, PartitionTest]]:
    """The tests of the partition fields that are made from several columns."""
    specs_with: dict[int, list[int]] = {}
    fields: dict[int, PartitionField] = {}
    for spec_id, spec in specs.items():
        for part in spec.fields:
            if part.is_joint:
                specs_with.setdefault(part.field_id, []).append(spec_id)
                fields[part.field_id] = part
    tests = []
    for field_id, part in fields.items():
        condition = equalities.buckets(part.source_ids, part.transform)
        if condition is not None:
            test = PartitionTest(
                partition_field_id=field_id,
                spec_ids=tuple(specs_with[field_id]),
                inclusive=condition.buckets,
                strict=None,
            )
            tests.append((condition, test))
    return tests


def _array(values: Sequence[Any], kind: IcebergType) -> pa.Array:
    storable = [value.bytes if isinstance(value, UUID) else value for value in values]
    return pa.array(storable, arrow_type(kind))
