"""A name that is mistyped creates nothing, and the error says what is there."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import InvalidInput, NotFound

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def table(tmp_path: Path) -> frazil.Table:
    made = frazil.connect(tmp_path / "lake").create_table("shop.orders", ROWS.schema)
    made.append(ROWS)
    return made


def test_looking_at_a_folder_creates_nothing(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path / "typo")
    for look in (
        lambda: catalog.load_table("shop.orders"),
        catalog.list_tables,
        lambda: catalog.drop_table("shop.orders"),
        lambda: catalog.sql("SELECT * FROM shop.orders"),
    ):
        with pytest.raises(NotFound, match="typo: no warehouse exists here"):
            look()
    assert not catalog.table_exists("shop.orders")
    catalog.close()
    assert list(tmp_path.iterdir()) == []


def test_reading_an_attribute_creates_nothing(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path / "typo")
    backend = catalog._pointers
    for name in [*dir(backend), "notes", "neighbourhood", "database", "no_such_thing"]:
        getattr(backend, name, None)
    assert backend.notes.get(["a"]) == {}
    assert backend.notes.below("a") == {}
    assert backend.table_versions() == []
    assert not backend.views.exists("shop.view")
    with pytest.raises(NotFound, match="typo: no warehouse exists here"):
        backend.views.drop("shop.view")
    with pytest.raises(NotFound, match="typo: no warehouse exists here"):
        backend.purge("shop.orders")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["table", "namespace", "told", "sql"])
def test_a_warehouse_is_created_when_asked_or_by_the_first_table(tmp_path: Path, how: str) -> None:
    catalog = frazil.connect(tmp_path / "lake", create=how == "told")
    if how == "table":
        catalog.create_table("shop.orders", ROWS.schema).append(ROWS)
    elif how == "namespace":
        catalog.create_namespace("shop")
    elif how == "sql":
        catalog.sql("CREATE TABLE shop.orders (id bigint)")
    assert (tmp_path / "lake" / "catalog.db").is_file()
    there = frazil.connect(tmp_path / "lake").list_tables()
    assert there == (["shop.orders"] if how in ("table", "sql") else [])


def test_a_warehouse_that_someone_else_creates_is_found(tmp_path: Path) -> None:
    early = frazil.connect(tmp_path / "lake")
    frazil.connect(tmp_path / "lake").create_table("shop.orders", ROWS.schema)
    assert early.list_tables() == ["shop.orders"]


def test_a_folder_may_be_called_like_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frazil.connect("postgres_data", create=True).close()
    assert (tmp_path / "postgres_data" / "catalog.db").is_file()


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no option 'werehouse'\. Did you mean warehouse"):
        frazil.connect(tmp_path / "lake", werehouse="/data")
    frazil.connect(tmp_path / "lake", **{"s3.endpoint": "http://127.0.0.1:1"}).close()


def test_a_branch_is_created_only_when_told(table: frazil.Table) -> None:
    table.branch("audit", create=True)
    with pytest.raises(NotFound, match=r"'adit' is not a branch; branches: audit, main.*audit\?"):
        table.branch("adit")
    assert sorted(table.refresh().metadata.refs) == ["audit", "main"]
    assert table.branch("audit").scan().count() == 3


def test_what_is_missing_is_answered_with_what_is_there(table: frazil.Table) -> None:
    table.tag("end-of-year")
    with pytest.raises(NotFound, match=r"branches and tags: end-of-year, main.*end-of-year\?"):
        table.scan(as_of="end-of-yaer")
    with pytest.raises(InvalidInput, match=r"unknown column idd; the table has id"):
        table.scan(columns=["idd"]).to_arrow()
    (snapshot,) = table.snapshots()
    oldest = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC).isoformat()
    with pytest.raises(NotFound) as caught:
        table.scan(as_of="2001-01-01")
    told = f"the oldest is {snapshot.snapshot_id} of {oldest}"
    assert f"as old as 2001-01-01T00:00:00+00:00; {told}" in str(caught.value)
    with pytest.raises(NotFound, match=rf"no snapshot 99; .*oldest is {snapshot.snapshot_id} of"):
        table.scan(as_of=99)
    with pytest.raises(NotFound, match=r"'end'; there are: end-of-year, main$"):
        table.drop_ref("end")
