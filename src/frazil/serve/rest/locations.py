"""Places that a request names (of a namespace, of a table, of what it registers), and the files
that its snapshots list.

A client that writes its own metadata can list any path, and whoever scans or maintains the table
later would open it. So what a snapshot lists is checked before it becomes part of a table. Paths
without a scheme lie in the table; others must lie in places that the request may use, unless the
table lists them already.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from frazil.catalog import export
from frazil.catalog.names import Identifier, Namespace, namespace_location
from frazil.commit.context import CommitContext
from frazil.commit.handle import new_snapshot_id, now_ms
from frazil.errors import AlreadyExists, FormatError, InvalidInput, NotFound
from frazil.format import paths
from frazil.format.checks import CLIENT_FOLDER, added_folders, client_location
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import all_locations, named_files
from frazil.format.metadata.definition_checks import check_shape
from frazil.format.metadata.metadata import History, Snapshot, TableMetadata
from frazil.legacy.publish.published import FOLDER
from frazil.legacy.read.legacy_decoder import LegacyDecoder
from frazil.properties.registry import SERVE_LOCATION
from frazil.serve.access.allowed_paths import (
    LOCATION,
    Fence,
    FencedCache,
    canonical,
    folders_of,
    location_of,
    request_fence,
    storage_for,
)
from frazil.serve.exchange import Request
from frazil.serve.rest_errors import bad_request
from frazil.serve.service import Service
from frazil.tree.read import Tree, TreeReader
from frazil.value_classes import field, frozen, replace

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
    own_folders: tuple[str, ...],
    parents: Iterable[Snapshot] = (),
    older: Callable[[], Iterable[Snapshot]] = tuple,
) -> list[str]:
    """Files that snapshots list, and no snapshot before them, whose names do not start as those do
    that lie where the table writes: they may be another table's."""
    listing = _Listing(
        reader=reader,
        part=Tree.content,
        names=named_files,
        is_refused=lambda name: not name.startswith(own_folders),
    )
    return sorted(listing.refused(snapshots, tuple(parents), older))


@frozen
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


def check_namespace(
    service: Service, call: Request, namespace: Namespace, properties: Mapping[str, str]
) -> None:
    """Tables of a namespace go where its property says: refuse a place that is not allowed."""
    if LOCATION in properties:
        above = namespace[:-1]
        others = [location_of(service, above)] if above else []
        request_fence(service, call, namespace, table=others).allowed(properties[LOCATION])


def default_location(service: Service, namespace: Namespace) -> str | None:
    """Where tables of a namespace go that says nothing of it; None without a warehouse."""
    warehouse = service.pointers.warehouse
    return None if warehouse is None else namespace_location(warehouse, namespace)


@frozen
class NewPlace:
    """Where a new table lies, and properties that say where its clients write if not there."""

    location: str
    properties: Mapping[str, str] = field(default_factory=dict)


def place_of(
    service: Service, call: Request, identifier: Identifier, asked: str | None
) -> NewPlace:
    """Where a table goes for which a client asked for a location, or for none. What was asked for
    is what clients see; the table's own metadata lies elsewhere, as it must not lie there."""
    if asked is None:
        return NewPlace(location=service.pointers.location_for(identifier))
    asked = asked.rstrip("/")
    fence = request_fence(service, call, identifier.namespace)
    fence.allowed(asked)
    above, _, last = asked.rpartition("/")
    if last == CLIENT_FOLDER and above in fence and service.pointers.is_free(above):
        return NewPlace(location=above)  # what a staged table was shown
    if service.pointers.warehouse is None:
        return NewPlace(location=asked)
    default = service.pointers.location_for(identifier)
    if canonical(default) == canonical(asked):
        default = f"{default}-{uuid.uuid4().hex[:8]}"
    elif canonical(default).startswith(canonical(asked)):
        return NewPlace(location=asked)
    client = service.pointers.client_of(asked)
    if client is not None:
        raise AlreadyExists(f"{asked}: is the location of table {client}")
    return NewPlace(location=default, properties={SERVE_LOCATION.key: asked})


def check_properties(fence: Fence, location: str, properties: Mapping[str, str]) -> None:
    """Refuse properties that send a table's files to a place that is not allowed."""
    for folder in (*folders_of(location, properties), *added_folders(properties)):
        fence.allowed(folder)


def check_unshared(
    sharing: Callable[[str], str | None], location: str, properties: Mapping[str, str]
) -> None:
    """Refuse a property that shows clients a location in which another table has a folder: they
    remove files there that their table does not name."""
    if properties.get(SERVE_LOCATION.key):
        place = client_location(location, properties)
        if sharing(place) is not None:
            raise bad_request(f"{place}: is in use by another table; choose another location")


def read_registered(
    service: Service,
    call: Request,
    namespace: Namespace,
    metadata_location: str,
    *,
    location: str | None = None,
) -> tuple[TableMetadata, History]:
    """Metadata to register. Refuses what leads elsewhere: by the table's location, by folders that
    its properties name, or by the manifests and files of a snapshot."""
    fence = request_fence(service, call, namespace)
    storage = storage_for(service, fence, metadata_location)
    try:
        metadata, history = export.read_moved(metadata_location, storage=storage, location=location)
    except FormatError as error:
        raise InvalidInput(str(error)) from error
    check_properties(fence, metadata.location, metadata.properties)
    for snapshot in history.snapshots:
        check_files(fence, metadata, snapshot)
    check_listed(fence, reader_of(service, fence, metadata), history.snapshots)
    check_shape(metadata)
    above, _, last = metadata.location.rpartition("/")
    if last == CLIENT_FOLDER and metadata_location.startswith(f"{above}/{FOLDER}/"):
        metadata = replace(metadata, location=above)  # a document that clients were shown
    return metadata, history


def check_files(fence: Fence, metadata: TableMetadata, snapshot: Snapshot) -> None:
    """Refuse a snapshot whose own files lie elsewhere."""
    for name in (snapshot.root_manifest, snapshot.manifest_list, *(snapshot.manifests or ())):
        if name is not None:
            fence.allowed(_address(metadata, name))


def _address(metadata: TableMetadata, name: str) -> str:
    return name if name.startswith("/") else paths.resolve(metadata.location, name)
