"""Upgrade in place: whole or not at all, with named errors for what cannot be upgraded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from pyiceberg.table import Table as PyIcebergTable

from frazil import (
    Catalog,
    CommitConflict,
    CommitUnknown,
    InvalidInput,
    NotFound,
    StorageError,
    Unsupported,
    connect,
)
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.commit.head import Lost, Outcome, State, Unknown
from frazil.errors import CatalogError
from frazil.format.metadata.metadata import TableMetadata
from frazil.storage import LocalStorage

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table([pa.array(ids, pa.int64()), ["x"] * len(ids)], schema=SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """One database that PyIceberg and Frazil share, with a table of two snapshots."""

    folder: Path
    theirs: PyIcebergCatalog
    orders: PyIcebergTable
    ours: Catalog

    def files(self) -> dict[str, bytes]:
        below = (self.folder / "shop").rglob("*")
        return {str(path): path.read_bytes() for path in below if path.is_file()}


@pytest.fixture(params=[1, 2])
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Shop:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    theirs = PyIcebergCatalog("default", uri=uri, warehouse=f"file://{tmp_path}")
    theirs.create_namespace("shop")
    orders = theirs.create_table(
        "shop.orders", SCHEMA, properties={"format-version": str(request.param)}
    )
    orders.append(rows(1, 2, 3))
    orders.append(rows(4, 5))
    return Shop(folder=tmp_path, theirs=theirs, orders=orders, ours=connect(uri))


def _ids(scan: Any) -> list[int]:
    return sorted(row["id"] for row in scan.to_pylist())


def test_an_upgraded_table_is_read_as_before_and_written(shop: Shop) -> None:
    table = shop.ours.load_table("shop.orders")
    first = table.snapshots()[0]
    before = shop.files()
    report = table.upgrade()
    assert report.manifests == 2
    assert report.data_files == 2
    assert report.metadata_location is not None
    added = shop.files().keys() - before.keys()
    assert [f"file://{path}" for path in added] == [report.metadata_location]
    assert _ids(table.scan()) == [1, 2, 3, 4, 5]
    table.append(rows(6))
    assert _ids(table.scan()) == [1, 2, 3, 4, 5, 6]
    assert _ids(table.scan(as_of=int(first.snapshot_id))) == [1, 2, 3]
    assert _ids(shop.ours.load_table("shop.orders").scan()) == [1, 2, 3, 4, 5, 6]
    assert shop.files().items() >= before.items()


def test_a_dry_run_says_what_would_happen_and_does_nothing(shop: Shop) -> None:
    table = shop.ours.load_table("shop.orders")
    version = table.metadata.format_version
    before = shop.files()
    report = table.upgrade(dry_run=True)
    assert report.is_dry_run
    assert report.from_version == version
    assert f"format-version {version} would become 4" in str(report)
    assert "still readable: 2 snapshots" in str(report)
    assert shop.files() == before
    assert shop.ours.load_table("shop.orders").metadata.format_version == version
    shop.orders.append(rows(9))


def test_pyiceberg_leaves_an_upgraded_table_alone(shop: Shop) -> None:
    shop.ours.load_table("shop.orders").upgrade()
    assert "orders" not in {name[-1] for name in shop.theirs.list_tables("shop")}


def test_a_table_is_upgraded_once(shop: Shop) -> None:
    table = shop.ours.load_table("shop.orders")
    table.upgrade()
    with pytest.raises(InvalidInput, match="already has format-version 4"):
        table.upgrade()


def test_someone_else_upgraded_it_meanwhile(shop: Shop) -> None:
    table = shop.ours.load_table("shop.orders")
    shop.ours.load_table("shop.orders").upgrade()
    with pytest.raises(CommitConflict, match="load it again"):
        table.upgrade()


def test_a_table_without_snapshots_is_upgraded(shop: Shop) -> None:
    shop.theirs.create_table("shop.empty", SCHEMA)
    table = shop.ours.load_table("shop.empty")
    assert table.upgrade().manifests == 0
    table.append(rows(1))
    assert _ids(table.scan()) == [1]


def test_a_table_of_no_catalog_is_registered_first(shop: Shop) -> None:
    table = shop.ours.open_iceberg(shop.orders.metadata_location)
    with pytest.raises(Unsupported, match="register_table"):
        table.upgrade()
    assert table.upgrade(dry_run=True).manifests == 2
    entered = shop.ours.register_table("shop.copy", shop.orders.metadata_location)
    entered.upgrade()
    assert _ids(entered.scan()) == [1, 2, 3, 4, 5]


def test_a_missing_manifest_stops_the_upgrade(shop: Shop) -> None:
    snapshot = shop.orders.current_snapshot()
    assert snapshot is not None
    manifest = snapshot.manifests(shop.orders.io)[0].manifest_path
    Path(manifest.removeprefix("file://")).unlink()
    before = shop.files()
    table = shop.ours.load_table("shop.orders")
    with pytest.raises(NotFound, match="1 of 2 manifests are missing"):
        table.upgrade()
    assert shop.files() == before
    assert shop.theirs.load_table("shop.orders").metadata.format_version < 4


def test_a_missing_manifest_list_stops_the_upgrade(shop: Shop) -> None:
    snapshot = shop.orders.current_snapshot()
    assert snapshot is not None
    Path(snapshot.manifest_list.removeprefix("file://")).unlink()
    table = shop.ours.load_table("shop.orders")
    with pytest.raises(NotFound, match="snap-"):
        table.upgrade()
    assert shop.theirs.load_table("shop.orders").metadata.format_version < 4


def test_an_encrypted_table_is_refused(shop: Shop) -> None:
    with shop.orders.transaction() as tx:
        tx.set_properties({"encryption.key-id": "k1"})
    with pytest.raises(
        Unsupported, match=r"shop.orders: the table is encrypted \(encryption.key-id"
    ):
        shop.ours.load_table("shop.orders")


def test_a_commit_of_pyicebergs_meanwhile_is_taken_along(shop: Shop) -> None:
    table = shop.ours.load_table("shop.orders")
    shop.orders.append(rows(7))
    assert table.upgrade().manifests == 3
    assert _ids(table.scan()) == [1, 2, 3, 4, 5, 7]


class _Scripted(SqlCatalog):
    """A catalog whose upgrades can be interfered with."""

    before: Callable[[], object] | None = None
    reply: str = "plain"

    def upgrade(self, identifier: Any, base: State, metadata: TableMetadata) -> Outcome:
        act, self.before = self.before, None
        if act is not None:
            act()
        if self.reply == "always lost":
            return Lost()
        if self.reply == "never came":
            return Unknown(cause=CatalogError("connection reset"))
        outcome = super().upgrade(identifier, base, metadata)
        if self.reply == "landed and lost":
            return Unknown(cause=CatalogError("connection reset"))
        return outcome


@pytest.fixture
def scripted(shop: Shop) -> _Scripted:
    return _Scripted(f"sqlite:///{shop.folder}/catalog.db")


def test_a_lost_race_is_run_again_on_what_won(shop: Shop, scripted: _Scripted) -> None:
    scripted.before = lambda: shop.orders.append(rows(8))
    table = Catalog(scripted).load_table("shop.orders")
    assert table.upgrade().manifests == 3
    assert _ids(table.scan()) == [1, 2, 3, 4, 5, 8]


def test_an_upgrade_that_always_loses_gives_up_and_changes_nothing(
    shop: Shop, scripted: _Scripted
) -> None:
    scripted.reply = "always lost"
    with pytest.raises(CommitConflict, match="nothing was changed"):
        Catalog(scripted).load_table("shop.orders").upgrade()
    assert shop.theirs.load_table("shop.orders").metadata.format_version < 4


def test_a_lost_reply_is_looked_up(shop: Shop, scripted: _Scripted) -> None:
    scripted.reply = "landed and lost"
    table = Catalog(scripted).load_table("shop.orders")
    table.upgrade()
    table.append(rows(6))
    assert _ids(shop.ours.load_table("shop.orders").scan()) == [1, 2, 3, 4, 5, 6]


def test_a_doubt_that_cannot_be_cleared_is_said(shop: Shop, scripted: _Scripted) -> None:
    scripted.reply = "never came"
    with pytest.raises(CommitUnknown, match="still as before"):
        Catalog(scripted).load_table("shop.orders").upgrade()
    assert _ids(shop.ours.load_table("shop.orders").scan()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("verb", ["read", "exists", "write_new"])
@pytest.mark.parametrize("nth", [0, 1])
def test_a_stop_at_a_storage_call_leaves_the_old_table(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, verb: str, nth: int
) -> None:
    table = shop.ours.load_table("shop.orders")
    plain = getattr(LocalStorage, verb)
    calls = 0

    def failing(self: LocalStorage, path: str, *rest: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > nth:
            raise StorageError(f"{path}: disk gone")
        return plain(self, path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, verb, failing)
        try:
            table.upgrade()
        except StorageError:
            stopped = True
        else:
            stopped = False
    # Only one file is written, so that there is no second write to stop at.
    assert stopped == ((verb, nth) != ("write_new", 1))
    now = shop.ours.load_table("shop.orders")
    assert (now.metadata.format_version == 4) == (not stopped)
    assert _ids(now.scan()) == [1, 2, 3, 4, 5]


def test_the_location_is_spelled_as_in_the_paths_of_manifests(shop: Shop) -> None:
    path = Path(shop.orders.metadata_location.removeprefix("file://"))
    content = json.loads(path.read_text())
    content["location"] = content["location"].replace("file://", "file:")
    other = path.with_name("00099-spelled.metadata.json")
    other.write_text(json.dumps(content))
    table = shop.ours.register_table("shop.spelled", f"file:{other}")
    table.upgrade()
    assert table.location == shop.orders.location()
    table.delete("id = 2")
    assert _ids(table.scan()) == [1, 3, 4, 5]
    root = table._handle.reader().tree(table.current_snapshot()).root
    assert not any(name.startswith("file:") for name in root.pylist("location"))


@pytest.mark.parametrize("change", ["upsert", "update", "overwrite"])
def test_the_first_change_of_an_upgraded_table_gives_every_row_an_id_of_its_own(
    shop: Shop, change: str
) -> None:
    table = shop.ours.load_table("shop.orders")
    table.upgrade()
    if change == "upsert":
        table.upsert(pa.table([[1, 2, 9], ["y", "y", "y"]], schema=SCHEMA), on=["id"])
    elif change == "update":
        table.update({"name": "y"}, where="id <= 2")
    else:
        table.overwrite(rows(9), where="id <= 2")
    ids = [row["_row_id"] for row in table.scan(columns=["id", "_row_id"]).to_pylist()]
    assert all(isinstance(each, int) and each >= 0 for each in ids)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("before", [(), ("location",), ("record_count",), ("spec_id",)])
def test_what_old_entries_inherit_is_the_same_whatever_was_read_before(
    shop: Shop, before: tuple[str, ...]
) -> None:
    table = shop.ours.load_table("shop.orders")
    added_by = {snapshot.sequence_number: snapshot.snapshot_id for snapshot in table.snapshots()}
    table.upgrade()
    table.append(rows(6))
    reader = table._handle.reader()
    old = [leaf for leaf in reader.tree(table.current_snapshot()).leaves() if not leaf.dead]
    found = []
    for leaf in old:
        reader.cache.clear()
        reader.entries(leaf, keys=before)
        first_row = reader.entries(leaf, keys=["tracking.first_row_id"])
        numbers = reader.entries(leaf, keys=["tracking.sequence_number", "tracking.snapshot_id"])
        assert first_row.pylist("tracking.first_row_id") == [leaf.first_row_id]
        assert numbers.pylist("tracking.sequence_number") == [leaf.sequence_number]
        assert numbers.pylist("tracking.snapshot_id") == [leaf.snapshot_id]
        found.append(leaf.first_row_id)
        if shop.orders.metadata.format_version == 2:
            assert added_by[leaf.sequence_number] == leaf.snapshot_id
    assert set(found) == {0, 2}  # the newer manifest, of two rows, comes first
