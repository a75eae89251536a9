"""ClickHouse on the v2 view of tables in a bucket: it reads no local warehouse."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil import serve
from tests.interop.engines.engine import CLICKHOUSE, run, sound
from tests.support.s3 import SECRET, s3_server

pytestmark = pytest.mark.peers


def test_clickhouse_reads_inserts_and_deletes(tmp_path: Path) -> None:
    local = f"sqlite:///{tmp_path / 'catalog.db'}"
    with (
        s3_server() as s3,
        frazil.connect(local, warehouse=s3.warehouse, **s3.properties) as catalog,
        serve.start(catalog) as server,
    ):
        table = catalog.create_table(
            "shop.orders", pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})
        )
        table.delete("id = 2")
        endpoint = f"{s3.properties['s3.endpoint']}/{s3.bucket}"
        statements = [
            "INSERT INTO shop.orders VALUES (10, 'clickhouse')",
            "ALTER TABLE shop.orders DELETE WHERE id = 3",
        ]
        seen = run(
            CLICKHOUSE,
            "clickhouse_client.py",
            server.uri,
            endpoint,
            "frazil",
            SECRET,
            json.dumps(statements),
            folder=tmp_path,
        )
        assert seen == {
            "before": [[1, "a"], [3, None]],
            "after": [[1, "a"], [10, "clickhouse"]],
        }
        assert sound(catalog, "shop.orders") == [(1, "a"), (10, "clickhouse")]
