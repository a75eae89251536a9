"""What became of entries over a range of snapshots: change sets folded into one.

An entry that came and went inside the range leaves no trace; one that changed several times is told
by its first and its last state. A file that was removed and added again is two entries: its rows
have other ids.
"""

from __future__ import annotations

from collections.abc import Iterable

from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import Snapshot
from frazil.scan.change_steps import FileSets
from frazil.tree.changes import append_runs, appended, changes_of
from frazil.tree.locate import ByEntry, EntryKey, entry_keys
from frazil.tree.read import TreeReader
from frazil.value_classes import dataclass

_STATE = ("deletion_vector.location", "deletion_vector.offset", "tracking.sequence_number")
"""What changes when an entry loses rows or has columns updated."""


@dataclass(slots=True)
class _FileSpan:
    """An entry at the start and at the end of a range; None where it is not there."""

    start: EntryBatch | None
    end: EntryBatch | None

    @property
    def is_same(self) -> bool:
        if self.start is None or self.end is None:
            return self.start is self.end
        return all(self.start.pylist(key) == self.end.pylist(key) for key in _STATE)


def net_files(reader: TreeReader, snapshots: Iterable[Snapshot]) -> FileSets:
    """The files that a range of snapshots, oldest first, changed in the end."""
    fates = ByEntry[_FileSpan]()
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


def _fold(fates: ByEntry[_FileSpan], files: FileSets) -> None:
    for key, entry in _each(files.gone):
        _live(fates, key, entry).end = None
    for (key, old), (_, new) in zip(_each(files.before), _each(files.after), strict=True):
        _live(fates, key, old).end = new
    _fold_added(fates, files.added)


def _live(fates: ByEntry[_FileSpan], key: EntryKey, entry: EntryBatch) -> _FileSpan:
    """The fate of an entry that is there: one not met before was there at the start."""
    fate = fates.find(key, lambda known: known.end is not None)
    if fate is None:
        fate = _FileSpan(entry, entry)
        fates.put(key, fate)
    return fate


def _fold_added(fates: ByEntry[_FileSpan], added: EntryBatch) -> None:
    for key, entry in _each(added):
        fates.put(key, _FileSpan(None, entry))


def _each(batch: EntryBatch) -> Iterable[tuple[EntryKey, EntryBatch]]:
    for row, key in enumerate(entry_keys(batch)):
        yield key, batch.slice(row, 1)


def _concat(entries: Iterable[EntryBatch | None]) -> EntryBatch:
    batches = [entry for entry in entries if entry is not None]
    return EntryBatch.concat(batches) if batches else EntryBatch.empty()
