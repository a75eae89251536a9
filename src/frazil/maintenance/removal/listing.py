"""Every file below a folder, listed side by side where the storage can tell folders apart.

A listing of a million files is kept as columns (`ListedFiles`), folder by folder: a `FileInfo` with
its path takes about 300 bytes, a row of the columns a third of that. What takes a
request per file (size and age of local files) is looked up only for the files that are asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.maintenance.progress import Progress, run_all, silent
from frazil.maintenance.removal.address_set import Hashes, hashes_in_folder
from frazil.storage import FileInfo, Storage, is_local
from frazil.value_classes import frozen

_ENOUGH: Final = 16
_MAX_LEVELS: Final = 4
_UNKNOWN: Final = -1
_PAGE: Final = 1_000
"""What an object store lists in one request: a folder with no more is not worth several."""
_ROWS_TOGETHER: Final = 4_000


@runtime_checkable
class Browsable(Protocol):
    """A storage that can list one level."""

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Folders and files directly in a folder."""


@runtime_checkable
class Named(Protocol):
    """A storage that lists names for nothing, and tells sizes and ages file by file."""

    def names(self, folder: str) -> Iterator[tuple[str, Sequence[str]]]:
        """Folders with names of files directly in them, some thousands at a time."""

    def info(self, path: str) -> FileInfo | None:
        """About one file; None when it is gone."""


@frozen
class FolderPart:
    """Some files of one folder, by name; sizes and ages beside them where listing told."""

    folder: str
    names: Sequence[str]
    sizes: Sequence[int] | None = None
    modified_ms: Sequence[int] | None = None


class Lister(Protocol):
    """Lists every file below a folder."""

    def __call__(
        self, storage: Storage, folder: str, /, *, progress: Progress = silent
    ) -> Iterable[FolderPart]:
        """Every file below a folder."""


@frozen
class _Columns:
    """Some thousand files: the number of a folder, a name in it, what listing told besides, and the
    hash of the canonical address."""

    folders: npt.NDArray[np.int32]
    names: pa.Array
    sizes: npt.NDArray[np.int64]
    modified_ms: npt.NDArray[np.int64]
    hashes: Hashes


class ListedFiles:
    """Files as columns, in the order in which they were listed."""

    def __init__(self, parts: Iterable[FolderPart], *, canonical: Callable[[str], str]) -> None:
        """Take a listing, some thousand files at a time. `canonical` is of a folder."""
        self.folders: list[str] = []
        """Folders as they were listed."""
        self.places: list[str] = []
        """The same, canonical."""
        self._columns: list[_Columns] = []
        waiting: list[FolderPart] = []
        rows = 0
        for part in map(_with_text, parts):
            waiting.append(part)
            rows += len(part.names)
            if rows >= _ROWS_TOGETHER:
                self._columns.append(self._columns_of(waiting, canonical))
                waiting, rows = [], 0
        self._columns.append(self._columns_of(waiting, canonical))

    def _columns_of(self, parts: Sequence[FolderPart], canonical: Callable[[str], str]) -> _Columns:
        numbers, hashes = [], []
        for part in parts:
            if not self.folders or self.folders[-1] != part.folder:
                self.folders.append(part.folder)
                self.places.append(canonical(part.folder))
            numbers.append(np.full(len(part.names), len(self.folders) - 1, dtype=np.int32))
            hashes.append(hashes_in_folder(self.places[-1], part.names))
        none = np.zeros(0, dtype=np.int64)
        return _Columns(
            folders=np.concatenate([np.zeros(0, dtype=np.int32), *numbers]),
            names=pa.array([name for part in parts for name in part.names], pa.string()),
            sizes=np.concatenate([none, *(_numbers(p.sizes, len(p.names)) for p in parts)]),
            modified_ms=np.concatenate(
                [none, *(_numbers(p.modified_ms, len(p.names)) for p in parts)]
            ),
            hashes=np.concatenate([none, *hashes]),
        )

    @property
    def hashes(self) -> Hashes:
        """The hashes of canonical addresses (`address_set.hashes_in`)."""
        return np.concatenate([part.hashes for part in self._columns])

    def names_in(self, is_meant: Callable[[str], bool]) -> Iterator[tuple[str, pa.Array]]:
        """Names of files in the folders whose canonical address is meant, with that address."""
        is_relevant = np.array([is_meant(place) for place in self.places], dtype=np.bool_)
        for part in self._columns:
            for number in np.unique(part.folders[is_relevant[part.folders]]).tolist():
                yield self.places[number], part.names.filter(pa.array(part.folders == number))

    def paths(self, rows: npt.NDArray[np.int64] | None = None) -> Iterator[str]:
        """Paths as they were listed, of some files or of all."""
        numbers = np.concatenate([part.folders for part in self._columns])
        names = pa.chunked_array([part.names for part in self._columns])
        if rows is not None:
            numbers, names = numbers[rows], names.take(pa.array(rows))
        for number, name in zip(numbers.tolist(), names.to_pylist(), strict=True):
            yield f"{self.folders[number]}/{name}"

    def infos(self, rows: npt.NDArray[np.int64], storage: Storage) -> Iterator[FileInfo]:
        """About some of the files; those that are gone meanwhile are left out."""
        sizes = np.concatenate([part.sizes for part in self._columns])[rows].tolist()
        moments = np.concatenate([part.modified_ms for part in self._columns])[rows].tolist()
        for path, size, moment in zip(self.paths(rows), sizes, moments, strict=True):
            if moment != _UNKNOWN:
                yield FileInfo(path=path, size=size, modified_ms=moment)
            elif isinstance(storage, Named) and (info := storage.info(path)) is not None:
                yield info


def _with_text(part: FolderPart) -> FolderPart:
    """Without names that are no text: no table has such a file, and none is deleted."""
    try:
        "".join([part.folder, *part.names]).encode()
    except UnicodeEncodeError:
        if not _is_text(part.folder):
            return FolderPart(folder="", names=())
        return FolderPart(folder=part.folder, names=[n for n in part.names if _is_text(n)])
    return part


def _is_text(name: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def _numbers(values: Sequence[int] | None, count: int) -> npt.NDArray[np.int64]:
    if values is None:
        return np.full(count, _UNKNOWN, dtype=np.int64)
    return np.array(values, dtype=np.int64)


def list_files(
    storage: Storage, folder: str, *, progress: Progress = silent
) -> Iterator[FolderPart]:
    """Every file below a folder.

    Small folders of an object store are listed at once. Of others, levels are opened one after the
    other until there are enough folders to go side by side, each of which is then listed with all
    that is below it.
    """
    if is_local(folder) and isinstance(storage, Named):
        for number, (directory, names) in enumerate(storage.names(folder), start=1):
            progress(number, number, "folders listed")
            yield FolderPart(folder=directory, names=names)
        return
    if not isinstance(storage, Browsable):
        yield from by_folder(storage.list(folder))
        return
    few = list(islice(storage.list(folder), _PAGE + 1))
    if len(few) <= _PAGE:
        progress(1, 1, "folders listed")
        yield from by_folder(few)
        return
    folders: Sequence[str] = [folder]
    for _ in range(_MAX_LEVELS):
        below: list[str] = []
        for inner, direct in run_all(
            folders, storage.children, what="folders listed", progress=progress
        ):
            below += inner
            yield from by_folder(direct)
        folders = below
        if not folders or len(folders) >= _ENOUGH:
            break

    def whole(path: str) -> list[FolderPart]:
        return list(by_folder(storage.list(path)))

    for part in run_all(folders, whole, what="folders listed", progress=progress):
        yield from part


def by_folder(files: Iterable[FileInfo]) -> Iterator[FolderPart]:
    """Files of a listing, those of one folder that follow each other together."""
    for folder, in_folder in groupby(files, key=lambda file: file.path.rpartition("/")[0]):
        while infos := list(islice(in_folder, _ROWS_TOGETHER)):
            yield FolderPart(
                folder=folder,
                names=[info.path[len(folder) + 1 :] for info in infos],
                sizes=[info.size for info in infos],
                modified_ms=[info.modified_ms for info in infos],
            )
