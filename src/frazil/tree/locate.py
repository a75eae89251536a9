"""Find entries in a tree by the location of their file.

A file is listed in the root, or at a position of a leaf. Addresses remembered from planning are
hints: one holds while its leaf is in the root and lists the file, alive, at that position. What a
concurrent flush or compaction moved is found again by reading the leaves' locations. A tree may
list a file twice; the entries' first row ids, where both sides know them, tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.tree.read import LEAF, POSITION, LeafRef, Tree, TreeReader
from frazil.value_classes import frozen

_T = TypeVar("_T")


class EntryKey(NamedTuple):
    """What an entry is known by."""

    location: str
    first_row_id: int | None
    file_sequence_number: int | None

    def is_same(self, other: EntryKey) -> bool:
        """Whether nothing says that these are two entries."""
        return self.location == other.location and all(
            value is None or its is None or value == its
            for value, its in zip(self[1:], other[1:], strict=True)
        )


def entry_keys(batch: EntryBatch) -> Iterator[EntryKey]:
    """The keys of entries, in their order."""
    columns = (
        batch.pylist("location"),
        batch.pylist("tracking.first_row_id"),
        batch.pylist("tracking.file_sequence_number"),
    )
    return map(EntryKey, *columns)


class ByEntry(Generic[_T]):
    """Values by entry. Of two that cannot be told apart, the one that came first is found first."""

    def __init__(self) -> None:
        self._values: dict[str, list[tuple[EntryKey, _T]]] = {}

    def put(self, key: EntryKey, value: _T) -> None:
        self._values.setdefault(key.location, []).append((key, value))

    def find(self, key: EntryKey, accept: Callable[[_T], bool] = lambda _: True) -> _T | None:
        """The value of an entry, of those that `accept` admits."""
        for stored_key, value in self._values.get(key.location, ()):
            if stored_key.is_same(key) and accept(value):
                return value
        return None

    def pop(self, key: EntryKey) -> _T | None:
        """The value of an entry, which is taken out."""
        values = self._values.get(key.location, [])
        for place, (stored_key, value) in enumerate(values):
            if stored_key.is_same(key):
                del values[place]
                return value
        return None

    def values(self) -> Iterator[_T]:
        """Every value, those of one file together."""
        for pairs in self._values.values():
            yield from (value for _, value in pairs)


FIRST_ROW_ID = "tracking.first_row_id"
ADDRESS = ("location", LEAF, POSITION, FIRST_ROW_ID)
"""What names an entry to be found again."""
Rows = np.ndarray[Any, np.dtype[np.int64]]
_IN_ROOT = -1
_MISSING = -2


@frozen
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
    def never_found(self) -> frozenset[str]:
        """Files of which no mention was found."""
        located = np.flatnonzero(self.leaf != _MISSING)
        return frozenset(self.missing).difference(self.locations[index] for index in located)

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
            rows = np.flatnonzero(self.leaf == row)
            batch = reader.entries(refs[int(row)], keys=keys)
            batches.append(batch.take(self.position[rows]))
            order.append(rows)
        merged = EntryBatch.concat(batches)
        if len(order) < 2:  # of one manifest they were taken in this order
            return merged
        return merged.take(np.argsort(np.concatenate(order)))


def locate(reader: TreeReader, tree: Tree, entries: EntryBatch) -> Located:
    """Find each file of `entries` by its `location`; `@leaf` and `@position` are hints."""
    count = entries.num_rows
    leaf = np.full(count, _MISSING, dtype=np.int64)
    position = np.full(count, _MISSING, dtype=np.int64)
    search = _Search(
        reader=reader, leaves=tree.leaves(), entries=entries, leaf=leaf, position=position
    )
    # From cheap to dear: the place where planning saw it, the root in memory, every leaf.
    if entries.has(LEAF):
        search.by_hint()
    if (leaf == _MISSING).any():
        search.in_root(tree.root)
    if (leaf == _MISSING).any():
        search.in_leaves()
    names = entries.column("location").to_pylist()
    return Located(locations=tuple(names), leaf=leaf, position=position)


@frozen
class Mention:
    """One entry that is looked for: the file, where it was listed, and its first row id."""

    location: str
    leaf: str | None = None
    position: int | None = None
    first_row_id: int | None = None

    def choose(self, free: dict[tuple[int, int], int | None]) -> tuple[int, int]:
        """Take the address of an entry that this may be, one with the same first row id first."""
        first = self.first_row_id
        alike = [at for at, row_id in free.items() if row_id == first and first is not None]
        untold = [at for at, row_id in free.items() if row_id is None or first is None]
        for address in (*alike, *untold):
            del free[address]
            return address
        return (_MISSING, _MISSING)


def locate_apart(reader: TreeReader, tree: Tree, mentions: Sequence[Mention]) -> Located:
    """Find files that the tree may list more than once.

    Each mention of a location gets an entry of its own: the one at its address where that is still
    right, else the one with its first row id, else the next one. A mention too many is missing.
    """
    names = {mention.location for mention in mentions}
    free: dict[str, dict[tuple[int, int], int | None]] = {name: {} for name in names}
    listed = arrow_values.array(sorted(names), pa.string())
    kind = tree.root.numpy("content_type")
    rows = np.flatnonzero(tracking.live_mask(tree.root) & (kind < ContentType.DATA_MANIFEST))
    columns = (tree.root.pylist(key, rows) for key in ("location", FIRST_ROW_ID))
    for row, name, first in zip(rows.tolist(), *columns, strict=True):
        if name in free:
            free[name][(_IN_ROOT, row)] = first
    leaves = tree.leaves()
    row_of = {ref.location: ref.row for ref in leaves}
    batches = reader.map(leaves, lambda ref: reader.live(ref, keys=["location", FIRST_ROW_ID]))
    for ref, batch in zip(leaves, batches, strict=True):
        matching = batch.filter(
            arrow_values.to_numpy(pc.is_in(batch.column("location"), value_set=listed))
        )
        columns = (matching.pylist(key) for key in ("location", FIRST_ROW_ID))
        for place, name, first in zip(matching.numpy(POSITION).tolist(), *columns, strict=True):
            free[name][(ref.row, place)] = first
    places: list[tuple[int, int]] = [(_MISSING, _MISSING)] * len(mentions)
    for at, mention in enumerate(mentions):
        place = -1 if mention.position is None else mention.position
        address = (row_of.get(mention.leaf or "", _MISSING), place)
        if address in free[mention.location]:
            del free[mention.location][address]
            places[at] = address
    for at, mention in enumerate(mentions):
        if places[at][0] == _MISSING:
            places[at] = mention.choose(free[mention.location])
    return Located(
        locations=tuple(mention.location for mention in mentions),
        leaf=np.array([leaf for leaf, _ in places], dtype=np.int64),
        position=np.array([place for _, place in places], dtype=np.int64),
    )


@frozen(eq=False)
class _Search:
    """Files that are looked for, and the address of each one that was found so far."""

    reader: TreeReader
    leaves: tuple[LeafRef, ...]
    entries: EntryBatch
    leaf: Rows
    position: Rows

    def in_root(self, root: EntryBatch) -> None:
        """Files that the root itself lists."""
        kind = root.numpy("content_type")
        rows = np.flatnonzero(tracking.live_mask(root) & (kind < ContentType.DATA_MANIFEST))
        if rows.size:
            listed = root.select(("location", FIRST_ROW_ID)).take(rows)
            self._match(listed, _IN_ROOT, rows)

    def by_hint(self) -> None:
        """Files that are still where planning saw them."""
        hints = pc.cast(self.entries.column(LEAF), pa.string())
        names = self.entries.column("location")
        places = self.entries.numpy(POSITION)
        by_location = {ref.location: ref for ref in self.leaves}
        for hint in pc.unique(hints).to_pylist():
            ref = by_location.get(hint)
            if ref is None:
                continue
            is_hinted = pc.equal(hints, arrow_values.scalar(hint, hints.type))
            is_open = arrow_values.to_numpy(pc.fill_null(is_hinted, arrow_values.scalar(False))) & (
                self.leaf == _MISSING
            )
            rows = np.flatnonzero(is_open & (places >= 0) & (places < ref.record_count))
            batch = self.reader.entries(ref, keys=["location"])
            alive = tracking.live_mask(batch)
            alive[ref.dead_positions()] = False
            listed = pc.take(batch.column("location"), arrow_values.array(places[rows]))
            # A hint may be stale: it holds only where the entry is live and names this file.
            holds = alive[places[rows]] & arrow_values.to_numpy(
                pc.equal(listed, pc.take(names, arrow_values.array(rows)))
            )
            self.leaf[rows[holds]] = ref.row
            self.position[rows[holds]] = places[rows[holds]]

    def in_leaves(self) -> None:
        """Files that any leaf lists."""
        keys = ["location", FIRST_ROW_ID] if self.entries.has(FIRST_ROW_ID) else ["location"]
        listed = self.reader.map(self.leaves, lambda ref: self.reader.live(ref, keys=keys))
        for ref, batch in zip(self.leaves, listed, strict=True):
            self._match(batch, ref.row, batch.numpy(POSITION))

    def _match(self, listed: EntryBatch, leaf: int, positions: Rows) -> None:
        """Note the address of what is listed among the files that are still missing."""
        missing = np.flatnonzero(self.leaf == _MISSING)
        if not missing.size:
            return
        index = _index_in(self.entries.take(missing), listed)
        hit = index >= 0
        self.leaf[missing[hit]] = leaf
        self.position[missing[hit]] = positions[index[hit]]


def _index_in(entries: EntryBatch, listed: EntryBatch) -> Rows:
    """For each wanted file the row that lists it, with the same first row id; -1 for none."""
    names = listed.column("location").combine_chunks()
    index = pc.index_in(entries.column("location"), value_set=names)
    rows = np.array(
        arrow_values.to_numpy(pc.fill_null(index, arrow_values.scalar(-1, index.type))),
        dtype=np.int64,
    )
    if not entries.has(FIRST_ROW_ID) or not listed.num_rows:
        return rows
    row_ids, its = entries.numpy(FIRST_ROW_ID), listed.numpy(FIRST_ROW_ID)
    has_other_ids = (rows >= 0) & (row_ids >= 0) & (its[rows] >= 0) & (its[rows] != row_ids)
    if has_other_ids.any():  # listed twice, or again after it was removed
        keys = zip(names.to_pylist(), its.tolist(), strict=True)
        by_id = {key: row for row, key in enumerate(keys)}
        for row in np.flatnonzero(has_other_ids).tolist():
            name = entries.column("location")[row].as_py()
            rows[row] = by_id.get((name, int(row_ids[row])), -1)
    return rows
