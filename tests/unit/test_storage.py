"""Files by path: exclusive and durable writes, ranges, counters, errors that name the path."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import AlreadyExists, NotFound, StorageError
from frazil.storage import LocalStorage, StorageCall, is_local, local_path, storage_for


def test_what_was_written_is_read_whole_and_in_ranges(tmp_path: Path) -> None:
    storage = LocalStorage()
    path = f"{tmp_path}/deep/er/f"
    storage.write_new(path, b"0123456789")
    assert storage.read(path) == b"0123456789"
    opened = storage.open(path)
    assert opened.size == 10
    assert opened.read_at(3, 4) == b"3456"
    assert opened.read_at(8, 99) == b"89"
    assert storage.size(path) == 10
    assert storage.exists(path)
    assert not storage.exists(f"{tmp_path}/deep")


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    storage = LocalStorage()
    path = str(tmp_path / "f")
    storage.write_new(path, b"first")
    with pytest.raises(AlreadyExists, match="f: the file already exists"):
        storage.write_new(path, b"second")
    with pytest.raises(AlreadyExists):
        storage.create(path)
    assert storage.read(path) == b"first"


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    storage = LocalStorage()
    path = str(tmp_path / "nothing")
    for read in (storage.read, storage.open, storage.size):
        with pytest.raises(NotFound, match="nothing: no such file"):
            read(path)
    storage.delete(path)
    assert not storage.exists(path)


def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    storage = LocalStorage()
    path = str(tmp_path / "f")
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="f: write failed: No space left on device"):
        storage.write_new(path, b"data")
    monkeypatch.undo()
    assert not storage.exists(path)


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:3]))
    storage = LocalStorage()
    storage.write_new(f"{tmp_path}/f", b"0123456789")
    with storage.create(f"{tmp_path}/g") as stream:
        stream.write(b"0123456789")
    assert storage.read(f"{tmp_path}/f") == storage.read(f"{tmp_path}/g") == b"0123456789"


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths in the order they are synced."""
    paths: list[str] = []
    fsync = os.fsync

    def record(handle: int) -> None:
        paths.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    return paths


def test_writes_are_synced_and_then_their_folders(tmp_path: Path, synced: list[str]) -> None:
    storage = LocalStorage()
    folder = tmp_path / "new" / "deep"
    storage.write_new(f"{folder}/f", b"x")
    assert synced[:4] == [f"{folder}/f", f"{folder}", f"{tmp_path}/new", f"{tmp_path}"]
    assert f"{tmp_path.parent}" in synced
    synced.clear()
    storage.write_new(f"{folder}/g", b"x")
    with storage.create(f"{folder}/h") as stream:
        stream.write(b"y")
    assert synced == [f"{folder}/g", f"{folder}", f"{folder}/h", f"{folder}"]


def test_a_folder_that_is_made_again_is_synced_again(tmp_path: Path, synced: list[str]) -> None:
    storage = LocalStorage()
    storage.write_new(f"{tmp_path}/data/f", b"x")
    shutil.rmtree(tmp_path / "data")
    synced.clear()
    storage.write_new(f"{tmp_path}/data/f", b"x")
    assert synced[:3] == [f"{tmp_path}/data/f", f"{tmp_path}/data", f"{tmp_path}"]


def test_a_folder_that_cannot_be_synced_fails_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def broken(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", broken)
    storage = LocalStorage()
    with pytest.raises(StorageError, match="f: write failed: Input/output error"):
        storage.write_new(f"{tmp_path}/f", b"x")
    stream = storage.create(f"{tmp_path}/g")
    with pytest.raises(StorageError, match="g: write failed: Input/output error"):
        stream.close()
    assert not storage.exists(f"{tmp_path}/f")


def test_an_error_while_reading_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    storage = LocalStorage()
    storage.write_new(f"{tmp_path}/f", b"x" * 100)
    opened = storage.open(f"{tmp_path}/f")
    monkeypatch.setattr(os, "pread", broken)
    with pytest.raises(StorageError, match="f: read failed: Input/output error"):
        opened.read_at(0, 10)


def test_parquet_can_be_written_and_read_through_it(tmp_path: Path) -> None:
    storage = LocalStorage()
    table = pa.table({"a": list(range(50_000)), "b": [f"text {n}" for n in range(50_000)]})
    path = f"{tmp_path}/t.parquet"
    with storage.create(path) as sink:
        pq.write_table(table, sink, compression="none")
    assert storage.size(path) > 500_000
    opened = storage.open(path)
    assert pq.read_table(opened.arrow()).equals(table)
    with storage.recording() as calls:
        pq.ParquetFile(opened.arrow()).read(columns=["a"])
    assert sum(call.bytes for call in calls) < storage.size(path) * 0.7


def test_a_small_file_is_one_request(tmp_path: Path) -> None:
    storage = LocalStorage()
    path = f"{tmp_path}/t.parquet"
    with storage.create(path) as sink:
        pq.write_table(pa.table({"a": [1], "b": [2]}), sink)
    with storage.recording() as calls:
        pq.read_table(storage.open(path).arrow())
    assert [call.verb for call in calls] == ["read"]


def test_calls_and_bytes_are_counted_by_verb(tmp_path: Path) -> None:
    storage = LocalStorage()
    path = f"{tmp_path}/f"
    with storage.recording() as calls:
        storage.write_new(path, b"12345")
        storage.read(path)
        storage.open(path).read_at(0, 2)
        storage.size(path)
        list(storage.list(str(tmp_path)))
        storage.delete(path)
    assert calls == [
        StorageCall("write", path, 5),
        StorageCall("read", path, 5),
        StorageCall("read", path, 2),
        StorageCall("head", path, 0),
        StorageCall("list", str(tmp_path), 0),
        StorageCall("delete", path, 0),
    ]
    assert storage.counters.calls == {"write": 1, "read": 2, "head": 1, "list": 1, "delete": 1}
    assert storage.counters.bytes["read"] == 7
    storage.exists(path)
    assert len(calls) == 6  # the recording is over


def test_recordings_nest(tmp_path: Path) -> None:
    storage = LocalStorage()
    with storage.recording() as outer:
        storage.exists("/a")
        with storage.recording() as inner:
            storage.exists("/b")
    assert [call.path for call in outer] == ["/a", "/b"]
    assert [call.path for call in inner] == ["/b"]


def test_a_streamed_file_is_counted_when_it_is_closed(tmp_path: Path) -> None:
    storage = LocalStorage()
    with storage.recording() as calls:
        with storage.create(f"{tmp_path}/f") as stream:
            stream.write(b"123")
            stream.write(b"45")
            assert calls == []
        assert calls == [StorageCall("write", f"{tmp_path}/f", 5)]


def test_listing_finds_every_file_below(tmp_path: Path) -> None:
    storage = LocalStorage()
    for name in ("a", "b/c", "b/d/e"):
        storage.write_new(f"{tmp_path}/t/{name}", name.encode())
    storage.write_new(f"{tmp_path}/other", b"x")
    found = {info.path: info.size for info in storage.list(f"{tmp_path}/t/")}
    assert found == {f"{tmp_path}/t/a": 1, f"{tmp_path}/t/b/c": 3, f"{tmp_path}/t/b/d/e": 5}
    assert list(storage.list(f"{tmp_path}/nowhere")) == []
    stamp = next(iter(storage.list(f"{tmp_path}/t/b/d"))).modified_ms
    assert stamp == os.stat(f"{tmp_path}/t/b/d/e").st_mtime_ns // 1_000_000


def test_file_uris_are_local_paths_and_listed_as_they_were_asked_for(tmp_path: Path) -> None:
    storage = LocalStorage()
    storage.write_new(f"file://{tmp_path}/f", b"x")
    assert storage.read(f"file:{tmp_path}/f") == storage.read(f"{tmp_path}/f") == b"x"
    assert [info.path for info in storage.list(f"file://{tmp_path}")] == [f"file://{tmp_path}/f"]


@pytest.mark.parametrize(
    ("path", "local"),
    [("/a/b", "/a/b"), ("file:/a/b", "/a/b"), ("file:///a/b", "/a/b"), ("rel/a", "rel/a")],
)
def test_spellings_of_local_paths(path: str, local: str) -> None:
    assert is_local(path)
    assert local_path(path) == local


def test_the_scheme_chooses_the_storage() -> None:
    assert not is_local("s3://bucket/key")
    assert isinstance(storage_for("/a/b"), LocalStorage)
    assert isinstance(storage_for("file:///a"), LocalStorage)
    assert not isinstance(storage_for("s3://bucket/key", {"s3.region": "x"}), LocalStorage)


@pytest.mark.filterwarnings("ignore:No preferred file implementation")
def test_a_scheme_nobody_serves_is_an_error() -> None:
    with pytest.raises(StorageError, match="ftps://host/a"):
        storage_for("ftps://host/a").read("ftps://host/a")


def test_storages_travel_without_their_counters(tmp_path: Path) -> None:
    storage = LocalStorage()
    storage.write_new(f"{tmp_path}/f", b"x")
    there = pickle.loads(pickle.dumps(storage))
    assert there.counters.calls == {}
    assert there.read(f"{tmp_path}/f") == b"x"


def test_credentials_are_not_shown() -> None:
    keys = {"s3.access-key-id": "me", "s3.secret-access-key": "hush"}
    remote = storage_for("s3://bucket/key", {"s3.region": "x", **keys})
    assert "hush" not in repr(remote)
