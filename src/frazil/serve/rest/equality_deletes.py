"""Equality deletes that a client commits, as deletion vectors of the rows that they take.

Version 4 has no equality deletes, so none enters a tree. The rows are looked for in the snapshot
that the client built on: nothing can land between it and the client's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.commit.change import VectorEdit
from frazil.commit.fold import united
from frazil.commit.handle import TableHandle
from frazil.data.metadata_columns import POS
from frazil.errors import Unsupported
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import Snapshot
from frazil.format.vectors import bitmap
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.schema import Schema
from frazil.rows.scan import Scan
from frazil.scan.deletes_in_force import reach_of
from frazil.scan.match_deletes import DeleteFiles
from frazil.scan.plan import plan
from frazil.scan.tasks import Positions, Task, TaskReader, file_tasks, tasks_of
from frazil.serve.access.allowed_paths import Storage
from frazil.serve.rest.translate import Net
from frazil.tree.partition_tuples import PartitionColumns
from frazil.value_classes import replace

_SEQUENCE = "tracking.sequence_number"


def as_vectors(change: Net, handle: TableHandle, snapshot: Snapshot, storage: Storage) -> Net:
    """A change without equality deletes: the rows of the snapshot that they take are deleted by
    position. `storage` opens what the client wrote."""
    if change.equality is None:
        return change
    if change.added is not None and change.added.has(_SEQUENCE):
        raise Unsupported(
            f"{handle.name}: equality deletes are committed together with files that keep an older "
            "sequence number, which they would apply to; commit them one after the other",
            feature="equality deletes of rewritten files",
        )
    of_vectors = _edits(change.equality, handle, snapshot, storage)
    removed = set(change.removed)
    edits = [edit for edit in of_vectors if edit.location not in removed]
    return replace(change, equality=None, vectors=united([*change.vectors, *edits]))


def _edits(
    equality: EntryBatch, handle: TableHandle, snapshot: Snapshot, storage: Storage
) -> Iterator[VectorEdit]:
    metadata = handle.metadata
    ages = pc.fill_null(
        equality.column(_SEQUENCE).cast(pa.int64()), metadata.last_sequence_number + 1
    )
    equality = equality.with_column(_SEQUENCE, ages)
    deletes = DeleteFiles(
        batch=equality, location=handle.location, partitions=PartitionColumns.of(metadata)
    )
    planned = plan(
        handle.reader(),
        snapshot,
        where=reach_of(equality, metadata.schema()),
        extra_keys=sorted(deletes.stats_keys()),
    )
    matches = deletes.match(planned.files)
    posted = list(file_tasks(planned.files, equality, matches, location=handle.location))
    reading = Scan(_handle=handle, snapshot=snapshot)._reading()
    reader = TaskReader(
        replace(reading, storage=storage, schema=Schema(POS), row_filter=AlwaysTrue())
    )
    for index, task in enumerate(tasks_of(planned, location=handle.location)):
        if index not in matches:
            continue
        left = _left(reader, task)
        with_posted = replace(task, deletes=(*task.deletes, *posted[index].deletes))
        deleted = bitmap.difference(left, reader.positions(with_posted))
        if deleted.size:
            yield VectorEdit(
                location=task.location,
                positions=deleted,
                leaf=task.leaf,
                position=task.position,
                first_row_id=task.source.first_row_id,
            )


def _left(reader: TaskReader, task: Task) -> Positions:
    """The rows that are left of a file; it is read only where an older equality delete applies."""
    if any(file.equality_ids for file in task.deletes):
        return reader.positions(task)
    every = np.arange(task.source.record_count, dtype=np.int64)
    dropped = reader.dropped(task)
    return every if dropped is None else bitmap.difference(every, dropped)


__all__ = ["as_vectors"]
