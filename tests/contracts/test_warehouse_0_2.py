"""A warehouse that version 0.2 wrote is opened, read, changed, expired and checked.

`tests/support/write_warehouse_0_2.py` says what was done to it; the rows below follow from that.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import frazil
from tests.support.warehouse_0_2 import postgres_warehouse, sqlite_warehouse

IDS = {
    "shop.orders": {1, 2, 3, 5, 6, 8, 9, 10},
    "shop.items": {1, 3, 4, 5, 6, 7},
    "shop.revisions": {1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 13},
    "shop.equality": {3, 4},
    "shop.upgraded": {1, 3, 4, 6, 7},
    "shop.legacy": {1, 2, 3, 4},
    "shop.eu.after": {1},
}
WRITABLE = sorted(IDS.keys() - {"shop.legacy"})


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest) -> Iterator[frazil.Catalog]:
    """The catalog of 0.2, opened by this version."""
    if request.param == "sqlite":
        with sqlite_warehouse() as folder, frazil.connect(folder) as catalog:
            yield catalog
        return
    server = request.getfixturevalue("postgres_uri")
    with (
        postgres_warehouse(server) as (uri, folder),
        frazil.connect(uri, warehouse=folder) as catalog,
    ):
        yield catalog


def _ids(table: frazil.Table, **options: object) -> set[int]:
    ids = table.scan(**options).to_arrow().column("id").to_pylist()  # type: ignore[arg-type]
    assert len(ids) == len(set(ids))
    return set(ids)


def _row(id: int) -> pa.Table:
    country = "US" if id % 2 else "DE"
    columns = {"id": [id], "country": [country], "price": [float(id)]}
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("country", "string"), ("price", "double")]
    )
    return pa.table(columns, schema=schema)


def test_everything_is_found(old: frazil.Catalog) -> None:
    assert old.list_tables() == sorted(IDS)
    assert old.list_namespaces() == ["shop"]
    assert old.list_namespaces("shop") == ["shop.eu"]
    assert old.namespace_properties("shop")["owner"] == "frazil 0.2"
    assert not old.table_exists("shop.dropped")


def test_rows_are_read(old: frazil.Catalog) -> None:
    for name, ids in IDS.items():
        table = old.load_table(name)
        assert _ids(table) == ids
        assert table.scan().count() == len(ids)
        answer = old.sql(f"SELECT id FROM {name}").to_arrow()
        assert set(answer.column("id").to_pylist()) == ids
        assert not table.check(deep=True).problems


def test_values_branches_tags_and_views_are_read(old: frazil.Catalog) -> None:
    orders = old.load_table("shop.orders")
    by_id = {row["id"]: row for row in orders.scan().to_pylist()}
    assert by_id[6] == {"id": 6, "country": "DE", "price": 60.0, "note": None}
    assert by_id[9] == {"id": 9, "country": "US", "price": 9.0, "note": "new"}
    assert _ids(orders, as_of="audit") == {1, 2, 3, 5, 6, 8, 9, 100}
    assert _ids(orders, as_of="first") == {1, 2, 3, 4}
    assert "note" not in orders.scan(as_of="first").to_arrow().column_names
    cheap = old.sql("SELECT * FROM shop.cheap ORDER BY id").to_arrow()
    assert cheap.to_pylist() == [{"id": 1, "price": 1.0}, {"id": 2, "price": 2.0}]
    notes = orders._handle.head.notes  # type: ignore[attr-defined]
    assert notes.get(["of 0.2/kept"]) == {"of 0.2/kept": "a note"}


@pytest.mark.parametrize("name", WRITABLE)
def test_tables_are_changed_expired_and_checked(old: frazil.Catalog, name: str) -> None:
    table = old.load_table(name)
    smallest = min(IDS[name])
    table.append(_row(50))
    table.append(_row(51))
    table.delete(f"id = {smallest}")
    table.update({"price": -1.0}, where="id = 50")
    table.upsert(_row(51), on=["id"])
    expected = IDS[name] - {smallest} | {50, 51}
    assert _ids(table) == expected
    table.compact(rewrite_all=True)
    table.rewrite_manifests()
    assert _ids(table) == expected
    assert table.check(deep=True).ok
    table.expire_snapshots(older_than=datetime.now(UTC) + timedelta(days=1), keep_last=1)
    table.remove_orphan_files(older_than=datetime.now(UTC) + timedelta(days=1))
    assert _ids(old.load_table(name)) == expected
    assert table.check(deep=True).ok
    if name == "shop.orders":  # branches and tags hold their snapshots
        assert _ids(table, as_of="audit") == {1, 2, 3, 5, 6, 8, 9, 100}
        assert _ids(table, as_of="first") == {1, 2, 3, 4}


def test_publishing_goes_on(old: frazil.Catalog) -> None:
    for name in ("shop.orders", "shop.items"):
        table = old.load_table(name)
        folder = Path(table.location.removeprefix("file://")) / "metadata"
        assert _published(folder) == IDS[name]
        assert not table.append(_row(50)).notes
        assert _published(folder) == IDS[name] | {50}


def _published(folder: Path) -> set[int]:
    """Ids as PyIceberg reads them from the newest published metadata."""
    newest = folder / f"v{(folder / 'version-hint.text').read_text()}.metadata.json"
    return set(StaticTable.from_metadata(str(newest)).scan().to_arrow().column("id").to_pylist())


def test_a_table_of_pyiceberg_is_upgraded(old: frazil.Catalog) -> None:
    old.load_table("shop.legacy").upgrade()
    table = old.load_table("shop.legacy")
    table.append(_row(50))
    table.delete("id = 1")
    assert _ids(table) == {2, 3, 4, 50}
    assert table.check(deep=True).ok


def test_tables_are_renamed_dropped_and_created(old: frazil.Catalog) -> None:
    old.rename_table("shop.eu.after", "shop.eu.again")
    assert _ids(old.load_table("shop.eu.again")) == {1}
    old.drop_table("shop.eu.again", purge=True)
    old.create_table("shop.dropped", _row(3))
    assert _ids(old.load_table("shop.dropped")) == {3}
    with pytest.raises(frazil.NotFound):
        old.load_table("shop.eu.again")
