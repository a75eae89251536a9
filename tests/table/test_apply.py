"""A replica that follows another table: every change once, whatever is repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.errors import InvalidInput
from tests.support.meanwhile import interrupt


@pytest.fixture
def catalog(tmp_path: Path) -> frazil.Catalog:
    return frazil.connect(tmp_path)


@pytest.fixture
def source(catalog: frazil.Catalog) -> frazil.Table:
    return catalog.create_table("shop.orders", {"id": [1, 2, 3], "v": ["a", "b", "c"]})


@pytest.fixture
def replica(catalog: frazil.Catalog, source: frazil.Table) -> frazil.Table:
    return catalog.create_table("copy.orders", source.schema)


def _rows(table: frazil.Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_pylist(), key=lambda row: row["id"])


def test_a_replica_has_the_rows_of_its_source(source: frazil.Table, replica: frazil.Table) -> None:
    replica.apply(source.changes(), on="id")
    assert _rows(replica) == _rows(source)
    source.append({"id": [4, 5], "v": ["d", "e"]})
    source.update({"v": "changed"}, where="id = 2")
    source.delete("id in (3, 4)")
    source.append({"id": [3], "v": ["again"]})
    done = replica.apply(source.changes(since=replica.applied_from(source)), on="id")
    assert _rows(replica) == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": "changed"},
        {"id": 3, "v": "again"},
        {"id": 5, "v": "e"},
    ]
    assert (done.rows_added, done.rows_updated, done.rows_removed) == (1, 2, 0)
    assert len(replica.snapshots()) == 2
    tip = source.current_snapshot()
    assert tip is not None
    assert replica.applied_from(source) == tip.snapshot_id


def test_what_was_applied_is_not_applied_again(source: frazil.Table, replica: frazil.Table) -> None:
    first = source.changes()
    replica.apply(first, on="id")
    source.append({"id": [4], "v": ["d"]})
    assert not replica.apply(first, on="id").committed
    replica.apply(source.changes(), on="id")
    again = replica.apply(source.changes(), on="id")
    assert not again.committed
    assert str(again).startswith("nothing committed; every change is here already")
    since = replica.applied_from(source)
    assert not replica.apply(source.changes(since=since), on="id").committed
    assert _rows(replica) == _rows(source)
    assert len(replica.snapshots()) == 2


def test_compaction_of_the_source_changes_no_row(
    source: frazil.Table, replica: frazil.Table
) -> None:
    for number in range(4, 10):
        source.append({"id": [number], "v": ["x"]})
    replica.apply(source.changes(), on="id")
    before = len(replica.snapshots())
    assert source.compact().committed
    replica.apply(source.changes(since=replica.applied_from(source)), on="id")
    assert _rows(replica) == _rows(source)
    assert len(replica.snapshots()) == before


def test_a_gap_is_refused(source: frazil.Table, replica: frazil.Table) -> None:
    replica.apply(source.changes(), on="id")
    source.append({"id": [4], "v": ["d"]})
    middle = source.current_snapshot()
    assert middle is not None
    source.append({"id": [5], "v": ["e"]})
    known = replica.applied_from(source)
    with pytest.raises(InvalidInput, match=rf"changes\(since={known}\)"):
        replica.apply(source.changes(since=int(middle.snapshot_id)), on="id")
    assert replica.scan().count() == 3


def test_two_that_apply_at_once_apply_once(
    catalog: frazil.Catalog, source: frazil.Table, replica: frazil.Table
) -> None:
    other = catalog.load_table("copy.orders")
    interrupt(replica, lambda: other.apply(source.changes(), on="id"))
    replica.apply(source.changes(), on="id")
    assert _rows(replica) == _rows(source)


def test_keys_default_to_identifier_fields(
    catalog: frazil.Catalog, source: frazil.Table, replica: frazil.Table
) -> None:
    with pytest.raises(InvalidInput, match="no identifier fields"):
        replica.apply(source.changes())
    catalog.sql("CREATE TABLE copy.keyed (id BIGINT NOT NULL, v STRING, PRIMARY KEY (id))")
    keyed = catalog.load_table("copy.keyed")
    keyed.apply(source.changes())
    assert _rows(keyed) == _rows(source)


def test_new_columns_of_the_source_are_merged_when_asked_for(
    source: frazil.Table, replica: frazil.Table
) -> None:
    replica.apply(source.changes(), on="id")
    source.append([{"id": 4, "v": "d", "note": "n"}], schema="merge")
    with pytest.raises(InvalidInput, match="note"):
        replica.apply(source.changes(), on="id")
    replica.apply(source.changes(), on="id", schema="merge")
    assert _rows(replica)[-1] == {"id": 4, "v": "d", "note": "n"}


def test_a_replica_follows_several_sources(
    catalog: frazil.Catalog, source: frazil.Table, replica: frazil.Table
) -> None:
    second = catalog.create_table("shop.more", {"id": [11], "v": ["m"]})
    replica.apply(source.changes(), on="id")
    assert replica.applied_from(second) is None
    replica.apply(second.changes(), on="id")
    assert [row["id"] for row in _rows(replica)] == [1, 2, 3, 11]


def test_the_columns_that_tell_rows_apart_must_be_among_the_changes(
    source: frazil.Table, replica: frazil.Table
) -> None:
    with pytest.raises(InvalidInput, match="no column 'id'"):
        replica.apply(source.changes(columns=["v"]), on="id")
    with pytest.raises(InvalidInput, match="no column 'nr'"):
        replica.apply(source.changes(), on="nr")


def test_a_row_whose_key_changes_moves(source: frazil.Table, replica: frazil.Table) -> None:
    replica.apply(source.changes(), on="id")
    source.update({"id": 30}, where="id = 3")
    replica.apply(source.changes(), on="id")
    assert _rows(replica) == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": "b"},
        {"id": 30, "v": "c"},
    ]


def test_a_replica_whose_position_has_expired_says_how_to_begin_again(
    source: frazil.Table, replica: frazil.Table
) -> None:
    replica.apply(source.changes(), on="id")
    source.delete("id = 1")
    source.append({"id": [4], "v": ["d"]})
    source.expire_snapshots(keep_last=1, older_than="0 days")
    with pytest.raises(InvalidInput, match="remove its property") as refused:
        replica.apply(source.changes(), on="id")
    key = next(word for word in str(refused.value).split() if "frazil.applied" in word).strip(",")
    replica.delete("true")
    replica.set_properties({}, remove=[key])
    replica.apply(source.changes(), on="id")
    assert _rows(replica) == _rows(source)
