"""Daft on the v2 view; it cannot read deletion vectors of v3."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from frazil.serve.running import Running
from frazil.table import Catalog
from tests.interop.engines.engine import DAFT, run, sound

pytestmark = pytest.mark.peers


def test_daft_reads_and_writes(catalog: Catalog, server: Running, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "country": ["de", "de", "fr", None]})
    table = catalog.create_table("shop.orders", rows, partition_by=["country"])
    catalog.create_table("shop.copy", rows)
    table.delete("id = 2")
    seen = run(DAFT, "daft_client.py", server.uri, "v2", folder=tmp_path)
    assert seen == {
        "all": {"id": [1, 3, 4], "country": ["de", "fr", None]},
        "french": [3],
    }
    expected = [(1, "de"), (3, "fr"), (4, None), (100, "it")]
    assert sound(catalog, "shop.orders") == expected
    assert sound(catalog, "shop.copy") == expected
