"""Opening catalogs: no secret in a message, clear refusals, warehouses that can only be read."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.catalog.database import sqlite_pool
from frazil.errors import CatalogError, FrazilError, InvalidInput, NotFound, Unsupported, redacted
from tests.support.history import SCHEMA, rows, state_of

SECRET = "hunter2"


@pytest.mark.parametrize(
    "uri",
    [
        "mysql://me:hunter2@db/x",
        "mysql+pymysql://me:hunter2@db/x",
        "oracle://me:p@ss/hunter2@db/x",
        "http://me:hunter2@host/path",
        "s3://me:hunter2@bucket/x",
        "postgresql+nothing://me:hunter2@db/x",
        "postgresqlx://me:hunter2@db/x",
        "postgresql://me:hunter2@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?user=me&password=hunter2",
        "postgresql://me:hunter2@[broken/x",
        "mysql://db/x?password=hunter2",
        "sqlite:hunter2@x://me:hunter2@db",
        "jdbc:mysql://me:hunter2@db/x",
    ],
)
def test_no_password_reaches_a_message(uri: str, tmp_path: Path) -> None:
    with pytest.raises(FrazilError) as caught:
        frazil.connect(uri, warehouse=str(tmp_path))
    error: BaseException | None = caught.value
    assert SECRET not in str(error)
    assert SECRET not in repr(error)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mysql://me:hunter2@db/x", "mysql://me:***@db/x"),
        ("a mysql://me:p@hunter2@db/x b", "a mysql://me:***@db/x b"),
        ("x?sslpassword=hunter2&a=b", "x?sslpassword=***&a=b"),
        (
            "{'s3.secret-access-key': 'hunter2', 'a': 'b'}",
            "{'s3.secret-access-key': '***', 'a': 'b'}",
        ),
        ("s3://bucket/a:b@c", "s3://bucket/a:b@c"),
        ("unexpected token: x", "unexpected token: x"),
        ("file:///a@b: no such file", "file:///a@b: no such file"),
    ],
)
def test_secrets_are_redacted_and_nothing_else(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert str(InvalidInput(text)) == shown


def test_the_repr_of_a_catalog_and_of_its_origin_hide_secrets(tmp_path: Path) -> None:
    options = {"s3.secret-access-key": SECRET, "s3.session-token": SECRET}
    catalog = frazil.connect(tmp_path / "w", **options)
    assert SECRET not in repr(catalog)
    assert SECRET not in repr(catalog._origin)
    assert catalog._origin is not None
    assert catalog._origin["s3.secret-access-key"] == SECRET
    assert dict(pickle.loads(pickle.dumps(catalog._origin))) == dict(catalog._origin)


@pytest.mark.parametrize("uri", [None, 5, b"x", "", " ", "a\0b", "a\ud800b"], ids=repr)
def test_what_is_not_an_address_is_refused(uri: Any) -> None:
    with pytest.raises(InvalidInput):
        frazil.connect(uri)


def test_options_are_text(tmp_path: Path) -> None:
    for options in ({"a": 5}, {"name": ""}, {"name": 5}, {"warehouse": 5}, {"warehouse": "file:"}):
        with pytest.raises(InvalidInput):
            frazil.connect(tmp_path / "w", **options)
    secret: dict[str, Any] = {"s3.secret-access-key": SECRET.encode()}
    with pytest.raises(InvalidInput) as caught:
        frazil.connect(tmp_path / "w", **secret)
    assert SECRET not in str(caught.value)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(FrazilError, match="cannot be a warehouse") as caught:
        frazil.connect(file / "inside")
    assert str(file) in str(caught.value)


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    for name in ("a?b", "a#b", "a%20b", "a b", "ä"):
        catalog = frazil.connect(tmp_path / name)
        catalog.create_table("shop.t", SCHEMA, location=str(tmp_path / "t" / str(len(name))))
        assert (tmp_path / name / "catalog.db").is_file()
        catalog.drop_table("shop.t", purge=True)


def test_a_warehouse_that_can_only_be_read_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "warehouse"
    with frazil.connect(folder) as catalog:
        table = catalog.create_table("shop.orders", SCHEMA)
        table.append(rows(1, 2))
        table.append(rows(3))
        expected = state_of(table)
    paths = [folder, *folder.rglob("*")]
    files = {str(path): path.stat().st_mtime_ns for path in paths if path.is_file()}
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.geteuid() == 0:  # nothing is forbidden to root
        monkeypatch.setattr(sqlite_pool, "_can_write", lambda path: False)
    try:
        again = frazil.connect(folder)
        table = again["shop.orders"]
        assert state_of(table) == expected
        assert len(table.snapshots()) == 2
        assert again.list_tables() == ["shop.orders"]
        assert table.check(deep=True).problems == ()
        with pytest.raises(FrazilError):
            table.set_properties({"a": "b"})
        with pytest.raises(CatalogError, match="is read-only here"):
            again.create_namespace("more")
        assert {str(p): p.stat().st_mtime_ns for p in paths if p.is_file()} == files
        assert sorted(map(str, folder.rglob("*"))) == sorted(map(str, paths[1:]))
    finally:
        for path in paths:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_reader_without_permission_to_write_sees_what_a_writer_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "warehouse"
    frazil.connect(folder).create_table("shop.orders", SCHEMA)._handle.head.load()
    with monkeypatch.context() as forbidden:
        forbidden.setattr(sqlite_pool, "_can_write", lambda path: False)
        reader = frazil.connect(folder)["shop.orders"]
    writer = frazil.connect(folder)["shop.orders"]
    writer.append(rows(1))
    assert reader.refresh().scan().count() == 1
    writer.append(rows(2))
    assert reader.refresh().scan().count() == 2


def test_a_missing_warehouse_is_not_made_when_one_must_exist(tmp_path: Path) -> None:
    from frazil.table.open_catalog import connect_existing

    with pytest.raises(NotFound):
        connect_existing(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_missing_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_driver(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")

    monkeypatch.setattr("sqlalchemy.create_engine", without_driver)
    with pytest.raises(Unsupported, match=r"needs psycopg, .*: pip install 'frazil\[postgres\]'"):
        frazil.connect("postgresql://me@127.0.0.1:1/x").list_tables()
