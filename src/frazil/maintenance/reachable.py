"""Which files snapshots reach, and which of them only snapshots that go.

A snapshot reaches its root, the leaves its root lists, and the files and deletion vectors of live
entries. Files of dead entries belong to the snapshot before, if that is kept.

The difference of two groups of snapshots opens only leaves that tell something. A leaf that both
list is opened for the positions where they differ. A file is live at one place of a tree at most,
so a position that is live in every tree that goes cannot hold a file that one of them has
elsewhere; and a leaf whose bounds of a column lie apart from a file's cannot hold it. Sequence
numbers say nothing here: a file that is picked or added again gets a new one. A Puffin file is
shared by many entries, and is looked for in every leaf that is not older than itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from frazil.errors import NotFound
from frazil.format import bitmap, paths, tracking
from frazil.format.batch import EntryBatch
from frazil.format.fields import ContentType, stats_key
from frazil.format.metadata import Snapshot
from frazil.legacy import manifest_list
from frazil.maintenance.progress import Progress, run_all, silent
from frazil.tree.clusters import cluster_columns
from frazil.tree.read import POSITION, LeafRef, Tree, TreeReader, leaf_refs

Positions = np.ndarray[Any, np.dtype[np.int64]]
Bounds = tuple[tuple[Any, Any] | None, ...]
"""Lower and upper bound in each of a few columns; None where they are not known."""

_COLUMNS = 3

NAME_KEYS = (
    "location",
    "content_type",
    "deletion_vector.location",
    "tracking.sequence_number",
    "tracking.modified_snapshot_id",
)


@dataclass(slots=True, kw_only=True)
class HeldLeaf:
    """A leaf as a group of roots lists it."""

    ref: LeafRef
    bounds: Bounds
    dead_in_all: Positions
    dead_in_any: Positions
    roots: int = 1

    def met(self, dead: Positions) -> None:
        """One more root lists it."""
        self.dead_in_all = np.intersect1d(self.dead_in_all, dead, assume_unique=True)
        self.dead_in_any = bitmap.union(self.dead_in_any, dead)
        self.roots += 1


@dataclass(slots=True, kw_only=True)
class NamedFiles:
    """Files with their bounds, Puffin files with the least age they can have.

    `deletes` are the ones among the files that delete rows.
    """

    files: dict[str, Bounds] = field(default_factory=dict)
    vectors: dict[str, int] = field(default_factory=dict)
    deletes: set[str] = field(default_factory=set)

    def add(self, other: NamedFiles) -> None:
        """Take up more names."""
        for name, bounds in other.files.items():
            if self.files.setdefault(name, bounds) != bounds:
                self.files[name] = (None,) * len(bounds)
        for name, age in other.vectors.items():
            self.vectors[name] = min(age, self.vectors.get(name, age))
        self.deletes |= other.deletes

    def drop(self, other: NamedFiles) -> None:
        """Forget names that are in use."""
        for name in (*other.files, *other.vectors):
            self.files.pop(name, None)
            self.vectors.pop(name, None)

    def __bool__(self) -> bool:
        return bool(self.files or self.vectors)


@dataclass(slots=True, kw_only=True)
class Holdings:
    """What a group of snapshots holds: roots, leaves by address, and names in the roots."""

    roots: dict[str, int] = field(default_factory=dict)
    leaves: dict[str, HeldLeaf] = field(default_factory=dict)
    names: NamedFiles = field(default_factory=NamedFiles)
    trees: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreachable:
    """Addresses of files that only snapshots of one group reach, by what they are."""

    roots: frozenset[str] = frozenset()
    leaves: frozenset[str] = frozenset()
    data_files: frozenset[str] = frozenset()
    delete_files: frozenset[str] = frozenset()
    vectors: frozenset[str] = frozenset()

    def by_kind(self) -> dict[str, frozenset[str]]:
        """The sets by name, rows first and roots last: the order in which they are deleted."""
        return {
            "data-files": self.data_files,
            "delete-files": self.delete_files,
            "deletion-vectors": self.vectors,
            "leaves": self.leaves,
            "roots": self.roots,
        }


class Reach:
    """Finds what snapshots of one table reach. `ages` are sequence numbers of known snapshots."""

    def __init__(
        self,
        reader: TreeReader,
        *,
        snapshots: Iterable[Snapshot],
        progress: Progress = silent,
    ) -> None:
        self._reader = reader
        self._progress = progress
        self._ages = {int(each.snapshot_id): each.sequence_number for each in snapshots}
        columns = cluster_columns(reader.metadata)[:_COLUMNS]
        self._bounds = [
            (stats_key(id, "lower_bound"), stats_key(id, "upper_bound")) for id, _ in columns
        ]
        self._keys = (*NAME_KEYS, *(key for pair in self._bounds for key in pair))

    def holdings(
        self, snapshots: Sequence[Snapshot], *, what: str, missing_ok: bool = False
    ) -> Holdings:
        """Read the roots of snapshots. `missing_ok` passes over roots that are gone already."""

        def read(snapshot: Snapshot) -> Tree | None:
            try:
                return self._reader.tree(snapshot, keys=self._keys)
            except NotFound:
                if missing_ok:
                    return None
                raise

        held = Holdings()
        for tree in run_all(snapshots, read, what=what, progress=self._progress):
            if tree is not None:
                self._take(held, tree)
        return held

    def _take(self, held: Holdings, tree: Tree) -> None:
        held.trees += 1
        assert tree.snapshot is not None
        root = root_address(self._reader.location, tree.snapshot)
        if root is not None:
            held.roots[root] = int(tree.snapshot.snapshot_id)
        held.names.add(self.names_of(tree.content()))
        bounds = self._bounds_of(tree.root)
        for ref in leaf_refs(tree.root):
            address = paths.resolve(self._reader.location, ref.location)
            known = held.leaves.get(address)
            dead = ref.dead_positions()
            if known is None:
                held.leaves[address] = HeldLeaf(
                    ref=ref,
                    bounds=bounds[ref.row],
                    dead_in_all=dead,
                    dead_in_any=dead,
                )
            else:
                known.met(dead)

    def names_of(self, entries: EntryBatch) -> NamedFiles:
        """The files that entries name. Old vectors' entries name their Puffin file."""
        found = NamedFiles()
        if not entries.num_rows:
            return found
        location = self._reader.location
        addresses = paths.resolve_all(location, entries.column("location")).to_pylist()
        numbers = entries.numpy("tracking.sequence_number", missing=0)
        kinds = entries.numpy("content_type")
        vectors = entries.pylist("deletion_vector.location")
        ages = entries.pylist("tracking.modified_snapshot_id")
        bounds = self._bounds_of(entries)
        for index, address in enumerate(addresses):
            number = int(numbers[index])
            vector = vectors[index]
            if kinds[index] == ContentType.POSITION_DELETES and vector is not None:
                found.vectors[address] = min(number, found.vectors.get(address, number))
                continue
            found.files[address] = bounds[index]
            if kinds[index] != ContentType.DATA:
                found.deletes.add(address)
            if vector is not None:
                puffin = paths.resolve(location, vector)
                age = self._ages.get(ages[index], number) if ages[index] is not None else number
                found.vectors[puffin] = min(age, found.vectors.get(puffin, age))
        return found

    def _bounds_of(self, entries: EntryBatch) -> list[Bounds]:
        """Per entry its bounds in the columns that leaves are clustered by."""
        columns = [
            [
                None if low is None or high is None else (low, high)
                for low, high in zip(entries.pylist(lower), entries.pylist(upper), strict=True)
            ]
            for lower, upper in self._bounds
        ]
        if not columns:
            return [()] * entries.num_rows
        return list(zip(*columns, strict=True))

    def names_in(
        self, leaves: Sequence[tuple[HeldLeaf, Positions | None]], *, missing_ok: bool = False
    ) -> NamedFiles:
        """Names in leaves that are live in one of their roots; some positions, or all."""

        def read(item: tuple[HeldLeaf, Positions | None]) -> NamedFiles:
            held, only = item
            try:
                batch = self._reader.entries(held.ref, keys=self._keys)
            except NotFound:
                if missing_ok:
                    return NamedFiles()
                raise
            mask = tracking.live_mask(batch)
            mask[held.dead_in_all] = False
            if only is not None:
                chosen = np.zeros(batch.num_rows, dtype=np.bool_)
                chosen[only] = True
                mask &= chosen
            return self.names_of(batch.without(POSITION).filter(mask))

        total = NamedFiles()
        for names in run_all(leaves, read, what="leaves", progress=self._progress):
            total.add(names)
        return total

    def everything(self, snapshots: Sequence[Snapshot]) -> set[str]:
        """The address of every file that one of the snapshots reaches."""
        held = self.holdings(snapshots, what="roots")
        names = self.names_in([(leaf, None) for leaf in held.leaves.values()])
        names.add(held.names)
        return {*held.roots, *held.leaves, *names.files, *names.vectors}

    def only_in(self, gone: Holdings, kept: Holdings) -> Unreachable:
        """What the snapshots that go reach and those that stay do not."""
        wanted: list[tuple[HeldLeaf, Positions | None]] = []
        for address, leaf in gone.leaves.items():
            other = kept.leaves.get(address)
            if other is None:
                wanted.append((leaf, None))
            else:
                only = bitmap.difference(other.dead_in_all, leaf.dead_in_all)
                if only.size:
                    wanted.append((leaf, only))
        names = self.names_in(wanted, missing_ok=True)
        names.add(gone.names)
        names.drop(kept.names)
        if names:
            names.drop(self.names_in(_doubtful(names, gone, kept)))
        return Unreachable(
            roots=frozenset(gone.roots.keys() - kept.roots.keys()),
            leaves=frozenset(gone.leaves.keys() - kept.leaves.keys()),
            data_files=frozenset(names.files.keys() - names.deletes),
            delete_files=frozenset(names.files.keys() & names.deletes),
            vectors=frozenset(names.vectors),
        )


def _doubtful(
    names: NamedFiles, gone: Holdings, kept: Holdings
) -> list[tuple[HeldLeaf, Positions | None]]:
    """Leaves of the snapshots that stay which may hold one of the names."""
    hull = _hull(names.files.values())
    oldest = min(names.vectors.values(), default=None)
    doubtful: list[tuple[HeldLeaf, Positions | None]] = []
    for address, leaf in kept.leaves.items():
        if oldest is not None and leaf.ref.sequence_number >= oldest:
            doubtful.append((leaf, None))
            continue
        if not names.files or _are_apart(leaf.bounds, hull):
            continue
        other = gone.leaves.get(address)
        if other is None or other.roots < gone.trees:
            doubtful.append((leaf, None))
            continue
        only = bitmap.difference(other.dead_in_any, leaf.dead_in_all)
        if only.size:
            doubtful.append((leaf, only))
    return doubtful


def _hull(files: Iterable[Bounds]) -> Bounds:
    """The bounds of all files together; None in a column where they cannot be told."""
    return tuple(_enclosing(column) for column in zip(*files, strict=True))


def _enclosing(column: Sequence[tuple[Any, Any] | None]) -> tuple[Any, Any] | None:
    known = [pair for pair in column if pair is not None]
    kinds = {type(end) for pair in known for end in pair}
    if len(known) < len(column) or len(kinds) != 1:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _are_apart(leaf: Bounds, hull: Bounds) -> bool:
    """Whether a column tells that a leaf holds none of the files: their values do not meet."""
    for mine, its in zip(leaf, hull, strict=True):
        if mine is None or its is None or type(mine[0]) is not type(its[0]):
            continue
        if mine[1] < its[0] or its[1] < mine[0]:
            return True
    return False


def root_address(location: str, snapshot: Snapshot) -> str | None:
    """The address of a snapshot's root or manifest list; v1 snapshots may have neither."""
    if snapshot.root_manifest is not None:
        return paths.resolve(location, snapshot.root_manifest)
    if snapshot.manifest_list is not None:
        return manifest_list.address(location, snapshot.manifest_list)
    return None


def statistics_files(entries: Iterable[Mapping[str, Any]], location: str) -> dict[str, int | None]:
    """Addresses of statistics files, with the snapshot each is about."""
    found: dict[str, int | None] = {}
    for entry in entries:
        path = entry.get("statistics-path")
        about = entry.get("snapshot-id")
        if isinstance(path, str):
            found[manifest_list.address(location, path)] = None if about is None else int(about)
    return found
