"""What every storage answers, and how its calls are counted and its errors explained; and the
conditional requests of object stores, which a catalog in a bucket is built on."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, cast, runtime_checkable

from frazil import cancellation
from frazil.errors import AlreadyExists, FrazilError, NotFound, StorageError
from frazil.limits import DEFAULT, Limits
from frazil.value_classes import dataclass, field, frozen

if TYPE_CHECKING:
    import pyarrow as pa

_REQUESTS_AT_ONCE = 48

Verb = Literal["read", "write", "list", "delete", "head"]
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


@dataclass(frozen=True, slots=True)
class StorageCall:
    """One request to the storage: what, where, how many bytes."""

    verb: Verb
    path: str
    bytes: int


@frozen
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

    def add(self, call: StorageCall) -> None:
        """Count one call."""
        self.calls[call.verb] = self.calls.get(call.verb, 0) + 1
        self.bytes[call.verb] = self.bytes.get(call.verb, 0) + call.bytes


class RandomAccess(Protocol):
    """An open file that can be read in ranges."""

    @property
    def path(self) -> str:
        """Its address."""

    @property
    def size(self) -> int:
        """Length in bytes."""

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes of one range."""

    def fetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Say which ranges (offset, length) are read next through `arrow`: a store brings them
        side by side."""

    def arrow(self) -> pa.NativeFile:
        """The same file for pyarrow's readers; ranges read are counted."""


@runtime_checkable
class InMemory(Protocol):
    """A file for range reads that may be in memory already."""

    @property
    def is_in_memory(self) -> bool:
        """Whether every further read is answered without the store."""

    @property
    def size(self) -> int:
        """Length in bytes."""

    def arrow(self) -> pa.NativeFile:
        """The file for pyarrow's readers."""


class NewFile(Protocol):
    """A stream into a new file, which pyarrow's writers take; ends in `close` or `abort`."""

    def write(self, data: Any) -> int:
        """Take bytes."""

    def tell(self) -> int:
        """Bytes taken so far."""

    def close(self) -> None:
        """Complete the file."""

    def abort(self) -> None:
        """Let go of the file without completing it; never fails."""

    def __enter__(self) -> Self:
        """Itself; leaving the block completes the file, or aborts it after an error."""

    def __exit__(self, kind: type[BaseException] | None, *about: object) -> None: ...


class Storage(Protocol):
    """Files by absolute path."""

    @property
    def counters(self) -> Counters:
        """What has been done so far."""

    @property
    def limits(self) -> Limits:
        """How large what is read from here may become when it is decoded."""

    def recording(self) -> Any:
        """Context manager that yields the list of calls made inside it."""

    def read(self, path: str) -> bytes:
        """The whole file."""

    def open(self, path: str, *, size: int | None = None) -> RandomAccess:
        """The file for range reads; a known size saves a request."""

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        """Write a file that is not there yet, whole and durable."""

    def create(self, path: str) -> NewFile:
        """A stream into a new file; the file is whole when the stream is closed."""

    def exists(self, path: str) -> bool:
        """Whether the file is there."""

    def size(self, path: str) -> int:
        """Length of the file in bytes."""

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every file below a directory."""

    def delete(self, path: str) -> None:
        """Remove the file; one that is gone already is not an error."""

    def delete_all(self, paths: Iterable[str]) -> None:
        """Remove files, in as few requests as can be; those that are gone are not an error."""


def is_local(path: str) -> bool:
    """Whether a path is a local one."""
    match = _SCHEME.match(path)
    return match is None or match.group(0).lower() == "file:"


def local_path(path: str) -> str:
    """The operating system's path of a local path or `file:` URI."""
    if path[:5].lower() != "file:":
        return path
    rest = path[5:]
    if rest.startswith("//localhost/"):
        rest = rest[len("//localhost") :]
    return "/" + rest.lstrip("/")


def readers_at(location: str) -> int:
    """Files to read at once: decoding keeps a core busy, a network is mostly waited for."""
    return os.cpu_count() or 2 if is_local(location) else _REQUESTS_AT_ONCE


class Counted:
    """Counting shared by the storages."""

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.counters = Counters()
        self.limits = limits
        self._lock = threading.Lock()
        self._journals: list[list[StorageCall]] = []

    @contextmanager
    def recording(self) -> Iterator[list[StorageCall]]:
        journal: list[StorageCall] = []
        with self._lock:
            self._journals.append(journal)
        try:
            yield journal
        finally:
            with self._lock:
                self._journals = [other for other in self._journals if other is not journal]

    def count(self, verb: Verb, path: str, size: int = 0) -> None:
        """Count a call. A read that nobody waits for any more ends here."""
        if verb == "read":
            cancellation.check()
        call = StorageCall(verb, path, size)
        with self._lock:
            self.counters.add(call)
            for journal in self._journals:
                journal.append(call)


@contextmanager
def explained(path: str, verb: str) -> Iterator[None]:
    """Turn the operating system's and the libraries' errors into ours, naming the path."""
    try:
        yield
    except FrazilError:
        raise
    except FileNotFoundError as error:
        raise NotFound(f"{path}: no such file") from error
    except FileExistsError as error:
        raise AlreadyExists(f"{path}: the file already exists") from error
    except (OSError, ValueError) as error:
        if verb == "read" and isinstance(error, NotADirectoryError):
            raise NotFound(f"{path}: no such file") from error
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(f"{path}: {verb} failed: {reason}") from error


def delete_reporting(storage: Storage, paths: Sequence[str]) -> dict[str, FrazilError]:
    """Delete files; those that could not be deleted, with the reason."""
    if not paths:
        return {}
    try:
        storage.delete_all(paths)
    except FrazilError as error:
        if len(paths) == 1:
            return {paths[0]: error}
    else:
        return {}
    failed: dict[str, FrazilError] = {}
    for path in paths:
        failed |= delete_reporting(storage, [path])
    return failed


class PreconditionFailed(StorageError):
    """The object is not the version that the request named (412), or it does not exist any more."""


class StoreBusy(StorageError):
    """The store asked to try again later: 409 between two writers, 429, 503."""


@frozen
class ObjectVersion:
    """What names one version of an object: an ETag on S3 and Azure, a generation on GCS."""

    e_tag: str | None = None
    generation: str | None = None


@frozen
class StoredObject:
    """An object as read."""

    data: bytes
    version: ObjectVersion


class ConditionalStore(Storage, Protocol):
    """A storage whose objects can be created and replaced on a condition.

    An error of a conditional put says that the request failed, not that it had no effect: a reply
    can be lost, and a client that repeats a request is answered "already exists" for its own write.
    So callers read the object afterwards to know.
    """

    def get(self, path: str, *, unless: ObjectVersion | None = None) -> StoredObject | None:
        """The whole object in one request; None when it is still the version `unless`.

        NotFound when there is none.
        """

    def put_new(self, path: str, data: bytes) -> ObjectVersion:
        """Create an object in one request; AlreadyExists when there is one."""

    def put_if(self, path: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        """Replace an object in one request; PreconditionFailed when it is another version."""

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Folders and files directly in a folder, one LIST for each thousand."""

    def delete_all(self, paths: Iterable[str]) -> None:
        """Remove objects, as many per request as the store takes; missing ones are no error."""


def as_conditional(storage: Storage) -> ConditionalStore | None:
    """A storage as what it is if it has conditional requests, else None."""
    return cast(ConditionalStore, storage) if hasattr(storage, "put_if") else None
