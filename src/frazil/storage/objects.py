"""Objects of S3, GCS and Azure, through obstore; the only module that calls it.

Whatever must not exist yet is created on that condition. Requests that can be repeated without harm
are repeated by obstore; conditional ones are sent once, because a repetition would be answered
"already exists" for its own write. `write_new` reads the object instead, to know who wrote it.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from frazil.credentials import ConnectionProperties
from frazil.errors import AlreadyExists, FrazilError, InvalidInput, NotFound, StorageError
from frazil.extras import needed
from frazil.limits import Limits
from frazil.storage.base import (
    Counted,
    FileInfo,
    ObjectVersion,
    PreconditionFailed,
    RandomAccess,
    StoredObject,
)
from frazil.storage.store_failures import has_no_range, is_refusal, store_error, store_errors
from frazil.storage.store_settings import KINDS, StoreSettings, store_settings
from frazil.storage.streams import READ_AHEAD_BYTES, WHOLE_OBJECT_BYTES, ReadAhead, Sink, as_arrow
from frazil.storage.uploads import PART_BYTES, Upload
from frazil.threads import in_threads
from frazil.value_classes import dataclass, field, frozen

if TYPE_CHECKING:
    import pyarrow as pa

_DELETES_PER_REQUEST: Final = 1_000
_DELETES_AT_ONCE: Final = 16
_MAX_PUTS: Final = 8


@frozen
class _Bucket:
    """A bucket or container: `store` repeats failed requests, `once` does not."""

    settings: StoreSettings
    store: Any
    once: Any


@frozen
class _Address:
    """An object by its path, its bucket and its key there."""

    path: str
    bucket: _Bucket
    key: str

    def errors(self, verb: str) -> Any:
        """Explains what obstore raises inside."""
        return store_errors(self.path, verb, endpoint=self.bucket.settings.endpoint)

    def error(self, error: Exception, verb: str) -> FrazilError:
        """One such error, explained."""
        return store_error(error, self.path, verb, endpoint=self.bucket.settings.endpoint)


@dataclass(slots=True)
class _ObjectFile:
    """An object for range reads. What opening it brought is kept: its end, or all of it."""

    storage: ObjectStorage
    address: _Address
    size: int
    held_from: int = 0
    held: bytes = b""
    fetched: dict[tuple[int, int], bytes] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.address.path

    def read_at(self, offset: int, length: int) -> bytes:
        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        if self.held_from <= offset and offset + length <= self.held_from + len(self.held):
            start = offset - self.held_from
            return self.held[start : start + length]
        return self.storage.read_range(self.address, offset, length)

    def fetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Fetch ranges (offset, length) side by side, those close together in one request; reads
        of them are answered from memory, once each. Few bytes are left to reading ahead."""
        span = max(map(sum, ranges), default=0) - min(ranges, default=(0, 0))[0]
        if len(ranges) < 2 or span <= READ_AHEAD_BYTES:
            return
        data = self.storage.read_ranges(self.address, ranges)
        self.fetched.clear()
        self.fetched.update(zip(ranges, data, strict=True))

    @property
    def is_in_memory(self) -> bool:
        return self.held_from == 0 and len(self.held) == self.size

    def arrow(self) -> pa.NativeFile:
        import pyarrow as pa

        if self.size <= WHOLE_OBJECT_BYTES:
            self.held, self.held_from = self.read_at(0, self.size), 0
            return pa.BufferReader(self.held)
        return as_arrow(ReadAhead(self, self.fetched))


class ObjectStorage(Counted):
    """Objects by their full address; a ConditionalStore. Its repr shows no secret."""

    def __init__(self, properties: Mapping[str, str], location: str) -> None:
        super().__init__(Limits.of(properties))
        self._properties = ConnectionProperties(properties)
        self._location = location
        self._lock_buckets = threading.Lock()
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._obstore = needed("obstore", f"reading and writing {location}")
        self._bucket(*_split(location)[:2])  # what is wrong with the settings shows here

    def __reduce__(self) -> tuple[type[ObjectStorage], tuple[ConnectionProperties, str]]:
        return (ObjectStorage, (self._properties, self._location))

    def __repr__(self) -> str:
        return f"ObjectStorage({self._location!r})"

    # --- reading -------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        address = self._address(path)
        with address.errors("read"):
            data = bytes(self._obstore.get(address.bucket.store, address.key).bytes())
        self.count("read", path, len(data))
        return data

    def get(self, path: str, *, unless: ObjectVersion | None = None) -> StoredObject | None:
        """The object and its version in one request; None when it is still the version `unless`."""
        address = self._address(path)
        options = {} if unless is None or unless.e_tag is None else {"if_none_match": unless.e_tag}
        exceptions = self._obstore.exceptions
        try:
            with address.errors("read"):
                try:
                    result = self._obstore.get(address.bucket.store, address.key, options=options)
                    data = bytes(result.bytes())
                except exceptions.NotModifiedError:
                    self.count("read", path)
                    return None
        except PreconditionFailed:  # a store that answers If-None-Match so
            self.count("read", path)
            return None
        self.count("read", path, len(data))
        return StoredObject(data=data, version=_version(result.meta))

    def open(self, path: str, *, size: int | None = None) -> RandomAccess:
        address = self._address(path)
        if size is not None:
            return _ObjectFile(self, address, size)
        return self._opened(address)

    def _opened(self, address: _Address) -> _ObjectFile:
        """An object of unknown size: its size comes with its end, or with its beginning where a
        store knows no ranges from the end."""
        is_azure = address.bucket.settings.kind == "azure"
        part = (0, WHOLE_OBJECT_BYTES) if is_azure else {"suffix": WHOLE_OBJECT_BYTES}
        with address.errors("read"):
            try:
                result = self._obstore.get(
                    address.bucket.store, address.key, options={"range": part}
                )
                data = bytes(result.bytes())
            except Exception as error:
                if not has_no_range(error):
                    raise
                data = self.read(address.path)
                return _ObjectFile(self, address, len(data), 0, data)
        self.count("read", address.path, len(data))
        size = int(result.meta["size"])
        return _ObjectFile(self, address, size, 0 if is_azure else size - len(data), data)

    def read_range(self, address: _Address, offset: int, length: int) -> bytes:
        """The bytes of one range."""
        with address.errors("read"):
            data = bytes(
                self._obstore.get_range(
                    address.bucket.store, address.key, start=offset, length=length
                )
            )
        self.count("read", address.path, len(data))
        return data

    def read_ranges(self, address: _Address, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of several ranges; obstore fetches them side by side, close ones together."""
        if not ranges:
            return []
        with address.errors("read"):
            parts = self._obstore.get_ranges(
                address.bucket.store,
                address.key,
                starts=[offset for offset, _ in ranges],
                lengths=[length for _, length in ranges],
            )
            data = [bytes(part) for part in parts]
        self.count("read", address.path, sum(map(len, data)))
        return data

    def exists(self, path: str) -> bool:
        try:
            self._size(self._address(path))
        except NotFound:
            return False
        return True

    def size(self, path: str) -> int:
        return self._size(self._address(path))

    def _size(self, address: _Address) -> int:
        self.count("head", address.path)
        with address.errors("read"):
            return int(self._obstore.head(address.bucket.store, address.key)["size"])

    # --- writing -------------------------------------------------------------------------------

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        self._create(self._address(path), bytes(data))
        self.count("write", path, len(data))

    def _create(self, address: _Address, data: bytes) -> None:
        """Create an object. An answer can be lost, and so can a wait be asked for after the fact:
        then the object itself says whether this call has written it."""
        for attempt in range(_MAX_PUTS):
            try:
                self._send(address, data, "create")
                return
            except Exception as error:
                is_final = is_refusal(error)
                if (attempt or not is_final) and self._holds(address, data):
                    return
                if is_final or attempt + 1 == _MAX_PUTS:
                    raise address.error(error, "write") from error
            _wait(attempt)

    def put_new(self, path: str, data: bytes) -> ObjectVersion:
        """Create an object in one request; AlreadyExists when there is one."""
        return self._put(self._address(path), bytes(data), "create")

    def put_if(self, path: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        """Replace an object in one request; PreconditionFailed when it is another version."""
        version_of_store = {"e_tag": version.e_tag, "version": version.generation}
        mode = {name: value for name, value in version_of_store.items() if value is not None}
        try:
            return self._put(self._address(path), bytes(data), mode)
        except NotFound as error:
            raise PreconditionFailed(f"{path}: the object has been removed meanwhile") from error

    def _put(self, address: _Address, data: bytes, mode: Any) -> ObjectVersion:
        with address.errors("write"):
            result = self._send(address, data, mode)
        self.count("write", address.path, len(data))
        return _version(result)

    def _send(self, address: _Address, data: bytes, mode: Any) -> Mapping[str, Any]:
        sent: Mapping[str, Any] = self._obstore.put(
            address.bucket.once, address.key, data, mode=mode, use_multipart=False
        )
        return sent

    def _holds(self, address: _Address, data: bytes) -> bool:
        try:
            return self.read(address.path) == data
        except (NotFound, StorageError):
            return False

    def create(self, path: str) -> Sink:
        address = self._address(path)
        upload = Upload(
            put=lambda data: self._create(address, data),
            put_parts=lambda parts: self._put_parts(address, parts),
        )
        return Sink(self, path, write=upload.write, close=upload.close, abort=upload.abort)

    def _put_parts(self, address: _Address, parts: Iterator[bytes]) -> None:
        # Stores complete an upload whatever the name holds, so it is looked at before.
        if self.exists(address.path):
            raise AlreadyExists(f"{address.path}: the file already exists")
        with address.errors("write"):
            self._obstore.put(
                address.bucket.store,
                address.key,
                parts,
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=4,
            )

    def copy(self, path: str, to: str) -> None:
        """Have the store copy an object; in one bucket, an object with the new name is replaced."""
        source, target = self._address(path), self._address(to)
        if source.bucket is not target.bucket:
            opened = self.open(path)
            with self.create(to) as copied:  # a part at a time: a data file may be large
                for start in range(0, opened.size, PART_BYTES):
                    copied.write(opened.read_at(start, min(PART_BYTES, opened.size - start)))
            return
        with source.errors("write"):
            self._obstore.copy(source.bucket.store, source.key, target.key)
        self.count("write", to)

    # --- listing and deleting ------------------------------------------------------------------

    def list(self, prefix: str) -> Iterator[FileInfo]:
        address = self._address(prefix.rstrip("/") + "/")
        root = address.path[: len(address.path) - len(address.key) - 1]
        self.count("list", prefix)
        with address.errors("list"):
            for page in self._obstore.list(address.bucket.store, address.key.rstrip("/") or None):
                yield from (_info(root, meta) for meta in page if not _is_marker(meta))

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Folders and files directly in a folder."""
        address = self._address(folder.rstrip("/") + "/")
        root = address.path[: len(address.path) - len(address.key) - 1]
        self.count("list", folder)
        with address.errors("list"):
            result = self._obstore.list_with_delimiter(
                address.bucket.store, address.key.rstrip("/") or None
            )
        folders = [f"{root}/{name}".rstrip("/") for name in result["common_prefixes"]]
        return folders, [_info(root, meta) for meta in result["objects"] if not _is_marker(meta)]

    def delete(self, path: str) -> None:
        self.delete_all([path])

    def delete_all(self, paths: Iterable[str]) -> None:
        """Remove objects, as many per request as the store takes; missing ones are no error."""
        by_bucket: dict[tuple[str, str], list[_Address]] = defaultdict(list)
        for path in paths:
            by_bucket[_split(path)[:2]].append(self._address(path))
        for addresses in by_bucket.values():
            for start in range(0, len(addresses), _DELETES_PER_REQUEST):
                self._delete(addresses[start : start + _DELETES_PER_REQUEST])

    def _delete(self, addresses: Sequence[_Address]) -> None:
        first = addresses[0]
        self.count("delete", first.path)
        keys: Any = [address.key for address in addresses]
        with first.errors("delete"):
            try:
                self._obstore.delete(first.bucket.store, keys[0] if len(keys) == 1 else keys)
                return
            except FileNotFoundError as error:
                if store_error(error, first.path, "delete").kind != NotFound.kind:
                    raise
        # A store that stops at a missing object: the others may be there still.
        if len(addresses) > 1:
            for _ in in_threads(addresses, self._delete_one, threads=_DELETES_AT_ONCE):
                continue

    def _delete_one(self, address: _Address) -> None:
        self._delete([address])

    # --- addresses -----------------------------------------------------------------------------

    def _address(self, path: str) -> _Address:
        _check_process()
        scheme, authority, key = _split(path)
        return _Address(path=path, bucket=self._bucket(scheme, authority), key=key)

    def _bucket(self, scheme: str, authority: str) -> _Bucket:
        bucket = self._buckets.get((scheme, authority))
        if bucket is None:
            with self._lock_buckets:
                settings = store_settings(scheme, authority, self._properties)
                bucket = self._buckets.setdefault(
                    (scheme, authority),
                    _Bucket(
                        settings=settings,
                        store=_store(settings, settings.retries),
                        once=_store(settings, {"max_retries": 0}),
                    ),
                )
        return bucket


_first_process: list[int] = []
"""The process in which obstore's threads run, from the first request on."""


def _check_process() -> None:
    """Refuse a process that was forked from one with such threads: it would wait for ever."""
    if not _first_process:
        _first_process.append(os.getpid())
    elif _first_process[0] != os.getpid():
        raise StorageError(
            "this process was forked from one that had used an object store, whose threads did not "
            "come along; start processes with multiprocessing's 'spawn', or fork before the first "
            "use"
        )


def _store(settings: StoreSettings, retries: Mapping[str, Any]) -> Any:
    from obstore import store

    make: Callable[..., Any] = {
        "s3": store.S3Store,
        "gcs": store.GCSStore,
        "azure": store.AzureStore,
    }[settings.kind]
    with store_errors(settings.bucket, "open", endpoint=settings.endpoint):
        return make(
            settings.bucket,
            config=dict(settings.config),
            client_options=dict(settings.client),
            retry_config=dict(retries),
            credential_provider=settings.credentials,
        )


def _split(path: str) -> tuple[str, str, str]:
    """Scheme, bucket and key of an address. The key is taken as it is: nothing is decoded."""
    scheme, separator, rest = path.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme.lower() not in KINDS or not separator or not bucket:
        raise InvalidInput(f"{path!r} is not an object store address such as s3://bucket/key")
    return scheme.lower(), bucket, key


def _version(result: Mapping[str, Any]) -> ObjectVersion:
    return ObjectVersion(e_tag=result.get("e_tag"), generation=result.get("version"))


def _info(root: str, meta: Mapping[str, Any]) -> FileInfo:
    return FileInfo(
        path=f"{root}/{meta['path']}",
        size=int(meta["size"]),
        modified_ms=int(meta["last_modified"].timestamp() * 1000),
    )


def _is_marker(meta: Mapping[str, Any]) -> bool:
    """Whether an entry is the empty object that other tools leave in a folder's place."""
    return meta["size"] == 0 and "." not in meta["path"].rpartition("/")[2]


def _wait(attempt: int) -> None:
    time.sleep(random.uniform(0.5, 1.0) * min(0.1 * 2**attempt, 5.0))
