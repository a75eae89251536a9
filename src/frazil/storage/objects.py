"""An object store, through PyIceberg's FileIO; the only module that knows its classes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from frazil.errors import StorageError
from frazil.limits import Limits
from frazil.storage.base import Counted, FileInfo, RandomAccess, explained
from frazil.storage.streams import RangeFile, Sink

if TYPE_CHECKING:
    import pyarrow as pa

_WHOLE_OBJECT_BYTES = 2 * 1024 * 1024
"""Objects up to this size are read in one request: a round trip costs as much as these bytes."""
_READ_AHEAD_BYTES = 256 * 1024
"""What a range request asks for at least: columns beside each other then come together."""


@dataclass(slots=True)
class _ObjectFile:
    storage: ObjectStorage
    path: str
    handle: Any
    size: int

    def read_at(self, offset: int, length: int) -> bytes:
        with explained(self.path, "read"):
            self.handle.seek(offset)
            data = bytes(self.handle.read(length))
        self.storage.count("read", self.path, len(data))
        return data

    def arrow(self) -> pa.NativeFile:
        import pyarrow as pa

        if self.size <= _WHOLE_OBJECT_BYTES:
            return pa.BufferReader(self.read_at(0, self.size))
        return pa.PythonFile(RangeFile(_ReadAhead(self, self.path, self.size)), mode="r")


@dataclass(slots=True)
class _ReadAhead:
    """Ranges of an object, fetched a little more than asked for; the last fetch is kept."""

    source: _ObjectFile
    path: str
    size: int
    _start: int = 0
    _held: bytes = b""

    def read_at(self, offset: int, length: int) -> bytes:
        if not self._start <= offset <= offset + length <= self._start + len(self._held):
            wanted = max(length, _READ_AHEAD_BYTES)
            self._start = max(0, min(offset, self.size - wanted))
            self._held = self.source.read_at(self._start, min(wanted, self.size - self._start))
        at = offset - self._start
        return self._held[at : at + length]

    def arrow(self) -> pa.NativeFile:
        import pyarrow as pa

        return pa.PythonFile(RangeFile(self), mode="r")


class ObjectStorage(Counted):
    """An object store, through PyIceberg's FileIO and its properties."""

    def __init__(self, properties: dict[str, str], location: str) -> None:
        super().__init__(Limits.of(properties))
        from pyiceberg.io import load_file_io

        self._properties = properties
        self._location = location
        with explained(location, "open"):
            self._io: Any = load_file_io(properties, location)

    def __reduce__(self) -> tuple[type[ObjectStorage], tuple[dict[str, str], str]]:
        return (ObjectStorage, (self._properties, self._location))

    def __repr__(self) -> str:
        return f"ObjectStorage({self._location!r})"

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
        # Names are made from UUIDs, so there is nothing to overwrite and no need to ask first.
        with explained(path, "write"), self._output(path) as stream:
            stream.write(bytes(data))
        self.count("write", path, len(data))

    @cached_property
    def _whole(self) -> Any:
        return _whole_writes(self._io, self._location)

    def _output(self, path: str) -> Any:
        """A stream for a small object: one request where the file system can do it in one."""
        if self._whole is None:
            return self._io.new_output(path).create(overwrite=True)
        parts = urlsplit(path)
        return self._whole.open_output_stream(f"{parts.netloc}{parts.path}")

    def create(self, path: str) -> pa.NativeFile:
        import pyarrow as pa

        with explained(path, "write"):
            stream = self._io.new_output(path).create(overwrite=True)
        sink = Sink(
            self, path, write=lambda view: stream.write(bytes(view)), close=lambda: stream.close()
        )
        return pa.PythonFile(sink, mode="w")

    def exists(self, path: str) -> bool:
        self.count("head", path)
        with explained(path, "read"):
            return bool(self._io.new_input(path).exists())

    def size(self, path: str) -> int:
        self.count("head", path)
        with explained(path, "read"):
            return len(self._io.new_input(path))

    def list(self, prefix: str) -> Iterator[FileInfo]:
        yield from self._found(prefix, recursive=True)[1]

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Folders and files directly in a folder, so that listing can go side by side."""
        return self._found(folder, recursive=False)

    def _found(self, folder: str, *, recursive: bool) -> tuple[Sequence[str], Sequence[FileInfo]]:
        import pyarrow.fs as pafs

        parts = urlsplit(folder)
        self.count("list", folder)
        with explained(folder, "list"):
            filesystem = self._io.fs_by_scheme(parts.scheme, parts.netloc)
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


def _length(handle: Any) -> int:
    """The size of an open object, which opening it found out."""
    size = getattr(handle, "size", None)
    return int(size() if callable(size) else handle.seek(0, os.SEEK_END))


def _whole_writes(file_io: Any, location: str) -> Any:
    """The S3 file system of a FileIO, set to put small objects in one request instead of three.

    None for anything that is not pyarrow's S3.
    """
    import pyarrow.fs as pafs

    parts = urlsplit(location)
    by_scheme = getattr(file_io, "fs_by_scheme", None)
    if by_scheme is None or parts.scheme not in ("s3", "s3a", "s3n"):
        return None
    filesystem = by_scheme(parts.scheme, parts.netloc)
    if type(filesystem) is not pafs.S3FileSystem:
        return None
    rebuild, (settings,) = filesystem.__reduce__()
    return rebuild({**settings, "allow_delayed_open": True})
