"""Decoded manifests, kept by location with a bound on their size.

Manifests are immutable, so what was decoded stays true. Columns are cached as they are asked for:
a second plan that needs two more columns reads only those two. Small manifests of object stores
come in one request, whatever columns are asked for; the last of them are kept as they came.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, TypeAlias

from frazil.properties.registry import CACHE_MANIFEST_BYTES
from frazil.storage.base import InMemory, RandomAccess
from frazil.value_classes import frozen

if TYPE_CHECKING:
    import pyarrow as pa

    from frazil.format.entries.batch import EntryBatch

_MAX_FILE_BYTES: Final = 16 * 1024 * 1024


Load: TypeAlias = "Callable[[Collection[str] | None], EntryBatch]"


@frozen
class _Held:
    batch: EntryBatch
    keys: frozenset[str] | None  # None: every column there is
    size: int

    def holds(self, keys: Collection[str] | None) -> bool:
        return self.keys is None or (keys is not None and self.keys.issuperset(keys))


class ManifestCache:
    """Least recently used manifests leave first. Safe to share between threads."""

    def __init__(self, max_bytes: int = CACHE_MANIFEST_BYTES.default) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._files: OrderedDict[str, InMemory] = OrderedDict()
        self._file_bytes = 0
        self._max_file_bytes = min(_MAX_FILE_BYTES, max_bytes)

    def opened(self, path: str, open: Callable[[], RandomAccess]) -> pa.NativeFile:
        """A manifest's file, opened again only if it is not in memory."""
        with self._lock:
            file: InMemory | RandomAccess | None = self._files.get(path)
        if file is None:
            file = open()
        source = file.arrow()
        if isinstance(file, InMemory) and file.is_in_memory:
            with self._lock:
                self._forget_file(path)
                self._files[path] = file
                self._file_bytes += file.size
                while self._file_bytes > self._max_file_bytes:
                    self._forget_file(next(iter(self._files)))
        return source

    def fetch(self, path: str, keys: Collection[str] | None, load: Load) -> EntryBatch:
        """The manifest with at least these columns, loaded through `load` where missing."""
        with self._lock:
            cached = self._held.get(path)
            if cached is not None and cached.holds(keys):
                self._held.move_to_end(path)
                return cached.batch
        if cached is None or keys is None:
            batch = load(keys)
            key_set = None if keys is None else frozenset(keys)
        else:
            assert cached.keys is not None
            missing = frozenset(keys) - cached.keys
            batch = cached.batch.with_columns(load(missing))
            key_set = cached.keys | missing
        self.put(path, batch, keys=key_set)
        return batch

    def put(self, path: str, batch: EntryBatch, *, keys: frozenset[str] | None = None) -> None:
        """Keep a manifest, e.g. one that was just written; `keys` None means it is whole."""
        size = batch.nbytes
        with self._lock:
            before = self._held.pop(path, None)
            if before is not None:
                self._bytes -= before.size
            if keys is None:
                self._forget_file(path.partition("\n")[0])  # nothing of it is missing
            if size > self._max_bytes:
                return
            self._held[path] = _Held(batch=batch, keys=keys, size=size)
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, dropped = self._held.popitem(last=False)
                self._bytes -= dropped.size

    def clear(self) -> None:
        """Forget everything, so that the next read is a cold one."""
        with self._lock:
            self._held.clear()
            self._files.clear()
            self._bytes = self._file_bytes = 0

    def _forget_file(self, path: str) -> None:
        dropped = self._files.pop(path, None)
        if dropped is not None:
            self._file_bytes -= dropped.size

    def __reduce__(self) -> tuple[type[ManifestCache], tuple[int]]:
        return (ManifestCache, (self._max_bytes,))
