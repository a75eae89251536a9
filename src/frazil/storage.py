"""Where bytes live: read, write_new, list, delete; thin, and every call is counted.

Local paths (plain or `file:`) go straight to the operating system and are written durably; any
other scheme goes through PyIceberg's FileIO and takes its properties (`s3.endpoint`, …). This is
the only module that knows PyIceberg's FileIO classes. It knows nothing of tables.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import pyarrow as pa

from frazil.errors import AlreadyExists, FrazilError, NotFound, StorageError

Verb = Literal["read", "write", "list", "delete", "head"]


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the storage: what, where, how many bytes."""

    verb: Verb
    path: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A file found by listing."""

    path: str
    size: int
    modified_ms: int


@dataclass(slots=True)
class Counters:
    """Calls and bytes since the storage was made, by verb."""

    calls: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)

    def add(self, call: Call) -> None:
        """Count one call."""
        self.calls[call.verb] = self.calls.get(call.verb, 0) + 1
        self.bytes[call.verb] = self.bytes.get(call.verb, 0) + call.bytes


class RandomAccess(Protocol):
    """An open file that can be read in ranges."""

    @property
    def size(self) -> int:
        """Length in bytes."""

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes of one range."""

    def arrow(self) -> pa.NativeFile:
        """The same file for pyarrow's readers; ranges read are counted."""


class Storage(Protocol):
    """Files by absolute path."""

    @property
    def counters(self) -> Counters:
        """What has been done so far."""

    def recording(self) -> Any:
        """Context manager that yields the list of calls made inside it."""

    def read(self, path: str) -> bytes:
        """The whole file."""

    def open(self, path: str, *, size: int | None = None) -> RandomAccess:
        """The file for range reads; a known size saves a request."""

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        """Write a file that is not there yet, whole and durable."""

    def create(self, path: str) -> pa.NativeFile:
        """A stream into a new file; the file is whole when the stream is closed."""

    def exists(self, path: str) -> bool:
        """Whether the file is there."""

    def size(self, path: str) -> int:
        """Length of the file in bytes."""

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every file below a directory."""

    def delete(self, path: str) -> None:
        """Remove the file; one that is gone already is not an error."""


def storage_for(location: str, properties: Mapping[str, str] | None = None) -> Storage:
    """The storage that serves a location: local files, or PyIceberg's FileIO."""
    if is_local(location):
        return LocalStorage()
    return ObjectStorage(dict(properties or {}), location)


def is_local(path: str) -> bool:
    """Whether a path is a local one."""
    return urlsplit(path).scheme in ("", "file")


def local_path(path: str) -> str:
    """The operating system's path of a local path or `file:` URI."""
    if path.startswith("file:"):
        rest = path[5:]
        return "/" + rest.lstrip("/")
    return path


class _Counted:
    """Counting shared by the storages."""

    def __init__(self) -> None:
        self.counters = Counters()
        self._lock = threading.Lock()
        self._journals: list[list[Call]] = []

    @contextmanager
    def recording(self) -> Iterator[list[Call]]:
        journal: list[Call] = []
        with self._lock:
            self._journals.append(journal)
        try:
            yield journal
        finally:
            with self._lock:
                self._journals = [kept for kept in self._journals if kept is not journal]

    def count(self, verb: Verb, path: str, size: int = 0) -> None:
        call = Call(verb, path, size)
        with self._lock:
            self.counters.add(call)
            for journal in self._journals:
                journal.append(call)


class _RangeFile:
    """Adapts a range reader to the file object that pyarrow expects."""

    def __init__(self, access: RandomAccess) -> None:
        self._access = access
        self._position = 0
        self.closed = False

    def read(self, length: int = -1) -> bytes:
        remaining = self._access.size - self._position
        wanted = remaining if length is None or length < 0 else min(length, remaining)
        data = self._access.read_at(self._position, wanted) if wanted > 0 else b""
        self._position += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        start = {0: 0, 1: self._position, 2: self._access.size}[whence]
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        return self._access.size

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        return None

    def close(self) -> None:
        self.closed = True


_WHOLE_FILE_BYTES = 64 * 1024
"""Files up to this size are read in one request: a second one costs more than the bytes."""


@dataclass(slots=True)
class _LocalFile:
    storage: LocalStorage
    path: str
    handle: int
    size: int

    def read_at(self, offset: int, length: int) -> bytes:
        with _explained(self.path, "read"):
            data = os.pread(self.handle, length, offset)
        self.storage.count("read", self.path, len(data))
        return data

    def arrow(self) -> pa.NativeFile:
        if self.size <= _WHOLE_FILE_BYTES:
            return pa.BufferReader(self.read_at(0, self.size))
        return pa.PythonFile(_RangeFile(self), mode="r")

    def __del__(self) -> None:
        os.close(self.handle)


class LocalStorage(_Counted):
    """Files of this machine; writes are exclusive and fsynced."""

    def __reduce__(self) -> tuple[type[LocalStorage], tuple[()]]:
        return (LocalStorage, ())

    def read(self, path: str) -> bytes:
        with _explained(path, "read"):
            data = Path(local_path(path)).read_bytes()
        self.count("read", path, len(data))
        return data

    def open(self, path: str, *, size: int | None = None) -> RandomAccess:
        with _explained(path, "read"):
            handle = os.open(local_path(path), os.O_RDONLY)
            return _LocalFile(self, path, handle, os.fstat(handle).st_size)

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        target = local_path(path)
        with _explained(path, "write"):
            handle = _create_exclusive(target)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
                os.fsync(handle)
            except BaseException:
                os.close(handle)
                os.unlink(target)
                raise
            os.close(handle)
        self.count("write", path, len(data))

    def create(self, path: str) -> pa.NativeFile:
        with _explained(path, "write"):
            handle = _create_exclusive(local_path(path))
        return pa.PythonFile(_LocalSink(self, path, handle), mode="w")

    def exists(self, path: str) -> bool:
        self.count("head", path)
        return os.path.isfile(local_path(path))

    def size(self, path: str) -> int:
        with _explained(path, "read"):
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
            with _explained(folder, "list"), os.scandir(local_path(head) or "/") as found:
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
        with _explained(path, "delete"):
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


class _LocalSink:
    """A new local file as a stream: fsynced and counted when closed."""

    def __init__(self, storage: LocalStorage, path: str, handle: int) -> None:
        self._storage = storage
        self._path = path
        self._handle = handle
        self._written = 0
        self.closed = False

    def write(self, data: Any) -> int:
        with _explained(self._path, "write"):
            view = memoryview(data).cast("B")
            size = len(view)
            while view:
                view = view[os.write(self._handle, view) :]
        self._written += size
        return size

    def tell(self) -> int:
        return self._written

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        return None

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        with _explained(self._path, "write"):
            try:
                os.fsync(self._handle)
            finally:
                os.close(self._handle)
        self._storage.count("write", self._path, self._written)


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
        with _explained(self.path, "read"):
            self.handle.seek(offset)
            data = bytes(self.handle.read(length))
        self.storage.count("read", self.path, len(data))
        return data

    def arrow(self) -> pa.NativeFile:
        if self.size <= _WHOLE_OBJECT_BYTES:
            return pa.BufferReader(self.read_at(0, self.size))
        return pa.PythonFile(_RangeFile(_ReadAhead(self, self.size)), mode="r")


@dataclass(slots=True)
class _ReadAhead:
    """Ranges of an object, fetched a little more than asked for; the last fetch is kept."""

    source: _ObjectFile
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
        return pa.PythonFile(_RangeFile(self), mode="r")


class ObjectStorage(_Counted):
    """An object store, through PyIceberg's FileIO and its properties."""

    def __init__(self, properties: dict[str, str], location: str) -> None:
        super().__init__()
        from pyiceberg.io import load_file_io

        self._properties = properties
        self._location = location
        with _explained(location, "open"):
            self._io: Any = load_file_io(properties, location)

    def __reduce__(self) -> tuple[type[ObjectStorage], tuple[dict[str, str], str]]:
        return (ObjectStorage, (self._properties, self._location))

    def __repr__(self) -> str:
        return f"ObjectStorage({self._location!r})"

    def read(self, path: str) -> bytes:
        with _explained(path, "read"), self._io.new_input(path).open(seekable=False) as stream:
            data = bytes(stream.read())
        self.count("read", path, len(data))
        return data

    def open(self, path: str, *, size: int | None = None) -> RandomAccess:
        with _explained(path, "read"):
            handle = self._io.new_input(path).open(seekable=True)
            self.count("head", path)
            return _ObjectFile(self, path, handle, _length(handle) if size is None else size)

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        # Names are made from UUIDs, so there is nothing to overwrite and no need to ask first.
        with _explained(path, "write"), self._output(path) as stream:
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
        with _explained(path, "write"):
            stream = self._io.new_output(path).create(overwrite=True)
        return pa.PythonFile(_ObjectSink(self, path, stream), mode="w")

    def exists(self, path: str) -> bool:
        self.count("head", path)
        with _explained(path, "read"):
            return bool(self._io.new_input(path).exists())

    def size(self, path: str) -> int:
        self.count("head", path)
        with _explained(path, "read"):
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
        with _explained(folder, "list"):
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


class _ObjectSink:
    """A new object as a stream that counts what goes through."""

    def __init__(self, storage: ObjectStorage, path: str, stream: Any) -> None:
        self._storage = storage
        self._path = path
        self._stream = stream
        self._written = 0
        self.closed = False

    def write(self, data: Any) -> int:
        chunk = bytes(data)
        with _explained(self._path, "write"):
            self._stream.write(chunk)
        self._written += len(chunk)
        return len(chunk)

    def tell(self) -> int:
        return self._written

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        return None

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        with _explained(self._path, "write"):
            self._stream.close()
        self._storage.count("write", self._path, self._written)


@contextmanager
def _explained(path: str, verb: str) -> Iterator[None]:
    """Turn the operating system's and the libraries' errors into ours, naming the path."""
    try:
        yield
    except FrazilError:
        raise
    except FileNotFoundError as error:
        raise NotFound(f"{path}: no such file") from error
    except FileExistsError as error:
        raise AlreadyExists(f"{path}: the file is there already") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(f"{path}: {verb} failed: {reason}") from error
