"""A server whose answers get lost: the request is handled, and the client learns nothing of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Asgi = Callable[[Any, Any, Any], Awaitable[None]]
LOSSES = ("500", "502", "503", "504", "cut", "cut before")
"""A status in place of the answer, or a connection that ends in the middle of it; `cut before`
loses the request itself."""


class Cut(Exception):
    """Ends a connection."""


@dataclass
class Lossy:
    """An application whose next answers to commits are lost, one per item of `pending`."""

    app: Asgi
    pending: list[str] = field(default_factory=list)
    lost: int = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request, or lose it."""
        if not self.pending or not _is_commit(scope):
            await self.app(scope, receive, send)
            return
        loss = self.pending.pop(0)
        self.lost += 1
        if loss == "cut before":
            await _cut(send)
        sent: list[Any] = []

        async def keep(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, keep)
        if loss == "cut":
            await _cut(send)
        if loss == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        body = b'{"error":{"message":"lost","type":"Lost","code":%s}}' % loss.encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": int(loss), "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _is_commit(scope: Any) -> bool:
    path: str = scope.get("path", "")
    if scope.get("method") != "POST":
        return False
    return path.endswith("/transactions/commit") or path.rsplit("/", 2)[-2] == "tables"


async def _cut(send: Any) -> None:
    headers = [(b"content-length", b"1000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{", "more_body": True})
    raise Cut
