"""What upgrading, and the commits and publications after it, read and write of a large table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from frazil import Table, connect
from frazil.storage import StorageCall
from tests.support.big_legacy import ROWS, big_table

MANIFESTS, FILES = 400, 1_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = tmp_path_factory.mktemp("big")
    location = big_table(folder / "table", manifests=MANIFESTS, files=FILES)
    return connect(folder / "catalog").register_table("big.table", location)


def _kinds(calls: list[StorageCall], verb: str) -> list[str]:
    """What files the calls were about: a manifest, the list, a root, JSON or data."""
    names = [Path(call.path).name for call in calls if call.verb == verb]
    return sorted(
        "json"
        if name.endswith(".json")
        else "list"
        if name.startswith("snap-")
        else "root"
        if name.startswith("root-")
        else "manifest"
        if name.endswith(".avro")
        else name.rpartition(".")[2]
        for name in names
    )


def test_an_upgrade_reads_no_manifest_and_writes_one_json_file(table: Table) -> None:
    with table._handle.storage.recording() as calls:
        report = table.upgrade()
    assert (report.manifests, report.data_files) == (MANIFESTS, MANIFESTS * FILES)
    assert set(_kinds(calls, "read")) == {"json", "list"}
    assert _kinds(calls, "head") == ["manifest"] * MANIFESTS
    assert _kinds(calls, "write") == ["json"]
    assert _kinds(calls, "delete") == []


def test_the_first_commit_writes_one_root_and_reads_no_manifest(table: Table) -> None:
    if table.metadata.format_version < 4:
        table.upgrade()
    table._handle.context.cache.clear()
    rows = pa.table({"id": pa.array([-1], pa.int64()), "name": ["new"]})
    with table._handle.storage.recording() as calls:
        table.append(rows)
    assert _kinds(calls, "read") == ["list"]
    assert _kinds(calls, "write") == ["parquet", "root"]
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.added_rows == MANIFESTS * FILES * ROWS + 1
    tree = table._handle.reader().tree(snapshot)
    assert len(tree.leaves()) == MANIFESTS
    assert all(leaf.first_row_id is not None for leaf in tree.leaves())


def test_a_small_commit_is_published_with_the_manifests_that_it_wrote(tmp_path: Path) -> None:
    manifests = 40
    location = big_table(tmp_path / "table", manifests=manifests, files=100)
    table = connect(tmp_path / "catalog").register_table("big.table", location)
    table.upgrade()
    table.append(pa.table({"id": pa.array([-2], pa.int64()), "name": ["new"]}))
    first = table.publish()
    assert (first.manifests_written, first.manifests_reused) == (1, manifests)
    table.append(pa.table({"id": pa.array([-3], pa.int64()), "name": ["new"]}))
    with table._handle.storage.recording() as calls:
        done = table.publish()
    # The four manifests that the commit converted are published as one.
    assert (done.manifests_written, done.manifests_reused) == (2, manifests - 4)
    assert _kinds(calls, "read").count("manifest") == 0
    assert _kinds(calls, "write") == ["json", "json", "list", "manifest", "manifest", "text"]


def test_commits_convert_a_few_old_manifests_each(tmp_path: Path) -> None:
    location = big_table(tmp_path / "table", manifests=10, files=100)
    table = connect(tmp_path / "catalog").register_table("big.table", location)
    table.upgrade()
    before = table.scan().plan().files.num_rows
    left, read = [], []
    for number in range(5):
        table._handle.context.cache.clear()
        with table._handle.storage.recording() as calls:
            table.append(pa.table({"id": pa.array([-number], pa.int64()), "name": ["new"]}))
        read.append(_kinds(calls, "read").count("manifest"))
        leaves = table._handle.reader().tree(table.current_snapshot()).leaves()
        left.append(sum(leaf.format_version == 0 for leaf in leaves))
    assert left == [10, 6, 2, 0, 0]
    assert read == [0, 4, 4, 2, 0]
    assert table.scan().plan().files.num_rows == before + 5
