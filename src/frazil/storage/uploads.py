"""A new object as a stream: one request while it is small, parts of a multipart upload when it
grows. An upload that does not end in `close` is taken back: nothing of it stays in the store.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Final

PART_BYTES: Final = 8 * 1024 * 1024
"""Bytes of a part; a smaller object is put in one request."""
_PARTS_AT_ONCE: Final = 4
_LOOK_SECONDS: Final = 0.05

Put = Callable[[bytes], None]
PutParts = Callable[[Iterator[bytes]], None]


class _TakenBack(Exception):
    """Ends an upload that nobody wants any more."""


class Upload:
    """Bytes on their way into one object. `put` writes a small object; `put_parts` a large one,
    from an iterator, and takes the upload back when the iterator raises."""

    def __init__(self, put: Put, put_parts: PutParts) -> None:
        self._put = put
        self._put_parts = put_parts
        self._held = bytearray()
        self._parts: _Parts | None = None

    def write(self, view: memoryview) -> None:
        """Take bytes in."""
        self._held += view
        while len(self._held) >= PART_BYTES:
            if self._parts is None:
                self._parts = _Parts(self._put_parts)
            part = bytes(memoryview(self._held)[:PART_BYTES])
            del self._held[:PART_BYTES]
            self._parts.add(part)

    def close(self) -> None:
        """Complete the object."""
        rest, self._held = bytes(self._held), bytearray()
        if self._parts is None:
            self._put(rest)
            return
        if rest:
            self._parts.add(rest)
        self._parts.finish()

    def abort(self) -> None:
        """Take the upload back; never fails."""
        self._held = bytearray()
        if self._parts is not None:
            self._parts.abort()


class _Parts:
    """A multipart upload in a thread of its own: obstore asks for parts, this hands them over."""

    def __init__(self, put_parts: PutParts) -> None:
        self._queue: queue.Queue[bytes | None] = queue.Queue(maxsize=_PARTS_AT_ONCE)
        self._is_taken_back = threading.Event()
        self._failure: BaseException | None = None
        self._is_done = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(put_parts,), name="frazil-upload", daemon=True
        )
        self._thread.start()

    def _run(self, put_parts: PutParts) -> None:
        try:
            put_parts(self._each())
        except BaseException as error:
            self._failure = error
        finally:
            self._is_done.set()

    def _each(self) -> Iterator[bytes]:
        while (part := self._next()) is not None:
            yield part

    def _next(self) -> bytes | None:
        while not self._is_taken_back.is_set():
            try:
                return self._queue.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
        raise _TakenBack

    def add(self, part: bytes) -> None:
        self._hand_over(part)
        self._check()

    def finish(self) -> None:
        self._hand_over(None)
        self._thread.join()
        self._check()

    def abort(self) -> None:
        self._is_taken_back.set()
        # A stream that nobody holds may be collected in any thread, this one included.
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _hand_over(self, part: bytes | None) -> None:
        while not self._is_done.is_set():
            try:
                self._queue.put(part, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return

    def _check(self) -> None:
        if self._is_done.is_set() and self._failure is not None:
            raise self._failure
