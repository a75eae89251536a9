"""File objects that pyarrow can use: ranges of an open file, and new files as streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from frazil.storage.base import Counted, RandomAccess, explained

if TYPE_CHECKING:
    import pyarrow as pa


class RangeFile:
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


class TailHeld:
    """Ranges of a file. The end is kept once it was read: a footer is checked, then parsed."""

    def __init__(self, source: RandomAccess) -> None:
        self._source = source
        self.path = source.path
        self.size = source.size
        self._start = self.size
        self._held = b""

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes of one range."""
        if offset < self._start:
            data = self._source.read_at(offset, length)
            if offset + length == self.size:
                self._start, self._held = offset, data
            return data
        at = offset - self._start
        return self._held[at : at + length]

    def arrow(self) -> pa.NativeFile:
        """The same file for pyarrow's readers."""
        import pyarrow as pa

        return pa.PythonFile(RangeFile(self), mode="r")


class Sink:
    """A new file as a stream. What goes through is counted when it is closed."""

    def __init__(
        self,
        storage: Counted,
        path: str,
        *,
        write: Callable[[memoryview], None],
        close: Callable[[], None],
    ) -> None:
        self._storage = storage
        self._path = path
        self._write = write
        self._close = close
        self._written = 0
        self.closed = False

    def write(self, data: Any) -> int:
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
