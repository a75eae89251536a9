"""Publishing: what is written, what is used again, and what happens when it fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from frazil import Catalog, InvalidInput, StorageError, Table, connect
from frazil.commit.change import Change
from frazil.commit.updates import SetProperties
from frazil.legacy.publish import publish as publish_module
from frazil.legacy.publish.publish import publish
from frazil.legacy.publish.published import published_files
from frazil.storage import LocalStorage

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table([pa.array(ids, pa.int64()), [f"n{i}" for i in ids]], schema=SCHEMA)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return connect(tmp_path)


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("shop.orders", SCHEMA)


def _leafy(table: Table) -> Table:
    """The root holds one file; the next commit moves it to a leaf."""
    table.set_properties({"write.root.max-data-entries": "1"})
    return table


def _theirs(location: str) -> list[int]:
    found = StaticTable.from_metadata(location).scan().to_arrow()
    return sorted(found.column("id").to_pylist())


def _files(table: Table, folder: str) -> dict[str, bytes]:
    base = Path(table.location.removeprefix("file://")) / folder
    return {path.name: path.read_bytes() for path in base.rglob("*") if path.is_file()}


def _named(location: str) -> Iterator[str]:
    """Every path that published metadata says."""
    static = StaticTable.from_metadata(location)
    snapshot = static.current_snapshot()
    assert snapshot is not None
    yield static.location()
    yield snapshot.manifest_list
    for manifest in snapshot.manifests(static.io):
        yield manifest.manifest_path
        for entry in manifest.fetch_manifest_entry(static.io):
            yield entry.data_file.file_path


@pytest.mark.parametrize("version", [2, 3])
def test_pyiceberg_reads_what_is_published(table: Table, version: int) -> None:
    table.append(rows(1, 2, 3))
    table.append(rows(4))
    table.delete("id = 2")
    data = _files(table, "data")
    done = table.publish(format_version=version)
    assert done.format_version == version
    assert _theirs(done.metadata_location) == [1, 3, 4]
    assert _files(table, "data").items() >= data.items()
    assert done.delete_files_written == (1 if version == 2 else 0)


def test_paths_are_absolute_and_readers_find_the_version(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    done = table.publish()
    assert done.metadata_location == f"{table.location}/metadata/v1.metadata.json"
    assert (done.version, done.format_version) == (1, 3)
    assert all(path.startswith("file:///") for path in _named(done.metadata_location))
    assert _files(table, "metadata")["version-hint.text"] == b"1"
    table.append(rows(9))
    assert table.publish().version == 2
    assert _files(table, "metadata")["version-hint.text"] == b"2"


def test_leaves_that_did_not_change_are_not_published_again(table: Table) -> None:
    _leafy(table)
    for number in range(5):
        table.append(rows(number))
    first = table.publish()  # four leaves, and the last file in the root
    assert (first.manifests_written, first.manifests_reused) == (5, 0)
    table.append(rows(5))
    second = table.publish()  # the fifth leaf is new, and so is the root
    assert (second.manifests_written, second.manifests_reused) == (2, 4)
    table.delete("id = 3")
    third = table.publish()
    assert _theirs(third.metadata_location) == [0, 1, 2, 4, 5]
    assert third.manifests_reused >= 4


def test_publishing_the_same_snapshot_again_writes_no_manifest(table: Table) -> None:
    table.append(rows(1, 2))
    table.publish()
    table.set_properties({"note": "changed"})
    again = table.publish()
    assert (again.version, again.manifests_written, again.manifests_reused) == (2, 0, 1)
    assert StaticTable.from_metadata(again.metadata_location).properties["note"] == "changed"


def test_position_delete_files_are_used_again(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, 6))
    table.delete("id = 2")
    assert table.publish(format_version=2).delete_files_written == 1
    table.delete("id = 5")
    second = table.publish(format_version=2)
    assert second.delete_files_written == 1
    assert _theirs(second.metadata_location) == [1, 3, 4, 6]
    table.append(rows(7))
    third = table.publish(format_version=2)
    assert third.delete_files_written == 0
    assert _theirs(third.metadata_location) == [1, 3, 4, 6, 7]


def test_an_old_snapshot_can_be_published(table: Table) -> None:
    table.append(rows(1))
    first = table.current_snapshot()
    assert first is not None
    table.append(rows(2))
    table.tag("then", as_of=int(first.snapshot_id))
    for name in (int(first.snapshot_id), "then"):
        assert _theirs(table.publish(snapshot=name).metadata_location) == [1]
    assert _theirs(table.publish().metadata_location) == [1, 2]


def test_a_table_without_rows_is_published(table: Table) -> None:
    done = table.publish()
    assert done.snapshot_id is None
    assert StaticTable.from_metadata(done.metadata_location).current_snapshot() is None


def test_a_change_of_version_begins_anew(table: Table) -> None:
    table.append(rows(1, 2))
    table.delete("id = 1")
    table.publish(format_version=3)
    done = table.publish(format_version=2)
    assert done.manifests_reused == 0
    assert _theirs(done.metadata_location) == [2]


def test_a_lost_state_file_costs_only_work(table: Table) -> None:
    table.append(rows(1, 2))
    table.publish()
    for path in Path(table.location.removeprefix("file://")).rglob("published-*.json"):
        path.unlink()
    done = table.publish()
    assert (done.version, done.manifests_written) == (2, 1)
    assert _theirs(done.metadata_location) == [1, 2]


def test_a_lost_hint_is_written_again(table: Table) -> None:
    table.append(rows(1, 2))
    table.publish()
    hint = Path(table.location.removeprefix("file://")) / "metadata" / "version-hint.text"
    hint.unlink()
    assert table.publish().version == 2
    assert hint.read_text() == "2"


def test_a_version_that_another_publisher_took_is_not_overwritten(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(1, 2))
    plain = LocalStorage.write_new
    other = Path(table.location.removeprefix("file://")) / "metadata" / "v1.metadata.json"
    newest = max(other.parent.glob("00*.metadata.json"))

    def slow(self: LocalStorage, path: str, data: Any) -> None:
        if path.endswith("/v1.metadata.json") and not other.exists():
            other.write_bytes(newest.read_bytes())
        plain(self, path, data)

    monkeypatch.setattr(LocalStorage, "write_new", slow)
    done = table.publish()
    assert done.version == 2
    assert other.read_bytes() == newest.read_bytes()
    assert _theirs(done.metadata_location) == [1, 2]


def test_a_publication_is_not_undone_by_an_older_one(catalog: Catalog, table: Table) -> None:
    table.append(rows(1))
    behind = catalog.load_table("shop.orders").pinned()
    table.append(rows(2))
    table.publish()
    done = behind.publish()
    assert done.version == 1
    assert _theirs(done.metadata_location) == [1, 2]


def test_every_commit_on_main_is_published_when_the_table_asks(table: Table) -> None:
    table.set_properties({"publish.format-version": "2"})
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    hint = _files(table, "metadata")["version-hint.text"].decode()
    assert hint == "3"
    assert _theirs(f"{table.location}/metadata/v3.metadata.json") == [1, 3]
    side = table.branch("side", create=True)
    hint = _files(table, "metadata")["version-hint.text"].decode()
    side.append(rows(9))
    assert _files(table, "metadata")["version-hint.text"].decode() == hint


def test_a_failed_publication_is_a_note_on_the_commit(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.set_properties({"publish.format-version": "3"})
    plain = LocalStorage.write_new

    def failing(self: LocalStorage, path: str, data: Any) -> None:
        if path.endswith(".avro"):
            raise StorageError(f"{path}: disk full")
        plain(self, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "write_new", failing)
        done = table.append(rows(1))
    assert done is not None
    assert [note for note in done.notes if "was not published (storage)" in note]
    assert table.scan().count() == 1
    table.append(rows(2))
    assert _theirs(f"{table.location}/metadata/v2.metadata.json") == [1, 2]


def test_a_version_that_cannot_be_published_is_refused(table: Table) -> None:
    table.append(rows(1))
    for version in (1, 4):
        with pytest.raises(InvalidInput, match="published as 2 or 3"):
            table.publish(format_version=version)
    stored = SetProperties(updates={"publish.format-version": "nine"})
    with pytest.raises(InvalidInput, match="'nine'; expected 2 or 3"):
        table._handle.commit(Change(updates=(stored,)))


def test_published_files_are_known_and_survive_the_removal_of_orphans(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.delete("id = 1")
    location = table.publish(format_version=2).metadata_location
    known = published_files(table.metadata, table._handle.storage)
    assert set(_named(location)) - known <= {table.location, *_data_paths(table)}
    table.remove_orphan_files(older_than=4_000_000_000_000)
    assert _theirs(location) == [2, 3]


def _data_paths(table: Table) -> list[str]:
    return [f"{table.location}/{task.location}" for task in table.scan().tasks()]


def test_a_state_file_that_is_damaged_is_named(table: Table) -> None:
    table.append(rows(1))
    table.publish()
    [state] = Path(table.location.removeprefix("file://")).rglob("published-*.json")
    state.write_text(json.dumps({"leaves": 7}))
    with pytest.raises(Exception, match=state.name):
        table.publish()


def test_partitions_and_evolved_schemas_are_published(catalog: Catalog) -> None:
    table = catalog.create_table(
        "shop.parted", SCHEMA, partition_by=["bucket[4](id)", "truncate[1](name)"]
    )
    table.append(rows(1, 2, 3))
    with table.evolve_schema() as update:
        update.add_column("price", "double")
    with table.evolve_partitions() as spec:
        spec.remove("name_trunc_1")
    table.append(pa.table({"id": [4], "name": ["z"], "price": [1.5]}))
    for version in (2, 3):
        location = table.publish(format_version=version).metadata_location
        found = StaticTable.from_metadata(location).scan(row_filter="id = 4").to_arrow()
        assert found.to_pylist() == [{"id": 4, "name": "z", "price": 1.5}]
        assert _theirs(location) == [1, 2, 3, 4]


def test_equality_deletes_are_published_as_they_are(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.set_properties({"write.equality-deletes.enabled": "true"})
    delta = table.row_delta()
    delta.add_equality_deletes(pa.table({"id": pa.array([2], pa.int64())}), on=["id"]).commit()
    location = table.publish(format_version=2).metadata_location
    static = StaticTable.from_metadata(location)
    snapshot = static.current_snapshot()
    assert snapshot is not None
    deletes = [
        entry.data_file
        for manifest in snapshot.manifests(static.io)
        for entry in manifest.fetch_manifest_entry(static.io)
        if entry.data_file.content.value == 2
    ]
    assert [(file.record_count, list(file.equality_ids or ())) for file in deletes] == [(1, [1])]


class Overwriting(LocalStorage):
    """Files of a store that replaces what is there, as object stores do."""

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        super().delete(path)
        super().write_new(path, data)


def test_two_publishers_on_an_object_store_write_two_versions(
    catalog: Catalog, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(1, 2, 3))
    storage = Overwriting()
    mine, theirs = (
        replace(handle, context=replace(handle.context, storage=storage))
        for handle in (table._handle, catalog.load_table("shop.orders")._handle)
    )
    second = threading.Thread(target=lambda: publish(theirs, format_version=2))
    write_new = Overwriting.write_new

    def meet(self: Overwriting, path: str, data: bytes) -> None:
        """The second publisher comes when the first is about to write its version."""
        if path.endswith(".metadata.json") and not second.ident:
            second.start()
            second.join(1.0)
        write_new(self, path, data)

    monkeypatch.setattr(Overwriting, "write_new", meet)
    publish(mine, format_version=3)
    second.join()
    versions = {
        name: json.loads(data)["format-version"]
        for name, data in _files(table, "metadata").items()
        if name in ("v1.metadata.json", "v2.metadata.json")
    }
    assert versions == {"v1.metadata.json": 3, "v2.metadata.json": 2}


def test_the_claim_of_a_publisher_that_died_is_passed_over(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(1))
    monkeypatch.setattr(publish_module, "MAX_CLAIM_S", 0.0)
    notes = table._handle.head.notes  # type: ignore[attr-defined]
    assert notes.claim(1, "dead") == "dead"
    done = table.publish()
    assert done.version == 1
    assert _theirs(done.metadata_location) == [1]
    table.append(rows(2))
    assert table.publish().version == 2
    assert set(notes.below("publish:")) == {"publish:000000000002"}
