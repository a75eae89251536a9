"""Find files in a tree by location.

A file is listed in the root, or at a position of a leaf. Addresses remembered from planning are
hints: one holds while its leaf is in the root and lists the file, alive, at that position. What a
concurrent flush or compaction moved is found again by reading the leaves' locations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.format import tracking
from frazil.format.batch import EntryBatch
from frazil.format.fields import ContentType
from frazil.tree.read import LEAF, POSITION, LeafRef, Tree, TreeReader

Rows = np.ndarray[Any, np.dtype[np.int64]]
_IN_ROOT = -1
_MISSING = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Where files are: `leaf` is the leaf's row in the root, or -1 for the root itself (-2: gone).

    `position` is the position in the leaf, or the row of the root.
    """

    locations: tuple[str, ...]
    leaf: Rows
    position: Rows

    @property
    def missing(self) -> tuple[str, ...]:
        """Files that are not live in this tree."""
        return tuple(self.locations[index] for index in np.flatnonzero(self.leaf == _MISSING))

    @property
    def missing_all(self) -> frozenset[str]:
        """Files of which no mention was found."""
        found = np.flatnonzero(self.leaf != _MISSING)
        return frozenset(self.missing).difference(self.locations[index] for index in found)

    @property
    def root_rows(self) -> Rows:
        """Rows of the root that list files themselves."""
        rows: Rows = self.position[self.leaf == _IN_ROOT]
        return rows

    def where(self, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> Located:
        """Those files for which the mask is true."""
        chosen = np.flatnonzero(mask)
        return Located(
            locations=tuple(self.locations[index] for index in chosen),
            leaf=self.leaf[chosen],
            position=self.position[chosen],
        )

    def plus(self, other: Located) -> Located:
        """These files and the others."""
        return Located(
            locations=(*self.locations, *other.locations),
            leaf=np.concatenate([self.leaf, other.leaf]),
            position=np.concatenate([self.position, other.position]),
        )

    def by_leaf(self) -> dict[int, Rows]:
        """Positions per leaf row, sorted."""
        if not self.leaf.size:
            return {}
        rows = np.unique(self.leaf[self.leaf >= 0])
        return {int(row): np.sort(self.position[self.leaf == row]) for row in rows}

    def entries(self, reader: TreeReader, tree: Tree, *, keys: list[str] | None) -> EntryBatch:
        """The entries found, in the order of `locations`; `keys` None reads whole rows."""
        batches: list[EntryBatch] = []
        order: list[Rows] = []
        in_root = np.flatnonzero(self.leaf == _IN_ROOT)
        if in_root.size:
            batches.append(tree.root.take(self.position[in_root]))
            order.append(in_root)
        refs = {leaf.row: leaf for leaf in tree.leaves()}
        for row in np.unique(self.leaf[self.leaf >= 0]):
            mine = np.flatnonzero(self.leaf == row)
            batch = reader.entries(refs[int(row)], keys=keys)
            batches.append(batch.take(self.position[mine]))
            order.append(mine)
        merged = EntryBatch.concat(batches)
        return merged.take(np.argsort(np.concatenate(order))) if order else merged


def locate(reader: TreeReader, tree: Tree, wanted: EntryBatch) -> Located:
    """Find each file of `wanted` by its `location`; `@leaf` and `@position` are hints."""
    count = wanted.num_rows
    leaf = np.full(count, _MISSING, dtype=np.int64)
    position = np.full(count, _MISSING, dtype=np.int64)
    names = wanted.column("location")
    _in_root(tree, names, leaf, position)
    leaves = tree.leaves()
    if (leaf == _MISSING).any() and wanted.has(LEAF):
        _by_hint(reader, leaves, wanted, leaf, position)
    if (leaf == _MISSING).any():
        _by_search(reader, leaves, names, leaf, position)
    return Located(locations=tuple(names.to_pylist()), leaf=leaf, position=position)


def locate_apart(
    reader: TreeReader, tree: Tree, wanted: Sequence[tuple[str, str | None, int | None]]
) -> Located:
    """Find files, given by location, leaf and position, that the tree may list more than once.

    Each mention of a location gets an entry of its own: the one at its address where that is still
    right, the next one otherwise. A mention too many is missing.
    """
    names = {location for location, _, _ in wanted}
    free: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    listed = pa.array(sorted(names), pa.string())
    kind = tree.root.numpy("content_type")
    rows = np.flatnonzero(tracking.live_mask(tree.root) & (kind < ContentType.DATA_MANIFEST))
    for row, name in zip(rows.tolist(), tree.root.pylist("location", rows), strict=True):
        if name in free:
            free[name].append((_IN_ROOT, row))
    leaves = tree.leaves()
    row_of = {ref.location: ref.row for ref in leaves}
    batches = reader.each(leaves, lambda ref: reader.live(ref, keys=["location"]))
    for ref, batch in zip(leaves, batches, strict=True):
        mine = batch.filter(np.asarray(pc.is_in(batch.column("location"), value_set=listed)))
        places = mine.numpy(POSITION).tolist()
        for place, name in zip(places, mine.pylist("location"), strict=True):
            free[name].append((ref.row, place))
    found: list[tuple[int, int]] = [(_MISSING, _MISSING)] * len(wanted)
    for at, (name, leaf, place) in enumerate(wanted):
        address = (row_of.get(leaf or "", _MISSING), -1 if place is None else place)
        if address in free[name]:
            free[name].remove(address)
            found[at] = address
    for at, (name, _, _) in enumerate(wanted):
        if found[at][0] == _MISSING and free[name]:
            found[at] = free[name].pop(0)
    return Located(
        locations=tuple(name for name, _, _ in wanted),
        leaf=np.array([leaf for leaf, _ in found], dtype=np.int64),
        position=np.array([place for _, place in found], dtype=np.int64),
    )


def _in_root(tree: Tree, names: pa.ChunkedArray, leaf: Rows, position: Rows) -> None:
    kind = tree.root.numpy("content_type")
    rows = np.flatnonzero(tracking.live_mask(tree.root) & (kind < ContentType.DATA_MANIFEST))
    if not rows.size:
        return
    listed = tree.root.column("location").take(pa.array(rows))
    found = _index_in(names, listed)
    hit = found >= 0
    leaf[hit] = _IN_ROOT
    position[hit] = rows[found[hit]]


def _by_hint(
    reader: TreeReader,
    leaves: tuple[LeafRef, ...],
    wanted: EntryBatch,
    leaf: Rows,
    position: Rows,
) -> None:
    hints = wanted.column(LEAF).cast(pa.string())
    names = wanted.column("location")
    places = wanted.numpy(POSITION)
    by_location = {ref.location: ref for ref in leaves}
    for hint in pc.unique(hints).to_pylist():
        ref = by_location.get(hint)
        if ref is None:
            continue
        mine = np.asarray(pc.fill_null(pc.equal(hints, hint), False)) & (leaf == _MISSING)
        rows = np.flatnonzero(mine & (places >= 0) & (places < ref.record_count))
        batch = reader.entries(ref, keys=["location"])
        alive = tracking.live_mask(batch)
        alive[ref.dead_positions()] = False
        listed = batch.column("location").take(pa.array(places[rows]))
        holds = alive[places[rows]] & np.asarray(pc.equal(listed, names.take(pa.array(rows))))
        leaf[rows[holds]] = ref.row
        position[rows[holds]] = places[rows[holds]]


def _by_search(
    reader: TreeReader,
    leaves: tuple[LeafRef, ...],
    names: pa.ChunkedArray,
    leaf: Rows,
    position: Rows,
) -> None:
    listed = reader.each(leaves, lambda ref: reader.live(ref, keys=["location"]))
    for ref, batch in zip(leaves, listed, strict=True):
        open_rows = np.flatnonzero(leaf == _MISSING)
        if not open_rows.size:
            continue
        found = _index_in(names.take(pa.array(open_rows)), batch.column("location"))
        hit = found >= 0
        leaf[open_rows[hit]] = ref.row
        position[open_rows[hit]] = batch.numpy(POSITION)[found[hit]]


def _index_in(names: pa.ChunkedArray, listed: pa.ChunkedArray) -> Rows:
    index = pc.index_in(names, value_set=listed.combine_chunks())
    return np.asarray(pc.fill_null(index, -1).to_numpy(), dtype=np.int64)
