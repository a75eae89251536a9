"""Data files that a reader without checksums is about to read, verified as a whole beforehand.

A file is read once from end to end and compared with its seal, and is then remembered for as long
as the process lives and its size, its inode and the time of its last change stay the same. Only
local files are verified: bytes of an object store would have to be fetched twice. Files without a
seal come from other writers and are passed over.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from frazil.data.sources import check_whole, explained
from frazil.errors import FormatError
from frazil.storage import Storage, is_local, local_path, readers_at

QUERY_BYTES: Final = 256 << 20
"""How much of a table one query verifies: more would let those wait that read a few rows of it."""
MOST_REMEMBERED: Final = 1 << 16

_Version = tuple[int, int, int]


class _Remembered:
    """Files that were found whole, the latest ones. Safe to share between threads."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, _Version] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, path: str, version: _Version) -> bool:
        with self._lock:
            return self._files.get(path) == version

    def add(self, path: str, version: _Version) -> None:
        with self._lock:
            self._files[path] = version
            self._files.move_to_end(path)
            if len(self._files) > MOST_REMEMBERED:
                self._files.popitem(last=False)


_remembered = _Remembered()


def verify(
    storage: Storage, files: Iterable[tuple[str, int]], *, most_bytes: int | None = None
) -> int:
    """Refuse files, given by path and size, that are damaged. Returns how many bytes were read.

    With `most_bytes`, stops before the file that would exceed it; the files that follow are
    verified by later calls, because those that were are remembered.
    """
    chosen: list[tuple[str, _Version]] = []
    total = 0
    for path, version in _unknown(files):
        if most_bytes is not None and total + version[0] > most_bytes:
            break
        total += version[0]
        chosen.append((path, version))

    def check(file: tuple[str, _Version]) -> None:
        path, version = file
        with explained(path):
            check_whole(storage, path)
        _remembered.add(path, version)

    if len(chosen) < 2:
        for each in chosen:
            check(each)
    else:
        with ThreadPoolExecutor(min(len(chosen), readers_at(chosen[0][0]))) as pool:
            list(pool.map(check, chosen))
    return total


def _unknown(files: Iterable[tuple[str, int]]) -> Iterator[tuple[str, _Version]]:
    """Local files that were not verified yet, with their version."""
    for path, size in files:
        if not is_local(path):
            continue
        try:
            found = os.stat(local_path(path))
        except OSError:
            continue  # the reader says what is wrong with it
        if found.st_size != size:
            raise FormatError(
                f"the file has {found.st_size} bytes; the metadata records {size}. "
                "The data file was changed after it was committed",
                path=path,
            )
        version = (found.st_size, found.st_mtime_ns, found.st_ino)
        if not _remembered.has(path, version):
            yield path, version


__all__ = ["MOST_REMEMBERED", "QUERY_BYTES", "verify"]
