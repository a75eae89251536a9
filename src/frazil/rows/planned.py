"""A planned scan as engines share it: its files, and a number for every row.

Each file gets a *base*, so that base + position is a number no other row of the plan has: its
`first_row_id` where every file has one (their ranges do not overlap), a running count of records
otherwise. With it, deleting, joining and locating rows work on one 64-bit key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.data.metadata_columns import METADATA_COLUMNS, covering
from frazil.data.read.read_files import Reading
from frazil.filter.row_filter import columns_of
from frazil.format import paths
from frazil.format.entries.fields import stats_key
from frazil.format.values.types import is_floating
from frazil.format.vectors.puffin import StoredVector
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from frazil.properties.registry import DATA_PATH
from frazil.scan.plan import EachLeaf, Plan, plan
from frazil.scan.tasks import Task, tasks_of
from frazil.value_classes import dataclass, replace

if TYPE_CHECKING:
    from frazil.rows.scan import Scan

Longs = npt.NDArray[np.int64]
_BOUNDED = (
    IntegerType | LongType | DateType | TimestampType | TimestamptzType | DecimalType | StringType
)
_MAX_BASE = 1 << 52
"""Spark carries a base as milliseconds and turns them into microseconds."""


def floating_parts(field: NestedField) -> Iterator[int]:
    """The ids of floating columns that filters can look at: the column, or parts of structs."""
    if is_floating(field.field_type):
        yield field.field_id
    if isinstance(field.field_type, StructType):
        for part in field.field_type.fields:
            yield from floating_parts(part)


def _mask(values: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return arrow_values.to_numpy(values).astype(np.bool_)


@dataclass(frozen=True)
class Planned:
    """A scan with its plan."""

    scan: Scan
    plan: Plan
    numbering: Longs | None = None
    """Bases of a larger plan that this one is a part of, where they are running counts."""

    @staticmethod
    def of(
        scan: Scan, *, extra_keys: Iterable[str] = (), each_leaf: EachLeaf | None = None
    ) -> Planned:
        """Plan the scan now, with the number of NaNs in each file; `each_leaf` may look into the
        leaves elsewhere."""
        keys = [
            *extra_keys,
            *(
                stats_key(field_id, "nan_value_count")
                for column in scan.table_schema.fields
                for field_id in floating_parts(column)
            ),
        ]
        planned = plan(
            scan._handle.reader(),
            scan.snapshot,
            schema=scan.table_schema,
            where=scan.condition.filter,
            extra_keys=keys,
            each_leaf=each_leaf,
        )
        return Planned(scan, planned)

    @cached_property
    def read_schema(self) -> Schema:
        """The columns to be read: those asked for, and those the filter looks at."""
        scan, condition = self.scan, self.scan.condition
        needed = set(columns_of(condition.filter))
        if condition.sql is not None:
            columns = {**METADATA_COLUMNS, **{f.name: f for f in scan.table_schema.fields}}
            needed |= {columns[name].field_id for name in condition.sql.columns(list(columns))}
        return covering(scan.read_schema, scan.table_schema, needed)

    def reading(self) -> Reading:
        """How the files are read, whichever rows match."""
        return replace(self.scan, matching=None, params=())._reading()

    @property
    def base_snapshot_id(self) -> int | None:
        """The snapshot that was planned, which a change of these files is based on; None before the
        first one."""
        snapshot = self.scan.snapshot
        return None if snapshot is None else int(snapshot.snapshot_id)

    @property
    def num_files(self) -> int:
        """How many files the plan has."""
        return self.plan.files.num_rows

    @cached_property
    def records(self) -> Longs:
        """Rows of each file, deleted ones included."""
        return self._longs("record_count")

    @cached_property
    def first_row_ids(self) -> Longs:
        """The files' first row ids; -1 where a file has none."""
        return self._longs("tracking.first_row_id")

    @cached_property
    def bases(self) -> Longs:
        """The base of each file."""
        if self.numbering is not None:
            return self.numbering
        if self.has_row_ids:
            return self.first_row_ids
        counted = np.cumsum(self.records, dtype=np.int64)
        return np.asarray(counted - self.records, dtype=np.int64)

    @cached_property
    def has_row_ids(self) -> bool:
        """Whether bases are first row ids."""
        firsts = self.first_row_ids
        if (
            self.numbering is not None
            or not len(firsts)
            or firsts.min() < 0
            or firsts.max() >= _MAX_BASE
        ):
            return False
        order = np.argsort(firsts, kind="stable")
        ends = firsts[order] + self.records[order]
        return bool((ends[:-1] <= firsts[order][1:]).all())

    @cached_property
    def paths(self) -> list[str]:
        """Absolute paths of the files."""
        location = self.scan._handle.location
        return list(paths.resolve_all(location, self.plan.files.column("location")).to_pylist())

    @cached_property
    def has_own_names(self) -> npt.NDArray[np.bool_]:
        """Which files surely name columns as a schema of the table does; files that were taken
        over from elsewhere may call a column by another one's name."""
        stored = self.plan.files.column("location")
        is_relative = ~_mask(paths.which_absolute(stored))
        folder = DATA_PATH.of(self.scan._handle.metadata.properties)
        if folder is not None and not is_relative.all():
            resolved = paths.resolve_all(self.scan._handle.location, stored)
            is_relative |= _mask(pc.starts_with(resolved, folder))
        return is_relative

    def may_have_nan(self, column: NestedField) -> npt.NDArray[np.bool_]:
        """Files with a NaN in a column, or where metadata does not say that there is none."""
        files = self.plan.files
        mask = np.zeros(files.num_rows, dtype=np.bool_)
        for field_id in floating_parts(column):
            mask |= files.numpy(stats_key(field_id, "nan_value_count")) != 0
        return mask

    def bounds(self, field: NestedField) -> tuple[pa.Scalar, pa.Scalar] | None:
        """The least and the greatest value of a column in all files; None if not known."""
        if not isinstance(field.field_type, _BOUNDED) or not self.num_files:
            return None
        files = self.plan.files
        low, high = (
            files.column(stats_key(field.field_id, name)) for name in ("lower_bound", "upper_bound")
        )
        return None if low.null_count or high.null_count else (pc.min(low), pc.max(high))

    @cached_property
    def has_vector(self) -> npt.NDArray[np.bool_]:
        """Which files have a deletion vector."""
        locations = self.plan.files.column("deletion_vector.location")
        return arrow_values.to_numpy(pc.is_valid(locations))

    def vectors(self, rows: npt.NDArray[Any]) -> list[tuple[int, int, StoredVector]]:
        """Base, record count and deletion vector of files that have one."""
        return [
            (int(self.bases[row]), task.source.record_count, task.vector)
            for row, task in zip(rows, self.tasks(rows), strict=True)
            if task.vector is not None
        ]

    def tasks(self, rows: npt.NDArray[Any] | None = None) -> list[Task]:
        """Tasks of the files at these rows of the plan, in their order."""
        plan = self.plan if rows is None else self.part(rows).plan
        return list(tasks_of(plan, location=self.scan._handle.location))

    def part(self, rows: npt.NDArray[Any], scan: Scan | None = None) -> Planned:
        """Some of the files, whose rows keep their numbers; in another scan of them if given."""
        matches = {
            at: self.plan.matches[int(row)]
            for at, row in enumerate(rows)
            if int(row) in self.plan.matches
        }
        plan = replace(self.plan, files=self.plan.files.take(rows), matches=matches)
        # Row ids are numbers by themselves; else the bases of the whole plan stay, so that a key
        # means the same row here and there.
        numbering = None if self.has_row_ids else self.bases[rows]
        return Planned(scan or self.scan, plan, numbering)

    def seen_by(self, scan: Scan) -> Planned:
        """The same files in another scan of the snapshot; their rows keep their numbers."""
        return Planned(scan, self.plan, self.numbering)

    def among(self, held: Planned) -> Planned:
        """The files of a held plan that this one has too, as this one's scan reads them."""
        own_paths = set(self.paths)
        rows = np.array(
            [at for at, path in enumerate(held.paths) if path in own_paths], dtype=np.intp
        )
        return held.part(rows, self.scan)

    def located(self, keys: Longs) -> Iterator[tuple[int, Longs]]:
        """Keys as rows of the plan with ascending positions in the file."""
        order = np.argsort(self.bases, kind="stable")
        starts = self.bases[order]
        ordered = keys if (keys[1:] > keys[:-1]).all() else np.sort(keys)
        firsts = np.searchsorted(ordered, starts)
        ends = np.append(firsts[1:], len(ordered))
        for slot in np.flatnonzero(firsts < ends):
            yield int(order[slot]), ordered[firsts[slot] : ends[slot]] - starts[slot]

    def _longs(self, key: str) -> Longs:
        return self.plan.files.numpy(key).astype(np.int64, copy=False)
