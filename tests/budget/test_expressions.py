"""How much of a table a condition on an expression opens."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import frazil

FILES = 64


def test_a_name_in_any_case_opens_one_leaf_and_one_file(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    table = catalog.create_table(
        "shop.people",
        pa.schema([("name", pa.string())]),
        expressions=["lower(name)"],
        properties={"write.leaf.target-entries": "8", "write.root.max-data-entries": "4"},
    )
    for number in range(FILES):
        table.append(pa.table({"name": [f"NAME {number:02}", f"Name {number:02}"]}))
    table.rewrite_manifests()
    report = table.scan("lower(name) = 'name 37'").plan().report
    assert (report.leaves.manifests_read, report.files) == (1, 1)
    # What bounds of the column can say: the name may lie between the two spellings.
    assert table.scan("name IN ('NAME 37', 'Name 37')").plan().report.files > FILES // 2
    names = table.scan("lower(name) = 'name 37'").to_arrow()["name"].to_pylist()
    assert names == ["NAME 37", "Name 37"]
    assert table.scan("lower(name) = 'nobody'").plan().report.leaves.manifests_read == 0
    assert table.scan("upper(name) = 'NAME 37'").plan().report.files == FILES
