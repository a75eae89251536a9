"""Avro containers written in bulk, read back by fastavro and by our own decoder."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil import avro
from frazil.avro import encode_columns
from frazil.errors import InvalidInput, Unsupported

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)


def nullable(kind: Any) -> list[Any]:
    return ["null", kind]


def pairs(name: str, value: str) -> dict[str, Any]:
    fields = [{"name": "key", "type": "int"}, {"name": "value", "type": value}]
    return {
        "type": "array",
        "logicalType": "map",
        "items": {"type": "record", "name": name, "fields": fields},
    }


SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "i", "type": "int", "field-id": 1},
            {"name": "l", "type": nullable("long"), "field-id": 2},
            {"name": "s", "type": nullable("string"), "field-id": 3},
            {"name": "b", "type": ["boolean", "null"], "field-id": 4},
            {"name": "f", "type": nullable("float"), "field-id": 5},
            {"name": "d", "type": "double", "field-id": 6},
            {
                "name": "x",
                "type": nullable({"type": "fixed", "name": "x2", "size": 2}),
                "field-id": 7,
            },
            {"name": "n", "type": nullable({"type": "array", "items": "long"}), "field-id": 8},
            {"name": "m", "type": nullable(pairs("m1", "long")), "field-id": 9},
            {"name": "y", "type": nullable(pairs("m2", "bytes")), "field-id": 10},
            {"name": "absent", "type": nullable("string"), "field-id": 11},
        ],
    }
)

ROWS = st.fixed_dictionaries(
    {
        "i": st.integers(-(1 << 31), (1 << 31) - 1),
        "l": st.none() | LONGS,
        "s": st.none() | st.text(max_size=100),
        "b": st.none() | st.booleans(),
        "f": st.none() | st.floats(width=32, allow_nan=False),
        "d": st.floats(allow_nan=False),
        "x": st.none() | st.binary(min_size=2, max_size=2),
        "n": st.none() | st.lists(LONGS, max_size=4),
        "m": st.dictionaries(st.sampled_from([1, 5, 300]), LONGS, min_size=1),
        "y": st.dictionaries(st.sampled_from([2, 70000]), st.binary(max_size=80), min_size=1),
    }
)


def columns_of(rows: list[dict[str, Any]]) -> dict[tuple[int, ...], pa.Array]:
    kinds = {
        1: ("i", pa.int32()),
        2: ("l", pa.int64()),
        3: ("s", pa.string()),
        4: ("b", pa.bool_()),
        5: ("f", pa.float32()),
        6: ("d", pa.float64()),
        7: ("x", pa.binary(2)),
        8: ("n", pa.list_(pa.int64())),
    }
    columns: dict[tuple[int, ...], pa.Array] = {
        (id_,): pa.array([row[name] for row in rows], kind) for id_, (name, kind) in kinds.items()
    }
    for key in (1, 5, 300):
        columns[(9, key)] = pa.array([row["m"].get(key) for row in rows], pa.int64())
    for key in (2, 70000):
        columns[(10, key)] = pa.array([row["y"].get(key) for row in rows], pa.binary())
    return columns


def written(rows: list[dict[str, Any]], codec: str = "null") -> bytes:
    return encode_columns.encode(
        SCHEMA, columns_of(rows), len(rows), metadata={"a": "é"}, codec=codec
    )


def read_with_fastavro(data: bytes) -> list[dict[str, Any]]:
    rows: list[Any] = list(fastavro.reader(io.BytesIO(data)))
    for row in rows:
        for name in ("m", "y"):
            row[name] = {item["key"]: item["value"] for item in row[name]}
        assert row.pop("absent") is None
    return rows


@settings(deadline=None, max_examples=80)
@given(rows=st.lists(ROWS, max_size=8))
def test_any_rows_are_read_back_by_fastavro(rows: list[dict[str, Any]]) -> None:
    assert read_with_fastavro(written(rows)) == rows


@settings(deadline=None, max_examples=40)
@given(rows=st.lists(ROWS, min_size=1, max_size=8))
def test_any_rows_are_read_back_by_the_decoder(rows: list[dict[str, Any]]) -> None:
    columns = columns_of(rows)
    decoded = avro.decode(written(rows), list(columns))
    for path, column in columns.items():
        got = decoded.arrays.get(path)
        assert (got.to_pylist() if got is not None else [None] * len(rows)) == column.to_pylist()


@given(values=st.lists(LONGS, max_size=50))
def test_numbers_are_encoded_as_fastavro_does(values: list[int]) -> None:
    encoded = encode_columns.numbers(np.array(values, dtype=np.int64)).to_pylist()
    for value, got in zip(values, encoded, strict=True):
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, "long", value)
        assert got == sink.getvalue()


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "00"), (-1, "01"), (63, "7e"), (64, "8001"), (-65, "8101"), (-(1 << 63), "ff" * 9 + "01")],
)
def test_a_number_that_repeats_is_written_as_often(value: int, expected: str) -> None:
    found = encode_columns.numbers(np.array([value] * 3, dtype=np.int64))
    assert found.to_pylist() == [bytes.fromhex(expected)] * 3


@pytest.mark.parametrize("codec", ["gzip", "deflate", "zstd", "uncompressed"])
def test_many_rows_are_cut_into_blocks_under_every_codec(codec: str) -> None:
    row = {"i": 1, "l": 2, "s": "text " * 20, "b": True, "f": 1.0, "d": 2.0, "x": b"ab"}
    rows = [{**row, "n": [i], "m": {1: i}, "y": {2: b"v"}} for i in range(2000)]
    data = written(rows, codec)
    decoded = avro.decode(data, list(columns_of(rows)))
    assert decoded.arrays[(9, 1)].to_pylist() == list(range(2000))
    if codec != "zstd":  # fastavro needs a package of its own for it
        blocks = list(fastavro.block_reader(io.BytesIO(data)))
        assert sum(block.num_records for block in blocks) == 2000
        assert len(blocks) > 2


def test_header_metadata_is_kept() -> None:
    assert avro.read_header(written([])).metadata["a"] == "é"


def test_the_same_rows_give_the_same_bytes() -> None:
    row = {"i": 1, "l": 2, "s": "t", "b": True, "f": 1.0, "d": 2.0, "x": b"ab", "n": []}
    rows = [{**row, "m": {1: 1}, "y": {2: b""}}]
    assert written(rows) == written(rows)


def test_a_missing_required_leaf_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"field \(1,\)"):
        encode_columns.encode(SCHEMA, {}, 1, metadata={})


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(Unsupported, match="lzo"):
        encode_columns.encode(SCHEMA, {}, 0, metadata={}, codec="lzo")
