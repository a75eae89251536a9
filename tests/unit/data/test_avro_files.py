"""Avro data files, written by fastavro with the schemas that PyIceberg makes."""

from __future__ import annotations

import contextlib
import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from frazil.data.metadata_columns import POS, with_columns
from frazil.data.slices import DataFileSlice
from frazil.errors import FormatError, Unsupported
from frazil.filter.text.filter_text import parse
from frazil.iceberg import types as ice
from frazil.iceberg.pyiceberg_values import pyiceberg_schema
from frazil.iceberg.schema import Schema
from tests.support.data_files import file_slice, read

POINT = ice.StructType(
    ice.NestedField(21, "x", ice.DoubleType(), required=True),
    ice.NestedField(22, "y", ice.FloatType()),
)
SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(2, "small", ice.IntegerType()),
    ice.NestedField(3, "flag", ice.BooleanType()),
    ice.NestedField(4, "name", ice.StringType()),
    ice.NestedField(5, "day", ice.DateType()),
    ice.NestedField(6, "at", ice.TimestampType()),
    ice.NestedField(7, "when", ice.TimestamptzType()),
    ice.NestedField(8, "price", ice.DecimalType(12, 2)),
    ice.NestedField(9, "raw", ice.BinaryType()),
    ice.NestedField(10, "code", ice.FixedType(3)),
    ice.NestedField(11, "point", POINT),
    ice.NestedField(12, "tags", ice.ListType(23, ice.StringType(), element_required=False)),
    ice.NestedField(
        13, "sizes", ice.MapType(24, ice.StringType(), 25, ice.LongType(), value_required=False)
    ),
    ice.NestedField(
        14,
        "by_number",
        ice.MapType(26, ice.IntegerType(), 27, ice.DoubleType()),
    ),
    ice.NestedField(15, "time", ice.TimeType()),
)


def row(i: int) -> dict[str, Any]:
    """What a reader should see; every third row is null wherever it can be."""
    if i % 3 == 2:
        return {"id": i, **{field.name: None for field in SCHEMA.fields[1:]}}
    return {
        "id": i,
        "small": -i,
        "flag": i % 2 == 0,
        "name": f"näme {i}",
        "day": dt.date(1969, 12, 30) + dt.timedelta(days=i),
        "at": dt.datetime(2024, 1, 1, 0, 0, 0, i),
        "when": dt.datetime(2024, 1, 1, 0, 0, 0, i, tzinfo=dt.UTC),
        "price": Decimal(i - 2).scaleb(-2),
        "raw": bytes(i % 5),
        "code": bytes([i, 0, 255]),
        "point": {"x": i / 2, "y": None if i % 2 else 0.5},
        "tags": ["a", None, "b"][: i % 4],
        "sizes": [("k", i), ("none", None)],
        "by_number": [(i, 1.5), (i + 1, 0.5)],
        "time": dt.time(1, 2, 3, i),
    }


def avro_schema(schema: Schema) -> dict[str, Any]:
    made = AvroSchemaConversion().iceberg_to_avro(pyiceberg_schema(schema), schema_name="table")
    assert isinstance(made, dict)
    for field in made["fields"]:
        if field["name"] == "sizes":  # keys that are text make a map of Avro's own
            values = {"type": "map", "values": ["null", "long"], "key-id": 24, "value-id": 25}
            field["type"] = ["null", values]
        if field["name"] == "tags":  # PyIceberg leaves out that elements may be null
            field["type"][1]["items"] = ["null", "string"]
    return made


def written(path: Path, rows: list[dict[str, Any]], schema: Any, codec: str) -> DataFileSlice:
    def stored(one: dict[str, Any]) -> dict[str, Any]:
        sizes, numbers = one.get("sizes"), one.get("by_number")
        return {
            **one,
            "sizes": sizes and dict(sizes),
            "by_number": numbers and [{"key": key, "value": value} for key, value in numbers],
        }

    with path.open("wb") as file:
        fastavro.writer(file, schema, map(stored, rows), codec=codec, sync_interval=300)
    return file_slice(str(path), len(rows), "avro")


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2"])
def test_every_type_is_read(tmp_path: Path, codec: str) -> None:
    rows = [row(i) for i in range(40)]
    source = written(tmp_path / "f.avro", rows, avro_schema(SCHEMA), codec)
    assert read(source, SCHEMA, batch_rows=7).to_pylist() == rows


def test_columns_are_chosen_by_field_id_and_rows_by_position_and_value(tmp_path: Path) -> None:
    source = written(tmp_path / "f.avro", [row(i) for i in range(40)], avro_schema(SCHEMA), "null")
    chosen = Schema(
        ice.NestedField(4, "label", ice.StringType()),
        ice.NestedField(1, "key", ice.LongType()),
        ice.NestedField(11, "point", ice.StructType(ice.NestedField(21, "px", ice.DoubleType()))),
        ice.NestedField(99, "later", ice.StringType()),
    )
    found = read(
        source,
        with_columns(chosen, [POS]),
        table_schema=chosen,
        row_filter=parse("key < 5", chosen),
        dropped=np.array([1]),
        batch_rows=3,
    ).to_pylist()
    assert found == [
        {
            "label": row(i)["name"],
            "key": i,
            "point": row(i)["point"] and {"px": i / 2},
            "later": None,
            "_pos": i,
        }
        for i in (0, 2, 3, 4)
    ]


def test_a_file_with_other_rows_than_recorded_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "f.avro", [row(0)], avro_schema(SCHEMA), "null")
    with pytest.raises(FormatError, match=r"f\.avro: the file has 1 rows; the metadata records 2"):
        read(file_slice(str(tmp_path / "f.avro"), 2, "avro"), SCHEMA)


def test_damage_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f.avro"
    written(path, [row(i) for i in range(9)], avro_schema(SCHEMA), "null")
    whole = path.read_bytes()
    for at in range(len(whole) - 400, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with contextlib.suppress(FormatError):  # a value that changed may still be one
            read(file_slice(str(path), 9, "avro"), SCHEMA)
    path.write_bytes(whole[:-100])
    with pytest.raises(FormatError, match=r"f\.avro: the block before byte \d+ is cut short"):
        read(file_slice(str(path), 9, "avro"), SCHEMA)


def test_a_union_of_several_types_is_refused_by_name(tmp_path: Path) -> None:
    fields = [{"name": "a", "type": ["int", "string"], "field-id": 1}]
    path = tmp_path / "f.avro"
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "t", "fields": fields}, [{"a": 1}])
    with pytest.raises(Unsupported, match="union of 2 types"):
        read(file_slice(str(path), 1, "avro"), Schema(ice.NestedField(1, "a", ice.LongType())))
