"""A table's directory read from storage, with everything that can be missing from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.errors import FormatError, NotFound
from frazil.paimon.read import overview
from frazil.paimon.read.data_types import parse_type
from frazil.paimon.read.paimon_table import PaimonTable
from tests.unit.paimon.encode import binary_row, entry, statistics
from tests.unit.paimon.place import Place, snapshot_json

INT = parse_type("INT")
PARTITION_1 = binary_row([INT], [1])
PARTITION_2 = binary_row([INT], [2])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path / "t")
    made.schema(("p", "INT"), ("v", "INT"), partitionKeys=["p"])
    bounds = statistics([INT, INT], [1, 5], [1, 9], [0, 3])
    made.snapshot(
        1,
        [
            entry("a.parquet", partition=PARTITION_1, value_stats=bounds),
            entry("b.parquet", partition=PARTITION_2, bucket=3),
        ],
    )
    made.snapshot(2, [entry("c.parquet", partition=PARTITION_1, external_path="s3://x/c.parquet")])
    return made


def opened(place: Place) -> PaimonTable:
    return PaimonTable.open(str(place.root))


def test_hints_are_not_needed_and_not_believed(place: Place) -> None:
    place.write("snapshot/LATEST", b"99")
    place.write("snapshot/EARLIEST", b"-1")
    assert opened(place).snapshot_ids() == (1, 2)
    assert opened(place).snapshot().id == 2


def test_files_lie_where_partition_and_bucket_say_or_at_their_external_path(place: Place) -> None:
    table = opened(place)
    root = str(place.root)
    assert table.state(1).files["location"].to_pylist() == [
        f"{root}/p=1/bucket-0/a.parquet",
        f"{root}/p=2/bucket-3/b.parquet",
    ]
    assert table.state(2).files["location"].to_pylist() == ["s3://x/c.parquet"]


def test_inspection_shows_files_with_decoded_partitions_and_bounds(place: Place) -> None:
    files = overview.files(opened(place), 1)
    assert files.select(["file_name", "partition.p", "deleted_rows"]).to_pylist() == [
        {"file_name": "a.parquet", "partition.p": 1, "deleted_rows": 0},
        {"file_name": "b.parquet", "partition.p": 2, "deleted_rows": 0},
    ]
    assert files["v.lower_bound"].to_pylist() == [5, None]
    assert files["v.null_value_count"].to_pylist() == [3, None]
    parts = overview.partitions(opened(place), 1).sort_by("p").to_pylist()
    assert [(row["p"], row["file_count"], row["row_count"]) for row in parts] == [
        (1, 1, 10),
        (2, 1, 10),
    ]


def test_inspection_shows_snapshots_schemas_tags_and_branches(place: Place) -> None:
    place.write("tag/tag-v1", snapshot_json(1))
    place.write("branch/branch-dev/schema/schema-0", (place.root / "schema/schema-0").read_bytes())
    place.write("branch/branch-dev/snapshot/snapshot-1", snapshot_json(1))
    table = opened(place)
    assert overview.snapshots(table)["snapshot_id"].to_pylist() == [1, 2]
    assert overview.schemas(table).select(["name", "type", "is_partition_key"]).to_pylist() == [
        {"name": "p", "type": "INT", "is_partition_key": True},
        {"name": "v", "type": "INT", "is_partition_key": False},
    ]
    assert overview.tags(table).select(["name", "snapshot_id"]).to_pylist() == [
        {"name": "v1", "snapshot_id": 1}
    ]
    assert overview.branches(table).to_pylist() == [
        {"name": "main", "latest_snapshot_id": 2, "latest_schema_id": 0},
        {"name": "dev", "latest_snapshot_id": 1, "latest_schema_id": 0},
    ]
    assert overview.manifests(table, 1)["file_name"].to_pylist() == ["manifest-1"]
    assert overview.index_files(table, 1).num_rows == 0


def test_a_branch_has_its_own_snapshots_and_the_tables_files(place: Place) -> None:
    place.write("branch/branch-dev/schema/schema-0", (place.root / "schema/schema-0").read_bytes())
    place.write("branch/branch-dev/snapshot/snapshot-1", snapshot_json(1))
    branch = opened(place).on_branch("dev")
    assert branch.snapshot_ids() == (1,)
    assert branch.state().files.num_rows == 2


def test_no_table_no_snapshot_no_branch_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no Paimon table"):
        PaimonTable.open(str(tmp_path))
    empty = Place(tmp_path / "e")
    empty.schema(("v", "INT"))
    with pytest.raises(NotFound, match="no snapshot yet"):
        opened(empty).snapshot()
    with pytest.raises(NotFound, match="no Paimon table"):
        opened(empty).on_branch("nope")


@pytest.mark.parametrize("gone", ["manifest-1", "manifest-list-1-1"])
def test_a_manifest_that_expired_meanwhile_is_named(place: Place, gone: str) -> None:
    (place.root / "manifest" / gone).unlink()
    with pytest.raises(NotFound, match=rf"{gone}: a file of snapshot 1 is gone.*newer"):
        opened(place).state(1)


def test_a_damaged_file_is_named(place: Place) -> None:
    place.write("manifest/manifest-1", b"Obj\x01 damaged")
    with pytest.raises(FormatError, match=r"manifest/manifest-1"):
        opened(place).state(1)
    place.write("snapshot/snapshot-2", b"{}")
    with pytest.raises(FormatError, match=r"snapshot/snapshot-2"):
        opened(place).snapshot(2)
    place.write("schema/schema-0", b"{}")
    with pytest.raises(FormatError, match=r"schema/schema-0"):
        opened(place).schema(0)
