"""A server among clients that misbehave answers all those that do not, in bounded memory."""

from __future__ import annotations

import json
import sys
import urllib.request
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.cli.serve import serve
from frazil.serve import limits
from tests.support.overload import ROWS, overloaded, peak_mb, serving

MAX_MEMORY_MB = 600


@pytest.mark.timeout(300)
def test_polite_clients_are_answered_among_rude_ones(tmp_path: Path) -> None:
    figures = overloaded(tmp_path, polite=4, rude=30, seconds=8)
    print(figures)
    assert not figures.failures, figures.failures[:5]
    assert set(figures.seconds) == {"load", "list", "plan", "append"}
    assert figures.memory_mb < MAX_MEMORY_MB, figures
    assert len(figures.rude) >= 8, figures.rude


def test_options_have_the_limits_of_the_server() -> None:
    defaults = {name: given.default for name, given in signature(serve).parameters.items()}
    assert defaults["max_connections"] == limits.MAX_CONNECTIONS
    assert defaults["max_queries"] == limits.MAX_QUERIES
    assert defaults["max_queries_per_principal"] == limits.MAX_QUERIES_PER_PRINCIPAL
    assert defaults["query_timeout"] == limits.QUERY_TIMEOUT_S
    assert defaults["max_memory"] == limits.MAX_MEMORY_MIB


def _ask(uri: str, path: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
    headers |= {"Authorization": "Bearer rude", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{uri}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read())


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel counts memory")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "value",
    [
        "len(range(600000000))",
        "len(range(600000000 + id))",
        "len(list_resize([id], 600000000))",
    ],
)
def test_no_value_of_a_statement_takes_the_memory_of_the_machine(
    value: str, tmp_path: Path
) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", ROWS.schema).append(ROWS)
    with serving(tmp_path / "warehouse") as (server, uri):
        token = _ask(uri, "/explorer/api/session")["token"]
        session = {"X-Frazil-Session": token}
        sql = {"sql": f"SELECT {value} FROM shop.orders"}
        refused = _ask(uri, "/explorer/api/sql", sql, **session)
        assert not refused["ok"]
        assert "alloca" in refused["error"]["message"]
        answer = _ask(uri, "/explorer/api/sql", {"sql": "SELECT id FROM shop.orders"}, **session)
        assert answer["ok"]
        assert server.poll() is None
        assert peak_mb(server.pid) < MAX_MEMORY_MB
