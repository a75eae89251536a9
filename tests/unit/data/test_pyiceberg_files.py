"""Data files between Frazil and PyIceberg, both ways."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as ice
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.typedef import Record

from frazil.data.schema import for_display
from frazil.data.slices import DataFileSlice
from frazil.filter.text.filter_text import parse
from frazil.format.paths import resolve
from frazil.iceberg.pyiceberg_values import from_pyiceberg
from tests.support.data_files import read, slice_of, write

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.IntegerType(), required=True),
    ice.NestedField(2, "flag", ice.BooleanType()),
    ice.NestedField(3, "ratio", ice.FloatType()),
    ice.NestedField(4, "amount", ice.DecimalType(12, 2)),
    ice.NestedField(5, "day", ice.DateType()),
    ice.NestedField(6, "clock", ice.TimeType()),
    ice.NestedField(7, "at", ice.TimestampType()),
    ice.NestedField(8, "when", ice.TimestamptzType()),
    ice.NestedField(9, "name", ice.StringType()),
    ice.NestedField(10, "uid", ice.UUIDType()),
    ice.NestedField(11, "code", ice.FixedType(4)),
    ice.NestedField(12, "raw", ice.BinaryType()),
    ice.NestedField(
        13,
        "place",
        ice.StructType(
            ice.NestedField(14, "lat", ice.DoubleType()),
            ice.NestedField(
                15,
                "visits",
                ice.ListType(
                    16, ice.StructType(ice.NestedField(17, "who", ice.StringType())), False
                ),
            ),
        ),
    ),
    ice.NestedField(
        18, "props", ice.MapType(19, ice.StringType(), 20, ice.IntegerType(), value_required=False)
    ),
)


def _rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "flag": i % 2 == 0,
            "ratio": i / 4,
            "amount": Decimal(i) / 4,
            "day": dt.date(2024, 1, 1) + dt.timedelta(days=i),
            "clock": dt.time(i % 24, 1),
            "at": dt.datetime(2024, 1, 1, i % 24),
            "when": dt.datetime(2024, 1, 1, i % 24, tzinfo=dt.UTC),
            "name": f"name {i}" if i % 5 else None,
            "uid": uuid.UUID(int=i),
            "code": f"{i:04}".encode(),
            "raw": bytes([i]),
            "place": None if i % 3 == 0 else {"lat": i / 2, "visits": [{"who": "ann"}, None]},
            "props": {"k": i} if i % 2 else None,
        }
        for i in range(count)
    ]


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    """A PyIceberg catalog over local files."""
    made = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}/warehouse")
    made.create_namespace("db")
    return made


def _read_all(table: Table, **options: Any) -> pa.Table:
    schema = table.schema()
    parts = []
    for task in table.scan().plan_files():
        spec = table.specs()[task.file.spec_id]
        source = DataFileSlice(
            path=task.file.file_path,
            file_format=task.file.file_format.value.lower(),
            record_count=task.file.record_count,
            file_size_in_bytes=task.file.file_size_in_bytes,
            spec_id=task.file.spec_id,
            partition={
                part.field_id: task.file.partition[at] for at, part in enumerate(spec.fields)
            },
        )
        own = from_pyiceberg(schema)
        specs = {spec_id: from_pyiceberg(spec) for spec_id, spec in table.specs().items()}
        parts.append(for_display(read(source, own, specs=specs, **options), own))
    return pa.concat_tables(parts)


def _comparable(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(rows, key=lambda row: int(row.get("id", row.get("key", 0))))


def test_files_that_pyiceberg_wrote_are_read_as_it_reads_them(catalog: SqlCatalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    arrow = schema_to_pyarrow(table.schema(), include_field_ids=False)
    table.append(pa.Table.from_pylist(_rows(40), arrow))
    assert _comparable(_read_all(table)) == _comparable(table.scan().to_arrow())


def test_evolved_tables_of_pyiceberg_are_read_as_it_reads_them(catalog: SqlCatalog) -> None:
    table = catalog.create_table(
        "db.t",
        SCHEMA,
        partition_spec=PartitionSpec(
            PartitionField(source_id=1, field_id=1000, transform=BucketTransform(2), name="b")
        ),
    )
    arrow = schema_to_pyarrow(table.schema(), include_field_ids=False)
    table.append(pa.Table.from_pylist(_rows(20), arrow))
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.rename_column("id", "key")
        change.update_column("id", ice.LongType())
        change.update_column("ratio", ice.DoubleType())
        change.update_column("amount", ice.DecimalType(18, 2))
        change.delete_column("flag")
        change.add_column("note", ice.StringType())
        change.add_column(("place", "lon"), ice.DoubleType())
        change.rename_column(("place", "lat"), "latitude")
        change.move_first("name")
    new = table.schema()
    table.append(
        pa.Table.from_pylist(
            [{"key": 100, "note": "new", "place": {"latitude": 1.0, "lon": 2.0}}],
            schema_to_pyarrow(new, include_field_ids=False),
        )
    )
    ours = _comparable(_read_all(table))
    assert ours == _comparable(table.scan().to_arrow())
    assert len(ours) == 21
    filtered = _read_all(
        table, row_filter=parse("place.latitude > 5 and key < 15", from_pyiceberg(new))
    )
    theirs = table.scan("place.latitude > 5 and key < 15").to_arrow()
    assert _comparable(filtered) == _comparable(theirs)


def test_pyiceberg_reads_our_files(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    schema = table.schema()
    spec = PartitionSpec(
        PartitionField(source_id=5, field_id=1000, transform=IdentityTransform(), name="day"),
        spec_id=0,
    )
    location = str(tmp_path / "ours")
    own = from_pyiceberg(schema)
    entries = write(_rows(6), own, location, spec=from_pyiceberg(spec))
    tasks = []
    for index in range(entries.num_rows):
        row = entries.row(index)
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=resolve(location, row["location"]),
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=row["record_count"],
            file_size_in_bytes=row["file_size_in_bytes"],
        )
        file.spec_id = 0
        tasks.append(FileScanTask(file))
    scan = ArrowScan(table.metadata, table.io, schema, AlwaysTrue())
    theirs = scan.to_table(tasks)
    ours = pa.concat_tables(
        for_display(read(slice_of(entries, location, index), own), own)
        for index in range(entries.num_rows)
    )
    assert _comparable(theirs) == _comparable(ours)
    assert [row["id"] for row in _comparable(ours)] == list(range(6))
