"""The thread that every request passes waits for others as little as can be."""

from __future__ import annotations

import gzip
import sys
import threading
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from frazil import serve
from frazil.serve import limits
from frazil.serve.running import Running
from frazil.table import Catalog

TABLE = "/v1/namespaces/shop/tables/orders"


def test_a_busy_thread_gives_way_soon_while_a_process_serves(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = sys.getswitchinterval()
    intervals: list[float] = []
    monkeypatch.setattr(Running, "wait", lambda _: intervals.append(sys.getswitchinterval()))
    serve.run(catalog)
    assert intervals == [pytest.approx(limits.SWITCH_S)]
    assert usual > limits.SWITCH_S
    assert sys.getswitchinterval() == usual


def test_large_answers_are_compressed_by_the_thread_that_made_them(
    catalog: Catalog, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([(f"column_{number}", pa.int64()) for number in range(100)])
    catalog.create_table("shop.orders", schema)
    threads: list[str] = []
    compress = gzip.compress

    def noting(*arguments: Any, **options: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return compress(*arguments, **options)

    monkeypatch.setattr(gzip, "compress", noting)
    plain = client.get(TABLE, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert threads == []
    answer = client.get(TABLE, headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in answer.headers["vary"]
    assert answer.json()["metadata"]["schemas"] == plain.json()["metadata"]["schemas"]
    assert [name.startswith("frazil-") for name in threads] == [True]
    small = client.get("/v1/namespaces", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers
