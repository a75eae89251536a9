"""The body of a request, received within its limits, from the messages of ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from frazil.serve.access.admission import Bodies
from frazil.serve.limits import MAX_BODY_PAUSE_S, MAX_BODY_S
from frazil.serve.rest_errors import RestError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Gone(Exception):
    """The client closed the connection."""


class Body:
    """The bytes of one body, counted until they are given back."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.size = 0

    async def receive(
        self, receive: Receive, *, stated: str | None, max_bytes: int, timeout_s: float
    ) -> bytes:
        """All of it. 413 when it is too large, which a stated length tells at once; 408 when it
        does not arrive in time; Gone when the client has left."""
        if stated is not None and stated.isdigit() and len(stated) < 20 and int(stated) > max_bytes:
            raise _too_large(max_bytes)
        chunks: list[bytes] = []
        within_s = min(timeout_s, MAX_BODY_S)
        try:
            async with asyncio.timeout(within_s) as whole:
                end = whole.when()
                assert end is not None
                has_more = True
                while has_more:
                    pause = asyncio.get_running_loop().time() + MAX_BODY_PAUSE_S
                    whole.reschedule(min(end, pause))
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Gone
                    chunk = message.get("body", b"")
                    self._count(len(chunk), max_bytes)
                    chunks.append(chunk)
                    has_more = bool(message.get("more_body"))
        except TimeoutError:  # nothing has been done
            raise RestError(
                408,
                "RequestTimeoutException",
                f"the body did not arrive in {within_s:g} s, or paused for {MAX_BODY_PAUSE_S:g} s",
            ) from None
        return b"".join(chunks)

    def _count(self, size: int, max_bytes: int) -> None:
        if self.size + size > max_bytes:
            raise _too_large(max_bytes)
        self._bodies.take(size)
        self.size += size

    def give_back(self) -> None:
        """It is not needed any more."""
        size, self.size = self.size, 0
        self._bodies.give_back(size)


def _too_large(max_bytes: int) -> RestError:
    return RestError(413, "RequestTooLargeException", f"the body is over {max_bytes} bytes")
