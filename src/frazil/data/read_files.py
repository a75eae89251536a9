"""Rows of data files, as the table's columns of today.

`read_file` reads one file or slice: columns by field id, row groups that cannot match skipped,
deleted rows dropped by position and by equality, metadata columns computed, the filter applied.
Which files to read, and which deletes apply to them, is decided in `frazil.scan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform

from frazil.data import lineage
from frazil.data.equality import EqualityDeletes
from frazil.data.metadata_columns import (
    FILE,
    LAST_UPDATED,
    PARTITION_ID,
    POS,
    ROW_ID,
    SPEC_ID,
    column_at,
    covering,
    path_of,
)
from frazil.data.projection import FileField, Projection, file_fields, needed_leaves, projection
from frazil.data.reshape import record_batch
from frazil.data.schema import arrow_schema, identified_schema
from frazil.data.slices import DataFileSlice
from frazil.data.sources import Block, OpenDataFile, ParquetSource, explained, open_source
from frazil.errors import FormatError, InvalidInput
from frazil.expr.row_filter import columns_of, row_mask
from frazil.storage import Storage

if TYPE_CHECKING:
    from pyiceberg.table.name_mapping import NameMapping

NAME_MAPPING = "schema.name-mapping.default"
VERIFY_CHECKSUMS = "read.parquet.verify-checksums"

Positions = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]


def name_mapping_of(properties: Mapping[str, str]) -> NameMapping | None:
    """The table's mapping of column names to field ids, for files that have no ids."""
    text = properties.get(NAME_MAPPING)
    if text is None:
        return None
    from pyiceberg.table.name_mapping import parse_mapping_from_json

    try:
        return parse_mapping_from_json(text)
    except ValueError as error:
        raise InvalidInput(f"{NAME_MAPPING} is not a name mapping: {error}") from error


def verifies_checksums(properties: Mapping[str, str]) -> bool:
    """Whether checksums of data files are verified when they are read; yes unless switched off."""
    text = properties.get(VERIFY_CHECKSUMS, "true").lower()
    if text not in ("true", "false"):
        raise InvalidInput(f"{VERIFY_CHECKSUMS} is {text!r}; expected true or false")
    return text == "true"


class Shapes:
    """What files of one shape have in common for a reader: how their columns become those asked
    for. Planning that takes a small file longer than decoding it."""

    def __init__(self) -> None:
        self._arrow: tuple[Schema, pa.Schema] | None = None
        self._known: dict[int, tuple[tuple[FileField, ...], Schema, Projection]] = {}

    def __reduce__(self) -> tuple[type[Shapes], tuple[()]]:
        return Shapes, ()

    def arrow(self, wanted: Schema) -> pa.Schema:
        """`arrow_schema` of the columns asked for."""
        known = self._arrow
        if known is None or known[0] is not wanted:
            known = self._arrow = wanted, arrow_schema(wanted)
        return known[1]

    def projection(
        self, fields: tuple[FileField, ...], wanted: Schema, constants: Mapping[int, Any]
    ) -> Projection:
        """`projection`, once for files with the same fields that need no constant of their own."""
        asked, stored = wanted.field_ids, {each.field_id for each in fields}
        if any(known in asked and known not in stored for known in constants):
            return projection(fields, wanted, constants=constants)
        # The value holds the objects, so that no other can have their identity.
        found = self._known.get(id(fields))
        if found is None or found[0] is not fields or found[1] is not wanted:
            if len(self._known) >= _MAX_SHAPES:
                self._known.clear()
            found = self._known[id(fields)] = fields, wanted, projection(fields, wanted)
        return found[2]


_MAX_SHAPES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What to read from every file of a scan.

    `schema` has the columns asked for, metadata columns among them (`columns.METADATA_COLUMNS`);
    `table_schema` has every column that filters and equality deletes may name.
    """

    storage: Storage
    schema: Schema
    table_schema: Schema
    row_filter: BooleanExpression = field(default_factory=AlwaysTrue)
    specs: Mapping[int, PartitionSpec] = field(default_factory=dict)
    name_mapping: NameMapping | None = None
    batch_rows: int = 1 << 17
    verify_checksums: bool = True
    shapes: Shapes = field(default_factory=lambda: Shapes(), compare=False, repr=False)


def read_file(
    source: DataFileSlice,
    reading: Reading,
    *,
    dropped: Positions | None = None,
    only: Positions | None = None,
    equality: Sequence[EqualityDeletes] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice that are left, in file order, in batches of `reading.schema`.

    `dropped` are positions in the file that are deleted, `only` the positions to be read when not
    all are; both ascending. Errors name the file.
    """
    positions = _Positions(
        dropped=checked_positions(dropped, source),
        only=None if only is None else checked_positions(only, source),
    )
    with explained(source.path):
        opened = open_source(reading.storage, source, verify_checksums=reading.verify_checksums)
        fields = file_fields(opened.schema, reading.name_mapping)
        rows = _Rows(source, reading, equality)
        leaves = needed_leaves(fields, rows.wanted.fields)
        blocks = [block for block in opened.blocks if source.holds(block.offset)]
        blocks = [block for block in blocks if positions.any_left(block)]
        if isinstance(opened, ParquetSource) and not isinstance(reading.row_filter, AlwaysTrue):
            from frazil.data.row_groups import surviving

            blocks = surviving(
                blocks, opened.footer, reading.row_filter, rows.wanted, reading.name_mapping
            )
        for block in blocks:
            for first_row, raw in _raw_batches(opened, block, leaves, reading.batch_rows):
                batch = rows.batch(raw, first_row, positions)
                if batch.num_rows:
                    yield batch


def _raw_batches(
    opened: OpenDataFile, block: Block, leaves: list[int], batch_rows: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    first_row = block.first_row
    if not leaves:
        for start in range(0, block.rows, batch_rows):
            count = min(batch_rows, block.rows - start)
            yield first_row + start, record_batch([], pa.schema([]), count)
        return
    for batch in opened.batches(block, leaves, batch_rows):
        yield first_row, batch
        first_row += batch.num_rows
    if first_row != block.first_row + block.rows:
        raise FormatError(
            f"a row group has {first_row - block.first_row} rows; the footer says {block.rows}"
        )


def checked_positions(positions: Positions | None, source: DataFileSlice) -> npt.NDArray[np.int64]:
    """Ascending positions, which must lie in the file."""
    if positions is None or not len(positions):
        return np.zeros(0, dtype=np.int64)
    found = positions.astype(np.int64, copy=False)
    if found[0] < 0 or found[-1] >= source.record_count:
        raise FormatError(
            f"deleted position {found[0] if found[0] < 0 else found[-1]} is outside the file; it "
            f"has {source.record_count} rows",
            path=source.path,
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Positions:
    """Which positions of the file are read."""

    dropped: npt.NDArray[np.int64]
    only: npt.NDArray[np.int64] | None

    @property
    def keeps_all(self) -> bool:
        return self.only is None and not len(self.dropped)

    def any_left(self, block: Block) -> bool:
        if self.only is not None and not len(_within(self.only, block.first_row, block.rows)):
            return False
        return block.rows > len(_within(self.dropped, block.first_row, block.rows))

    def mask(self, first_row: int, rows: int) -> Mask:
        if self.only is None:
            mask = np.ones(rows, dtype=np.bool_)
        else:
            mask = np.zeros(rows, dtype=np.bool_)
            mask[_within(self.only, first_row, rows) - first_row] = True
        mask[_within(self.dropped, first_row, rows) - first_row] = False
        return mask


def _within(positions: npt.NDArray[np.int64], first_row: int, rows: int) -> npt.NDArray[np.int64]:
    start, end = np.searchsorted(positions, [first_row, first_row + rows])
    return positions[start:end]


class _Rows:
    """Raw batches of one file turned into rows of the schema asked for."""

    def __init__(
        self, source: DataFileSlice, reading: Reading, equality: Sequence[EqualityDeletes]
    ) -> None:
        compared = {field_id for deletes in equality for field_id in deletes.field_ids}
        needed = columns_of(reading.row_filter) | compared
        self.wanted = covering(reading.schema, reading.table_schema, needed)
        self._source = source
        self._reading = reading
        self._equality = [
            (deletes, [path_of(self.wanted, field_id) for field_id in deletes.field_ids])
            for deletes in equality
        ]
        self._constants = _constants(source, reading)
        self._computed = [
            (at, column.field_id)
            for at, column in enumerate(self.wanted.fields)
            if column.field_id in (POS.field_id, ROW_ID.field_id, LAST_UPDATED.field_id)
        ]
        self._arrow = reading.shapes.arrow(self.wanted)
        self._keeps_all = not equality and isinstance(reading.row_filter, AlwaysTrue)
        self._output: Projection | None = None
        if self.wanted is not reading.schema:
            self._output = projection(_memory_fields(self.wanted), reading.schema)
        self._projection: Projection | None = None

    def batch(self, raw: pa.RecordBatch, first_row: int, positions: _Positions) -> pa.RecordBatch:
        """The rows of a raw batch that are left."""
        rows = self._compute(self._project(raw), first_row)
        if self._keeps_all and positions.keeps_all:
            return rows if self._output is None else self._output.project(rows)
        mask = positions.mask(first_row, raw.num_rows)
        if not isinstance(self._reading.row_filter, AlwaysTrue):
            mask &= np.asarray(row_mask(self._reading.row_filter, rows))
        for deletes, paths in self._equality:
            mask &= ~deletes.matches([column_at(rows, path) for path in paths])
        if not mask.all():
            if not rows.num_columns:
                return record_batch([], pa.schema([]), int(np.count_nonzero(mask)))
            rows = rows.filter(pa.array(mask))
        return rows if self._output is None else self._output.project(rows)

    def _project(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        if self._projection is None:
            # Of the batch, not of the file: columns that were not read change the places.
            mapping = self._reading.name_mapping
            fields = file_fields(raw.schema, mapping) if raw.num_columns else ()
            shapes = self._reading.shapes
            self._projection = shapes.projection(fields, self.wanted, self._constants)
        return self._projection.project(raw)

    def _compute(self, rows: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        if not self._computed:
            return rows
        positions = np.arange(first_row, first_row + rows.num_rows, dtype=np.int64)
        columns = list(rows.columns)
        for at, field_id in self._computed:
            if field_id == POS.field_id:
                columns[at] = pa.array(positions)
            elif field_id == ROW_ID.field_id:
                columns[at] = lineage.row_ids(columns[at], positions, self._source)
            else:
                columns[at] = lineage.last_updated(columns[at], self._source)
        return pa.RecordBatch.from_arrays(columns, schema=self._arrow)


def _constants(source: DataFileSlice, reading: Reading) -> dict[int, Any]:
    """Values by field id that hold for every row: metadata columns and identity partitions."""
    constants: dict[int, Any] = {
        FILE.field_id: source.path,
        POS.field_id: 0,
        SPEC_ID.field_id: source.spec_id,
    }
    spec = reading.specs.get(source.spec_id) if source.spec_id is not None else None
    for part in spec.fields if spec is not None else ():
        if isinstance(part.transform, IdentityTransform) and part.field_id in source.partition:
            constants[part.source_id] = source.partition[part.field_id]
    for column in reading.schema.fields:
        if column.field_id == PARTITION_ID:
            constants[PARTITION_ID] = {
                part.name: source.partition.get(part.field_id)
                for part in getattr(column.field_type, "fields", ())
            }
    return constants


def _memory_fields(schema: Schema) -> tuple[FileField, ...]:
    """The fields of rows in memory, as those of a file."""
    return file_fields(identified_schema(schema)) if schema.fields else ()
