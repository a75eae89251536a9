"""What clients are shown: truthful, incremental, known to every process and to maintenance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFileContent, ManifestEntryStatus
from pyiceberg.table import StaticTable

from frazil.errors import Unsupported
from frazil.legacy.publish.published_notes import shown_files
from frazil.serve.view import published_view
from frazil.serve.view.published_view import Facade
from frazil.table import Catalog, Table

ADDED, EXISTING, DELETED = (
    ManifestEntryStatus.ADDED,
    ManifestEntryStatus.EXISTING,
    ManifestEntryStatus.DELETED,
)


@pytest.fixture
def table(catalog: Catalog) -> Table:
    schema = pa.schema([("id", pa.int64())])
    return catalog.create_table("shop.orders", schema)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)})


def writes(table: Table, version: int = 3) -> list[str]:
    """Files that showing the table writes, by kind."""
    with table._handle.storage.recording() as calls:
        Facade().show(table._handle, version)
    names = [call.path for call in calls if call.verb == "write"]
    return sorted(
        "list" if "snap-" in name else "manifest" if name.endswith("avro") else "json"
        for name in names
    )


def statuses(table: Table, snapshot_id: int) -> list[tuple[Any, int | None]]:
    """Entries of manifests that a snapshot wrote, as a client reads them."""
    found = StaticTable.from_metadata(Facade().show(table._handle, 3).metadata_location)
    snapshot = found.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    return [
        (entry.status, entry.snapshot_id)
        for manifest in snapshot.manifests(found.io)
        if manifest.added_snapshot_id == snapshot_id
        for entry in manifest.fetch_manifest_entry(found.io, discard_deleted=False)
    ]


def test_showing_a_native_append_writes_one_manifest_however_large_the_table(
    catalog: Catalog,
) -> None:
    for name, files in (("small", 4), ("large", 60)):
        table = catalog.create_table(
            f"shop.{name}",
            pa.schema([("id", pa.int64())]),
            properties={"write.root.max-data-entries": "2"},
        )
        for number in range(files):
            table.append(rows(number))
        writes(table)
        table.set_properties({"write.root.max-data-entries": "10"})
        writes(table)
        table.append(rows(-1))
        assert writes(table) == ["json", "list", "manifest"]
        assert writes(table) == []


def test_statuses_say_what_each_snapshot_did(table: Table) -> None:
    table.append(rows(1))
    first = int(table.current_snapshot().snapshot_id)  # type: ignore[union-attr]
    table.append(rows(2))
    second = int(table.current_snapshot().snapshot_id)  # type: ignore[union-attr]
    table.delete("id = 1")
    third = int(table.current_snapshot().snapshot_id)  # type: ignore[union-attr]
    assert statuses(table, first) == [(ADDED, first)]
    assert statuses(table, second) == [(EXISTING, first), (ADDED, second)]
    assert statuses(table, third) == [(EXISTING, second), (DELETED, third)]


def test_a_leaf_says_what_the_snapshot_that_wrote_it_added(catalog: Catalog) -> None:
    table = catalog.create_table(
        "shop.leaves",
        pa.schema([("id", pa.int64())]),
        partition_by=["id"],
        properties={"write.root.max-data-entries": "2"},
    )
    table.append(rows(1, 2, 3, 4))  # straight into a leaf
    first = int(table.current_snapshot().snapshot_id)  # type: ignore[union-attr]
    table.append(rows(5))
    second = int(table.current_snapshot().snapshot_id)  # type: ignore[union-attr]
    assert statuses(table, first) == [(ADDED, first)] * 4
    assert statuses(table, second) == [(ADDED, second)]


def test_a_new_vector_has_the_age_of_its_snapshot(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.append(rows(4))
    table.delete("id = 2")
    found = StaticTable.from_metadata(Facade().show(table._handle, 3).metadata_location)
    snapshot = found.current_snapshot()
    assert snapshot is not None
    entries = [
        entry
        for manifest in snapshot.manifests(found.io)
        if manifest.content == 1
        for entry in manifest.fetch_manifest_entry(found.io)
    ]
    (vector,) = entries
    assert (vector.status, vector.sequence_number) == (ADDED, 3)
    assert vector.snapshot_id == snapshot.snapshot_id


def test_other_processes_find_what_was_published(table: Table, catalog: Catalog) -> None:
    table.append(rows(1))
    first = Facade().show(table._handle)
    again = Facade().show(catalog["shop.orders"]._handle)
    assert again == first


def test_expiry_collects_what_was_published_and_orphan_removal_leaves_the_rest(
    table: Table,
) -> None:
    for number in range(3):
        table.append(rows(number))
        writes(table)
    table.expire_snapshots(keep_last=1, older_than=_later())
    folder = Path(table.location.removeprefix("file://")) / "metadata" / "published"
    assert len(list(folder.glob("snap-*.avro"))) == 1
    shown = Facade().show(table._handle, 3)
    table.remove_orphan_files(older_than=_later())
    notes: Any = table._handle.head
    for path in shown_files(notes.notes):
        assert table._handle.storage.exists(path), path
    found = StaticTable.from_metadata(shown.metadata_location)
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]


def _later() -> Any:
    from datetime import UTC, datetime, timedelta

    return datetime.now(UTC) + timedelta(days=1)


def test_lists_summarise_partitions_and_position_deletes_have_bounds(catalog: Catalog) -> None:
    """Trino's `$manifests` and `$entries` fail without them."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    catalog.create_table("shop.plain", schema)
    catalog.create_table("shop.parted", schema, partition_by=["day"])
    for name, summaries in (("plain", 0), ("parted", 1)):
        table = catalog[f"shop.{name}"]
        table.append([{"id": 1, "day": "a"}, {"id": 2, "day": "a"}])
        table.delete("id = 1")
        found = StaticTable.from_metadata(Facade().show(table._handle, 2).metadata_location)
        snapshot = found.current_snapshot()
        assert snapshot is not None
        manifests = snapshot.manifests(found.io)
        assert [manifest.partitions is None for manifest in manifests] == [False] * len(manifests)
        assert {len(manifest.partitions or ()) for manifest in manifests} == {summaries}
        deletes = [
            entry.data_file
            for manifest in manifests
            for entry in manifest.fetch_manifest_entry(found.io)
            if entry.data_file.content is DataFileContent.POSITION_DELETES
        ]
        for file in deletes:
            lower, upper = file.lower_bounds[2147483545], file.upper_bounds[2147483545]
            assert int.from_bytes(lower, "little", signed=True) <= 0
            assert int.from_bytes(upper, "little", signed=True) >= 0
            assert file.lower_bounds[2147483546] == file.upper_bounds[2147483546]
        assert len(deletes) == 1


def test_documents_that_are_kept_are_bounded_by_bytes(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_view, "MAX_DOCUMENTS_BYTES", 5_000)
    facade = Facade()
    for number in range(5):
        table = catalog.create_table(f"shop.t{number}", pa.schema([("id", pa.int64())]))
        table.append(rows(number))
        facade.show(table._handle, 3)
        assert sum(map(len, facade._recent.values())) <= 5_000
    assert facade._recent


def test_column_files_are_merged_for_clients_if_the_table_asks_for_it(catalog: Catalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("price", pa.int64())])
    table = catalog.create_table("shop.priced", schema)
    table.append({"id": [1, 2, 3], "price": [10, 20, 30]})
    table.update({"price": 0}, "id = 2", mode="columns")
    with pytest.raises(Unsupported, match=r"compact\(merge_columns=True\), or set serve.merge-col"):
        Facade().show(table._handle, 3)
    before = len(table.snapshots())
    table.set_properties({"serve.merge-column-files": "true"})
    shown = StaticTable.from_metadata(Facade().show(table._handle, 3).metadata_location)
    assert shown.scan().to_arrow().sort_by("id")["price"].to_pylist() == [10, 0, 30]
    assert "serve.merge-column-files" not in shown.properties
    assert len(table.refresh().snapshots()) == before + 1
    # The snapshot with column files cannot be shown, nor times before it: they had other rows.
    ids = [int(snapshot.snapshot_id) for snapshot in table.snapshots()]
    assert {snapshot.snapshot_id for snapshot in shown.metadata.snapshots} == {ids[0], ids[2]}
    assert [entry.snapshot_id for entry in shown.metadata.snapshot_log] == [ids[2]]
    Facade().show(table._handle, 3)
    assert len(table.refresh().snapshots()) == before + 1


def test_column_files_that_were_merged_by_hand_are_no_obstacle(catalog: Catalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("price", pa.int64())])
    table = catalog.create_table("shop.priced", schema)
    table.append({"id": [1, 2], "price": [10, 20]})
    table.update({"price": 0}, mode="columns")
    table.tag("with columns")
    table.compact(merge_columns=True)
    shown = StaticTable.from_metadata(Facade().show(table._handle, 3).metadata_location)
    assert shown.scan().to_arrow()["price"].to_pylist() == [0, 0]
    assert set(shown.metadata.refs) == {"main"}
