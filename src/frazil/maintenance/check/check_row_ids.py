"""Row ids are unique: no two live rows of a snapshot have the same one. Reads data files.

Ids of a file mostly follow one another, so they are kept as ranges. What is held in memory grows
with how scattered ids are, not with the number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pyiceberg.schema import Schema

from frazil.commit.handle import TableHandle
from frazil.data.metadata_columns import ROW_ID, with_dropped
from frazil.data.read.read_files import Reading
from frazil.format.metadata.metadata import Snapshot
from frazil.maintenance.check.problems import Problems
from frazil.properties.registry import NAME_MAPPING
from frazil.scan.plan import plan
from frazil.scan.tasks import Task, TaskReader, tasks_of

_SHOWN = 5
Ids = np.ndarray[Any, np.dtype[np.int64]]


def check_row_ids(handle: TableHandle, snapshot: Snapshot, where: str, problems: Problems) -> None:
    """Note row ids that two live rows of a snapshot share."""
    if snapshot.root_manifest is None:
        return
    metadata = handle.metadata
    reader = TaskReader(
        Reading(
            storage=handle.storage,
            schema=Schema(ROW_ID),
            table_schema=with_dropped(metadata.schema(), metadata.schemas),
            specs=metadata.specs_by_id(),
            name_mapping=NAME_MAPPING.of(metadata.properties),
        )
    )
    id = int(snapshot.snapshot_id)
    starts: list[Ids] = []
    ends: list[Ids] = []
    names: list[str] = []
    owners: list[Ids] = []

    def ranges(task: Task) -> list[tuple[Ids, Ids]]:
        with problems.guarded(task.source.path, snapshot_id=id):
            return [_ranges(batch.column(0).drop_null().to_numpy()) for batch in reader.read(task)]
        return []

    tasks = list(tasks_of(plan(handle.reader(), snapshot), location=handle.location))
    for task, stored in zip(tasks, handle.reader().map(tasks, ranges), strict=True):
        for first, last in stored:
            starts.append(first)
            ends.append(last)
            owners.append(np.full(first.size, len(names), dtype=np.int64))
        names.append(task.source.path)
    if not starts:
        return
    first, last, owner = np.concatenate(starts), np.concatenate(ends), np.concatenate(owners)
    order = np.argsort(first, kind="stable")
    first, last, owner = first[order], last[order], owner[order]
    reach = np.maximum.accumulate(last)
    for at in np.flatnonzero(first[1:] <= reach[:-1])[:_SHOWN]:
        widest = int(np.argmax(last[: at + 1]))
        one, other = names[owner[widest]], names[owner[at + 1]]
        both = one if one == other else f"{one} and {other}"
        problems.add(
            where, "_row_id", f"{first[at + 1]} is the id of two rows, in {both}", snapshot_id=id
        )


def _ranges(ids: Ids) -> tuple[Ids, Ids]:
    """First and last id of every run of ids that follow one another."""
    breaks = np.flatnonzero(np.diff(ids) != 1) + 1
    if not ids.size:
        return ids, ids
    return ids[np.concatenate(([0], breaks))], ids[np.concatenate((breaks - 1, [ids.size - 1]))]
