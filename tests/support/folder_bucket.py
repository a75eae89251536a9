"""A bucket that is a folder: conditional requests on local disk, for tests of catalogs in buckets.

A lock file makes each request atomic, also between processes. ETags are MD5 of the content, so that
equal bytes have equal ETags, as on S3.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from frazil.errors import AlreadyExists, NotFound, StorageError
from frazil.limits import DEFAULT
from frazil.storage import FileInfo, LocalStorage, local_path
from frazil.storage.base import ObjectVersion, PreconditionFailed, StoredObject

Fault = Callable[[str, str], None]
"""Called with the verb and the path before, and with `after ` and the verb after each request."""


def no_fault(verb: str, path: str) -> None:
    """Lets every request pass."""


class FolderBucket(LocalStorage):
    """Local files with conditional requests."""

    def __init__(self, lock: str, fault: Fault = no_fault) -> None:
        super().__init__(DEFAULT)
        self._lock_path = lock
        self.fault = fault

    def get(self, path: str, *, unless: ObjectVersion | None = None) -> StoredObject | None:
        self.fault("get", path)
        with self._locked(shared=True):
            data = self._data(path)
        self.count("read", path, 0 if data is None else len(data))
        if data is None:
            raise NotFound(f"{path}: no such file")
        version = _version(data)
        self.fault("after get", path)
        return None if version == unless else StoredObject(data=data, version=version)

    def put_new(self, path: str, data: bytes) -> ObjectVersion:
        self.fault("put", path)
        with self._locked():
            is_there = self._data(path) is not None
            if not is_there:
                self._write(path, data)
        self.count("write", path, len(data))
        self.fault("after put", path)
        if is_there:
            raise AlreadyExists(f"{path}: the file already exists")
        return _version(data)

    def put_if(self, path: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        self.fault("put", path)
        with self._locked():
            current = self._data(path)
            is_same = current is not None and _version(current) == version
            if is_same:
                self._write(path, data)
        self.count("write", path, len(data))
        self.fault("after put", path)
        if not is_same:
            raise PreconditionFailed(f"{path}: is another version")
        return _version(data)

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        self.count("list", folder)
        place = Path(local_path(folder))
        entries = sorted(place.iterdir()) if place.is_dir() else []
        files = [
            FileInfo(path=f"{folder}/{entry.name}", size=entry.stat().st_size, modified_ms=0)
            for entry in entries
            if entry.is_file()
        ]
        return [f"{folder}/{entry.name}" for entry in entries if entry.is_dir()], files

    def delete_all(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    def _data(self, path: str) -> bytes | None:
        try:
            return Path(local_path(path)).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _write(self, path: str, data: bytes) -> None:
        place = Path(local_path(path))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            new = place.with_name(f".{place.name}.new")
            new.write_bytes(data)
            new.replace(place)
        except OSError as error:
            raise StorageError(f"{path}: write failed: {error}") from error

    @contextmanager
    def _locked(self, *, shared: bool = False) -> Iterator[None]:
        descriptor = os.open(self._lock_path, os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _version(data: bytes) -> ObjectVersion:
    return ObjectVersion(e_tag=hashlib.md5(data).hexdigest())


def bucket_storages(folder: Path, fault: Fault = no_fault) -> Callable[[str], FolderBucket]:
    """Storages for a catalog in a folder."""
    bucket = FolderBucket(str(folder / "bucket.lock"), fault)
    return lambda location: bucket
