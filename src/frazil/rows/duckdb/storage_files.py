"""A table's storage as a file system that DuckDB can read from; every range read is counted."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from fsspec import AbstractFileSystem

from frazil.rows.duckdb.duckdb_failures import kept
from frazil.storage import Storage

_MAX_FIRST: Final = 8


class _SharedFile:
    """A file that several threads read from."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._lock = threading.Lock()

    def read_at(self, offset: int, size: int) -> bytes:
        """The bytes of a range."""
        with kept(), self._lock:
            self._file.seek(offset)
            return bytes(self._file.read(size))


class _OpenFile:
    """A file as DuckDB opened it. Its threads share it and each of them seeks and then reads, so
    every thread has a place of its own."""

    def __init__(self, file: _SharedFile) -> None:
        self._file = file
        self._places = threading.local()

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data = self._file.read_at(self.tell(), size)
        self._places.offset = self.tell() + len(data)
        return data

    def seek(self, offset: int) -> int:
        """Go to an offset from the start."""
        self._places.offset = offset
        return offset

    def tell(self) -> int:
        """The offset."""
        return int(getattr(self._places, "offset", 0))

    def close(self) -> None:
        """The file goes with the last that uses it."""


class StorageFiles(AbstractFileSystem):  # type: ignore[misc]
    """Files of a storage under `<protocol>://`. Sizes are known from metadata, so none is asked
    for; paths are taken as they are, not as patterns."""

    cachable = False

    def __init__(self, storage: Storage, sizes: Mapping[str, int], protocol: str) -> None:
        super().__init__()
        self.protocol = protocol
        self._storage = storage
        self._sizes = sizes
        self._first: dict[str, _SharedFile] = {}
        """The first files that were opened, to bind a query: their footers are needed again."""

    def address(self, path: str) -> str:
        """How DuckDB is to name a file."""
        return f"{self.protocol}://{path}"

    def _path(self, address: str) -> str:
        return address.removeprefix(f"{self.protocol}://")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        """The file for range reads."""
        name = self._path(path)
        shared = self._first.get(name)
        if shared is None:
            with kept():
                file = self._storage.open(name, size=self._sizes.get(name)).arrow()
            shared = _SharedFile(file)
            if len(self._first) < _MAX_FIRST:
                self._first[name] = shared
        return _OpenFile(shared)

    def glob(self, path: str, **options: Any) -> list[str]:
        """The path itself."""
        return [path]

    def exists(self, path: str, **options: Any) -> bool:
        """Whether the scan has this file."""
        return self._path(path) in self._sizes

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Name and size."""
        return {"name": path, "size": self._sizes.get(self._path(path)), "type": "file"}

    def modified(self, path: str) -> datetime:
        """Always the same: data files are never changed."""
        return datetime(1970, 1, 1, tzinfo=UTC)
