"""Deleting files that a table owns, side by side. What it owns is decided in `catalog.ownership`;
everything that deletes files of a table after their commit goes through here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import pyarrow as pa

from frazil.catalog.ownership import Ownership, TablePlace
from frazil.commit.handle import TableHandle
from frazil.errors import FrazilError
from frazil.maintenance.progress import Progress, run_all, silent
from frazil.maintenance.removal.address_set import AddressSet, hashes_in
from frazil.maintenance.removal.reachable import Reach
from frazil.storage import Storage
from frazil.storage.base import delete_reporting
from frazil.value_classes import frozen

_DELETED_TOGETHER: Final = 1_000
_DELETED: Final = "files deleted"


@frozen
class Deleted:
    """Files that are gone, and those that could not be deleted, with the reason."""

    paths: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


def ownership_of(handle: TableHandle) -> Ownership:
    """Which files are the own of a handle's table, as of now."""
    return Ownership.of(handle.head, handle.metadata, handle.location, name=handle.name)


def deletable(
    owned: Ownership, files: Iterable[str], storage: Storage, *, progress: Progress = silent
) -> set[str]:
    """Those of the files a table's metadata names that are its own, and that no table which
    shares a folder with it reaches."""
    mine = {path for path in files if owned.may_delete(path)}
    sharers: dict[str, tuple[TablePlace, set[str]]] = {}
    for path in mine:
        for place in owned.sharers(path):
            sharers.setdefault(place.location, (place, set()))[1].add(path)
    for place, candidates in sharers.values():
        in_use = _reached_by(place, owned, storage, progress)
        if in_use is None:
            mine -= candidates
            continue
        names = pa.array(candidates, pa.string())
        held = in_use.holds(hashes_in(*owned.canonical_all(names)))
        mine.difference_update(names.filter(pa.array(held)).to_pylist())
    return mine


def _reached_by(
    place: TablePlace, owned: Ownership, storage: Storage, progress: Progress
) -> AddressSet | None:
    """Every file another table reaches, canonical; None when that cannot be told."""
    if place.open is None:
        return None
    try:
        head = place.open()
        neighbour = TableHandle.of(place.name, head, storage, state=head.state)
        snapshots = list(head.snapshots())
        reach = Reach(neighbour.reader(), snapshots=snapshots, progress=progress)
        return reach.everything(snapshots, spelling=owned.canonical_all)
    except FrazilError:
        return None


class Deleter(Protocol):
    """Deletes files, here or elsewhere."""

    def __call__(
        self, storage: Storage, files: Iterable[str], /, *, progress: Progress = silent
    ) -> Deleted: ...


def delete_all(
    storage: Storage, files: Iterable[str], /, *, progress: Progress = silent
) -> Deleted:
    """Delete files, many per request where the storage can. One that fails is reported and left to
    orphan removal."""
    paths = tuple(files)
    batches = deleted_together(paths)
    failed: dict[str, FrazilError] = {}
    deleted = 0
    problems = run_all(batches, lambda batch: delete_reporting(storage, batch), what=_DELETED)
    for batch, unfinished in zip(batches, problems, strict=True):
        failed |= unfinished
        deleted += len(batch)
        progress(deleted, len(paths), _DELETED)
    return Deleted(
        paths=tuple(path for path in paths if path not in failed),
        failed=tuple((path, str(problem)) for path, problem in failed.items()),
    )


def deleted_together(paths: Sequence[str]) -> list[Sequence[str]]:
    """Files in parts of what one request may delete."""
    starts = range(0, len(paths), _DELETED_TOGETHER)
    return [paths[start : start + _DELETED_TOGETHER] for start in starts]
