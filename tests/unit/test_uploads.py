"""Uploads that end before their object is whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from frazil.storage.uploads import PART_BYTES, Upload


def unused(data: bytes) -> None:
    raise AssertionError("a large object was put in one request")


def test_a_large_object_comes_in_parts() -> None:
    received: list[bytes] = []
    upload = Upload(put=unused, put_parts=received.extend)
    upload.write(memoryview(bytes(PART_BYTES + 5)))
    upload.write(memoryview(b"end"))
    upload.close()
    assert [len(part) for part in received] == [PART_BYTES, 8]
    assert received[-1].endswith(b"end")


def test_a_small_object_is_one_request() -> None:
    received: list[bytes] = []
    upload = Upload(put=received.append, put_parts=lambda parts: None)
    upload.write(memoryview(b"ab"))
    upload.write(memoryview(b"c"))
    upload.close()
    assert received == [b"abc"]


def test_an_upload_that_is_taken_back_raises_where_parts_are_awaited() -> None:
    ended = threading.Event()

    def put_parts(parts: Iterator[bytes]) -> None:
        try:
            list(parts)
        except BaseException:
            ended.set()
            raise

    upload = Upload(put=unused, put_parts=put_parts)
    upload.write(memoryview(bytes(PART_BYTES)))
    upload.abort()
    assert ended.is_set()


def test_an_upload_can_be_taken_back_by_its_own_thread() -> None:
    ended = threading.Event()

    def put_parts(parts: Iterator[bytes]) -> None:
        try:
            for _ in parts:
                upload.abort()  # as when garbage is collected here
        except BaseException:
            ended.set()
            raise

    upload = Upload(put=unused, put_parts=put_parts)
    upload.write(memoryview(bytes(PART_BYTES)))
    assert ended.wait(timeout=30)


def test_a_failed_upload_is_told_to_whoever_writes() -> None:
    def put_parts(parts: Iterator[bytes]) -> None:
        next(parts)
        raise OSError("the store is gone")

    def write_on() -> None:
        for _ in range(1_000):
            upload.write(memoryview(bytes(PART_BYTES)))

    upload = Upload(put=unused, put_parts=put_parts)
    with pytest.raises(OSError, match="the store is gone"):
        write_on()
