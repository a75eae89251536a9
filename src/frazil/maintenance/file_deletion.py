"""Deleting files that a table owns, side by side. What it owns is decided in `catalog.ownership`;
everything that deletes files of a table after their commit goes through here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from frazil.catalog.ownership import Ownership, TablePlace
from frazil.commit.handle import TableHandle
from frazil.errors import FrazilError
from frazil.maintenance.progress import Progress, run_all, silent
from frazil.maintenance.reachable import Reach
from frazil.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """Files that are gone, and those that could not be deleted, with the reason."""

    paths: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


def ownership_of(handle: TableHandle) -> Ownership:
    """Which files are the own of a handle's table, as of now."""
    return Ownership.of(handle.head, handle.metadata, handle.location, name=handle.name)


def deletable(
    owned: Ownership, named: Iterable[str], storage: Storage, *, progress: Progress = silent
) -> set[str]:
    """Those of the files a table's metadata names that are its own, and that no table which
    shares a folder with it reaches."""
    mine = {path for path in named if owned.may_delete(path)}
    sharers: dict[str, tuple[TablePlace, set[str]]] = {}
    for path in mine:
        for place in owned.sharers(path):
            sharers.setdefault(place.location, (place, set()))[1].add(path)
    for place, candidates in sharers.values():
        in_use = _reached_by(place, owned, storage, progress)
        mine -= {p for p in candidates if in_use is None or owned.canonical(p) in in_use}
    return mine


def _reached_by(
    place: TablePlace, owned: Ownership, storage: Storage, progress: Progress
) -> set[str] | None:
    """Every file another table reaches, canonical; None when that cannot be told."""
    if place.open is None:
        return None
    try:
        head = place.open()
        other = TableHandle.of(place.name, head, storage, state=head.state)
        snapshots = list(head.snapshots())
        reach = Reach(other.reader(), snapshots=snapshots, progress=progress)
        return {owned.canonical(path) for path in reach.everything(snapshots)}
    except FrazilError:
        return None


def delete_all(storage: Storage, files: Iterable[str], *, progress: Progress = silent) -> Deleted:
    """Delete files side by side. One that fails is reported and left to orphan removal."""
    wanted: Sequence[str] = tuple(files)

    def delete(path: str) -> str | None:
        try:
            storage.delete(path)
        except FrazilError as error:
            return str(error)
        return None

    outcome = list(run_all(wanted, delete, what="files deleted", progress=progress))
    pairs = list(zip(wanted, outcome, strict=True))
    return Deleted(
        paths=tuple(path for path, problem in pairs if problem is None),
        failed=tuple((path, problem) for path, problem in pairs if problem is not None),
    )
