"""An S3 API on loopback with a delay before every request, which it counts.

moto serves the API in a process of its own; a small proxy in front of it sleeps, counts and passes
requests on. Peers are given the proxy's address.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BUCKET = "bench"
_HOP = {"connection", "transfer-encoding", "keep-alive"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ObjectStore:
    """A running store. `requests` counts by verb since `reset`, `sent` and `received` are what
    clients sent and received."""

    def __init__(self, delay_ms: float) -> None:
        self.delay_ms = delay_ms
        self.requests: Counter[str] = Counter()
        self.sent = 0
        self.received = 0
        self._port = _free_port()
        self._moto = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self._port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait()
        self._proxy = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._proxy.daemon_threads = True
        threading.Thread(target=self._proxy.serve_forever, daemon=True).start()
        self._put_bucket()

    @property
    def endpoint(self) -> str:
        """What clients are given."""
        return f"http://127.0.0.1:{self._proxy.server_address[1]}"

    def reset(self) -> None:
        """Count from nothing."""
        self.requests.clear()
        self.sent = self.received = 0

    @property
    def total(self) -> int:
        """Requests since the reset."""
        return sum(self.requests.values())

    def close(self) -> None:
        """Stop both processes."""
        self._proxy.shutdown()
        self._moto.terminate()
        self._moto.wait()

    def __enter__(self) -> ObjectStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self) -> None:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("moto's server did not start")

    def _put_bucket(self) -> None:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/{BUCKET}", method="PUT", data=b""
        )
        try:
            urllib.request.urlopen(request).close()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"cannot make a bucket: {error}") from error

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        store = self

        class Passing(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def _pass(self) -> None:
                body = self._body()
                time.sleep(store.delay_ms / 1000)
                store.requests[self.command] += 1
                store.sent += len(body)
                onward = HTTPConnection("127.0.0.1", store._port)
                headers = {
                    name: value
                    for name, value in self.headers.items()
                    if name.lower() not in _HOP | {"content-length", "expect"}
                }
                headers["Content-Length"] = str(len(body))
                onward.request(self.command, self.path, body=body, headers=headers)
                reply = onward.getresponse()
                content = reply.read()
                store.received += len(content)
                self.send_response(reply.status)
                length = reply.getheader("Content-Length")
                for name, value in reply.getheaders():
                    if name.lower() not in _HOP | {"content-length", "date", "server"}:
                        self.send_header(name, value)
                is_head = self.command == "HEAD"
                self.send_header(
                    "Content-Length", (length or "0") if is_head else str(len(content))
                )
                self.end_headers()
                if not is_head:
                    self.wfile.write(content)
                self.wfile.flush()
                onward.close()

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                    parts = []
                    while size := int(self.rfile.readline().split(b";")[0], 16):
                        parts.append(self.rfile.read(size))
                        self.rfile.readline()
                    self.rfile.readline()
                    return b"".join(parts)
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))

            do_GET = _pass  # noqa: N815
            do_PUT = _pass  # noqa: N815
            do_POST = _pass  # noqa: N815
            do_HEAD = _pass  # noqa: N815
            do_DELETE = _pass  # noqa: N815

            def handle_expect_100(self) -> bool:
                goes_on = super().handle_expect_100()
                self.wfile.flush()
                return goes_on

            def log_message(self, *_: Any) -> None:
                return

        return Passing
