"""A table's storage as a file system that DuckDB can read from; every range read is counted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem

from frazil.storage import Storage


class StorageFiles(AbstractFileSystem):  # type: ignore[misc]
    """Files of a storage under `<protocol>://`. Sizes are known from metadata, so none is asked
    for; paths are taken as they are, not as patterns."""

    cachable = False

    def __init__(self, storage: Storage, sizes: Mapping[str, int], protocol: str) -> None:
        super().__init__()
        self.protocol = protocol
        self._storage = storage
        self._sizes = sizes

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
        return self._storage.open(name, size=self._sizes.get(name)).arrow()

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
