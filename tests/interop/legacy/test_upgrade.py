"""Peer tables upgraded in place: the same rows at every snapshot, and commits that Java reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from frazil import InvalidInput, Table, connect
from frazil.format.entries.fields import ContentType
from frazil.legacy.upgrade.carried_deletes import with_equality_deletes
from frazil.scan.tasks import TaskReader
from tests.interop.legacy.test_read import READABLE
from tests.interop.peers.readers import read_manifest_with_java, read_with_java
from tests.interop.peers.tables import PeerTable, local_path
from tests.support.java import JavaOracle
from tests.support.legacy_tables import delete_row
from tests.support.upgrading import entered, moved_metadata
from tests.support.values import canonical_rows

pytestmark = [pytest.mark.java, pytest.mark.peers]

Tables = dict[str, PeerTable]
Rows = list[Any]


def _rows(table: Table) -> Rows:
    return canonical_rows(table.scan().to_arrow())


def _upgraded(peer: PeerTable, folder: Path) -> Table:
    table = entered(peer, folder)
    table.upgrade()
    return table


@pytest.mark.parametrize("name", READABLE)
def test_an_upgraded_table_has_the_same_rows_at_every_snapshot(
    peer_tables: Tables, tmp_path: Path, name: str
) -> None:
    peer = peer_tables[name]
    table = entered(peer, tmp_path)
    planned = table.upgrade(dry_run=True)
    done = table.upgrade()
    assert (planned.from_version, planned.snapshots) == (peer.format_version, len(peer.snapshots))
    assert done.manifests == planned.manifests
    assert table.metadata.format_version == 4
    assert _rows(table) == canonical_rows(peer.rows())
    for snapshot in peer.snapshots:
        rows = table.scan(as_of=snapshot.id).to_arrow()
        assert canonical_rows(rows) == canonical_rows(peer.rows(snapshot.id))


@pytest.mark.parametrize("name", READABLE)
def test_commits_after_the_upgrade_change_only_what_they_say(
    java: JavaOracle, peer_tables: Tables, tmp_path: Path, name: str
) -> None:
    table = _upgraded(peer_tables[name], tmp_path)
    table.set_properties({"write.format-revision": "1.12"})
    before = _rows(table)
    if not before:
        return
    some = table.scan(limit=2).to_arrow()
    table.append(some)
    appended = _rows(table)
    assert Counter(map(repr, appended)) == Counter(map(repr, before + canonical_rows(some)))
    _check_root(java, table)
    for of_file in (0, -1):
        rows = _rows(table)
        delete_row(table, of_file=of_file)
        left = Counter(map(repr, _rows(table)))
        assert sum(left.values()) == len(rows) - 1
        assert not left - Counter(map(repr, rows))
        _check_root(java, table)
    after = _rows(table)
    table.rewrite_manifests()
    assert _rows(table) == after
    reader = table._handle.reader()
    leaves = reader.tree(table.current_snapshot()).leaves()
    kept = with_equality_deletes(reader, leaves)
    assert all(leaf.format_version == 4 for leaf in leaves if leaf not in kept)
    _check_root(java, table)
    assert _rows(table) == after


def _check_root(java: JavaOracle, table: Table) -> None:
    """Java's v4 reader sees the entries of the root as Frazil does, with row ids for all data."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.root_manifest is not None
    seen = read_manifest_with_java(
        java,
        local_path(f"{table.location}/{snapshot.root_manifest}"),
        schema=table.schema,
        specs=table.metadata.partition_specs,
        table_location=table.location,
        snapshot_id=int(snapshot.snapshot_id),
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
    )
    root = table._handle.reader().tree(snapshot).root
    keys = ("status", "snapshot_id", "sequence_number", "file_sequence_number", "first_row_id")
    theirs = [
        (
            entry["content_type"],
            entry["record_count"],
            *(entry["tracking"].get(key) for key in keys[:4]),
            None if entry["content_type"] in (2, 4) else entry["tracking"].get("first_row_id"),
        )
        for entry in seen
    ]
    ours = zip(
        root.pylist("content_type"),
        root.pylist("record_count"),
        *(root.pylist(f"tracking.{key}") for key in keys),
        strict=True,
    )
    assert theirs == [entry for entry in ours if entry[1] > 0]
    data = (int(ContentType.DATA), int(ContentType.DATA_MANIFEST))
    assert all(entry[-1] is not None for entry in theirs if entry[0] in data)


@pytest.mark.parametrize("name", ["v2_mor", "v3_mor", "v4_mor", "java_equality_v3"])
def test_changes_after_the_upgrade_are_those_of_the_commits_alone(
    peer_tables: Tables, tmp_path: Path, name: str
) -> None:
    table = _upgraded(peer_tables[name], tmp_path)
    old = table.current_snapshot()
    assert old is not None
    before = {row["id"]: row for row in table.scan().to_pylist()}
    delete_row(table, of_file=0)
    delete_row(table, of_file=-1)
    gone = before.keys() - {row["id"] for row in table.scan().to_pylist()}
    changes = table.changes(since=int(old.snapshot_id)).to_pylist()
    assert Counter(change["_change_type"] for change in changes) == {"delete": 2}
    assert {change["id"] for change in changes} >= gone
    table.rewrite_manifests()
    assert len(table.changes(since=int(old.snapshot_id)).to_pylist()) == 2


@pytest.mark.parametrize("name", ["v2_mor", "v2_mor_partition_granularity", "v3_mor"])
def test_rows_deleted_by_position_alone_take_old_deletes_over(
    java: JavaOracle, peer_tables: Tables, tmp_path: Path, name: str
) -> None:
    table = _upgraded(peer_tables[name], tmp_path)
    before = _rows(table)
    delta = table.row_delta()
    for task in [task for task in table.scan().tasks() if task.deletes]:
        reading = table.scan(columns=["_pos"])._reading()
        batches = list(TaskReader(reading).read(task))
        if batches and batches[0].num_rows:
            delta.delete_rows(task.source.path, [batches[0].column(0)[0].as_py()])
    delta.commit()
    after = _rows(table)
    assert 0 < len(before) - len(after) <= len(before)
    assert not Counter(map(repr, after)) - Counter(map(repr, before))
    location = table.publish(format_version=3).metadata_location
    assert canonical_rows(read_with_java(java, location)) == after
    table.rewrite_manifests()
    assert _rows(table) == after


@pytest.mark.parametrize("name", ["v4_mor", "v4_evolved", "v3_to_v4"])
def test_an_interim_table_is_upgraded_when_it_is_registered(
    peer_tables: Tables, tmp_path: Path, name: str
) -> None:
    peer = peer_tables[name]
    location = moved_metadata(peer.metadata_location, tmp_path / "table")
    table = connect(tmp_path / "catalog").register_table("peers.table", location)
    assert _rows(table) == canonical_rows(peer.rows())
    partitioned = any(spec.fields for spec in table.metadata.partition_specs)
    assert bool(table.metadata.expressions) == partitioned
    delete_row(table)
    table.rewrite_manifests()
    assert len(_rows(table)) == peer.rows().num_rows - 1
    with pytest.raises(InvalidInput, match="already has format-version 4"):
        table.upgrade()


@pytest.mark.parametrize("name", ["v2_many_manifests", "v1_partitioned"])
def test_row_ids_are_given_once_and_stay(peer_tables: Tables, tmp_path: Path, name: str) -> None:
    table = _upgraded(peer_tables[name], tmp_path)

    def ids() -> dict[int, int]:
        rows = table.scan(columns=["id", "_row_id"]).to_pylist()
        return {row["_row_id"]: row["id"] for row in rows}

    count = len(_rows(table))
    delete_row(table)
    first = ids()
    assert len(first) == count - 1
    assert None not in first
    table.append(table.scan(limit=1).to_arrow())
    table.rewrite_manifests()
    delete_row(table, of_file=0)
    later = ids()
    shared = first.keys() & later.keys()
    assert len(shared) >= count - 2
    assert all(first[row_id] == later[row_id] for row_id in shared)
