"""Which files the snapshots of a request list, and whether the server may open them.

A client that writes its own metadata can list any path, and whoever scans or maintains the table
later would open it. So what a snapshot lists is checked before it becomes part of a table. Paths
without a scheme lie in the table; others must lie in places that the request may use, unless the
table lists them already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import pyarrow as pa

from frazil.commit.context import CommitContext
from frazil.commit.handle import new_snapshot_id, now_ms
from frazil.errors import NotFound
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import all_locations, named_files
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.legacy.read.legacy_decoder import LegacyDecoder
from frazil.serve.access.allowed_paths import Fence, FencedCache, storage_for
from frazil.serve.service import Service
from frazil.tree.read import Tree, TreeReader
from frazil.value_classes import dataclass

_PATHS = ("location", "deletion_vector.location")


def reader_of(service: Service, fence: Fence, metadata: TableMetadata) -> TreeReader:
    """What reads the trees of a table that need not be in the catalog."""
    return CommitContext(
        storage=storage_for(service, fence, metadata.location),
        location=metadata.location,
        cache=FencedCache(service.catalog._cache, fence),
        now_ms=now_ms,
        new_snapshot_id=new_snapshot_id,
        decoder=LegacyDecoder(),
    ).reader(metadata)


def check_listed(
    fence: Fence,
    reader: TreeReader,
    snapshots: Iterable[Snapshot],
    *,
    parents: Iterable[Snapshot] = (),
    older: Callable[[], Iterable[Snapshot]] = tuple,
) -> None:
    """Refuse snapshots that list a file outside a fence. Manifests that are not there list
    nothing.

    What the `parents` list is known: their leaves are not read again. The files of `older`
    snapshots may be listed again as well; they are read only if that decides.
    """
    listing = _Listing(
        reader=reader,
        part=lambda tree: tree.root,
        names=_absolute,
        is_refused=lambda path: path not in fence,
    )
    outside = listing.refused(snapshots, tuple(parents), older)
    if outside:
        fence.allowed(min(outside))


def strange_files(
    reader: TreeReader,
    snapshots: Iterable[Snapshot],
    *,
    own: tuple[str, ...],
    parents: Iterable[Snapshot] = (),
    older: Callable[[], Iterable[Snapshot]] = tuple,
) -> list[str]:
    """Files that snapshots list, and no snapshot before them, whose names do not start as those do
    that lie where the table writes: they may be another table's."""
    listing = _Listing(
        reader=reader,
        part=Tree.content,
        names=named_files,
        is_refused=lambda name: not name.startswith(own),
    )
    return sorted(listing.refused(snapshots, tuple(parents), older))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """What snapshots list: `names` of the entries of leaves and of a `part` of the root, some of
    which are refused."""

    reader: TreeReader
    part: Callable[[Tree], EntryBatch]
    names: Callable[[EntryBatch], list[str]]
    is_refused: Callable[[str], bool]

    def refused(
        self,
        snapshots: Iterable[Snapshot],
        parents: Sequence[Snapshot],
        older: Callable[[], Iterable[Snapshot]],
    ) -> set[str]:
        """What is refused and was not listed before."""
        leaves_read = {
            leaf.location for snapshot in parents for leaf in self._tree(snapshot).leaves()
        }
        refused: set[str] = set()
        for snapshot in snapshots:
            for names in self._listed(snapshot, leaves_read):
                strange = set(filter(self.is_refused, names))
                refused |= strange
                leaves_read |= strange  # a leaf that must not be opened is not
        for source in (lambda: parents, older):
            for snapshot in source() if refused else ():
                refused.difference_update(*self._listed(snapshot, set()))
        return refused

    def _listed(self, snapshot: Snapshot, read: set[str]) -> Iterator[list[str]]:
        """Names in a snapshot's root, then in its leaves but those that were read."""
        tree = self._tree(snapshot)
        yield self.names(self.part(tree))
        for leaf in tree.leaves():
            if leaf.location not in read:
                read.add(leaf.location)
                with suppress(NotFound):
                    yield self.names(self.reader.entries(leaf, keys=_PATHS))

    def _tree(self, snapshot: Snapshot) -> Tree:
        try:
            return self.reader.tree(snapshot, keys=_PATHS)
        except NotFound:
            return self.reader.tree(None)


def _absolute(batch: EntryBatch) -> list[str]:
    columns = [batch.column(key) for key in _PATHS]
    columns.append(pa.chunked_array([all_locations(batch)]))
    return [path for column in columns for path in paths.absolute_ones(column)]
