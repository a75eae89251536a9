"""Files of schemes that obstore does not serve, through PyIceberg's FileIO; the only module that
knows its classes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from frazil.credentials import ConnectionProperties
from frazil.errors import StorageError, Unsupported
from frazil.limits import Limits
from frazil.storage.base import Counted, FileInfo, RandomAccess, explained
from frazil.storage.streams import WHOLE_OBJECT_BYTES, ReadAhead, Sink, as_arrow
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True)
class _ObjectFile:
    storage: FileIOStorage
    path: str
    handle: Any
    size: int

    def read_at(self, offset: int, length: int) -> bytes:
        with explained(self.path, "read"):
            self.handle.seek(offset)
            data = bytes(self.handle.read(length))
        self.storage.count("read", self.path, len(data))
        return data

    def fetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """These file systems have no call for it; reading ahead brings neighbours together."""

    def arrow(self) -> pa.NativeFile:
        import pyarrow as pa

        if self.size <= WHOLE_OBJECT_BYTES:
            return pa.BufferReader(self.read_at(0, self.size))
        return as_arrow(ReadAhead(self))


class FileIOStorage(Counted):
    """Files of any scheme that PyIceberg's FileIO serves, with its properties."""

    def __init__(self, properties: dict[str, str], location: str) -> None:
        super().__init__(Limits.of(properties))
        from pyiceberg.io import load_file_io

        self._properties = ConnectionProperties(properties)
        self._location = location
        with explained(location, "open"):
            self._io: Any = load_file_io(properties, location)

    def __reduce__(self) -> tuple[type[FileIOStorage], tuple[ConnectionProperties, str]]:
        return (FileIOStorage, (self._properties, self._location))

    def __repr__(self) -> str:
        return f"FileIOStorage({self._location!r})"

    def read(self, path: str) -> bytes:
        with explained(path, "read"), self._io.new_input(path).open(seekable=False) as stream:
            data = bytes(stream.read())
        self.count("read", path, len(data))
        return data

    def open(self, path: str, *, size: int | None = None) -> RandomAccess:
        with explained(path, "read"):
            handle = self._io.new_input(path).open(seekable=True)
            self.count("head", path)
            return _ObjectFile(self, path, handle, _length(handle) if size is None else size)

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        with explained(path, "write"), self._output(path) as stream:
            stream.write(bytes(data))
        self.count("write", path, len(data))

    def _output(self, path: str) -> Any:
        # Looks whether the file is there, and then writes: these schemes have nothing better.
        return self._io.new_output(path).create(overwrite=False)

    def create(self, path: str) -> Sink:
        with explained(path, "write"):
            stream = self._output(path)
        return Sink(
            self,
            path,
            write=lambda view: stream.write(bytes(view)),
            close=stream.close,
            abort=stream.close,
        )

    def exists(self, path: str) -> bool:
        self.count("head", path)
        with explained(path, "read"):
            return bool(self._io.new_input(path).exists())

    def size(self, path: str) -> int:
        self.count("head", path)
        with explained(path, "read"):
            return len(self._io.new_input(path))

    def list(self, prefix: str) -> Iterator[FileInfo]:
        yield from self._listed(prefix, recursive=True)[1]

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Folders and files directly in a folder, so that listing can go side by side."""
        return self._listed(folder, recursive=False)

    def _listed(self, folder: str, *, recursive: bool) -> tuple[Sequence[str], Sequence[FileInfo]]:
        import pyarrow.fs as pafs

        parts = urlsplit(folder)
        self.count("list", folder)
        with explained(folder, "list"):
            by_scheme = getattr(self._io, "fs_by_scheme", None)
            if by_scheme is None:
                raise Unsupported(
                    f"{folder}: {type(self._io).__name__} cannot list files; "
                    "use PyIceberg's PyArrowFileIO, or leave out py-io-impl",
                    feature="list",
                )
            filesystem = by_scheme(parts.scheme, parts.netloc)
            base = f"{parts.netloc}{parts.path}".rstrip("/")
            selector = pafs.FileSelector(base, recursive=recursive, allow_not_found=True)
            infos = filesystem.get_file_info(selector)
        head = f"{parts.scheme}://"
        folders = [f"{head}{info.path}" for info in infos if info.type == pafs.FileType.Directory]
        files = [
            FileInfo(
                path=f"{head}{info.path}",
                size=int(info.size or 0),
                modified_ms=int((info.mtime_ns or 0) // 1_000_000),
            )
            for info in infos
            if info.type == pafs.FileType.File
        ]
        return folders, files

    def delete(self, path: str) -> None:
        self.count("delete", path)
        try:
            self._io.delete(path)
        except FileNotFoundError:
            return
        except Exception as error:
            raise StorageError(f"{path}: delete failed: {error}") from error

    def delete_all(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)


def _length(handle: Any) -> int:
    """The size of an open object, which opening it found out."""
    size = getattr(handle, "size", None)
    return int(size() if callable(size) else handle.seek(0, os.SEEK_END))
