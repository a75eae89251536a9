"""Two changes of one transaction as one.

The second was planned on the state the first leaves. Where it touches a file that the first added,
the two meet in the added entry: the file is dropped again, or born with a deletion vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression, Or

from frazil.commit.change import Change, Isolation, VectorEdit
from frazil.commit.deletion_vectors import VectorMerger
from frazil.errors import InvalidInput
from frazil.format import bitmap, paths
from frazil.format.batch import EntryBatch
from frazil.storage import Storage
from frazil.tree.read import LEAF


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
    added = first.added
    removed, gone = _split(second.removed, added)
    replaced, rewritten = _split(second.replaced, added)
    own = _locations(added)
    _check_apart(first, second)
    vectors = dict(_numbered(first.vectors))
    born: list[VectorEdit] = []
    for key, edit in _numbered(second.vectors):
        if edit.location in own:
            born.append(edit)
        else:
            before = vectors.get(key)
            vectors[key] = edit if before is None else _union(before, edit)
    for batch in (removed, replaced):
        for name in _locations(batch):
            vectors.pop((name, 0), None)
    if added is not None:
        added = _without(added, gone | rewritten)
        if born:
            merger = VectorMerger(born, storage=storage, location=location, new_id=new_id)
            added = _born(added, born, merger)
            written += [paths.resolve(location, path) for path, _ in merger.written]
    return replace(
        first,
        added=_concat(added, second.added),
        removed=_concat(_plain(first.removed), _plain(removed)),
        replaced=_concat(_plain(first.replaced), _plain(replaced)),
        vectors=tuple(vectors.values()),
        updates=(*first.updates, *second.updates),
        conflict_filter=_either(first, second),
        isolation=(
            Isolation.SERIALIZABLE
            if Isolation.SERIALIZABLE in (first.isolation, second.isolation)
            else Isolation.SNAPSHOT
        ),
        is_rewrite=first.is_rewrite and second.is_rewrite,
        rows_updated=first.rows_updated + second.rows_updated,
        summary={**first.summary, **second.summary},
    )


def _numbered(edits: Iterable[VectorEdit]) -> Iterator[tuple[tuple[str, int], VectorEdit]]:
    """Edits by location, counted where the table lists a file more than once."""
    seen: Counter[str] = Counter()
    for edit in edits:
        yield (edit.location, seen[edit.location]), edit
        seen[edit.location] += 1


def _check_apart(first: Change, second: Change) -> None:
    """Refuse two changes of a file that the table lists twice: which entry is which is not known
    any more once the first has changed both."""
    counts = [_named(change) for change in (first, second)]
    both = counts[0].keys() & counts[1].keys()
    twice = sorted(name for name in both if max(count[name] for count in counts) > 1)
    before = {edit.location: edit.positions for edit in first.vectors}
    for edit in second.vectors:  # a row that has gone already goes again: it is of the other entry
        if np.intersect1d(before.get(edit.location, ()), edit.positions).size:
            twice.append(edit.location)
    if twice:
        raise InvalidInput(
            f"{twice[0]} is listed twice by the table, and a transaction can change such a file "
            "only once; commit after each change"
        )


def _named(change: Change) -> Counter[str]:
    found = Counter(edit.location for edit in change.vectors)
    for batch in (change.removed, change.replaced):
        if batch is not None:
            found.update(batch.pylist("location"))
    return found


def _either(first: Change, second: Change) -> BooleanExpression | None:
    if first.conflict_filter is None or second.conflict_filter is None:
        return first.conflict_filter or second.conflict_filter
    return Or(first.conflict_filter, second.conflict_filter)


def _locations(batch: EntryBatch | None) -> frozenset[str]:
    return frozenset() if batch is None else frozenset(batch.pylist("location"))


def _split(
    batch: EntryBatch | None, added: EntryBatch | None
) -> tuple[EntryBatch | None, frozenset[str]]:
    """What leaves the table, and what the first change had only just added."""
    own = _locations(added)
    if batch is None or not own:
        return batch, frozenset()
    names = batch.pylist("location")
    mine = np.array([name in own for name in names], dtype=np.bool_)
    return batch.filter(~mine), frozenset(name for name in names if name in own)


def _without(batch: EntryBatch, gone: frozenset[str]) -> EntryBatch:
    if not gone:
        return batch
    mask = pc.is_in(batch.column("location"), value_set=pa.array(sorted(gone), pa.string()))
    return batch.filter(~np.asarray(mask))


def _plain(batch: EntryBatch | None) -> EntryBatch | None:
    """Files to take out, with hints spelled alike: listings repeat the names of leaves by code."""
    if batch is None or not batch.has(LEAF):
        return batch
    return batch.with_column(LEAF, batch.column(LEAF).cast(pa.string()))


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


def _born(added: EntryBatch, edits: list[VectorEdit], merger: VectorMerger) -> EntryBatch:
    """Added entries with deletion vectors of their own."""
    names = added.pylist("location")
    rows = np.array([names.index(edit.location) for edit in edits], dtype=np.int64)
    changed = merger.write_merged(added.take(rows)).entries
    others = np.ones(added.num_rows, dtype=np.bool_)
    others[rows] = False
    return EntryBatch.concat([added.filter(others), changed])
