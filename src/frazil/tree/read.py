"""Open a snapshot's root and stream its leaves.

Here is the one switch on how a manifest is stored (by v4 itself, or by an older version, which the
`ManifestDecoder` reads), the one thread pool, and the cache of decoded manifests. Everything above
sees `EntryBatch` columns with explicit tracking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from frazil import arrow_values, cancellation
from frazil.errors import FormatError, Unsupported
from frazil.format import paths
from frazil.format.entries import manifest, tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.format.vectors import bitmap
from frazil.storage import Storage, readers_at
from frazil.threads import in_threads
from frazil.tree.cache import ManifestCache
from frazil.value_classes import frozen

POSITION = "@position"
"""In-memory column of leaf batches: the entry's position in its leaf."""
LEAF = "@leaf"
"""In-memory column: location of the leaf an entry was read from; null in the root."""

_FIRST = arrow_values.scalar(0, pa.int32())
_T = TypeVar("_T")
_R = TypeVar("_R")

Positions: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class ManifestDecoder(Protocol):
    """Manifests of older format versions as v4 sees them: those of an upgraded table, and of tables
    of other writers. The package that knows such a format implements it, and the code that opens a
    table passes it to the reader. Stateless and picklable, as readers travel to other processes.
    """

    def root(self, reader: TreeReader, snapshot: Snapshot) -> EntryBatch:
        """The manifests of a snapshot without a v4 root, as the entries of a root."""
        ...

    def entries(
        self, reader: TreeReader, leaf: LeafRef, keys: Collection[str] | None
    ) -> EntryBatch:
        """The entries of a manifest with format version 0, in file order, dead ones included."""
        ...

    def deleted_rows(
        self, reader: TreeReader, tree: Tree, locations: Collection[str]
    ) -> dict[str, Positions]:
        """By location, the rows that delete files of such manifests retire."""
        ...


@frozen
class LeafRef:
    """A manifest entry of a root: all that is needed to open the leaf."""

    row: int
    location: str
    content_type: ContentType
    format_version: int
    file_format: str
    record_count: int
    file_size_in_bytes: int
    spec_id: int | None
    snapshot_id: int
    sequence_number: int
    first_row_id: int | None
    dv: bytes | None
    referenced_file: str | None

    @property
    def dead(self) -> int:
        """How many positions the manifest deletion vector retires."""
        if not self.dv:
            return 0
        return bitmap.cardinality(self.dv, path=self.location, field="manifest_info.dv")

    def dead_positions(self) -> np.ndarray[Any, np.dtype[Any]]:
        """The positions that the manifest deletion vector retires."""
        if not self.dv:
            return np.zeros(0, dtype=np.int64)
        return bitmap.decode(
            self.dv, limit=self.record_count, path=self.location, field="manifest_info.dv"
        )


@frozen
class Tree:
    """One snapshot's root. `root` holds every entry, dead ones of this snapshot included."""

    snapshot: Snapshot | None
    root: EntryBatch

    def leaves(self) -> tuple[LeafRef, ...]:
        """The manifest entries that are part of the snapshot."""
        return leaf_refs(self.root)

    def content(self) -> EntryBatch:
        """Live data and delete files listed in the root itself."""
        return self.root.filter(tracking.live_mask(self.root) & ~tracking.leaf_mask(self.root))


def leaf_refs(
    root: EntryBatch, rows: np.ndarray[Any, np.dtype[Any]] | None = None
) -> tuple[LeafRef, ...]:
    """Live manifest entries of a root as values: all of them, or those at ascending `rows`."""
    if rows is None:
        rows = np.flatnonzero(tracking.live_mask(root) & tracking.leaf_mask(root))
    if not rows.size:
        return ()
    columns = {name: root.pylist(key, rows) for name, key in _REF_KEYS.items()}
    return tuple(
        LeafRef(
            row=int(row),
            content_type=ContentType(columns["content_type"][index]),
            **{name: columns[name][index] for name in columns if name != "content_type"},
        )
        for index, row in enumerate(rows)
    )


_REF_KEYS = {
    "location": "location",
    "content_type": "content_type",
    "format_version": "manifest_info.format_version",
    "file_format": "file_format",
    "record_count": "record_count",
    "file_size_in_bytes": "file_size_in_bytes",
    "spec_id": "spec_id",
    "snapshot_id": "tracking.snapshot_id",
    "sequence_number": "tracking.sequence_number",
    "first_row_id": "tracking.first_row_id",
    "dv": "manifest_info.dv",
    "referenced_file": "referenced_file",
}

ROOT_KEYS = frozenset(_REF_KEYS.values()) | {
    "tracking.status",
    "tracking.deleted_positions",
    "tracking.replaced_positions",
}
"""Columns of a root that reading the tree always needs."""

_ALWAYS = frozenset({"content_type", "tracking.status"})
_INHERITED = frozenset(
    {
        "tracking.snapshot_id",
        "tracking.sequence_number",
        "tracking.file_sequence_number",
        "tracking.first_row_id",
    }
)
_ROW_IDS = "tracking.first_row_id"


class TreeReader:
    """Reads the trees of one table. Holds no snapshot; cheap to make, safe to share."""

    def __init__(
        self,
        storage: Storage,
        metadata: TableMetadata,
        *,
        location: str,
        cache: ManifestCache | None = None,
        decoder: ManifestDecoder | None = None,
    ) -> None:
        self.storage = storage
        self.metadata = metadata
        self.location = location
        self.cache = cache if cache is not None else ManifestCache()
        self.decoder = decoder

    def keeping_nothing(self) -> TreeReader:
        """The same reader without a cache, for work that reads every leaf once."""
        return TreeReader(
            self.storage,
            self.metadata,
            location=self.location,
            cache=ManifestCache(0),
            decoder=self.decoder,
        )

    def tree(self, snapshot: Snapshot | None, *, keys: Collection[str] | None = None) -> Tree:
        """The snapshot's root: whole, or with the columns of `keys` and those always needed."""
        if snapshot is None:
            return Tree(snapshot=None, root=EntryBatch.empty())
        entry_keys = None if keys is None else ROOT_KEYS | frozenset(keys)
        if snapshot.root_manifest is not None:
            path = paths.resolve(self.location, snapshot.root_manifest)
            root = self.cache.fetch(path, entry_keys, lambda part: self._read_root(path, part))
        else:
            name = snapshot.manifest_list or f"snapshot {snapshot.snapshot_id}"
            root = self.cache.fetch(
                self._own(name), None, lambda _: self.older(name).root(self, snapshot)
            )
        return Tree(snapshot=snapshot, root=root)

    def _read_root(self, path: str, keys: Collection[str] | None) -> EntryBatch:
        source = self.cache.opened(path, lambda: self.storage.open(path))
        root = manifest.decode(source, path=path, keys=keys, limits=self.storage.limits)
        if root.content != "root":
            raise FormatError(f"content is {root.content!r}; expected root", path=path)
        return root.batch

    def older(self, name: str) -> ManifestDecoder:
        """What reads manifests of versions before 4; `name` is the file that needs it."""
        if self.decoder is None:
            raise Unsupported(
                f"{name}: is of a format version before 4, and this reader was given no decoder",
                feature="manifests before format-version 4",
            )
        return self.decoder

    def entries(self, leaf: LeafRef, *, keys: Collection[str] | None = None) -> EntryBatch:
        """Every entry of a leaf, dead ones included, with explicit tracking and its position."""
        leaf_keys: frozenset[str] | None = None
        if keys is not None:
            leaf_keys = _ALWAYS.union(keys)
        path = paths.resolve(self.location, leaf.location)
        known_as = self._own(path) if leaf.format_version == 0 else path
        # What entries inherit is kept with them, and so are the columns it was worked out from.
        inherited = f"{leaf.snapshot_id} {leaf.sequence_number} {leaf.first_row_id}"
        batch = self.cache.fetch(
            f"{known_as}\n{inherited}", leaf_keys, lambda part: self._explicit(leaf, path, part)
        )
        if batch.num_rows != leaf.record_count:
            raise FormatError(
                f"the leaf has {batch.num_rows} entries; its root says {leaf.record_count}",
                path=path,
                field="record_count",
            )
        return batch

    def _explicit(self, leaf: LeafRef, path: str, keys: Collection[str] | None) -> EntryBatch:
        """Entries of a leaf with what they inherit from its entry in the root."""
        if keys is not None and _ROW_IDS in keys:
            keys = {*keys, "record_count"}  # from which row ids are counted on
        batch = self._read_leaf(leaf, path, keys)
        if keys is None or not _INHERITED.isdisjoint(keys):
            batch = tracking.inherit(
                batch,
                snapshot_id=leaf.snapshot_id,
                sequence_number=leaf.sequence_number,
                first_row_id=leaf.first_row_id,
                keys=keys,
            )
        return batch.with_column(POSITION, _positions(batch.num_rows))

    def _own(self, name: str) -> str:
        """The cache key of an old manifest: its paths are decoded as seen from this table."""
        return f"{self.location}\n{name}"

    def _read_leaf(self, leaf: LeafRef, path: str, keys: Collection[str] | None) -> EntryBatch:
        if leaf.format_version == 0:
            return self.older(path).entries(self, leaf, keys)
        source = self.cache.opened(
            path, lambda: self.storage.open(path, size=leaf.file_size_in_bytes)
        )
        return manifest.decode(source, path=path, keys=keys, limits=self.storage.limits).batch

    def live(self, leaf: LeafRef, *, keys: Collection[str] | None = None) -> EntryBatch:
        """The entries of a leaf that are part of the snapshot."""
        batch = self.entries(leaf, keys=keys)
        mask = tracking.live_mask(batch)
        if leaf.dv:
            mask = mask.copy()
            mask[leaf.dead_positions()] = False
        return batch.filter(mask)

    def map(
        self, leaves: Sequence[_T], work: Callable[[_T], _R], *, parallel: bool = True
    ) -> Iterator[_R]:
        """Apply `work` to leaves, in order, across threads when there are several."""
        threads = readers_at(self.location) if parallel else 1
        for result in in_threads(leaves, work, threads=threads):
            cancellation.check()
            yield result

    def revisions(self, tree: Tree) -> dict[str, int]:
        """How many manifests of a tree have each revision of the format, from their footers. Those
        of v1 to v3 have none and are left out."""
        leaves = [leaf for leaf in tree.leaves() if leaf.format_version > 0]
        places = [(leaf.location, leaf.file_size_in_bytes) for leaf in leaves]
        revisions = Counter(self.map(places, lambda place: self._revision(*place)))
        if tree.snapshot is not None and tree.snapshot.root_manifest is not None:
            revisions[self._revision(tree.snapshot.root_manifest, None)] += 1
        return dict(sorted(revisions.items()))

    def _revision(self, location: str, size: int | None) -> str:
        path = paths.resolve(self.location, location)
        about = manifest.describe(self.storage.open(path, size=size).arrow(), path=path)
        return str(about["revision"])

    def all_live(self, tree: Tree, *, keys: Collection[str] | None = None) -> Iterator[EntryBatch]:
        """Live file entries of the whole tree, one batch per manifest, the root's first."""
        yield labelled(tree.content(), None)
        leaves = tree.leaves()
        for leaf, batch in zip(
            leaves, self.map(leaves, lambda ref: self.live(ref, keys=keys)), strict=True
        ):
            yield labelled(batch, leaf)


@lru_cache(maxsize=4)
def _positions(rows: int) -> pa.Array:
    """Most leaves are of one size, so they share their positions."""
    return arrow_values.array(np.arange(rows, dtype=np.int64))


def labelled(batch: EntryBatch, leaf: LeafRef | None) -> EntryBatch:
    """The batch with a column that names the leaf its entries came from."""
    if leaf is None:
        indices, names = pa.nulls(batch.num_rows, pa.int32()), arrow_values.array([], pa.string())
    else:
        indices = arrow_values.repeat(_FIRST, batch.num_rows)
        names = arrow_values.array([leaf.location])
    return batch.with_column(LEAF, pa.DictionaryArray.from_arrays(indices, names))


def data_leaves(leaves: Iterable[LeafRef]) -> list[LeafRef]:
    """Those that list data files."""
    return [leaf for leaf in leaves if leaf.content_type is ContentType.DATA_MANIFEST]


def delete_leaves(leaves: Iterable[LeafRef]) -> list[LeafRef]:
    """Those that list delete files."""
    return [leaf for leaf in leaves if leaf.content_type is ContentType.DELETE_MANIFEST]


def equality_deletes(reader: TreeReader, tree: Tree, *, younger_than: int) -> EntryBatch:
    """The equality deletes in force whose sequence number is larger than the one given."""
    leaves = [leaf for leaf in delete_leaves(tree.leaves()) if leaf.sequence_number > younger_than]
    batches = [tree.content(), *reader.map(leaves, reader.live)]
    return EntryBatch.concat(
        batch.filter(
            (batch.numpy("content_type") == ContentType.EQUALITY_DELETES)
            & (batch.numpy("tracking.sequence_number") > younger_than)
        )
        for batch in batches
    )


__all__ = [
    "LEAF",
    "POSITION",
    "ROOT_KEYS",
    "LeafRef",
    "Tree",
    "TreeReader",
    "data_leaves",
    "delete_leaves",
    "equality_deletes",
    "labelled",
    "leaf_refs",
]
