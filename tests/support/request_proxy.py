"""A proxy before an object store that lists the requests that pass and can spoil some of them.

Signatures of S3 cover the Host header, which is passed on unchanged, so a client may talk to the
proxy as if it were the store.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.object_server import Bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, as the store was asked."""

    method: str
    path: str
    query: str
    headers: dict[str, str] = field(repr=False)

    @property
    def is_listing(self) -> bool:
        """Whether it lists a bucket."""
        return self.method == "GET" and "list-type=2" in self.query

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to a request: an answer instead of the store's, before it saw the request or
    `after` it took effect; without a status the connection is cut."""

    status: int | None = None
    code: str = ""
    after: bool = False
    message: str = ""


@dataclass(slots=True)
class Proxy:
    """Requests so far, and what spoils the next ones."""

    bucket: Bucket
    requests: list[Request] = field(default_factory=list)
    fault: Callable[[Request], Fault | None] = lambda request: None
    delay_seconds: float = 0.0
    together: dict[str, threading.Barrier] = field(default_factory=dict)
    """Parts of names, and how many such requests wait for each other: those that come one after
    the other wait in vain, and fail."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def clear(self) -> None:
        """Forget the requests so far."""
        with self._lock:
            self.requests = []

    def methods(self) -> list[str]:
        """The methods of the requests so far; LIST for a listing."""
        return ["LIST" if each.is_listing else each.method for each in self.requests]

    def note(self, request: Request) -> None:
        """List a request, and make it wait where it has to."""
        with self._lock:
            self.requests.append(request)
        if self.delay_seconds:
            time.sleep(self.delay_seconds)
        for part, barrier in self.together.items():
            if part in request.path and request.method in ("GET", "PUT"):
                barrier.wait(timeout=20)

    def fail_next(self, fault: Fault, *, times: int = 1, method: str = "", part: str = "") -> None:
        """Spoil the next requests of a method whose path or query has some part."""
        remaining = [times]

        def chosen(request: Request) -> Fault | None:
            with self._lock:
                is_meant = method in ("", request.method) and (
                    part in f"{request.path}?{request.query}"
                )
                if not is_meant or not remaining[0]:
                    return None
                remaining[0] -= 1
                return fault

        self.fault = chosen


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: Proxy
    upstream: tuple[str, int]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)

    def log_message(self, *arguments: Any) -> None:
        """Nothing is printed."""

    def _handle(self) -> None:
        body = self._body()
        parts = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=unquote(parts.path),
            query=parts.query,
            headers={name.lower(): value for name, value in self.headers.items()},
        )
        self.proxy.note(request)
        fault = self.proxy.fault(request)
        if fault is not None and not fault.after:
            self._spoil(fault)
            return
        status, headers, data = self._forward(body)
        if fault is not None:
            self._spoil(fault)
            return
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date"):
                self.send_header(name, value)
        known = {name.lower(): value for name, value in headers}.get("content-length")
        if status not in (204, 304):
            is_head = self.command == "HEAD"
            self.send_header("Content-Length", known or "0" if is_head else str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> bytes:
        """What was sent, framed as it came."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        lines = [self.rfile.readline()]
        while size := int(lines[-1].split(b";")[0], 16):
            lines += [self.rfile.read(size + 2), self.rfile.readline()]
        while lines[-1].strip():  # trailers, and the empty line after them
            lines.append(self.rfile.readline())
        return b"".join(lines)

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(*self.upstream, timeout=60)
        try:
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _spoil(self, fault: Fault) -> None:
        self.close_connection = True
        if fault.status is None:
            self.connection.shutdown(2)
            return
        text = f"<Error><Code>{fault.code}</Code><Message>{fault.message}</Message></Error>"
        body = b"" if self.command == "HEAD" else text.encode()
        self.send_response(fault.status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def request_proxy(bucket: Bucket) -> Iterator[Proxy]:
    """A proxy before the server of an S3 bucket; its `bucket` leads through it."""
    target = urlsplit(bucket.endpoint)
    assert target.hostname is not None
    assert target.port is not None
    proxy = Proxy(bucket=bucket)
    handler = type(
        "_BoundHandler", (_Handler,), {"proxy": proxy, "upstream": (target.hostname, target.port)}
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    proxy.bucket = replace(bucket, properties={**bucket.properties, "s3.endpoint": endpoint})
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
