"""Orphans: files that nothing reaches, and what is never taken for one."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from frazil.errors import InvalidInput
from frazil.maintenance.removal.listing import ListedFiles, list_files
from frazil.maintenance.removal.orphans import remove_orphan_files
from frazil.storage import LocalStorage, Places, Storage
from frazil.table import Table
from tests.support.history import eight_commits, files_of, rows


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return eight_commits(tmp_path)


def _place(table: Table) -> Path:
    return Path(table.location.removeprefix("file://"))


def _stray(table: Table, name: str, *, days: float = 10) -> Path:
    path = _place(table) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"stray")
    moment = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    os.utime(path, (moment, moment))
    return path


def test_old_files_that_nothing_reaches_are_removed(table: Table) -> None:
    before = files_of(table)
    strays = [
        _stray(table, "data/lost.parquet"),
        _stray(table, "data/day=1/lost.parquet"),
        _stray(table, "metadata/root-9-lost.parquet"),
        _stray(table, "metadata/00000-lost.metadata.json"),
    ]
    done = table.remove_orphan_files()
    assert [file.path for file in done.files] == sorted(f"file://{path}" for path in strays)
    assert done.total_bytes == 20
    assert not any(path.exists() for path in strays)
    assert files_of(table) == before
    assert table.check(deep=True).problems == ()


def test_young_files_may_belong_to_a_commit_under_way(table: Table) -> None:
    stray = _stray(table, "data/new.parquet", days=2.9)
    done = table.remove_orphan_files()
    assert done.files == ()
    assert done.young == 1
    assert stray.exists()
    done = table.remove_orphan_files(older_than=timedelta(days=2))
    assert len(done.files) == 1


def test_a_dry_run_removes_nothing(table: Table) -> None:
    stray = _stray(table, "data/lost.parquet")
    done = table.remove_orphan_files(dry_run=True)
    assert len(done.files) == 1
    assert stray.exists()
    assert str(done) == "would remove 1 file, 5 bytes"
    assert done.to_dict()["bytes"] == 5


def test_files_of_every_snapshot_and_every_logged_json_stay(table: Table) -> None:
    table.overwrite(rows(1))
    table.branch("side", create=True).append(rows(2))
    json = table._handle.head.export()  # type: ignore[attr-defined]
    before = {file.path for file in table._handle.storage.list(table.location)}
    done = table.refresh().remove_orphan_files(older_than=datetime(2100, 1, 1, tzinfo=UTC))
    assert done.files == ()
    assert {file.path for file in table._handle.storage.list(table.location)} == before
    assert json in before


def test_what_expiry_could_not_delete_is_found(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "delete", lambda self, path: None)
        gone = table.expire_snapshots(older_than=timedelta(0))
    assert gone.file_count > 5
    done = table.remove_orphan_files(older_than=datetime(2100, 1, 1, tzinfo=UTC))
    assert len(done.files) == gone.file_count
    assert table.check(deep=True).problems == ()


def test_a_table_beside_with_a_longer_name_is_not_touched(table: Table) -> None:
    place = _place(table)
    beside = place.with_name(place.name + "_old") / "data" / "file.parquet"
    beside.parent.mkdir(parents=True)
    beside.write_bytes(b"x")
    os.utime(beside, (0, 0))
    assert table.remove_orphan_files().files == ()
    assert beside.exists()


def test_a_table_below_and_hidden_files_are_not_touched(table: Table) -> None:
    below = _stray(table, "data/inner/metadata/00000-x.metadata.json")
    data = _stray(table, "data/inner/data/file.parquet")
    hidden = [_stray(table, "data/_temporary/0/x.parquet"), _stray(table, "data/.x.crc")]
    hint = _stray(table, "metadata/version-hint.text")
    partition = _stray(table, "data/_day=1/lost.parquet")
    done = table.remove_orphan_files()
    assert [file.path for file in done.files] == [f"file://{partition}"]
    assert len(done.other_tables) == 1
    assert all(path.exists() for path in (below, data, hint, *hidden))


def test_one_folder_can_be_looked_at_alone(table: Table) -> None:
    inside = _stray(table, "data/day=1/lost.parquet")
    outside = _stray(table, "data/day=2/lost.parquet")
    table.remove_orphan_files(location=f"{table.location}/data/day=1")
    assert (inside.exists(), outside.exists()) == (False, True)
    with pytest.raises(InvalidInput, match="not below"):
        table.remove_orphan_files(location="file:///tmp")


def test_listing_by_folders_finds_what_plain_listing_finds(tmp_path: Path) -> None:
    expected: set[str] = set()
    for number in range(40):
        path = tmp_path / f"p={number % 7}" / f"q={number % 3}" / f"{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * number)
        expected.add(f"file://{path}")
    (tmp_path / "top.txt").write_text("x")
    storage: Storage = LocalStorage()
    listed = ListedFiles(list_files(storage, f"file://{tmp_path}"), canonical=Places().folder)
    assert sorted(listed.paths()) == sorted([*expected, f"file://{tmp_path}/top.txt"])
    found = listed.infos(np.arange(41), storage)
    assert {file.path: file for file in found} == {
        file.path: file for file in storage.list(f"file://{tmp_path}")
    }
    assert list(list_files(storage, f"file://{tmp_path}/nothing")) == []


def test_a_name_that_is_no_text_is_left_alone(table: Table) -> None:
    lost = _stray(table, "data/lost.parquet")
    odd = os.fsencode(_place(table) / "data") + b"/\xff.parquet"
    inside = os.fsencode(_place(table) / "data") + b"/\xfe"
    os.mkdir(inside)
    for path in (odd, inside + b"/x.parquet"):
        with open(path, "wb"):
            os.utime(path, (0, 0))
    done = table.remove_orphan_files()
    assert [file.path for file in done.files] == [f"file://{lost}"]
    assert os.path.exists(odd)


def test_a_file_committed_while_listing_is_not_an_orphan(table: Table) -> None:
    """What is reachable is looked up after the listing."""
    listed: list[str] = []

    def commits_late(done: int, total: int, what: str, /) -> None:
        if what == "folders listed" and not listed:
            listed.append(what)
            table.append(rows(500))

    moment = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)
    done = remove_orphan_files(table._handle, older_than_ms=moment, progress=commits_late)
    assert listed
    assert done.files == ()
    assert table.check(deep=True).problems == ()
