"""Rows of data files, as the table's columns of today.

`read_file` reads one file or slice: columns by field id, row groups that cannot match skipped,
deleted rows dropped by position and by equality, metadata columns computed, the filter applied.
Which files to read, and which deletes apply to them, is decided in `frazil.scan`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_parquet as pq
from frazil import arrow_values
from frazil.data import metadata_columns
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
from frazil.data.read.equality import EqualityDeletes
from frazil.data.read.sources import Block, OpenDataFile, ParquetSource, explained, open_source
from frazil.data.reshape import record_batch
from frazil.data.schema import arrow_schema, identified_schema
from frazil.data.slices import DataFileSlice
from frazil.data.statistics.footer import footer_stats
from frazil.errors import FormatError
from frazil.filter.row_filter import columns_of, row_mask
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.metrics import FULL, MetricsConfig
from frazil.format.entries.stats import stats_types, tracked_fields
from frazil.iceberg.expressions import AlwaysTrue, And, BooleanExpression
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import IdentityTransform
from frazil.storage import Storage
from frazil.value_classes import dataclass, field

if TYPE_CHECKING:
    from frazil.iceberg.name_mapping import NameMapping


def surviving(
    blocks: list[Block],
    footer: pq.FileMetaData,
    row_filter: BooleanExpression,
    schema: Schema,
    mapping: NameMapping | None,
) -> list[Block]:
    """The row groups that may hold a matching row.

    A file of one row group is kept: the file's own statistics say the same, and were asked before.
    """
    if isinstance(row_filter, AlwaysTrue) or footer.num_row_groups < 2 or not blocks:
        return blocks
    needed = columns_of(row_filter)
    fields = [field for field in schema.fields if needed & _ids(field)]
    compared = Schema(*fields)
    config = MetricsConfig(default=FULL)
    entries = []
    for block in blocks:
        group: Any = _OneRowGroup(footer, block.index)
        stats = footer_stats(group, compared, config, name_mapping=mapping)
        entries.append({"content_type": 0, "record_count": block.rows, **stats})
    batch = EntryBatch.from_rows(entries, stats_types(tracked_fields(compared)))
    # Loaded here: workers that read without a filter need no pruner.
    from frazil.filter.prune.prune import PruneContext, might_match

    mask = might_match(row_filter, batch, PruneContext(schema=schema))
    return [block for block, keep in zip(blocks, mask, strict=True) if keep]


def _ids(field: Any) -> set[int]:
    below = getattr(field.field_type, "fields", ())
    return {field.field_id}.union(*(_ids(child) for child in below))


class _OneRowGroup:
    """A footer as if the file had only one of its row groups."""

    def __init__(self, footer: pq.FileMetaData, index: int) -> None:
        self._group = footer.row_group(index)
        self.schema = footer.schema
        self.num_columns = footer.num_columns
        self.num_rows = self._group.num_rows
        self.num_row_groups = 1

    def row_group(self, _: int) -> pq.RowGroupMetaData:
        """The one row group."""
        return self._group


Positions = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Widened:
    """The columns asked for, and those that a filter or equality deletes look at besides."""

    asked: Schema
    table: Schema
    schema: Schema
    arrow: pa.Schema
    computed: tuple[tuple[int, int], ...]
    """Columns whose values follow from positions and metadata: place and field id."""
    output: Projection | None
    """How they become those asked for; None if they are the same."""

    @staticmethod
    def of(asked: Schema, table: Schema, needed: Collection[int]) -> Widened:
        schema = covering(asked, table, needed)
        return Widened(
            asked=asked,
            table=table,
            schema=schema,
            arrow=arrow_schema(schema),
            computed=tuple(
                (at, column.field_id)
                for at, column in enumerate(schema.fields)
                if column.field_id in (POS.field_id, ROW_ID.field_id, LAST_UPDATED.field_id)
            ),
            output=None if schema is asked else projection(_memory_fields(schema), asked),
        )


class Shapes:
    """What files of one shape have in common for a reader: how their columns become those asked
    for. Planning that takes a small file longer than decoding it."""

    def __init__(self) -> None:
        self._widened: dict[frozenset[int], Widened] = {}
        self._known: dict[tuple[int, int], tuple[tuple[FileField, ...], Schema, Projection]] = {}

    def __reduce__(self) -> tuple[type[Shapes], tuple[()]]:
        return Shapes, ()

    def widened(self, asked: Schema, table: Schema, needed: frozenset[int]) -> Widened:
        """What is read of the table's columns for those asked for and those needed."""
        cached = self._widened.get(needed)
        if cached is None or cached.asked is not asked or cached.table is not table:
            cached = self._widened[needed] = Widened.of(asked, table, needed)
        return cached

    def projection(
        self, fields: tuple[FileField, ...], schema: Schema, constants: Mapping[int, Any]
    ) -> Projection:
        """`projection`, once for files with the same fields that need no constant of their own."""
        wanted_ids, stored = schema.field_ids, {column.field_id for column in fields}
        if any(
            field_id in wanted_ids and field_id not in stored and field_id not in _OF_EVERY_FILE
            for field_id in constants
        ):
            return projection(fields, schema, constants=constants)
        # The value holds the objects, so that no others can have their identity.
        key = id(fields), id(schema)
        cached = self._known.get(key)
        if cached is None or cached[0] is not fields or cached[1] is not schema:
            if len(self._known) >= _MAX_SHAPES:
                self._known.clear()
            planned = projection(fields, schema, constants=_OF_EVERY_FILE)
            cached = self._known[key] = fields, schema, planned
        return cached[2]


_OF_EVERY_FILE: Final = {POS.field_id: 0}
"""Values by field id that every file has, until others are computed."""
_MAX_SHAPES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What to read from every file of a scan.

    `schema` has the columns asked for, metadata columns among them (`columns.METADATA_COLUMNS`);
    `table_schema` has every column that filters and equality deletes may name. Rows are given if
    `row_filter` holds for them; row groups in which `pruned_by` cannot hold are left out.
    """

    storage: Storage
    schema: Schema
    table_schema: Schema
    row_filter: BooleanExpression = field(default_factory=AlwaysTrue)
    pruned_by: BooleanExpression = field(default_factory=AlwaysTrue)
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
        rows = _Rows(source, reading, equality)
        for first_row, raw in _raw_rows(source, reading, rows, positions):
            batch = rows.batch(raw, first_row, positions)
            if batch.num_rows:
                yield batch


def read_positions(
    source: DataFileSlice,
    reading: Reading,
    *,
    dropped: Positions | None = None,
    equality: Sequence[EqualityDeletes] = (),
) -> npt.NDArray[np.int64]:
    """The positions of the rows that `read_file` would give, ascending."""
    positions = _Positions(dropped=checked_positions(dropped, source), only=None)
    with explained(source.path):
        rows = _Rows(source, reading, equality)
        parts = [
            np.flatnonzero(rows.mask(rows.of(raw, first_row), first_row, positions)) + first_row
            for first_row, raw in _raw_rows(source, reading, rows, positions)
        ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _raw_rows(
    source: DataFileSlice, reading: Reading, rows: _Rows, positions: _Positions
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows of the blocks that may hold any that are asked for, each with its first one's number."""
    opened = _opened(source, reading, rows.read_schema)
    fields = file_fields(opened.schema, reading.name_mapping)
    leaves = needed_leaves(fields, rows.read_schema.fields)
    blocks = [block for block in opened.blocks if source.holds(block.offset)]
    blocks = [block for block in blocks if positions.any_left(block)]
    for footer, condition in _judges(opened, (reading.row_filter, reading.pruned_by)):
        schema, mapping = reading.table_schema, reading.name_mapping
        blocks = surviving(blocks, footer, condition, schema, mapping)
    for block in blocks:
        yield from _raw_batches(opened, block, leaves, reading.batch_rows)


def _judges(
    opened: OpenDataFile, conditions: Iterable[BooleanExpression]
) -> list[tuple[pq.FileMetaData, BooleanExpression]]:
    """Footers, and the conditions of those that all have to hold that each can judge: a file and
    its column files have footers of their own."""
    judged: dict[int, tuple[pq.FileMetaData, BooleanExpression]] = {}
    for condition in (part for joined in conditions for part in _conjuncts(joined)):
        footer = _footer(opened, columns_of(condition))
        if footer is not None:
            _, others = judged.get(id(footer), (footer, AlwaysTrue()))
            judged[id(footer)] = footer, And(others, condition)
    return list(judged.values())


def _conjuncts(condition: BooleanExpression) -> list[BooleanExpression]:
    if isinstance(condition, And):
        return [*_conjuncts(condition.left), *_conjuncts(condition.right)]
    return [] if isinstance(condition, AlwaysTrue) else [condition]


def _opened(source: DataFileSlice, reading: Reading, read_schema: Schema) -> OpenDataFile:
    if not source.column_files:
        return open_source(reading.storage, source, verify_checksums=reading.verify_checksums)
    from frazil.data.read.stitched import stitched

    return stitched(
        source,
        covering(read_schema, reading.table_schema, columns_of(reading.pruned_by)),
        storage=reading.storage,
        schema=reading.table_schema,
        spec=None if source.spec_id is None else reading.specs.get(source.spec_id),
        verify_checksums=reading.verify_checksums,
    )


def _footer(opened: OpenDataFile, needed: Collection[int]) -> pq.FileMetaData | None:
    """A footer whose statistics hold for all these columns of the rows."""
    if isinstance(opened, ParquetSource):
        return opened.footer
    footer_of = getattr(opened, "footer_of", None)
    return None if footer_of is None else footer_of(needed)


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
    numbers = positions.astype(np.int64, copy=False)
    if numbers[0] < 0 or numbers[-1] >= source.record_count:
        outside = numbers[0] if numbers[0] < 0 else numbers[-1]
        raise FormatError(
            f"deleted position {outside} is outside the file; it has {source.record_count} rows",
            path=source.path,
        )
    return numbers


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
        widened = reading.shapes.widened(reading.schema, reading.table_schema, needed)
        self.read_schema = widened.schema
        self._source = source
        self._reading = reading
        self._equality = [
            (deletes, [path_of(self.read_schema, field_id) for field_id in deletes.field_ids])
            for deletes in equality
        ]
        self._constants = _constants(source, reading)
        self._computed = widened.computed
        self._arrow = widened.arrow
        self._keeps_all = not equality and isinstance(reading.row_filter, AlwaysTrue)
        self._output = widened.output
        self._projection: Projection | None = None

    def batch(self, raw: pa.RecordBatch, first_row: int, positions: _Positions) -> pa.RecordBatch:
        """The rows of a raw batch that are left."""
        rows = self.of(raw, first_row)
        if self._keeps_all and positions.keeps_all:
            return rows if self._output is None else self._output.project(rows)
        mask = self.mask(rows, first_row, positions)
        if not mask.all():
            if not rows.num_columns:
                return record_batch([], pa.schema([]), int(np.count_nonzero(mask)))
            rows = pc.filter(rows, arrow_values.array(mask))
        return rows if self._output is None else self._output.project(rows)

    def of(self, raw: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """A raw batch as rows of the columns that are read."""
        return self._compute(self._project(raw), first_row)

    def mask(self, rows: pa.RecordBatch, first_row: int, positions: _Positions) -> Mask:
        """Which rows of a batch are left."""
        mask = positions.mask(first_row, rows.num_rows)
        if not isinstance(self._reading.row_filter, AlwaysTrue):
            mask &= arrow_values.to_numpy(row_mask(self._reading.row_filter, rows))
        for deletes, paths in self._equality:
            mask &= ~deletes.matches([column_at(rows, path) for path in paths])
        return mask

    def _project(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        if self._projection is None:
            # Of the batch, not of the file: columns that were not read change the places.
            mapping = self._reading.name_mapping
            fields = file_fields(raw.schema, mapping) if raw.num_columns else ()
            shapes = self._reading.shapes
            self._projection = shapes.projection(fields, self.read_schema, self._constants)
        return self._projection.project(raw)

    def _compute(self, rows: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        if not self._computed:
            return rows
        positions = np.arange(first_row, first_row + rows.num_rows, dtype=np.int64)
        columns = list(rows.columns)
        for at, field_id in self._computed:
            if field_id == POS.field_id:
                columns[at] = arrow_values.array(positions)
            elif field_id == ROW_ID.field_id:
                columns[at] = metadata_columns.row_ids(columns[at], positions, self._source)
            else:
                columns[at] = metadata_columns.last_updated(columns[at], self._source)
        return pa.RecordBatch.from_arrays(columns, schema=self._arrow)


def _constants(source: DataFileSlice, reading: Reading) -> dict[int, Any]:
    """Values by field id that hold for every row: metadata columns and identity partitions."""
    constants: dict[int, Any] = {
        FILE.field_id: source.path,
        SPEC_ID.field_id: source.spec_id,
        **_OF_EVERY_FILE,
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
