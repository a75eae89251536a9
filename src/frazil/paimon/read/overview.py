"""A Paimon table's metadata as Arrow tables, for looking at it before taking it over.

`manifests`, `files`, `partitions` and `index_files` are of one snapshot, the latest unless another
is named; `snapshots`, `schemas`, `tags` and `branches` of the whole table. Partition values and
bounds are decoded, in columns named after the table's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import Unsupported
from frazil.format.entries.fields import split_stats_key
from frazil.paimon.read import as_iceberg, binary_row, value_stats
from frazil.paimon.read.paimon_table import PaimonState, PaimonTable
from frazil.paimon.read.snapshot import PaimonSnapshot, Tag
from frazil.paimon.read.table_schema import TableSchema

_TIME: Final = pa.timestamp("ms", "UTC")
_INT, _LONG, _TEXT, _BOOL = pa.int32(), pa.int64(), pa.string(), pa.bool_()
_OPTIONS: Final = pa.map_(_TEXT, _TEXT)

_SNAPSHOT: Final = pa.schema(
    [
        *(("snapshot_id", _LONG), ("schema_id", _LONG), ("commit_kind", _TEXT)),
        *(("committed_at", _TIME), ("commit_user", _TEXT), ("commit_identifier", _LONG)),
        *(("total_record_count", _LONG), ("delta_record_count", _LONG)),
        *(("changelog_record_count", _LONG), ("watermark", _LONG), ("next_row_id", _LONG)),
        *(("base_manifest_list", _TEXT), ("delta_manifest_list", _TEXT)),
        *(("changelog_manifest_list", _TEXT), ("index_manifest", _TEXT)),
        ("writer_version", _TEXT),
    ]
)
_SCHEMA: Final = pa.schema(
    [
        *(("schema_id", _LONG), ("position", _INT), ("field_id", _INT), ("name", _TEXT)),
        *(("type", _TEXT), ("is_partition_key", _BOOL), ("is_primary_key", _BOOL)),
        *(("description", _TEXT), ("options", _OPTIONS), ("created_at", _TIME)),
    ]
)
_TAG: Final = pa.schema(
    [
        *(("name", _TEXT), ("snapshot_id", _LONG), ("schema_id", _LONG), ("committed_at", _TIME)),
        *(("total_record_count", _LONG), ("created_at", _TIME), ("retained_ms", _LONG)),
    ]
)
_BRANCH: Final = pa.schema(
    [("name", _TEXT), ("latest_snapshot_id", _LONG), ("latest_schema_id", _LONG)]
)
_FILE_COLUMNS: Final = (
    *("location", "file_name", "bucket", "level", "row_count", "file_size", "delete_row_count"),
    *("schema_id", "min_sequence_number", "max_sequence_number", "file_source", "first_row_id"),
    *("total_buckets", "extra_files", "value_stats_cols", "write_cols", "external_path"),
)


def snapshots(table: PaimonTable) -> pa.Table:
    """One row per snapshot that is still there, oldest first."""
    return pa.Table.from_pylist([_snapshot_row(s) for s in table.snapshots()], _SNAPSHOT)


def _snapshot_row(snapshot: PaimonSnapshot) -> Mapping[str, Any]:
    shared = {name: getattr(snapshot, name, None) for name in _SNAPSHOT.names}
    return {**shared, "snapshot_id": snapshot.id, "committed_at": snapshot.time_ms}


def schemas(table: PaimonTable) -> pa.Table:
    """One row per column of every schema version."""
    rows = [row for schema in table.schemas().values() for row in _schema_rows(schema)]
    return pa.Table.from_pylist(rows, _SCHEMA)


def _schema_rows(schema: TableSchema) -> Iterable[Mapping[str, Any]]:
    for position, field in enumerate(schema.fields):
        yield {
            "schema_id": schema.id,
            "position": position,
            "field_id": field.id,
            "name": field.name,
            "type": str(field.type),
            "is_partition_key": field.name in schema.partition_keys,
            "is_primary_key": field.name in schema.primary_keys,
            "description": field.description,
            "options": sorted(schema.options.items()),
            "created_at": schema.time_ms,
        }


def tags(table: PaimonTable) -> pa.Table:
    """One row per tag."""
    return pa.Table.from_pylist([_tag_row(tag) for tag in table.tags()], _TAG)


def _tag_row(tag: Tag) -> Mapping[str, Any]:
    return {
        "name": tag.name,
        "snapshot_id": tag.snapshot.id,
        "schema_id": tag.snapshot.schema_id,
        "committed_at": tag.snapshot.time_ms,
        "total_record_count": tag.snapshot.total_record_count,
        "created_at": tag.create_time_ms,
        "retained_ms": tag.time_retained_ms,
    }


def branches(table: PaimonTable) -> pa.Table:
    """One row per branch, `main` first."""
    rows = [
        {
            "name": branch.name,
            "latest_snapshot_id": branch.latest_snapshot_id,
            "latest_schema_id": branch.latest_schema_id,
        }
        for branch in table.branches()
    ]
    return pa.Table.from_pylist(rows, _BRANCH)


def manifests(table: PaimonTable, snapshot_id: int | None = None) -> pa.Table:
    """One row per manifest of a snapshot, with the range of each partition column."""
    snapshot = table.snapshot(snapshot_id)
    listing = table.manifests(snapshot)
    fields = table.schema(snapshot.schema_id).partition_fields
    types = [field.type for field in fields]
    low = binary_row.decode(listing["partition_min"], types)
    high = binary_row.decode(listing["partition_max"], types)
    table_ = listing.drop_columns(
        ["version", "partition_min", "partition_max", "partition_null_counts"]
    )
    for field, lowest, highest in zip(fields, low, high, strict=True):
        table_ = table_.append_column(f"partition.{field.name}.min", lowest)
        table_ = table_.append_column(f"partition.{field.name}.max", highest)
    return table_


def files(table: PaimonTable, snapshot_id: int | None = None) -> pa.Table:
    """One row per live data file: where it is, its partition, its statistics, its deleted rows."""
    return state_files(table, table.state(snapshot_id))


def state_files(table: PaimonTable, state: PaimonState) -> pa.Table:
    """The same, for a state at hand."""
    columns: dict[str, Any] = {name: state.files[name] for name in _FILE_COLUMNS}
    columns |= _partition_columns(state, state.files)
    vectors = table.deletion_vectors(state)
    deleted = np.zeros(state.files.num_rows, np.int64)
    if vectors:
        deleted[:] = [len(vectors.get(name, ())) for name in state.files["file_name"].to_pylist()]
    columns["deleted_rows"] = deleted
    return pa.table(columns | _statistics(state))


def _partition_columns(state: PaimonState, rows: pa.Table) -> dict[str, pa.Array]:
    fields = state.schema.partition_fields
    decoded = binary_row.decode(rows["partition"], [field.type for field in fields])
    return {f"partition.{f.name}": values for f, values in zip(fields, decoded, strict=True)}


def _statistics(state: PaimonState) -> dict[str, pa.Array]:
    """Bounds and null counts under column names; columns of other types have none."""
    left_out = tuple(as_iceberg.unsupported_columns(state.schema))
    try:
        schema = as_iceberg.iceberg_schema(state.schema, exclude=left_out)
    except Unsupported:
        return {}
    if state.files.num_rows == 0 or not schema.fields:
        return {}
    columns = {}
    for key, values in value_stats.content_stats(state.files, state.schemas, schema).items():
        field_id, name = split_stats_key(key)
        if name in ("lower_bound", "upper_bound", "null_value_count"):
            columns[f"{schema.find_column_name(field_id)}.{name}"] = values
    return columns


def partitions(table: PaimonTable, snapshot_id: int | None = None) -> pa.Table:
    """One row per partition: its values, files, rows and bytes."""
    state = table.state(snapshot_id)
    fields = state.schema.partition_fields
    live = state.files.select(["partition", "row_count", "file_size"])
    grouped = live.group_by("partition").aggregate(
        [("row_count", "count"), ("row_count", "sum"), ("file_size", "sum")]
    )
    values = binary_row.decode(grouped["partition"], [field.type for field in fields])
    columns = {field.name: column for field, column in zip(fields, values, strict=True)}
    names: Sequence[tuple[str, str]] = (
        *(("file_count", "row_count_count"), ("row_count", "row_count_sum")),
        ("file_size", "file_size_sum"),
    )
    return pa.table(columns | {name: grouped[source] for name, source in names})


def index_files(table: PaimonTable, snapshot_id: int | None = None) -> pa.Table:
    """One row per index file of a snapshot; deletion vectors by data file, in `ranges`."""
    state = table.state(snapshot_id)
    listed = state.index_files
    columns: dict[str, Any] = {
        name: listed[name]
        for name in ("location", "index_type", "bucket", "file_name", "file_size", "row_count")
    }
    columns |= _partition_columns(state, listed)
    columns["ranges"] = listed["ranges"]
    columns["deletion_vectors"] = pc.fill_null(pc.list_value_length(listed["ranges"]), 0)
    return pa.table(columns)
