"""Paths from outside: which are let through, and that what was let through is what is opened."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from frazil.errors import AlreadyExists, Forbidden, NotFound, StorageError
from frazil.storage import LocalStorage
from frazil.storage.fence import AllowedPath, Fence, FencedStorage


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "file").write_text("mine")
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    path = folder / "secret"
    path.write_text("theirs")
    return path


def storage(*folders: object, linked: tuple[str, ...] = ()) -> FencedStorage:
    return FencedStorage(LocalStorage(), Fence(map(str, folders), linked=linked))


def test_only_a_fence_makes_an_allowed_path(inside: Path) -> None:
    with pytest.raises(TypeError):
        AllowedPath(text="/etc/passwd", root="/", tail="etc/passwd")
    made = Fence([str(inside)]).allowed(f"{inside}/file")
    assert (made.root, made.tail) == (str(inside), "file")


def test_every_spelling_of_a_file_inside_is_opened(inside: Path) -> None:
    for path in (
        f"{inside}/file",
        f"file://{inside}/file",
        f"FILE:{inside}/file",
        f"file://localhost{inside}/file",
        f"{inside}//file",
        f"{inside}/./file",
    ):
        assert storage(inside).read(path) == b"mine", path


def test_no_spelling_leads_out(inside: Path, secret: Path) -> None:
    (inside / "link").symlink_to(secret)
    (inside / "shelf").symlink_to(secret.parent)
    (inside / "loop").symlink_to(inside / "loop")
    for path in (
        str(secret),
        f"file://{secret}",
        f"{inside}/../outside/secret",
        f"{inside}/x/../../outside/secret",
        f"{inside}/%2e%2e/outside/secret",
        f"{inside}/%2E./outside/secret",
        f"{inside}/..%2foutside%2fsecret",
        f"{inside}/..%5coutside",
        f"{inside}/link",
        f"{inside}/shelf/secret",
        f"{inside}/loop",
        f"{inside}-twin/file",
        f"{inside}\0/file",
        "inside/file",
        "",
        f"s3://bucket{inside}/file",
        f"http://127.0.0.1{inside}/file",
    ):
        with pytest.raises(Forbidden):
            storage(inside).read(path)
        with pytest.raises(Forbidden):
            storage(inside).delete(path)
        with pytest.raises(Forbidden):
            storage(inside).write_new(path, b"x")
        assert path not in Fence([str(inside)])
    assert secret.read_text() == "theirs"


def test_a_percent_sign_of_a_partition_is_a_name(inside: Path) -> None:
    (inside / "day=a%2Fb").mkdir()
    (inside / "day=a%2Fb" / "x").write_text("rows")
    assert storage(inside).read(f"{inside}/day=a%2Fb/x") == b"rows"


def test_what_is_put_in_its_place_after_the_check_is_not_opened(inside: Path, secret: Path) -> None:
    """The folders are looked at once; a link that comes later is met when the file is opened."""
    folder = inside / "data"
    folder.mkdir()
    (folder / "secret").write_text("mine")
    fenced = storage(inside)
    assert fenced.read(f"{folder}/secret") == b"mine"
    (folder / "secret").unlink()
    folder.rmdir()
    folder.symlink_to(secret.parent)
    with pytest.raises(Forbidden):
        fenced.read(f"{folder}/secret")
    with pytest.raises(Forbidden):
        fenced.open(f"{folder}/secret")
    with pytest.raises(Forbidden):
        fenced.size(f"{folder}/secret")
    with pytest.raises(Forbidden):
        fenced.delete(f"{folder}/secret")
    with pytest.raises(Forbidden):
        fenced.write_new(f"{folder}/new", b"x")
    assert [path.name for path in secret.parent.iterdir()] == ["secret"]


def test_a_pipe_is_no_file_and_keeps_nobody_waiting(inside: Path) -> None:
    os.mkfifo(inside / "pipe")
    fenced = storage(inside)
    with pytest.raises(NotFound):
        fenced.read(f"{inside}/pipe")
    with pytest.raises(NotFound):
        fenced.open(f"{inside}/pipe")
    with pytest.raises(NotFound):
        fenced.size(f"{inside}/pipe")
    assert not fenced.exists(f"{inside}/pipe")


def test_listing_leaves_links_out(inside: Path, secret: Path) -> None:
    (inside / "link").symlink_to(secret)
    (inside / "shelf").symlink_to(secret.parent)
    (inside / "deep").mkdir()
    (inside / "deep" / "more").write_text("x")
    names = sorted(info.path for info in storage(inside).list(str(inside)))
    assert names == [f"{inside}/deep/more", f"{inside}/file"]
    folders, files = storage(inside).children(str(inside))
    assert list(folders) == [f"{inside}/deep"]
    assert [info.path for info in files] == [f"{inside}/file"]
    assert list(storage(inside).list(f"{inside}/nothing")) == []


def test_links_lead_to_places_that_were_named_for_it(inside: Path, secret: Path) -> None:
    (inside / "shelf").symlink_to(secret.parent)
    allowed = storage(inside, linked=(str(secret.parent),))
    assert allowed.read(f"{inside}/shelf/secret") == b"theirs"
    allowed.write_new(f"{inside}/shelf/new", b"x")
    assert (secret.parent / "new").read_bytes() == b"x"


def test_the_folder_itself_may_be_reached_by_a_link(inside: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(inside)
    for root, path in ((tmp_path / "alias", inside), (inside, tmp_path / "alias")):
        assert storage(root).read(f"{path}/file") == b"mine"
        assert storage(root).read(f"file://{path}/file") == b"mine"


def test_the_innermost_folder_decides(inside: Path) -> None:
    (inside / "bank" / "mine").mkdir(parents=True)
    (inside / "bank" / "file").write_text("theirs")
    (inside / "bank" / "mine" / "file").write_text("mine")
    fence = Fence([str(inside), f"{inside}/bank/mine"], excluded=[f"{inside}/bank"])
    assert f"{inside}/file" in fence
    assert f"{inside}/bank/file" not in fence
    assert f"{inside}/bank" not in fence
    assert f"{inside}/bank/mine/file" in fence
    assert f"{inside}/bank/mine" in fence
    assert f"{inside}/banks" in fence


def test_a_folder_in_another_is_reached_from_there(inside: Path, secret: Path) -> None:
    """Properties name folders of a table: a link in the place of one leads nowhere."""
    (inside / "data").symlink_to(secret.parent)
    for folders in ((inside, inside / "data"), (inside / "data", inside)):
        with pytest.raises(Forbidden):
            storage(*folders).read(f"{inside}/data/secret")
        with pytest.raises(Forbidden):
            storage(*folders).read(str(secret))


def test_objects_are_compared_in_one_spelling() -> None:
    fence = Fence(["s3://bucket/warehouse/shop"], excluded=["s3://bucket/warehouse/shop/theirs"])
    for path in ("s3://bucket/warehouse/shop/x", "S3A://bucket/warehouse//shop/x"):
        assert path in fence, path
    for path in (
        "s3://bucket/warehouse/bank/x",
        "s3://bucket/warehouse/shop/../bank/x",
        "s3://bucket/warehouse/shop/%2e%2e/bank/x",
        "s3://bucket/warehouse/shop/theirs/x",
        "s3://other/warehouse/shop/x",
        "gs://bucket/warehouse/shop/x",
        "/warehouse/shop/x",
        "s3://bucket/warehouse/shopping/x",
    ):
        assert path not in fence, path


def test_files_are_written_once_and_whole(inside: Path) -> None:
    fenced = storage(inside)
    fenced.write_new(f"{inside}/a/b/new", b"one")
    with pytest.raises(AlreadyExists):
        fenced.write_new(f"{inside}/a/b/new", b"two")
    with fenced.create(f"{inside}/a/c/stream") as stream:
        stream.write(b"three")
    assert fenced.read(f"{inside}/a/b/new") == b"one"
    assert fenced.open(f"{inside}/a/c/stream").read_at(0, 5) == b"three"
    fenced.delete(f"{inside}/a/b/new")
    fenced.delete(f"{inside}/a/b/new")
    assert not fenced.exists(f"{inside}/a/b/new")
    with pytest.raises(NotFound):
        fenced.read(f"{inside}/a/b/new")
    assert fenced.counters.calls["write"] == 2


def test_names_leave_links_out_and_tell_what_is_a_file(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "deep", outside):
        folder.mkdir(parents=True)
    (inside / "a").write_text("12")
    (inside / "deep" / "b").write_text("123")
    (outside / "secret").write_text("x")
    (inside / "link").symlink_to(outside / "secret")
    (inside / "folder").symlink_to(outside)
    fenced = storage(inside)
    found = {f"{at}/{name}" for at, names in fenced.names(str(inside)) for name in names}
    assert found == {f"{inside}/a", f"{inside}/deep/b"}
    info = fenced.info(f"{inside}/deep/b")
    assert info is not None
    assert info.size == 3
    assert fenced.info(f"{inside}/gone") is None
    assert list(fenced.names(f"{inside}/gone")) == []
    for path in (f"{inside}/link", f"{inside}/folder/secret"):
        with pytest.raises(Forbidden):
            fenced.info(path)
    with pytest.raises(Forbidden):
        list(fenced.names(str(outside)))


def test_a_copy_that_is_not_completed_leaves_nothing(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def across(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr("os.link", across)
    fenced = storage(inside)
    with monkeypatch.context() as disk:
        disk.setattr("frazil.storage.fence.write_all", full)
        with pytest.raises(StorageError, match="No space"):
            fenced.duplicate(f"{inside}/file", f"{inside}/copy")
    assert not (inside / "copy").exists()
    fenced.duplicate(f"{inside}/file", f"{inside}/copy")
    with pytest.raises(AlreadyExists):
        fenced.duplicate(f"{inside}/file", f"{inside}/copy")
    assert (inside / "copy").read_text() == "mine"
