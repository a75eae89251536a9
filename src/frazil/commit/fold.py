"""Two changes of one transaction as one.

The second was planned on the state the first leaves. Where it touches a file that the first added,
the two meet in the added entry: the file is dropped again, or born with a deletion vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression, Or

from frazil.commit.change import Change, Isolation, VectorEdit
from frazil.commit.deletion_vectors import VectorMerger
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
    vectors = {edit.location: edit for edit in first.vectors}
    born: list[VectorEdit] = []
    for edit in second.vectors:
        if edit.location in own:
            born.append(edit)
        else:
            before = vectors.get(edit.location)
            vectors[edit.location] = edit if before is None else _union(before, edit)
    for batch in (removed, replaced):
        for name in _locations(batch):
            vectors.pop(name, None)
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
