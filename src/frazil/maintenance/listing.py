"""Every file below a folder, listed side by side where the storage can tell folders apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from frazil.maintenance.progress import Progress, run_all, silent
from frazil.storage import FileInfo, Storage

_ENOUGH = 16
_MOST_LEVELS = 4


@runtime_checkable
class Browsable(Protocol):
    """A storage that can list one level."""

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Folders and files directly in a folder."""


class Lister(Protocol):
    """Lists every file below a folder."""

    def __call__(
        self, storage: Storage, folder: str, /, *, progress: Progress = silent
    ) -> list[FileInfo]:
        """Every file below a folder."""


def list_files(storage: Storage, folder: str, *, progress: Progress = silent) -> list[FileInfo]:
    """Every file below a folder.

    Levels are opened one after the other until there are enough folders to go side by side, each
    of which is then listed with all that is below it.
    """
    if not isinstance(storage, Browsable):
        return list(storage.list(folder))
    files: list[FileInfo] = []
    folders: Sequence[str] = [folder]
    for _ in range(_MOST_LEVELS):
        found = list(run_all(folders, storage.children, what="folders listed", progress=progress))
        files += [file for _, direct in found for file in direct]
        folders = [below for inner, _ in found for below in inner]
        if not folders or len(folders) >= _ENOUGH:
            break

    def whole(below: str) -> list[FileInfo]:
        return list(storage.list(below))

    for part in run_all(folders, whole, what="folders listed", progress=progress):
        files += part
    return files
