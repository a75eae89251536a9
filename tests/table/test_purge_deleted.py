"""Deleted rows leave the files that hold them, and no other file is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import frazil


@pytest.fixture
def people(tmp_path: Path) -> frazil.Table:
    table = frazil.connect(tmp_path).create_table("crm.people", {"id": [0], "name": ["n0"]})
    for start in (10, 20, 30):
        ids = list(range(start, start + 10))
        table.append({"id": ids, "name": [f"n{number}" for number in ids]})
    return table


def _files(table: frazil.Table) -> set[str]:
    return set(table.inspect.files["file_path"].to_pylist())


def _names_on_disk(root: Path) -> set[Any]:
    found: set[Any] = set()
    for path in root.rglob("data/**/*.parquet"):
        found |= set(pq.read_table(path)["name"].to_pylist())
    return found


def test_only_files_with_deleted_rows_are_rewritten(people: frazil.Table, tmp_path: Path) -> None:
    before = _files(people)
    people.delete("id in (12, 27)")
    assert _files(people) == before
    report = people.purge_deleted()
    assert report.rows == 2
    assert len(report.old_files) == 2
    assert len(before & _files(people)) == 2
    assert people.scan().count() == 29
    assert report.result.committed
    assert len(report.snapshots) == 5
    assert len(report.files_left()) == 2
    assert "2 deleted rows purged from 2 files" in str(report)
    assert "2 old files still in the storage until 5 older snapshots expire" in str(report)
    assert "Storage" not in repr(report)
    assert {"n12", "n27"} <= _names_on_disk(tmp_path)
    people.expire_snapshots(older_than="0 days", keep_last=1)
    assert report.files_left() == []
    assert "none of these files exists" in str(report)
    assert not {"n12", "n27"} & _names_on_disk(tmp_path)
    assert report.to_dict()["files-left"] == []


def test_nothing_to_purge(people: frazil.Table) -> None:
    report = people.purge_deleted()
    assert not report.result.committed
    assert (report.rows, report.old_files, report.snapshots) == (0, (), ())
    assert str(report) == "crm.people: no data file has deleted rows"


def test_files_without_matching_rows_keep_their_deleted_ones(people: frazil.Table) -> None:
    people.delete("id in (12, 27)")
    report = people.purge_deleted(where="id < 20")
    assert (report.rows, len(report.old_files)) == (1, 1)
    assert people.purge_deleted().rows == 1


def test_a_purge_changes_no_row(people: frazil.Table) -> None:
    people.delete("id = 12")
    ids = {row["id"]: row["_row_id"] for row in people.scan(columns=["id", "_row_id"])}
    tip = people.current_snapshot()
    assert tip is not None
    people.purge_deleted()
    after = {row["id"]: row["_row_id"] for row in people.scan(columns=["id", "_row_id"])}
    assert after == ids
    assert people.changes(since=int(tip.snapshot_id)).to_arrow().num_rows == 0
