"""Which files the snapshots of a request list, and whether the server may open them.

A client that writes its own metadata can list any path, and whoever scans or maintains the table
later would open it. So what a snapshot lists is checked before it becomes part of a table. Paths
without a scheme lie in the table; others must lie in places that the request may use, unless the
table lists them already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from frazil.commit.handle import new_snapshot_id, now_ms
from frazil.commit.surroundings import Surroundings
from frazil.errors import NotFound
from frazil.format import paths
from frazil.format.batch import EntryBatch
from frazil.format.metadata import Snapshot, TableMetadata
from frazil.legacy.legacy_decoder import LegacyDecoder
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service
from frazil.tree.read import Tree, TreeReader

Check = Callable[[str], None]
_PATHS = ("location", "deletion_vector.location")


def reader_of(service: Service, metadata: TableMetadata) -> TreeReader:
    """What reads the trees of a table that need not be in the catalog."""
    return Surroundings(
        storage=service.catalog._pointers.storage(metadata.location),
        location=metadata.location,
        cache=service.catalog._cache,
        now_ms=now_ms,
        new_snapshot_id=new_snapshot_id,
        decoder=LegacyDecoder(),
    ).reader(metadata)


def check_listed(
    check: Check,
    reader: TreeReader,
    snapshots: Iterable[Snapshot],
    *,
    parents: Iterable[Snapshot] = (),
    older: Callable[[], Iterable[Snapshot]] = tuple,
) -> None:
    """Refuse snapshots that list a file which `check` refuses. Manifests that are not there list
    nothing.

    What the `parents` list is known: their leaves are not read again. The files of `older`
    snapshots may be listed again as well; they are read only if that decides.
    """
    parents = tuple(parents)
    known = {leaf.location for each in parents for leaf in _tree(reader, each).leaves()}
    found: set[str] = set()
    for snapshot in snapshots:
        for listed in _listed(reader, snapshot, known):
            refused = _failing(check, listed)
            found |= refused
            known |= refused  # a leaf that must not be opened is not
    for source in (lambda: parents, older):
        for each in source() if found else ():
            found.difference_update(*_listed(reader, each, set()))
    if found:
        check(min(found))


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


def _failing(check: Check, listed: Iterable[str]) -> set[str]:
    found = set()
    for path in listed:
        try:
            check(path)
        except RestError:
            found.add(path)
    return found


def _absolute(batch: EntryBatch) -> list[str]:
    return [path for key in _PATHS for path in paths.absolute_ones(batch.column(key))]
