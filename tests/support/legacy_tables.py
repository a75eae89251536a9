"""Commits that suit any table, for tests of tables that other writers made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from frazil import Table
from frazil.commit.change import Change, VectorEdit
from frazil.commit.result import CommitResult
from frazil.scan.tasks import TaskReader


def delete_row(table: Table, *, of_file: int = 0) -> CommitResult:
    """Delete the first row that is left in a file of the plan, without a filter."""
    scan = table.scan()
    task = scan.tasks()[of_file]
    reader = TaskReader(replace(scan, columns=("_pos",))._reading())
    left = np.concatenate([np.asarray(batch.column(0)) for batch in reader.read(task)])
    snapshot = table.current_snapshot()
    edit = VectorEdit(
        location=task.location,
        positions=left[:1].astype(np.int64),
        resolved=reader.resolved(task),
        leaf=task.leaf,
        position=task.position,
    )
    base = None if snapshot is None else int(snapshot.snapshot_id)
    return table._handle.commit(Change(vectors=(edit,), base_snapshot_id=base))
