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

from frazil.catalog.remote import remote_wire
from frazil.errors import FrazilError
from frazil.serve.access.admission import Body, Gone, Message, Receive
from frazil.serve.access.guard import is_own
from frazil.serve.exchange import Response, decoded
from frazil.serve.native import native_endpoints, native_wire
from frazil.serve.native.native_tables import NativeTables
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service
from frazil.serve.view.replay import HEADER

PATH = f"{native_endpoints.ROOT}/append"
_OTHERS = frozenset({HEADER.encode(), b"origin", b"sec-fetch-site"})
"""Headers that need more than an append does: a request that may be repeated, or a web page's."""
_TYPE = (b"content-type", b"application/json")

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Appends:
    """Answers appends, and passes every other request on."""

    def __init__(self, service: Service, others: Application) -> None:
        self._service = service
        self._others = others
        self._is_direct = service.access is None and not service.settings.is_read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_direct or not _is_append(scope, self._service.settings.names):
            await self._others(scope, receive, send)
            return
        body = Body(self._service.bodies)
        try:
            answer, passed_on = await self._received(body, scope, receive)
        finally:
            body.give_back()
        if answer is None:
            await self._others(scope, passed_on, send)
            return
        data = answer.encoded()
        headers = [
            (name.lower().encode(), value.encode()) for name, value in answer.headers.items()
        ]
        headers += [_TYPE, (b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    async def _received(
        self, body: Body, scope: Scope, receive: Receive
    ) -> tuple[Response | None, Receive]:
        """The answer, None for a request that is not ordinary; and what gives its messages."""
        settings = self._service.settings
        lengths = [value.decode() for name, value in scope["headers"] if name == b"content-length"]
        try:
            data = await body.receive(
                receive,
                stated=lengths[0] if lengths else None,
                max_bytes=settings.max_request_bytes,
                timeout_s=settings.request_timeout_s,
            )
        except Gone:
            return Response(status=499), receive
        except RestError as error:
            return Response(status=error.status, body=error.body(), headers=error.headers), receive
        return await self._answer(data), _again(data, receive)

    async def _answer(self, body: bytes) -> Response | None:
        """The answer to an append, None for one that is not ordinary."""
        try:
            header_bytes, entries = remote_wire.unframed(body)
            header: native_wire.Append = decoded(header_bytes, native_wire.Append)
            tables = cast("NativeTables | None", self._service.native)
            head = None if tables is None else tables.cached_head(header.key)
            if tables is None or head is None:
                return None
            pending = asyncio.wrap_future(tables.groups.append(head, header, entries))
            async with asyncio.timeout(self._service.settings.request_timeout_s):
                return Response(body=await asyncio.shield(pending))
        except TimeoutError:
            # The work goes on: whether the append lands is not known here.
            error = RestError(504, "GatewayTimeoutException", "the request took too long")
            return Response(status=error.status, body=error.body())
        except FrazilError as error:
            return native_endpoints.refusal(error)
        except RestError as error:
            return Response(status=error.status, body=error.body(), headers=error.headers)


def _is_append(scope: Scope, names: tuple[str, ...]) -> bool:
    """Whether a request is an append that needs nothing else. One under a strange name goes the way
    that refuses it."""
    return (
        scope["type"] == "http"
        and scope["path"] == PATH
        and scope["method"] == "POST"
        and _OTHERS.isdisjoint(name for name, _ in scope["headers"])
        and is_own(_host(scope), names)
    )


def _host(scope: Scope) -> str:
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return bytes(host).decode("latin-1")


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was received, once more, then the messages that follow."""
    left = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def next_message() -> Message:
        for message in left:
            return message
        return await receive()

    return next_message
