"""What became of files over a range of snapshots: change sets folded into one.

A file that came and went inside the range leaves no trace; one that changed several times is told
by its first and its last state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from frazil.format.batch import EntryBatch
from frazil.format.metadata import Snapshot
from frazil.scan.change_steps import FileSets
from frazil.tree.changes import append_runs, appended, changes_of
from frazil.tree.read import TreeReader

_VECTOR = ("deletion_vector.location", "deletion_vector.offset")


@dataclass(slots=True)
class _Fate:
    """A file's entry at the start and at the end of a range; None where it is not there."""

    start: EntryBatch | None
    end: EntryBatch | None

    @property
    def is_same(self) -> bool:
        if self.start is None or self.end is None:
            return self.start is self.end
        return all(self.start.pylist(key) == self.end.pylist(key) for key in _VECTOR)


def net_files(reader: TreeReader, snapshots: Iterable[Snapshot]) -> FileSets:
    """The files that a range of snapshots, oldest first, changed in the end."""
    fates: dict[str, _Fate] = {}
    for run in append_runs(snapshots):
        together = appended(reader, run)
        if together is not None:
            _fold_added(fates, together.files)
        else:
            for snapshot in run:
                _fold(fates, FileSets.of(changes_of(reader, snapshot)))
    changed = [fate for fate in fates.values() if not fate.is_same]
    stayed = [fate for fate in changed if fate.start is not None and fate.end is not None]
    return FileSets(
        gone=_concat(fate.start for fate in changed if fate.end is None),
        before=_concat(fate.start for fate in stayed),
        after=_concat(fate.end for fate in stayed),
        added=_concat(fate.end for fate in changed if fate.start is None),
    )


def _fold(fates: dict[str, _Fate], files: FileSets) -> None:
    for name, entry in _each(files.gone):
        fates.setdefault(name, _Fate(entry, entry)).end = None
    for (name, old), (_, new) in zip(_each(files.before), _each(files.after), strict=True):
        fates.setdefault(name, _Fate(old, old)).end = new
    _fold_added(fates, files.added)


def _fold_added(fates: dict[str, _Fate], added: EntryBatch) -> None:
    for name, entry in _each(added):
        fates.setdefault(name, _Fate(None, None)).end = entry


def _each(batch: EntryBatch) -> Iterable[tuple[str, EntryBatch]]:
    for row, name in enumerate(batch.pylist("location")):
        yield name, batch.slice(row, 1)


def _concat(entries: Iterable[EntryBatch | None]) -> EntryBatch:
    found = [entry for entry in entries if entry is not None]
    return EntryBatch.concat(found) if found else EntryBatch.empty()
