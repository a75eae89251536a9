"""Changes of files and rows: every step, and the difference in the end."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import frazil
from frazil.data.metadata_columns import LINEAGE, with_columns
from frazil.data.write.write_files import write_rows
from frazil.errors import InvalidInput, NotFound
from frazil.format.entries.batch import EntryBatch
from frazil.table import Table
from tests.support.history import (
    SMALL,
    catalog_in,
    new_table,
    replay,
    rows,
    snapshot_id,
    state_of,
    told,
)
from tests.support.rewrites import rewrite_files


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return new_table(tmp_path)


def test_appends_are_inserts_in_the_order_of_their_snapshots(table: Table) -> None:
    table.append(rows(1, 2))
    table.append(rows(3))
    feed = table.changes().to_arrow()
    assert feed.column_names == [
        "id",
        "v",
        "_row_id",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
        "_commit_timestamp",
    ]
    assert feed.column("id").to_pylist() == [1, 2, 3]
    assert feed.column("_row_id").to_pylist() == [0, 1, 2]
    assert feed.column("_change_ordinal").to_pylist() == [0, 0, 1]
    assert set(feed.column("_change_type").to_pylist()) == {"insert"}
    first, second = table.snapshots()
    ids = [int(first.snapshot_id)] * 2 + [int(second.snapshot_id)]
    assert feed.column("_commit_snapshot_id").to_pylist() == ids
    moment = datetime.fromtimestamp(second.timestamp_ms / 1000, UTC)
    assert feed.column("_commit_timestamp").to_pylist()[2] == moment


def test_since_is_left_out_and_until_is_included(table: Table) -> None:
    for number in range(4):
        table.append(rows(number))
    first, second, third, _ = table.snapshots()
    feed = table.changes(since=first.snapshot_id, until=third.snapshot_id)
    assert [s.snapshot_id for s in feed.snapshots] == [second.snapshot_id, third.snapshot_id]
    assert told(feed) == [(0, "insert", "x", 1), (1, "insert", "x", 2)]


def test_deleted_rows_come_with_their_values(table: Table) -> None:
    table.append(rows(1, 2, 3))
    start = snapshot_id(table)
    table.delete("id = 2")
    assert told(table.changes(since=start)) == [(0, "delete", "x", 2)]
    table.delete("id = 1")
    assert told(table.changes(since=start)) == [(0, "delete", "x", 2), (1, "delete", "x", 1)]


def test_rows_deleted_before_are_not_deleted_again_with_their_file(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    start = snapshot_id(table)
    table.delete("id > 0")
    assert told(table.changes(since=start)) == [(0, "delete", "x", 1), (0, "delete", "x", 3)]


def test_updates_are_pairs_with_one_row_id(table: Table) -> None:
    table.append(rows(1, 2, 3))
    start = snapshot_id(table)
    table.update({"v": "y"}, where="id = 2")
    feed = table.changes(since=start).to_pylist()
    assert told(feed) == [(0, "update_postimage", "y", 2), (0, "update_preimage", "x", 2)]
    assert [row["_row_id"] for row in feed] == [1, 1]


def test_updates_unpaired_are_a_delete_and_an_insert(table: Table) -> None:
    table.append(rows(1))
    start = snapshot_id(table)
    table.update({"v": "y"}, where="id = 1")
    feed = table.changes(since=start, pair_updates=False)
    assert told(feed) == [(0, "delete", "x", 1), (0, "insert", "y", 1)]


def test_one_snapshot_can_insert_update_and_delete(table: Table) -> None:
    table.append(rows(1, 2, 3))
    start = snapshot_id(table)
    with table.transaction() as tx:
        tx.append(rows(4))
        tx.delete("id = 1")
        tx.update({"v": "y"}, where="id = 2")
    assert told(table.changes(since=start)) == [
        (0, "delete", "x", 1),
        (0, "insert", "x", 4),
        (0, "update_postimage", "y", 2),
        (0, "update_preimage", "x", 2),
    ]


def test_equality_deletes_take_the_rows_they_match(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.append(rows(2, 9))
    start = snapshot_id(table)
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(pa.table({"id": [2]}), on=["id"]).commit()
    table.append(rows(2, v="later"))
    assert told(table.changes(since=start)) == [
        (0, "delete", "x", 2),
        (0, "delete", "x", 2),
        (1, "insert", "later", 2),
    ]


def test_rows_gone_by_equality_are_not_deleted_again(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(pa.table({"id": [2]}), on=["id"]).commit()
    start = snapshot_id(table)
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(pa.table({"id": [2, 3]}), on=["id"]).commit()
    table.delete("id > 0")
    assert told(table.changes(since=start)) == [(0, "delete", "x", 3), (1, "delete", "x", 1)]


def test_flushes_and_rewritten_leaves_change_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties=SMALL)
    for number in range(12):
        table.append(rows(number))
    start = snapshot_id(table)
    table.compact_metadata()
    table.append(rows(12))
    table.rewrite_manifests()
    feed = table.changes(since=start)
    assert told(feed) == [(1, "insert", "x", 12)]
    assert told(table.changes()) == [(n, "insert", "x", n) for n in range(12)] + [
        (13, "insert", "x", 12)
    ]


def _copied(table: Table) -> tuple[list[str], EntryBatch]:
    """The table's data files, and one new file with the same rows, row lineage and all."""
    metadata = table.metadata
    schema = with_columns(metadata.schema(), LINEAGE)
    scan = table.scan(columns=[field.name for field in schema.fields])
    entries = write_rows(
        scan.to_batches(),
        storage=table._handle.storage,
        location=table.location,
        schema=schema,
        spec=metadata.spec(),
        write_id=uuid.uuid4(),
    )
    return scan.plan().files.pylist("location"), entries


def test_rewritten_data_files_change_nothing(table: Table) -> None:
    table.append(rows(1, 2))
    table.append(rows(3))
    start = snapshot_id(table)
    table.delete("id = 2")
    old, new = _copied(table)
    rewrite_files(table, old, new)
    table.update({"v": "y"}, where="id = 1")
    assert told(table.changes(since=start)) == [
        (0, "delete", "x", 2),
        (2, "update_postimage", "y", 1),
        (2, "update_preimage", "x", 1),
    ]
    assert told(table.changes(since=start, collapse=True)) == [
        (0, "delete", "x", 2),
        (0, "update_postimage", "y", 1),
        (0, "update_preimage", "x", 1),
    ]
    replaced = table.changes(since=start).files().filter(pc.field("operation") == "replace")
    assert sorted(replaced.column("change").to_pylist()) == ["added", "replaced", "replaced"]


def test_rows_that_a_commit_only_copies_are_no_changes(table: Table) -> None:
    """Copy on write: a file is swapped for one with the same rows and one more."""
    table.append(rows(1, 2))
    start = snapshot_id(table)
    old, new = _copied(table)
    delta = table.row_delta()._add_entries(new)
    for path in old:
        delta.remove_file(path)
    delta.commit()
    assert table.changes(since=start).to_arrow().num_rows == 0
    assert table.changes(since=start, pair_updates=False).to_arrow().num_rows == 0
    assert table.scan().count() == 2


def test_net_changes_leave_out_what_came_and_went(table: Table) -> None:
    table.append(rows(1, 2, 3))
    start = snapshot_id(table)
    table.append(rows(4, 5))
    table.delete("id = 4")
    table.delete("id = 1")
    table.update({"v": "y"}, where="id = 2")
    table.update({"v": "z"}, where="id = 2")
    table.update({"v": "y"}, where="id = 3")
    table.delete("id = 3")
    assert told(table.changes(since=start, collapse=True)) == [
        (0, "delete", "x", 1),
        (0, "delete", "x", 3),
        (0, "insert", "x", 5),
        (0, "update_postimage", "z", 2),
        (0, "update_preimage", "x", 2),
    ]


def test_net_changes_from_the_beginning_are_the_rows_themselves(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    feed = table.changes(collapse=True)
    assert told(feed) == [(0, "insert", "x", 1), (0, "insert", "x", 3)]


def test_net_changes_of_nothing_are_nothing(table: Table) -> None:
    table.append(rows(1))
    feed = table.changes(since=snapshot_id(table), collapse=True)
    assert feed.to_arrow().num_rows == 0
    assert feed.snapshots == ()


def test_an_empty_table_has_no_changes(table: Table) -> None:
    assert table.changes().to_arrow().num_rows == 0
    assert table.changes().files().num_rows == 0


def test_a_branch_has_its_own_changes(table: Table) -> None:
    table.append(rows(1))
    table.tag("start")
    audit = table.branch("audit", create=True)
    audit.append(rows(2))
    table.refresh()
    table.append(rows(3))
    assert told(audit.refresh().changes(since="start")) == [(0, "insert", "x", 2)]
    assert told(table.changes(since="start", until="audit")) == [(0, "insert", "x", 2)]
    assert told(table.changes(since="start")) == [(0, "insert", "x", 3)]


def test_a_snapshot_that_is_no_ancestor_is_refused(table: Table) -> None:
    table.append(rows(1))
    audit = table.branch("audit", create=True)
    audit.append(rows(2))
    table.refresh()
    table.append(rows(3))
    with pytest.raises(InvalidInput, match="not in its history"):
        table.changes(since="audit")
    with pytest.raises(NotFound):
        table.changes(since=12345)


def test_times_choose_snapshots(table: Table) -> None:
    table.append(rows(1))
    first = table.current_snapshot()
    assert first is not None
    feed = table.changes(since=datetime(2000, 1, 1, tzinfo=UTC))
    assert told(feed) == [(0, "insert", "x", 1)]
    assert told(table.changes(since="2000-01-01")) == [(0, "insert", "x", 1)]
    now = datetime.fromtimestamp(first.timestamp_ms / 1000, UTC)
    assert table.changes(since=now).snapshots == ()


def test_expired_history_counts_as_inserted_whole(table: Table) -> None:
    table.append(rows(1))
    table.append(rows(2))
    table.append(rows(3))
    table.delete("id = 1")
    oldest, second, third, _ = (int(s.snapshot_id) for s in table.snapshots())
    table.expire_snapshots(snapshot_ids=[oldest, second])
    feed = table.changes()
    assert int(feed.snapshots[0].snapshot_id) == third
    assert told(feed) == [
        (0, "insert", "x", 1),
        (0, "insert", "x", 2),
        (0, "insert", "x", 3),
        (1, "delete", "x", 1),
    ]
    assert feed.files().column("change").to_pylist() == ["added", "added", "added", "deleted"]
    assert told(table.changes(collapse=True)) == [(0, "insert", "x", 2), (0, "insert", "x", 3)]


def test_old_rows_are_shown_in_the_schema_at_the_end(table: Table) -> None:
    table.append(rows(1))
    first = snapshot_id(table)
    with table.evolve_schema() as change:
        change.add_column("n", "int")
        change.rename_column("v", "w")
    table.append(pa.table({"id": [2], "w": ["y"], "n": pa.array([7], pa.int32())}))
    feed = table.changes().to_arrow()
    assert feed.column("w").to_pylist() == ["x", "y"]
    assert feed.column("n").to_pylist() == [None, 7]
    assert table.changes(until=first).to_arrow().column_names[:2] == ["id", "v"]


def test_columns_can_be_chosen(table: Table) -> None:
    table.append(rows(1))
    feed = table.changes(columns=["v"]).to_arrow()
    assert feed.column_names[:2] == ["v", "_row_id"]
    with pytest.raises(InvalidInput, match="unknown column"):
        table.changes(columns=["nothing"])


def test_a_column_named_like_one_of_the_feed_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("_change_type", pa.string())])
    table = catalog_in(tmp_path).create_table("shop.odd", schema)
    table.append(pa.table({"id": [1], "_change_type": ["a"]}, schema=schema))
    with pytest.raises(InvalidInput, match="_change_type"):
        table.changes().to_arrow()
    assert table.changes(columns=["id"]).to_arrow().column("id").to_pylist() == [1]
    assert table.changes().files().num_rows == 1


def test_files_tell_what_happened_to_them(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    table.delete("id = 3")
    table.append(rows(4))
    table.delete("id = 1")
    found = table.changes().files(positions=True)
    short = found.select(["change_ordinal", "operation", "change", "rows_added", "rows_removed"])
    assert [tuple(row.values()) for row in short.to_pylist()] == [
        (0, "append", "added", 3, None),
        (1, "delete", "modified", None, 1),
        (2, "delete", "modified", None, 1),
        (3, "append", "added", 1, None),
        (4, "delete", "deleted", None, 1),
    ]
    assert found.column("positions_removed").to_pylist() == [None, [1], [2], None, None]
    assert set(found.column("content").to_pylist()) == {"data"}
    assert all(path.startswith("file:///") for path in found.column("path").to_pylist())


def test_equality_delete_files_are_listed(table: Table) -> None:
    table.append(rows(1))
    start = snapshot_id(table)
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(pa.table({"id": [1]}), on=["id"]).commit()
    found = table.changes(since=start).files()
    assert found.column("content").to_pylist() == ["equality-deletes"]
    assert found.column("change").to_pylist() == ["added"]


def test_the_feed_streams_and_converts(table: Table) -> None:
    table.append(rows(1, 2))
    feed = table.changes()
    assert sum(batch.num_rows for batch in feed.to_batches()) == 2
    assert feed.to_reader().read_all().num_rows == 2
    assert list(feed.to_pandas()["id"]) == [1, 2]
    assert feed.to_polars()["id"].to_list() == [1, 2]
    assert pa.table(feed).num_rows == 2
    assert feed.to_arrow().schema == feed.schema


@pytest.mark.parametrize("seed", range(4))
def test_any_range_replays_to_the_rows_at_its_end(tmp_path: Path, seed: int) -> None:
    """Random commits; a feed applied to the rows at its start gives those at its end."""
    chance = random.Random(seed)
    table = frazil.connect(tmp_path).create_table(
        "a.b",
        pa.schema([("id", pa.int64()), ("v", pa.string())]),
        partition_by=["bucket[3](id)"] if seed % 2 else None,
        properties=SMALL,
    )
    top = 0
    for _ in range(16):
        pick = chance.randrange(top + 1)
        match chance.choice("aaaaddduuexwco"):
            case "a":
                table.append(rows(*range(top, top + 3)))
                top += 3
            case "d":
                table.delete(f"id = {pick}")
            case "u":
                table.update({"v": "y"}, where=f"id = {pick}")
            case "e":
                keys = pa.table({"id": [pick]})
                table.set_properties({"write.equality-deletes.enabled": "true"})
                table.row_delta().add_equality_deletes(keys, on=["id"]).commit()
            case "x":
                table.delete(f"id >= {pick} and id < {pick + 7}")
            case "w":
                table.rewrite_manifests()
            case "c":
                table.compact_metadata()
            case "o":
                table.overwrite(rows(top, top + 1), where=f"id >= {pick}")
                top += 2
    snapshots = table.snapshots()
    states = {int(s.snapshot_id): state_of(table, s.snapshot_id) for s in snapshots}
    for _ in range(5):
        first, last = sorted(chance.sample(range(len(snapshots) + 1), 2))
        since = None if first == 0 else int(snapshots[first - 1].snapshot_id)
        until = int(snapshots[last - 1].snapshot_id)
        start = {} if since is None else states[since]
        assert replay(start, table.changes(since=since, until=until)) == states[until]
        net = table.changes(since=since, until=until, collapse=True).to_pylist()
        assert replay(start, net) == states[until]
        for row in net:
            was, stays = row["_row_id"] in start, row["_row_id"] in states[until]
            expected = {"insert": (False, True), "delete": (True, False)}
            assert (was, stays) == expected.get(row["_change_type"], (True, True))
