"""Files that one call of DuckDB's Parquet reader reads, and what metadata says of each of them."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_values
from frazil.data.metadata_columns import FILE, LAST_UPDATED, PARTITION_ID, POS, ROW_ID, SPEC_ID
from frazil.data.read.sources import open_source
from frazil.data.schema import nested_arrow_type
from frazil.data.slices import DataFileSlice
from frazil.data.statistics.footer import top_level_names
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_values import string_text, type_text
from frazil.format.values.types import arrow_type
from frazil.iceberg.types import NestedField
from frazil.rows.duckdb.duckdb_types import default_text
from frazil.rows.planned import Planned
from frazil.storage import Storage
from frazil.value_classes import dataclass, field, replace

if TYPE_CHECKING:
    from frazil.rows.duckdb.duckdb_parts import NamedParts

_MAX_KNOWN: Final = 1 << 16
_MAX_SHARED: Final = 1 << 10
_OWN_NAMES: Final = frozenset({"file_index", "file_row_number", "filename"})

NamesById = Mapping[int, str]
"""NamesById of top-level columns by field id."""


class _Known:
    """The names in the files that were asked for last. Files are never changed."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, NamesById] = OrderedDict()
        self._shared: dict[tuple[tuple[int, str], ...], NamesById] = {}
        self._lock = threading.Lock()

    def find(self, path: str) -> NamesById | None:
        with self._lock:
            return self._names.get(path)

    def keep(self, path: str, names: NamesById) -> None:
        with self._lock:
            if len(self._shared) > _MAX_SHARED:
                self._shared.clear()
            self._names[path] = self._shared.setdefault(tuple(names.items()), names)
            if len(self._names) > _MAX_KNOWN:
                self._names.popitem(last=False)


_known = _Known()


def column_names(storage: Storage, source: DataFileSlice) -> NamesById:
    """The names of a Parquet file's columns; also checks that it has as many rows as recorded."""
    names = _known.find(source.path)
    if names is None:
        opened = open_source(storage, source, verify_checksums=False)
        names = top_level_names(opened.schema)
        _known.keep(source.path, names)
    return names


Rows = np.ndarray[Any, np.dtype[Any]]
Names = tuple[str | None, ...]
MAX_LISTED: Final = 512
"""Files whose values are looked up in a list. DuckDB copies it for every vector of rows; a join
suits more files."""
_TYPES: Final = {
    "base": "BIGINT",
    "path": "VARCHAR",
    "first_row_id": "BIGINT",
    "sequence": "BIGINT",
    "spec_id": "INTEGER",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Files of a plan, given by its rows in the order in which DuckDB gets them."""

    name: str
    rows: Rows
    columns: tuple[NestedField, ...]
    """What is read from the files."""
    names: Names | None
    """How the files call these columns, None for one they lack; None if columns go by ids."""
    touched: bool = False
    """Whether rows of them are deleted."""
    has_nan: bool = False
    distinct: Mapping[int, int] = field(default_factory=dict)
    """How many values columns have, by field id, where they were counted."""
    files: tuple[DataFileSlice, ...] = ()
    """What is read in place of the data files: column files, by the rows."""
    beside: tuple[FileGroup, ...] = ()
    """Other files of the same rows, with the columns that they have."""
    alias: str = "r"
    """What the rows are called."""
    _named: frozenset[int] = field(init=False, repr=False, compare=False)
    """Ids of columns whose names no other column, and nothing that DuckDB adds, has."""

    @property
    def has_lists(self) -> bool:
        """Whether values of files come from lists. DuckDB would hash the rows, not the files, in a
        join of files that it reads by ids: it takes them for one row."""
        return self.names is None or len(self.rows) <= MAX_LISTED

    def file_value(self, name: str) -> str:
        """What metadata says of a row's file."""
        if name == "part" or not self.has_lists:
            return f"i.{name}"
        at = "CAST(r.file_index AS BIGINT) + 1"
        return f"CAST(list_extract(getvariable('{self.variable(name)}'), {at}) AS {_TYPES[name]})"

    def variable(self, name: str) -> str:
        """The variable with such values."""
        return f"{self.name}_{name}"

    def of_parts(self, parts: NamedParts) -> FileGroup:
        """The same files, whose columns are in several files, or in others."""
        first, *others = (
            replace(
                self,
                name=f"{self.name}_{number}",
                columns=part.columns,
                names=names,
                files=tuple(parts[int(row)][number][0].source for row in self.rows),
                alias=f"c{number}" if number else "r",
            )
            for number, (part, names) in enumerate(parts[int(self.rows[0])])
        )
        return replace(first, beside=tuple(others))

    @property
    def same_row(self) -> str:
        """Where a row of these files and one of those called `r` are one row."""
        return " AND ".join(
            f"{self.alias}.{at} = r.{at}" for at in ("file_index", "file_row_number")
        )

    def stored(self, column: NestedField) -> str:
        """A column as the files have it."""
        for others in self.beside:
            if column in others.columns:
                return others.stored(column)
        if self.names is None:
            return f"{self.alias}.{quoted(self._name_by_id(column))}"
        name = self.names[self.columns.index(column)]
        if name is None:
            return f"CAST({default_text(column)} AS {type_text(column.field_type)})"
        return f"{self.alias}.{quoted(name)}"

    def _name_by_id(self, column: NestedField) -> str:
        """What a column that is found by its id is called in plans and messages."""
        return column.name if column.field_id in self._named else f"__frazil_{column.field_id}"

    def __post_init__(self) -> None:
        uses = Counter(column.name.lower() for column in self.columns)
        named = frozenset(
            column.field_id
            for column in self.columns
            if uses[name := column.name.lower()] == 1 and name not in _OWN_NAMES
        )
        object.__setattr__(self, "_named", named)

    def output(self, column: NestedField) -> str:
        """A column of the scan."""
        position = "r.file_row_number"
        match column.field_id:
            case POS.field_id:
                return position
            case FILE.field_id:
                return self.file_value("path")
            case SPEC_ID.field_id:
                return self.file_value("spec_id")
            case _ if column.field_id == PARTITION_ID:
                return self.file_value("part")
            case ROW_ID.field_id:
                first = self.file_value("first_row_id")
                return f"coalesce({self.stored(column)}, {first} + {position})"
            case LAST_UPDATED.field_id:
                return f"coalesce({self.stored(column)}, {self.file_value('sequence')})"
        return self.stored(column)

    def options(self) -> str:
        """How `read_parquet` is to find the columns."""
        if self.names is None:
            ids = (
                f"{column.field_id}: {{name: {string_text(self._name_by_id(column))}, "
                f"type: {string_text(type_text(column.field_type))}, "
                f"default_value: {default_text(column)}}}"
                for column in self.columns
            )
            columns = f"schema=MAP {{{', '.join(ids)}}}"
        else:
            names = (
                f"{string_text(name)}: {string_text(type_text(column.field_type))}"
                for column, name in zip(self.columns, self.names, strict=True)
                if name is not None
            )
            columns = f"bound_schema={{{', '.join(names)}}}, hive_partitioning=false"
            if counted := ", ".join(self._distinct()):
                columns += f", column_statistics=MAP {{{counted}}}"
        # Statistics in Parquet files leave NaN out, which is greater than every number.
        return f"{columns}, can_have_nan=true" if self.has_nan else columns

    def _distinct(self) -> Iterator[str]:
        """Distinct values for DuckDB's estimates. Smallest and largest values are left out: it
        would take them for exact and answer from them."""
        for column, name in zip(self.columns, self.names or (), strict=True):
            number = self.distinct.get(column.field_id, 0)
            if name is not None and number and column.field_type.is_primitive:
                yield f"{string_text(name)}: MAP {{'distinct_count': {number}}}"


def typical_first(rows: Rows, planned: Planned) -> Rows:
    """Files with one in front that has about as many rows as all have on average: DuckDB takes all
    for as large as the first."""
    records = np.maximum(planned.records[rows], 1)
    typical = int(np.abs(np.log(records / records.mean())).argmin())
    return np.concatenate([rows[typical : typical + 1], np.delete(rows, typical)])


def file_values(planned: Planned, rows: Rows, names: Sequence[str]) -> dict[str, pa.Array]:
    """What metadata says of each file, by the names of `FileGroup.file_value`."""
    files = planned.plan.files.take(rows)
    first = files.column("tracking.first_row_id")
    values: dict[str, pa.Array] = {}
    for name in names:
        match name:
            case "base":
                values[name] = arrow_values.array(planned.bases[rows])
            case "path":
                values[name] = arrow_values.array([planned.paths[row] for row in rows], pa.string())
            case "first_row_id":
                values[name] = first
            case "spec_id":
                values[name] = files.column("spec_id")
            case "sequence":
                numbers = files.column("tracking.sequence_number").to_pylist()
                pairs = zip(numbers, first.to_pylist(), strict=True)
                known = [number if start is not None else None for number, start in pairs]
                values[name] = arrow_values.array(known, pa.int64())
    return values


def partitions(planned: Planned, rows: Rows, column: NestedField) -> pa.Array:
    """The partition of each file."""
    parts = getattr(column.field_type, "fields", ())
    values = [
        {
            part.name: None
            if task.source.partition.get(part.field_id) is None
            else pa.scalar(task.source.partition[part.field_id], arrow_type(part.field_type))
            for part in parts
        }
        for task in planned.tasks(rows)
    ]
    return pa.array(values, nested_arrow_type(column.field_type))
