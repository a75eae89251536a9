"""What several conditions together ask of a transform of several columns.

`a = 1 AND b IN (2, 3)` leaves two buckets of `bucket[16](a, b)`; a condition on `a` alone leaves
all of them. Pure: which entries are in a bucket is for `frazil.filter.prune.prune`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from pyiceberg.expressions import BoundPredicate
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import Transform
from pyiceberg.types import IcebergType, IntegerType

from frazil.filter.bind.operators import Op, literals_of, operator_of
from frazil.filter.prune.partition_test import ComparedValues, PartitionTest
from frazil.filter.transforms.transforms import joint_array
from frazil.format.partition_fields import JointBucketTransform, JointField
from frazil.format.values.types import arrow_type
from frazil.value_classes import dataclass

_MAX_COMBINATIONS: Final = 1_000
"""Combinations of values that are hashed for one filter; more of them leave hardly a bucket out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointCondition:
    """The buckets that conditions leave, and which of them say so."""

    predicates: tuple[BoundPredicate, ...]
    buckets: ComparedValues


@dataclass(frozen=True, slots=True, kw_only=True)
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
            field_id = predicate.term.ref().field.field_id
            known = chosen.get(field_id)
            if known is None or len(literals_of(predicate)) < len(literals_of(known)):
                chosen[field_id] = predicate
        return Equalities(by_column=chosen)

    def buckets(
        self, sources: Sequence[int], transform: Transform[Any, Any]
    ) -> JointCondition | None:
        """The buckets of rows that pass; None when that may be any."""
        if not isinstance(transform, JointBucketTransform):
            return None
        if not all(source in self.by_column for source in sources):
            return None
        predicates = tuple(self.by_column[source] for source in sources)
        values = [[literal.value for literal in literals_of(one)] for one in predicates]
        if prod(len(options) for options in values) > _MAX_COMBINATIONS:
            return None
        kinds = [one.term.ref().field.field_type for one in predicates]
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
    fields: dict[int, JointField] = {}
    for spec_id, spec in specs.items():
        for part in spec.fields:
            if isinstance(part, JointField):
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
    plain = [value.bytes if isinstance(value, UUID) else value for value in values]
    return pa.array(plain, arrow_type(kind))
