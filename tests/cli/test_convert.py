"""Commands between formats and places."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

from tests.cli.conftest import Run

ROWS = pa.table({"order_id": [1, 2, 3], "country": ["US", "DE", "US"]})


@pytest.fixture
def v2(run: Run, tmp_path: Path) -> Run:
    """The table shop.old, written by PyIceberg as version 2 into the warehouse's database."""
    run("init")
    catalog = SqlCatalog(
        "default",
        uri=f"sqlite:///{tmp_path}/warehouse/catalog.db",
        warehouse=f"file://{tmp_path}/warehouse",
    )
    catalog.create_namespace_if_not_exists("shop")
    table = catalog.create_table("shop.old", schema=ROWS.schema, properties={"format-version": "2"})
    table.append(ROWS)
    table.append(ROWS)
    return run


def test_a_v2_table_is_read_and_upgraded(v2: Run) -> None:
    assert v2("scan", "shop.old", "--count", "--json").json == {"count": 6}
    dry = v2("upgrade", "shop.old", "--dry-run", "--json").json
    assert (dry["from_version"], dry["data_files"], dry["is_dry_run"]) == (2, 2, True)
    assert v2("describe", "shop.old", "--json").json["format-version"] == 2
    done = v2("upgrade", "shop.old")
    assert done.code == 0, done.err
    assert v2("describe", "shop.old", "--json").json["format-version"] == 4
    assert v2("delete", "shop.old", "-w", "order_id = 1").code == 0
    assert v2("scan", "shop.old", "--count", "--json").json == {"count": 4}
    leaves = [e for e in v2("tree", "shop.old", "--json").json["entries"] if e["kind"] == "M"]
    assert all("carried avro" in leaf["facts"] for leaf in leaves)
    assert v2("check", "shop.old").code == 0


def test_upgrading_twice_is_refused(v2: Run) -> None:
    assert v2("upgrade", "shop.old").code == 0
    assert v2("upgrade", "shop.old").code == 2


def test_publish_writes_metadata_that_pyiceberg_reads(shop: Run) -> None:
    shop("delete", "shop.orders", "-w", "order_id = 1")
    done = shop("publish", "shop.orders", "--format-version", "2", "--json")
    assert done.code == 0, done.err
    read = StaticTable.from_metadata(done.json["metadata_location"]).scan().to_arrow()
    assert sorted(read["order_id"].to_pylist()) == [2, 3, 4, 5]
    assert shop("publish", "shop.orders", "--format-version", "7").code == 2


def test_export_and_register(shop: Run) -> None:
    where = shop("export", "shop.orders", "--json").json["metadata"]
    assert shop("drop", "shop.orders", "--yes").code == 0
    assert shop("register", "shop.again", where).code == 0
    assert shop("scan", "shop.again", "--count", "--json").json == {"count": 5}


def test_recover_rebuilds_a_lost_catalog(shop: Run, tmp_path: Path) -> None:
    location = f"file://{tmp_path}/warehouse/shop/orders"
    done = shop("recover", "shop.orders", location, "-c", "fresh", "--json")
    assert done.code == 0, done.err
    assert (done.json["snapshots"], done.json["certain"]) == (2, True)
    assert shop("scan", "shop.orders", "-c", "fresh", "--count", "--json").json == {"count": 5}


def test_clone_shares_files(shop: Run) -> None:
    assert shop("clone", "shop.orders", "sandbox.orders").code == 0
    assert shop("delete", "sandbox.orders", "-w", "order_id = 1").code == 0
    assert shop("scan", "shop.orders", "--count", "--json").json == {"count": 5}
    assert shop("scan", "sandbox.orders", "--count", "--json").json == {"count": 4}


def test_import_takes_an_iceberg_table_over_from_its_folder(v2: Run, tmp_path: Path) -> None:
    folder = f"{tmp_path}/warehouse/shop/old"
    dry = v2("import", folder, "--dry-run", "-c", "other", "--json")
    assert dry.code == 0, dry.err
    assert dry.json["from_version"] == 2
    assert not (tmp_path / "other").exists()
    done = v2("import", folder, "shop.taken", "-c", "other")
    assert done.code == 0, done.err
    assert v2("scan", "shop.taken", "-c", "other", "--count", "--json").json == {"count": 6}
    assert v2("describe", "shop.taken", "-c", "other", "--json").json["format-version"] == 4


@pytest.fixture
def lake(run: Run, tmp_path: Path) -> Run:
    """The table shop.old of a catalog that only PyIceberg's configuration knows."""
    place = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": f"file://{tmp_path}/lake"}
    (tmp_path / ".pyiceberg.yaml").write_text(
        "catalog:\n  lake:\n    type: sql\n"
        + "".join(f"    {key}: {value}\n" for key, value in place.items())
    )
    catalog = SqlCatalog("lake", **place)
    catalog.create_namespace("shop")
    catalog.create_table("shop.old", schema=ROWS.schema).append(ROWS)
    return run


def test_import_takes_a_table_of_a_configured_pyiceberg_catalog(lake: Run) -> None:
    done = lake("import", "lake:shop.old", "shop.taken", "-c", "./other")
    assert done.code == 0, done.err
    assert lake("scan", "shop.taken", "-c", "./other", "--count", "--json").json == {"count": 3}


def test_tables_of_a_configured_pyiceberg_catalog_are_upgraded_where_they_are(lake: Run) -> None:
    assert lake("tables", "-c", "lake", "--json").json[0]["format"] == 2
    assert lake("upgrade", "shop.old", "-c", "lake").code == 0
    assert lake("tables", "-c", "lake", "--json").json[0]["format"] == 4


def test_import_of_nothing_is_not_found(run: Run, tmp_path: Path) -> None:
    assert run("import", f"{tmp_path}/nowhere", "shop.taken").code == 3
