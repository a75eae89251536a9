"""Avro containers against fastavro, which writes them, and against bytes made by hand."""

from __future__ import annotations

import contextlib
import io
import json
import zlib
from typing import Any

import fastavro
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil import avro
from frazil.errors import FormatError, Unsupported

MAP_LONG = {
    "type": "array",
    "logicalType": "map",
    "items": {
        "type": "record",
        "name": "k1_v2",
        "fields": [
            {"name": "key", "type": "int", "field-id": 1},
            {"name": "value", "type": "long", "field-id": 2},
        ],
    },
}
MAP_BYTES = {
    "type": "array",
    "logicalType": "map",
    "items": {
        "type": "record",
        "name": "k3_v4",
        "fields": [
            {"name": "key", "type": "int", "field-id": 3},
            {"name": "value", "type": "bytes", "field-id": 4},
        ],
    },
}
SUMMARY = {
    "type": "array",
    "items": {
        "type": "record",
        "name": "r508",
        "fields": [
            {"name": "contains_null", "type": "boolean", "field-id": 509},
            {"name": "lower", "type": ["null", "bytes"], "field-id": 510},
        ],
    },
}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "entry",
    "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "snapshot", "type": ["null", "long"], "field-id": 1},
        {
            "name": "file",
            "field-id": 2,
            "type": {
                "type": "record",
                "name": "r2",
                "fields": [
                    {"name": "path", "type": "string", "field-id": 100},
                    {"name": "flag", "type": ["boolean", "null"], "field-id": 20},
                    {"name": "f", "type": "float", "field-id": 21},
                    {"name": "d", "type": ["null", "double"], "field-id": 22},
                    {
                        "name": "id16",
                        "type": ["null", {"type": "fixed", "name": "f16", "size": 16}],
                        "field-id": 23,
                    },
                    {"name": "counts", "type": ["null", MAP_LONG], "field-id": 109},
                    {"name": "bounds", "type": ["null", MAP_BYTES], "field-id": 125},
                    {
                        "name": "splits",
                        "type": ["null", {"type": "array", "items": "long"}],
                        "field-id": 132,
                    },
                    {"name": "parts", "type": ["null", SUMMARY], "field-id": 507},
                    {"name": "unknown", "type": {"type": "map", "values": "string"}},
                    {
                        "name": "enum",
                        "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]},
                        "field-id": 30,
                    },
                    {"name": "many", "type": ["null", "int", "string"], "field-id": 31},
                    {"name": "last", "type": "long", "field-id": 32},
                ],
            },
        },
    ],
}
LEAVES = [
    (0,), (1,), (2, 100), (2, 20), (2, 21), (2, 22), (2, 23), (2, 132), (2, 30), (2, 32),
    *[(2, 109, key) for key in (1, 2, 300)],
    *[(2, 125, key) for key in (1, 2, 300)],
    *[(2, 507, slot, part) for slot in (0, 1) for part in (509, 510)],
]  # fmt: skip
DOMAINS: dict[tuple[int, ...], int] = {(0,): 3}


def record(**changes: Any) -> dict[str, Any]:
    """One record, given fields changed; names of nested fields are unique."""
    file = {
        "path": "file:///warehouse/a.parquet",
        "flag": True,
        "f": 1.5,
        "d": 2.25,
        "id16": bytes(range(16)),
        "counts": [{"key": 1, "value": 7}, {"key": 2, "value": -8}],
        "bounds": [{"key": 1, "value": b"abc"}, {"key": 2, "value": b""}],
        "splits": [4, 1000000],
        "parts": [{"contains_null": True, "lower": b"x"}],
        "unknown": {"a": "b"},
        "enum": "B",
        "many": "text",
        "last": 9,
    }
    top = {"status": 1, "snapshot": 1 << 62}
    top |= {name: value for name, value in changes.items() if name in top}
    return {**top, "file": {**file, **{k: v for k, v in changes.items() if k in file}}}


def container(records: list[dict[str, Any]], *, codec: str = "null", block: int = 100_000) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, SCHEMA, records, codec=codec, sync_interval=block)
    return sink.getvalue()


def expected(records: list[dict[str, Any]], leaf: tuple[int, ...]) -> list[Any]:
    """A leaf's values, taken from the records as fastavro was given them."""
    names = {0: "status", 1: "snapshot"}
    inner = {
        100: "path", 20: "flag", 21: "f", 22: "d", 23: "id16", 109: "counts", 125: "bounds",
        132: "splits", 507: "parts", 30: "enum", 32: "last",
    }  # fmt: skip
    values: list[Any] = []
    for one in records:
        if len(leaf) == 1:
            values.append(one[names[leaf[0]]])
            continue
        value = one["file"][inner[leaf[1]]]
        if leaf[1] == 30:
            value = "AB".index(value)
        elif leaf[1] in (109, 125):
            value = {item["key"]: item["value"] for item in value or []}.get(leaf[2])
        elif leaf[1] == 507:
            part = {509: "contains_null", 510: "lower"}[leaf[3]]
            value = value[leaf[2]][part] if value and len(value) > leaf[2] else None
        values.append(value)
    return values


def check(records: list[dict[str, Any]], data: bytes, domains: dict[Any, int] | None) -> None:
    columns = avro.decode(data, LEAVES, domains=domains)
    assert columns.num_rows == len(records)
    for leaf in LEAVES:
        want = expected(records, leaf)
        array = columns.arrays.get(leaf)
        got = [None] * len(records) if array is None else array.to_pylist()
        assert got == want, leaf


OPTIONAL = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
KEYS = st.lists(st.sampled_from([1, 2, 3, 300, 70000]), unique=True, max_size=5)
RECORDS = st.builds(
    record,
    status=st.integers(0, 2),
    snapshot=OPTIONAL,
    path=st.text(max_size=200),
    flag=st.none() | st.booleans(),
    f=st.floats(width=32, allow_nan=False),
    d=st.none() | st.floats(allow_nan=False),
    id16=st.none() | st.binary(min_size=16, max_size=16),
    counts=st.none()
    | KEYS.flatmap(
        lambda keys: st.tuples(*[st.integers(-(1 << 63), (1 << 63) - 1) for _ in keys]).map(
            lambda values: [{"key": k, "value": v} for k, v in zip(keys, values, strict=True)]
        )
    ),
    bounds=st.none()
    | KEYS.flatmap(
        lambda keys: st.tuples(*[st.binary(max_size=150) for _ in keys]).map(
            lambda values: [{"key": k, "value": v} for k, v in zip(keys, values, strict=True)]
        )
    ),
    splits=st.none() | st.lists(st.integers(0, 1 << 40), max_size=4),
    parts=st.none()
    | st.lists(
        st.fixed_dictionaries(
            {"contains_null": st.booleans(), "lower": st.none() | st.binary(max_size=9)}
        ),
        max_size=3,
    ),
    unknown=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3),
    enum=st.sampled_from("AB"),
    many=st.none() | st.integers(-5, 1000) | st.text(max_size=5),
    last=st.integers(-3, 3),
)


@settings(deadline=None, max_examples=60)
@given(records=st.lists(RECORDS, min_size=1, max_size=12), block=st.sampled_from([1, 300, 100_000]))
def test_any_records_read_back_as_fastavro_wrote_them(
    records: list[dict[str, Any]], block: int
) -> None:
    data = container(records, block=block)
    check(records, data, DOMAINS)
    check(records, data, None)


def test_a_key_named_twice_stays_with_its_record() -> None:
    twice = [{"key": 1, "value": 7}, {"key": 1, "value": 8}]
    records = [record(counts=twice), record(counts=None)]
    check(records, container(records), None)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
@pytest.mark.parametrize("block", [1, 100_000])
def test_every_codec_reads_back(codec: str, block: int) -> None:
    records = [record(last=number, snapshot=number * 1000) for number in range(50)]
    check(records, container(records, codec=codec, block=block), DOMAINS)


def _plain_block(data: bytes) -> bytes:
    """The one block of an uncompressed container with one record."""
    return data[avro.read_header(data).end + 3 : -16]  # count 1, then a length of two bytes


def _squeezed(codec: str, body: bytes) -> bytes:
    """A container whose one block, of one record, is given compressed."""
    header = _header({"avro.schema": json.dumps(SCHEMA), "avro.codec": codec})
    return header + _number(1) + _number(len(body)) + body + SYNC


def test_snappy_blocks_are_read_and_their_checksum_is_checked() -> None:
    block = _plain_block(container([record()]))
    body = pa.Codec("snappy").compress(block, asbytes=True)
    check([record()], _squeezed("snappy", body + zlib.crc32(block).to_bytes(4, "big")), None)
    with pytest.raises(FormatError):
        avro.decode(_squeezed("snappy", body + bytes(4)), LEAVES)


def test_zstandard_blocks_are_read_with_and_without_their_size() -> None:
    block = _plain_block(container([record()]))
    for sized in (True, False):
        squeezer = zstandard.ZstdCompressor(write_content_size=sized)
        check([record()], _squeezed("zstandard", squeezer.compress(block)), None)


SYNC = bytes(range(16))


def _number(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _text(value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _number(len(raw)) + raw


def _header(metadata: dict[str, str]) -> bytes:
    pairs = b"".join(_text(key) + _text(value) for key, value in metadata.items())
    return b"Obj\x01" + _number(len(metadata)) + pairs + _number(0) + SYNC


def _file(schema: dict[str, Any], *blocks: tuple[int, bytes]) -> bytes:
    body = b"".join(_number(count) + _number(len(plain)) + plain + SYNC for count, plain in blocks)
    return _header({"avro.schema": json.dumps(schema)}) + body


LISTS = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "n", "type": {"type": "array", "items": "long"}, "field-id": 1},
        {"name": "m", "type": MAP_LONG, "field-id": 2},
        {"name": "b", "type": MAP_BYTES, "field-id": 3},
        {"name": "z", "type": "int", "field-id": 4},
    ],
}


def test_arrays_in_several_runs_and_with_sizes_are_joined() -> None:
    numbers = _number(2) + _number(10) + _number(11) + _number(1) + _number(12) + _number(0)
    # A negative count is followed by the size of the run in bytes.
    counts = _number(-1) + _number(2) + _number(5) + _number(50)
    counts += _number(1) + _number(6) + _number(60) + _number(0)
    bounds = _number(1) + _number(5) + _text("five")
    bounds += _number(-1) + _number(4) + _number(6) + _text("six") + _number(0)
    plain = _number(0) + _number(0) + _number(0) + _number(1)
    data = _file(LISTS, (2, numbers + counts + bounds + _number(7) + plain))
    columns = avro.decode(data, [(1,), (2, 5), (2, 6), (3, 5), (3, 6), (4,)])
    assert {leaf: array.to_pylist() for leaf, array in columns.arrays.items()} == {
        (1,): [[10, 11, 12], []],
        (2, 5): [50, None],
        (2, 6): [60, None],
        (3, 5): [b"five", None],
        (3, 6): [b"six", None],
        (4,): [7, 1],
    }


def test_a_leaf_that_the_schema_lacks_is_absent() -> None:
    columns = avro.decode(container([record()]), [(0,), (77,), (2, 78)])
    assert set(columns.arrays) == {(0,)}
    assert columns.leaves == {(0,)}


def test_header_metadata_is_returned() -> None:
    sink = io.BytesIO()
    fastavro.writer(sink, SCHEMA, [record()], metadata={"format-version": "2"})
    assert avro.read_header(sink.getvalue()).metadata["format-version"] == "2"


def test_a_file_without_records_has_no_rows() -> None:
    assert avro.decode(container([]), LEAVES).num_rows == 0


def test_other_files_are_refused_by_name() -> None:
    with pytest.raises(FormatError, match=r"metadata/m\.avro: not an Avro file"):
        avro.decode(b"PAR1....", LEAVES, path="metadata/m.avro")


def test_an_unknown_codec_is_unsupported_by_name() -> None:
    data = _header({"avro.schema": json.dumps(SCHEMA), "avro.codec": "lzo"})
    with pytest.raises(Unsupported, match=r"m\.avro: unknown codec 'lzo'"):
        avro.decode(data, LEAVES, path="m.avro")


@pytest.mark.parametrize("schema", ["{", '"long"', '{"type": "record"}', '["nope"]'])
def test_a_schema_that_is_none_is_refused(schema: str) -> None:
    with pytest.raises(FormatError, match=r"m\.avro"):
        avro.decode(_header({"avro.schema": schema}), LEAVES, path="m.avro")


@pytest.mark.parametrize("block", [1, 100_000])
@pytest.mark.parametrize("domains", [None, DOMAINS])
def test_a_file_cut_anywhere_is_refused(block: int, domains: dict[Any, int] | None) -> None:
    data = container([record(last=number) for number in range(3)], block=block)
    whole = {avro.read_header(data).end}
    for count in (1, 2):  # cut between blocks, a container is a shorter one
        whole.add(len(container([record(last=number) for number in range(count)], block=block)))
    for end in range(len(data)):
        if (block == 1 and end in whole) or end == min(whole):
            continue
        with pytest.raises(FormatError):
            avro.decode(data[:end], LEAVES, path="m.avro", domains=domains)


@settings(deadline=None, max_examples=150)
@given(
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    block=st.sampled_from([1, 100_000]),
)
def test_corrupt_bytes_give_an_error_or_rows_but_never_a_crash(
    changes: list[tuple[int, int]], block: int
) -> None:
    data = bytearray(container([record(last=number) for number in range(6)], block=block))
    for place, value in changes:
        data[place % len(data)] = value
    with contextlib.suppress(FormatError, Unsupported):
        columns = avro.decode(bytes(data), LEAVES, path="m.avro", domains=DOMAINS)
        assert all(len(array) == columns.num_rows for array in columns.arrays.values())
