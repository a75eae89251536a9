"""Type strings and nested type objects of Paimon's schema JSON."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from frazil.errors import FormatError, Unsupported
from frazil.iceberg import types as iceberg
from frazil.paimon.read.data_types import (
    TypeName,
    arrow_type,
    iceberg_field,
    parse_field,
    parse_type,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("INT", "INT"),
        ("INT NOT NULL", "INT NOT NULL"),
        ("INTEGER NULL", "INT"),
        ("STRING", "STRING"),
        ("VARCHAR(2147483647)", "STRING"),
        ("VARCHAR(12)", "VARCHAR(12)"),
        ("VARCHAR", "VARCHAR(1)"),
        ("CHAR(3) NOT NULL", "CHAR(3) NOT NULL"),
        ("BYTES", "BYTES"),
        ("VARBINARY(7)", "VARBINARY(7)"),
        ("BINARY", "BINARY(1)"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("DECIMAL(38,18)", "DECIMAL(38, 18)"),
        ("NUMERIC(5)", "DECIMAL(5, 0)"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("TIME", "TIME(0)"),
        ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE NOT NULL", "TIMESTAMP(3) NOT NULL"),
        ("TIMESTAMP(9) WITH LOCAL TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
        ("TIMESTAMP_LTZ(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("timestamp_ltz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("VARIANT", "VARIANT"),
        ("BLOB", "BLOB"),
        ("GEOMETRY", "GEOMETRY(OGC:CRS84)"),
        ("GEOGRAPHY(OGC:CRS84, SPHERICAL)", "GEOGRAPHY(OGC:CRS84, SPHERICAL)"),
        ("VECTOR<FLOAT, 3>", "VECTOR<FLOAT, 3>"),
        ("INT NOT NULL ARRAY", "ARRAY<INT NOT NULL>"),
        ("STRING MULTISET NOT NULL", "MULTISET<STRING> NOT NULL"),
    ],
)
def test_a_type_string_means_one_type(text: str, shown: str) -> None:
    assert str(parse_type(text)) == shown


@pytest.mark.parametrize(
    "json",
    [
        *("", "FOO", "INT(3)", "DECIMAL(39)", "DECIMAL(3, 4)", "DECIMAL(1,2,3)", "STRING(4)"),
        *("TIMESTAMP(10)", "INT WITH LOCAL TIME ZONE", "CHAR(x)", "CHAR(-1)", "ARRAY", "INT INT"),
        *(None, 3, [], {}, {"type": "ARRAY"}, {"type": "MAP", "key": "INT"}, {"type": "ROW"}),
        *({"type": "ROW", "fields": [{"name": "x"}]}, {"type": "VECTOR", "element": "INT"}),
        {"type": "ROW", "fields": [{"id": -1, "name": "x", "type": "INT"}]},
    ],
)
def test_an_unknown_type_is_refused_by_name(json: Any) -> None:
    with pytest.raises(FormatError):
        parse_type(json)


def test_nested_types_are_objects() -> None:
    row = {
        "type": "ROW NOT NULL",
        "fields": [
            {"id": 4, "name": "x", "type": "INT"},
            {"id": 5, "name": "m", "type": {"type": "MAP", "key": "STRING", "value": "DATE"}},
        ],
    }
    parsed = parse_type({"type": "ARRAY", "element": row})
    assert str(parsed) == "ARRAY<ROW<`x` INT, `m` MAP<STRING, DATE>> NOT NULL>"
    assert arrow_type(parsed) == pa.list_(
        pa.struct([("x", pa.int32()), ("m", pa.map_(pa.string(), pa.date32()))])
    )


def test_a_field_keeps_its_paimon_id() -> None:
    field = parse_field({"id": 0, "name": "k", "type": "SMALLINT NOT NULL", "description": "key"})
    assert iceberg_field(field) == iceberg.NestedField(
        0, "k", iceberg.IntegerType(), required=True, doc="key"
    )


def test_elements_have_the_ids_that_paimon_writes_into_parquet() -> None:
    # 536870911 + 1024 * column id + depth; keys count downwards. Seen in files of Paimon 1.3.
    a = parse_field({"id": 1, "name": "a", "type": {"type": "ARRAY", "element": "STRING"}})
    m = {"type": "MAP", "key": "STRING", "value": "INT"}
    aa = {"type": "ARRAY", "element": {"type": "ARRAY", "element": "INT"}}
    assert iceberg_field(a).field_type == iceberg.ListType(
        536871936, iceberg.StringType(), element_required=False
    )
    assert iceberg_field(parse_field({"id": 2, "name": "m", "type": m})).field_type == (
        iceberg.MapType(
            *(536868862, iceberg.StringType(), 536872960, iceberg.IntegerType()),
            value_required=False,
        )
    )
    assert iceberg_field(parse_field({"id": 6, "name": "aa", "type": aa})).field_type == (
        iceberg.ListType(
            536877056,
            iceberg.ListType(536877057, iceberg.IntegerType(), element_required=False),
            element_required=False,
        )
    )


@pytest.mark.parametrize(
    "text", ["TIME(3)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(7)", "VARIANT", "BLOB", "VECTOR<FLOAT, 2>"]
)
def test_types_that_iceberg_cannot_read_from_the_files_say_why(text: str) -> None:
    with pytest.raises(Unsupported, match=r"column 'c'.*cannot be adopted"):
        iceberg_field(parse_field({"id": 0, "name": "c", "type": text}))


def test_fine_timestamps_are_refused_with_the_reason_of_either_format() -> None:
    with pytest.raises(Unsupported, match=r"INT96.*ORC files without the unit"):
        iceberg_field(parse_field({"id": 0, "name": "c", "type": "TIMESTAMP(9)"}))


def test_aliases_share_one_root() -> None:
    assert parse_type("STRING").name is parse_type("VARCHAR(3)").name is TypeName.VARCHAR
