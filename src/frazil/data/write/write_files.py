"""Rows written to data files, and the entries that describe them.

`write_rows` takes a stream of batches and keeps memory bounded: rows are split by partition,
buffered to row groups (or to whole files, when the table has a sort order), written, and rolled at
the target size. A row group is encoded in the background while the rows of the next one arrive.
Entries are ADDED with every inherited value null; the commit fills those in. A write that fails
removes the files it made.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.data.metadata_columns import column_at, path_of
from frazil.data.schema import arrow_schema
from frazil.data.write.parquet_file import Background, FileShape, ParquetFile, WrittenFile
from frazil.data.write.partitioner import Partition, Partitioner
from frazil.data.write.write_options import WriteOptions
from frazil.filter.transforms import transform_array
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, partition_key, stats_key
from frazil.format.entries.metrics import MetricsConfig
from frazil.format.entries.stats import ROW_LINEAGE, TrackedField, stats_types, tracked_fields
from frazil.format.entries.tracking import Status
from frazil.format.paths import relativise
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.storage import Storage
from frazil.storage.base import delete_reporting
from frazil.value_classes import dataclass, field

if TYPE_CHECKING:
    from frazil.format.metadata.derived import DerivedColumn
    from frazil.iceberg.sorting import SortOrder


def sort_rows(batch: pa.RecordBatch, order: SortOrder, schema: Schema) -> pa.RecordBatch:
    """The rows of a batch in a sort order; rows that compare equal keep their places."""
    from frazil.iceberg.sorting import NullOrder, SortDirection

    columns: list[pa.Array] = []
    keys: list[tuple[str, str]] = []

    def add(values: pa.Array, direction: str) -> None:
        columns.append(values)
        keys.append((str(len(keys)), direction))

    for key in order.fields:
        kind = schema.find_field(key.source_id).field_type
        source = column_at(batch, path_of(schema, key.source_id))
        values = transform_array(key.transform, source, kind)
        direction = "ascending" if key.direction == SortDirection.ASC else "descending"
        if values.null_count:  # True comes after False
            first = key.null_order == NullOrder.NULLS_FIRST
            add(pc.is_null(values), "descending" if first else "ascending")
        if pa.types.is_floating(values.type):
            add(pc.is_nan(values), direction)
        add(values, direction)
    if not keys or batch.num_rows < 2:
        return batch
    table = pa.table(columns, names=[name for name, _ in keys])
    return pc.take(batch, pc.sort_indices(table, options=pc.SortOptions(sort_keys=keys)))


_MAX_SORT_BYTES = 1 << 30  # Arrow arrays of text end at 2 GiB


def write_rows(
    batches: Iterable[pa.RecordBatch],
    *,
    storage: Storage,
    location: str,
    schema: Schema,
    spec: PartitionSpec,
    write_id: uuid.UUID,
    sort_order: SortOrder | None = None,
    derived: Sequence[DerivedColumn] = (),
    properties: Mapping[str, str] | None = None,
    options: WriteOptions | None = None,
    content: ContentType = ContentType.DATA,
    equality_ids: Sequence[int] | None = None,
    written: list[str] | None = None,
) -> EntryBatch:
    """Write batches that conform to `schema` (see `rows.conformed`) and describe the files.

    `written` is given every path as soon as its file exists, for a caller that has to clean up
    later. When the write itself fails, its files are removed and taken off the list.
    To store row lineage, pass a schema with `columns.LINEAGE` and rows that have both columns.
    """
    target = WriteTarget(
        storage=storage,
        location=location,
        schema=schema,
        spec=spec,
        write_id=write_id,
        sort_order=sort_order,
        derived=tuple(derived),
        metrics=metrics_of(properties or {}, schema, spec, sort_order),
        options=options or WriteOptions.from_properties(properties or {}),
        content=content,
        equality_ids=None if equality_ids is None else tuple(equality_ids),
    )
    writer = RowWriter(target, written=written)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


def metrics_of(
    properties: Mapping[str, str],
    schema: Schema,
    spec: PartitionSpec,
    sort_order: SortOrder | None,
) -> MetricsConfig:
    """Which statistics the table's properties ask for."""
    identity = [part.source_id for part in spec.fields if str(part.transform) == "identity"]
    return MetricsConfig.from_properties(
        properties, schema, sort_order=sort_order, identity_ids=identity
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTarget:
    """Where rows go and in which form."""

    storage: Storage
    location: str
    schema: Schema
    spec: PartitionSpec
    write_id: uuid.UUID
    sort_order: SortOrder | None
    derived: tuple[DerivedColumn, ...]
    metrics: MetricsConfig
    options: WriteOptions
    content: ContentType
    equality_ids: tuple[int, ...] | None

    @property
    def is_sorted(self) -> bool:
        """Whether files hold rows in a sort order."""
        return self.sort_order is not None and bool(self.sort_order.fields)

    def path(self, partition: Partition, number: int) -> str:
        """Address of the write's nth file."""
        folder = self.options.data_path or f"{self.location.rstrip('/')}/data"
        middle = f"{partition.path}/" if partition.path else ""
        return f"{folder.rstrip('/')}/{middle}{self.write_id}-{number}.parquet"


@dataclass(slots=True, eq=False)
class _Buffer:
    """Rows of one partition on their way into files."""

    partition: Partition
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    file: ParquetFile | None = None

    def add(self, batch: pa.RecordBatch) -> int:
        size = int(batch.nbytes)
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += size
        return size

    def take(self, schema: pa.Schema) -> pa.Table:
        table = pa.Table.from_batches(self.batches, schema)
        self.batches, self.rows, self.bytes = [], 0, 0
        return table


class RowWriter:
    """Writes batches as they come; ends in `close` or `abort`."""

    def __init__(self, target: WriteTarget, *, written: list[str] | None = None) -> None:
        self._target = target
        self._shape = FileShape(target.schema, target.options, target.metrics, target.derived)
        self._arrow = arrow_schema(target.schema)
        self._partitioner = Partitioner(target.spec, target.schema)
        self._buffers: dict[Partition, _Buffer] = {}
        self._held_bytes = 0
        self._ratio = 1.0  # bytes in a file per byte in memory, as seen last
        self._background = Background()
        self._paths: list[str] = []
        self._written = written if written is not None else []
        self._entries: list[dict[str, Any]] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Take in rows of the target's schema."""
        if batch.num_rows == 0:
            return
        for partition, rows in self._partitioner.split(batch):
            buffer = self._buffers.get(partition)
            if buffer is None:
                buffer = self._buffers[partition] = _Buffer(partition)
            self._held_bytes += buffer.add(rows)
            if self._is_full(buffer):
                self._flush_in_background(buffer)
        while self._held_bytes > self._target.options.buffer_bytes:
            self._flush_in_background(max(self._buffers.values(), key=lambda buffer: buffer.bytes))

    def close(self) -> EntryBatch:
        """Write what is left and describe every file."""
        self._background.close()
        for buffer in self._buffers.values():
            if buffer.rows:
                self._flush(buffer, self._taken(buffer))
            if buffer.file is not None:
                self._close(buffer)
        return EntryBatch.from_rows(self._entries, self._types())

    def abort(self) -> None:
        """Remove every file of this write; what cannot be removed stays listed in `written`."""
        with suppress(Exception):  # the write has failed already
            self._background.close()
        for buffer in self._buffers.values():
            if buffer.file is not None:
                buffer.file.abort()
                buffer.file = None
        left = delete_reporting(self._target.storage, self._paths)
        for path in self._paths:
            if path not in left:
                self._written.remove(path)
        self._paths = []

    def _is_full(self, buffer: _Buffer) -> bool:
        options = self._target.options
        if self._target.is_sorted:
            self._background.wait()  # it measures the ratio
            expected = buffer.bytes * self._ratio
            return expected >= options.target_file_bytes or buffer.bytes >= _MAX_SORT_BYTES
        return buffer.bytes >= self._group_bytes() or buffer.rows >= options.row_group_rows

    def _group_bytes(self) -> int:
        options = self._target.options
        return min(options.row_group_bytes, options.target_file_bytes)

    def _flush_in_background(self, buffer: _Buffer) -> None:
        rows = self._taken(buffer)
        self._background.run(lambda: self._flush(buffer, rows))

    def _taken(self, buffer: _Buffer) -> pa.Table:
        self._held_bytes -= buffer.bytes
        return buffer.take(self._arrow)

    def _flush(self, buffer: _Buffer, rows: pa.Table) -> None:
        size = max(rows.nbytes, 1)
        if self._target.is_sorted:
            rows = self._sorted(rows)
        by_bytes = self._group_bytes() * rows.num_rows // size
        most = max(1, min(self._target.options.row_group_rows, by_bytes))
        groups = max(1, -(-rows.num_rows // most))
        step = -(-rows.num_rows // groups)  # equal ones: a rest of a few rows costs readers as much
        for start in range(0, rows.num_rows, step):
            self._write_group(buffer, rows.slice(start, step))
        if self._target.is_sorted and buffer.file is not None:
            self._close(buffer)  # what comes later is not in order with it

    def _sorted(self, rows: pa.Table) -> pa.Table:
        order = self._target.sort_order
        if order is None:
            return rows
        (batch,) = rows.combine_chunks().to_batches()
        return pa.Table.from_batches([sort_rows(batch, order, self._target.schema)], self._arrow)

    def _write_group(self, buffer: _Buffer, rows: pa.Table) -> None:
        if buffer.file is None:
            buffer.file = self._open(buffer.partition)
        before = buffer.file.size_in_bytes
        buffer.file.write_row_group(rows)
        grown = buffer.file.size_in_bytes - before
        self._ratio = min(1.0, max(0.01, grown / max(rows.nbytes, 1)))
        if buffer.file.size_in_bytes >= self._target.options.target_file_bytes:
            self._close(buffer)

    def _open(self, partition: Partition) -> ParquetFile:
        opened = [buffer for buffer in list(self._buffers.values()) if buffer.file is not None]
        if len(opened) >= self._target.options.max_open_files:
            self._close(max(opened, key=_file_bytes))
        path = self._target.path(partition, len(self._paths))
        self._paths.append(path)
        self._written.append(path)
        return ParquetFile(self._target.storage, path, self._shape)

    def _close(self, buffer: _Buffer) -> None:
        if buffer.file is not None:
            written = buffer.file.close()
            buffer.file = None
            self._entries.append(self._entry(written, buffer.partition))

    def _entry(self, written: WrittenFile, partition: Partition) -> dict[str, Any]:
        target = self._target
        row: dict[str, Any] = {
            "tracking.status": int(Status.ADDED),
            "content_type": int(target.content),
            "location": relativise(target.location, written.path),
            "file_format": "parquet",
            "record_count": written.record_count,
            "file_size_in_bytes": written.size_in_bytes,
            "spec_id": target.spec.spec_id if target.spec.fields else None,
            "split_offsets": list(written.split_offsets),
        }
        if target.is_sorted and target.sort_order is not None:
            row["sort_order_id"] = target.sort_order.order_id
        if target.equality_ids is not None:
            row["equality_ids"] = list(target.equality_ids)
        for field_id, value in partition.values.items():
            row[partition_key(field_id)] = value
        row.update(written.stats)
        row.update(derived_stats(target.derived, partition.values, written.record_count))
        return row

    def _types(self) -> dict[str, pa.DataType]:
        target = self._target
        types = {partition_key(at): kind for at, kind in self._partitioner.types.items()}
        types |= stats_types((*tracked_fields(target.schema), *ROW_LINEAGE))
        return types | stats_types(_derived_fields(target.derived, target.schema))


def _file_bytes(buffer: _Buffer) -> int:
    return 0 if buffer.file is None else buffer.file.size_in_bytes


def _derived_fields(derived: Iterable[DerivedColumn], schema: Schema) -> Iterable[TrackedField]:
    for column in derived:
        if not schema.field_ids.issuperset(column.source_ids):
            continue  # its source was dropped, and no spec in use has it
        sources = [schema.find_field(source_id) for source_id in column.source_ids]
        kind = column.transform.result_type(sources[0].field_type)
        yield TrackedField(id=column.expr_id, full_name=column.name, type=kind)


def derived_stats(
    derived: Iterable[DerivedColumn], partition: Mapping[int, Any], record_count: int
) -> dict[str, Any]:
    """Statistics of derived columns for a file of one partition: its value in every row."""
    row: dict[str, Any] = {}
    for column in derived:
        field_id = column.partition_field_id
        if field_id is None or field_id not in partition:
            continue
        value = partition[field_id]
        row[stats_key(column.expr_id, "value_count")] = record_count
        row[stats_key(column.expr_id, "null_value_count")] = (
            0 if value is not None else record_count
        )
        if value is not None:
            row[stats_key(column.expr_id, "lower_bound")] = value
            row[stats_key(column.expr_id, "upper_bound")] = value
            row[stats_key(column.expr_id, "tight_bounds")] = True
    return row
