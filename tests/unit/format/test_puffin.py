"""Puffin files and deletion vectors, against bytes of Iceberg Java and the reader of PyIceberg."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap, BitMap64

from frazil.errors import FormatError, InvalidInput
from frazil.format.vectors import puffin, roaring

# Written by Iceberg Java 1.12.0's deletion vector writer: positions 0, 7, 9 and 300 of one data
# file, 1000 to 3999 and 5 * 2**32 + 2 of another.
JAVA_BLOBS = bytes.fromhex(
    "50464131"
    "00000028d1d339640100000000000000000000003a30000001000000000003001000000000000700"
    "09002c019453afec"
    "00000065d1d339640600000000000000000000003b300000010000b70b0100e803b70b010000003a"
    "30000000000000020000003a30000000000000030000003a30000000000000040000003a30000000"
    "000000050000003a3000000100000000000000100000000200f0e8b4df"
)
JAVA_FOOTER = (
    '{"blobs":[{"type":"deletion-vector-v1","fields":[2147483645],"snapshot-id":-1,'
    '"sequence-number":-1,"offset":4,"length":48,"properties":'
    '{"referenced-data-file":"s3://b/t/data/a.parquet","cardinality":"4"}},'
    '{"type":"deletion-vector-v1","fields":[2147483645],"snapshot-id":-1,'
    '"sequence-number":-1,"offset":52,"length":109,"properties":'
    '{"referenced-data-file":"s3://b/t/data/ü b%20.parquet","cardinality":"3001"}}],'
    '"properties":{"created-by":"Apache Iceberg 1.12.0 '
    '(commit 212aa894e919ff9fdf89160da4aadcbe6858ac01)"}}'
).encode()


def puffin_file(blobs: bytes, footer: bytes, *, flags: int = 0) -> bytes:
    return blobs + b"PFA1" + footer + struct.pack("<iI", len(footer), flags) + b"PFA1"


JAVA_FILE = puffin_file(JAVA_BLOBS, JAVA_FOOTER)


def footer_with(**changes: object) -> bytes:
    """A file whose one blob, of 8 bytes, is described with some changes."""
    blob: dict[str, object] = {
        "type": "deletion-vector-v1",
        "fields": [1],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4,
        "length": 8,
        "properties": {"referenced-data-file": "a", "cardinality": "1"},
    }
    blob.update(changes)
    return puffin_file(b"PFA1" + bytes(8), json.dumps({"blobs": [blob]}).encode())


@dataclass
class Ranges:
    """A file that records which ranges are read."""

    data: bytes
    read: list[tuple[int, int]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.data)

    def read_at(self, offset: int, n: int, /) -> bytes:
        self.read.append((offset, n))
        return self.data[offset : offset + n]


def framed(bitmap: bytes) -> bytes:
    body = b"\xd1\xd3\x39\x64" + bitmap
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def test_reads_vectors_that_iceberg_java_wrote() -> None:
    footer = puffin.read_footer(JAVA_FILE, path="dv.puffin")
    assert footer.properties["created-by"].startswith("Apache Iceberg 1.12.0")
    (first, vector), (second, _) = footer.vectors(path="dv.puffin")
    assert first == "s3://b/t/data/a.parquet"
    assert vector == puffin.StoredVector(
        location="dv.puffin", offset=4, size_in_bytes=48, cardinality=4
    )
    assert second == "s3://b/t/data/ü b%20.parquet"
    assert puffin.read_vector(JAVA_FILE[4:52], path="dv.puffin", cardinality=4).tolist() == [
        0,
        7,
        9,
        300,
    ]
    assert puffin.read_vector(JAVA_FILE[52:161], path="dv.puffin").tolist() == [
        *range(1000, 4000),
        5 * 2**32 + 2,
    ]


def test_writes_the_bytes_that_iceberg_java_writes() -> None:
    positions = np.array([0, 7, 9, 300])
    assert puffin.encode_vector(positions) == JAVA_FILE[4:52]
    data, written = puffin.write_vectors(
        [("s3://b/t/data/a.parquet", positions)], location="dv.puffin", created_by="me"
    )
    expected = (
        '{"blobs":[{"type":"deletion-vector-v1","fields":[2147483645],"snapshot-id":-1,'
        '"sequence-number":-1,"offset":4,"length":48,"properties":'
        '{"referenced-data-file":"s3://b/t/data/a.parquet","cardinality":"4"}}],'
        '"properties":{"created-by":"me"}}'
    )
    assert data == puffin_file(JAVA_FILE[:52], expected.encode())
    assert written == (
        puffin.StoredVector(location="dv.puffin", offset=4, size_in_bytes=48, cardinality=4),
    )


def test_pyiceberg_reads_the_vectors_we_write() -> None:
    vectors = [
        ("file:///t/data/a.parquet", np.array([0, 5, 70_000])),
        ("file:///t/data/ü.parquet", np.arange(1000, 90_000)),
        ("file:///t/data/c.parquet", np.arange(0, 200_000, 3)),
    ]
    data, _ = puffin.write_vectors(vectors, location="x", created_by="frazil")
    read = deletion_vectors_from_puffin_file(PuffinFile(data))
    assert [vector.referenced_data_file for vector in read] == [location for location, _ in vectors]
    for vector, (_, positions) in zip(read, vectors, strict=True):
        assert vector.to_vector().to_pylist() == positions.tolist()


def test_pyiceberg_and_we_read_the_same_from_java() -> None:
    first, _ = deletion_vectors_from_puffin_file(PuffinFile(JAVA_FILE))
    assert first.referenced_data_file == "s3://b/t/data/a.parquet"
    assert first.to_vector().to_pylist() == puffin.decode_vector(JAVA_FILE[4:52]).tolist()


@pytest.mark.parametrize(
    "positions",
    [
        pytest.param([], id="empty"),
        pytest.param([0], id="one"),
        pytest.param([0, 65_535, 65_536, 2**32 - 1, 2**32, 3 * 2**32 + 7], id="borders"),
        pytest.param(list(range(70_000, 140_000)), id="runs"),
        pytest.param(list(range(0, 65_536, 2)), id="bit set"),
        pytest.param([*range(0, 9000, 2), *range(70_000, 80_000), 150_000, 200_000], id="mixed"),
    ],
)
@pytest.mark.parametrize("with_runs", [True, False])
def test_reads_every_container_kind_a_peer_serialises(
    positions: list[int], with_runs: bool
) -> None:
    peer = BitMap64(positions)
    if with_runs:
        peer.run_optimize()
    assert puffin.decode_vector(framed(peer.serialize())).tolist() == positions
    assert list(BitMap64.deserialize(roaring.encode(np.array(positions, np.int64)))) == positions


def test_a_32_bit_bitmap_is_read_where_it_stands() -> None:
    data = b"\xff\xff" + BitMap([1, 70_000]).serialize() + b"\xff"
    found, end = roaring.decode_32(data, offset=2, base=10)
    assert found.tolist() == [11, 70_010]
    assert end == len(data) - 1


def test_largest_position_of_iceberg_survives() -> None:
    largest = 0x7FFFFFFE_80000000
    assert puffin.decode_vector(puffin.encode_vector(np.array([largest]))).tolist() == [largest]
    with pytest.raises(InvalidInput):
        puffin.encode_vector(np.array([largest + 1]))


@pytest.mark.parametrize(
    "positions",
    [
        pytest.param(np.array([2, 1]), id="descending"),
        pytest.param(np.array([1, 1]), id="repeated"),
        pytest.param(np.array([-1]), id="negative"),
        pytest.param(np.array([0.5]), id="floating point"),
    ],
)
def test_what_is_no_list_of_positions_is_not_encoded(positions: np.ndarray) -> None:
    with pytest.raises(InvalidInput):
        puffin.encode_vector(positions)


@pytest.mark.parametrize(
    "blob",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(JAVA_FILE[4:14], id="shorter than its framing"),
        pytest.param(JAVA_FILE[4:51], id="a byte short"),
        pytest.param(JAVA_FILE[4:53], id="a byte long"),
        pytest.param(JAVA_FILE[4:8] + b"\xd1\xd3\x39\x65" + JAVA_FILE[12:52], id="wrong magic"),
        pytest.param(JAVA_FILE[4:51] + b"\x00", id="wrong checksum"),
        pytest.param(framed(b""), id="no bitmap"),
        pytest.param(framed(struct.pack("<Q", 2**63)), id="a count past the end"),
        pytest.param(framed(struct.pack("<Q", 0) + b"\x00"), id="bytes after the bitmap"),
        pytest.param(
            framed(struct.pack("<QI", 1, 2**31 - 1) + BitMap([1]).serialize()), id="key too large"
        ),
        pytest.param(
            framed(
                struct.pack("<QI", 2, 1)
                + BitMap([1]).serialize()
                + struct.pack("<I", 1)
                + BitMap([2]).serialize()
            ),
            id="repeated key",
        ),
        pytest.param(framed(struct.pack("<QII", 1, 0, 12345)), id="unknown cookie"),
        pytest.param(framed(struct.pack("<QIII", 1, 0, 12346, 65_537)), id="too many containers"),
        pytest.param(
            framed(struct.pack("<QIIIHHIHH", 1, 0, 12346, 1, 0, 1, 16, 9, 9)), id="repeated value"
        ),
        pytest.param(
            framed(struct.pack("<QIIIHHIHH", 1, 0, 12346, 1, 0, 1, 17, 8, 9)), id="wrong offset"
        ),
        pytest.param(
            framed(struct.pack("<QIIIHHHHIIHH", 1, 0, 12346, 2, 3, 0, 3, 0, 24, 26, 9, 9)),
            id="repeated container",
        ),
        pytest.param(
            framed(struct.pack("<QIIBHHHHH", 1, 0, 12347, 1, 0, 9, 1, 5, 8)), id="run too short"
        ),
        pytest.param(
            framed(struct.pack("<QIIBHHHHH", 1, 0, 12347, 1, 0, 9, 1, 65_530, 9)),
            id="run leaves its container",
        ),
        pytest.param(
            framed(struct.pack("<QIIBHHHHHHH", 1, 0, 12347, 1, 0, 9, 2, 5, 4, 9, 4)),
            id="overlapping runs",
        ),
        pytest.param(
            framed(struct.pack("<QIIIHHI", 1, 0, 12346, 1, 0, 4999, 16) + bytes(8192)),
            id="bit set without its bits",
        ),
    ],
)
def test_bad_vectors_are_refused_and_name_the_file(blob: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        puffin.read_vector(blob, path="data/dv.puffin")
    assert caught.value.path == "data/dv.puffin"
    assert caught.value.field == "deletion-vector-v1"


def test_a_vector_that_disagrees_with_the_metadata_is_refused() -> None:
    blob = JAVA_FILE[4:52]
    assert len(puffin.read_vector(blob, path="x", cardinality=4, record_count=301)) == 4
    with pytest.raises(FormatError, match="metadata says 5"):
        puffin.read_vector(blob, path="x", cardinality=5)
    with pytest.raises(FormatError, match="position 300"):
        puffin.read_vector(blob, path="x", record_count=300)


def test_runs_past_the_limit_are_refused_before_they_are_expanded() -> None:
    # 65,536 containers of one run each stand for 2**32 positions.
    peer = BitMap()
    peer.add_range(0, 2**32)
    blob = framed(struct.pack("<QI", 1, 0) + peer.serialize())
    with pytest.raises(FormatError, match="limit is 1000"):
        puffin.decode_vector(blob, limit=1000)


def test_one_vector_is_one_range_read() -> None:
    source = Ranges(JAVA_FILE)
    found = puffin.read_vector_at(source, offset=4, size_in_bytes=48, cardinality=4, path="x")
    assert found.tolist() == [0, 7, 9, 300]
    assert source.read == [(4, 48)]


def test_a_range_outside_the_file_is_refused() -> None:
    with pytest.raises(FormatError, match="the file has"):
        puffin.read_vector_at(JAVA_FILE, offset=900, size_in_bytes=48, path="x")
    with pytest.raises(FormatError):
        puffin.read_vector_at(JAVA_FILE, offset=-1, size_in_bytes=48, path="x")


def test_a_footer_is_one_range_read() -> None:
    source = Ranges(JAVA_FILE)
    assert len(puffin.read_footer(source).blobs) == 2
    assert source.read == [(0, len(JAVA_FILE))]


def test_only_the_tail_of_a_large_file_is_read() -> None:
    vectors = [("a", np.arange(0, 1_000_000, 7))]
    data, _ = puffin.write_vectors(vectors, location="x", created_by="frazil")
    source = Ranges(data)
    assert len(puffin.read_footer(source).blobs) == 1
    assert sum(size for _, size in source.read) < 20_000 < len(data)


def test_a_footer_larger_than_the_tail_is_read_whole() -> None:
    vectors = [(f"data/{number:040}.parquet", np.array([number])) for number in range(300)]
    data, written = puffin.write_vectors(vectors, location="x", created_by="frazil")
    source = Ranges(data)
    stored = puffin.read_footer(source).vectors(path="x")
    assert stored == tuple(zip((name for name, _ in vectors), written, strict=True))
    assert len(source.read) == 2


def test_a_compressed_footer_is_read() -> None:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(JAVA_FOOTER)
    compressed = sink.getvalue().to_pybytes()
    data = puffin_file(JAVA_BLOBS, compressed, flags=1)
    assert puffin.read_footer(data) == puffin.read_footer(JAVA_FILE)
    with pytest.raises(FormatError):
        puffin.read_footer(puffin_file(JAVA_BLOBS, JAVA_FOOTER, flags=1))


def test_other_blobs_are_passed_over() -> None:
    data = footer_with(type="apache-datasketches-theta-v1", properties={"ndv": "3"})
    footer = puffin.read_footer(data)
    assert footer.blobs[0].properties == {"ndv": "3"}
    assert footer.vectors(path="x") == ()


def test_a_file_without_blobs_is_read() -> None:
    footer = puffin.read_footer(puffin_file(b"PFA1", b'{"blobs":[]}'))
    assert footer == puffin.Footer(blobs=(), properties={})
    data, written = puffin.write_vectors([], location="x", created_by="frazil")
    assert written == ()
    assert puffin.read_footer(data).properties == {"created-by": "frazil"}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"PFA1PFA1", id="too short"),
        pytest.param(JAVA_FILE[:-1] + b"2", id="wrong last magic"),
        pytest.param(b"PFA2" + JAVA_FILE[4:], id="wrong first magic"),
        pytest.param(JAVA_FILE.replace(b"PFA1{", b"PFA2{"), id="wrong footer magic"),
        pytest.param(puffin_file(b"PFA1", b"{}"), id="no blobs"),
        pytest.param(puffin_file(b"PFA1", b"[]"), id="no object"),
        pytest.param(puffin_file(b"PFA1", b'{"blobs":[7]}'), id="a number for a blob"),
        pytest.param(puffin_file(b"PFA1", b'{"blobs":['), id="half a JSON text"),
        pytest.param(puffin_file(b"PFA1", b"\xff"), id="no text"),
        pytest.param(puffin_file(b"PFA1", b"[" * 100_000), id="JSON nested too deep"),
        pytest.param(puffin_file(b"PFA1", b'{"blobs":[]}', flags=2), id="unknown flag"),
        pytest.param(b"PFA1PFA1" + struct.pack("<iI", -1, 0) + b"PFA1", id="negative size"),
        pytest.param(b"PFA1PFA1" + struct.pack("<iI", 99, 0) + b"PFA1", id="size past the file"),
    ],
)
def test_bad_files_are_refused_and_named(data: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        puffin.read_footer(data, path="data/dv.puffin")
    assert caught.value.path == "data/dv.puffin"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"type": 5}, "blobs[0].type"),
        ({"fields": "1"}, "blobs[0].fields"),
        ({"fields": [True]}, "blobs[0].fields"),
        ({"snapshot-id": None}, "blobs[0].snapshot-id"),
        ({"sequence-number": 1.5}, "blobs[0].sequence-number"),
        ({"offset": "4"}, "blobs[0].offset"),
        ({"offset": 3}, "blobs[0]"),
        ({"length": 9}, "blobs[0]"),
        ({"length": -1}, "blobs[0]"),
        ({"length": 10**30}, "blobs[0].length"),
        ({"compression-codec": 1}, "blobs[0].compression-codec"),
        ({"properties": {"a": 1}}, "blobs[0].properties"),
    ],
)
def test_a_bad_field_of_a_blob_is_named(change: dict[str, object], named: str) -> None:
    with pytest.raises(FormatError) as caught:
        puffin.read_footer(footer_with(**change), path="x")
    assert (caught.value.path, caught.value.field) == ("x", named)


@pytest.mark.parametrize(
    "change",
    [
        {"properties": {"cardinality": "1"}},
        {"properties": {"referenced-data-file": "a"}},
        {"properties": {"referenced-data-file": "a", "cardinality": "-1"}},
        {"properties": {"referenced-data-file": "a", "cardinality": "²"}},
        {"compression-codec": "zstd"},
    ],
)
def test_a_vector_without_what_it_needs_is_named(change: dict[str, object]) -> None:
    footer = puffin.read_footer(footer_with(**change))
    with pytest.raises(FormatError) as caught:
        footer.vectors(path="x")
    assert (caught.value.path, caught.value.field) == ("x", "blobs[0]")


@pytest.mark.parametrize(
    "vectors",
    [
        pytest.param(lambda: [("a", np.array([], np.int64))], id="no positions"),
        pytest.param(lambda: [("a", np.array([1])), ("a", np.array([2]))], id="two for a file"),
    ],
)
def test_vectors_that_no_reader_expects_are_not_written(
    vectors: Callable[[], list[tuple[str, np.ndarray]]],
) -> None:
    with pytest.raises(InvalidInput):
        puffin.write_vectors(vectors(), location="x", created_by="frazil")
