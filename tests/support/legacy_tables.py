"""Commits that suit any table, for tests of tables that other writers made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from frazil import Table
from frazil.commit.change import Change, VectorEdit
from frazil.commit.result import CommitResult
from frazil.scan.tasks import TaskReader


def delete_row(table: Table, *, of_file: int = 0) -> CommitResult:
    """Delete the first row of a file of the plan that has rows left, without a filter."""
    scan = table.scan()
    reader = TaskReader(replace(scan, columns=("_pos",))._reading())
    with_rows = [task for task in scan.tasks() if reader.positions(task).size]
    task = with_rows[of_file]
    left = reader.positions(task)
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
