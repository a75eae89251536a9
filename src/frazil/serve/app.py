"""The web application: routing, limits, and answers to errors. Nothing else knows Starlette.

Endpoints of the REST catalog are matched on the raw path, because names may hold any character,
slashes among them. Other pages of the server are ordinary routes: see `build`.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from anyio import to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import Response as HttpResponse
from starlette.routing import Route
from starlette.types import Receive as Receives
from starlette.types import Scope, Send

from frazil import cancellation
from frazil.errors import FrazilError, Overloaded
from frazil.serve.access.admission import Body, Gone, Lane, Receive
from frazil.serve.access.guard import API_HEADERS, check_not_a_page
from frazil.serve.access.principals import Principal, authenticated
from frazil.serve.access.rights import ANYBODY, Names, Rights, Role
from frazil.serve.exchange import Endpoint, Request, Response, Right, namespace_of
from frazil.serve.explorer import endpoints as explorer
from frazil.serve.limits import MAX_QUESTION_BYTES
from frazil.serve.native import native_endpoints
from frazil.serve.native.native_appends import Appends
from frazil.serve.rest import (
    commits,
    namespace_endpoints,
    plans,
    table_endpoints,
    view_endpoints,
)
from frazil.serve.rest_errors import RestError, rest_error
from frazil.serve.service import Service
from frazil.serve.view import replay
from frazil.value_classes import dataclass, frozen, replace

log = logging.getLogger("frazil.serve")

_METHODS = ["GET", "HEAD", "POST", "DELETE"]
_PREFIX = "{prefix}"
_MIN_COMPRESSED = 1024
_COMPRESSION = 1
_PREFIXES = {"v2": 2, "v3": 3}
"""Prefixes that show all tables as one format version."""
_ONLY_V2 = "pyiceberg/"
"""Clients that read v3 and cannot write it, by the start of their user agent."""
_PLANNED_HERE = {"scan-planning-mode": "server", "rest-scan-planning-enabled": "true"}
"""What clients are told who should let the server plan: now, and in PyIceberg 0.11."""


def endpoints(*, is_native: bool = True, shows_v4: bool = True) -> tuple[Endpoint, ...]:
    """Every endpoint of the REST catalog; `is_native` are those of Frazil's own clients, `shows_v4`
    that of the draft."""
    listed = (
        *(native_endpoints.ENDPOINTS if is_native else ()),
        *namespace_endpoints.ENDPOINTS,
        *table_endpoints.ENDPOINTS,
        *commits.ENDPOINTS,
        *plans.ENDPOINTS,
        *view_endpoints.ENDPOINTS,
        *(table_endpoints.V4_ENDPOINTS if shows_v4 else ()),
    )
    return (_config_endpoint(listed), *listed)


def build(service: Service) -> Starlette:
    """The application."""
    offered = endpoints(is_native=service.has_native_api, shows_v4=service.settings.shows_v4)
    versions = {
        below: _Rest(
            service,
            [endpoint for endpoint in offered if endpoint.template.startswith(f"{below}/")],
            below=below,
            check=lambda call: check_not_a_page(
                call, has_access=service.access is not None, names=service.settings.names
            ),
        )
        for below in ("/v1", "/v2")
    }
    rest = _Rest(
        service,
        explorer.ENDPOINTS,
        below=explorer.API,
        check=lambda call: service.guard.check(
            call, has_access=service.access is not None, names=service.settings.names
        ),
        headers=API_HEADERS,
    )
    routes = [
        *(
            Route(f"{below}/{{rest:path}}", version.answer, methods=_METHODS)
            for below, version in versions.items()
        ),
        Route(f"{explorer.API}/{{rest:path}}", rest.answer, methods=["GET", "POST"]),
        *(Route(page.template, page.handler) for page in PAGES),
    ]
    middleware = [
        Middleware(GZipMiddleware, minimum_size=_MIN_COMPRESSED, compresslevel=_COMPRESSION)
    ]
    return _Served(service, routes=routes, middleware=middleware)


def _compressed(answer: Response, accepted: str) -> Response:
    body = answer.encoded()
    if len(body) < _MIN_COMPRESSED or "gzip" not in accepted:
        return replace(answer, body=body)
    headers = {**answer.headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return replace(answer, body=gzip.compress(body, _COMPRESSION, mtime=0), headers=headers)


class _Served(Starlette):
    """The application, behind what answers appends without it."""

    def __init__(self, service: Service, **parts: Any) -> None:
        super().__init__(**parts)
        self._appends = Appends(service, super().__call__) if service.has_native_api else None

    async def __call__(self, scope: Scope, receive: Receives, send: Send) -> None:
        await (self._appends or super().__call__)(scope, receive, send)


async def _health(_: HttpRequest) -> HttpResponse:
    return HttpResponse(b'{"status":"ok"}', media_type="application/json")


async def _page(request: HttpRequest) -> HttpResponse:
    """A file of the explorer's page."""
    path = request.path_params.get("path", "")
    response = await to_thread.run_sync(explorer.page, path, request.headers.get("if-none-match"))
    return HttpResponse(
        response.encoded(), status_code=response.status, headers=dict(response.headers)
    )


@frozen
class Page:
    """A route that is no endpoint: the same for everybody, whatever the catalog holds."""

    template: str
    handler: Callable[[HttpRequest], Awaitable[HttpResponse]]
    rights: Rights

    def __post_init__(self) -> None:
        if self.rights is not ANYBODY:
            raise ValueError(f"{self.template}: a page is for everybody; make it an endpoint")


PAGES = (
    Page(template="/health", handler=_health, rights=ANYBODY),
    Page(template="/", handler=_page, rights=ANYBODY),
    Page(template="/explorer", handler=_page, rights=ANYBODY),
    Page(template="/explorer/{path:path}", handler=_page, rights=ANYBODY),
)


@dataclass(frozen=True, slots=True)
class _Routed:
    endpoint: Endpoint
    parameters: Mapping[str, str]
    format_version: int | None


class _Rest:
    """Answers requests of the REST catalog or of the explorer.

    A request is routed, its sender and the rights on its path are checked, and only then is its
    body read; then it is worked on in a lane. `check` may refuse a request whose sender is known,
    and `headers` go with every answer.
    """

    def __init__(
        self,
        service: Service,
        offered: Sequence[Endpoint],
        *,
        below: str,
        check: Callable[[Request], None] = lambda call: None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._service = service
        self._check = check
        self._headers = dict(headers or {})
        self._skipped = below.count("/") + 1
        self._templates: dict[int, list[tuple[tuple[str, ...], Endpoint]]] = {}
        for endpoint in offered:
            template = _fixed(endpoint.template.split("/")[self._skipped :])
            self._templates.setdefault(len(template), []).append((template, endpoint))

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request, an error included."""
        try:
            answer = await self._answered(request)
        except Gone:
            answer = Response(status=499)
        except Exception as error:
            answer = _explained(request, error)
        headers = self._headers | dict(answer.headers)
        if answer.status in (204, 304):
            return HttpResponse(status_code=answer.status, headers=headers)
        return HttpResponse(
            answer.encoded(),
            status_code=answer.status,
            headers=headers,
            media_type="application/json",
        )

    async def _answered(self, request: HttpRequest) -> Response:
        service = self._service
        routed = self._route(request)
        endpoint = routed.endpoint
        principal = await self._principal(request, routed)
        call = Request(
            method=request.method,
            path=request.url.path,
            parameters=routed.parameters,
            query=dict(request.query_params),
            headers={key.lower(): value for key, value in request.headers.items()},
            format_version=routed.format_version,
            principal=principal,
        )
        self._check(call)
        if service.settings.is_read_only and endpoint.rights.changes:
            raise RestError(403, "ForbiddenException", "this server is read-only")
        lane: Lane = getattr(service, endpoint.lane)
        name = None if principal is None else principal.name
        lane.check(name)
        body = Body(service.bodies)
        try:
            data = await body.receive(
                request.receive,
                stated=call.headers.get("content-length"),
                max_bytes=service.settings.max_request_bytes
                if endpoint.takes_much
                else min(MAX_QUESTION_BYTES, service.settings.max_request_bytes),
                timeout_s=service.settings.request_timeout_s,
            )
            call = replace(call, body=data)
            work = lane.run(name, lambda: self._handled(endpoint, call))
        except BaseException:
            body.give_back()
            raise
        work.add_done_callback(lambda _: body.give_back())
        waiting = asyncio.wrap_future(work)
        waiting.add_done_callback(_noticed)
        return await self._awaited(request, endpoint, call, waiting)

    async def _principal(self, request: HttpRequest, routed: _Routed) -> Principal | None:
        """Who sends the request, if that matters here; 401 or 403 without the rights."""
        access, rights = self._service.access, routed.endpoint.rights
        if access is None or rights.role is Role.NOBODY:
            return None
        header = request.headers.get("authorization")
        checking = self._service.sign_ins.run(None, lambda: authenticated(access, header))
        principal = await asyncio.wrap_future(checking)
        right: Right = "write" if rights.changes else "read"
        if rights.names is Names.PATH:
            principal.check(right, [namespace_of(routed.parameters["namespace"])])
        elif rights.role is Role.ADMIN:
            principal.check("write", [None])
        return principal

    async def _awaited(
        self,
        request: HttpRequest,
        endpoint: Endpoint,
        call: Request,
        work: asyncio.Future[Response],
    ) -> Response:
        """The answer, or 504 in time. Work is cancelled when nobody waits for it, unless it may
        change something: whether a commit lands is not known here."""
        settings = self._service.settings
        timeout_s = settings.request_timeout_s
        if endpoint.lane != "quick" and not endpoint.rights.changes:
            timeout_s = min(timeout_s, settings.query_timeout_s)
        leaving = asyncio.ensure_future(_left(request.receive))
        try:
            async with asyncio.timeout(timeout_s):
                answer: Response = await _first(work, leaving, call)
                if answer.pending is not None:
                    answer = await self._result(answer, leaving, call)
                return answer
        except TimeoutError:
            if not endpoint.rights.changes:
                call.cancellation.cancel()
            return _refused(
                RestError(504, "GatewayTimeoutException", f"not answered in {timeout_s:g} s")
            )
        finally:
            leaving.cancel()

    async def _result(
        self, answer: Response, leaving: asyncio.Future[None], call: Request
    ) -> Response:
        """What an answer waits for. The waiting holds no thread."""
        assert answer.pending is not None
        pending = asyncio.wrap_future(answer.pending)
        pending.add_done_callback(_noticed)
        try:
            if answer.give_up is not None:
                await asyncio.wait(
                    {pending, leaving},
                    timeout=answer.patience_s,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not pending.done() and not leaving.done():
                    answer.give_up()
            result = await _first(pending, leaving, call)
        except FrazilError as error:
            return native_endpoints.refusal(error)  # says more than what other clients read of it
        return (
            result if isinstance(result, Response) else replace(answer, body=result, pending=None)
        )

    def _handled(self, endpoint: Endpoint, call: Request) -> Response:
        answer = self._respond(endpoint, call)
        if answer.pending is not None:
            return answer
        # Here, not where all requests pass.
        return _compressed(answer, call.headers.get("accept-encoding", ""))

    def _respond(self, endpoint: Endpoint, call: Request) -> Response:
        service = self._service
        if not endpoint.rights.changes:
            call.cancellation.check()
            with cancellation.under(call.cancellation):
                return endpoint.handler(service, call)
        again = endpoint.again
        return service.replay.answer(
            call,
            lambda: endpoint.handler(service, call),
            None if again is None else lambda: again(service, call),
        )

    def _route(self, request: HttpRequest) -> _Routed:
        raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
        parts = [unquote(part) for part in raw.decode("ascii").split("?")[0].split("/")]
        parts = parts[self._skipped :]
        format_version = _PREFIXES.get(parts[0]) if parts else None
        if format_version is not None:
            parts = parts[1:]
        is_known_path = False
        for template, endpoint in self._templates.get(len(parts), ()):
            parameters = _matched(template, parts)
            if parameters is None:
                continue
            is_known_path = True
            if endpoint.method == request.method:
                return _Routed(endpoint, parameters, format_version)
        if is_known_path:
            raise RestError(
                405, "MethodNotAllowedException", f"method {request.method} is not allowed"
            )
        raise RestError(404, "NotFoundException", f"{request.url.path}: no such endpoint")


def _fixed(template: Sequence[str]) -> tuple[str, ...]:
    return tuple(part for part in template if part != _PREFIX)


def _matched(template: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    if len(template) != len(parts):
        return None
    params: dict[str, str] = {}
    for segment, part in zip(template, parts, strict=True):
        if segment.startswith("{"):
            if not part:
                return None
            params[segment[1:-1]] = part
        elif segment != part:
            return None
    return params


async def _left(receive: Receive) -> None:
    """Waits until the client has closed the connection, or been answered."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(work: asyncio.Future[Any], leaving: asyncio.Future[None], call: Request) -> Any:
    """The result of some work, unless the client leaves first."""
    await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
    if not work.done():
        call.cancellation.cancel()
        raise Gone
    return work.result()


def _noticed(work: asyncio.Future[Any]) -> None:
    """An error of work that nobody waits for any more is no news."""
    if not work.cancelled():
        work.exception()


def _explained(request: HttpRequest, error: Exception) -> Response:
    """The answer to a request that failed."""
    if isinstance(error, RestError):
        return _refused(error)
    if isinstance(error, FrazilError):
        answer = rest_error(error)
        if answer.status >= 500 and not isinstance(error, Overloaded):
            log.error("%s %s", request.method, request.url.path, exc_info=error)
        return _refused(answer)
    mark = uuid.uuid4().hex[:12]
    log.error("%s %s failed (%s)", request.method, request.url.path, mark, exc_info=error)
    text = f"{type(error).__name__}; the server's log has more under {mark}"
    return _refused(RestError(500, "InternalServerError", text))


def _refused(error: RestError) -> Response:
    body: dict[str, Any] = error.body()
    return Response(status=error.status, body=body, headers=error.headers)


def _config_endpoint(endpoints: Sequence[Endpoint]) -> Endpoint:
    """The endpoint that lists the others."""

    def config(service: Service, call: Request) -> Response:
        # They may hold keys of an object store: not for everyone when access is on.
        defaults = dict(service.settings.properties) if _is_authenticated(service, call) else {}
        if call.headers.get("user-agent", "").lower().startswith(_ONLY_V2):
            defaults["prefix"] = "v2"
        asks = service.settings.plans_scans
        if service.settings.is_read_only if asks is None else asks:
            defaults |= _PLANNED_HERE
        offered = [
            str(listed)
            for listed in endpoints
            if listed.is_advertised
            and not (service.settings.is_read_only and listed.rights.changes)
        ]
        # Some clients can be told the name of a warehouse, and no prefix.
        warehouse = call.query.get("warehouse")
        return Response(
            body={
                "defaults": defaults,
                "overrides": {"prefix": warehouse} if warehouse in _PREFIXES else {},
                "endpoints": offered,
                "idempotency-key-lifetime": replay.LIFETIME,
            }
        )

    return Endpoint("GET", "/v1/config", config, ANYBODY, is_advertised=False)


def _is_authenticated(service: Service, call: Request) -> bool:
    if service.access is None:
        return True
    try:
        authenticated(service.access, call.headers.get("authorization"))
    except RestError:
        return False
    return True
