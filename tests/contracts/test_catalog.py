"""What every catalog promises, on memory, SQLite and PostgreSQL alike."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from frazil.catalog.backend import CatalogBackend, TableHead
from frazil.catalog.names import Identifier
from frazil.catalog.objects.object_catalog import ObjectCatalog
from frazil.commit.head import Draft, Landed, Lost
from frazil.errors import AlreadyExists, InvalidInput, NotFound, Unsupported
from frazil.format.metadata.metadata import RefKind, SnapshotId, SnapshotRef
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import DoubleType, NestedField
from frazil.storage import Places
from tests.support.catalogs import ORDERS, append, append_and_land, orders

SHOP_ORDERS = Identifier(namespace=("shop",), name="orders")


@pytest.fixture
def head(catalog: CatalogBackend) -> TableHead:
    """A table just made."""
    catalog.namespaces.create("shop")
    metadata = orders(catalog.location_for("shop.orders"))
    return catalog.create_table("shop.orders", metadata)


def json_files(catalog: CatalogBackend, head: TableHead) -> list[str]:
    return json_files_at(catalog, head.state.metadata.location)


def json_files_at(catalog: CatalogBackend, location: str) -> list[str]:
    listed = catalog.storage(location).list(f"{location}/metadata")
    names = (file.path.rpartition("/")[2] for file in listed)
    return sorted(name for name in names if name.endswith(".metadata.json"))


# Namespaces


def test_a_namespace_is_there_after_it_was_created(catalog: CatalogBackend) -> None:
    assert not catalog.namespaces.exists("shop")
    catalog.namespaces.create("shop", {"owner": "sales"})
    assert catalog.namespaces.exists("shop")
    assert catalog.namespaces.children() == [("shop",)]
    assert catalog.namespaces.properties("shop") == {"owner": "sales"}
    assert catalog.list_tables("shop") == []


def test_a_namespace_cannot_be_created_twice(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("shop")
    with pytest.raises(AlreadyExists):
        catalog.namespaces.create("shop", {"owner": "sales"})


def test_namespaces_have_levels(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("eu.shop.archive")
    catalog.namespaces.create("eu_shop")
    assert catalog.namespaces.children() == [("eu",), ("eu_shop",)]
    assert catalog.namespaces.children("eu") == [("eu", "shop")]
    assert catalog.namespaces.children(("eu", "shop")) == [("eu", "shop", "archive")]
    assert catalog.namespaces.exists("eu")
    assert not catalog.namespaces.exists("e")


def test_namespace_properties_are_set_and_removed(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("shop")
    assert catalog.namespaces.properties("shop") == {}
    catalog.namespaces.set_properties("shop", {"owner": "sales", "team": "a"})
    catalog.namespaces.set_properties("shop", {"team": "b"}, removals=["owner"])
    assert catalog.namespaces.properties("shop") == {"team": "b"}
    catalog.namespaces.set_properties("shop", {}, removals=["team"])
    assert catalog.namespaces.properties("shop") == {}
    assert catalog.namespaces.exists("shop")


def test_a_namespace_that_is_not_there_is_named_in_the_error(catalog: CatalogBackend) -> None:
    for call in (
        catalog.namespaces.properties,
        catalog.namespaces.drop,
        catalog.list_tables,
        catalog.namespaces.children,
    ):
        with pytest.raises(NotFound, match="nowhere"):
            call("nowhere")
    with pytest.raises(NotFound, match="nowhere"):
        catalog.namespaces.set_properties("nowhere", {"a": "b"})


def test_a_namespace_is_dropped_only_when_empty(catalog: CatalogBackend, head: TableHead) -> None:
    with pytest.raises(InvalidInput, match="not empty"):
        catalog.namespaces.drop("shop")
    catalog.drop("shop.orders")
    catalog.namespaces.create("shop.archive")
    with pytest.raises(InvalidInput, match="not empty"):
        catalog.namespaces.drop("shop")
    catalog.namespaces.drop("shop.archive")
    catalog.namespaces.drop("shop")
    assert catalog.namespaces.children() == []


def test_a_credential_is_not_stored_as_a_property(catalog: CatalogBackend) -> None:
    with pytest.raises(InvalidInput) as refused:
        catalog.namespaces.create("shop", {"s3.secret-access-key": "hunter2"})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("name", ["a\0b", "", "a\n"])
def test_what_is_not_a_name_is_refused(catalog: CatalogBackend, name: str) -> None:
    with pytest.raises(InvalidInput):
        catalog.namespaces.create(name)
    with pytest.raises(InvalidInput):
        catalog.load(f"shop.{name}")
    with pytest.raises(InvalidInput):
        catalog.load(("shop", name))


@pytest.mark.parametrize("name", ["..", "a/b", "a\\b", "%2e%2e", "a.b", "a%2Eb", " a ", "день"])
def test_a_name_may_hold_any_character_and_stays_in_the_warehouse(
    catalog: CatalogBackend, name: str
) -> None:
    catalog.namespaces.create((name,))
    identifier = Identifier(namespace=(name,), name=name)
    place = catalog.location_for(identifier)
    catalog.create_table(identifier, orders(place))
    assert catalog.namespaces.children() == [(name,)]
    assert catalog.list_tables((name,)) == [identifier]
    assert catalog.load((name, name)).identifier == identifier
    assert catalog.warehouse is not None
    warehouse = Places().folder(catalog.warehouse)
    assert Places().folder(place).startswith(warehouse)


# Several tables at once


def test_several_heads_are_swapped_together_or_not_at_all(
    catalog: CatalogBackend, head: TableHead
) -> None:
    other = catalog.create_table("shop.sales", orders(catalog.location_for("shop.sales")))
    first, second = head.load(), other.load()
    if isinstance(catalog, ObjectCatalog):
        drafts = [(head, first, append(first, 1)), (other, second, append(second, 2))]
        with pytest.raises(Unsupported, match=r"SQL database .*frazil serve"):
            catalog.swap_all(drafts)
        assert (head.load(), other.load()) == (first, second)
        return
    done = catalog.swap_all([(head, first, append(first, 1)), (other, second, append(second, 2))])
    assert isinstance(done, Landed)
    assert [state.metadata.current_snapshot_id for state in done.states] == [1, 2]
    stale = catalog.swap_all(
        [(head, head.load(), append(head.load(), 3)), (other, second, append(second, 4))]
    )
    assert isinstance(stale, Lost)
    assert head.load().metadata.current_snapshot_id == 1
    assert other.load().metadata.current_snapshot_id == 2


def test_a_table_without_main_has_no_history_of_it(head: TableHead) -> None:
    state = append_and_land(head, 1)
    metadata = state.metadata.without_ref("main", now_ms=2_000)
    assert isinstance(head.swap(state, Draft(metadata=metadata)), Landed)
    assert head.load().metadata.current_snapshot_id is None
    assert head.history().snapshot_log == ()
    assert head.snapshot_id_as_of(9_999_999) is None
    assert [snapshot.snapshot_id for snapshot in head.snapshots()] == [1]


# Tables


def test_a_created_table_can_be_loaded(catalog: CatalogBackend, head: TableHead) -> None:
    found = catalog.load("shop.orders")
    assert found.state == head.state
    assert found.state.version == 0
    assert found.state.metadata.schema() == ORDERS
    assert found.state.snapshots == {}
    assert found.state.tip() is None
    assert found.history().snapshots == ()
    assert catalog.list_tables("shop") == [SHOP_ORDERS]
    assert catalog.table_exists("shop.orders")
    assert not catalog.table_exists("shop.other")


def test_a_table_goes_below_its_namespace_in_the_warehouse(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("eu.shop")
    suffix = "-[0-9a-f]{32}" if isinstance(catalog, ObjectCatalog) else ""
    below = f"{catalog.warehouse}/eu.shop/orders{suffix}"
    assert re.fullmatch(below, catalog.location_for("eu.shop.orders"))
    catalog.namespaces.create("far", {"location": "/elsewhere/far"})
    assert re.fullmatch(f"/elsewhere/far/orders{suffix}", catalog.location_for("far.orders"))


def test_a_place_that_holds_files_is_not_given_out_again(
    catalog: CatalogBackend, head: TableHead
) -> None:
    catalog.rename("shop.orders", "shop.old")
    first = head.state.metadata.location
    second = catalog.location_for("shop.orders")
    assert second.rpartition("/")[0] == first.rpartition("/")[0]
    assert second.rpartition("/")[2].startswith("orders")
    assert second != first


def test_a_name_is_taken_once(catalog: CatalogBackend, head: TableHead) -> None:
    other = orders(f"{catalog.warehouse}/elsewhere")
    with pytest.raises(AlreadyExists, match=r"shop\.orders"):
        catalog.create_table("shop.orders", other)
    assert json_files_at(catalog, other.location) == []


def test_two_tables_do_not_share_a_location(catalog: CatalogBackend, head: TableHead) -> None:
    with pytest.raises(AlreadyExists, match=r"shop\.orders"):
        catalog.create_table("shop.twin", orders(head.state.metadata.location))
    assert catalog.list_tables("shop") == [SHOP_ORDERS]


def test_a_table_needs_a_namespace(catalog: CatalogBackend) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        catalog.create_table("nowhere.orders", orders(f"{catalog.warehouse}/x"))
    with pytest.raises(InvalidInput):
        catalog.load("orders")


def test_a_table_that_is_not_there_is_not_found(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("shop")
    for call in (catalog.load, catalog.drop, catalog.purge):
        with pytest.raises(NotFound, match=r"shop\.orders"):
            call("shop.orders")
    with pytest.raises(NotFound, match=r"shop\.orders"):
        catalog.rename("shop.orders", "shop.other")


def test_a_renamed_table_keeps_its_head(catalog: CatalogBackend, head: TableHead) -> None:
    catalog.rename("shop.orders", "shop.sales")
    state = append_and_land(head, 1)
    assert catalog.load("shop.sales").state == state
    assert [str(each) for each in catalog.list_tables("shop")] == ["shop.sales"]
    with pytest.raises(NotFound):
        catalog.load("shop.orders")


def test_a_rename_needs_a_free_name_and_a_namespace(
    catalog: CatalogBackend, head: TableHead
) -> None:
    catalog.create_table("shop.sales", orders(catalog.location_for("shop.sales")))
    with pytest.raises(AlreadyExists):
        catalog.rename("shop.orders", "shop.sales")
    with pytest.raises(NotFound, match="nowhere"):
        catalog.rename("shop.orders", "nowhere.orders")
    assert catalog.load("shop.orders").state == head.state


def test_a_dropped_table_is_gone_and_its_files_stay(
    catalog: CatalogBackend, head: TableHead
) -> None:
    base = append_and_land(head, 1)
    catalog.drop("shop.orders")
    assert catalog.list_tables("shop") == []
    assert isinstance(head.swap(base, append(base, 2)), Lost)
    with pytest.raises(NotFound):
        head.load()
    assert json_files(catalog, head)


def test_a_head_of_a_dropped_table_does_not_write_to_its_successor(
    catalog: CatalogBackend, head: TableHead
) -> None:
    stale = head.state
    catalog.drop("shop.orders")
    successor = catalog.create_table("shop.orders", orders(catalog.location_for("shop.orders")))
    assert isinstance(head.swap(stale, append(stale, 1)), Lost)
    assert successor.load().tip() is None


def test_purge_says_what_the_table_was(catalog: CatalogBackend, head: TableHead) -> None:
    append_and_land(head, 1)
    state = append_and_land(head, 2)
    purged = catalog.purge("shop.orders")
    assert purged.identifier == SHOP_ORDERS
    assert purged.metadata == state.metadata
    assert [each.snapshot_id for each in purged.history.snapshots] == [1, 2]
    assert purged.metadata_location == state.metadata_location
    assert not catalog.table_exists("shop.orders")


# Swaps


def test_a_swap_lands_and_others_see_it(catalog: CatalogBackend, head: TableHead) -> None:
    other = catalog.load("shop.orders")
    draft = append(head.state, 77)
    outcome = head.swap(head.state, draft)
    assert isinstance(outcome, Landed)
    assert outcome.states[0] == head.state == other.load() == catalog.load("shop.orders").state
    assert outcome.states[0].version == 1
    tip = outcome.states[0].tip()
    assert tip == draft.added_snapshots[0]
    assert other.history().snapshots == (tip,)
    assert other.state.metadata.next_row_id == 10


def test_a_stale_base_loses_and_leaves_no_trace(catalog: CatalogBackend, head: TableHead) -> None:
    base = head.state
    winner = append_and_land(head, 1)
    other = catalog.load("shop.orders")
    assert isinstance(other.swap(base, append(base, 2)), Lost)
    assert other.load() == winner
    assert [each.snapshot_id for each in other.snapshots()] == [1]
    assert other.landed(2) is None
    assert other.landed(1) == winner


def test_history_is_in_the_order_of_commits(head: TableHead) -> None:
    for number in (5, 3, 9, 1):
        append_and_land(head, number)
    history = head.history()
    assert [each.snapshot_id for each in history.snapshots] == [5, 3, 9, 1]
    assert [entry.snapshot_id for entry in history.snapshot_log] == [5, 3, 9, 1]
    assert [each.snapshot_id for each in head.snapshots()] == [5, 3, 9, 1]
    assert head.snapshot(9).parent_snapshot_id == 3
    with pytest.raises(NotFound, match="4"):
        head.snapshot(4)


def test_the_log_tells_what_was_current_when(head: TableHead) -> None:
    append_and_land(head, 1)  # at 1010
    append_and_land(head, 2)  # at 1020
    base = head.load()
    back = base.metadata.with_ref("main", SnapshotRef(snapshot_id=SnapshotId(1)), now_ms=1_500)
    assert isinstance(head.swap(base, Draft(metadata=back)), Landed)
    assert [head.snapshot_id_as_of(t) for t in (1_000, 1_010, 1_019, 1_020, 1_499, 1_500)] == [
        None,
        1,
        1,
        2,
        2,
        1,
    ]
    tip = head.load().tip()
    assert tip is not None
    assert tip.snapshot_id == 1


def test_a_schema_change_reaches_other_heads(catalog: CatalogBackend, head: TableHead) -> None:
    other = catalog.load("shop.orders")
    base = head.state
    last = base.metadata.last_column_id
    wider = Schema(*ORDERS.fields, NestedField(last + 1, "price", DoubleType(), required=False))
    changed = base.metadata.with_schema(wider, now_ms=2_000)
    assert isinstance(head.swap(base, Draft(metadata=changed)), Landed)
    assert other.load().metadata == changed
    assert other.state.metadata.schema().find_field("price").field_id == last + 1
    assert append_and_land(other, 1).metadata.current_schema_id == 1
    assert head.load() == other.state


def test_properties_change_without_a_snapshot(catalog: CatalogBackend, head: TableHead) -> None:
    base = head.state
    changed = base.metadata.with_properties({"owner": "sales"}, now_ms=2_000)
    assert isinstance(head.swap(base, Draft(metadata=changed)), Landed)
    assert catalog.load("shop.orders").state.metadata.properties == {"owner": "sales"}
    assert head.history().snapshots == ()


def test_unknown_fields_come_back_from_the_catalog(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("shop")
    metadata = replace(
        orders(catalog.location_for("shop.orders")), extra={"new-field": [1, {"a": 2}]}
    )
    head = catalog.create_table("shop.orders", metadata)
    base = head.state
    draft = append(base, 1)
    marked = replace(draft.added_snapshots[0], extra={"key-id": "k1"})
    head.swap(base, replace(draft, added_snapshots=(marked,)))
    found = catalog.load("shop.orders")
    assert found.state.metadata.extra == {"new-field": [1, {"a": 2}]}
    tip = found.state.tip()
    assert tip is not None
    assert tip.extra == {"key-id": "k1"}


# Branches, tags and expiry


def test_loading_brings_the_snapshots_that_refs_name(
    catalog: CatalogBackend, head: TableHead
) -> None:
    for number in (1, 2, 3):
        append_and_land(head, number)
    base = head.load()
    tag = SnapshotRef(snapshot_id=SnapshotId(1), kind=RefKind.TAG, max_ref_age_ms=5)
    tagged = base.metadata.with_ref("eoy", tag, now_ms=2_000)
    head.swap(base, Draft(metadata=tagged))
    append_and_land(head, 4, branch="audit")
    state = catalog.load("shop.orders").state
    assert {name: ref.snapshot_id for name, ref in state.metadata.refs.items()} == {
        "main": 3,
        "eoy": 1,
        "audit": 4,
    }
    assert sorted(state.snapshots) == [1, 3, 4]
    assert state.metadata.ref("eoy") == tag
    audit = state.tip("audit")
    assert audit is not None
    assert audit.snapshot_id == 4
    assert [entry.snapshot_id for entry in head.history().snapshot_log] == [1, 2, 3]


def test_a_ref_cannot_name_a_snapshot_that_is_not_there(head: TableHead) -> None:
    base = append_and_land(head, 1)
    ghost = SnapshotRef(snapshot_id=SnapshotId(99), kind=RefKind.TAG)
    with pytest.raises(NotFound, match="99"):
        head.swap(base, Draft(metadata=base.metadata.with_ref("ghost", ghost, now_ms=2_000)))
    assert head.load() == base


def test_expired_snapshots_leave_the_history_and_the_log(head: TableHead) -> None:
    for number in (1, 2, 3, 4):
        append_and_land(head, number)
    base = head.load()
    kept = replace(base.metadata, last_updated_ms=9_000)
    outcome = head.swap(base, Draft(metadata=kept, removed_snapshot_ids=(1, 3)))
    assert isinstance(outcome, Landed)
    history = head.history()
    assert [each.snapshot_id for each in history.snapshots] == [2, 4]
    assert [entry.snapshot_id for entry in history.snapshot_log] == [4]
    with pytest.raises(NotFound):
        head.snapshot(3)


def test_a_named_snapshot_cannot_be_removed(head: TableHead) -> None:
    base = append_and_land(head, 1)
    with pytest.raises(InvalidInput, match="main"):
        head.swap(base, Draft(metadata=base.metadata, removed_snapshot_ids=(1,)))


# Metadata JSON


def test_the_json_is_written_at_create_and_then_when_due(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("shop")
    properties = {"write.metadata.json-every": "3"}
    metadata = orders(catalog.location_for("shop.orders"), properties)
    head = catalog.create_table("shop.orders", metadata)
    assert [name[:5] for name in json_files(catalog, head)] == ["00000"]
    for number in range(1, 8):
        append_and_land(head, number)
    assert [name[:5] for name in json_files(catalog, head)] == ["00000", "00003", "00006"]
    location = head.state.metadata_location
    assert location is not None
    written = json.loads(catalog.storage(location).read(location))
    assert [each["snapshot-id"] for each in written["snapshots"]] == [1, 2, 3, 4, 5, 6]
    assert [Path(e["metadata-file"]).name[:5] for e in written["metadata-log"]] == [
        "00000",
        "00003",
    ]
    assert catalog.load("shop.orders").state.metadata_location == location


@pytest.mark.parametrize(("every", "expected"), [("0", []), ("1", ["00000", "00001", "00002"])])
def test_json_can_be_written_never_or_always(
    catalog: CatalogBackend, every: str, expected: list[str]
) -> None:
    catalog.namespaces.create("shop")
    properties = {"write.metadata.json-every": every}
    metadata = orders(catalog.location_for("shop.orders"), properties)
    head = catalog.create_table("shop.orders", metadata)
    append_and_land(head, 1)
    append_and_land(head, 2)
    assert [name[:5] for name in json_files(catalog, head)] == expected


def test_a_schema_change_is_in_a_json_at_once(catalog: CatalogBackend, head: TableHead) -> None:
    append_and_land(head, 1)
    base = head.load()
    last = base.metadata.last_column_id
    wider = Schema(*ORDERS.fields, NestedField(last + 1, "price", DoubleType(), required=False))
    head.swap(base, Draft(metadata=base.metadata.with_schema(wider, now_ms=2_000)))
    assert [name[:5] for name in json_files(catalog, head)] == ["00000", "00002"]


def test_a_setting_that_cannot_be_read_is_refused_before_anything_lands(head: TableHead) -> None:
    base = head.state
    changed = base.metadata.with_properties({"write.metadata.json-every": "often"}, now_ms=2_000)
    with pytest.raises(InvalidInput, match="often"):
        head.swap(base, Draft(metadata=changed))
    assert head.load() == base


def test_export_writes_the_current_version_once(catalog: CatalogBackend, head: TableHead) -> None:
    append_and_land(head, 1)
    path = head.export()
    assert head.export() == path
    assert [name[:5] for name in json_files(catalog, head)] == ["00000", "00001"]
    assert head.load().metadata_location == path


def test_old_json_files_are_forgotten_and_deleted_when_asked(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("shop")
    properties = {
        "write.metadata.json-every": "1",
        "write.metadata.previous-versions-max": "2",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    metadata = orders(catalog.location_for("shop.orders"), properties)
    head = catalog.create_table("shop.orders", metadata)
    for number in range(1, 6):
        append_and_land(head, number)
    assert [name[:5] for name in json_files(catalog, head)] == ["00003", "00004", "00005"]


def test_a_json_that_cannot_be_written_does_not_fail_the_commit(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("shop")
    properties = {"write.metadata.json-every": "1", "write.metadata.path": "json"}
    head = catalog.create_table(
        "shop.orders", orders(catalog.location_for("shop.orders"), properties)
    )
    folder = Path(head.state.metadata.location) / "json"
    if not folder.exists():
        pytest.skip("a folder of a bucket cannot be in the way")
    shutil.rmtree(folder)
    folder.write_text("in the way")
    state = append_and_land(head, 1)
    assert state.version == 1
    assert catalog.load("shop.orders").state.version == 1
