"""Entries of a tree as tables for people: columns of PyIceberg's names, partitions and metrics
as structs.

Everything is built from the flat columns of an `EntryBatch`, column by column: no Python object
per file, however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.filter.text.filter_display import human
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch, single_chunk
from frazil.format.entries.fields import ContentType, partition_key, split_stats_key, stats_key
from frazil.format.entries.stats import (
    StatsColumn,
    TrackedField,
    has_bounds,
    stats_columns,
    tracked_fields,
)
from frazil.format.metadata.metadata import TableMetadata
from frazil.format.values import single_value
from frazil.format.values.types import arrow_type, is_floating, is_geo, promote
from frazil.format.vectors import bitmap
from frazil.iceberg.schema import Schema
from frazil.tree.read import LEAF, POSITION
from frazil.tree.table_shape import shape_of
from frazil.value_classes import frozen

_VERBS: Final = ("added", "existing", "deleted", "replaced", "modified")
_LONG, _INT, _SMALL = pa.int64(), pa.int32(), pa.int8()
_MILLIS: Final = pa.timestamp("ms")

PARTITION_KEYS: Final = (
    "content_type",
    "record_count",
    "file_size_in_bytes",
    "spec_id",
    "file_format",
    "deletion_vector.offset",
    "deletion_vector.cardinality",
    "tracking.status",
    "tracking.snapshot_id",
    "tracking.modified_snapshot_id",
)
"""The columns that a summary of partitions needs, in addition to the partition values."""


@frozen(eq=False)
class ShownEntries:
    """How the entries of one table are shown: its location, partition fields and columns."""

    location: str
    metadata: TableMetadata
    schema: Schema

    # Files

    def files(self, batch: EntryBatch) -> pa.Table:
        """One row per file."""
        columns = self._file(batch)
        columns["readable_metrics"] = self.metrics(batch)
        columns |= {
            "status": _flat(batch, "tracking.status").cast(_SMALL),
            "snapshot_id": _flat(batch, "tracking.snapshot_id"),
            "sequence_number": _flat(batch, "tracking.sequence_number"),
            "file_sequence_number": _flat(batch, "tracking.file_sequence_number"),
            "manifest": self._path(batch, LEAF),
        }
        return pa.table(columns)

    def entries(self, batch: EntryBatch, live: np.ndarray[Any, Any]) -> pa.Table:
        """One row per entry, with the file it is about as a struct."""
        file = self._file(batch)
        return pa.table(
            {
                "status": _flat(batch, "tracking.status").cast(_SMALL),
                "snapshot_id": _flat(batch, "tracking.snapshot_id"),
                "sequence_number": _flat(batch, "tracking.sequence_number"),
                "file_sequence_number": _flat(batch, "tracking.file_sequence_number"),
                "data_file": _struct(file, batch.num_rows),
                "readable_metrics": self.metrics(batch),
                "is_live": pa.array(live, pa.bool_()),
                "manifest": self._path(batch, LEAF),
                "position": _flat(batch, POSITION, _LONG),
            }
        )

    def _file(self, batch: EntryBatch) -> dict[str, pa.Array]:
        has_vector = _flat(batch, "deletion_vector.offset").is_valid()
        vector = {
            "location": self._path(batch, "deletion_vector.location"),
            "offset": _flat(batch, "deletion_vector.offset"),
            "size_in_bytes": _flat(batch, "deletion_vector.size_in_bytes"),
            "cardinality": _flat(batch, "deletion_vector.cardinality"),
            "snapshot_id": _flat(batch, "tracking.modified_snapshot_id"),
        }
        return {
            "content": _flat(batch, "content_type").cast(_SMALL),
            "file_path": self._path(batch, "location"),
            "file_format": pc.utf8_upper(_flat(batch, "file_format")),
            "spec_id": self._spec_ids(batch),
            "partition": self.partition(batch),
            "record_count": _flat(batch, "record_count"),
            "file_size_in_bytes": _flat(batch, "file_size_in_bytes"),
            **statistics_maps(batch, tracked_fields(self.schema)),
            "key_metadata": _flat(batch, "key_metadata"),
            "split_offsets": _flat(batch, "split_offsets"),
            "equality_ids": _flat(batch, "equality_ids"),
            "sort_order_id": _flat(batch, "sort_order_id"),
            "first_row_id": _flat(batch, "tracking.first_row_id"),
            "referenced_data_file": self._path(batch, "referenced_file"),
            "deletion_vector": _struct(vector, batch.num_rows, valid=has_vector),
        }

    def _spec_ids(self, batch: EntryBatch) -> pa.Array:
        """The spec of each file; none is stored where a file is in no partition."""
        spec_ids = _flat(batch, "spec_id")
        unpartitioned = [s.spec_id for s in self.metadata.partition_specs if not s.fields]
        return (
            pc.fill_null(spec_ids, pa.scalar(unpartitioned[0], spec_ids.type))
            if unpartitioned
            else spec_ids
        )

    def _path(self, batch: EntryBatch, key: str) -> pa.Array:
        column = batch.column(key)
        if column.null_count == len(column):
            return pa.nulls(batch.num_rows, pa.string())
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        return single_chunk(paths.resolve_all(self.location, column))

    # Partitions and metrics

    def partition_keys(self) -> dict[str, str]:
        """Name to key of every partition field of every spec; a name used twice gets its id."""
        keys: dict[str, str] = {}
        for spec in self.metadata.partition_specs:
            for part in spec.fields:
                key = partition_key(part.field_id)
                if key in keys.values():
                    continue
                is_taken = part.name in keys
                keys[f"{part.name}_{part.field_id}" if is_taken else part.name] = key
        return keys

    def partition(self, batch: EntryBatch) -> pa.Array:
        """The partition values of all specs as a struct."""
        types = shape_of(self.metadata).partition_types
        columns: dict[str, pa.Array] = {}
        for name, key in self.partition_keys().items():
            kind = types.get(int(key.rpartition(".")[2]))
            values = _flat(batch, key, pa.null() if kind is None else arrow_type(kind))
            columns[name] = values if kind is None else promote(values, kind)
        return _struct(columns, batch.num_rows)

    def metrics(self, batch: EntryBatch) -> pa.Array:
        """The statistics of every column of the schema, typed."""
        nulls: dict[pa.DataType, pa.Array] = {}
        columns: dict[str, pa.Array] = {}
        for field in tracked_fields(self.schema):
            parts = {
                split_stats_key(column.key)[1]: _stat(batch, column, field.type, nulls)
                for column in stats_columns(field)
            }
            columns[field.full_name] = _struct(parts, batch.num_rows)
        return _struct(columns, batch.num_rows)

    # Manifests

    def manifests(self, batch: EntryBatch) -> pa.Table:
        """One row per leaf that a root names."""
        is_data = pc.equal(_flat(batch, "content_type"), int(ContentType.DATA_MANIFEST))
        columns = {
            "content": pc.if_else(is_data, pa.scalar(0, _SMALL), pa.scalar(1, _SMALL)),
            "path": self._path(batch, "location"),
            "length": _flat(batch, "file_size_in_bytes"),
            "partition_spec_id": self._leaf_specs(batch),
            "added_snapshot_id": _flat(batch, "tracking.snapshot_id"),
        }
        zero = pa.scalar(0, _INT)
        files = {
            verb: pc.fill_null(_flat(batch, f"manifest_info.{verb}_files_count"), zero)
            for verb in _VERBS
        }
        for kind, of_kind in (("data", is_data), ("delete", pc.invert(is_data))):
            for verb in _VERBS:
                columns[f"{verb}_{kind}_files_count"] = pc.if_else(of_kind, files[verb], zero)
        columns["partition_summaries"] = self._summaries(batch)
        for verb in _VERBS:
            columns[f"{verb}_files_count"] = files[verb]
            columns[f"{verb}_rows_count"] = _flat(batch, f"manifest_info.{verb}_rows_count")
        columns |= {
            "status": _flat(batch, "tracking.status").cast(_SMALL),
            "format_version": _flat(batch, "manifest_info.format_version"),
            "file_format": pc.utf8_upper(_flat(batch, "file_format")),
            "entry_count": _flat(batch, "record_count"),
            "dead_entry_count": _cardinalities(batch, "manifest_info.dv"),
            "deleted_entry_count": _cardinalities(batch, "tracking.deleted_positions"),
            "replaced_entry_count": _cardinalities(batch, "tracking.replaced_positions"),
            "sequence_number": _flat(batch, "tracking.sequence_number"),
            "min_sequence_number": _flat(batch, "manifest_info.min_sequence_number"),
            "modified_snapshot_id": _flat(batch, "tracking.modified_snapshot_id"),
            "first_row_id": _flat(batch, "tracking.first_row_id"),
            "referenced_manifest": self._path(batch, "referenced_file"),
            "key_metadata": _flat(batch, "key_metadata"),
            "readable_metrics": self.metrics(batch),
        }
        return pa.table(columns)

    def _leaf_specs(self, batch: EntryBatch) -> pa.Array:
        """Specs of leaves. Where a leaf states none, the one that the table has, if it is alone."""
        specs = [spec.spec_id for spec in self.metadata.partition_specs]
        only = pa.scalar(specs[0] if len(specs) == 1 else None, _INT)
        return pc.coalesce(_flat(batch, "spec_id"), only)

    def _summaries(self, batch: EntryBatch) -> pa.Array:
        """Per leaf of one spec: what its partition fields span, as text.

        A manifest list of v1 to v3 says that there are nulls, not how many: its unknown is some.
        """
        kind = pa.list_(
            pa.struct(
                [
                    pa.field("contains_null", pa.bool_()),
                    pa.field("contains_nan", pa.bool_()),
                    pa.field("lower_bound", pa.string()),
                    pa.field("upper_bound", pa.string()),
                ]
            )
        )
        summaries: list[list[dict[str, Any]]] = [[] for _ in range(batch.num_rows)]
        spec_ids = np.asarray(pc.fill_null(self._leaf_specs(batch), -1))
        carried = batch.numpy("manifest_info.format_version") == 0
        for spec in self.metadata.partition_specs:
            rows = np.flatnonzero(spec_ids == spec.spec_id)
            about = shape_of(self.metadata).summaries.get(spec.spec_id, ())
            for part, source in zip(spec.fields, about, strict=True):
                if source is None or not rows.size:
                    continue
                picked, floating = batch.take(rows), is_floating(source.type)
                stat = {
                    name: picked.pylist(f"content_stats.{source.field_id}.{name}")
                    for name in ("null_value_count", "nan_value_count")
                }
                bounds = [
                    _human(
                        picked, f"content_stats.{source.field_id}.{name}", part.transform, source
                    )
                    for name in ("lower_bound", "upper_bound")
                ]
                for at, row in enumerate(rows):
                    nulls, nans = (
                        stat[name][at] for name in ("null_value_count", "nan_value_count")
                    )
                    summaries[row].append(
                        {
                            "contains_null": _some(nulls, unknown=True if carried[row] else None),
                            "contains_nan": _some(nans, unknown=None if floating else False),
                            "lower_bound": bounds[0][at],
                            "upper_bound": bounds[1][at],
                        }
                    )
        return pa.array(summaries, kind)

    # Partitions

    def partitions(
        self, batch: EntryBatch, snapshot_ids: Sequence[int], committed_at: Sequence[int]
    ) -> pa.Table:
        """One row per partition; snapshots are given in the order they were made."""
        names = self.partition_keys()
        keys = pa.table({"spec_id": self._spec_ids(batch)})
        partition = self.partition(batch)
        for name in names:
            keys = keys.append_column(f"partition.{name}", partition.field(name))
        grouping = keys.column_names if names else []
        counted = keys
        for name, values in _counts(batch, snapshot_ids).items():
            counted = counted.append_column(name, values)
        sums = [
            ("record_count", "sum"),
            ("file_count", "sum"),
            ("total_data_file_size_in_bytes", "sum"),
            ("position_delete_record_count", "sum"),
            ("position_delete_file_count", "sum"),
            ("dv_count", "sum"),
            ("equality_delete_record_count", "sum"),
            ("equality_delete_file_count", "sum"),
            ("last", "max"),
        ]
        grouped = counted.group_by(grouping, use_threads=False).aggregate(sums)
        if not names and not batch.num_rows:
            grouped = grouped.slice(0, 0)
        columns: dict[str, Any] = {}
        if names:
            parts = {name: single_chunk(grouped.column(f"partition.{name}")) for name in names}
            columns["partition"] = _struct(parts, grouped.num_rows)
            columns["spec_id"] = grouped.column("spec_id")
        for name, how in sums[:-1]:
            wide = name.endswith(("record_count", "bytes"))
            columns[name] = grouped.column(f"{name}_{how}").cast(_LONG if wide else _INT)
        last = single_chunk(grouped.column("last_max"))
        last_id = pc.if_else(pc.greater_equal(last, 0), last, pa.scalar(None, last.type))
        columns["last_updated_at"] = pa.array(committed_at, _MILLIS).take(last_id)
        columns["last_updated_snapshot_id"] = pa.array(snapshot_ids, _LONG).take(last_id)
        return pa.table(columns)


def _counts(batch: EntryBatch, snapshot_ids: Sequence[int]) -> dict[str, pa.Array]:
    content = batch.numpy("content_type")
    rows = batch.numpy("record_count", missing=0)
    vectors = batch.numpy("deletion_vector.offset") >= 0
    deleted = np.where(vectors, batch.numpy("deletion_vector.cardinality", missing=0), 0)
    data = content == ContentType.DATA
    positions = content == ContentType.POSITION_DELETES
    equality = content == ContentType.EQUALITY_DELETES
    order = _order_of(batch, "tracking.snapshot_id", snapshot_ids)
    order = np.maximum(order, _order_of(batch, "tracking.modified_snapshot_id", snapshot_ids))
    counts = {
        "record_count": np.where(data, rows, 0),
        "file_count": data,
        "total_data_file_size_in_bytes": np.where(data, batch.numpy("file_size_in_bytes"), 0),
        "position_delete_record_count": np.where(positions, rows, 0) + np.where(data, deleted, 0),
        "position_delete_file_count": positions & ~vectors,
        "dv_count": vectors,
        "equality_delete_record_count": np.where(equality, rows, 0),
        "equality_delete_file_count": equality,
        "last": order,
    }
    return {name: pa.array(values.astype(np.int64)) for name, values in counts.items()}


def _order_of(
    batch: EntryBatch, key: str, snapshot_ids: Sequence[int]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Which snapshot of the history an entry names: its index, or -1 when it is gone."""
    index = pc.index_in(batch.column(key), value_set=pa.array(snapshot_ids, _LONG))
    return np.asarray(pc.fill_null(index, -1).to_numpy(), dtype=np.int64)


def _some(count: int | None, *, unknown: bool | None) -> bool | None:
    return unknown if count is None else count > 0


def _human(batch: EntryBatch, key: str, transform: Any, source: Any) -> list[str | None]:
    """Bounds of a partition field as people write them."""
    column = _flat(batch, key, arrow_type(source.type))
    if pa.types.is_temporal(column.type):
        # PyIceberg words dates and times by their number of days or microseconds.
        width = _INT if column.type.bit_width == 32 else _LONG
        column = column.cast(width)
    return [
        None if value is None else human(value, source.type, transform)
        for value in column.to_pylist()
    ]


def _stat(
    batch: EntryBatch, column: StatsColumn, kind: Any, nulls: dict[pa.DataType, pa.Array]
) -> pa.Array:
    """One statistic; those that no file has share one array of nulls per type."""
    if not batch.has(column.key):
        if column.type not in nulls:
            nulls[column.type] = pa.nulls(batch.num_rows, column.type)
        return nulls[column.type]
    values = _flat(batch, column.key)
    if values.type == column.type:
        return values
    is_bound = column.name in ("lower_bound", "upper_bound")
    return promote(values, kind) if is_bound else values.cast(column.type)


def _cardinalities(batch: EntryBatch, key: str) -> pa.Array:
    """How many positions each bitmap holds; 0 where there is none."""
    counts = [0 if data is None else bitmap.cardinality(data) for data in batch.pylist(key)]
    return pa.array(counts, _LONG)


def _flat(batch: EntryBatch, key: str, kind: pa.DataType | None = None) -> pa.Array:
    """A column as one array; nulls of `kind` when it is absent."""
    if kind is not None and not batch.has(key):
        return pa.nulls(batch.num_rows, kind)
    return single_chunk(batch.column(key))


def _struct(
    columns: dict[str, pa.Array], rows: int, *, valid: pa.Array | None = None
) -> pa.StructArray:
    if not columns:
        return pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    mask = None if valid is None else pc.invert(valid)
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns), mask=mask)


# Maps from the id of a column


_COUNTS: Final = {
    "value_counts": "value_count",
    "null_value_counts": "null_value_count",
    "nan_value_counts": "nan_value_count",
}
_BOUNDS: Final = {"lower_bounds": "lower", "upper_bounds": "upper"}


def statistics_maps(batch: EntryBatch, columns: tuple[TrackedField, ...]) -> dict[str, pa.MapArray]:
    """Counts and bounds of every file by column id; bounds are in Iceberg's single-value bytes.

    A file without any has null. `column_sizes` is null in every row: version 4 keeps no sizes of
    columns.
    """
    sizes = pa.map_(pa.int32(), pa.int64())
    maps: dict[str, pa.Array] = {"column_sizes": pa.nulls(batch.num_rows, sizes)}
    for name, statistic in _COUNTS.items():
        counts = {
            column.id: single_chunk(batch.column(stats_key(column.id, statistic)))
            for column in columns
            if batch.has(stats_key(column.id, statistic))
        }
        maps[name] = _maps(counts, batch.num_rows, pa.int64())
    for name, side in _BOUNDS.items():
        bounds = {column.id: _bounds(batch, column, side) for column in columns}
        filled = {id: values for id, values in bounds.items() if values is not None}
        maps[name] = _maps(filled, batch.num_rows, pa.binary())
    return maps


def _bounds(batch: EntryBatch, column: TrackedField, side: str) -> pa.Array | None:
    if not has_bounds(column.type):
        return None
    if is_geo(column.type):
        keys = {axis: stats_key(column.id, f"{side}_{axis}") for axis in single_value.AXES}
        if not any(map(batch.has, keys.values())):
            return None
        absent = pa.nulls(batch.num_rows, pa.float64())
        return single_value.encode_points(
            {axis: batch.column(key) if batch.has(key) else absent for axis, key in keys.items()}
        )
    key = stats_key(column.id, f"{side}_bound")
    return single_value.encode_bounds(batch.column(key), column.type) if batch.has(key) else None


def _maps(columns: Mapping[int, pa.Array], rows: int, kind: pa.DataType) -> pa.MapArray:
    """One map per row: the ids of the columns whose value is not null, and these values."""
    if not columns:
        return pa.nulls(rows, pa.map_(pa.int32(), kind))
    valid = np.array([np.asarray(values.is_valid()) for values in columns.values()])
    # Values lie column by column; a map needs them row by row.
    by_row = np.arange(valid.size).reshape(valid.shape).T[valid.T]
    items = pa.concat_arrays([values.cast(kind) for values in columns.values()]).take(
        pa.array(by_row)
    )
    ids = np.broadcast_to(np.array(list(columns), dtype=np.int32)[:, None], valid.shape)
    counts: np.ndarray[Any, Any] = valid.sum(axis=0)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.MapArray.from_arrays(
        pa.array(offsets), pa.array(ids.T[valid.T]), items, mask=pc.equal(pa.array(counts), 0)
    )
