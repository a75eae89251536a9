"""Statements of the SQL box that nobody waits for: the engine really stops."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from frazil.serve.app import build
from frazil.serve.running import Running
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.sql.engine.sql_engine import SqlEngine
from frazil.table import Catalog
from tests.serve.test_namespaces_and_tables import error_of
from tests.serve.test_overload import connected, until

LONG = "SELECT sum(range) FROM range(1000000000000)"
LONG_STATEMENTS = [
    LONG,
    f"EXPLAIN ANALYZE {LONG}",
    "PIVOT (FROM range(1000000000000)) ON range % 3 USING count(*)",
]


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[SqlEngine]:
    """The engines that compute something, as they begin."""
    begun: list[SqlEngine] = []
    computing = SqlEngine.computing

    def noted(engine: SqlEngine) -> Any:
        begun.append(engine)
        return computing(engine)

    monkeypatch.setattr(SqlEngine, "computing", noted)
    return begun


def is_busy(engines: list[SqlEngine]) -> bool:
    """Whether an engine computes."""
    return any(engine._computing for engine in engines)


@pytest.mark.parametrize("sql", LONG_STATEMENTS)
def test_a_statement_that_nobody_waits_for_is_interrupted(
    catalog: Catalog, engines: list[SqlEngine], sql: str
) -> None:
    service = Service(catalog)
    body = json.dumps({"sql": sql}).encode()
    with Running(build(service)) as server:
        with connected(server) as connection:
            token = service.guard.session_token(None)
            connection.sendall(
                b"POST /explorer/api/sql HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Content-Type: application/json\r\n"
                + f"X-Frazil-Session: {token}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            until(lambda: is_busy(engines))
        until(lambda: not is_busy(engines))
        assert engines[-1].is_cancelled


@pytest.mark.parametrize("sql", LONG_STATEMENTS)
def test_a_statement_that_takes_too_long_is_interrupted(
    catalog: Catalog, engines: list[SqlEngine], sql: str
) -> None:
    service = Service(catalog, Settings(query_timeout_s=0.5))
    client = TestClient(build(service), base_url="http://127.0.0.1:8181")
    headers = {"X-Frazil-Session": service.guard.session_token(None)}
    answer = client.post("/explorer/api/sql", json={"sql": sql}, headers=headers)
    assert error_of(answer) == (504, "GatewayTimeoutException")
    until(lambda: not is_busy(engines))
    assert engines
