"""The web application: routing, limits, and answers to errors. Nothing else knows Starlette.

Endpoints of the REST catalog are matched on the raw path, because names may hold any character,
slashes among them. Other pages of the server are ordinary routes: see `build`.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from frazil.errors import FrazilError
from frazil.serve import (
    commits,
    config,
    namespace_endpoints,
    native,
    plans,
    table_endpoints,
    view_endpoints,
)
from frazil.serve.access import authenticated
from frazil.serve.exchange import Answer, Call, Endpoint, namespace_of
from frazil.serve.explorer import endpoints as explorer
from frazil.serve.explorer import static_files
from frazil.serve.guard import API_HEADERS, check_not_a_page
from frazil.serve.native_appends import Appends
from frazil.serve.rest_errors import RestError, rest_error
from frazil.serve.service import Service

log = logging.getLogger("frazil.serve")

THREADS = 32
_METHODS = ["GET", "HEAD", "POST", "DELETE"]
_PREFIX = "{prefix}"


def endpoints() -> tuple[Endpoint, ...]:
    """Every endpoint of the REST catalog."""
    found = (
        *native.ENDPOINTS,
        *namespace_endpoints.ENDPOINTS,
        *table_endpoints.ENDPOINTS,
        *commits.ENDPOINTS,
        *plans.ENDPOINTS,
        *view_endpoints.ENDPOINTS,
    )
    return (config.endpoint(found), *found)


def build(service: Service) -> Starlette:
    """The application."""
    rest = _Rest(
        service,
        endpoints(),
        below="/v1",
        check=lambda call: check_not_a_page(call, has_access=service.access is not None),
    )
    seen = _Rest(
        service,
        explorer.ENDPOINTS,
        below=explorer.API,
        check=lambda call: service.guard.check(
            call, has_access=service.access is not None, names=service.settings.names
        ),
        headers=API_HEADERS,
    )
    routes = [
        Route("/health", _health),
        Route("/v1/{rest:path}", rest.answer, methods=_METHODS),
        Route(f"{explorer.API}/{{rest:path}}", seen.answer, methods=["GET", "POST"]),
        Route("/", _page),
        Route("/explorer", _page),
        Route("/explorer/{path:path}", _page),
    ]
    middleware = [Middleware(GZipMiddleware, minimum_size=1024, compresslevel=1)]
    return _Served(service, routes=routes, middleware=middleware)


class _Served(Starlette):
    """The application, behind what answers appends without it."""

    def __init__(self, service: Service, **parts: Any) -> None:
        super().__init__(**parts)
        self._appends = Appends(service, super().__call__)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._appends(scope, receive, send)


async def _health(_: Request) -> Response:
    return Response(b'{"status":"ok"}', media_type="application/json")


async def _page(request: Request) -> Response:
    """A file of the explorer's page."""
    path = request.path_params.get("path", "")
    found = await to_thread.run_sync(static_files.page, path, request.headers.get("if-none-match"))
    return Response(found.encoded(), status_code=found.status, headers=dict(found.headers))


@dataclass(frozen=True, slots=True)
class _Found:
    endpoint: Endpoint
    parameters: Mapping[str, str]
    format_version: int | None


class _Rest:
    """Answers requests of the REST catalog or of the explorer, one thread each.

    `check` may refuse a request whose sender is known, and `headers` go with every answer.
    """

    def __init__(
        self,
        service: Service,
        offered: Sequence[Endpoint],
        *,
        below: str,
        check: Callable[[Call], None] = lambda call: None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._service = service
        self._check = check
        self._headers = dict(headers or {})
        self._skipped = below.count("/") + 1
        self._templates = [
            (_fixed(each.template.split("/")[self._skipped :]), each) for each in offered
        ]
        self._fixed = self._without_parameters()
        self._threads: CapacityLimiter | None = None

    def _without_parameters(self) -> dict[tuple[str, tuple[str, ...]], Endpoint]:
        """Endpoints whose path has no parameters, where no other one comes before them."""
        found: dict[tuple[str, tuple[str, ...]], Endpoint] = {}
        for parts, endpoint in self._templates:
            if any(part.startswith("{") for part in parts):
                continue
            first = next(
                each
                for template, each in self._templates
                if each.method == endpoint.method and _matched(template, parts) is not None
            )
            if first is endpoint:
                found[endpoint.method, parts] = endpoint
        return found

    async def answer(self, request: Request) -> Response:
        """The answer to a request, an error included."""
        if self._threads is None:
            self._threads = CapacityLimiter(THREADS)
        try:
            timeout_s = self._service.settings.request_timeout_s
            body = await _body(
                request, self._service.settings.max_request_bytes, timeout_s=timeout_s
            )
            async with asyncio.timeout(timeout_s):
                found = await to_thread.run_sync(
                    self._handled, request, body, limiter=self._threads, abandon_on_cancel=True
                )
                if found.pending is not None:
                    found = await self._awaited(found.pending)
        except TimeoutError:
            # The work goes on: whether a commit lands is not known here.
            found = _refused(RestError(504, "GatewayTimeoutException", "the request took too long"))
        except RestError as error:
            found = _refused(error)
        headers = self._headers | dict(found.headers)
        if found.status in (204, 304):
            return Response(status_code=found.status, headers=headers)
        return Response(
            found.encoded(),
            status_code=found.status,
            headers=headers,
            media_type="application/json",
        )

    def _handled(self, request: Request, body: bytes) -> Answer:
        try:
            found = self._route(request)
            service = self._service
            principal = None
            right = found.endpoint.right
            if service.access is not None and right != "open":
                principal = authenticated(service.access, request.headers.get("authorization"))
                named = found.parameters.get("namespace")
                if named is not None:
                    principal.check(right, [namespace_of(named)])
                elif right == "write" and not found.endpoint.names_in_body:
                    principal.check(right, [None])
            call = Call(
                method=request.method,
                path=request.url.path,
                parameters=found.parameters,
                query=dict(request.query_params),
                headers={key.lower(): value for key, value in request.headers.items()},
                body=body,
                format_version=found.format_version,
                principal=principal,
            )
            self._check(call)
            if service.settings.is_read_only and found.endpoint.right == "write":
                raise RestError(403, "ForbiddenException", "this server is read-only")
            endpoint = found.endpoint
            if endpoint.right != "write":
                return endpoint.handler(service, call)
            again = endpoint.again
            return service.replay.answer(
                call,
                lambda: endpoint.handler(service, call),
                None if again is None else lambda: again(service, call),
            )
        except RestError as error:
            return _refused(error)
        except FrazilError as error:
            answer = rest_error(error)
            if answer.status >= 500:
                log.exception("%s %s", request.method, request.url.path)
            return _refused(answer)
        except Exception as error:
            mark = uuid.uuid4().hex[:12]
            log.exception("%s %s failed (%s)", request.method, request.url.path, mark)
            text = f"{type(error).__name__}; the server's log has more under {mark}"
            return _refused(RestError(500, "InternalServerError", text))

    async def _awaited(self, pending: Future[Any]) -> Answer:
        try:
            return Answer(body=await asyncio.shield(asyncio.wrap_future(pending)))
        except FrazilError as error:
            return native.refusal(error)
        except RestError as error:
            return _refused(error)

    def _route(self, request: Request) -> _Found:
        raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
        parts = [unquote(part) for part in raw.decode("ascii").split("?")[0].split("/")]
        parts = parts[self._skipped :]
        format_version = config.PREFIXES.get(parts[0]) if parts else None
        if format_version is not None:
            parts = parts[1:]
        fixed = self._fixed.get((request.method, tuple(parts)))
        if fixed is not None:
            return _Found(fixed, {}, format_version)
        known = False
        for template, endpoint in self._templates:
            parameters = _matched(template, parts)
            if parameters is None:
                continue
            known = True
            if endpoint.method == request.method:
                return _Found(endpoint, parameters, format_version)
        if known:
            raise RestError(405, "MethodNotAllowedException", f"{request.method} is not offered")
        raise RestError(404, "NotFoundException", f"{request.url.path}: no such endpoint")


def _fixed(template: Sequence[str]) -> tuple[str, ...]:
    return tuple(part for part in template if part != _PREFIX)


def _matched(template: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    if len(template) != len(parts):
        return None
    found: dict[str, str] = {}
    for wanted, part in zip(template, parts, strict=True):
        if wanted.startswith("{"):
            if not part:
                return None
            found[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return found


async def _body(request: Request, limit: int, *, timeout_s: float) -> bytes:
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise RestError(
                        413, "RequestTooLargeException", f"the body is over {limit} bytes"
                    )
                chunks.append(chunk)
    except TimeoutError:  # nothing has been done
        raise RestError(
            408, "RequestTimeoutException", f"the body did not arrive in {timeout_s:g} s"
        ) from None
    return b"".join(chunks)


def _refused(error: RestError) -> Answer:
    body: dict[str, Any] = error.body()
    return Answer(status=error.status, body=body)
