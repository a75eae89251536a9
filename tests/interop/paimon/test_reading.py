"""Tables of the peers read where they are: their own rows and changes, at every snapshot."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

import frazil
from frazil.errors import InvalidInput, NotFound, Unsupported
from tests.interop.paimon.peers import PeerTables
from tests.interop.paimon.reading import fingerprint
from tests.interop.paimon.test_tables import JAVA_TABLES, PYPAIMON_TABLES, REFUSED, peer_of
from tests.interop.paimon.text_form import row_lines

pytestmark = [pytest.mark.java, pytest.mark.peers]

MERGED = ["pk_level0", "pk_level0_types", "pk_sequence", "pk_partial", "pk_aggregate"]
MERGED += ["pk_aggregates", "pk_changelog", "py_pk"]
NOT_READ = {
    "append_avro": "format 'avro' is not read",
    "append_odd_types": r"column 't9'.*INT96.*column 'tm'",
    "append_recast": "column 'v' changed from STRING to INT",
    "pk_grouped": r"fields\.n\.sequence-group is 'v'.*only by Paimon",
    "py_avro": "format 'avro' is not read",
    "py_reused": "has no field ids.*the name x",
    "py_data_evolution": "some columns of its rows only",
}


def test_every_table_of_the_peers_is_read_or_refused() -> None:
    assert {*MERGED, *NOT_READ, "py_pk_kinds"} == {*REFUSED}


@pytest.mark.parametrize("name", [*JAVA_TABLES, *PYPAIMON_TABLES, *MERGED])
def test_rows_are_the_peers_rows_at_every_snapshot(
    name: str, java_paimon: PeerTables, pypaimon: PeerTables
) -> None:
    peer = peer_of(name, java_paimon, pypaimon)
    before = fingerprint(Path(peer.table(name)))
    opened = frazil.open_paimon(peer.table(name))
    ids = opened.snapshots()["snapshot_id"].to_pylist()
    assert ids
    for number in ids:
        scan = opened.scan(as_of=number)
        rows = row_lines(scan.to_arrow()) if scan.count() else []
        assert rows == peer.rows(name, number), number
        assert scan.count() == len(rows)
    assert fingerprint(Path(peer.table(name))) == before


@pytest.mark.parametrize("name", NOT_READ)
def test_what_cannot_be_read_says_why(
    name: str, java_paimon: PeerTables, pypaimon: PeerTables
) -> None:
    peer = peer_of(name, java_paimon, pypaimon)
    with pytest.raises(Unsupported, match=NOT_READ[name]):
        frazil.open_paimon(peer.table(name)).scan().to_arrow()


def test_rows_that_a_file_deletes_without_counting_are_gone(pypaimon: PeerTables) -> None:
    opened = frazil.open_paimon(pypaimon.table("py_pk_kinds"))
    assert sorted(opened.scan(columns=["k"]).to_arrow()["k"].to_pylist()) == [1, 3]


@pytest.mark.parametrize(
    "where", ["k = 1", "n > 5", "v = 'a'", "k IN (2, 7) AND n < 100", "lower(v) = 'b'", "n IS NULL"]
)
@pytest.mark.parametrize("name", ["pk_level0", "pk_partial", "pk_aggregate", "pk_changelog"])
def test_a_filter_gives_the_rows_it_would_give_after_the_merge(
    name: str, where: str, java_paimon: PeerTables
) -> None:
    opened = frazil.open_paimon(java_paimon.table(name))
    every = opened.scan().to_arrow()
    expected = duckdb.from_arrow(every).filter(where).to_arrow_table()
    scan = opened.scan(where)
    assert sorted(row_lines(scan.to_arrow())) == sorted(row_lines(expected.cast(every.schema)))
    assert scan.count() == expected.num_rows
    chosen = opened.scan(where, columns=["v"]).to_arrow()
    assert sorted(map(str, chosen["v"].to_pylist())) == sorted(map(str, expected["v"].to_pylist()))


@pytest.mark.parametrize("name", ["append_indexed", "append_indexed_beside"])
@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("i = 13", 1),
        ("l = 130000000000", 1),
        ("s = 'a text that is longer than one block 13'", 1),
        ("d = 3.25", 1),
        ("t = '2024-01-02T03:04:06.013005'", 1),
        ("c = 'c13'", 1),
        ("n = 13", 1),
        ("n IS NULL", 1),
        ("i IN (13, 14)", 2),
        ("i = 13 AND c = 'c14'", 0),
        ("i = 13 OR c = 'c14'", 2),
        ("c = 'c13x'", 0),
        ("i > 3 AND i < 25", 3),
    ],
)
def test_file_indexes_rule_files_out(
    name: str, where: str, files: int, java_paimon: PeerTables
) -> None:
    scan = frazil.open_paimon(java_paimon.table(name)).scan(where)
    report = scan.explain()
    assert (report.considered, report.files) == (3, files)
    every = frazil.open_paimon(java_paimon.table(name)).scan().to_arrow()
    expected = duckdb.from_arrow(every).filter(where).project("i").fetchall()
    assert sorted(scan.to_arrow()["i"].to_pylist()) == sorted(row[0] for row in expected)


def test_statistics_and_keys_rule_files_out(java_paimon: PeerTables) -> None:
    opened = frazil.open_paimon(java_paimon.table("append_partitions"))
    report = opened.scan("s = 'plain'").explain()
    assert 0 < report.files < report.considered
    assert report.pruned_by_statistics == report.considered - report.files
    merged = frazil.open_paimon(java_paimon.table("pk_partial"))
    assert merged.scan("k = 77").explain().files == 0
    assert merged.scan("v = 'none of these'").explain().files == merged.scan().explain().files


def test_changes_are_those_of_the_changelog(java_paimon: PeerTables) -> None:
    opened = frazil.open_paimon(java_paimon.table("pk_changelog"))
    kinds = {"insert": "+I", "update_preimage": "-U", "update_postimage": "+U", "delete": "-D"}
    for number in (1, 2, 3):
        feed = opened.changes(since=number - 1 or None, until=number).to_arrow()
        expected = java_paimon.rows("pk_changelog", number, "changes")
        lines = [
            json.dumps({"rowkind": kinds[row["_change_type"]], **{k: row[k] for k in "kvn"}})
            for row in feed.to_pylist()
        ]
        assert sorted(map(json.loads, lines), key=str) == sorted(map(json.loads, expected), key=str)
        assert set(feed["_commit_snapshot_id"].to_pylist()) == {number}
    assert opened.changes().to_arrow().num_rows == 6
    assert opened.changes(columns=["v"]).arrow_schema.names[0] == "v"


def test_changes_of_a_table_without_a_changelog(java_paimon: PeerTables) -> None:
    keyed = frazil.open_paimon(java_paimon.table("pk_level0"))
    with pytest.raises(Unsupported, match="changelog-producer"):
        keyed.changes().to_arrow()
    appended = frazil.open_paimon(java_paimon.table("append_bucketed"))
    feed = appended.changes().to_arrow()
    assert set(feed["_change_type"].to_pylist()) == {"insert"}
    assert sorted(feed["id"].to_pylist()) == sorted(appended.scan().to_arrow()["id"].to_pylist())
    replaced = frazil.open_paimon(java_paimon.table("append_partitions"))
    net: dict[int, int] = {}
    for row in replaced.changes().to_pylist():
        net[row["v"]] = net.get(row["v"], 0) + (1 if row["_change_type"] == "insert" else -1)
    live = sorted(value for value, count in net.items() if count)
    assert live == sorted(replaced.scan().to_arrow()["v"].to_pylist())


def test_time_travel_by_tag_time_and_branch(java_paimon: PeerTables) -> None:
    opened = frazil.open_paimon(java_paimon.table("append_partitions"))
    by_tag = opened.scan(as_of="first")
    assert row_lines(by_tag.to_arrow()) == java_paimon.rows("append_partitions", by_tag.snapshot.id)
    times = opened.snapshots()["committed_at"].to_pylist()
    assert opened.scan(as_of=times[1]).snapshot.id == 2
    assert opened.scan(as_of=times[1].isoformat()).snapshot.id == 2
    side = opened.on_branch("side")
    newest = side.scan()
    expected = java_paimon.rows("append_partitions", newest.snapshot.id, "side")
    assert row_lines(newest.to_arrow()) == expected
    with pytest.raises(NotFound, match="no snapshot is as old"):
        opened.scan(as_of=datetime(2000, 1, 1, tzinfo=UTC))
    with pytest.raises(NotFound, match=r"is not a tag.*first"):
        opened.scan(as_of="frist")
    with pytest.raises(NotFound, match="no snapshot 99"):
        opened.scan(as_of=99)
    with pytest.raises(InvalidInput, match="unknown column w"):
        opened.scan(columns=["w"]).to_arrow()
    assert opened.scan(limit=2).to_arrow().num_rows == 2
