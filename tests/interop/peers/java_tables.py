"""Tables written through Iceberg's Java API: what SQL engines in reach cannot write.

Equality deletes, position deletes at chosen places, Avro and ORC data files, types Spark lacks,
columns with defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyiceberg import types as ice
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform

from frazil.iceberg.pyiceberg_values import from_pyiceberg
from tests.support.java import JavaOracle
from tests.support.values import rows_to_json

Row = Mapping[str, Any]

GOODS = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(2, "name", ice.StringType(), required=False),
    ice.NestedField(3, "quantity", ice.IntegerType(), required=False),
)
BY_NAME = PartitionSpec(
    PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="name")
)
BY_BUCKET = PartitionSpec(
    PartitionField(source_id=1, field_id=1000, transform=BucketTransform(3), name="id_bucket")
)


class JavaTable:
    """One table in a folder, changed by calls to the Java API."""

    def __init__(
        self,
        java: JavaOracle,
        location: Path,
        schema: Schema,
        *,
        format_version: int,
        spec: PartitionSpec | None = None,
    ) -> None:
        self._java, self._location, self._schema = java, location.as_uri(), schema
        self.state = java.call(
            "table.create",
            location=self._location,
            schema=schema.model_dump(mode="json"),
            spec=None if spec is None else spec.model_dump(mode="json"),
            properties={"format-version": str(format_version)},
        )

    def append(self, *rows: Row, file_format: str = "parquet") -> None:
        """One data file per partition."""
        self._change("table.append", rows=self._json(rows), file_format=file_format)

    def delete_equal(self, ids: Sequence[int], *rows: Row, **more: Any) -> None:
        """Rows equal to these in the columns with these ids."""
        self._change("table.delete_equal", equality_ids=list(ids), rows=self._json(rows), **more)

    def delete_positions(self, by_file: Mapping[str, Sequence[int]], **more: Any) -> None:
        """Rows by file and position."""
        deletes = [{"location": file, "positions": list(at)} for file, at in by_file.items()]
        self._change("table.delete_positions", deletes=deletes, **more)

    def partition_by(self, column: str) -> None:
        """From now on, also partitioned by this column."""
        self._change("table.partition_by", column=column)

    def add_column(self, field: ice.NestedField, *, default: Any = None) -> None:
        """A new column; `field` must carry the id that Iceberg gives it."""
        self._change(
            "table.add_column", name=field.name, type=str(field.field_type), default=default
        )
        self._schema = Schema(*self._schema.fields, field)

    @property
    def files(self) -> list[str]:
        """Live data files, the oldest first."""
        found = self._java.call("table.files", metadata_location=self.state["metadata_location"])
        found.sort(key=lambda file: (file["sequence_number"], file["location"]))
        return [file["location"] for file in found]

    def _change(self, op: str, **arguments: Any) -> None:
        self.state = self._java.call(op, location=self._location, **arguments)

    def _json(self, rows: Sequence[Row]) -> list[Any]:
        return rows_to_json(from_pyiceberg(self._schema), rows)


def good(id: int, name: str | None = None, quantity: int | None = None) -> Row:
    """A row of `GOODS`."""
    return {"id": id, "name": name, "quantity": quantity}


def _equality(java: JavaOracle, folder: Path, version: int) -> JavaTable:
    table = JavaTable(java, folder, GOODS, format_version=version)
    table.append(*(good(id, f"n{id % 3}", id * 10) for id in range(8)), good(8), good(9, "n0"))
    table.delete_equal([1], good(0), good(5))
    table.append(good(5, "again", 1), good(10, "n1", 40), good(11, None, None))
    table.delete_equal([2, 3], good(-1, "n1", 40), good(-1, None, None))
    table.delete_positions({table.files[0]: [2, 7]})
    table.delete_equal([2], good(-1, "again"))
    table.append(good(12, "again", None), good(0, "n0", 0))
    return table


def equality_v2(java: JavaOracle, folder: Path) -> JavaTable:
    """v2; equality deletes by one and two columns and of nulls, among position deletes"""
    return _equality(java, folder, 2)


def equality_v3(java: JavaOracle, folder: Path) -> JavaTable:
    """v3; equality deletes by one and two columns and of nulls, among deletion vectors"""
    return _equality(java, folder, 3)


def equality_partitioned_v2(java: JavaOracle, folder: Path) -> JavaTable:
    """v2; equality deletes within partitions, and global ones of an unpartitioned spec"""
    table = JavaTable(java, folder, GOODS, format_version=2)
    table.append(good(1, "a", 1), good(2, "b", 2), good(3, None, 3))
    table.partition_by("name")
    table.append(*(good(id, "abc"[id % 3], id) for id in range(4, 13)), good(13, None, 1))
    table.delete_equal([3], good(-1, "a", 6), good(-1, "b", 8), good(-1, None, 1))
    table.delete_equal([1], good(2), good(7), spec_id=0)
    table.append(good(7, "b", 70), good(14, "c", 2))
    table.delete_equal([3], good(-1, "c", 5), good(-1, "c", 2))
    return table


def equality_partitioned_v3(java: JavaOracle, folder: Path) -> JavaTable:
    """v3; bucketed; equality deletes within partitions and a deletion vector on the same file"""
    table = JavaTable(java, folder, GOODS, format_version=3, spec=BY_BUCKET)
    table.append(*(good(id, f"n{id}", id) for id in range(12)))
    table.delete_equal([1], good(3), good(4))
    table.delete_positions({file: [0] for file in table.files})
    table.append(good(3, "back", 3))
    return table


def positions_v2(java: JavaOracle, folder: Path) -> JavaTable:
    """v2; partitioned; position delete files in Parquet and Avro, twice on the same file"""
    table = JavaTable(java, folder, GOODS, format_version=2, spec=BY_NAME)
    table.append(*(good(id, "xy"[id % 2], id) for id in range(10)))
    table.delete_positions({file: [1, 3] for file in table.files})
    table.delete_positions({table.files[0]: [0, 3]}, file_format="avro")
    table.append(good(20, "x", 20))
    return table


def _file_format(java: JavaOracle, folder: Path, file_format: str) -> JavaTable:
    table = JavaTable(java, folder, EVERY_TYPE_V2, format_version=2)
    table.append(*every_type_rows(EVERY_TYPE_V2), file_format=file_format)
    table.append(*every_type_rows(EVERY_TYPE_V2))
    table.delete_positions({table.files[0]: [1]})
    return table


def avro_v2(java: JavaOracle, folder: Path) -> JavaTable:
    """v2; an Avro data file beside a Parquet one, with a position delete"""
    return _file_format(java, folder, "avro")


def orc_v2(java: JavaOracle, folder: Path) -> JavaTable:
    """v2; an ORC data file beside a Parquet one, with a position delete"""
    return _file_format(java, folder, "orc")


def defaults_v3(java: JavaOracle, folder: Path) -> JavaTable:
    """v3; columns added with an initial default, read from files written before them"""
    table = JavaTable(java, folder, GOODS, format_version=3)
    table.append(good(1, "a", 1), good(2, None, 2))
    table.add_column(ice.NestedField(4, "grade", ice.StringType(), required=False), default="new")
    table.add_column(ice.NestedField(5, "weight", ice.LongType(), required=False), default=7)
    table.append({"id": 3, "name": "c", "quantity": 3, "grade": None, "weight": 9})
    table.delete_positions({table.files[0]: [0]})
    return table


_TYPES = (
    ice.BooleanType(),
    ice.IntegerType(),
    ice.LongType(),
    ice.FloatType(),
    ice.DoubleType(),
    ice.DateType(),
    ice.TimeType(),
    ice.TimestampType(),
    ice.TimestamptzType(),
    ice.StringType(),
    ice.UUIDType(),
    ice.FixedType(5),
    ice.BinaryType(),
    ice.DecimalType(9, 2),
    ice.DecimalType(18, 4),
    ice.DecimalType(38, 10),
)
_NANOS = (ice.TimestampNanoType(), ice.TimestamptzNanoType())
_PLACE = ice.StructType(
    ice.NestedField(101, "x", ice.DoubleType(), required=False),
    ice.NestedField(
        102,
        "tags",
        ice.MapType(103, ice.StringType(), 104, ice.TimestamptzType(), value_required=False),
        required=False,
    ),
)


def _every_type(types: Sequence[Any]) -> Schema:
    columns = [
        ice.NestedField(number, f"c{number}_{type(kind).__name__.lower()}", kind, required=False)
        for number, kind in enumerate(types, start=1)
    ]
    columns.append(
        ice.NestedField(
            100, "places", ice.ListType(105, _PLACE, element_required=False), required=False
        )
    )
    return Schema(*columns)


EVERY_TYPE_V2 = _every_type(_TYPES)
EVERY_TYPE_V3 = _every_type((*_TYPES, *_NANOS))

_VALUES: tuple[tuple[Any, ...], ...] = (
    (True, False, None),
    (2**31 - 1, -(2**31), 0),
    (2**63 - 1, -(2**63), 0),
    (1.5, float("-inf"), float("nan")),
    (-0.0, 1e300, float("nan")),
    (0, -719_162, 2_932_896),
    (0, 86_399_999_999, 1),
    (0, -1, 253_402_300_799_999_999),
    (1, -62_135_596_800_000_000, 1_700_000_000_000_000),
    ("", "žluť 🧊", "a" * 40),
    (b"\x00" * 16, b"\xff" * 16, bytes(range(16))),
    (b"\x00" * 5, b"\xff" * 5, b"abcde"),
    (b"", b"\xff" * 20, b"\x00"),
    (Decimal("0.00"), Decimal("-9999999.99"), Decimal("9999999.99")),
    (Decimal("0.0001"), Decimal("-12345678901234.5678"), Decimal("1.0000")),
    (Decimal("1E-10"), Decimal("-1234567890123456789012345678.0123456789"), Decimal("0E-10")),
    (1, -1, 1_700_000_000_123_456_789),
    (2**63 - 1, -(2**63), 1_700_000_000_123_456_789),
)


def every_type_rows(schema: Schema) -> list[Row]:
    """Three rows of telling values and one of nulls."""
    names = [field.name for field in schema.fields if field.name != "places"]
    rows: list[Row] = [
        {name: values[index] for name, values in zip(names, _VALUES, strict=False)}
        for index in range(3)
    ]
    rows[0] = {**rows[0], "places": [{"x": 1.5, "tags": [("k", 0), ("n", None)]}, None]}
    rows[1] = {**rows[1], "places": [{"x": None, "tags": []}]}
    return [*rows, {}]


def _types(java: JavaOracle, folder: Path, version: int, schema: Schema) -> JavaTable:
    table = JavaTable(java, folder, schema, format_version=version)
    table.append(*every_type_rows(schema))
    table.append({})
    table.delete_positions({table.files[0]: [2]})
    return table


def types_v2(java: JavaOracle, folder: Path) -> JavaTable:
    """v2; every primitive type of v2, structs and maps in a list"""
    return _types(java, folder, 2, EVERY_TYPE_V2)


def types_v3(java: JavaOracle, folder: Path) -> JavaTable:
    """v3; every primitive type of v3, nanosecond timestamps included"""
    return _types(java, folder, 3, EVERY_TYPE_V3)


MAKERS = (
    equality_v2,
    equality_v3,
    equality_partitioned_v2,
    equality_partitioned_v3,
    positions_v2,
    avro_v2,
    orc_v2,
    defaults_v3,
    types_v2,
    types_v3,
)
"""Each makes one table; its name is the function's, its notes are the docstring."""
