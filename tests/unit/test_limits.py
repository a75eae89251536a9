"""Files that would become far larger in memory than they are on disk are refused, by name."""

from __future__ import annotations

import gzip
import json
import lzma
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import frazil
from frazil import avro
from frazil.avro import by_name
from frazil.errors import FormatError, InvalidInput
from frazil.format.entries import manifest
from frazil.format.metadata import metadata_json
from frazil.format.vectors import puffin, roaring
from frazil.limits import Limits, decompress
from frazil.paimon.read import vector_files

ZEROS = 200 << 20
SYNC = b"0123456789abcdef"


def zigzag(value: int) -> bytes:
    value, out = value << 1, b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def container(field: Any, codec: str, count: int, block: bytes) -> bytes:
    """An Avro file of one block, written by hand."""
    fields = [{"name": "f", "field-id": 1, "type": field}]
    schema = json.dumps({"type": "record", "name": "r", "fields": fields}).encode()
    pairs = ((b"avro.schema", schema), (b"avro.codec", codec.encode()))
    parts = [zigzag(len(key)) + key + zigzag(len(value)) + value for key, value in pairs]
    body = zigzag(count) + zigzag(len(block)) + block + SYNC
    return b"Obj\x01" + zigzag(2) + b"".join(parts) + zigzag(0) + SYNC + body


def zeros(codec: str) -> bytes:
    """Two hundred megabytes of zeros, compressed."""
    plain = bytes(ZEROS)
    match codec:
        case "deflate":
            return zlib.compress(plain)[2:-4]
        case "zstandard":
            return zstandard.ZstdCompressor().compress(plain)
        case "xz":
            return lzma.compress(plain, preset=0)
        case _:
            packed: bytes = pa.compress(plain, "snappy", asbytes=True)
            return packed + struct.pack(">I", zlib.crc32(plain))


READERS: dict[str, Callable[[bytes], Any]] = {
    "Iceberg": lambda data: avro.decode(data, {(1,)}, path="m.avro"),
    "Paimon": lambda data: by_name.read(data, ["f"], path="m.avro"),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_billion_records_without_bytes_are_refused(read: Callable[[bytes], Any]) -> None:
    data = container("null", "null", 10**9, b"")
    assert len(data) < 200
    with pytest.raises(FormatError, match=r"m\.avro: .* 1000000000 records"):
        read(data)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_items_without_bytes_are_refused(read: Callable[[bytes], Any]) -> None:
    many = zigzag(1000) + zigzag(0)
    with pytest.raises(FormatError, match="take no bytes"):
        read(container({"type": "array", "items": "null"}, "null", 1, many))


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "xz"])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_blocks_that_expand_too_far_are_refused(read: Callable[[bytes], Any], codec: str) -> None:
    block = zeros(codec)
    assert len(block) < 250_000
    with pytest.raises(FormatError, match=r"m\.avro: .* would become more than"):
        read(container("bytes", codec, 1, block))


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("claim", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x80\x20"])
def test_snappy_that_claims_too_much_is_refused(read: Callable[[bytes], Any], claim: bytes) -> None:
    """Four gigabytes, and a terabyte."""
    with pytest.raises(FormatError, match=r"m\.avro"):
        read(container("bytes", "snappy", 1, claim + b"\x00a" + bytes(4)))


def test_many_blocks_that_are_too_much_together_are_refused() -> None:
    block = zlib.compress(zigzag(1 << 20) + bytes(1 << 20))[2:-4]
    data = container("bytes", "deflate", 1, block)
    one = len(zigzag(1) + zigzag(len(block)) + block + SYNC)
    small = Limits(max_bytes=3 << 20)
    with pytest.raises(FormatError, match="would become"):
        avro.decode(data + data[-one:] * 4, set(), path="m.avro", limits=small)


def test_metadata_json_that_expands_too_far_is_refused() -> None:
    with pytest.raises(FormatError, match=r"t\.metadata\.json: .* would become more than"):
        metadata_json.loads(gzip.compress(b" " * ZEROS), path="t.metadata.json")


def test_gzip_in_several_members_is_read_and_cut_short_is_refused() -> None:
    two = gzip.compress(b"ab") + gzip.compress(b"cd")
    assert decompress(two, "gzip") == b"abcd"
    with pytest.raises(FormatError, match="cut short"):
        decompress(two[:-3], "gzip")


def full_bitmap() -> bytes:
    """A portable 32-bit roaring bitmap of all 2**32 values, in runs: written by hand."""
    count = 1 << 16
    head = struct.pack("<I", (count - 1) << 16 | 12347) + b"\xff" * (count // 8)
    described = b"".join(struct.pack("<HH", key, 0xFFFF) for key in range(count))
    first = len(head) + len(described) + 4 * count
    offsets = b"".join(struct.pack("<I", first + 6 * key) for key in range(count))
    return head + described + offsets + struct.pack("<HHH", 1, 0, 0xFFFF) * count


def test_deletion_vectors_of_too_many_positions_are_refused() -> None:
    body = puffin.VECTOR_MAGIC + struct.pack("<QI", 1, 0) + full_bitmap()
    blob = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    with pytest.raises(FormatError, match=r"v\.puffin: .*4,294,967,296 positions"):
        puffin.read_vector(blob, path="v.puffin")
    body = vector_files.MAGIC_32 + full_bitmap()
    data = b"\x01" + struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    with pytest.raises(FormatError, match="positions"):
        vector_files.read_vector(data, offset=1, length=len(body))


def test_a_vector_as_large_as_asked_for_is_read() -> None:
    three = roaring.decode(
        struct.pack("<QIIIHHHH", 1, 0, 12346, 1, 0, 2, 16, 0) + struct.pack("<HHH", 1, 5, 9)
    )
    assert three.tolist() == [1, 5, 9]
    encoded = roaring.encode(three)
    assert roaring.decode(encoded, limits=Limits(max_bytes=24)).tolist() == [1, 5, 9]
    with pytest.raises(FormatError, match="3 positions"):
        roaring.decode(encoded, limits=Limits(max_bytes=23))


class _Endless:
    """A file that says it is as large as an entry claims."""

    size = 1 << 50

    def read_at(self, offset: int, length: int) -> bytes:
        raise AssertionError(f"asked for {length} bytes")


def test_a_vector_that_claims_to_be_huge_is_not_fetched() -> None:
    with pytest.raises(FormatError, match=r"v\.puffin"):
        puffin.read_vector_at(_Endless(), offset=4, size_in_bytes=59 * 10**8, path="v.puffin")


def test_a_footer_that_expands_too_far_is_refused() -> None:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(bytes(ZEROS))
    packed = sink.getvalue().to_pybytes()
    data = b"PFA1" + b"PFA1" + packed + struct.pack("<iI", len(packed), 1) + b"PFA1"
    with pytest.raises(FormatError, match=r"v\.puffin: .*would become more than"):
        puffin.read_footer(data, path="v.puffin", limits=Limits(max_ratio=100))


def test_parquet_of_repeated_values_is_bounded_by_their_count() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": pa.repeat(7, 300_000)}), sink, compression="zstd")
    data = sink.getvalue()
    assert data.size < 5_000
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata
    low, enough = Limits(max_bytes=1_000_000), Limits(max_bytes=1_300_000)
    manifest.check_footer(footer, columns=1, stored=data.size, limits=enough, path="m")
    with pytest.raises(FormatError, match=r"m\.parquet: .* would become 1,200,000"):
        manifest.check_footer(footer, columns=1, stored=data.size, limits=low, path="m.parquet")


def test_limits_are_options_of_connect(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as catalog:
        catalog.create_namespace("a")
        table = catalog.create_table("a.t", pa.schema([("x", pa.int64())]))
        table.append(pa.table({"x": [1]}))
    low = {"read.decode.max-bytes": "10"}
    with (
        frazil.connect(tmp_path, **low) as catalog,
        pytest.raises(FormatError, match=r"root.*larger read\.decode\.max-bytes"),
    ):
        catalog.load_table("a.t").scan().to_arrow()
    with frazil.connect(tmp_path, **{"read.decode.max-bytes": "1000000"}) as catalog:
        assert catalog.load_table("a.t").scan().count() == 1


@pytest.mark.parametrize("text", ["", "-1", "0", "1e9", "many", "²", "9" * 30])
def test_limits_that_are_no_numbers_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"read\.decode\.max-ratio is"):
        Limits.of({"read.decode.max-ratio": text})
