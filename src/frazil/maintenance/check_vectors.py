"""A deletion vector only grows: the new one of a file holds every position of the old one."""

from __future__ import annotations

from frazil.commit.deletion_vectors import read_vector
from frazil.commit.handle import TableHandle
from frazil.format import bitmap
from frazil.format.fields import VECTOR_KEYS
from frazil.maintenance.problems import Problems
from frazil.scan.change_steps import FileSets
from frazil.tree.changes import TreeChanges


def check_growth(handle: TableHandle, changes: TreeChanges, where: str, problems: Problems) -> None:
    """Read the vectors of modified files before and after, and compare them."""
    files = FileSets.of(changes)
    id = int(changes.snapshot.snapshot_id)
    records = files.after.numpy("record_count", missing=0)
    columns = [
        zip(*(batch.pylist(key) for key in VECTOR_KEYS), strict=True)
        for batch in (files.before, files.after)
    ]
    pairs = zip(files.after.pylist("location"), *columns, strict=True)
    for row, (name, old, new) in enumerate(pairs):
        with problems.guarded(where, snapshot_id=id):
            before = read_vector(handle.storage, handle.location, old, int(records[row]))
            after = read_vector(handle.storage, handle.location, new, int(records[row]))
            back = bitmap.difference(before, after)
            if back.size:
                what = f"{name}: row {back[0]} was deleted and is not any more"
                problems.add(where, "deletion_vector", what, snapshot_id=id)
