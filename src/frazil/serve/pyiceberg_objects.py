"""Tables and catalogs as PyIceberg's own objects, for libraries that take those.

A table becomes a `StaticTable` over its published metadata. A catalog becomes a REST catalog whose
requests are answered in this process: by the same application, without a port.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import StaticTable
from requests import PreparedRequest, Response, Session
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from starlette.types import ASGIApp, Message

from frazil.catalog.remote.remote_catalog import RemoteCatalog
from frazil.catalog.remote.remote_head import RemoteHead
from frazil.errors import Unsupported
from frazil.format.metadata.metadata import FORMAT_VERSION
from frazil.format.values.variant_type import has_variant
from frazil.serve.app import build
from frazil.serve.service import Service
from frazil.serve.view.published_view import Facade
from frazil.table import Catalog, Table

_ADDRESS = "http://frazil.localhost"
"""No host: only what requests of the in-process catalog begin with."""
_NOT_STORAGE = ("uri", "name", "warehouse")


def static_table(table: Table, format_version: int, properties: Mapping[str, str]) -> StaticTable:
    """The table as it is now, as v2 or v3, published if nobody has asked for this version."""
    handle = table._as_loaded()._handle
    if isinstance(handle.head, RemoteHead):
        raise _is_served(f"{table.name}: its catalog")
    if handle.metadata.format_version >= FORMAT_VERSION:
        handle.check_writable()
    if any(has_variant(schema.as_struct()) for schema in handle.metadata.schemas):
        raise Unsupported(
            f"{table.name} has a column of type variant, which PyIceberg cannot open; read it with "
            "scan()",
            feature="variant in PyIceberg",
        )
    document = Facade().show(handle, format_version)
    return StaticTable.from_metadata(document.metadata_location, dict(properties))


def in_process_catalog(
    catalog: Catalog, format_version: int, properties: Mapping[str, str]
) -> RestCatalog:
    """The catalog for PyIceberg; `properties` are PyIceberg's."""
    if isinstance(catalog._pointers, RemoteCatalog):
        raise _is_served("the catalog")
    storage_properties = {k: v for k, v in (catalog._origin or {}).items() if k not in _NOT_STORAGE}
    return _InProcessCatalog(
        catalog,
        **{"prefix": f"v{format_version}", **storage_properties, **properties, "uri": _ADDRESS},
    )


def _is_served(what: str) -> Unsupported:
    return Unsupported(
        f"{what} is behind a server, which PyIceberg reaches itself: "
        "pyiceberg.catalog.rest.RestCatalog(name, uri=…, token=…)",
        feature="PyIceberg objects of a served catalog",
    )


class _InProcessCatalog(RestCatalog):
    """A REST catalog that is answered in this process."""

    def __init__(self, catalog: Catalog, **properties: str) -> None:
        self._answers = _Answers(build(Service(catalog)))
        super().__init__(catalog._pointers.name, **properties)

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.mount(_ADDRESS, self._answers)
        return session

    def close(self) -> None:
        """Stop answering. The catalog that it was made of stays open."""
        super().close()
        self._answers.stop()


class _Answers(BaseAdapter):
    """Hands requests to an application, in a thread with an event loop of its own: callers may be
    in an event loop themselves, as in a notebook."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """A session ends; others go on."""

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        """The answer to a request."""
        answer = asyncio.run_coroutine_threadsafe(self._answer(request), self._loop)
        return answer.result()

    async def _answer(self, request: PreparedRequest) -> Response:
        url = urlsplit(request.url or "")
        body = request.body or b""
        assert isinstance(body, str | bytes)  # PyIceberg sends whole documents
        data = body.encode() if isinstance(body, str) else body
        headers = [(k.lower().encode(), _bytes(v)) for k, v in request.headers.items()]
        headers = [pair for pair in headers if pair[0] != b"accept-encoding"]  # nothing travels
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": url.scheme,
            "path": unquote_to_bytes(url.path).decode(),
            "raw_path": url.path.encode(),
            "query_string": url.query.encode(),
            "root_path": "",
            "headers": [(b"host", url.netloc.encode()), *headers],
            "server": (url.hostname, 80),
            "client": ("127.0.0.1", 0),
        }
        is_sent = False
        is_answered = asyncio.Event()
        start: dict[str, Any] = {}
        content = bytearray()

        async def receive() -> Message:
            nonlocal is_sent
            if not is_sent:
                is_sent = True
                return {"type": "http.request", "body": data, "more_body": False}
            await is_answered.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                content.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    is_answered.set()

        await self._app(scope, receive, send)
        answer = Response()
        answer.status_code = start["status"]
        pairs = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in start["headers"]]
        answer.headers = CaseInsensitiveDict(pairs)
        answer._content = bytes(content)
        answer.encoding = "utf-8"
        answer.url = request.url or ""
        answer.request = request
        return answer


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


__all__ = ["in_process_catalog", "static_table"]
