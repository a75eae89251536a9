"""Object stores that fail: what is left in them, what is repeated, and what the error says."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import AlreadyExists, FrazilError, StorageError
from frazil.storage import Storage, storage_for
from frazil.storage.base import ConditionalStore, StoreBusy
from tests.support.object_server import SECRET, Bucket, new_bucket
from tests.support.request_proxy import Fault, Proxy, request_proxy

QUICK = {
    "s3.retry.num-retries": "2",
    "s3.retry.min-wait-ms": "1",
    "s3.retry.max-wait-ms": "5",
}
BUSY = Fault(status=503, code="SlowDown", message="Please reduce your request rate.")
CUT = Fault()
PART = 200_000
LARGE = 5 * PART
ROWS = pa.schema([("id", pa.int64()), ("s", pa.string())])


@pytest.fixture
def proxy(object_server: Bucket) -> Iterator[Proxy]:
    with request_proxy(new_bucket(object_server)) as proxy:
        yield proxy


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uploads have parts that a store would not complete, but these are to fail."""
    monkeypatch.setattr("frazil.storage.objects.PART_BYTES", PART)
    monkeypatch.setattr("frazil.storage.uploads.PART_BYTES", PART)


@pytest.fixture
def storage(proxy: Proxy) -> Storage:
    return storage_for(proxy.bucket.warehouse, {**proxy.bucket.properties, **QUICK})


@pytest.fixture
def path(proxy: Proxy) -> str:
    return f"{proxy.bucket.warehouse}/f.bin"


# --- uploads -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("method", "part"),
    [
        pytest.param("POST", "uploads", id="begin"),
        pytest.param("PUT", "partNumber=1&", id="first-part"),
        pytest.param("PUT", "partNumber=5&", id="last-part"),
        pytest.param("POST", "uploadId=", id="complete"),
    ],
)
@pytest.mark.parametrize("fault", [BUSY, CUT, Fault(status=403, code="AccessDenied")])
def test_an_upload_that_fails_leaves_nothing_in_the_store(
    storage: Storage, proxy: Proxy, path: str, method: str, part: str, fault: Fault
) -> None:
    proxy.fail_next(fault, times=50, method=method, part=part)

    def write() -> None:
        with storage.create(path) as stream:
            for _ in range(5):
                stream.write(bytes(PART))

    with pytest.raises(StorageError, match=r"f\.bin"):
        write()
    assert proxy.bucket.incomplete_uploads() == []
    assert not storage.exists(path)


@pytest.mark.usefixtures("small_parts")
def test_a_stream_that_nobody_closes_leaves_nothing_in_the_store(
    storage: Storage, proxy: Proxy, path: str
) -> None:
    stream = storage.create(path)
    stream.write(bytes(LARGE))
    assert proxy.bucket.incomplete_uploads() != []
    del stream
    assert proxy.bucket.incomplete_uploads() == []


@pytest.mark.usefixtures("small_parts")
def test_a_write_of_rows_that_fails_leaves_no_upload(proxy: Proxy, tmp_path: Path) -> None:
    place = {"warehouse": proxy.bucket.warehouse, **proxy.bucket.properties}
    schema = pa.schema([("b", pa.binary())])
    with frazil.connect(f"sqlite:///{tmp_path}/c.db", **place) as catalog:
        properties = {"write.parquet.row-group-limit": "1"}
        table = catalog.create_table("s.t", schema, properties=properties)

        def rows() -> Iterator[pa.RecordBatch]:
            for seed in range(10):
                yield pa.record_batch({"b": [random.Random(seed).randbytes(100_000)]})
            raise RuntimeError("the source broke")

        reader = pa.RecordBatchReader.from_batches(schema, rows())
        with pytest.raises(RuntimeError, match="broke"):
            table.append(reader)
        assert "uploads=" in [request.query for request in proxy.requests]
        assert proxy.bucket.incomplete_uploads() == []
        storage = storage_for(table.location, proxy.bucket.properties)
        assert not [info for info in storage.list(table.location) if "/data/" in info.path]


# --- repeated requests -------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [BUSY, CUT, Fault(status=500, code="InternalError")])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_new_file_whose_answer_was_lost_is_written_once(
    storage: Storage, proxy: Proxy, path: str, fault: Fault, after: bool
) -> None:
    spoiled = Fault(status=fault.status, code=fault.code, after=after)
    proxy.fail_next(spoiled, method="PUT")
    storage.write_new(path, b"mine")
    assert storage.read(path) == b"mine"
    with pytest.raises(AlreadyExists):
        storage.write_new(path, b"yours")


def test_a_new_file_whose_answer_was_lost_is_not_taken_for_another_ones(
    storage: Storage, proxy: Proxy, path: str
) -> None:
    storage.write_new(path, b"theirs")
    proxy.fail_next(BUSY, method="PUT")
    with pytest.raises(AlreadyExists):
        storage.write_new(path, b"mine")
    assert storage.read(path) == b"theirs"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_conditional_put_is_sent_once(
    storage: ConditionalStore, proxy: Proxy, path: str, after: bool
) -> None:
    version = storage.put_new(path, b"one")
    proxy.clear()
    proxy.fail_next(Fault(status=503, code="SlowDown", after=after), method="PUT")
    with pytest.raises(StoreBusy):
        storage.put_if(path, b"two", version)
    assert proxy.methods() == ["PUT"]
    assert storage.read(path) == (b"two" if after else b"one")


@pytest.mark.parametrize("fault", [BUSY, CUT])
def test_a_read_is_repeated(storage: Storage, proxy: Proxy, path: str, fault: Fault) -> None:
    storage.write_new(path, b"x")
    proxy.fail_next(fault, times=2)
    assert storage.read(path) == b"x"


# --- what errors say ---------------------------------------------------------------------------

SAID: dict[str, tuple[Fault, str]] = {
    "denied": (Fault(status=403, code="AccessDenied"), "AccessDenied.*grant"),
    "key": (Fault(status=403, code="InvalidAccessKeyId"), "check s3.access-key-id"),
    "secret": (Fault(status=403, code="SignatureDoesNotMatch"), "check s3.secret-access-key"),
    "clock": (Fault(status=403, code="RequestTimeTooSkewed"), "clock"),
    "expired": (Fault(status=400, code="ExpiredToken"), "expired: renew"),
    "bucket": (Fault(status=404, code="NoSuchBucket"), "no such bucket"),
    "region": (
        Fault(
            status=400,
            code="AuthorizationHeaderMalformed",
            message="the region 'us-east-1' is wrong; expecting 'eu-west-1'",
        ),
        "another region: set s3.region=eu-west-1",
    ),
    "redirect": (Fault(status=301, code="PermanentRedirect"), "another region: set s3.region"),
    "busy": (BUSY, "overloaded .*SlowDown.*try again later"),
    "conflict": (Fault(status=409, code="ConditionalRequestConflict"), "try again later"),
    "broken": (Fault(status=500, code="InternalError"), "500 InternalError.*try again later"),
    "cut": (CUT, "127.0.0.1:.* cannot be reached"),
}
CALLS: dict[str, Callable[[Storage, str], object]] = {
    "read": lambda storage, path: storage.read(path),
    "write": lambda storage, path: storage.write_new(path, b"x"),
    "list": lambda storage, path: list(storage.list(path.rpartition("/")[0])),
    "delete": lambda storage, path: storage.delete_all([path, f"{path}2"]),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("what", SAID)
def test_an_error_says_what_to_do(
    storage: Storage,
    proxy: Proxy,
    path: str,
    what: str,
    call: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("frazil.storage.objects._MAX_PUTS", 2)
    fault, expected = SAID[what]
    proxy.fail_next(fault, times=100)
    with pytest.raises(StorageError, match=rf"warehouse.*{call} failed: .*{expected}") as caught:
        CALLS[call](storage, path)
    assert SECRET not in str(caught.value)


def test_a_wrong_secret_is_told_by_a_real_store(bucket: Bucket) -> None:
    properties = {**bucket.properties, "s3.secret-access-key": "wrong"}
    with pytest.raises(StorageError, match=r"check s3\.secret-access-key"):
        storage_for(bucket.warehouse, properties).read(f"{bucket.warehouse}/x")


def test_a_store_that_is_not_there_is_told(bucket: Bucket) -> None:
    properties = {**bucket.properties, **QUICK, "s3.endpoint": "http://127.0.0.1:9"}
    with pytest.raises(StorageError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        storage_for(bucket.warehouse, properties).read(f"{bucket.warehouse}/x")


WORK: dict[str, Callable[[frazil.Table], object]] = {
    "update": lambda table: table.update({"s": "y"}, "id % 2 = 0"),
    "delete": lambda table: table.delete("id % 2 = 0"),
    "upsert": lambda table: table.upsert([{"id": 1, "s": "z"}], on=["id"]),
    "append": lambda table: table.append([{"id": 1, "s": "z"}]),
    "compact": lambda table: table.compact(rewrite_all=True),
    "scan": lambda table: table.scan("id * 2 > 7").to_arrow(),
    "expire": lambda table: table.expire_snapshots("0 seconds", keep_last=1),
}


@pytest.mark.parametrize("what", WORK)
def test_a_busy_store_in_the_middle_of_work_is_an_error_of_the_store(
    proxy: Proxy, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frazil.storage.objects._MAX_PUTS", 1)
    place = {"warehouse": proxy.bucket.warehouse, **proxy.bucket.properties, **QUICK}
    database = f"sqlite:///{tmp_path}/c.db"
    with frazil.connect(database, **place) as catalog:
        table = catalog.create_table("s.t", ROWS)
        for start in (0, 50):
            ids = range(start, start + 50)
            table.append(pa.table({"id": ids, "s": ["x"] * 50}, schema=ROWS))
    with frazil.connect(database, **place) as catalog:
        table = catalog.load_table("s.t")
        proxy.fail_next(BUSY, times=10_000)
        with pytest.raises(FrazilError) as caught:
            WORK[what](table)
        assert isinstance(caught.value, StorageError)
        assert "SlowDown" in str(caught.value)
        proxy.fault = lambda request: None
        assert table.scan().count() == 100
