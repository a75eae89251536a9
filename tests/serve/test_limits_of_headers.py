"""Headers that never end are refused; a body that comes with its headers is not counted as one."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from frazil.serve.limits import MAX_HEADER_BYTES
from frazil.serve.running import Running


def _connected(server: Running) -> socket.socket:
    parts = urlsplit(server.uri)
    assert parts.hostname is not None
    assert parts.port is not None
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def test_headers_without_end_are_refused(server: Running) -> None:
    with _connected(server) as connection:
        connection.sendall(b"GET /v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ")
        sent = 0
        try:
            while sent < 100 * MAX_HEADER_BYTES:
                connection.sendall(b"a" * 16_384)
                sent += 16_384
        except OSError:
            pass  # the server has closed the connection
        else:
            assert connection.recv(64).startswith(b"HTTP/1.1 400 ")
    assert sent < 100 * MAX_HEADER_BYTES


def test_a_large_body_is_taken(server: Running) -> None:
    body = b"{}" + b" " * (4 * MAX_HEADER_BYTES)
    with _connected(server) as connection:
        start = "POST /v1/frazil/about HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        connection.sendall(f"{start}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert connection.recv(64).startswith(b"HTTP/1.1 200 ")
