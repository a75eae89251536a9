"""A deletion vector only grows: the new one of a file holds every position of the old one."""

from __future__ import annotations

from functools import partial

from frazil.commit.handle import TableHandle
from frazil.format.vectors import bitmap
from frazil.maintenance.check.problems import Problems
from frazil.scan.change_steps import FileSets
from frazil.tree.changes import TreeChanges
from frazil.tree.stored_vectors import read_vector, vectors_of


def check_growth(handle: TableHandle, changes: TreeChanges, where: str, problems: Problems) -> None:
    """Read the vectors of modified files before and after, and compare them."""
    files = FileSets.of(changes)
    id = int(changes.snapshot.snapshot_id)
    records = files.after.numpy("record_count", missing=0)
    names = files.after.pylist("location")
    vectors = zip(names, vectors_of(files.before), vectors_of(files.after), strict=True)
    for row, (name, old, new) in enumerate(vectors):
        with problems.guarded(where, snapshot_id=id):
            read = partial(
                read_vector,
                handle.storage,
                location=handle.location,
                record_count=int(records[row]),
            )
            back = bitmap.difference(read(old), read(new))
            if back.size:
                what = f"{name}: row {back[0]} was deleted and is not any more"
                problems.add(where, "deletion_vector", what, snapshot_id=id)
