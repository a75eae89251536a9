"""Commands on catalogs and tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.object_server import Bucket


def test_init_makes_a_warehouse_and_says_where(run: Run, tmp_path: Path) -> None:
    done = run("init", "--json")
    assert done.code == 0
    assert done.json["warehouse"] == f"file://{tmp_path}/warehouse"
    assert (tmp_path / "warehouse" / "catalog.db").exists()


def test_a_new_catalog_has_no_tables_and_says_what_to_do(run: Run) -> None:
    assert run("init").code == 0
    done = run("tables")
    assert done.code == 0
    assert "frazil create" in done.out
    assert run("tables", "--json").json == []


def test_tables_are_listed_with_their_size(shop: Run) -> None:
    (line,) = shop("tables", "--json").json
    assert line["table"] == "shop.orders"
    assert line["format"] == 4
    assert (line["files"], line["rows"]) == (2, 5)
    shop("create", "shop.empty", "--column", "x:int")
    (line, _) = shop("tables", "--json").json
    assert (line["table"], line["files"], line["rows"]) == ("shop.empty", 0, 0)


def test_create_takes_columns_partitions_and_properties(run: Run) -> None:
    done = run(
        "create",
        "shop.items",
        "--column",
        "id:long not null",
        "--column",
        "price:decimal(10,2)",
        "--column",
        "at:timestamptz",
        "-p",
        "day(at)",
        "-p",
        "bucket[4](id)",
        "--set",
        "write.root.max-data-entries=7",
        "--sort-by",
        "price desc",
        "--json",
    )
    assert done.code == 0, done.err
    made = done.json
    assert [(c["name"], c["type"], c["required"]) for c in made["columns"]] == [
        ("id", "long", True),
        ("price", "decimal(10, 2)", False),
        ("at", "timestamptz", False),
    ]
    assert made["partitioning"] == ["at_day: day", "id_bucket_4: bucket[4]"]
    assert made["properties"]["write.root.max-data-entries"] == "7"


def test_create_needs_columns_or_a_file(run: Run) -> None:
    done = run("create", "shop.items")
    assert done.code == 2
    assert "--column" in done.err


def test_a_bad_column_definition_is_named(run: Run) -> None:
    done = run("create", "shop.items", "--column", "id")
    assert done.code == 2
    assert "name:type" in done.err
    assert run("create", "shop.items", "--column", "id:longg").code == 2


def test_describe_shows_columns_snapshot_and_partitioning(shop: Run) -> None:
    text = shop("describe", "shop.orders").out
    for word in ("order_id", "identity", "total-records", "append"):
        assert word in text
    assert "2026-10 (1 manifest)" in text
    value = shop("describe", "shop.orders", "--json").json
    assert value["snapshot"]["total-records"] == "5"
    assert value["revisions"] == {"2026-10": 1}


def test_schema_lists_columns(shop: Run) -> None:
    names = [column["name"] for column in shop("schema", "shop.orders", "--json").json]
    assert names == ["order_id", "day", "country", "price"]


def test_properties_are_set_and_removed(shop: Run) -> None:
    shown = shop("set", "shop.orders", "a.b=1", "c.d=2", "--json").json
    assert {"key": "a.b", "value": "1"} in shown
    shown = shop("set", "shop.orders", "a.b", "--json").json
    assert [item["key"] for item in shown if item["key"] in ("a.b", "c.d")] == ["c.d"]


def test_rename_and_drop(shop: Run) -> None:
    assert shop("rename", "shop.orders", "shop.old", "--json").json == {"table": "shop.old"}
    assert shop("scan", "shop.orders").code == 3
    assert shop("drop", "shop.old", "--purge", "--yes", "--json").json["purged"] is True
    assert shop("tables", "--json").json == []


def test_drop_asks_first_and_stops_without_an_answer(
    shop: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", _refuse)
    assert shop("drop", "shop.orders").code == 130
    assert len(shop("tables", "--json").json) == 1


def _refuse(*_: object, **__: object) -> bool:
    import typer

    raise typer.Abort


def test_a_catalog_comes_from_the_option_the_environment_or_a_file(
    shop: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shop("init", "--catalog", "elsewhere").code == 0
    assert shop("tables", "--catalog", "elsewhere", "--json").json == []
    monkeypatch.setenv("FRAZIL_CATALOG", str(tmp_path / "other"))
    assert shop("init", "--json").json["from"] == "FRAZIL_CATALOG"
    monkeypatch.delenv("FRAZIL_CATALOG")
    (tmp_path / "frazil.toml").write_text('[catalog]\nuri = "third"\n')
    found = shop("init", "--json").json
    assert (found["catalog"], found["from"]) == ("third", "frazil.toml")


def test_a_broken_config_file_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "frazil.toml").write_text("[catalog\n")
    done = run("tables")
    assert done.code == 2
    assert "frazil.toml" in done.err


def test_a_sql_catalog_of_pyicebergs_configuration_is_used(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(
        "catalog:\n"
        "  lake:\n"
        "    type: sql\n"
        f"    uri: sqlite:///{tmp_path}/lake.db\n"
        f"    warehouse: file://{tmp_path}/lake\n"
        "  served:\n"
        "    type: rest\n"
        "    uri: http://127.0.0.1:1\n"
    )
    done = run("create", "shop.orders", "--from", "monday.csv", "-c", "lake", "--json")
    assert done.code == 0, done.err
    assert done.json["location"] == f"file://{tmp_path}/lake/shop/orders"
    assert (tmp_path / "lake.db").exists()
    refused = run("tables", "-c", "served")
    assert refused.code == 2
    assert "frazil import served:" in refused.err


def test_errors_are_json_when_asked(run: Run) -> None:
    done = run("scan", "shop.nothing", "--json")
    assert done.code == 3
    assert json.loads(done.err)["error"]["kind"] == "not-found"


def test_create_loads_rows_when_asked(run: Run) -> None:
    done = run("create", "shop.orders", "--from", "monday.csv", "--load", "-p", "day")
    assert done.code == 0, done.err
    assert "created shop.orders with 3 rows" in done.out
    assert run("scan", "shop.orders", "--count").out == "3\n"
    assert run("create", "shop.empty", "--from", "monday.csv").code == 0
    assert run("scan", "shop.empty", "--count").out == "0\n"
    assert run("create", "shop.other", "--column", "x:int", "--load").code == 2


def test_a_bad_property_is_refused_by_name(shop: Run) -> None:
    done = shop("set", "shop.orders", "write.root.max-data-entries=abc")
    assert done.code == 2
    assert "property write.root.max-data-entries is 'abc'; expected a whole number" in done.err


def test_a_catalog_is_copied_and_moved(shop: Run, tmp_path: Path) -> None:
    done = shop("catalog", "copy", "warehouse", f"sqlite:///{tmp_path}/other.db", "--json")
    assert done.code == 0, done.err
    assert done.json["tables"] == ["shop.orders"]
    assert shop("scan", "shop.orders", "--catalog", f"sqlite:///{tmp_path}/other.db").code == 0
    third = f"sqlite:///{tmp_path}/third.db"
    refused = shop("catalog", "copy", "warehouse", third, "--drop-source")
    assert refused.code != 0
    assert "--yes" in refused.err
    moved = shop("catalog", "copy", "warehouse", third, "--drop-source", "--yes")
    assert moved.code == 0, moved.err
    assert "moved 1 table" in moved.out
    assert shop("tables", "--json").json == []


def test_commands_take_an_address_in_a_bucket(
    run: Run, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.properties["s3.access-key-id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.properties["s3.secret-access-key"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("FRAZIL_CATALOG", bucket.warehouse)
    assert run("init").code == 0
    created = run("create", "shop.items", "--column", "id:long")
    assert created.code == 0, created.err
    assert run("sql", "INSERT INTO shop.items VALUES (1), (2)").code == 0
    (line,) = run("tables", "--json").json
    assert (line["table"], line["rows"]) == ("shop.items", 2)
    assert run("drop", "shop.items", "--yes").code == 0
    assert run("tables", "--json").json == []


def test_a_property_that_is_not_set_cannot_be_removed(shop: Run) -> None:
    done = shop("set", "shop.orders", "owner")
    assert done.code == 3
    assert "property owner is not set, so it cannot be removed" in done.err


def test_an_almost_right_name_of_a_property_is_pointed_out(shop: Run) -> None:
    done = shop("set", "shop.orders", "write.target-file-size-byte=1")
    assert done.code == 0
    assert "Did you mean write.target-file-size-bytes?" in done.err
    assert shop("set", "shop.orders", "owner=ann").err == ""
