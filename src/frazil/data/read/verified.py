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
from typing import Final

from frazil.data.read.sources import check_rows, check_whole, explained
from frazil.errors import FormatError
from frazil.storage import Storage, is_local, local_path, readers_at
from frazil.threads import in_threads

QUERY_BYTES: Final = 256 << 20
"""How much of a table one query verifies: more would let those wait that read a few rows of it."""
MAX_REMEMBERED: Final = 1 << 16

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
            if len(self._files) > MAX_REMEMBERED:
                self._files.popitem(last=False)


_remembered = _Remembered()


def verify(
    storage: Storage, files: Iterable[tuple[str, int, int]], *, max_bytes: int | None = None
) -> int:
    """Refuse Parquet files, given by path, size and rows, that are damaged or have other numbers
    of rows. Returns how many bytes were read.

    With `max_bytes`, stops before the file that would exceed it; the files that follow are
    verified by later calls, because those that were are remembered.
    """
    chosen: list[tuple[str, int, _Version]] = []
    total = 0
    for path, rows, version in _unknown(files):
        if max_bytes is not None and total + version[0] > max_bytes:
            break
        total += version[0]
        chosen.append((path, rows, version))

    def check(file: tuple[str, int, _Version]) -> None:
        path, rows, version = file
        with explained(path):
            check_whole(storage, path)
            check_rows(storage, path, rows)
        _remembered.add(path, version)

    threads = readers_at(chosen[0][0]) if chosen else 1
    for _ in in_threads(chosen, check, threads=threads):
        pass
    return total


def unverified(files: Iterable[tuple[str, int, int]]) -> set[str]:
    """Paths of those that `verify` would read."""
    return {path for path, _, _ in _unknown(files)}


def _unknown(files: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, int, _Version]]:
    """Local files that were not verified yet, with their rows and version."""
    for path, size, rows in files:
        version = sized(path, size)
        if version is not None and not _remembered.has(path, version):
            yield path, rows, version


def sized(path: str, size: int) -> _Version | None:
    """Refuse a local file whose size is not as recorded; its version, if it is there."""
    if not is_local(path):
        return None
    try:
        status = os.stat(local_path(path))
    except OSError:
        return None  # the reader says what is wrong with it
    if status.st_size != size:
        raise FormatError(
            f"the file has {status.st_size} bytes; the metadata records {size}. "
            "The data file was changed after it was committed",
            path=path,
        )
    return status.st_size, status.st_mtime_ns, status.st_ino


__all__ = ["MAX_REMEMBERED", "QUERY_BYTES", "sized", "unverified", "verify"]
