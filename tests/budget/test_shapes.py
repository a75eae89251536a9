"""How much of a large table of points a window opens."""

from __future__ import annotations

from pathlib import Path

import frazil
from bench.shapes import SCHEMA, entries, places

FILES = 8_192


def test_a_window_opens_one_leaf_of_many(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    properties = {"write.leaf.target-entries": "512", "write.root.max-data-entries": "100"}
    table = catalog.create_table("geo.points", SCHEMA, properties=properties)
    west, south = places(FILES)
    table._add_entries(entries(0, west, south))
    report = table.scan("bbox(g, 10.2, 10.2, 10.8, 10.8)").plan().report
    assert report.root.considered == 16
    assert report.leaves.manifests_read == 1
    assert report.files == 1
    assert table.scan("bbox(g, -2, -2, -1, -1)").plan().report.leaves.manifests_read == 0
