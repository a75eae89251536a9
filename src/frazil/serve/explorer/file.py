"""One data file: what its entry says, its row groups, its column files, its deletion vector, and
what happened to it.

The footer of the file is read, and nothing else of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from frazil import arrow_compute as pc
from frazil.errors import FrazilError
from frazil.format import paths
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import column_files_of
from frazil.format.entries.fields import COLUMN_FILES, VECTOR_KEYS, partition_key, stats_key
from frazil.format.entries.stats import tracked_fields
from frazil.format.metadata.metadata import Snapshot
from frazil.format.metadata.summary_totals import has_column_files, number
from frazil.format.vectors import puffin
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import display_values
from frazil.serve.explorer.leaf import ROOT, partitions
from frazil.serve.explorer.subject import Subject
from frazil.serve.explorer.tree import bins
from frazil.serve.limits import MAX_HISTORY_STEPS
from frazil.serve.rest_errors import RestError, bad_request
from frazil.serve.service import Service
from frazil.tree.changes import FILE_KEYS, changes_of
from frazil.tree.read import POSITION, LeafRef, leaf_refs

_KEYS = (
    *FILE_KEYS,
    *VECTOR_KEYS,
    COLUMN_FILES,
    "tracking.snapshot_id",
    "tracking.sequence_number",
    "tracking.first_row_id",
    "tracking.modified_snapshot_id",
)
_STATS = ("lower_bound", "upper_bound", "value_count", "null_value_count", "nan_value_count")


def show(service: Service, call: Request) -> Response:
    """GET file: `id` is what entries call it; `leaf` says where it is listed, if that is known."""
    subject = Subject.of(service, call)
    asked_path = call.query.get("id", "")
    if not asked_path or subject.snapshot is None:
        raise bad_request("id is missing; expected the id of a file that a leaf lists")
    located = _find(subject, asked_path, call.query.get("leaf"))
    if located is None:
        raise RestError(404, "NotFoundException", f"{asked_path}: the snapshot has no such file")
    entry, leaf = located
    row = entry.row(0)
    path = paths.resolve(subject.table.location, asked_path)
    history, complete = _history(subject, asked_path, row)
    return Response(
        body={
            "id": asked_path,
            "path": path,
            "format": row.get("file_format"),
            "rows": row.get("record_count"),
            "bytes": row.get("file_size_in_bytes"),
            "sequence": row.get("tracking.sequence_number"),
            "first_row_id": display_values.text(row.get("tracking.first_row_id")),
            "added_by": display_values.ids([row.get("tracking.snapshot_id")])[0],
            "leaf": ROOT if leaf is None else leaf.location,
            "position": row.get(POSITION),
            "partition": partitions(subject, entry)[0],
            "sort_order": row.get("sort_order_id"),
            "columns": _columns(subject, entry),
            **_footer(subject, path, row),
            "vector": _vector(subject, row),
            "slices": _slices(subject, entry),
            "history": history,
            "history_complete": complete,
        }
    )


def _find(
    subject: Subject, path: str, hint: str | None
) -> tuple[EntryBatch, LeafRef | None] | None:
    reader = subject.reader
    fields = tracked_fields(subject.schema)
    keys = {
        *_KEYS,
        *(stats_key(field.id, name) for field in fields for name in _STATS),
        *(
            partition_key(field.field_id)
            for spec in subject.table.metadata.partition_specs
            for field in spec.fields
        ),
    }
    root = reader.tree(subject.snapshot, keys=keys).root
    inline = root.filter(tracking.live_mask(root) & ~tracking.leaf_mask(root))
    rows = _rows(inline, path)
    if rows.size:
        return inline.take(rows[:1]), None
    leaves = leaf_refs(root)
    if hint and hint != ROOT:
        leaves = tuple(leaf for leaf in leaves if leaf.location == hint)
    located = reader.map(leaves, lambda leaf: reader.entries(leaf, keys=("location",)))
    for leaf, batch in zip(leaves, located, strict=True):
        rows = _rows(batch, path)
        if rows.size:
            return reader.entries(leaf, keys=keys).take(rows[-1:]), leaf
    return None


def _rows(batch: EntryBatch, path: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    if not batch.num_rows:
        return np.zeros(0, dtype=np.int64)
    equal = pc.equal(batch.column("location"), path)
    return np.flatnonzero(np.asarray(pc.fill_null(equal, False)))


def _columns(subject: Subject, entry: EntryBatch) -> list[dict[str, Any]]:
    columns: list[dict[str, Any]] = []
    for field in tracked_fields(subject.schema):
        stats = {
            name: entry.column(stats_key(field.id, name))
            for name in _STATS
            if entry.has(stats_key(field.id, name))
        }
        if all(column[0].as_py() is None for column in stats.values()):
            continue
        columns.append(
            {
                "id": field.id,
                "name": field.full_name,
                "type": str(field.type),
                "lo": _only(stats.get("lower_bound")),
                "hi": _only(stats.get("upper_bound")),
                **{
                    short: None if name not in stats else stats[name][0].as_py()
                    for short, name in (
                        ("values", "value_count"),
                        ("nulls", "null_value_count"),
                        ("nans", "nan_value_count"),
                    )
                },
            }
        )
    return columns


def _only(column: Any) -> str | None:
    return None if column is None else display_values.texts(column)[0]


def _footer(subject: Subject, path: str, row: dict[str, Any]) -> dict[str, Any]:
    """Row groups from the footer of a Parquet file."""
    nothing: dict[str, Any] = {
        "row_groups": None,
        "codec": None,
        "created_by": None,
        "footer_error": None,
    }
    if str(row.get("file_format")).lower() != "parquet":
        return nothing | {"footer_error": f"{row.get('file_format')} files are not looked into"}
    try:
        source = subject.table._handle.storage.open(path, size=row.get("file_size_in_bytes"))
        about = pq.read_metadata(source.arrow())
    except (FrazilError, OSError, pa.ArrowException) as error:
        return nothing | {"footer_error": str(error)}
    groups = [about.row_group(at) for at in range(about.num_row_groups)]
    first = groups[0].column(0) if groups and groups[0].num_columns else None
    return {
        "row_groups": {
            "rows": [group.num_rows for group in groups],
            "bytes": [group.total_byte_size for group in groups],
            "compressed": [
                sum(group.column(at).total_compressed_size for at in range(group.num_columns))
                for group in groups
            ],
            "offset": [
                group.column(0).file_offset or group.column(0).data_page_offset
                if group.num_columns
                else 0
                for group in groups
            ],
        },
        "codec": None if first is None else str(first.compression).lower(),
        "created_by": about.created_by,
        "footer_error": None,
    }


def _vector(subject: Subject, row: dict[str, Any]) -> dict[str, Any] | None:
    location, offset = row.get("deletion_vector.location"), row.get("deletion_vector.offset")
    if location is None or offset is None:
        return None
    path = paths.resolve(subject.table.location, location)
    length = int(row["deletion_vector.size_in_bytes"])
    count = row.get("deletion_vector.cardinality")
    about: dict[str, Any] = {
        "path": path,
        "offset": offset,
        "bytes": length,
        "rows": count,
        "by": display_values.ids([row.get("tracking.modified_snapshot_id")])[0],
        "bins": None,
        "error": None,
    }
    try:
        data = subject.table._handle.storage.open(path).read_at(offset, length)
        positions = puffin.read_vector(data, path=path, cardinality=count)
    except FrazilError as error:
        return about | {"error": str(error)}
    return about | {"bins": bins(np.asarray(positions, dtype=np.int64), row["record_count"])}


def _slices(subject: Subject, entry: EntryBatch) -> list[dict[str, Any]]:
    """The files that the columns are read from, the data file first; none where that has all."""
    (column_file,) = column_files_of(entry)
    if not column_file:
        return []
    location = subject.table.location
    names = {column.field_id: column.name for column in subject.schema.fields}
    elsewhere = {id for file in column_file for id in file.field_ids}
    row = entry.row(0)
    return [
        {
            "path": paths.resolve(location, row["location"]),
            "bytes": row["file_size_in_bytes"],
            "columns": [name for id, name in names.items() if id not in elsewhere],
        },
        *(
            {
                "path": paths.resolve(location, file.location),
                "bytes": file.file_size_in_bytes,
                "columns": [names[id] for id in file.field_ids if id in names],
            }
            for file in column_file
        ),
    ]


def _history(subject: Subject, path: str, row: dict[str, Any]) -> tuple[list[dict[str, Any]], bool]:
    """What snapshots did to a file, oldest first; whether that is all of it."""
    added_by = row.get("tracking.snapshot_id")
    steps: list[dict[str, Any]] = []
    leaves_read = 0
    has_vector = row.get("deletion_vector.offset") is not None
    for snapshot in _ancestors(subject):
        if snapshot.snapshot_id == added_by:
            steps.append(_step(snapshot, "added"))
            return steps[::-1], True
        has_vectors = has_vector and number(snapshot.summary, "added-dvs")
        if not has_vectors and not has_column_files(snapshot):
            continue
        leaves_read += 1
        if leaves_read > MAX_HISTORY_STEPS:
            break
        keys = ("location", "tracking.status", "tracking.sequence_number")
        modified = changes_of(subject.reader, snapshot, keys=keys).modified
        for at in _rows(modified, path)[:1].tolist():
            # New columns make the rows of a file newer, a new vector does not.
            sequence = modified.column("tracking.sequence_number")[at].as_py()
            is_newer = sequence == snapshot.sequence_number
            steps.append(_step(snapshot, "columns updated" if is_newer else "vector changed"))
    return steps[::-1], False


def _ancestors(subject: Subject) -> Iterator[Snapshot]:
    """The snapshot and its parents, newest first, from one look at the history."""
    snapshots = {int(snapshot.snapshot_id): snapshot for snapshot in subject.table.snapshots()}
    walk = subject.snapshot
    while walk is not None:
        yield walk
        walk = snapshots.get(int(walk.parent_snapshot_id or 0))


_SENTENCES = {
    "added": "The file was added.",
    "columns updated": "Columns of it were updated: they are in a column file.",
    "vector changed": "Rows of it were deleted: it got a new deletion vector.",
}


def _step(snapshot: Snapshot, what: str) -> dict[str, Any]:
    return {
        "snapshot": str(snapshot.snapshot_id),
        "time": snapshot.timestamp_ms,
        "operation": snapshot.operation or "",
        "what": what,
        "text": _SENTENCES[what],
    }
