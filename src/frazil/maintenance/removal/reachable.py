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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import NotFound
from frazil.format import paths
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import all_locations
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.metadata.metadata import Snapshot
from frazil.format.metadata.summary_totals import has_column_files
from frazil.format.vectors import bitmap
from frazil.legacy.read import manifest_list
from frazil.maintenance.progress import Progress, run_all, silent
from frazil.maintenance.removal.address_set import AddressSet, hashes_in, hashes_of
from frazil.storage import readers_at
from frazil.tree.clusters import cluster_columns
from frazil.tree.read import POSITION, LeafRef, Tree, TreeReader, leaf_refs
from frazil.value_classes import dataclass, field, frozen

Bounds = tuple[tuple[Any, Any] | None, ...]
"""Lower and upper bound in each of a few columns; None where they are not known."""
BoundKeys = Sequence[tuple[str, str]]
"""The keys of lower and upper bound of each of these columns."""


@frozen(eq=False)
class NamedFiles:
    """`files` has the absolute address in `location`, beside the kind and the bounds of an entry.

    `vectors` are Puffin files with the least age (sequence number) they can have.
    """

    files: EntryBatch = field(default_factory=EntryBatch.empty)
    vectors: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def union(parts: Iterable[NamedFiles]) -> NamedFiles:
        """The names of all parts."""
        chosen = list(parts)
        vectors: dict[str, int] = {}
        for part in chosen:
            for name, age in part.vectors.items():
                vectors[name] = min(age, vectors.get(name, age))
        files = EntryBatch.concat((part.files for part in chosen), combine=False)
        return NamedFiles(files=files, vectors=vectors)

    def without(self, in_use: AddressSet) -> NamedFiles:
        """The names that are not among these addresses, as a file or as a Puffin file."""
        if not self or not len(in_use):
            return self
        # Chunk by chunk: the texts of one leaf at a time become Python's, to be hashed.
        chunks = self.files.column("location").chunks
        held = np.concatenate(
            [np.zeros(0, np.bool_), *(in_use.holds(hashes_of(c)) for c in chunks)]
        )
        names = pa.array(list(self.vectors), pa.string())
        unused = names.filter(pa.array(~in_use.holds(hashes_of(names)))).to_pylist()
        return NamedFiles(
            files=self.files.filter(~held),
            vectors={name: self.vectors[name] for name in unused},
        )

    def addresses(self) -> pa.ChunkedArray:
        """Every address, Puffin files first; some more than once."""
        files = self.files.column("location").cast(pa.string())
        return pa.chunked_array([pa.array(list(self.vectors), pa.string()), *files.chunks])

    def hull(self, keys: BoundKeys) -> Bounds:
        """The bounds of all files together; None in a column where they cannot be told."""
        return tuple(self._enclosing(lower, upper) for lower, upper in keys)

    def _enclosing(self, lower: str, upper: str) -> tuple[Any, Any] | None:
        lows, highs = self.files.column(lower), self.files.column(upper)
        if lows.null_count or highs.null_count or not len(lows):
            return None
        try:
            return pc.min(lows).as_py(), pc.max(highs).as_py()
        except pa.ArrowNotImplementedError:  # a type without an order
            return None

    def data_files(self) -> frozenset[str]:
        """Files with rows, each once."""
        return self._of_kind(is_data=True)

    def delete_files(self) -> frozenset[str]:
        """Files that delete rows, each once; Puffin files are in `vectors`."""
        return self._of_kind(is_data=False)

    def _of_kind(self, *, is_data: bool) -> frozenset[str]:
        mask = (self.files.numpy("content_type") == ContentType.DATA) == is_data
        return frozenset(self.files.filter(mask).column("location").unique().to_pylist())

    def __bool__(self) -> bool:
        return bool(self.files.num_rows or self.vectors)


Spelling = Callable[[pa.Array], tuple[pa.DictionaryArray, pa.Array]]
"""Writes addresses in the form in which they are compared: folders, and names in them."""
Positions = np.ndarray[Any, np.dtype[np.int64]]
_R = TypeVar("_R")
_COLUMNS = 3

_VECTOR = "deletion_vector.location"
_MODIFIED_BY = "tracking.modified_snapshot_id"
NAME_KEYS = ("location", "content_type", _VECTOR, "tracking.sequence_number", _MODIFIED_BY)


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


LeafPart = tuple[HeldLeaf, Positions | None]
"""A leaf, and the positions in it that matter; None: all that are live."""


@dataclass(slots=True, kw_only=True)
class Holdings:
    """What a group of snapshots holds: roots, leaves by address, and names in the roots."""

    roots: dict[str, int] = field(default_factory=dict)
    leaves: dict[str, HeldLeaf] = field(default_factory=dict)
    in_roots: list[NamedFiles] = field(default_factory=list)
    trees: int = 0
    has_column_files: bool = False

    def names(self) -> NamedFiles:
        """The names in all roots."""
        return NamedFiles.union(self.in_roots)


@frozen
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


def _as_they_are(addresses: pa.Array) -> pa.Array:
    return addresses


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
        self._leaf_reader = reader.keeping_nothing()
        self._progress = progress
        self._ages = {int(snapshot.snapshot_id): snapshot.sequence_number for snapshot in snapshots}
        columns = cluster_columns(reader.metadata)[:_COLUMNS]
        self._bounds = [
            (stats_key(id, "lower_bound"), stats_key(id, "upper_bound")) for id, _ in columns
        ]
        bounds = [key for pair in self._bounds for key in pair]
        self._keys = (*NAME_KEYS, *bounds)
        self._file_keys = ("location", "content_type", *bounds)

    def holdings(
        self,
        snapshots: Sequence[Snapshot],
        *,
        what: str,
        missing_ok: bool = False,
        keys: Sequence[str] | None = None,
    ) -> Holdings:
        """Read the roots of snapshots. `missing_ok` passes over roots that are gone already."""

        def read(snapshot: Snapshot) -> Tree | None:
            try:
                return self._reader.tree(snapshot, keys=self._keys if keys is None else keys)
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
        held.has_column_files |= has_column_files(tree.snapshot)
        root = root_address(self._reader.location, tree.snapshot)
        if root is not None:
            held.roots[root] = int(tree.snapshot.snapshot_id)
        held.in_roots.append(self.names_of(tree.content()))
        refs = leaf_refs(tree.root)
        bounds = self._bounds_at(tree.root, np.array([ref.row for ref in refs], dtype=np.int64))
        for ref, leaf_bounds in zip(refs, bounds, strict=True):
            address = paths.resolve(self._reader.location, ref.location)
            holding = held.leaves.get(address)
            dead = ref.dead_positions()
            if holding is None:
                held.leaves[address] = HeldLeaf(
                    ref=ref,
                    bounds=leaf_bounds,
                    dead_in_all=dead,
                    dead_in_any=dead,
                )
            else:
                holding.met(dead)

    def names_of(self, entries: EntryBatch) -> NamedFiles:
        """The files that entries name. Old vectors' entries name their Puffin file."""
        if not entries.num_rows:
            return NamedFiles()
        location = self._reader.location
        columns = paths.resolve_all(location, pa.chunked_array([all_locations(entries)]))
        resolved = paths.resolve_all(location, entries.column("location"))
        entries = entries.select(self._keys).with_column("location", resolved)
        vectors: dict[str, int] = {}
        pointing = entries.filter(np.asarray(pc.is_valid(entries.column(_VECTOR))))
        old = pointing.numpy("content_type") == ContentType.POSITION_DELETES
        self._add_vectors(vectors, pointing.filter(old), "location", by_snapshot=False)
        self._add_vectors(vectors, pointing.filter(~old), _VECTOR, by_snapshot=True)
        if old.any():
            is_old = entries.numpy("content_type") == ContentType.POSITION_DELETES
            entries = entries.filter(~(is_old & np.asarray(pc.is_valid(entries.column(_VECTOR)))))
        files = entries.select(self._file_keys)
        if len(columns):
            # Without bounds, as they say nothing of the leaves that name the file.
            locations = EntryBatch(pa.table({"location": columns})).with_constant("content_type", 0)
            files = EntryBatch.concat([files, locations])
        return NamedFiles(files=files, vectors=vectors)

    def _add_vectors(
        self, vectors: dict[str, int], entries: EntryBatch, key: str, *, by_snapshot: bool
    ) -> None:
        """Puffin files, each with its least age: that of the snapshot which wrote it, if known."""
        if not entries.num_rows:
            return
        columns = {
            "puffin": entries.column(key),
            "age": pa.array(entries.numpy("tracking.sequence_number", missing=0)),
            "by": entries.column(_MODIFIED_BY).cast(pa.int64()),
        }
        oldest = pa.table(columns).group_by(["puffin", "by"]).aggregate([("age", "min")])
        for row in oldest.to_pylist():
            address = paths.resolve(self._reader.location, row["puffin"])
            age = row["age_min"]
            if by_snapshot and row["by"] is not None:
                age = self._ages.get(row["by"], age)
            vectors[address] = min(age, vectors.get(address, age))

    def _bounds_at(self, entries: EntryBatch, rows: Positions) -> list[Bounds]:
        """The bounds of some entries in the columns that leaves are clustered by."""
        columns = [
            [
                None if low is None or high is None else (low, high)
                for low, high in zip(
                    entries.pylist(lower, rows), entries.pylist(upper, rows), strict=True
                )
            ]
            for lower, upper in self._bounds
        ]
        return list(zip(*columns, strict=True)) if columns else [()] * len(rows)

    def names_in(self, leaves: Sequence[LeafPart], *, missing_ok: bool = False) -> NamedFiles:
        """Names in leaves that are live in one of their roots; some positions, or all."""

        def read(item: LeafPart) -> NamedFiles:
            try:
                return self._names_in_leaf(*item, self._keys)
            except NotFound:
                if missing_ok:
                    return NamedFiles()
                raise

        return NamedFiles.union(self._in_threads(leaves, read))

    def _names_in_leaf(
        self, held: HeldLeaf, only: Positions | None, keys: Sequence[str]
    ) -> NamedFiles:
        batch = self._leaf_reader.entries(held.ref, keys=keys)
        mask = tracking.live_mask(batch)
        mask[held.dead_in_all] = False
        if only is not None:
            chosen = np.zeros(batch.num_rows, dtype=np.bool_)
            chosen[only] = True
            mask &= chosen
        return self.names_of(batch.without(POSITION).filter(mask))

    def everything(self, snapshots: Sequence[Snapshot], *, spelling: Spelling) -> AddressSet:
        """The address of every file that one of the snapshots reaches, by `hashes_in`."""
        return AddressSet(self._each_part(snapshots, lambda names: hashes_in(*spelling(names))))

    def addresses(self, snapshots: Sequence[Snapshot]) -> Iterator[pa.Array]:
        """The same as columns, one leaf after the other; some addresses more than once."""
        return self._each_part(snapshots, _as_they_are)

    def _each_part(
        self, snapshots: Sequence[Snapshot], work: Callable[[pa.Array], _R]
    ) -> Iterator[_R]:
        held = self.holdings(snapshots, what="roots", keys=NAME_KEYS)
        yield work(pa.array([*held.roots, *held.leaves], pa.string()))
        yield work(held.names().addresses().combine_chunks())
        leaves: list[LeafPart] = [(leaf, None) for leaf in held.leaves.values()]
        yield from self._in_leaves(leaves, work)

    def _in_leaves(
        self, leaves: Sequence[LeafPart], work: Callable[[pa.Array], _R]
    ) -> Iterator[_R]:
        """What `work` makes of the addresses of each leaf; only that is held."""

        def read(part: LeafPart) -> _R:
            return work(self._names_in_leaf(*part, NAME_KEYS).addresses().combine_chunks())

        return self._in_threads(leaves, read)

    def _in_threads(
        self, leaves: Sequence[LeafPart], read: Callable[[LeafPart], _R]
    ) -> Iterator[_R]:
        threads = readers_at(self._reader.location)
        return run_all(leaves, read, what="leaves", progress=self._progress, threads=threads)

    def only_in(self, gone: Holdings, retained: Holdings) -> Unreachable:
        """What the snapshots that go reach and those that stay do not."""
        parts: list[LeafPart] = []
        for address, leaf in gone.leaves.items():
            other = retained.leaves.get(address)
            if other is None:
                parts.append((leaf, None))
            else:
                only = bitmap.difference(other.dead_in_all, leaf.dead_in_all)
                if only.size:
                    parts.append((leaf, only))
        names = NamedFiles.union([self.names_in(parts, missing_ok=True), gone.names()])
        names = names.without(AddressSet.of(retained.names().addresses()))
        if names:
            doubtful = self._doubtful(names, gone, retained)
            names = names.without(AddressSet(self._in_leaves(doubtful, hashes_of)))
        return Unreachable(
            roots=frozenset(gone.roots.keys() - retained.roots.keys()),
            leaves=frozenset(gone.leaves.keys() - retained.leaves.keys()),
            data_files=names.data_files(),
            delete_files=names.delete_files(),
            vectors=frozenset(names.vectors),
        )

    def _doubtful(self, names: NamedFiles, gone: Holdings, retained: Holdings) -> list[LeafPart]:
        """Leaves of the snapshots that stay which may hold one of the names.

        Bounds of a file enclose its values, whichever entry states them. So every leaf that holds
        the file has bounds that meet the file's, and one whose bounds lie apart does not hold it.
        Column files give a file other values: bounds say nothing where there are any.
        """
        is_bounded = not (gone.has_column_files or retained.has_column_files)
        hull = names.hull(self._bounds if is_bounded else ())
        oldest = min(names.vectors.values(), default=None)
        doubtful: list[LeafPart] = []
        for address, leaf in retained.leaves.items():
            if oldest is not None and leaf.ref.sequence_number >= oldest:
                doubtful.append((leaf, None))
                continue
            if not names.files.num_rows or (is_bounded and _are_apart(leaf.bounds, hull)):
                continue
            other = gone.leaves.get(address)
            if other is None or other.roots < gone.trees:
                doubtful.append((leaf, None))
                continue
            only = bitmap.difference(other.dead_in_any, leaf.dead_in_all)
            if only.size:
                doubtful.append((leaf, only))
        return doubtful


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
    files: dict[str, int | None] = {}
    for entry in entries:
        path = entry.get("statistics-path")
        about = entry.get("snapshot-id")
        if isinstance(path, str):
            files[manifest_list.address(location, path)] = None if about is None else int(about)
    return files
