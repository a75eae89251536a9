"""Avro files read by field name, against fastavro as the writer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from frazil.avro import by_name
from frazil.errors import FormatError, Unsupported
from tests.unit.paimon.encode import avro_file

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "l", "type": ["null", "long"]},
        {"name": "s", "type": "string"},
        {"name": "b", "type": ["bytes", "null"]},
        {"name": "f", "type": "float"},
        {"name": "d", "type": ["null", "double"]},
        {"name": "t", "type": "boolean"},
        {"name": "x", "type": {"type": "fixed", "name": "x", "size": 3}},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
        {"name": "a", "type": {"type": "array", "items": ["null", "long"]}},
        {"name": "n", "type": ["null", {"type": "array", "items": "string"}]},
        {
            "name": "sub",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "sub",
                    "fields": [
                        {"name": "p", "type": "string"},
                        {"name": "q", "type": ["null", "int"]},
                    ],
                },
            ],
        },
        {"name": "subs", "type": ["null", {"type": "array", "items": "sub"}]},
        {"name": "m", "type": {"type": "map", "values": "long"}},
        {"name": "last", "type": "long"},
    ],
}


def record(number: int) -> dict[str, Any]:
    even = number % 2 == 0
    return {
        "i": -number,
        "l": None if even else number * 10**14,
        "s": f"text é {number}",
        "b": b"x" * number if even else None,
        "f": number / 2,
        "d": None if even else 0.1,
        "t": even,
        "x": bytes([number % 256] * 3),
        "e": "A" if even else "B",
        "a": [number, None, -number],
        "n": None if even else ["p", str(number)],
        "sub": None if even else {"p": "q" * number, "q": None if number % 3 else number},
        "subs": [{"p": "a", "q": 1}, {"p": "b", "q": None}] if even else None,
        "m": {"k": number, "j": 2},
        "last": number,
    }


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2", "xz"])
def test_every_field_is_read_under_its_name(codec: str) -> None:
    if codec == "snappy":
        pytest.importorskip("cramjam")
    records = [record(number) for number in range(300)]
    wanted = [f["name"] for f in SCHEMA["fields"] if f["name"] != "m"]
    table = by_name.read(avro_file(SCHEMA, records, codec), wanted)
    assert table.column_names == [
        *("i", "l", "s", "b", "f", "d", "t", "x", "e", "a", "n", "sub.p", "sub.q", "subs", "last")
    ]
    for name in ("i", "l", "s", "b", "f", "d", "t", "x", "a", "n", "subs", "last"):
        assert table[name].to_pylist() == [row[name] for row in records], name
    assert table["e"].to_pylist() == ["AB".index(row["e"]) for row in records]
    assert table["sub.p"].to_pylist() == [row["sub"] and row["sub"]["p"] for row in records]
    assert table["sub.q"].to_pylist() == [row["sub"] and row["sub"]["q"] for row in records]


def test_fields_not_asked_for_are_stepped_over() -> None:
    records = [record(number) for number in range(50)]
    table = by_name.read(avro_file(SCHEMA, records), ["last", "sub.q", "not there"])
    assert table.column_names == ["sub.q", "last"]
    assert table["last"].to_pylist() == list(range(50))


def test_zstandard_blocks_as_paimon_writes_them_are_read() -> None:
    data = avro_file(SCHEMA, [record(1)], "null")
    body_at = data.rindex(data[-16:], 0, len(data) - 16) + 16
    # One block follows the header: its record count, its size, its bytes, the sync marker.
    count, size_at = data[body_at], body_at + 1
    size = len(data) - 16 - size_at - 2
    packed = pa.compress(data[size_at + 2 : size_at + 2 + size], "zstd", asbytes=True)
    header = data[:body_at].replace(b"\x08null", b"\x12zstandard")
    block = bytes([count]) + _zigzag(len(packed)) + packed + data[-16:]
    assert by_name.read(header + block, ["last"])["last"].to_pylist() == [1]


def _zigzag(value: int) -> bytes:
    value <<= 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def test_records_wrapped_in_a_union_with_null_are_read() -> None:
    inner = {**SCHEMA, "name": "wrapped"}
    table = by_name.read(avro_file(["null", inner], [record(3), record(4)]), ["i", "sub.p"])
    assert table.to_pylist() == [{"i": -3, "sub.p": "qqq"}, {"i": -4, "sub.p": None}]


def test_an_empty_file_has_its_columns() -> None:
    table = by_name.read(avro_file(SCHEMA, []), ["i", "n"])
    assert table.num_rows == 0
    assert table.schema.field("n").type == pa.list_(pa.string())


def test_a_union_of_several_types_is_refused_when_asked_for_and_stepped_over_otherwise() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "u", "type": ["null", "long", "string"]}, {"name": "k", "type": "int"}],
    }
    data = avro_file(schema, [{"u": 5, "k": 1}, {"u": "x", "k": 2}, {"u": None, "k": 3}])
    assert by_name.read(data, ["k"])["k"].to_pylist() == [1, 2, 3]
    with pytest.raises(Unsupported):
        by_name.read(data, ["u"])


def test_damaged_files_are_refused() -> None:
    data = avro_file(SCHEMA, [record(number) for number in range(20)], "null")
    for broken in (b"", b"Obj\x02", data[:30], data[:-1], data[:-20], data + b"\x02"):
        with pytest.raises(FormatError):
            by_name.read(broken, ["i", "sub", "last"])
    middle = len(data) // 2
    with pytest.raises(FormatError):
        by_name.read(data[:middle] + data[middle + 3 :], ["i", "last"])


def test_a_count_of_records_that_cannot_fit_is_refused() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "null"}]}
    data = avro_file(schema, [{"n": None}] * 3, "null")
    with pytest.raises(FormatError):
        by_name.read(data)
