"""Requests to a Frazil server: connections that are kept open, a bearer token, and what an error or
a missing answer means.

A request that could not be sent has done nothing. One that was sent and not answered may have been
carried out: `Unanswered` says so, and the caller decides whether asking again is safe. The token is
sent to the server and appears nowhere else: not in a repr, a message or a pickle.

Answers are read here too. An append takes the client little more than its request and its answer,
and the standard library spends a third of that on reading a handful of headers as it would those of
a mail. What is read is what HTTP/1.1 says of an answer to GET and POST: a length, chunks, or all
until the end.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from frazil import errors
from frazil.errors import (
    AlreadyExists,
    CatalogError,
    CommitConflict,
    CommitUnknown,
    Conflict,
    FormatError,
    FrazilError,
    InvalidInput,
    NotFound,
    Overloaded,
    Unsupported,
)
from frazil.value_classes import frozen

MAX_HEADER_BYTES = 1 << 16
_PIECE = 1 << 16
_NO_BODY = frozenset({204, 304})


@frozen
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
    connection_header = headers.get("connection", "").lower()
    will_close = "close" in connection_header or (
        version != "HTTP/1.1" and "keep-alive" not in connection_header
    )
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
        size_text = reader.until(b"\r\n").partition(b";")[0].strip()
        try:
            size = int(size_text, 16)
        except ValueError as error:
            raise http.client.HTTPException(f"a chunk of {size_text[:20]!r} bytes") from error
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


TOKEN_VARIABLE = "FRAZIL_TOKEN"
CA_FILE = "tls.ca-file"
TIMEOUT_S = 660.0
"""A little longer than a server takes at most, so that its own answer comes first."""
CONNECT_S = 20.0
IDLE_S = 30.0
"""Servers close connections that idle for longer."""
_MAX_IDLE = 8
_MAX_ANSWER_BYTES = 1 << 30
_REPEATS = 4
_WAIT_S = 0.1
MAX_BUSY_S = 60.0
"""How long a server that is overloaded is asked again."""
_MAX_BUSY_WAIT_S = 2.0
_LOST = frozenset({500, 502, 503, 504})
"""Statuses that do not tell whether a request was carried out."""

_KINDS: dict[str, type[FrazilError]] = {
    kind.kind: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, FrazilError)
}
_STATUSES: dict[int, type[FrazilError]] = {
    400: InvalidInput,
    404: NotFound,
    405: Unsupported,
    413: InvalidInput,
    422: InvalidInput,
}


class Unanswered(CatalogError):
    """A request was sent, and its outcome is not known."""


class Requests:
    """Sends requests to one server. Safe to share between threads and to fork."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput("invalid server address; expected http://host:port")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InvalidInput(
                "the server's address holds more than a host, a port and a path; give a token "
                f"with connect(…, token=…) or in {TOKEN_VARIABLE}"
            )
        try:
            self._port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise InvalidInput(f"the server's address: {error}") from error
        self.address = address.rstrip("/")
        self._host = parts.hostname
        self._path = parts.path.rstrip("/")
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._name = host if parts.port is None else f"{host}:{parts.port}"
        if not _is_visible_ascii(self._path + self._name):
            raise InvalidInput("the server's address holds characters that an address cannot have")
        if not _is_visible_ascii(token or ""):
            raise InvalidInput("the token holds characters that a token cannot have")
        self._is_secure = parts.scheme == "https"
        self._ca_file = ca_file
        self._token = token
        self._forget()

    def __repr__(self) -> str:
        return f"Requests({self.address!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"address": self.address, "ca_file": self._ca_file}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Requests.__init__(self, **state, token=os.environ.get(TOKEN_VARIABLE))

    def close(self) -> None:
        """Close connections."""
        with self._lock:
            while self._idle:
                self._idle.pop()[1].close()

    # Asking

    def read(self, operation: str, document: Mapping[str, Any] | None = None) -> Any:
        """Ask for something that changes nothing; asked again when the answer is lost."""
        return self._repeated(operation, _encoded(document), {})

    def change(self, operation: str, document: Mapping[str, Any]) -> Any:
        """Have a change made once. When the answer is lost it is asked for again, under the same
        key; CommitUnknown when that does not tell either."""
        key = {"Idempotency-Key": str(uuid.uuid4())}
        body = _encoded(document)
        try:
            return self.once(operation, body, key)
        except Unanswered as lost:
            try:
                return self._repeated(operation, body, key)
            except (AlreadyExists, NotFound, CatalogError) as error:
                # It may have been this very request that did it.
                raise CommitUnknown(
                    f"the answer to {operation} was lost ({lost}), and asking again did not tell "
                    f"whether it was carried out: {error}. Look before trying again."
                ) from error

    def once(self, operation: str, body: bytes, headers: Mapping[str, str] | None = None) -> Any:
        """Ask once. Unanswered when the outcome is not known, any other error when nothing
        happened."""
        return self._admitted("POST", f"/v1/frazil/{operation}", body, headers or {})

    def at_once(self, operation: str, document: Mapping[str, Any]) -> Any:
        """Ask once, and not again when the server is overloaded."""
        return self._answer("POST", f"/v1/frazil/{operation}", _encoded(document), {})

    def config(self) -> Any:
        """What the server offers."""
        for attempt in range(_REPEATS):
            try:
                return self._admitted("GET", "/v1/config", None, {})
            except Unanswered:
                if attempt == _REPEATS - 1:
                    raise
                time.sleep(_WAIT_S)
        raise AssertionError("unreachable")

    def _repeated(self, operation: str, body: bytes, headers: Mapping[str, str]) -> Any:
        for attempt in range(_REPEATS):
            try:
                return self.once(operation, body, headers)
            except Refused:
                raise
            except CatalogError:
                if attempt == _REPEATS - 1:
                    raise
                time.sleep(_WAIT_S * 2**attempt)
        raise AssertionError("unreachable")

    def _admitted(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Any:
        """Ask until the server has room for the request: one that was sent away did nothing."""
        deadline = time.monotonic() + MAX_BUSY_S
        wait_s = _WAIT_S
        while True:
            try:
                return self._answer(method, path, body, headers)
            except Overloaded:
                if time.monotonic() + wait_s > deadline:
                    raise
            time.sleep(wait_s * (0.5 + random.random()))  # others were sent away at the same time
            wait_s = min(_MAX_BUSY_WAIT_S, wait_s * 2)

    # One request

    def _answer(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Any:
        request = self._rendered(method, path, body, headers)
        connection = self._connected()
        try:
            connection.sock.sendall(request)
            answer = read_answer(connection.sock, max_bytes=_MAX_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unanswered(
                f"{self.address} did not answer: {error or type(error).__name__}"
            ) from error
        except BaseException:
            connection.close()
            raise
        self._give_back(connection, answer)
        if answer.status >= 300:
            raise self._error(answer.status, answer.data)
        try:
            return json.loads(answer.data) if answer.data else None
        except ValueError as error:
            raise Unanswered(f"{self.address} answered with what is not JSON") from error

    def _rendered(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> bytes:
        """A whole request, so that it is sent, and mostly arrives, in one piece."""
        sent = {"Host": self._name, "User-Agent": "frazil", "Accept-Encoding": "identity"}
        if body is not None:
            sent["Content-Type"] = "application/octet-stream"
            sent["Content-Length"] = str(len(body))
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        lines = [f"{method} {self._path}{path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in {**sent, **headers}.items()]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")

    def _error(self, status: int, data: bytes) -> FrazilError:
        try:
            problem = json.loads(data)["error"]
            message, kind = str(problem["message"]), problem.get("kind")
        except (ValueError, TypeError, KeyError, AttributeError):
            problem, message, kind = {}, f"status {status}", None
        if status in (401, 403):
            hint = "" if self._token else f"; give one with token=… or in {TOKEN_VARIABLE}"
            return Refused(f"{self.address}: {message}{hint if status == 401 else ''}")
        if kind == Overloaded.kind:
            return Overloaded(f"{self.address}: {message}", is_own=status == 429)
        if (kind is None and status in _LOST) or kind == CommitUnknown.kind:
            return Unanswered(f"{self.address}: {message}")
        if kind == CommitConflict.kind:
            conflicts = [Conflict(**conflict) for conflict in problem.get("conflicts", ())]
            return RemoteConflict(message, conflicts)
        found_kind = _KINDS.get(kind) if kind else _STATUSES.get(status)
        if found_kind is FormatError or found_kind is None:
            return CatalogError(f"{self.address}: {message}")
        return found_kind(message)

    # Connections

    def _forget(self) -> None:
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def _connected(self) -> http.client.HTTPConnection:
        if self._process != os.getpid():  # a fork shares its parent's sockets
            self._forget()
        now = time.monotonic()
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if now - since < IDLE_S:
                    return connection
                connection.close()
        connection = self._new()
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            raise CatalogError(
                f"{self.address} cannot be reached: {error}. Is frazil serve running there?"
            ) from error
        connection.sock.settimeout(TIMEOUT_S)
        return connection

    def _new(self) -> http.client.HTTPConnection:
        if not self._is_secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_S)
        context = ssl.create_default_context(cafile=self._ca_file)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=CONNECT_S, context=context
        )

    def _give_back(self, connection: http.client.HTTPConnection, answer: RawAnswer) -> None:
        if answer.will_close:
            connection.close()
            return
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()


class Refused(CatalogError):
    """The server wants a token, or does not allow the request to the owner of this one."""


class RemoteConflict(CommitConflict):
    """A conflict as the server told it: its message lists the conflicts already."""

    def __init__(self, message: str, conflicts: list[Conflict]) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


def _is_visible_ascii(text: str) -> bool:
    """Whether a text can stand in a line of a request: visible ASCII only."""
    return all("!" <= letter <= "~" for letter in text)


def _encoded(document: Mapping[str, Any] | None) -> bytes:
    return json.dumps(document or {}, separators=(",", ":")).encode()


__all__ = [
    "CA_FILE",
    "TOKEN_VARIABLE",
    "RawAnswer",
    "Refused",
    "Requests",
    "Unanswered",
    "read_answer",
]
