"""Two changes of one transaction as one.

The second was planned on the state the first leaves. Where it touches a file that the first added,
the two meet in the added entry: the file is dropped again, or born with a deletion vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.commit.change import Change, VectorEdit
from frazil.commit.column_edits import ColumnEdit, with_columns_edited
from frazil.commit.deletion_vectors import VectorMerger
from frazil.errors import InvalidInput
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.vectors import bitmap
from frazil.storage import Storage
from frazil.tree.locate import FIRST_ROW_ID, ByEntry, EntryKey
from frazil.tree.read import LEAF
from frazil.value_classes import replace


def fold(
    first: Change,
    second: Change,
    *,
    storage: Storage,
    location: str,
    new_id: Callable[[], str],
    written: list[str],
) -> Change:
    """One change that does both. Puffin files of vectors on added files are written here, and
    their paths put on `written`."""
    # What the first change added has never been live: removing it again leaves no trace, and a
    # vector on it is born with it.
    added = first.added
    removed, gone = _split(second.removed, added)
    replaced, rewritten = _split(second.replaced, added)
    fresh = frozenset(_addresses(added))
    _check_apart(first, second)
    born = [edit for edit in second.vectors if (edit.location, edit.first_row_id) in fresh]
    later = [edit for edit in second.vectors if (edit.location, edit.first_row_id) not in fresh]
    edits = ByEntry[VectorEdit]()
    for edit in united((*first.vectors, *later)):
        edits.put(_key(edit.location, edit.first_row_id), edit)
    columns = [*first.columns, *second.columns]
    on_added = [edit for edit in columns if (edit.location, edit.first_row_id) in fresh]
    columns = [edit for edit in columns if (edit.location, edit.first_row_id) not in fresh]
    for batch in (removed, replaced):
        for name, first_row_id in _addresses(batch):
            edits.pop(_key(name, first_row_id))
            key = _key(name, first_row_id)
            columns = [e for e in columns if not _key(e.location, e.first_row_id).is_same(key)]
    if added is not None:
        added = _without(added, gone | rewritten)
        if born:
            merger = VectorMerger(born, storage=storage, location=location, new_id=new_id)
            added = _born(added, born, merger)
            written += [paths.resolve(location, path) for path, _ in merger.written]
        if on_added:
            added = _with_columns(added, on_added)
    return replace(
        first,
        added=_concat(added, second.added),
        removed=_concat(_plain(first.removed), _plain(removed)),
        replaced=_concat(_plain(first.replaced), _plain(replaced)),
        vectors=tuple(edits.values()),
        columns=tuple(columns),
        updates=(*first.updates, *second.updates),
        searched=(*first.searched, *second.searched),
        is_rewrite=first.is_rewrite and second.is_rewrite,
        rows_updated=first.rows_updated + second.rows_updated,
        rows_in_place=first.rows_in_place + second.rows_in_place,
        rows_removed=None,
        summary={**first.summary, **second.summary},
    )


def united(edits: Iterable[VectorEdit]) -> tuple[VectorEdit, ...]:
    """Edits with one for each entry."""
    known = ByEntry[VectorEdit]()
    for edit in edits:
        key = _key(edit.location, edit.first_row_id)
        before = known.pop(key)
        known.put(key, edit if before is None else _union(before, edit))
    return tuple(known.values())


def _key(location: str, first_row_id: int | None) -> EntryKey:
    return EntryKey(location, first_row_id, None)


def _check_apart(first: Change, second: Change) -> None:
    """Refuse two changes of a file that the table lists twice, where row ids do not tell its
    entries apart: which one is which is not known any more once the first has changed both."""
    counts = [_named(change) for change in (first, second)]
    both = counts[0].keys() & counts[1].keys()
    twice = sorted(name for name in both if max(count[name] for count in counts) > 1)
    before = {edit.location: edit.positions for edit in first.vectors if edit.first_row_id is None}
    for edit in second.vectors:  # a row that has gone already goes again: it is of the other entry
        again = np.intersect1d(before.get(edit.location, ()), edit.positions)
        if edit.first_row_id is None and again.size:
            twice.append(edit.location)
    if twice:
        raise InvalidInput(
            f"{twice[0]} is listed twice by the table, and a transaction can change such a file "
            "only once; commit after each change"
        )


def _named(change: Change) -> Counter[str]:
    """How often a change names files without the first row ids of their entries."""
    names = Counter(edit.location for edit in change.vectors if edit.first_row_id is None)
    for batch in (change.removed, change.replaced):
        names.update(name for name, first_row_id in _addresses(batch) if first_row_id is None)
    return names


def _addresses(batch: EntryBatch | None) -> list[tuple[str, int | None]]:
    """Entries by their files and first row ids. An entry that a transaction adds has no id yet."""
    if batch is None:
        return []
    return list(zip(batch.pylist("location"), batch.pylist(FIRST_ROW_ID), strict=True))


def _split(
    batch: EntryBatch | None, added: EntryBatch | None
) -> tuple[EntryBatch | None, frozenset[str]]:
    """What leaves the table, and what the first change had only just added."""
    fresh = frozenset(_addresses(added))
    if batch is None or not fresh:
        return batch, frozenset()
    addresses = _addresses(batch)
    mine = np.array([address in fresh for address in addresses], dtype=np.bool_)
    return batch.filter(~mine), frozenset(name for name, id in addresses if (name, id) in fresh)


def _without(batch: EntryBatch, gone: frozenset[str]) -> EntryBatch:
    if not gone:
        return batch
    mask = pc.is_in(batch.column("location"), value_set=pa.array(sorted(gone), pa.string()))
    return batch.filter(~np.asarray(mask))


def _plain(batch: EntryBatch | None) -> EntryBatch | None:
    """Files to take out, with hints spelled alike: listings repeat the names of leaves by code."""
    if batch is None or not batch.has(LEAF):
        return batch
    return batch.with_column(LEAF, pc.cast(batch.column(LEAF), pa.string()))


def _concat(first: EntryBatch | None, second: EntryBatch | None) -> EntryBatch | None:
    if first is None or second is None:
        return first if second is None else second
    return EntryBatch.concat([first, second])


def _union(first: VectorEdit, second: VectorEdit) -> VectorEdit:
    return replace(
        first,
        positions=bitmap.union(first.positions, second.positions),
        resolved=first.resolved if second.resolved is None else second.resolved,
        exclusive=first.exclusive or second.exclusive,
    )


def _with_columns(added: EntryBatch, edits: list[ColumnEdit]) -> EntryBatch:
    """Added entries with columns that were computed since."""
    by_entry: list[list[ColumnEdit]] = [[] for _ in range(added.num_rows)]
    places = ByEntry[int]()
    for row, (name, first_row_id) in enumerate(_addresses(added)):
        places.put(_key(name, first_row_id), row)
    for edit in edits:
        place = places.find(_key(edit.location, edit.first_row_id))
        if place is not None:
            by_entry[place].append(edit)
    return with_columns_edited(added, by_entry)


def _born(added: EntryBatch, edits: list[VectorEdit], merger: VectorMerger) -> EntryBatch:
    """Added entries with deletion vectors of their own."""
    places = ByEntry[int]()
    for row, (name, first_row_id) in enumerate(_addresses(added)):
        places.put(_key(name, first_row_id), row)
    rows = np.array([places.pop(_key(edit.location, edit.first_row_id)) for edit in edits])
    changed = merger.write_merged(added.take(rows)).entries
    is_kept = np.ones(added.num_rows, dtype=np.bool_)
    is_kept[rows] = False
    return EntryBatch.concat([added.filter(is_kept), changed])
