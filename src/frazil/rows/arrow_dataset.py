"""A scan as a pyarrow dataset: lazy, and pruned by the filters that its consumers push down.

Arrow itself decides which files a filter can match: each file is shown to it as a fragment that
guarantees the file's bounds. Frazil's reader reads the files that are left, so that deleted rows
and renamed columns are as in every scan; Arrow's filter then picks the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from frazil import arrow_compute as pc
from frazil.data.schema import arrow_schema
from frazil.errors import Unsupported
from frazil.format.entries.fields import stats_key
from frazil.format.values.types import is_floating
from frazil.iceberg import types as ice
from frazil.rows.planned import Planned
from frazil.scan.tasks import TaskReader
from frazil.value_classes import replace

if TYPE_CHECKING:
    from frazil.rows.scan import Scan


_BOUNDED: Final = (
    ice.DateType
    | ice.DecimalType
    | ice.DoubleType
    | ice.FloatType
    | ice.IntegerType
    | ice.LongType
    | ice.StringType
    | ice.TimestampType
    | ice.TimestamptzType
)
"""Types whose bounds Arrow compares as Iceberg does."""


class ScanDataset(ds.Dataset):  # type: ignore[misc]
    """The rows of a scan for libraries that take a pyarrow dataset."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    @property
    def schema(self) -> pa.Schema:
        """Columns of the scan."""
        return self._scan.arrow_schema

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,
        **options: Any,
    ) -> ds.Scanner:
        """A pass over the rows that match, with some columns or expressions over them."""
        scan = self._scan
        used = f"{list(columns.values()) if isinstance(columns, Mapping) else ''} {filter}"
        plain_names = set() if columns is None or isinstance(columns, Mapping) else _tops(columns)
        names = [
            column.name
            for column in scan.read_schema.fields
            if columns is None or column.name in plain_names or column.name in used
        ] or [column.name for column in scan.read_schema.fields[:1]]
        narrow = replace(scan, columns=tuple(names))
        stream = pa.RecordBatchReader.from_batches(narrow.arrow_schema, _batches(narrow, filter))
        return ds.Scanner.from_batches(
            stream, columns=columns if columns is None else _copied(columns), filter=filter
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return ScanDataset, (self._scan,)

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise Unsupported(
            "a scan as a dataset can be scanned, filtered by scanner(filter=…) and counted only",
            feature="pyarrow dataset",
        )

    get_fragments = filter = join = join_asof = replace_schema = sort_by = _refused
    partition_expression = property(_refused)


def _tops(names: Sequence[str]) -> set[str]:
    """Columns with these names, and those whose parts they may be."""
    return {part for name in names for part in (name, name.split(".")[0])}


def _copied(columns: Any) -> Any:
    return dict(columns) if isinstance(columns, Mapping) else list(columns)


def _batches(scan: Scan, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
    if condition is None or scan.max_rows is not None or scan.condition.sql is not None:
        yield from scan.to_batches()
        return
    used = str(condition)
    bounded = [
        column
        for column in scan.table_schema.fields
        if column.name in used and isinstance(column.field_type, _BOUNDED)
    ]
    kinds = ("lower_bound", "upper_bound", "null_value_count", "nan_value_count")
    keys = [stats_key(column.field_id, kind) for column in bounded for kind in kinds]
    planned = Planned(scan, scan.plan(extra_keys=keys))
    reader = TaskReader(scan._reading())
    for task in planned.part(_surviving(planned, bounded, condition)).tasks():
        yield from reader.read(task)


def _surviving(
    planned: Planned, columns: Sequence[ice.NestedField], condition: pc.Expression
) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Rows of the plan with the files that the condition may hold in, told from their bounds."""
    types = arrow_schema(planned.scan.table_schema)
    bounds = [_bounds(planned, column, types.field(column.name).type) for column in columns]
    local, parquet = LocalFileSystem(), ds.ParquetFileFormat()
    column_names = [
        parquet.make_fragment(str(row), local, partition_expression=_all([b[row] for b in bounds]))
        for row in range(planned.num_files)
    ]
    offered = ds.FileSystemDataset(column_names, types, parquet, local)
    left = [int(fragment.path) for fragment in offered.get_fragments(filter=condition)]
    return np.array(sorted(left), dtype=np.intp)


def _all(parts: Sequence[pc.Expression | None]) -> pc.Expression:
    expressions = [part for part in parts if part is not None]
    return reduce(and_, expressions) if expressions else pc.scalar(True)


def _bounds(
    planned: Planned, column: ice.NestedField, kind: pa.DataType
) -> list[pc.Expression | None]:
    """What surely holds for a column, file by file."""
    files = planned.plan.files
    low, high, nulls, nans = (
        files.column(stats_key(column.field_id, part))
        for part in ("lower_bound", "upper_bound", "null_value_count", "nan_value_count")
    )
    field = pc.field(column.name)
    conditions: list[pc.Expression | None] = []
    for lowest, highest, missing, strange in zip(low, high, nulls, nans, strict=True):
        if not lowest.is_valid or not highest.is_valid:
            conditions.append(None)
        elif is_floating(column.field_type) and strange.as_py() != 0:
            conditions.append(None)  # NaN lies outside the bounds
        else:
            sides = [field >= lowest.cast(kind), field <= highest.cast(kind)]
            if missing.as_py() != 0:  # in the form that Arrow understands
                sides = [side | field.is_null() for side in sides]
            conditions.append(_all(sides))
    return conditions
