"""What every storage does, on local files and on the object stores."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import AlreadyExists, NotFound, StorageError
from frazil.storage import Storage, storage_for
from frazil.storage.base import (
    ConditionalStore,
    ObjectVersion,
    PreconditionFailed,
    as_conditional,
)
from tests.support.gcs_server import gcs_server
from tests.support.object_server import SECRET, Bucket, azurite, versitygw

STORES: dict[str, Callable[[], AbstractContextManager[Bucket]]] = {
    "s3": versitygw,
    "azure": azurite,
    "gcs": gcs_server,
}
LARGE = 20_000_000


class Place:
    """A storage and a folder of it that nobody else uses."""

    def __init__(self, folder: str, properties: dict[str, str]) -> None:
        self.folder = folder
        self.storage: Storage = storage_for(folder, properties)

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    @property
    def store(self) -> ConditionalStore:
        store = as_conditional(self.storage)
        assert store is not None
        return store


@pytest.fixture(scope="module", params=["local", *STORES])
def base(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bucket | Path]:
    if request.param == "local":
        yield tmp_path_factory.mktemp("files")
        return
    with STORES[request.param]() as bucket:
        yield bucket


@pytest.fixture
def place(base: Bucket | Path) -> Place:
    name = uuid.uuid4().hex[:8]
    if isinstance(base, Path):
        return Place(f"{base}/{name}", {})
    return Place(f"{base.warehouse}/{name}", base.properties)


@pytest.fixture(scope="module", params=list(STORES))
def bucket(request: pytest.FixtureRequest) -> Iterator[Bucket]:
    with STORES[request.param]() as server:
        yield server


@pytest.fixture
def objects(bucket: Bucket) -> Place:
    return Place(f"{bucket.warehouse}/{uuid.uuid4().hex[:8]}", bucket.properties)


# --- every storage -----------------------------------------------------------------------------


def test_what_is_written_is_read(place: Place) -> None:
    place.storage.write_new(place.path("a/b.bin"), b"hello")
    place.storage.write_new(place.path("a/c.bin"), pa.py_buffer(b"arrow"))
    assert place.storage.read(place.path("a/b.bin")) == b"hello"
    assert place.storage.read(place.path("a/c.bin")) == b"arrow"
    assert place.storage.size(place.path("a/b.bin")) == 5


def test_a_new_file_never_replaces_another(place: Place) -> None:
    place.storage.write_new(place.path("v1.metadata.json"), b"first")
    with pytest.raises(AlreadyExists, match=r"v1\.metadata\.json"):
        place.storage.write_new(place.path("v1.metadata.json"), b"second")
    assert place.storage.read(place.path("v1.metadata.json")) == b"first"


def test_of_eight_writers_of_one_name_one_wins(place: Place) -> None:
    for round_ in range(5):
        path = place.path(f"{round_}.json")

        def write(writer: int, path: str = path) -> int | None:
            try:
                place.storage.write_new(path, str(writer).encode())
            except AlreadyExists:
                return None
            return writer

        with ThreadPoolExecutor(8) as pool:
            winners = [each for each in pool.map(write, range(8)) if each is not None]
        assert len(winners) == 1
        assert place.storage.read(path) == str(winners[0]).encode()


@pytest.mark.parametrize("name", ["plain.x", "a b.x", "day=2024-01-01/p%20q.x", "ü/+&=;,.x"])
def test_names_are_taken_as_they_are(place: Place, name: str) -> None:
    place.storage.write_new(place.path(name), b"x")
    assert place.storage.read(place.path(name)) == b"x"
    assert [info.path for info in place.storage.list(place.folder)] == [place.path(name)]
    assert place.storage.exists(place.path(name))
    place.storage.delete(place.path(name))
    assert not place.storage.exists(place.path(name))


def test_ranges_with_and_without_a_known_size(place: Place) -> None:
    data = bytes(range(256)) * 20_000  # 5 MB: more than what opening brings along
    place.storage.write_new(place.path("f.bin"), data)
    for size in (None, len(data)):
        opened = place.storage.open(place.path("f.bin"), size=size)
        assert opened.size == len(data)
        assert opened.read_at(0, 4) == b"\x00\x01\x02\x03"
        assert opened.read_at(255, 3) == b"\xff\x00\x01"
        assert opened.read_at(len(data) - 2, 2) == b"\xfe\xff"
        assert opened.read_at(len(data) - 2, 10) == b"\xfe\xff"
        source = opened.arrow()
        assert source.size() == len(data)
        source.seek(1_000_003)
        assert source.read(5) == data[1_000_003:1_000_008]


def test_an_empty_file(place: Place) -> None:
    place.storage.write_new(place.path("empty.bin"), b"")
    assert place.storage.read(place.path("empty.bin")) == b""
    assert place.storage.open(place.path("empty.bin")).size == 0
    assert place.storage.open(place.path("empty.bin")).read_at(0, 10) == b""


def test_what_is_not_there_is_named(place: Place) -> None:
    for call in (place.storage.read, place.storage.size, place.storage.open):
        with pytest.raises(NotFound, match=r"nothing\.bin"):
            call(place.path("nothing.bin"))
    assert not place.storage.exists(place.path("nothing.bin"))
    assert list(place.storage.list(place.path("nowhere"))) == []
    place.storage.delete(place.path("nothing.bin"))


@pytest.mark.parametrize("size", [0, 10, LARGE])
def test_a_stream_ends_in_a_whole_file(place: Place, size: int) -> None:
    piece = bytes(range(250)) * 4_000
    with place.storage.create(place.path("s.bin")) as stream:
        for start in range(0, size, len(piece)):
            stream.write(piece[: size - start])
    data = place.storage.read(place.path("s.bin"))
    assert len(data) == size
    assert data == (piece * (size // len(piece) + 1))[:size]


@pytest.mark.parametrize("size", [10, LARGE])
def test_a_stream_never_replaces_a_file(place: Place, size: int) -> None:
    place.storage.write_new(place.path("s.bin"), b"first")

    def write() -> None:
        with place.storage.create(place.path("s.bin")) as stream:
            stream.write(bytes(size))

    with pytest.raises(AlreadyExists, match=r"s\.bin"):
        write()
    assert place.storage.read(place.path("s.bin")) == b"first"


def test_pyarrow_writes_into_a_stream(place: Place) -> None:
    table = pa.table({"id": range(1_000)})
    with place.storage.create(place.path("t.parquet")) as stream:
        pq.write_table(table, pa.PythonFile(stream, mode="w"))
    assert pq.read_table(place.storage.open(place.path("t.parquet")).arrow()) == table


def test_listing_goes_below_a_folder_and_not_beside_it(place: Place) -> None:
    for name in ("t/a.bin", "t/deep/er/b.bin", "t2/c.bin", "t.bin"):
        place.storage.write_new(place.path(name), name.encode())
    listed = {info.path: info.size for info in place.storage.list(place.path("t"))}
    assert listed == {place.path("t/a.bin"): 7, place.path("t/deep/er/b.bin"): 15}
    assert all(info.modified_ms > 1_700_000_000_000 for info in place.storage.list(place.folder))


def test_many_files_are_deleted_at_once_though_some_are_gone(place: Place) -> None:
    paths = [place.path(f"{number}.bin") for number in range(30)]
    for path in paths[::2]:
        place.storage.write_new(path, b"x")
    place.storage.write_new(place.path("kept.bin"), b"x")
    place.storage.delete_all(paths)
    assert [info.path for info in place.storage.list(place.folder)] == [place.path("kept.bin")]
    place.storage.delete_all([])


# --- object stores -----------------------------------------------------------------------------


def test_an_object_is_replaced_only_while_it_is_the_version_that_was_read(objects: Place) -> None:
    path = objects.path("head.json")
    first = objects.store.put_new(path, b"one")
    read = objects.store.get(path)
    assert read is not None
    assert (read.data, read.version) == (b"one", first)
    second = objects.store.put_if(path, b"two", first)
    with pytest.raises(PreconditionFailed, match=r"head\.json"):
        objects.store.put_if(path, b"three", first)
    assert objects.store.get(path, unless=second) is None
    changed = objects.store.get(path, unless=first)
    assert changed is not None
    assert changed.data == b"two"


def test_an_object_is_created_once(objects: Place) -> None:
    objects.store.put_new(objects.path("name.json"), b"one")
    with pytest.raises(AlreadyExists, match=r"name\.json"):
        objects.store.put_new(objects.path("name.json"), b"two")
    assert objects.store.read(objects.path("name.json")) == b"one"


def test_an_object_that_is_gone_is_not_replaced(objects: Place) -> None:
    version = objects.store.put_new(objects.path("gone.json"), b"one")
    objects.store.delete(objects.path("gone.json"))
    with pytest.raises(PreconditionFailed):
        objects.store.put_if(objects.path("gone.json"), b"two", version)
    with pytest.raises(NotFound):
        objects.store.get(objects.path("gone.json"))


def test_a_counter_that_eight_writers_raise_is_exact(objects: Place) -> None:
    path = objects.path("counter")
    objects.store.put_new(path, b"0")

    def raise_it(_: int) -> None:
        while True:
            held = objects.store.get(path)
            assert held is not None
            try:
                objects.store.put_if(path, str(int(held.data) + 1).encode(), held.version)
            except StorageError:
                continue
            return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(raise_it, range(40)))
    assert objects.store.read(path) == b"40"


def test_folders_and_files_of_a_folder(objects: Place) -> None:
    for name in ("a.json", "x/b.json", "y/z/c.json"):
        objects.store.put_new(objects.path(name), b"{}")
    folders, files = objects.store.children(objects.folder)
    assert sorted(folders) == [objects.path("x"), objects.path("y")]
    assert [info.path for info in files] == [objects.path("a.json")]


def test_a_version_that_is_none_of_the_store_is_refused(objects: Place) -> None:
    objects.store.put_new(objects.path("head.json"), b"one")
    stale = ObjectVersion(e_tag='"0123456789abcdef0123456789abcdef"', generation="7")
    with pytest.raises(PreconditionFailed):
        objects.store.put_if(objects.path("head.json"), b"two", stale)


def test_ranges_that_are_told_are_fetched_in_one_call(objects: Place) -> None:
    data = bytes(range(256)) * 20_000
    objects.store.write_new(objects.path("f.bin"), data)
    opened = objects.store.open(objects.path("f.bin"), size=len(data))
    source = opened.arrow()
    ranges = [(0, 3), (300, 2), (len(data) - 1, 1)]
    with objects.store.recording() as calls:
        opened.fetch(ranges)
        read = []
        for offset, length in ranges:
            source.seek(offset)
            read.append(source.read(length))
    assert read == [b"\x00\x01\x02", b"\x2c\x2d", b"\xff"]
    assert [(call.verb, call.bytes) for call in calls] == [("read", 6)]


def test_a_stream_that_fails_leaves_nothing(objects: Place) -> None:
    def write(size: int) -> None:
        with objects.store.create(objects.path("f.bin")) as stream:
            stream.write(bytes(size))
            raise RuntimeError("the source broke")

    for size in (10, LARGE):
        with pytest.raises(RuntimeError, match="broke"):
            write(size)
    assert list(objects.store.list(objects.folder)) == []


def test_a_storage_travels_and_shows_no_secret(objects: Place, bucket: Bucket) -> None:
    objects.store.write_new(objects.path("f.bin"), b"x")
    there = pickle.loads(pickle.dumps(objects.store))
    assert there.read(objects.path("f.bin")) == b"x"
    secrets = [SECRET, bucket.properties.get("adls.account-key", SECRET)]
    assert not [secret for secret in secrets if secret in repr(there)]


def test_a_bucket_that_is_not_there_is_named(bucket: Bucket) -> None:
    container, at, account = bucket.name.partition("@")
    missing = f"{bucket.scheme}://no{container[2:]}{at}{account}/warehouse"
    storage = storage_for(missing, bucket.properties)
    for call in (
        lambda: storage.read(f"{missing}/x"),
        lambda: storage.write_new(f"{missing}/x", b"x"),
        lambda: list(storage.list(missing)),
    ):
        with pytest.raises(StorageError, match="no such bucket"):
            call()
