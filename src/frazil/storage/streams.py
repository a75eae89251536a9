"""File objects that pyarrow can use: ranges of an open file, and new files as streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from frazil.storage.base import Counted, RandomAccess, explained

if TYPE_CHECKING:
    import pyarrow as pa

WHOLE_OBJECT_BYTES: Final = 2 * 1024 * 1024
"""Objects up to this size are read in one request: a round trip costs as much as these bytes."""
READ_AHEAD_BYTES: Final = 256 * 1024
"""What a range request asks for at least: columns beside each other then come together."""


class RangeFile:
    """Adapts a range reader to the file object that pyarrow expects."""

    def __init__(self, access: RandomAccess) -> None:
        self._access = access
        self._position = 0
        self.closed = False

    def read(self, length: int = -1) -> bytes:
        remaining = self._access.size - self._position
        count = remaining if length is None or length < 0 else min(length, remaining)
        data = self._access.read_at(self._position, count) if count > 0 else b""
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


def as_arrow(access: RandomAccess) -> pa.NativeFile:
    """A range reader as a file of pyarrow."""
    import pyarrow as pa

    return pa.PythonFile(RangeFile(access), mode="r")


class _Held:
    """Ranges of another file, some bytes of which are kept: those from `_start`."""

    def __init__(self, source: RandomAccess, start: int) -> None:
        self._source = source
        self.path = source.path
        self.size = source.size
        self._start = start
        self._held = b""

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes of one range, which must be held."""
        at = offset - self._start
        return self._held[at : at + length]

    def fetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Say which ranges are read next."""
        self._source.fetch(ranges)

    def arrow(self) -> pa.NativeFile:
        """The same file for pyarrow's readers."""
        return as_arrow(self)


class ReadAhead(_Held):
    """Ranges of an object, fetched a little more than asked for; the last fetch is kept.

    Ranges that were fetched before are taken from `fetched`, once each.
    """

    def __init__(
        self, source: RandomAccess, fetched: dict[tuple[int, int], bytes] | None = None
    ) -> None:
        super().__init__(source, 0)
        self._fetched = fetched

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes of one range."""
        fetched = self._fetched.pop((offset, length), None) if self._fetched else None
        if fetched is not None:
            return fetched
        if not self._start <= offset <= offset + length <= self._start + len(self._held):
            ahead = max(length, READ_AHEAD_BYTES)
            self._start = max(0, min(offset, self.size - ahead))
            self._held = self._source.read_at(self._start, min(ahead, self.size - self._start))
        return super().read_at(offset, length)


class TailHeld(_Held):
    """Ranges of a file. The end is kept once it was read: a footer is checked, then parsed."""

    def __init__(self, source: RandomAccess) -> None:
        super().__init__(source, source.size)

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes of one range."""
        if offset < self._start:
            data = self._source.read_at(offset, length)
            if offset + length == self.size:
                self._start, self._held = offset, data
            return data
        return super().read_at(offset, length)


class Sink:
    """A new file as a stream; ends in `close` or `abort`. What goes through is counted when it is
    closed."""

    def __init__(
        self,
        storage: Counted,
        path: str,
        *,
        write: Callable[[memoryview], None],
        close: Callable[[], None],
        abort: Callable[[], None],
    ) -> None:
        self._storage = storage
        self._path = path
        self._write = write
        self._close = close
        self._abort = abort
        self._written = 0
        self.closed = False

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError(f"{self._path}: the stream is closed")
        view = memoryview(data).cast("B")
        with explained(self._path, "write"):
            self._write(view)
        self._written += len(view)
        return len(view)

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
        with explained(self._path, "write"):
            self._close()
        self._storage.count("write", self._path, self._written)

    def abort(self) -> None:
        """Let go of the file without completing it; never fails. A store has nothing of it then;
        a local file stays as far as it came, until it is deleted."""
        if self.closed:
            return
        self.closed = True
        with suppress(Exception):
            self._abort()

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, kind: type[BaseException] | None, *about: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        self.abort()  # nobody can complete it any more
