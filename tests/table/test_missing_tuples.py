"""Files whose entries have a spec but no partition tuple: bounds tell where they lie."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import frazil
from frazil.commit.change import Change
from frazil.tree.read import TreeReader

ROWS = pa.table({"country": ["AT", "AT", "DE", None], "v": [1, 2, 3, 4]})


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    """One file per country, listed as a writer without tuples does."""
    source = catalog.create_table("s.source", ROWS.schema, partition_by=["country"])
    source.append(ROWS)
    handle = source._handle.current()
    reader: TreeReader = handle.reader()
    entries = reader.tree(handle.tip("main")).content()
    table = catalog.create_table("s.t", ROWS.schema, partition_by=["country"])
    keys = [key for key in entries.keys if key.startswith("partition.")]
    added = entries.without(*keys, *(key for key in entries.keys if "tracking" in key))
    names = [f"{source.location}/{name}" for name in entries.pylist("location")]
    copies = []
    for name in names:
        copy = name.replace("source", "t")
        handle.storage.write_new(copy, handle.storage.read(name))
        copies.append(copy.removeprefix(f"{table.location}/"))
    table._handle.commit(Change(added=added.with_column("location", pa.array(copies))))
    return table


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("country = 'AT'", [1, 2]),
        ("country = 'DE'", [3]),
        ("country = 'FR'", []),
        ("country IS NULL", [4]),
        ("country IS NOT NULL", [1, 2, 3]),
        ("country <> 'AT'", [3]),
        ("country IN ('AT', 'DE')", [1, 2, 3]),
    ],
)
def test_a_filter_finds_their_rows(table: frazil.Table, where: str, expected: list[int]) -> None:
    scan = table.scan(where)
    assert sorted(scan.to_arrow()["v"].to_pylist()) == expected
    assert scan.count() == len(expected)


def test_partitions_are_replaced_with_them(table: frazil.Table) -> None:
    table.overwrite_partitions(pa.table({"country": ["AT"], "v": [10]}))
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [3, 4, 10]


def test_other_engines_see_their_partitions(table: frazil.Table) -> None:
    location = table.publish().metadata_location
    published = StaticTable.from_metadata(location)
    found = published.scan(row_filter="country = 'AT'").to_arrow()
    assert sorted(found["v"].to_pylist()) == [1, 2]
