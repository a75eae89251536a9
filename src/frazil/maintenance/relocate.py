"""Take a table to another place: its files are copied, and its relative paths stay true.

What the table names outside its own folder stays where it is and is read from there.
"""

from __future__ import annotations

from typing import Any

from frazil.catalog import export
from frazil.catalog.backend import CatalogBackend, TableHead
from frazil.catalog.names import Identifier
from frazil.commit.handle import TableHandle
from frazil.errors import AlreadyExists, CommitConflict, InvalidInput, Unsupported
from frazil.format import paths
from frazil.format.metadata.metadata import History, Snapshot, TableMetadata
from frazil.maintenance.progress import Progress, run_all, silent
from frazil.maintenance.removal.reachable import Reach, statistics_files
from frazil.storage import Places, Storage, checked_location
from frazil.value_classes import replace

_CHUNK = 8 * 1024 * 1024


def copy_table(
    handle: TableHandle, to: str, *, storage: Storage, progress: Progress = silent
) -> str:
    """Copy every file that a snapshot reaches; returns the metadata JSON at the new place.

    `catalog.register` opens it there.
    """
    place = checked_location(to)
    places = Places()
    current, target = places.folder(handle.location), places.folder(place)
    if target.startswith(current) or current.startswith(target):
        raise InvalidInput(f"{to} and {handle.location} overlap; choose another place")
    metadata = handle.refresh().metadata
    history = _history(handle)
    _check_relative(handle, history.snapshots)
    reach = Reach(handle.reader(), snapshots=history.snapshots, progress=progress)
    files: set[str] = set()
    for addresses in reach.addresses(list(history.snapshots)):
        files.update(addresses.to_pylist())
    files |= statistics_files(
        (*metadata.statistics, *metadata.partition_statistics), handle.location
    ).keys()
    mine = sorted(path for path in files if places.file(path).startswith(current))

    def copy(path: str) -> None:
        _copy(handle.storage, path, storage, f"{place}/{places.file(path)[len(current) :]}")

    for _ in run_all(mine, copy, what="files copied", progress=progress):
        pass
    moved = _relocated(metadata, handle.location, place)
    version = handle.state.version
    return export.render(moved, replace(history, metadata_log=()), version=version, storage=storage)


def move_table(
    handle: TableHandle, catalog: CatalogBackend, to: str, *, progress: Progress = silent
) -> TableHead:
    """Copy a table and let its name point at the copy; the old files stay to be deleted later."""
    handle.check_writable()
    version = handle.refresh().version
    name = Identifier.parse(handle.name)
    _check_free(handle, to)
    json = copy_table(handle, to, storage=catalog.storage(to), progress=progress)
    if handle.head.load().version != version:
        raise CommitConflict(
            f"{handle.name}: commits landed while it was copied; {to} is incomplete. "
            "Stop writers, empty the place and run it again"
        )
    catalog.drop(name)
    return catalog.register(name, json)


def _check_free(handle: TableHandle, to: str) -> None:
    """The name must not be left without a table because its new place is taken."""
    neighbours = getattr(handle.head, "neighbourhood", None)
    places = Places()
    for neighbour in () if neighbours is None else neighbours().tables:
        if places.folder(neighbour.location) == places.folder(to):
            raise AlreadyExists(f"{to}: is the location of table {neighbour.name}")


def _history(handle: TableHandle) -> History:
    history = getattr(handle.head, "history", None)
    if history is None:
        return History(snapshots=tuple(handle.head.snapshots()))
    recorded: History = history()
    return recorded


def _check_relative(handle: TableHandle, snapshots: tuple[Snapshot, ...]) -> None:
    """Manifests of v1 to v3 name their files by absolute path and cannot move."""
    reader = handle.reader()
    for snapshot in snapshots:
        is_old = snapshot.root_manifest is None or any(
            leaf.format_version == 0 for leaf in reader.tree(snapshot, keys=()).leaves()
        )
        if is_old:
            raise Unsupported(
                f"snapshot {snapshot.snapshot_id} has manifests of v1 to v3, whose paths are "
                "absolute; run rewrite_manifests and expire the snapshots before it",
                feature="moving manifests of v1 to v3",
            )


def _relocated(metadata: TableMetadata, old: str, place: str) -> TableMetadata:
    def entry(stated: Any) -> dict[str, Any]:
        path = stated.get("statistics-path")
        moved = {} if path is None else {"statistics-path": paths.relativise(old, path)}
        return {**stated, **moved}

    return replace(
        metadata.relocated(place),
        statistics=tuple(map(entry, metadata.statistics)),
        partition_statistics=tuple(map(entry, metadata.partition_statistics)),
    )


def _copy(source: Storage, path: str, target: Storage, to: str) -> None:
    opened = source.open(path)
    with target.create(to) as sink:
        for offset in range(0, opened.size, _CHUNK):
            sink.write(opened.read_at(offset, min(_CHUNK, opened.size - offset)))
