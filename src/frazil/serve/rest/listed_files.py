"""Which files the snapshots of a request list, and whether the server may open them.

A client that writes its own metadata can list any path, and whoever scans or maintains the table
later would open it. So what a snapshot lists is checked before it becomes part of a table. Paths
without a scheme lie in the table; others must lie in places that the request may use, unless the
table lists them already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
    parents = tuple(parents)
    known = {leaf.location for snapshot in parents for leaf in _tree(reader, snapshot).leaves()}
    outside: set[str] = set()
    for snapshot in snapshots:
        for listed in _listed(reader, snapshot, known):
            refused = {path for path in listed if path not in fence}
            outside |= refused
            known |= refused  # a leaf that must not be opened is not
    for source in (lambda: parents, older):
        for ancestor in source() if outside else ():
            outside.difference_update(*_listed(reader, ancestor, set()))
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
    parents = tuple(parents)
    known = {leaf.location for snapshot in parents for leaf in _tree(reader, snapshot).leaves()}
    strange: set[str] = set()
    for snapshot in snapshots:
        for names in _names(reader, snapshot, known):
            strange.update(name for name in names if not name.startswith(own))
    for source in (lambda: parents, older):
        for snapshot in source() if strange else ():
            strange.difference_update(*_names(reader, snapshot, set()))
    return sorted(strange)


def _names(reader: TreeReader, snapshot: Snapshot, known: set[str]) -> Iterator[list[str]]:
    """What a snapshot's root names, then what its leaves do but those that are known."""
    tree = _tree(reader, snapshot)
    yield named_files(tree.content())
    for leaf in tree.leaves():
        if leaf.location not in known:
            known.add(leaf.location)
            with suppress(NotFound):
                yield named_files(reader.entries(leaf, keys=_PATHS))


def _listed(reader: TreeReader, snapshot: Snapshot, known: set[str]) -> Iterator[list[str]]:
    """The whole addresses in a snapshot's root, then in its leaves but those that are known."""
    tree = _tree(reader, snapshot)
    yield _absolute(tree.root)
    for leaf in tree.leaves():
        if leaf.location not in known:
            known.add(leaf.location)
            with suppress(NotFound):
                yield _absolute(reader.entries(leaf, keys=_PATHS))


def _tree(reader: TreeReader, snapshot: Snapshot) -> Tree:
    try:
        return reader.tree(snapshot, keys=_PATHS)
    except NotFound:
        return reader.tree(None)


def _absolute(batch: EntryBatch) -> list[str]:
    columns = [batch.column(key) for key in _PATHS]
    columns.append(pa.chunked_array([all_locations(batch)]))
    return [path for column in columns for path in paths.absolute_ones(column)]
