"""Tables of other writers opened read-only, by file, folder and PyIceberg objects."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from frazil import Catalog, FormatError, InvalidInput, NotFound, Unsupported, connect

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})


@pytest.fixture
def theirs(tmp_path: Path) -> PyIcebergCatalog:
    folder = tmp_path / "theirs"
    folder.mkdir()
    catalog = PyIcebergCatalog(
        "theirs", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
    )
    catalog.create_namespace("shop")
    return catalog


@pytest.fixture
def orders(theirs: PyIcebergCatalog) -> PyIcebergTable:
    table = theirs.create_table("shop.orders", ROWS.schema)
    table.append(ROWS)
    return table


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return connect(tmp_path / "ours")


def _ids(catalog: Catalog, source: object, name: str | None = None) -> list[int]:
    rows = catalog.open_iceberg(source, name).scan().to_pylist()
    return sorted(row["id"] for row in rows)


def _folder(table: PyIcebergTable) -> Path:
    return Path(table.location().removeprefix("file://"))


def test_a_table_is_opened_by_its_metadata_file(catalog: Catalog, orders: PyIcebergTable) -> None:
    assert _ids(catalog, orders.metadata_location) == [1, 2, 3]
    assert _ids(catalog, orders.metadata_location.removeprefix("file://")) == [1, 2, 3]
    assert catalog.open_iceberg(orders.metadata_location).name == "shop.orders"


@pytest.mark.parametrize("name", ["table.json", "snapshot-of-monday.json"])
def test_a_metadata_file_may_have_any_name_that_ends_in_json(
    catalog: Catalog, orders: PyIcebergTable, tmp_path: Path, name: str
) -> None:
    copy = tmp_path / name
    shutil.copy(orders.metadata_location.removeprefix("file://"), copy)
    assert _ids(catalog, str(copy)) == [1, 2, 3]


def test_a_scheme_in_capitals_is_a_path(catalog: Catalog, orders: PyIcebergTable) -> None:
    assert _ids(catalog, "FILE:" + str(_folder(orders))) == [1, 2, 3]


def test_a_relative_location_is_refused_with_its_reason(
    catalog: Catalog, orders: PyIcebergTable, tmp_path: Path
) -> None:
    raw = json.loads(Path(orders.metadata_location.removeprefix("file://")).read_text())
    copy = tmp_path / "v1.metadata.json"
    copy.write_text(json.dumps({**raw, "location": "tables/orders"}))
    with pytest.raises(Unsupported, match=r"location is 'tables/orders'.*full location"):
        catalog.open_iceberg(str(copy))


def test_a_metadata_file_stays_the_one_that_was_named(
    catalog: Catalog, orders: PyIcebergTable
) -> None:
    table = catalog.open_iceberg(orders.metadata_location)
    orders.append(ROWS)
    assert table.refresh().scan().count() == 3


def test_a_folder_is_looked_at_again(catalog: Catalog, orders: PyIcebergTable) -> None:
    table = catalog.open_iceberg(orders.location())
    orders.append(ROWS)
    assert table.scan().count() == 3
    assert table.refresh().scan().count() == 6


def test_a_pyiceberg_table_is_looked_at_again(
    catalog: Catalog, theirs: PyIcebergCatalog, orders: PyIcebergTable
) -> None:
    table = catalog.open_iceberg(theirs, "shop.orders")
    assert table.name == "shop.orders"
    orders.append(ROWS)
    assert table.refresh().scan().count() == 6


def test_a_static_table_stays_as_it_is(catalog: Catalog, orders: PyIcebergTable) -> None:
    table = catalog.open_iceberg(StaticTable.from_metadata(orders.metadata_location))
    assert table.refresh().scan().count() == 3


def test_the_version_hint_leads_to_later_versions_beside_it(
    catalog: Catalog, orders: PyIcebergTable, tmp_path: Path
) -> None:
    first = Path(orders.metadata_location.removeprefix("file://"))
    orders.append(ROWS)
    second = Path(orders.metadata_location.removeprefix("file://"))
    metadata = tmp_path / "hadoop" / "metadata"
    metadata.mkdir(parents=True)
    shutil.copy(first, metadata / "v7.metadata.json")
    (metadata / "version-hint.text").write_text("7\n")
    assert _ids(catalog, tmp_path / "hadoop") == [1, 2, 3]
    shutil.copy(second, metadata / "v8.metadata.json")
    assert _ids(catalog, tmp_path / "hadoop") == [1, 1, 2, 2, 3, 3]


def test_a_hint_may_be_a_name(catalog: Catalog, orders: PyIcebergTable) -> None:
    named = Path(orders.metadata_location).name.removesuffix(".metadata.json")
    orders.append(ROWS)
    (_folder(orders) / "metadata" / "version-hint.text").write_text(named)
    assert _ids(catalog, orders.location()) == [1, 2, 3]


def test_a_folder_without_a_table_is_not_found(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no Iceberg table there"):
        catalog.open_iceberg(tmp_path)


def test_a_missing_metadata_file_is_not_found(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"v3\.metadata\.json"):
        catalog.open_iceberg(tmp_path / "v3.metadata.json")


def test_a_table_that_pyicebergs_catalog_has_not_is_not_found(
    catalog: Catalog, theirs: PyIcebergCatalog
) -> None:
    with pytest.raises(NotFound, match=r"shop\.nothing"):
        catalog.open_iceberg(theirs, "shop.nothing")


def test_a_catalog_needs_a_name_and_nothing_else_takes_one(
    catalog: Catalog, theirs: PyIcebergCatalog, orders: PyIcebergTable
) -> None:
    with pytest.raises(InvalidInput, match="needs a table name"):
        catalog.open_iceberg(theirs)
    with pytest.raises(InvalidInput, match="only with a PyIceberg catalog"):
        catalog.open_iceberg(orders.metadata_location, "shop.orders")
    with pytest.raises(InvalidInput, match="int is not a table"):
        catalog.open_iceberg(7)


def test_a_newer_format_version_is_refused_by_name(
    catalog: Catalog, orders: PyIcebergTable, tmp_path: Path
) -> None:
    content = json.loads(Path(orders.metadata_location.removeprefix("file://")).read_text())
    content["format-version"] = 9
    path = tmp_path / "v1.metadata.json"
    path.write_text(json.dumps(content))
    with pytest.raises(Unsupported, match="format-version is 9"):
        catalog.open_iceberg(path)


def test_a_file_that_is_no_metadata_is_refused_by_name(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "v1.metadata.json"
    path.write_text("{}")
    with pytest.raises(FormatError, match=r"v1\.metadata\.json"):
        catalog.open_iceberg(path)


def test_every_way_to_write_is_refused_before_a_file_is_written(
    catalog: Catalog, orders: PyIcebergTable
) -> None:
    table = catalog.open_iceberg(orders.location())
    before = sorted(_folder(orders).rglob("*"))
    for write in (
        lambda: table.append(ROWS),
        lambda: table.delete("id = 1"),
        lambda: table.overwrite(ROWS),
        lambda: table.set_properties({"a": "b"}),
        lambda: table.tag("now"),
        lambda: table.publish(),
        table.rewrite_manifests,
    ):
        with pytest.raises(Unsupported, match="upgrade the table first"):
            write()
    assert sorted(_folder(orders).rglob("*")) == before


def test_buckets_prune_manifests_of_old_tables(catalog: Catalog, theirs: PyIcebergCatalog) -> None:
    table = theirs.create_table("shop.buckets", ROWS.schema)
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(16), "id_bucket")
    for number in range(8):
        table.append(pa.table({"id": pa.array([number], pa.int64()), "name": ["x"]}))
    bucket = BucketTransform(16).transform(LongType())
    alike = [number for number in range(8) if bucket(number) == bucket(3)]
    ours = catalog.open_iceberg(table)
    assert [column.name for column in ours.metadata.expressions] == ["id_bucket"]
    report = ours.scan(where="id = 3").explain()
    assert report.root.considered == 8
    assert report.root.survived == len(alike) < 8
    assert report.root.pruned_by_derived == 8 - len(alike)
    assert report.files == 1
