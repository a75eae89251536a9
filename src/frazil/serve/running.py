"""A server inside this process, and the memory that it may take."""

from __future__ import annotations

import ctypes
import signal
import socket
import ssl
import sys
import threading
import time
from typing import Final

import uvicorn
from starlette.applications import Starlette

from frazil.errors import CatalogError, InvalidInput
from frazil.serve.access.connections import bounded
from frazil.serve.limits import KEEP_ALIVE_S, MAX_CONNECTIONS
from frazil.serve.settings import Certificate

_START_S = 30.0
_MIB: Final = 1 << 20
_ARENAS: Final = 2
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Numbers of `mallopt(3)`."""


class Running:
    """A server that runs until it is closed. `uri` is what clients are given."""

    def __init__(
        self,
        app: Starlette,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        certificate: Certificate | None = None,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        if not 0 <= port < 1 << 16:
            raise InvalidInput(f"port is {port}; expected 0 to 65535")
        config = uvicorn_config(app, certificate, max_connections=max_connections)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Only sockets that say TCP send small answers at once; others wait 40 ms for the client.
        self._socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except (OSError, ValueError, TypeError) as error:  # the latter: no name of a host
            self._socket.close()
            reason = error.strerror if isinstance(error, OSError) else error
            raise InvalidInput(f"cannot listen on {host!r}, port {port}: {reason}") from error
        address = f"[{host}]" if ":" in host else host
        scheme = "http" if certificate is None else "https"
        self.uri = f"{scheme}://{address}:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise CatalogError(f"the server at {self.uri} did not start")
            time.sleep(0.01)

    def __repr__(self) -> str:
        return f"Running({self.uri!r})"

    def __str__(self) -> str:
        return self.uri

    def wait(self) -> None:
        """Serve until the process gets SIGINT or SIGTERM."""
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        stop.wait()

    def close(self) -> None:
        """Finish requests under way and stop."""
        self._server.should_exit = True
        self._thread.join(_START_S)
        self._socket.close()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def uvicorn_config(
    app: Starlette,
    certificate: Certificate | None = None,
    *,
    max_connections: int = MAX_CONNECTIONS,
) -> uvicorn.Config:
    """How the web server runs: quietly, and with headers that reveal nothing about it."""
    config = uvicorn.Config(
        app,
        ssl_certfile=None if certificate is None else certificate.file,
        ssl_keyfile=None if certificate is None else certificate.key,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=10,
        timeout_keep_alive=KEEP_ALIVE_S,
        http=bounded(max_connections),
        ws="none",  # a web socket would leave the limits of connections behind
    )
    if certificate is not None:
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(
                f"the certificate {certificate.file} with the key {certificate.key or 'in it'} "
                f"cannot be used: {error}"
            ) from error
    return config


def bound_memory(mebibytes: int) -> None:
    """Let this process allocate no more than this, its threads and libraries included, on Linux;
    0 sets no bound."""
    if mebibytes < 0:
        raise InvalidInput(f"the memory is {mebibytes} MiB; expected 0 or more")
    if sys.platform != "linux":
        return
    _give_back_early()
    if mebibytes:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = mebibytes * _MIB
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _give_back_early() -> None:
    """Have the C library keep little of what was freed: by default each thread may have a heap of
    its own, which stays as large as it ever was."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # another C library keeps less by itself
        mallopt(_M_ARENA_MAX, _ARENAS)
        mallopt(_M_MMAP_THRESHOLD, _MIB // 4)
