"""Metadata as Arrow tables, of v4 snapshots and of what PyIceberg wrote."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PySqlCatalog
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as PyTable
from pyiceberg.transforms import IdentityTransform, MonthTransform
from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType

import frazil
from frazil.commit.handle import TableHandle
from frazil.commit.head import Draft, Outcome, State
from frazil.errors import NotFound
from frazil.format.metadata.metadata import (
    MAIN,
    Snapshot,
    SnapshotId,
    SnapshotRef,
    TableMetadata,
    new_table,
)
from frazil.iceberg.pyiceberg_values import from_pyiceberg
from frazil.legacy.read.legacy_decoder import LegacyDecoder
from frazil.storage import LocalStorage
from frazil.table.inspect import Inspect
from frazil.table.table import Table
from tests.support import legacy_files

ARROW = pa.schema(
    [("id", pa.int64()), ("country", pa.string()), ("day", pa.date32()), ("price", pa.float64())]
)
TABLES = (
    "snapshots",
    "history",
    "refs",
    "entries",
    "files",
    "data_files",
    "delete_files",
    "manifests",
    "partitions",
    "metadata_log",
    "all_entries",
    "all_files",
    "all_manifests",
)


def orders(*rows: tuple[int, str | None, int, float | None]) -> pa.Table:
    """Rows of id, country, month of 2024 and price."""
    return pa.Table.from_pylist(
        [
            {"id": id, "country": country, "day": date(2024, month, 1), "price": price}
            for id, country, month, price in rows
        ],
        schema=ARROW,
    )


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return frazil.connect(tmp_path).create_table(
        "shop.orders", ARROW, partition_by=["country", "month(day)"]
    )


# --- v4 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_a_table_never_written_to_has_empty_tables_of_the_same_columns(
    table: Table, name: str
) -> None:
    before = getattr(table.inspect, name)
    assert before.num_rows == (1 if name == "metadata_log" else 0)
    table.append(orders((1, "AT", 1, 2.5)))
    after = getattr(table.inspect, name)
    after.validate(full=True)
    assert after.schema.names == before.schema.names
    assert [str(kind) for kind in after.schema.types] == [str(kind) for kind in before.schema.types]


def test_snapshots_say_when_what_and_where(table: Table) -> None:
    table.append(orders((1, "AT", 1, 2.5), (2, "US", 1, 3.5)))
    table.delete("id = 1")
    found = table.inspect.snapshots.to_pylist()
    first, second = table.snapshots()
    assert [row["snapshot_id"] for row in found] == [first.snapshot_id, second.snapshot_id]
    assert [row["parent_id"] for row in found] == [None, first.snapshot_id]
    assert [row["operation"] for row in found] == ["append", "delete"]
    assert [row["sequence_number"] for row in found] == [1, 2]
    assert [row["manifest_list"] for row in found] == [None, None]
    assert found[1]["root_manifest"] == f"{table.location}/{second.root_manifest}"
    assert dict(found[0]["summary"])["added-records"] == "2"
    assert "operation" not in dict(found[0]["summary"])
    assert (found[0]["first_row_id"], found[0]["added_rows"]) == (0, 2)
    at = found[0]["committed_at"].replace(tzinfo=UTC)
    assert int(at.timestamp() * 1000) == first.timestamp_ms


def test_history_tells_rolled_back_snapshots_from_ancestors(table: Table) -> None:
    table.append(orders((1, "AT", 1, 1.0)))
    first = table.current_snapshot()
    assert first is not None
    table.append(orders((2, "AT", 1, 1.0)))
    second = table.current_snapshot()
    assert second is not None
    table.rollback(int(first.snapshot_id))
    found = table.inspect.history.to_pylist()
    assert [row["snapshot_id"] for row in found] == [
        first.snapshot_id,
        second.snapshot_id,
        first.snapshot_id,
    ]
    assert [row["is_current_ancestor"] for row in found] == [True, False, True]
    assert [row["parent_id"] for row in found] == [None, first.snapshot_id, None]


def test_refs_list_branches_and_tags(table: Table) -> None:
    table.append(orders((1, "AT", 1, 1.0)))
    table.tag("eoy", max_age_ms=5_000)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    found = {row["name"]: row for row in table.inspect.refs.to_pylist()}
    assert found["main"]["type"] == "BRANCH"
    assert found["eoy"] == {
        "name": "eoy",
        "type": "TAG",
        "snapshot_id": snapshot.snapshot_id,
        "max_reference_age_in_ms": 5_000,
        "min_snapshots_to_keep": None,
        "max_snapshot_age_in_ms": None,
    }


def test_files_show_partition_metrics_and_lineage(table: Table) -> None:
    table.append(orders((1, "AT", 1, 2.5), (2, "AT", 1, None), (3, None, 2, float("nan"))))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    found = sorted(table.inspect.files.to_pylist(), key=lambda row: int(row["record_count"]))
    single, pair = found
    assert pair["partition"] == {"country": "AT", "day_month": 648}
    assert single["partition"] == {"country": None, "day_month": 649}
    assert pair["file_path"].startswith(f"{table.location}/data/")
    assert (
        Path(pair["file_path"].removeprefix("file://")).stat().st_size
        == (pair["file_size_in_bytes"])
    )
    assert (pair["content"], pair["file_format"], pair["spec_id"]) == (0, "PARQUET", 0)
    assert {single["first_row_id"], pair["first_row_id"]} in ({0, 2}, {0, 1})
    assert (pair["snapshot_id"], pair["sequence_number"]) == (snapshot.snapshot_id, 1)
    assert pair["manifest"] is None
    assert pair["deletion_vector"] is None
    metrics = pair["readable_metrics"]
    assert metrics["id"] == {
        "lower_bound": 1,
        "upper_bound": 2,
        "tight_bounds": True,
        "value_count": 2,
        "null_value_count": 0,
    }
    assert metrics["price"] == {
        "lower_bound": 2.5,
        "upper_bound": 2.5,
        "tight_bounds": True,
        "value_count": 2,
        "null_value_count": 1,
        "nan_value_count": 0,
    }
    assert metrics["day"]["lower_bound"] == date(2024, 1, 1)
    assert single["readable_metrics"]["price"]["nan_value_count"] == 1


def test_a_deletion_vector_is_shown_with_its_file(table: Table) -> None:
    table.append(orders((1, "AT", 1, 1.0), (2, "AT", 1, 1.0), (3, "AT", 1, 1.0)))
    table.delete("id = 2")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    (file,) = table.inspect.data_files.to_pylist()
    vector = file["deletion_vector"]
    assert (vector["cardinality"], vector["snapshot_id"]) == (1, snapshot.snapshot_id)
    assert vector["location"].startswith(table.location)
    assert vector["location"].endswith(".puffin")
    assert table.inspect.delete_files.num_rows == 0


def test_entries_keep_what_the_snapshot_took_away(table: Table) -> None:
    table.append(orders((1, "AT", 1, 1.0), (2, "US", 1, 1.0)))
    table.delete("country = 'US'")
    found = table.inspect.entries.to_pylist()
    states = {
        row["data_file"]["partition"]["country"]: (row["status"], row["is_live"], row["manifest"])
        for row in found
    }
    assert states == {"AT": (0, True, None), "US": (2, False, None)}
    assert sorted(row["position"] for row in found) == [0, 1]
    assert table.inspect.files.num_rows == 1


def test_leaves_are_manifests_and_their_dead_entries_are_told(tmp_path: Path) -> None:
    table = frazil.connect(tmp_path).create_table(
        "shop.orders",
        ARROW,
        partition_by=["country"],
        properties={"write.root.max-data-entries": "1", "write.leaf.target-entries": "100"},
    )
    table.append(orders((1, "AT", 1, 1.0), (2, "CH", 1, 2.0), (3, "US", 1, 3.0)))
    table.delete("country = 'CH'")
    first, second = table.snapshots()
    (leaf,) = table.inspect.manifests.to_pylist()
    assert (leaf["content"], leaf["added_snapshot_id"]) == (0, first.snapshot_id)
    assert (leaf["entry_count"], leaf["dead_entry_count"], leaf["deleted_entry_count"]) == (3, 1, 1)
    assert leaf["modified_snapshot_id"] == second.snapshot_id
    assert (leaf["added_data_files_count"], leaf["added_delete_files_count"]) == (3, 0)
    assert leaf["length"] == Path(leaf["path"].removeprefix("file://")).stat().st_size
    (summary,) = leaf["partition_summaries"]
    assert (summary["lower_bound"], summary["upper_bound"]) == ("AT", "US")
    assert summary["contains_null"] is False
    assert leaf["readable_metrics"]["id"]["lower_bound"] == 1
    entries = table.inspect.entries.to_pylist()
    assert {row["data_file"]["partition"]["country"]: row["is_live"] for row in entries} == {
        "AT": True,
        "CH": False,
        "US": True,
    }
    assert {row["manifest"] for row in entries} == {leaf["path"]}
    assert sorted(row["position"] for row in entries) == [0, 1, 2]
    assert table.inspect.files.num_rows == 2
    every = [row["is_live"] for row in table.inspect.all_entries.to_pylist()]
    assert sorted(every) == [False, True, True]  # one leaf, as the newest snapshot has it
    assert table.inspect.all_manifests.column("reference_snapshot_id").to_pylist() == [
        first.snapshot_id,
        second.snapshot_id,
    ]


def test_entries_of_every_root_are_listed(table: Table) -> None:
    table.append(orders((1, "AT", 1, 1.0)))
    table.append(orders((2, "US", 1, 1.0)))
    table.delete("country = 'AT'")
    found = table.inspect.all_entries.to_pylist()
    shown = sorted((row["data_file"]["partition"]["country"], row["is_live"]) for row in found)
    assert shown == [("AT", False), ("AT", True), ("AT", True), ("US", True), ("US", True)]
    assert len(table.inspect.entries) == 2


def test_partitions_are_counted_and_dated(table: Table) -> None:
    table.append(orders((1, "AT", 1, 1.0), (2, "AT", 1, 1.0), (3, "US", 2, 1.0)))
    table.append(orders((4, "AT", 1, 1.0)))
    table.delete("id = 1")
    _, second, third = table.snapshots()
    first = table.snapshots()[0]
    found = {row["partition"]["country"]: row for row in table.inspect.partitions.to_pylist()}
    austria, america = found["AT"], found["US"]
    assert austria["partition"] == {"country": "AT", "day_month": 648}
    assert (austria["record_count"], austria["file_count"], austria["spec_id"]) == (3, 2, 0)
    assert (austria["position_delete_record_count"], austria["dv_count"]) == (1, 1)
    assert austria["position_delete_file_count"] == 0
    assert austria["last_updated_snapshot_id"] == third.snapshot_id
    assert america["last_updated_snapshot_id"] == first.snapshot_id
    assert america["equality_delete_file_count"] == 0
    files = table.inspect.files.to_pylist()
    assert austria["total_data_file_size_in_bytes"] == sum(
        row["file_size_in_bytes"] for row in files if row["partition"]["country"] == "AT"
    )
    earlier = table.inspect.at(int(second.snapshot_id)).partitions.to_pylist()
    assert {row["partition"]["country"]: row["dv_count"] for row in earlier} == {"AT": 0, "US": 0}


def test_an_unpartitioned_table_is_one_row(tmp_path: Path) -> None:
    table = frazil.connect(tmp_path).create_table("shop.plain", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [3]}))
    (row,) = table.inspect.partitions.to_pylist()
    assert "partition" not in row
    assert (row["record_count"], row["file_count"]) == (3, 2)
    assert table.inspect.files.column("partition").to_pylist() == [{}, {}]
    assert table.inspect.files.column("spec_id").to_pylist() == [0, 0]


def test_another_snapshot_is_inspected_in_its_own_schema(table: Table) -> None:
    table.append(orders((1, "AT", 1, 1.0)))
    first = table.current_snapshot()
    assert first is not None
    table.evolve_schema().drop_column("price").commit()
    table.append(orders((2, "AT", 1, 1.0)).drop_columns(["price"]))
    then = table.inspect.at(first)
    assert then.files.num_rows == 1
    assert "price" in then.files.column("readable_metrics").type.names
    assert table.inspect.files.num_rows == 2
    assert "price" not in table.inspect.files.column("readable_metrics").type.names


def test_metrics_written_before_a_column_was_widened_are_widened(tmp_path: Path) -> None:
    table = frazil.connect(tmp_path).create_table(
        "shop.t", pa.schema([("n", pa.int32()), ("d", pa.date32())])
    )
    table.append(pa.table({"n": pa.array([1], pa.int32()), "d": [date(2024, 1, 15)]}))
    table.evolve_schema().update_column("n", "long").update_column("d", "timestamp").commit()
    metrics = table.inspect.files.column("readable_metrics")
    assert metrics.type.field("n").type.field("lower_bound").type == pa.int64()
    (row,) = metrics.to_pylist()
    assert row["n"]["lower_bound"] == 1
    assert row["d"]["upper_bound"] == datetime(2024, 1, 15)


def test_all_files_has_every_file_once_as_the_newest_snapshot_shows_it(table: Table) -> None:
    table.append(orders((1, "AT", 1, 1.0), (2, "AT", 1, 1.0), (3, "US", 1, 1.0)))
    table.delete("id = 2")
    table.delete("country = 'US'")
    found = table.inspect.all_files.to_pylist()
    vectors = {row["partition"]["country"]: row["deletion_vector"] for row in found}
    assert len(found) == 2
    assert vectors["AT"]["cardinality"] == 1
    assert vectors["US"] is None


def test_metadata_log_names_the_files_written(tmp_path: Path) -> None:
    table = frazil.connect(tmp_path).create_table(
        "shop.t", pa.schema([("id", pa.int64())]), properties={"write.metadata.json-every": "1"}
    )
    table.append(pa.table({"id": [1]}))
    found = table.inspect.metadata_log.to_pylist()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert [row["latest_snapshot_id"] for row in found] == [None, snapshot.snapshot_id]
    assert [row["latest_sequence_number"] for row in found] == [None, 1]
    for row in found:
        assert Path(row["file"].removeprefix("file://")).is_file()


# --- as PyIceberg shows it -------------------------------------------------------------------

EVENTS = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "kind", StringType(), required=False),
    NestedField(3, "day", DateType(), required=False),
    NestedField(4, "price", DoubleType(), required=False),
)
BY_KIND = PartitionSpec(
    PartitionField(2, 1000, IdentityTransform(), "kind"),
    PartitionField(3, 1001, MonthTransform(), "day_month"),
)


@pytest.fixture(params=[1, 2])
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Table, PyTable]:
    """A v1 or v2 table that PyIceberg wrote, and the same as seen here."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    theirs = PySqlCatalog("old", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
    theirs.create_namespace("shop")
    written = theirs.create_table(
        "shop.events",
        EVENTS,
        partition_spec=BY_KIND,
        properties={"format-version": str(request.param)},
    )
    for start in (0, 10):
        rows = [
            {
                "id": start + n,
                "kind": None if n == 3 else f"k{n % 2}",
                "day": date(2024, 1 + n % 3, 5),
                "price": None if n == 2 else n / 4,
            }
            for n in range(6)
        ]
        written.append(pa.Table.from_pylist(rows, schema=EVENTS.as_arrow()))
    written.delete("kind = 'k1'")
    with written.manage_snapshots() as manage:
        snapshot = written.snapshots()[0]
        manage.create_tag(snapshot.snapshot_id, "first")
    ours = frazil.connect(uri, name="old").load_table("shop.events")
    return ours, theirs.load_table("shop.events")


def shared(ours: pa.Table, theirs: pa.Table, *, by: str, drop: Iterable[str] = ()) -> None:
    """The columns that both tables have hold the same values."""
    names = [name for name in theirs.column_names if name not in set(drop)]
    assert not set(names) - set(ours.column_names)

    def rows(table: pa.Table) -> list[dict[str, Any]]:
        return sorted(table.select(names).to_pylist(), key=lambda row: str(row[by]))

    assert rows(ours) == rows(theirs)


def test_snapshots_history_and_refs_are_as_pyiceberg_shows_them(
    pair: tuple[Table, PyTable],
) -> None:
    ours, theirs = pair
    shared(ours.inspect.snapshots, theirs.inspect.snapshots(), by="snapshot_id")
    shared(ours.inspect.history, theirs.inspect.history(), by="made_current_at")
    shared(ours.inspect.refs, theirs.inspect.refs(), by="name")
    shared(ours.inspect.metadata_log, theirs.inspect.metadata_log_entries(), by="file")


_OTHERWISE = ("column_sizes", "nan_value_counts", "readable_metrics", "key_metadata")
"""Columns that differ: v4 keeps no sizes of columns, and what is unknown is null, not empty."""


def test_files_are_as_pyiceberg_shows_them(pair: tuple[Table, PyTable]) -> None:
    ours, theirs = pair
    expected = theirs.inspect.files()
    shared(ours.inspect.files, expected, by="file_path", drop=_OTHERWISE)
    mine = {row["file_path"]: row["readable_metrics"] for row in ours.inspect.files.to_pylist()}
    for row in expected.to_pylist():
        for column, metrics in row["readable_metrics"].items():
            for name, value in metrics.items():
                if name == "column_size" or (name == "nan_value_count" and value is None):
                    continue
                assert mine[row["file_path"]][column][name] == value, (column, name)


def test_entries_are_as_pyiceberg_shows_them(pair: tuple[Table, PyTable]) -> None:
    ours, theirs = pair

    def rows(table: pa.Table) -> list[tuple[Any, ...]]:
        return sorted(
            (row["data_file"]["file_path"], row["status"], row["snapshot_id"])
            for row in table.to_pylist()
        )

    assert rows(ours.inspect.entries) == rows(theirs.inspect.entries())


def test_manifests_and_partitions_are_as_pyiceberg_shows_them(
    pair: tuple[Table, PyTable],
) -> None:
    ours, theirs = pair
    shared(ours.inspect.manifests, theirs.inspect.manifests(), by="path")
    mine, expected = ours.inspect.partitions, theirs.inspect.partitions()
    shared(mine, expected, by="partition")


def test_older_snapshots_of_older_versions_are_inspected_too(pair: tuple[Table, PyTable]) -> None:
    ours, theirs = pair
    for snapshot in theirs.snapshots():
        expected = theirs.inspect.files(snapshot_id=snapshot.snapshot_id)
        found = ours.inspect.at(snapshot.snapshot_id).files
        shared(found, expected, by="file_path", drop=_OTHERWISE)
    every = {row["file_path"] for row in theirs.inspect.all_files().to_pylist()}
    assert set(ours.inspect.all_files.column("file_path").to_pylist()) == every


# --- position deletes of v2 and v3 -----------------------------------------------------------


class FixedHead:
    """A head that never moves and keeps no logs."""

    def __init__(self, metadata: TableMetadata, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._state = State(
            version=1, metadata=metadata, snapshots={int(snapshot.snapshot_id): snapshot}
        )

    def load(self) -> State:
        return self._state

    def swap(self, base: State, draft: Draft) -> Outcome:
        raise NotImplementedError

    def landed(self, snapshot_id: int) -> State | None:
        return self._state

    def snapshot(self, snapshot_id: int) -> Snapshot:
        raise NotFound(str(snapshot_id))

    def snapshots(self) -> Iterable[Snapshot]:
        return (self._snapshot,)


def test_position_deletes_and_vectors_of_v3_are_files_of_their_own(tmp_path: Path) -> None:
    location = f"file://{tmp_path}"
    schema = Schema(NestedField(1, "id", LongType(), required=True))
    spec = PartitionSpec(spec_id=0)
    data = legacy_files.entry(3, path=f"{location}/d.parquet", record_count=10)
    deletes = [
        legacy_files.entry(
            3,
            path=f"{location}/p.parquet",
            content=DataFileContent.POSITION_DELETES,
            record_count=2,
        ),
        legacy_files.entry(
            3,
            path=f"{location}/v.puffin",
            content=DataFileContent.POSITION_DELETES,
            file_format=FileFormat.PUFFIN,
            record_count=3,
            referenced_data_file=f"{location}/d.parquet",
            content_offset=4,
            content_size_in_bytes=40,
        ),
        legacy_files.entry(
            3,
            path=f"{location}/e.parquet",
            content=DataFileContent.EQUALITY_DELETES,
            record_count=5,
            equality_ids=[1],
        ),
    ]
    manifests = []
    for name, entries, content in (
        ("data", [data], ManifestContent.DATA),
        ("deletes", deletes, ManifestContent.DELETES),
    ):
        path = tmp_path / f"{name}.avro"
        legacy_files.write_manifest(path, 3, entries, schema=schema, spec=spec)
        manifests.append(
            legacy_files.manifest_row(
                3,
                path=f"{location}/{name}.avro",
                content=content,
                added_files_count=len(entries),
                added_snapshot_id=7,
                first_row_id=0 if content is ManifestContent.DATA else None,
            )
        )
    legacy_files.write_list(tmp_path / "list.avro", 3, manifests)
    snapshot = Snapshot(
        snapshot_id=SnapshotId(7),
        sequence_number=1,
        timestamp_ms=1_000,
        manifest_list=f"{location}/list.avro",
        summary={"operation": "append"},
    )
    metadata = new_table(
        schema=from_pyiceberg(schema), location=location, table_uuid=uuid.uuid4(), now_ms=1
    )
    metadata = metadata.with_ref(MAIN, SnapshotRef(snapshot_id=SnapshotId(7)), now_ms=1_000)
    handle = TableHandle.of(
        "t", FixedHead(metadata, snapshot), LocalStorage(), decoder=LegacyDecoder()
    )
    inspect = Inspect(handle, snapshot)

    kinds = {row["file_path"].rpartition("/")[2]: row for row in inspect.delete_files.to_pylist()}
    assert {name: row["content"] for name, row in kinds.items()} == {
        "p.parquet": 1,
        "v.puffin": 1,
        "e.parquet": 2,
    }
    assert kinds["v.puffin"]["referenced_data_file"] == f"{location}/d.parquet"
    assert kinds["v.puffin"]["deletion_vector"]["cardinality"] == 3
    assert kinds["e.parquet"]["equality_ids"] == [1]
    assert inspect.data_files.column("record_count").to_pylist() == [10]
    (row,) = inspect.partitions.to_pylist()
    assert (row["record_count"], row["file_count"]) == (10, 1)
    assert (row["position_delete_record_count"], row["position_delete_file_count"]) == (5, 1)
    assert (row["dv_count"], row["equality_delete_record_count"]) == (1, 5)
    assert row["equality_delete_file_count"] == 1
    found = {leaf["content"]: leaf for leaf in inspect.manifests.to_pylist()}
    assert found[1]["added_delete_files_count"] == 3
    assert found[1]["added_data_files_count"] == 0
    assert found[0]["format_version"] == 0
    assert inspect.history.num_rows == 0
    assert inspect.snapshots.num_rows == 1
