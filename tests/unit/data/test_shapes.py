"""Geometries and geographies in data files."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.data.schema import arrow_schema, parquet_schema
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema


@pytest.mark.parametrize(
    ("kind", "logical"),
    [
        (ice.GeometryType(), "Geometry(crs=)"),
        (ice.GeometryType("srid:3857"), "Geometry(crs=srid:3857)"),
        (ice.GeographyType(), "Geography(crs=, algorithm=spherical)"),
        (ice.GeographyType("OGC:CRS84", "karney"), "None"),
    ],
)
def test_files_say_what_their_bytes_are(kind: ice.IcebergType, logical: str) -> None:
    schema = Schema(ice.NestedField(1, "c", ice.StructType(ice.NestedField(2, "g", kind))))
    sink = io.BytesIO()
    pq.ParquetWriter(sink, parquet_schema(schema), store_schema=False).close()
    column = pq.ParquetFile(sink).schema.column(0)
    assert (str(column.logical_type), column.physical_type) == (logical, "BYTE_ARRAY")
    back = pq.read_table(sink).schema.field("c").type.field("g").type
    assert back == pa.binary()


def test_shapes_anywhere_in_a_row_come_back_as_they_were(tmp_path: Path) -> None:
    shape = ice.GeometryType()
    schema = Schema(
        ice.NestedField(1, "g", shape),
        ice.NestedField(2, "s", ice.StructType(ice.NestedField(3, "g", ice.GeographyType()))),
        ice.NestedField(4, "l", ice.ListType(5, shape, element_required=False)),
        ice.NestedField(6, "m", ice.MapType(7, ice.StringType(), 8, shape, value_required=False)),
    )
    place = struct.pack("<BIdd", 1, 1, 3, 4)
    rows = [
        {"g": place, "s": {"g": place}, "l": [place, None], "m": [("a", place)]},
        {"g": None, "s": None, "l": None, "m": []},
    ]
    table = frazil.connect(tmp_path).create_table("geo.shapes", schema)
    table.append(pa.Table.from_pylist(rows, arrow_schema(schema)))
    assert table.scan().to_arrow().to_pylist() == rows
    name = table.inspect.files.to_pylist()[0]["file_path"]
    assert footer_box(name) == (3.0, 4.0)


def footer_box(path: str) -> tuple[float, float]:
    """West and south of a file's first column, as its own footer gives them."""
    box = pq.read_metadata(path.removeprefix("file://")).row_group(0).column(0).geo_statistics
    return box.xmin, box.ymin
