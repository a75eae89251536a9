"""Reading and committing through a handle, for tests of tables of older versions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema

from frazil.commit.change import Change, VectorEdit
from frazil.commit.handle import TableHandle
from frazil.commit.loop import Committed
from frazil.data.columns import POS
from frazil.data.read import Reading, name_mapping_of
from frazil.data.schema import arrow_schema
from frazil.expr.parse import parse
from frazil.format.metadata import Snapshot
from frazil.scan.plan import Plan, plan
from frazil.scan.tasks import Task, TaskReader, tasks_of


def planned(
    handle: TableHandle, snapshot: Snapshot | None = None, where: str | None = None
) -> Plan:
    """The plan of a snapshot, by default the current one, in its own schema."""
    at = snapshot if snapshot is not None else handle.tip()
    schema = handle.metadata.schema()
    if snapshot is not None:
        schema = handle.metadata.schema_of(snapshot)
    return plan(handle.reader(), at, schema=schema, where=parse(where, schema))


def tasks(
    handle: TableHandle, snapshot: Snapshot | None = None, where: str | None = None
) -> tuple[list[Task], TaskReader]:
    """The tasks of a plan, and who reads them."""
    metadata = handle.metadata
    schema = metadata.schema() if snapshot is None else metadata.schema_of(snapshot)
    reading = Reading(
        storage=handle.storage,
        schema=schema,
        table_schema=schema,
        row_filter=parse(where, schema),
        specs=metadata.specs_by_id(),
        name_mapping=name_mapping_of(metadata.properties),
    )
    found = tasks_of(planned(handle, snapshot, where), location=handle.location)
    return list(found), TaskReader(reading)


def rows(
    handle: TableHandle, snapshot: Snapshot | None = None, where: str | None = None
) -> pa.Table:
    """The rows of a snapshot."""
    found, reader = tasks(handle, snapshot, where)
    batches = [batch for task in found for batch in reader.read(task)]
    return pa.Table.from_batches(batches, schema=arrow_schema(reader.reading.schema))


def delete_first_row(handle: TableHandle, *, of_file: int = 0) -> Committed:
    """Delete the first row that is left in the n-th file of the plan."""
    found, reader = tasks(handle)
    task = found[of_file]
    of_positions = TaskReader(replace(reader.reading, schema=Schema(POS)))
    left = np.concatenate([np.asarray(batch.column(0)) for batch in of_positions.read(task)])
    tip = handle.tip()
    edit = VectorEdit(
        location=task.location,
        positions=left[:1].astype(np.int64),
        resolved=reader.resolved(task),
        leaf=task.leaf,
        position=task.position,
    )
    base = None if tip is None else int(tip.snapshot_id)
    return handle.commit(Change(vectors=(edit,), base_snapshot_id=base))
