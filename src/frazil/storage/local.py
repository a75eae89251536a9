"""Files of this machine: straight to the operating system, written exclusively and durably."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.errors import NotFound
from frazil.limits import Limits
from frazil.storage.base import Counted, FileInfo, RandomAccess, explained, local_path
from frazil.storage.streams import Sink, TailHeld

if TYPE_CHECKING:
    import pyarrow as pa

_WHOLE_FILE_BYTES = 64 * 1024
"""Files up to this size are read in one request: a second one costs more than the bytes."""


@dataclass(slots=True)
class _LocalFile:
    storage: LocalStorage
    path: str
    handle: int
    size: int

    def read_at(self, offset: int, length: int) -> bytes:
        with explained(self.path, "read"):
            data = os.pread(self.handle, length, offset)
        self.storage.count("read", self.path, len(data))
        return data

    def arrow(self) -> pa.NativeFile:
        import pyarrow as pa

        if self.size <= _WHOLE_FILE_BYTES:
            return pa.BufferReader(self.read_at(0, self.size))
        return TailHeld(self).arrow()

    def __del__(self) -> None:
        os.close(self.handle)


class LocalStorage(Counted):
    """Files of this machine; writes are exclusive and fsynced."""

    def __reduce__(self) -> tuple[type[LocalStorage], tuple[Limits]]:
        return (LocalStorage, (self.limits,))

    def read(self, path: str) -> bytes:
        with explained(path, "read"):
            data = Path(local_path(path)).read_bytes()
        self.count("read", path, len(data))
        return data

    def open(self, path: str, *, size: int | None = None) -> RandomAccess:
        with explained(path, "read"):
            handle = os.open(local_path(path), os.O_RDONLY)
            return _LocalFile(self, path, handle, os.fstat(handle).st_size)

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        target = local_path(path)
        with explained(path, "write"):
            handle = _create_exclusive(target)
            try:
                _write_all(handle, memoryview(data))
                os.fsync(handle)
            except BaseException:
                os.close(handle)
                os.unlink(target)
                raise
            os.close(handle)
        self.count("write", path, len(data))

    def create(self, path: str) -> pa.NativeFile:
        import pyarrow as pa

        with explained(path, "write"):
            handle = _create_exclusive(local_path(path))
        sink = Sink(
            self,
            path,
            write=lambda view: _write_all(handle, view),
            close=lambda: _close_durably(handle),
        )
        return pa.PythonFile(sink, mode="w")

    def exists(self, path: str) -> bool:
        self.count("head", path)
        return os.path.isfile(local_path(path))

    def size(self, path: str) -> int:
        with explained(path, "read"):
            found = os.path.getsize(local_path(path))
        self.count("head", path)
        return found

    def list(self, prefix: str) -> Iterator[FileInfo]:
        root = local_path(prefix).rstrip("/")
        head = prefix.rstrip("/")
        self.count("list", prefix)
        for folder, _, names in os.walk(root):
            for name in names:
                full = os.path.join(folder, name)
                try:
                    stat = os.stat(full)
                except FileNotFoundError:
                    continue
                yield FileInfo(
                    path=head + full[len(root) :],
                    size=stat.st_size,
                    modified_ms=stat.st_mtime_ns // 1_000_000,
                )

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Folders and files directly in a folder, so that listing can go side by side."""
        head = folder.rstrip("/")
        folders = []
        files = []
        self.count("list", folder)
        try:
            with explained(folder, "list"), os.scandir(local_path(head) or "/") as found:
                for entry in found:
                    path = f"{head}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(path)
                    elif entry.is_file():
                        stat = entry.stat()
                        modified_ms = stat.st_mtime_ns // 1_000_000
                        files.append(
                            FileInfo(path=path, size=stat.st_size, modified_ms=modified_ms)
                        )
        except NotFound:
            return [], []
        return folders, files

    def delete(self, path: str) -> None:
        self.count("delete", path)
        with explained(path, "delete"):
            try:
                os.unlink(local_path(path))
            except FileNotFoundError:
                return


def _create_exclusive(target: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        return os.open(target, flags, 0o644)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        return os.open(target, flags, 0o644)


def _write_all(handle: int, view: memoryview) -> None:
    while view:
        view = view[os.write(handle, view) :]


def _close_durably(handle: int) -> None:
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
