"""Paimon's decoders against slow models, and against damaged bytes."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.avro import by_name
from frazil.errors import FrazilError
from frazil.paimon.read import binary_row
from frazil.paimon.read.data_types import DataType, parse_type
from frazil.paimon.read.manifest_tables import (
    live_entries,
    read_index_manifest,
    read_manifest,
    read_manifest_list,
)
from frazil.paimon.read.snapshot import parse_snapshot, parse_tag
from frazil.paimon.read.table_schema import parse_schema
from frazil.paimon.read.vector_files import read_vector
from tests.unit.paimon.encode import avro_file, entry, manifest_schema
from tests.unit.paimon.encode import binary_row as encoded
from tests.unit.paimon.place import schema_json, snapshot_json
from tests.unit.paimon.test_manifest_tables import index_file
from tests.unit.paimon.test_vector_files import NARROW, WIDE

_MICROS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(2**7), 2**7 - 1),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(allow_nan=False),
    "DATE": st.dates(),
    "STRING": st.text(max_size=20),
    "BYTES": st.binary(max_size=20),
    "DECIMAL(18, 3)": st.decimals(-(10**14), 10**14, places=3),
    "DECIMAL(38, 4)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-4")),
    "TIMESTAMP(3)": _MICROS.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    "TIMESTAMP(6)": _MICROS,
}


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[DataType], list[list[Any]]]:
    texts = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=8)) * draw(
        st.sampled_from([1, 1, 1, 8])
    )
    row = st.tuples(*[st.none() | VALUES[text] for text in texts]).map(list)
    return [parse_type(text) for text in texts], draw(st.lists(row, max_size=4))


@settings(deadline=None, max_examples=80)
@given(rows())
def test_rows_decode_to_what_was_encoded(case: tuple[list[DataType], list[list[Any]]]) -> None:
    types, values = case
    data = pa.array([encoded(types, row) for row in values], pa.binary())
    columns = binary_row.decode(data, types)
    assert [column.to_pylist() for column in columns] == [
        [row[index] for row in values] for index in range(len(types))
    ]


ENTRIES = st.lists(
    st.builds(
        lambda name, kind, level, bucket: entry(name, kind=kind, level=level, bucket=bucket),
        *(st.sampled_from("abcde"), st.sampled_from([0, 0, 1])),
        *(st.integers(0, 2), st.integers(0, 1)),
    ),
    max_size=20,
)


@settings(deadline=None, max_examples=100)
@given(ENTRIES)
def test_the_live_set_is_what_was_added_and_never_deleted(entries: list[dict[str, Any]]) -> None:
    def key(item: dict[str, Any]) -> tuple[str, int, int]:
        return item["_FILE"]["_FILE_NAME"], item["_FILE"]["_LEVEL"], item["_BUCKET"]

    deleted = {key(item) for item in entries if item["_KIND"] == 1}
    added = dict.fromkeys(key(item) for item in entries if item["_KIND"] == 0)
    expected = [one for one in added if one not in deleted]
    table = live_entries(read_manifest(avro_file(manifest_schema(), entries, "null")))
    found = table.select(["file_name", "level", "bucket"]).to_pylist()
    assert [tuple(row.values()) for row in found] == expected


PRIMITIVES = st.sampled_from(["int", "long", "string", "bytes", "boolean", "double"])
AVRO_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "string": st.text(max_size=5),
    "bytes": st.binary(max_size=200),
    "boolean": st.booleans(),
    "double": st.floats(allow_nan=False),
}


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_avro_columns_are_what_fastavro_wrote(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(PRIMITIVES, min_size=1, max_size=6))
    shapes = data.draw(
        st.lists(
            st.sampled_from(["plain", "null", "list"]), min_size=len(kinds), max_size=len(kinds)
        )
    )
    fields, values = [], []
    for number, (kind, shape) in enumerate(zip(kinds, shapes, strict=True)):
        item: Any = {"plain": kind, "null": ["null", kind]}.get(shape)
        fields.append({"name": f"c{number}", "type": item or {"type": "array", "items": kind}})
        one = AVRO_VALUES[kind]
        values.append({"plain": one, "null": st.none() | one, "list": st.lists(one)}[shape])
    count = data.draw(st.integers(0, 5))
    records = [{f"c{i}": data.draw(value) for i, value in enumerate(values)} for _ in range(count)]
    raw = avro_file({"type": "record", "name": "r", "fields": fields}, records)
    assert by_name.read(raw).to_pylist() == list(fastavro.reader(io.BytesIO(raw)))


def _orc() -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.table({"_VERSION": [2], "_FILE_NAME": ["x"]}), sink)
    return sink.getvalue()


MANIFEST = avro_file(manifest_schema(), [entry("a"), entry("b", kind=1)], "null")
TYPES = [parse_type(t) for t in ("INT", "STRING", "DECIMAL(30, 2)", "TIMESTAMP(6)", "BYTES")]
ROW = encoded(TYPES, [1, "a longer text", Decimal("1.25"), datetime.datetime(2024, 1, 1), b"x" * 9])
NESTED = [
    parse_type({"type": "ARRAY", "element": "STRING"}),
    parse_type({"type": "MAP", "key": "INT", "value": {"type": "ARRAY", "element": "INT"}}),
    parse_type({"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "STRING"}]}),
]
NESTED_ROW = encoded(NESTED, [["a", "long enough text"], [(1, [2, 3])], {"x": "y"}])
DECODERS: dict[str, tuple[bytes, Any]] = {
    "manifest": (MANIFEST, read_manifest),
    "compressed manifest": (
        avro_file(manifest_schema(), [entry("a")] * 30),
        lambda data: live_entries(read_manifest(data)),
    ),
    "manifest list": (MANIFEST, read_manifest_list),
    "index manifest": (index_file(with_cardinality=True), read_index_manifest),
    "orc manifest": (_orc(), read_manifest_list),
    "row": (ROW, lambda data: binary_row.decode(pa.array([data, data]), TYPES)),
    "nested row": (NESTED_ROW, lambda data: binary_row.decode(pa.array([data]), NESTED)),
    "narrow vector": (NARROW, lambda data: read_vector(data, offset=1, length=24, row_count=1000)),
    "wide vector": (WIDE, lambda data: read_vector(data, offset=1, length=44, row_count=1000)),
    "schema": (json.dumps(schema_json([("k", "DECIMAL(5, 2)")])).encode(), parse_schema),
    "snapshot": (json.dumps(snapshot_json(1)).encode(), parse_snapshot),
    "tag": (
        json.dumps(snapshot_json(1, tagCreateTime=[2024, 1, 2], tagTimeRetained=1.5)).encode(),
        lambda data: parse_tag("t", data),
    ),
}


@st.composite
def damage(draw: st.DrawFn, data: bytes) -> bytes:
    kind = draw(st.sampled_from(["flip", "cut", "insert", "drop", "zero"]))
    at = draw(st.integers(0, len(data) - 1))
    if kind == "cut":
        return data[:at]
    if kind == "insert":
        return data[:at] + draw(st.binary(min_size=1, max_size=8)) + data[at:]
    if kind == "drop":
        return data[:at] + data[at + draw(st.integers(1, 8)) :]
    changed = bytearray(data)
    for place in range(at, min(at + draw(st.integers(1, 8)), len(data))):
        changed[place] = 0 if kind == "zero" else draw(st.integers(0, 255))
    return bytes(changed)


@pytest.mark.parametrize("name", DECODERS)
@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_damaged_bytes_give_our_errors_or_a_result(name: str, data: st.DataObject) -> None:
    original, decode = DECODERS[name]
    with contextlib.suppress(FrazilError):
        decode(data.draw(damage(original)))


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=30))
def test_any_text_is_a_type_or_refused(text: str) -> None:
    with contextlib.suppress(FrazilError):
        parse_type(text)


def test_the_undamaged_bytes_decode() -> None:
    for name, (original, decode) in DECODERS.items():
        if name not in ("manifest list", "orc manifest"):
            decode(original)
    assert np.array_equal(read_vector(NARROW, offset=1, length=24), [2, 3])
