"""Files of this machine: straight to the operating system, written exclusively and durably.

A file is durable when its bytes are synced and so are the folders that lead to it: a crash may
otherwise take the name of a file whose bytes are safe.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.errors import NotFound
from frazil.limits import Limits
from frazil.storage.base import Counted, FileInfo, RandomAccess, explained, local_path
from frazil.storage.streams import Sink, TailHeld
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

_WHOLE_FILE_BYTES = 64 * 1024
"""Files up to this size are read in one request: a second one costs more than the bytes."""

_NAMES_TOGETHER = 4_000


@dataclass(slots=True)
class LocalFile:
    """An open file of this machine."""

    storage: Counted
    path: str
    handle: int
    size: int

    def read_at(self, offset: int, length: int) -> bytes:
        with explained(self.path, "read"):
            data = os.pread(self.handle, length, offset)
        self.storage.count("read", self.path, len(data))
        return data

    def fetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """The operating system reads ahead by itself."""

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
            return LocalFile(self, path, handle, os.fstat(handle).st_size)

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        target = local_path(path)
        with explained(path, "write"):
            handle = _create_exclusive(target)
            try:
                write_all(handle, memoryview(data))
                os.fsync(handle)
                sync_name(target)
            except BaseException:
                os.close(handle)
                os.unlink(target)
                raise
            os.close(handle)
        self.count("write", path, len(data))

    def create(self, path: str) -> Sink:
        target = local_path(path)
        with explained(path, "write"):
            handle = _create_exclusive(target)
        return Sink(
            self,
            path,
            write=lambda view: write_all(handle, view),
            close=lambda: close_durably(handle, target),
            abort=lambda: os.close(handle),
        )

    def exists(self, path: str) -> bool:
        self.count("head", path)
        return os.path.isfile(local_path(path))

    def size(self, path: str) -> int:
        with explained(path, "read"):
            size = os.path.getsize(local_path(path))
        self.count("head", path)
        return size

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
                yield info_of(head + full[len(root) :], stat)

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Folders and files directly in a folder, so that listing can go side by side."""
        head = folder.rstrip("/")
        self.count("list", folder)
        try:
            with explained(folder, "list"), os.scandir(local_path(head) or "/") as entries:
                return children_in(entries, head, follow_links=True)
        except NotFound:
            return [], []

    def names(self, folder: str) -> Iterator[tuple[str, Sequence[str]]]:
        """Folders with names of files directly in them, all that are below a folder and some
        thousands at a time. Nothing is asked about a file: its name costs a hundredth of that."""
        waiting = [folder.rstrip("/")]
        while waiting:
            here = waiting.pop()
            self.count("list", here)
            try:
                with explained(here, "list"), os.scandir(local_path(here) or "/") as entries:
                    for names in names_in(entries, here, waiting, follow_links=True):
                        yield here, names
            except NotFound:
                continue

    def info(self, path: str) -> FileInfo | None:
        """About one file; None when it is gone."""
        self.count("head", path)
        with explained(path, "read"):
            try:
                return info_of(path, os.stat(local_path(path)))
            except FileNotFoundError:
                return None

    def delete(self, path: str) -> None:
        self.count("delete", path)
        with explained(path, "delete"):
            try:
                os.unlink(local_path(path))
            except FileNotFoundError:
                return

    def delete_all(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)


def children_in(
    entries: Iterable[os.DirEntry[str]], folder: str, *, follow_links: bool
) -> tuple[Sequence[str], Sequence[FileInfo]]:
    """Folders and files among the entries of a folder."""
    folders: list[str] = []
    files: list[FileInfo] = []
    for entry in entries:
        path = f"{folder}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            folders.append(path)
        elif entry.is_file(follow_symlinks=follow_links):
            files.append(info_of(path, entry.stat(follow_symlinks=follow_links)))
    return folders, files


def names_in(
    entries: Iterable[os.DirEntry[str]], folder: str, below: list[str], *, follow_links: bool
) -> Iterator[list[str]]:
    """Names of the files among the entries of a folder, some thousands at a time; folders are added
    to `below`."""
    names: list[str] = []
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            below.append(f"{folder}/{entry.name}")
        elif entry.is_file(follow_symlinks=follow_links):
            names.append(entry.name)
            if len(names) == _NAMES_TOGETHER:
                yield names
                names = []
    if names:
        yield names


def info_of(path: str, status: os.stat_result) -> FileInfo:
    """What the system says of a file."""
    modified_ms = status.st_mtime_ns // 1_000_000
    return FileInfo(path=path, size=status.st_size, modified_ms=modified_ms)


def _create_exclusive(target: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        return os.open(target, flags, 0o644)
    except FileNotFoundError:
        folder = os.path.dirname(target)
        os.makedirs(folder, exist_ok=True)
        forget_synced(folder)
        return os.open(target, flags, 0o644)


def write_all(handle: int, view: memoryview) -> None:
    """Write every byte to an open file."""
    while view:
        view = view[os.write(handle, view) :]


def close_durably(handle: int, target: str) -> None:
    """Close a new file once its bytes and its name are on the disk."""
    try:
        os.fsync(handle)
        sync_name(target)
    finally:
        os.close(handle)


_NO_SYNC_OF_FOLDERS = frozenset({errno.EINVAL, errno.ENOTSUP})
"""What a file system answers that keeps names in another way."""
_synced: set[str] = set()
"""Folders whose own names this process knows to be durable."""


def sync_name(target: str) -> None:
    """Sync the folder of a new file, and when it is used for the first time those above it: they
    may be as new, made by this process or by another that has not come to syncing them."""
    folder = os.path.dirname(os.path.abspath(target))
    _sync_folder(folder)
    while folder not in _synced:
        above = os.path.dirname(folder)
        try:
            _sync_folder(above)
        except PermissionError:  # it is older than anything that this process could have made
            above = folder
        _synced.add(folder)
        folder = above


def _sync_folder(folder: str) -> None:
    if os.name != "posix":
        return  # folders cannot be opened there
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC_OF_FOLDERS:
            raise
    finally:
        os.close(handle)


def forget_synced(folder: str) -> None:
    """A folder that was missing is a new one, whatever was known of one with its name."""
    folder = os.path.abspath(folder)
    while folder in _synced:
        _synced.discard(folder)
        folder = os.path.dirname(folder)
