"""Appends of Frazil's own client, taken straight from the web server to their group.

They are the requests that come by the hundred a second, and most of what one costs is its way
through the layers of a web application. So they are recognised first: the body is read, the header
decoded, and the append waits in its group without a thread of its own. Whatever is not ordinary
(access rules, an idempotency key, a table that has not been used yet) goes the way of all other
requests, which ends in the same group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

from frazil.catalog import remote_wire
from frazil.errors import FrazilError
from frazil.serve import native, native_wire
from frazil.serve.exchange import Answer
from frazil.serve.native_tables import NativeTables
from frazil.serve.replay import HEADER
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service

PATH = f"{native.ROOT}/append"
_OTHERS = frozenset({HEADER.encode(), b"origin", b"sec-fetch-site"})
"""Headers that need more than an append does: a request that may be repeated, or a web page's."""
_TYPE = (b"content-type", b"application/json")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Appends:
    """Answers appends, and passes every other request on."""

    def __init__(self, service: Service, others: Application) -> None:
        self._service = service
        self._others = others
        self._is_direct = service.access is None and not service.settings.is_read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_direct or not _is_append(scope):
            await self._others(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._service.settings.request_timeout_s):
                body, seen = await self._body(receive)
        except TimeoutError:
            error = RestError(408, "RequestTimeoutException", "the body did not arrive in time")
            answer: Answer | None = Answer(status=error.status, body=error.body())
        else:
            answer = None if body is None else await self._answer(body)
        if answer is None:
            await self._others(scope, _again(seen, receive), send)
            return
        data = answer.encoded()
        length = (b"content-length", b"%d" % len(data))
        await send(
            {"type": "http.response.start", "status": answer.status, "headers": [_TYPE, length]}
        )
        await send({"type": "http.response.body", "body": data})

    async def _body(self, receive: Receive) -> tuple[bytes | None, list[Message]]:
        """The body, None when it is too large or was cut off; and the messages that held it."""
        seen: list[Message] = []
        size = 0
        while True:
            message = await receive()
            seen.append(message)
            size += len(message.get("body", b""))
            too_large = size > self._service.settings.max_request_bytes
            if message["type"] != "http.request" or too_large:
                return None, seen
            if not message.get("more_body"):
                return b"".join(each.get("body", b"") for each in seen), seen

    async def _answer(self, body: bytes) -> Answer | None:
        """The answer to an append, None for one that is not ordinary."""
        try:
            header_bytes, entries = remote_wire.unframed(body)
            header: native_wire.Append = native_wire.decoded(header_bytes, native_wire.Append)
            tables = cast("NativeTables | None", self._service.native)
            head = None if tables is None else tables.known_head(header.key)
            if tables is None or head is None:
                return None
            pending = asyncio.wrap_future(tables.groups.append(head, header, entries))
            async with asyncio.timeout(self._service.settings.request_timeout_s):
                return Answer(body=await asyncio.shield(pending))
        except TimeoutError:
            # The work goes on: whether the append lands is not known here.
            error = RestError(504, "GatewayTimeoutException", "the request took too long")
            return Answer(status=error.status, body=error.body())
        except FrazilError as error:
            return native.refusal(error)
        except RestError as error:
            return Answer(status=error.status, body=error.body())


def _is_append(scope: Scope) -> bool:
    return (
        scope["type"] == "http"
        and scope["path"] == PATH
        and scope["method"] == "POST"
        and _OTHERS.isdisjoint(name for name, _ in scope["headers"])
    )


def _again(seen: list[Message], receive: Receive) -> Receive:
    """Messages that were received, once more, then those that follow."""
    left = iter(seen)

    async def next_message() -> Message:
        for message in left:
            return message
        return await receive()

    return next_message
