"""Every endpoint, called as everybody: what is refused follows from the rights beside its route.

The sample of an endpoint is a request that succeeds for a writer of the namespace. An endpoint that
has no sample fails here, and one without rights cannot be made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import frazil
from frazil.catalog.remote import remote_wire
from frazil.catalog.remote.remote_http import Requests
from frazil.catalog.sql.sql_head import SqlHead
from frazil.commit.head import Draft
from frazil.format.metadata.metadata import History
from frazil.serve.access.principals import Principal, Rule, TokenFile
from frazil.serve.access.rights import ANYBODY, BODY_READER, PATH_READER, Names, Role
from frazil.serve.app import PAGES, Page, build, endpoints
from frazil.serve.exchange import NO_CONTENT, Endpoint
from frazil.serve.explorer import endpoints as explorer
from frazil.serve.running import Running
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog, Table

ROWS = pa.table({"id": [1, 2]})
SHOWN = {"serve.format-version": "3"}
"""Endpoints of v1 show tables as v3 where others are shown as they are."""
WHO = {
    "reader": ["read:shop"],
    "other": ["write:other"],
    "writer": ["write:shop"],
    "admin": ["write:*"],
}
ALL = (*endpoints(), *explorer.ENDPOINTS)
REST = "/v1/namespaces/shop"
VIEW = {
    "name": "more",
    "schema": {"type": "struct", "schema-id": 0, "fields": []},
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["shop"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    },
    "properties": {},
}


@dataclass(kw_only=True)
class Sent:
    """A request: what replaces the parameters of the path, the query, and the body."""

    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None


class Shop:
    """A fresh catalog with a table, a view and another namespace, served with tokens."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        for name in ("shop", "other"):
            catalog.create_namespace(name)
        self.table: Table = catalog.create_table("shop.orders", ROWS.schema, properties=SHOWN)
        self.table.append(ROWS)
        self.table.append(ROWS)
        self.client = TestClient(
            build(Service(catalog, Settings(shows_v4=True), TokenFile(_principals()))),
            base_url="http://127.0.0.1",
        )
        made = self.ask("POST", f"{REST}/views", "admin", body={**VIEW, "name": "recent"})
        assert made.status_code == 200, made.text

    @property
    def head(self) -> SqlHead:
        head = self.table.refresh()._handle.head
        assert isinstance(head, SqlHead)
        return head

    def ask(self, method: str, path: str, who: str | None, **sent: Any) -> Any:
        headers = {} if who is None else {"Authorization": f"Bearer {who}"}
        if path.startswith(explorer.API):
            session = self.client.get(f"{explorer.API}/session", headers=headers).json()
            headers["x-frazil-session"] = session["token"] or ""
        body = sent.get("body")
        if body is not None and not isinstance(body, bytes):
            headers["Content-Type"] = "application/json"
            body = json.dumps(body).encode()
        return self.client.request(
            method, path, headers=headers, params=sent.get("query"), content=body
        )

    def planned(self) -> str:
        answer = self.ask("POST", f"{REST}/tables/orders/plan", "admin", body={})
        return str(answer.json()["plan-id"])

    def page(self, name: str, **query: str) -> Any:
        where = f"{explorer.API}/tables/shop/orders/{name}"
        return self.ask("GET", where, "admin", query=query).json()

    def state(self) -> Any:
        """What no refused request may change."""
        pointers = self.catalog._pointers
        return (
            sorted(self.catalog.list_tables()),
            sorted(map(str, pointers.views.list(("shop",)))),
            sorted(pointers.namespaces.children(())),
            pointers.namespaces.properties(("shop",)),
            self.catalog["shop.orders"]._handle.state.version,
        )


def _principals() -> dict[str, Principal]:
    return {
        hashlib.sha256(name.encode()).hexdigest(): Principal(
            name=name, rules=tuple(Rule.parse(rule) for rule in rules)
        )
        for name, rules in WHO.items()
    }


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        yield Shop(catalog)


# Samples


def keyed(**more: Any) -> Callable[[Shop], Sent]:
    return lambda shop: Sent(body={"key": shop.head.key, **more})


def sent(**parts: Any) -> Callable[[Shop], Sent]:
    return lambda shop: Sent(**parts)


def named(*name: str, **more: Any) -> Callable[[Shop], Sent]:
    return sent(body={"name": ["shop", *name], **more})


def create_table(shop: Shop) -> Sent:
    location = shop.catalog._pointers.location_for("shop.more")
    metadata = replace(
        shop.table.metadata,
        location=location,
        refs={},
        last_sequence_number=0,
        next_row_id=0,
    )
    table = remote_wire.metadata_document(metadata, History())
    return Sent(body={"name": ["shop", "more"], "table": table})


def dropped(shop: Shop) -> str:
    """The metadata file of a table that nobody has any more."""
    table = shop.catalog.create_table("shop.gone", ROWS.schema, properties=SHOWN)
    table.append(ROWS)
    location = table._handle.head.export()  # type: ignore[attr-defined]
    shop.catalog.drop_table("shop.gone")
    return str(location)


def dropped_view(shop: Shop) -> Sent:
    shop.ask("POST", f"{REST}/views", "admin", body={**VIEW, "name": "gone"})
    shown = shop.ask("GET", f"{REST}/views/gone", "admin").json()
    shop.ask("DELETE", f"{REST}/views/gone", "admin")
    return Sent(body={"name": "back", "metadata-location": shown["metadata-location"]})


def swap(shop: Shop) -> Sent:
    base = shop.head.load()
    changed = replace(base.metadata, properties={**base.metadata.properties, "owner": "me"})
    draft = remote_wire.draft_document(base, Draft(metadata=changed))
    known = remote_wire.ClientState().document()
    return Sent(body={"swaps": [{"key": shop.head.key, "known": known, "draft": draft}]})


def append(shop: Shop) -> Sent:
    """What Frazil's own client sends."""
    bodies: list[bytes] = []
    ask = Requests.once

    def kept(requests: Requests, operation: str, body: bytes, *more: Any) -> Any:
        if operation != "append":
            return ask(requests, operation, body, *more)
        bodies.append(bytes(body))
        raise frazil.errors.InvalidInput("not sent")

    with Running(build(Service(shop.catalog))) as server, frazil.connect(server.uri) as remote:
        table = remote["shop.orders"]
        with mock.patch.object(Requests, "once", kept), pytest.raises(frazil.errors.InvalidInput):
            table.append(ROWS)
    return Sent(body=bodies[0])


def action(shop: Shop) -> Sent:
    return Sent(path={"action": "tag"}, body={"params": {"name": "kept", "at": "main"}})


def leaf_id(shop: Shop) -> Sent:
    return Sent(query={"id": "root"})


def file_id(shop: Shop) -> Sent:
    return Sent(query={"id": shop.page("leaf", id="root")["page"]["id"][0]})


def snapshot(shop: Shop) -> Sent:
    return Sent(query={"snapshot": shop.page("commits")["id"][0]})


PROPERTIES = {"action": "set-properties", "updates": {"owner": "me"}}
SCHEMA = {
    "type": "struct",
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}
NAME = {"namespace": ["shop"], "name": "orders"}
VIEW_METADATA = {"view-uuid": "b0f7f6a4-0000-4000-8000-000000000000", "location": "x"}

SAMPLES: dict[str, Callable[[Shop], Sent]] = {
    "GET /v1/config": sent(),
    "GET /v1/{prefix}/namespaces": sent(),
    "POST /v1/{prefix}/namespaces": sent(body={"namespace": ["shop", "eu"]}),
    "GET /v1/{prefix}/namespaces/{namespace}": sent(),
    "HEAD /v1/{prefix}/namespaces/{namespace}": sent(),
    "DELETE /v1/{prefix}/namespaces/{namespace}": sent(path={"namespace": "shop\x1fempty"}),
    "POST /v1/{prefix}/namespaces/{namespace}/properties": sent(body={"updates": {"a": "b"}}),
    "GET /v1/{prefix}/namespaces/{namespace}/tables": sent(),
    "POST /v1/{prefix}/namespaces/{namespace}/tables": sent(
        body={"name": "more", "schema": SCHEMA}
    ),
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}": sent(),
    "GET /v2/{prefix}/namespaces/{namespace}/tables/{table}": sent(),
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}": sent(),
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}": sent(),
    "POST /v1/{prefix}/tables/rename": sent(
        body={"source": NAME, "destination": {"namespace": ["shop"], "name": "renamed"}}
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/register": lambda shop: Sent(
        body={"name": "back", "metadata-location": dropped(shop)}
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics": sent(body={}),
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}": sent(
        body={"requirements": [], "updates": [PROPERTIES]}
    ),
    "POST /v1/{prefix}/transactions/commit": sent(
        body={"table-changes": [{"identifier": NAME, "requirements": [], "updates": [PROPERTIES]}]}
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan": sent(body={}),
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}": lambda shop: Sent(
        path={"plan-id": shop.planned()}
    ),
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}": sent(
        path={"plan-id": "x"}
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks": lambda shop: Sent(
        body={"plan-task": shop.planned()}
    ),
    "GET /v1/{prefix}/namespaces/{namespace}/views": sent(),
    "POST /v1/{prefix}/namespaces/{namespace}/views": sent(body=VIEW),
    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}": sent(),
    "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}": sent(),
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}": sent(
        body={"requirements": [], "updates": [PROPERTIES]}
    ),
    "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}": sent(),
    "POST /v1/{prefix}/views/rename": sent(
        body={
            "source": {"namespace": ["shop"], "name": "recent"},
            "destination": {"namespace": ["shop"], "name": "renamed"},
        }
    ),
    "POST /v1/{prefix}/namespaces/{namespace}/register-view": dropped_view,
    "POST /v1/frazil/about": sent(body={}),
    "POST /v1/frazil/create-namespace": sent(body={"namespace": ["shop", "eu"], "updates": {}}),
    "POST /v1/frazil/list-namespaces": sent(body={"namespace": []}),
    "POST /v1/frazil/namespace-exists": sent(body={"namespace": ["shop"]}),
    "POST /v1/frazil/namespace-properties": sent(body={"namespace": ["shop"]}),
    "POST /v1/frazil/set-namespace-properties": sent(
        body={"namespace": ["shop"], "updates": {"a": "b"}}
    ),
    "POST /v1/frazil/drop-namespace": sent(body={"namespace": ["shop", "empty"]}),
    "POST /v1/frazil/create-view": lambda shop: Sent(
        body={
            "name": ["shop", "more"],
            "metadata": dict(shop.catalog._pointers.views.load("shop.recent").metadata),
        }
    ),
    "POST /v1/frazil/load-view": named("recent"),
    "POST /v1/frazil/view-exists": named("recent"),
    "POST /v1/frazil/list-views": sent(body={"namespace": ["shop"]}),
    "POST /v1/frazil/replace-view": lambda shop: Sent(
        body={
            "name": ["shop", "recent"],
            "version": shop.catalog._pointers.views.load("shop.recent").version,
            "metadata": dict(shop.catalog._pointers.views.load("shop.recent").metadata),
        }
    ),
    "POST /v1/frazil/rename-view": named("recent", to=["shop", "renamed"]),
    "POST /v1/frazil/drop-view": named("recent"),
    "POST /v1/frazil/notes-below": keyed(prefix="published"),
    "POST /v1/frazil/read-notes": keyed(names=["published:x"]),
    "POST /v1/frazil/remove-notes": keyed(names=["published:x"]),
    "POST /v1/frazil/claim-version": keyed(version=1, by="0a"),
    "POST /v1/frazil/location-for": named("more"),
    "POST /v1/frazil/create-table": create_table,
    "POST /v1/frazil/register": lambda shop: Sent(
        body={"name": ["shop", "back"], "metadata-location": dropped(shop)}
    ),
    "POST /v1/frazil/load-table": named("orders"),
    "POST /v1/frazil/table-exists": named("orders"),
    "POST /v1/frazil/list-tables": sent(body={"namespace": ["shop"]}),
    "POST /v1/frazil/pulses": sent(body={}),
    "POST /v1/frazil/upgrade": lambda shop: Sent(
        body={
            "name": ["shop", "orders"],
            "metadata-location": "x",
            "table": remote_wire.metadata_document(shop.table.metadata, History()),
        }
    ),
    "POST /v1/frazil/rename": named("orders", to=["shop", "renamed"]),
    "POST /v1/frazil/drop": named("orders"),
    "POST /v1/frazil/purge": named("orders"),
    "POST /v1/frazil/load-head": keyed(),
    "POST /v1/frazil/landed": keyed(id=1),
    "POST /v1/frazil/snapshots": keyed(ids=[1]),
    "POST /v1/frazil/history": keyed(),
    "POST /v1/frazil/snapshot-as-of": keyed(id=1),
    "POST /v1/frazil/export": keyed(),
    "POST /v1/frazil/stored-problems": keyed(),
    "POST /v1/frazil/repair": keyed(),
    "POST /v1/frazil/neighbourhood": keyed(),
    "POST /v1/frazil/swap": swap,
    "POST /v1/frazil/take-turn": keyed(),
    "POST /v1/frazil/end-turn": sent(body={"turn": "x"}),
    "POST /v1/frazil/append": append,
    "GET /explorer/api/session": sent(),
    "GET /explorer/api/catalog": sent(),
    "GET /explorer/api/changes": sent(),
    "POST /explorer/api/sql": sent(body={"sql": "select 1"}),
    "POST /explorer/api/tables/{namespace}/{table}/actions/{action}": action,
    "GET /explorer/api/views/{namespace}/{view}": sent(),
    "GET /explorer/api/tables/{namespace}/{table}/overview": sent(),
    "GET /explorer/api/tables/{namespace}/{table}/columns": sent(),
    "GET /explorer/api/tables/{namespace}/{table}/leaf": leaf_id,
    "GET /explorer/api/tables/{namespace}/{table}/file": file_id,
    "GET /explorer/api/tables/{namespace}/{table}/compare": sent(
        query={"from": "main", "to": "main"}
    ),
    "GET /explorer/api/tables/{namespace}/{table}/rows": sent(),
    "GET /explorer/api/tables/{namespace}/{table}/diff": sent(query={"to": "main"}),
    "GET /explorer/api/tables/{namespace}/{table}/health": sent(),
    "GET /explorer/api/tables/{namespace}/{table}/space": sent(),
    "GET /explorer/api/tables/{namespace}/{table}/tree": sent(),
    "GET /explorer/api/tables/{namespace}/{table}/plan": sent(),
    "GET /explorer/api/tables/{namespace}/{table}/complete": sent(query={"text": "i", "at": "1"}),
    "GET /explorer/api/tables/{namespace}/{table}/commits": sent(),
    "GET /explorer/api/tables/{namespace}/{table}/commit": snapshot,
}
SHOWS_NAMES_TO_ALL = {"POST /v1/frazil/about"}
"""Says where the warehouse is."""


def _path(endpoint: Endpoint, path: dict[str, str]) -> str:
    parameters = {"namespace": "shop", "table": "orders", "view": "recent", **path}
    parts = [part for part in endpoint.template.split("/") if part != "{prefix}"]
    return "/".join(
        parameters[part[1:-1]].replace("\x1f", "%1F") if part.startswith("{") else part
        for part in parts
    )


def _allowed(endpoint: Endpoint) -> dict[str | None, bool]:
    """Who may use an endpoint, from its rights."""
    role, is_anywhere = endpoint.rights.role, endpoint.rights.names is Names.NONE
    may_read = role in (Role.NOBODY, Role.READER)
    return {
        None: role is Role.NOBODY,
        "reader": may_read,
        "other": may_read and is_anywhere,
        "admin": True,
        "writer": role is not Role.ADMIN,
    }


@pytest.mark.parametrize("endpoint", ALL, ids=str)
def test_everybody_may_what_the_table_of_rights_says(endpoint: Endpoint, shop: Shop) -> None:
    shop.catalog.create_namespace("shop.empty")
    request = SAMPLES[str(endpoint)](shop)
    path = _path(endpoint, request.path)
    before = shop.state()
    allowed = _allowed(endpoint)
    if endpoint.rights.changes:
        del allowed["admin"]  # what is done once cannot be done again
    for who, may in allowed.items():
        answer = shop.ask(endpoint.method, path, who, query=request.query, body=request.body)
        if may:
            assert 200 <= answer.status_code < 300, (who, answer.status_code, answer.text[:500])
            if who == "other" and str(endpoint) not in SHOWS_NAMES_TO_ALL:
                assert "orders" not in answer.text, "names of another namespace are shown"
        else:
            status = 401 if who is None else 403
            assert answer.status_code == status, (who, answer.status_code, answer.text[:500])
            assert shop.state() == before, f"{who} was refused and changed something"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.template)
def test_pages_are_for_everybody(page: Page, shop: Shop) -> None:
    assert page.rights is ANYBODY
    path = page.template.replace("{path:path}", "x")
    assert shop.client.get(path).status_code == 200


def test_no_route_is_without_rights() -> None:
    with pytest.raises(TypeError):
        Endpoint(method="GET", template="/v1/x", handler=lambda *_: NO_CONTENT)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Endpoint("GET", "/v1/x", lambda *_: NO_CONTENT, None)  # type: ignore[arg-type]
    for template, rights in (("/v1/x", PATH_READER), ("/v1/{namespace}", BODY_READER)):
        with pytest.raises(ValueError, match="rights"):
            Endpoint("GET", template, lambda *_: NO_CONTENT, rights)
    assert {str(endpoint) for endpoint in ALL} == SAMPLES.keys()
