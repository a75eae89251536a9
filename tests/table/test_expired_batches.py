"""A micro-batch of a streaming query is remembered after its snapshot has expired."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa

import frazil
from frazil.commit.stream_progress import BATCH_ID, QUERY_ID


def test_the_newest_expired_batch_of_each_query_becomes_a_property(tmp_path: Path) -> None:
    catalog = frazil.connect(str(tmp_path / "warehouse"))
    table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    for query, number in [("a", 9), ("a", 10), ("b", 2)]:
        table.append([{"id": number}], summary={QUERY_ID: query, BATCH_ID: str(number)})
    table.append([{"id": 0}])
    table.expire_snapshots(older_than=timedelta(0), keep_last=1)
    found = {k: v for k, v in table.refresh().properties.items() if k.startswith("frazil.stream.")}
    assert found == {"frazil.stream.batch.main.a": "10", "frazil.stream.batch.main.b": "2"}
