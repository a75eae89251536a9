"""Answers of a Frazil server, read from its connection.

An append takes the client little more than its request and its answer, and the standard library
spends a third of that on reading a handful of headers as it would those of a mail. What is read
here is what HTTP/1.1 says of an answer to GET and POST: a length, chunks, or all until the end.
"""

from __future__ import annotations

import http.client
import socket

from frazil.value_classes import dataclass

MAX_HEADER_BYTES = 1 << 16
_PIECE = 1 << 16
_NO_BODY = frozenset({204, 304})


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """A status and a body. `will_close` when the connection cannot be used again."""

    status: int
    data: bytes
    will_close: bool


def read_answer(connection: socket.socket, *, max_bytes: int) -> RawAnswer:
    """The next answer on a connection. HTTPException or OSError when it does not arrive whole."""
    reader = _Reader(connection)
    while True:
        version, status, headers = _head(reader.until(b"\r\n\r\n"))
        if status >= 200:  # others announce the answer itself
            break
    stated = headers.get("connection", "").lower()
    will_close = "close" in stated or (version != "HTTP/1.1" and "keep-alive" not in stated)
    length = headers.get("content-length")
    if status in _NO_BODY:
        data = b""
    elif "chunked" in headers.get("transfer-encoding", "").lower():
        data = _chunks(reader, max_bytes)
    elif length is None:
        data, will_close = reader.rest(max_bytes), True
    elif not _is_number(length):
        raise http.client.HTTPException(f"content-length is {length!r}")
    else:
        data = reader.exact(_within(int(length), max_bytes))
    return RawAnswer(status=status, data=data, will_close=will_close or reader.has_more)


def _head(block: bytes) -> tuple[str, int, dict[str, str]]:
    first, *lines = block.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    code = rest[:3]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not _is_number(code) or len(code) < 3:
        raise http.client.BadStatusLine(first[:100])
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return version, int(code), headers


def _chunks(reader: _Reader, max_bytes: int) -> bytes:
    body = bytearray()
    while True:
        stated = reader.until(b"\r\n").partition(b";")[0].strip()
        try:
            size = int(stated, 16)
        except ValueError as error:
            raise http.client.HTTPException(f"a chunk of {stated[:20]!r} bytes") from error
        if size < 0:
            raise http.client.HTTPException(f"a chunk of {size} bytes")
        if not size:
            break
        _within(len(body) + size, max_bytes)
        body += reader.exact(size)
        reader.until(b"\r\n")
    while reader.until(b"\r\n"):  # what follows the chunks says nothing that is needed
        pass
    return bytes(body)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _within(size: int, max_bytes: int) -> int:
    if not 0 <= size <= max_bytes:
        raise http.client.HTTPException(f"an answer of {size} bytes; at most {max_bytes} are read")
    return size


class _Reader:
    """Bytes of a connection, in the pieces that are asked for."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._here = b""

    @property
    def has_more(self) -> bool:
        """Whether bytes have come that nobody asked for."""
        return bool(self._here)

    def until(self, mark: bytes) -> bytes:
        """What comes before a mark; both are taken."""
        while mark not in self._here:
            if len(self._here) > MAX_HEADER_BYTES:
                raise http.client.LineTooLong("header")
            self._here += self._more()
        line, _, self._here = self._here.partition(mark)
        return line

    def exact(self, size: int) -> bytes:
        """So many bytes."""
        if size <= len(self._here):
            data, self._here = self._here[:size], self._here[size:]
            return data
        pieces, count = [self._here], len(self._here)
        self._here = b""
        while count < size:
            piece = self._connection.recv(min(_PIECE, size - count))
            if not piece:
                raise http.client.IncompleteRead(b"".join(pieces), size - count)
            pieces.append(piece)
            count += len(piece)
        return b"".join(pieces)

    def rest(self, max_bytes: int) -> bytes:
        """All until the other side closes the connection."""
        pieces, count = [self._here], _within(len(self._here), max_bytes)
        self._here = b""
        while piece := self._connection.recv(_PIECE):
            pieces.append(piece)
            count = _within(count + len(piece), max_bytes)
        return b"".join(pieces)

    def _more(self) -> bytes:
        piece = self._connection.recv(_PIECE)
        if not piece:
            raise http.client.RemoteDisconnected("the connection was closed without an answer")
        return piece


__all__ = ["RawAnswer", "read_answer"]
