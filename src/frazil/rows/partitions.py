"""Partitions that new rows touch, and the rows of the table that lie in them.

A row belongs to a partition by its values, whichever spec its file was written with. Files of the
current spec are compared by their partition tuple; rows of files from before are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date
from enum import Enum, auto
from typing import Any

import numpy as np

from frazil.commit.change import VectorEdit
from frazil.data.metadata_columns import column_at, path_of
from frazil.filter.bind.bind import conjunction, disjunction, predicate
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.bind.literals import typed
from frazil.filter.text.filter_text import parse
from frazil.filter.transforms import joint_array
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import partition_key
from frazil.format.metadata.metadata import TableMetadata
from frazil.format.values.types import plain_value
from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression, Op
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    VoidTransform,
    YearTransform,
)
from frazil.rows.actions import entries_of, removal_of
from frazil.rows.planned import Longs, Planned
from frazil.scan.tasks import Task, TaskReader
from frazil.tree.partition_tuples import PartitionColumns
from frazil.value_classes import dataclass, replace

_MAX_TUPLES_IN_FILTER = 200
_DAY_US = 86_400_000_000


@dataclass(frozen=True, kw_only=True)
class Replaced:
    """The partitions of new files."""

    spec: PartitionSpec
    schema: Schema
    tuples: frozenset[tuple[Any, ...]]
    columns: PartitionColumns

    @staticmethod
    def of(added: EntryBatch, metadata: TableMetadata) -> Replaced:
        """The partitions that entries lie in."""
        spec = metadata.spec()
        columns = [added.column(partition_key(part.field_id)) for part in spec.fields]
        return Replaced(
            spec=spec,
            schema=metadata.schema(),
            tuples=frozenset(_tuples(columns, added.num_rows)),
            columns=PartitionColumns.of(metadata),
        )

    @property
    def extra_keys(self) -> frozenset[str]:
        """What a plan needs for files whose entries have no tuple."""
        return self.columns.stats_keys({self.spec.spec_id})

    @property
    def filter(self) -> BooleanExpression:
        """A filter that every row of these partitions passes."""
        if not self.tuples:
            return parse("false", self.schema)
        if len(self.tuples) > _MAX_TUPLES_IN_FILTER:
            return AlwaysTrue()
        parts = [
            conjunction(
                [
                    condition
                    for part, value in zip(self.spec.fields, row, strict=True)
                    if (condition := self._holds(part, value)) is not None
                ]
                or [AlwaysTrue()]
            )
            for row in self.tuples
        ]
        return parse(disjunction(parts), self.schema)

    def _holds(self, part: PartitionField, value: Any) -> BooleanExpression | None:
        """What the source column of a partition field holds; None where that is not a range."""
        if part.is_joint:
            return None
        column = ColumnIndex.of(self.schema).with_id(part.source_id)
        kind = column.field.field_type
        if isinstance(part.transform, VoidTransform):
            return None
        if value is None:
            return predicate(Op.IS_NULL, column)
        if isinstance(part.transform, IdentityTransform):
            if value is _Distinct.NAN:
                return predicate(Op.IS_NAN, column)
            compared = 0.0 if value is _Distinct.MINUS_ZERO else value
            return predicate(Op.EQ, column, [typed(plain_value(compared, kind), kind)])
        ends = _day_range(part.transform, value)
        if ends is None:
            return None
        if str(kind) == "date":
            values = list(ends)
        else:
            step = _DAY_US * (1000 if str(kind).endswith("_ns") else 1)
            values = [end * step for end in ends]
        low, high = (typed(end, kind) for end in values)
        return conjunction([predicate(Op.GE, column, [low]), predicate(Op.LT, column, [high])])

    def removal(self, planned: Planned) -> tuple[EntryBatch | None, tuple[VectorEdit, ...]]:
        """The rows of a plan that lie in these partitions, as files that go and vector edits."""
        files = planned.plan.files
        current = files.numpy("spec_id") == self.spec.spec_id
        rows = np.flatnonzero(current)
        tuples = self.columns.recovered(files.take(rows), self.spec.spec_id)
        columns = [tuples.column(partition_key(part.field_id)) for part in self.spec.fields]
        inside = np.array(
            [row in self.tuples for row in _tuples(columns, len(rows))], dtype=np.bool_
        )
        whole_rows = rows[inside]
        older = np.flatnonzero(~current)
        keys = [self._keys(planned, int(row)) for row in older]
        removed, vectors = removal_of(
            planned, np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
        )
        tasks: list[Task] = planned.tasks(whole_rows) if len(whole_rows) else []
        return entries_of([*tasks, *removed]), vectors

    def _keys(self, planned: Planned, row: int) -> Longs:
        """Rows of a file with another spec that lie in these partitions."""
        ids = [part.source_ids for part in self.spec.fields]
        names = [str(self.schema.find_column_name(id)) for sources in ids for id in sources]
        reading = planned.reading()
        scan = replace(
            planned.scan,
            matching=None,
            params=(),
            columns=tuple(dict.fromkeys((*names, "_pos"))),
        )
        reader = TaskReader(replace(reading, schema=scan.read_schema))
        (task,) = planned.tasks(np.array([row], dtype=np.intp))
        parts: list[Longs] = []
        for batch in reader.read(task):
            columns = [
                joint_array(
                    part.transform,
                    [column_at(batch, path_of(scan.read_schema, id)) for id in sources],
                    [self.schema.find_field(id).field_type for id in sources],
                )
                for part, sources in zip(self.spec.fields, ids, strict=True)
            ]
            inside = [row in self.tuples for row in _tuples(columns, batch.num_rows)]
            positions = np.asarray(batch.column("_pos"))[np.array(inside, dtype=np.bool_)]
            parts.append(positions + planned.bases[row])
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


class _Distinct(Enum):
    """Stands in tuples of partitions for what Python does not compare as partitions are: NaN does
    not equal itself, and −0.0 equals 0.0."""

    NAN = auto()
    MINUS_ZERO = auto()


def _tuples(columns: list[Any], count: int) -> Iterable[tuple[Any, ...]]:
    """Partition tuples that compare as partitions do: NaN is NaN, and −0.0 is not 0.0."""
    if not columns:
        return [()] * count
    return zip(*(map(_distinct, column.to_pylist()) for column in columns), strict=True)


def _distinct(value: Any) -> Any:
    if isinstance(value, float):
        if value != value:
            return _Distinct.NAN
        return _Distinct.MINUS_ZERO if value == 0 and math.copysign(1, value) < 0 else value
    return value


def _day_range(transform: Any, value: Any) -> tuple[int, int] | None:
    """The days from and to (exclusive) that a partition of time spans."""
    if isinstance(transform, DayTransform):
        day = (value - date(1970, 1, 1)).days if isinstance(value, date) else int(value)
        return day, day + 1
    if isinstance(transform, YearTransform):
        return _days_to(1970 + value, 1), _days_to(1971 + value, 1)
    if isinstance(transform, MonthTransform):
        months = [divmod(value + step, 12) for step in (0, 1)]
        (low_year, low), (high_year, high) = months
        return _days_to(1970 + low_year, low + 1), _days_to(1970 + high_year, high + 1)
    if isinstance(transform, HourTransform):
        day = value // 24
        return day, day + 1
    return None


def _days_to(year: int, month: int) -> int:
    return int(np.datetime64(f"{year:04d}-{month:02d}", "D").astype(np.int64))
