"""Bad input of the calls that delete, copy and register: refused by type, with nothing done."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import FrazilError, InvalidInput
from frazil.table import Catalog, Table
from tests.support.history import SCHEMA, files_of, rows, state_of

LONE = "a\ud800.b"
BAD_NAMES: list[Any] = [
    None,
    5,
    b"a.b",
    "",
    "a",
    "a..b",
    LONE,
    [],
    [None, "a"],
    ["a", 5],
    {"a": "b"},
]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("shop.orders", SCHEMA)
    made.append(rows(1))
    made.append(rows(2))
    return made


def _refused(table: Table, call: Callable[[], Any]) -> None:
    before, state = files_of(table), state_of(table)
    with pytest.raises(InvalidInput):
        call()
    assert files_of(table) == before
    assert state_of(table.refresh()) == state
    assert len(table.snapshots()) == 2


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_bad_names_are_refused(catalog: Catalog, table: Table, tmp_path: Path, name: Any) -> None:
    json = table.export()
    place = str(tmp_path / "copy")
    for call in (
        lambda: table.clone(catalog, name),
        lambda: table.copy_to(place, catalog=catalog, name=name),
        lambda: catalog.register_table(name, json),
        lambda: catalog.recover_table(name, table.location),
        lambda: catalog.rename_table("shop.orders", name),
        lambda: catalog.drop_table(name, purge=True),
    ):
        _refused(table, call)
    assert not Path(place).exists()
    assert catalog.list_tables() == ["shop.orders"]


@pytest.mark.parametrize(
    "options",
    [
        {"keep_last": 0},
        {"keep_last": -1},
        {"keep_last": True},
        {"keep_last": 1.5},
        {"keep_last": "1"},
        {"keep_last": 2**70},
        {"older_than": 1.5},
        {"older_than": True},
        {"older_than": "yesterday"},
        {"older_than": "a\ud800"},
        {"older_than": b"2024-01-01"},
        {"older_than": [1]},
        {"older_than": -1},
        {"older_than": 2**70},
        {"older_than": timedelta(days=-1)},
        {"snapshot_ids": 5},
        {"snapshot_ids": "12"},
        {"snapshot_ids": [None]},
        {"snapshot_ids": [1.5]},
        {"snapshot_ids": [True]},
        {"snapshot_ids": ["1"]},
        {"snapshot_ids": [12345]},
        {"dry_run": "no"},
        {"dry_run": None},
        {"dry_run": 0},
    ],
    ids=repr,
)
def test_bad_options_of_an_expiry_are_refused(table: Table, options: Any) -> None:
    _refused(table, lambda: table.expire_snapshots(**options))
    shared = {key: value for key, value in options.items() if key in ("older_than", "dry_run")}
    if shared:
        _refused(table, lambda: table.remove_orphan_files(**shared))


@pytest.mark.parametrize("location", [5, "", "a\0b", "elsewhere", "/", b"x", "/tmp"], ids=repr)
def test_orphans_are_looked_for_in_the_table_only(table: Table, location: Any) -> None:
    _refused(table, lambda: table.remove_orphan_files(location=location))


@pytest.mark.parametrize("other", [None, "warehouse", 5])
def test_a_catalog_is_what_connect_returns(table: Table, tmp_path: Path, other: Any) -> None:
    _refused(table, lambda: table.clone(other, "shop.c"))
    _refused(table, lambda: table.copy_to(str(tmp_path / "c"), catalog=other, name="shop.c"))
    _refused(table, lambda: table.move_to(str(tmp_path / "c"), catalog=other))


@pytest.mark.parametrize(
    "path", [None, 5, b"x", "", "file://", "s3://", "a\0b", "a\ud800"], ids=repr
)
def test_a_metadata_file_is_named_by_its_path(catalog: Catalog, table: Table, path: Any) -> None:
    _refused(table, lambda: catalog.register_table("shop.c", path))
    assert "shop.c" not in catalog


def test_what_is_not_a_metadata_file_is_refused(
    catalog: Catalog, table: Table, tmp_path: Path
) -> None:
    bad = tmp_path / "x.metadata.json"
    for content in (b"", b"{}", b"[]", b"\xff\xfe", b"null", b'{"format-version": "4"}'):
        bad.write_bytes(content)
        with pytest.raises(FrazilError):
            catalog.register_table("shop.c", str(bad))
    for missing in (tmp_path / "none.json", tmp_path):
        with pytest.raises(FrazilError):
            catalog.register_table("shop.c", str(missing))
    assert catalog.list_tables() == ["shop.orders"]


def test_a_table_is_not_registered_across_storages(catalog: Catalog, table: Table) -> None:
    json = table.export()
    _refused(table, lambda: catalog.register_table("shop.c", json, location="s3://bucket/x"))


def test_purge_is_true_or_false(catalog: Catalog, table: Table) -> None:
    for purge in ("no", None, 0, 1):
        _refused(table, lambda value=purge: catalog.drop_table("shop.orders", purge=value))  # type: ignore[misc]
    assert "shop.orders" in catalog


def test_a_move_to_a_place_that_is_taken_leaves_the_table_where_it_is(
    catalog: Catalog, table: Table, tmp_path: Path
) -> None:
    other = catalog.create_table("shop.other", SCHEMA)
    with pytest.raises(FrazilError):
        table.move_to(other.location, catalog=catalog)
    assert state_of(catalog.load_table("shop.orders")) == state_of(table)
