"""The thread that every request passes does little itself."""

from __future__ import annotations

import gzip
import threading
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from frazil.table import Catalog

TABLE = "/v1/namespaces/shop/tables/orders"


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
