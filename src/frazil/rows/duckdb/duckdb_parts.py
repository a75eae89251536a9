"""Which files have the columns of data files with column files, for DuckDB to read them itself.

A query that needs columns of one of these files reads that file and no other. Columns of several
are joined by the number of the row: that takes little where many columns are read, or few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from frazil.data.slices import DataFileSlice
from frazil.errors import FormatError
from frazil.format.entries.column_files import have_column_files
from frazil.format.entries.fields import COLUMN_FILES
from frazil.iceberg.types import NestedField
from frazil.rows.duckdb.duckdb_group import Names, NamesById, column_names
from frazil.rows.duckdb.duckdb_types import usable_names
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from frazil.rows.planned import Planned
    from frazil.scan.tasks import Task
    from frazil.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A file that has some of the columns that are read of a data file: itself or a column file."""

    source: DataFileSlice
    columns: tuple[NestedField, ...]
    is_base: bool = False
    is_own: bool = False
    """Whether it surely names columns as a schema of the table does."""

    @property
    def ids(self) -> tuple[int, ...]:
        """Those of its columns."""
        return tuple(column.field_id for column in self.columns)

    def names_by_id(self, storage: Storage) -> NamesById:
        """What the file calls its columns. Looks at the footer, which also tells whether the file
        has its columns and as many rows as recorded."""
        by_id = column_names(storage, self.source)
        if not self.is_base:
            missing = [id for id in self.ids if id not in by_id]
            if missing:
                raise FormatError(
                    f"the column file has no field {missing[0]}; the entry says it has",
                    path=self.source.path,
                    field=COLUMN_FILES,
                )
        return by_id

    def names(self, storage: Storage) -> Names | None:
        """The same of the columns that are read; None if DuckDB cannot tell them apart."""
        by_id = self.names_by_id(storage)
        return usable_names([by_id.get(id) for id in self.ids], by_id.values())


MAX_FOOTERS: Final = 4_096
"""Files whose footers are looked at for a plan; the rows of more are stitched."""

MAX_JOINED_BYTES: Final = 128 << 20
"""Of column files; larger ones are stitched, which takes little memory."""

NamedParts = dict[int, tuple[tuple[FilePart, Names], ...]]
"""Files and what they call their columns, the data file first, by the row of a plan."""


def named_parts(
    planned: Planned,
    columns: Sequence[NestedField],
    *,
    base_names: Callable[[tuple[NestedField, ...]], Names | None],
    joins: bool,
) -> NamedParts:
    """The files that have these columns, for files with column files that DuckDB can read. Where
    the columns are in several files, they are left out unless these may be joined. `base_names` may
    know names in the table's own data files; other names are asked of footers, if they are not too
    many."""
    found = parts_by_row(planned, columns)
    if not joins or _joined_bytes(found) > MAX_JOINED_BYTES:
        found = {row: parts for row, parts in found.items() if len(parts) == 1}
    every = [(row, part) for row, parts in found.items() for part in parts]
    if len(every) > MAX_FOOTERS:
        return {}
    handle = planned.scan._handle

    def names_of(part: FilePart) -> Names | None:
        known = base_names(part.columns) if part.is_own else None
        return part.names(handle.storage) if known is None else known

    named: NamedParts = dict.fromkeys(found, ())
    for (row, part), names in zip(
        every, handle.reader().map([part for _, part in every], names_of), strict=True
    ):
        if names is not None:
            named[row] += ((part, names),)
    return {row: parts for row, parts in named.items() if len(parts) == len(found[row])}


def _joined_bytes(found: Mapping[int, tuple[FilePart, ...]]) -> int:
    """What a join holds in memory, about: the column files."""
    joined = chain.from_iterable(parts for parts in found.values() if len(parts) > 1)
    return sum(part.source.file_size_in_bytes for part in joined if not part.is_base)


def parts_by_row(
    planned: Planned, columns: Sequence[NestedField], *, needs_base: bool = False
) -> dict[int, tuple[FilePart, ...]]:
    """The files that have these columns, for files with column files; the data file first, if it
    has any or is needed. Column files that may not be are left to Frazil's reader, which says
    why."""
    stored = planned.plan.files
    rows = np.flatnonzero(have_column_files(stored))
    if not len(rows):
        return {}
    refused = frozenset(_refused_ids(planned))
    found = {}
    for row, task in zip(rows.tolist(), planned.tasks(rows), strict=True):
        elsewhere = set(chain.from_iterable(file.field_ids for file in task.source.column_files))
        if not elsewhere & refused:
            is_own = bool(planned.has_own_names[row])
            found[row] = tuple(
                _parts(task, columns, elsewhere, is_own=is_own, needs_base=needs_base)
            )
    return found


def _refused_ids(planned: Planned) -> Iterator[int]:
    """Parts of columns, and columns that rows are or were partitioned by."""
    schema = planned.scan.table_schema
    yield from schema.field_ids - {column.field_id for column in schema.fields}
    for spec in planned.scan._handle.metadata.partition_specs:
        yield from (part.source_id for part in spec.fields)


def _parts(
    task: Task,
    columns: Sequence[NestedField],
    elsewhere: set[int],
    *,
    is_own: bool,
    needs_base: bool,
) -> Iterator[FilePart]:
    own = tuple(column for column in columns if column.field_id not in elsewhere)
    if own or needs_base:
        yield FilePart(source=task.source, columns=own, is_base=True, is_own=is_own)
    for file in task.source.column_files:
        its = tuple(column for column in columns if column.field_id in file.field_ids)
        if its:
            source = DataFileSlice(
                path=file.location,
                file_format=file.file_format,
                record_count=task.source.record_count,
                file_size_in_bytes=file.file_size_in_bytes,
            )
            yield FilePart(source=source, columns=its)


__all__ = [
    "MAX_FOOTERS",
    "MAX_JOINED_BYTES",
    "FilePart",
    "NamedParts",
    "named_parts",
    "parts_by_row",
]
