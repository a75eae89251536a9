"""What an adopted table is: names, row ids, changes, filters; and taking over again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import frazil
from frazil.commit.change import Change
from frazil.errors import InvalidInput, NotFound, Unsupported
from frazil.format.metadata.metadata import RefKind
from frazil.paimon import adopt, dry_run
from frazil.tree.changes import changes_of
from tests.interop.paimon.peers import PeerTables
from tests.interop.paimon.reading import fingerprint, handle_of, rows_of
from tests.interop.paimon.text_form import row_lines
from tests.support.memory_catalog import MemoryCatalog

pytestmark = [pytest.mark.java, pytest.mark.peers]


def copied(peer: PeerTables, name: str, to: Path) -> Path:
    target = to / "source" / name
    shutil.copytree(peer.table(name), target)
    return target


def rewind(table: Path, snapshot_id: int) -> dict[int, bytes]:
    """Take the snapshots after one away, as if they were not committed yet."""
    later = {}
    for file in (table / "snapshot").glob("snapshot-*"):
        number = int(file.name.split("-")[1])
        if number > snapshot_id:
            later[number] = file.read_bytes()
            file.unlink()
    return later


def commit(table: Path, later: dict[int, bytes], snapshot_id: int) -> None:
    (table / "snapshot" / f"snapshot-{snapshot_id}").write_bytes(later[snapshot_id])


def test_tags_and_branches_come_along(java_paimon: PeerTables, catalog: MemoryCatalog) -> None:
    adopted = adopt(catalog, "db.t", java_paimon.table("append_partitions"))
    assert (adopted.tags, adopted.branches, adopted.notes) == (("first",), ("side",), ())
    handle = handle_of(catalog, "db.t")
    assert handle.metadata.refs["first"].kind is RefKind.TAG
    name = "append_partitions"
    assert rows_of(handle, handle.tip("first")) == java_paimon.rows(name, 1)
    assert rows_of(handle, handle.tip("side")) == java_paimon.rows(name, 2, "side")
    assert rows_of(handle, handle.tip()) == java_paimon.rows(name, 3)


def test_without_history_only_the_latest_and_the_tagged_snapshots_come(
    java_paimon: PeerTables, catalog: MemoryCatalog
) -> None:
    one = adopt(catalog, "db.one", java_paimon.table("append_dv32"))
    assert [s.paimon_snapshot_id for s in one.snapshots] == [5]
    bare = adopt(
        catalog, "db.bare", java_paimon.table("append_partitions"), tags=False, branches=False
    )
    assert [(s.branch, s.paimon_snapshot_id) for s in bare.snapshots] == [("main", 3)]
    assert set(handle_of(catalog, "db.bare").metadata.refs) == {"main"}


def test_an_older_snapshot_can_be_chosen(java_paimon: PeerTables, catalog: MemoryCatalog) -> None:
    adopt(catalog, "db.t", java_paimon.table("append_dv32"), snapshot_id=3)
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == java_paimon.rows("append_dv32", 3)
    with pytest.raises(NotFound, match="there are 1 to 5"):
        adopt(catalog, "db.u", java_paimon.table("append_dv32"), snapshot_id=9)


def test_times_and_origin_are_kept(java_paimon: PeerTables, catalog: MemoryCatalog) -> None:
    source = Path(java_paimon.table("append_dv64"))
    adopted = adopt(catalog, "db.t", str(source), history=True)
    handle = handle_of(catalog, "db.t")
    for taken in adopted.snapshots:
        snapshot = handle.snapshot(taken.snapshot_id)
        number = taken.paimon_snapshot_id
        paimon = json.loads((source / "snapshot" / f"snapshot-{number}").read_text())
        assert snapshot.timestamp_ms == paimon["timeMillis"]
        assert snapshot.summary["paimon.snapshot-id"] == str(number)
    assert handle.metadata.properties["paimon.location"] == str(source)


def test_a_delete_shows_as_rows_removed_and_a_compaction_as_no_change(
    java_paimon: PeerTables, catalog: MemoryCatalog
) -> None:
    vectors = adopt(catalog, "db.v", java_paimon.table("append_dv32"), history=True)
    handle = handle_of(catalog, "db.v")
    third = handle.snapshot(vectors.snapshots[2].snapshot_id)
    assert third.operation == "delete"
    assert changes_of(handle.reader(), third).added.num_rows == 0
    buckets = adopt(catalog, "db.b", java_paimon.table("append_bucketed"), history=True)
    compacted = handle_of(catalog, "db.b").snapshot(buckets.snapshots[3].snapshot_id)
    assert compacted.operation == "replace"


def test_row_ids_of_row_tracking_tables_are_paimons(
    java_paimon: PeerTables, catalog: MemoryCatalog
) -> None:
    adopt(catalog, "db.t", java_paimon.table("append_rowtracking"))
    handle = handle_of(catalog, "db.t")
    reader = handle.reader()
    found = [
        pair
        for batch in reader.all_live(reader.tree(handle.tip()))
        for pair in zip(
            batch.pylist("tracking.first_row_id"), batch.pylist("record_count"), strict=True
        )
    ]
    assert sorted(found) == [(0, 2), (2, 1)]
    assert handle.metadata.next_row_id >= 1 << 48


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("s = 'plain'", ['"v": 1', '"v": 6', '"v": 8']),
        ("s is null", ['"v": 2']),
        ("s = ''", ['"v": 3']),
        ("d < '1970-01-01'", ['"v": 4']),
        ("v >= 5 and b = true", ['"v": 5', '"v": 6']),
        ("v > 100", []),
    ],
)
def test_filters_prune_and_find(
    where: str, expected: list[str], java_paimon: PeerTables, catalog: MemoryCatalog
) -> None:
    adopt(catalog, "db.t", java_paimon.table("append_partitions"))
    handle = handle_of(catalog, "db.t")
    found = rows_of(handle, handle.tip(), where=where)
    assert [line[1:].split(",")[0] for line in found] == expected


def test_columns_of_foreign_types_can_be_left_out(
    java_paimon: PeerTables, catalog: MemoryCatalog
) -> None:
    source = java_paimon.table("append_odd_types")
    adopt(catalog, "db.t", source, exclude=["t9", "tm"])
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == ['{"id": 1, "v": "a"}', '{"id": 2, "v": "b"}']
    assert adopt(catalog, "db.t", source).snapshots == ()
    with pytest.raises(InvalidInput, match="cannot change"):
        adopt(catalog, "db.t", source, exclude=["v"])


@pytest.mark.parametrize("name", ["append_partitions", "append_dv32", "pk_dv64", "append_evolved"])
def test_taking_over_again_goes_on_from_the_last_snapshot(
    name: str, java_paimon: PeerTables, catalog: MemoryCatalog, tmp_path: Path
) -> None:
    source = copied(java_paimon, name, tmp_path)
    later = rewind(source, 1)
    first = adopt(catalog, "db.t", str(source), branches=False, history=True)
    assert first.is_new
    assert [s.paimon_snapshot_id for s in first.snapshots] == [1]
    for number in sorted(later):
        commit(source, later, number)
        again = adopt(catalog, "db.t", str(source), branches=False, history=True)
        assert not again.is_new
        assert [s.paimon_snapshot_id for s in again.snapshots] == [number]
        handle = handle_of(catalog, "db.t")
        assert rows_of(handle, handle.tip()) == java_paimon.rows(name, number)
    assert adopt(catalog, "db.t", str(source), branches=False).snapshots == ()


def test_a_sync_may_skip_snapshots(
    java_paimon: PeerTables, catalog: MemoryCatalog, tmp_path: Path
) -> None:
    source = copied(java_paimon, "pk_dv32", tmp_path)
    later = rewind(source, 2)
    adopt(catalog, "db.t", str(source))
    for number in later:
        commit(source, later, number)
    (source / "snapshot" / "snapshot-3").unlink()
    again = adopt(catalog, "db.t", str(source))
    assert [s.paimon_snapshot_id for s in again.snapshots] == [6]
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == java_paimon.rows("pk_dv32", 6)


def test_a_branch_made_later_comes_with_the_next_sync(
    java_paimon: PeerTables, catalog: MemoryCatalog, tmp_path: Path
) -> None:
    source = copied(java_paimon, "append_partitions", tmp_path)
    shutil.move(source / "branch", tmp_path / "branch")
    assert adopt(catalog, "db.t", str(source)).branches == ()
    shutil.move(tmp_path / "branch", source / "branch")
    again = adopt(catalog, "db.t", str(source))
    assert again.branches == ("side",)
    handle = handle_of(catalog, "db.t")
    expected = java_paimon.rows("append_partitions", 2, "side")
    assert rows_of(handle, handle.tip("side")) == expected
    assert rows_of(handle, handle.tip()) == java_paimon.rows("append_partitions", 3)


def test_a_table_changed_here_is_not_synced_over(
    java_paimon: PeerTables, catalog: MemoryCatalog, tmp_path: Path
) -> None:
    source = copied(java_paimon, "append_bucketed", tmp_path)
    later = rewind(source, 2)
    adopt(catalog, "db.t", str(source))
    handle = handle_of(catalog, "db.t")
    reader = handle.reader()
    (batch,) = reader.all_live(reader.tree(handle.tip()))
    handle.commit(Change(removed=batch.slice(0, 1).select(["location"])))
    commit(source, later, 3)
    with pytest.raises(InvalidInput, match="was changed here since Paimon's snapshot 2"):
        adopt(catalog, "db.t", str(source))


def test_a_table_rolled_back_in_paimon_is_not_synced(
    java_paimon: PeerTables, catalog: MemoryCatalog, tmp_path: Path
) -> None:
    source = copied(java_paimon, "append_bucketed", tmp_path)
    adopt(catalog, "db.t", str(source))
    later = rewind(source, 2)
    with pytest.raises(InvalidInput, match="rolled back behind snapshot 4"):
        adopt(catalog, "db.t", str(source))
    for number in later:
        commit(source, later, number)
    other = json.loads((source / "snapshot" / "snapshot-4").read_text())
    other["timeMillis"] += 5000
    (source / "snapshot" / "snapshot-4").write_text(json.dumps(other))
    with pytest.raises(InvalidInput, match="rolled back"):
        adopt(catalog, "db.t", str(source))


def test_another_table_of_that_name_is_left_alone(
    java_paimon: PeerTables, catalog: MemoryCatalog
) -> None:
    adopt(catalog, "db.t", java_paimon.table("append_dv32"))
    with pytest.raises(InvalidInput, match="was not adopted from"):
        adopt(catalog, "db.t", java_paimon.table("append_dv64"))


def test_the_new_table_does_not_go_into_paimons_directory(
    java_paimon: PeerTables, catalog: MemoryCatalog
) -> None:
    source = java_paimon.table("append_dv32")
    for location in (source, f"file://{source}", f"{source}/frazil"):
        with pytest.raises(InvalidInput, match="where nothing may be written"):
            adopt(catalog, "db.t", source, location=location)


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_data_file_that_is_not_as_its_manifest_says_stops_everything(
    damage: str, java_paimon: PeerTables, catalog: MemoryCatalog, tmp_path: Path
) -> None:
    source = copied(java_paimon, "append_types", tmp_path)
    victim = next(source.rglob("data-*.parquet"))
    if damage == "gone":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(NotFound, match=rf"(?s)1 data files of snapshot 2.*{victim.name}"):
        adopt(catalog, "db.t", str(source))
    assert not catalog.table_exists("db.t")
    assert fingerprint(tmp_path / "warehouse") == {}


def test_a_missing_manifest_stops_everything(
    java_paimon: PeerTables, catalog: MemoryCatalog, tmp_path: Path
) -> None:
    source = copied(java_paimon, "append_types", tmp_path)
    manifests = sorted((source / "manifest").glob("manifest-*"))
    next(path for path in manifests if "list" not in path.name).unlink()
    with pytest.raises(NotFound, match="is gone"):
        adopt(catalog, "db.t", str(source))
    assert fingerprint(tmp_path / "warehouse") == {}


def test_an_adopted_table_is_like_any_other_in_an_embedded_catalog(
    java_paimon: PeerTables, tmp_path: Path
) -> None:
    name = "append_dv64"
    before = fingerprint(Path(java_paimon.table(name)))
    with frazil.connect(tmp_path / "embedded") as made:
        made.adopt_paimon("db.t", java_paimon.table(name), history=True)
    with frazil.connect(tmp_path / "embedded") as made:
        table = made.load_table("db.t")
        assert row_lines(table.scan().to_arrow()) == java_paimon.rows(name, 5)
        third = made._pointers.load("db.t").history().snapshots[2]
        then = table.scan(as_of=third.snapshot_id).to_arrow()
        assert row_lines(then) == java_paimon.rows(name, 3)
        table.append([{"id": 100, "v": "native"}])
        assert table.scan(where="id = 100").to_arrow().to_pylist() == [{"id": 100, "v": "native"}]
        table.delete("id = 3")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [6, 100]
        with pytest.raises(InvalidInput, match="was changed here"):
            made.adopt_paimon("db.t", java_paimon.table(name))
        with pytest.raises(Unsupported, match=r"gc\.enabled"):
            made.drop_table("db.t", purge=True)
        made.drop_table("db.t")
    assert fingerprint(Path(java_paimon.table(name))) == before


def test_a_dry_run_tells_what_will_happen_and_writes_nothing(java_paimon: PeerTables) -> None:
    report = dry_run(java_paimon.table("pk_dv32"), history=True)
    assert report.can_be_adopted
    assert [item.snapshot_id for item in report.snapshots] == [1, 2, 3, 4, 5, 6]
    fifth = report.snapshots[4]
    assert (fifth.taken_files, fifth.taken_rows, fifth.deleted_rows) == (3, 7, 1)
    verdicts = {row["verdict"]: row["files"] for row in fifth.classes.to_pylist()}
    assert verdicts == {"adopted in place": 3, "left out, as Paimon does": 1}
    text = str(report)
    assert "snapshot 6 of main: can be adopted" in text
    assert "level 0: not compacted yet" in text
    refused = dry_run(java_paimon.table("append_recast"))
    assert refused.files["verdict"].to_pylist().count("refused") == 1
    assert "snapshot 2 of main: cannot be adopted" in str(refused)
