"""Parquet manifests with v3's columns, as early format-version 4 writers made them."""

from __future__ import annotations

import datetime
import io
import struct
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import data_file_with_partition, manifest_entry_schema_with_data_file

from frazil.errors import FormatError
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.metadata import metadata
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.pyiceberg_values import pyiceberg_schema, pyiceberg_spec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import DayTransform
from frazil.iceberg.types import LongType, NestedField, StringType, TimestampType
from frazil.legacy.read import manifest_entries

LOCATION = "s3://bucket/t"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
    NestedField(3, "ts", TimestampType(), required=False),
)
SPEC = PartitionSpec(PartitionField(3, 1000, DayTransform(), "ts_day"))
TABLE = metadata.new_table(
    schema=SCHEMA, location=LOCATION, table_uuid=uuid.UUID(int=4), now_ms=1, spec=SPEC
)


def manifest(entries: list[dict[str, Any]]) -> bytes:
    """A Parquet manifest with v3's manifest_entry schema and field ids."""
    file_type = data_file_with_partition(
        pyiceberg_spec(SPEC).partition_type(pyiceberg_schema(SCHEMA)), 3
    )
    schema = schema_to_pyarrow(
        manifest_entry_schema_with_data_file(3, file_type),
        metadata={b"format-version": b"4", b"content": b"data", b"partition-spec-id": b"0"},
    )
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(entries, schema=schema), sink)
    return sink.getvalue()


def entry(number: int, **changes: Any) -> dict[str, Any]:
    file: dict[str, Any] = {
        "content": 0,
        "file_path": f"{LOCATION}/data/{number}.parquet",
        "file_format": "PARQUET",
        "partition": {"ts_day": datetime.date(2024, 1, 1 + number)},
        "record_count": 10 * number,
        "file_size_in_bytes": 100,
        "value_counts": [(1, number), (2, 5)],
        "null_value_counts": [(2, 0)],
        "lower_bounds": [(1, struct.pack("<q", -number)), (2, b"a")],
        "upper_bounds": [(2, b"b")] if number else None,
        "split_offsets": [4],
        **changes,
    }
    return {"status": 1, "snapshot_id": None, "data_file": file}


def read(data: bytes, keys: set[str] | None = None) -> EntryBatch:
    return manifest_entries.entries_of(
        data,
        path="m.parquet",
        content_type=ContentType.DATA_MANIFEST,
        spec_id=0,
        metadata=TABLE,
        location=LOCATION,
        keys=keys,
    )


def test_entries_are_those_of_the_same_manifest_in_avro() -> None:
    batch = read(manifest([entry(0), entry(1), entry(2, first_row_id=7)]))
    day = TABLE.expressions[0].expr_id
    assert batch.pylist("tracking.status") == [1, 1, 1]
    assert batch.pylist("tracking.snapshot_id") == [None] * 3
    assert batch.pylist("tracking.sequence_number") == [None] * 3
    assert batch.pylist("tracking.first_row_id") == [None, None, 7]
    assert batch.pylist("content_type") == [0, 0, 0]
    assert batch.pylist("location") == ["data/0.parquet", "data/1.parquet", "data/2.parquet"]
    assert batch.pylist("file_format") == ["parquet"] * 3
    assert batch.pylist("record_count") == [0, 10, 20]
    assert batch.pylist("split_offsets") == [[4], [4], [4]]
    assert batch.pylist("content_stats.1.value_count") == [0, 1, 2]
    assert batch.pylist("content_stats.1.null_value_count") == [None] * 3
    assert batch.pylist("content_stats.2.null_value_count") == [0, 0, 0]
    assert batch.pylist("content_stats.1.lower_bound") == [0, -1, -2]
    assert batch.pylist("content_stats.2.upper_bound") == [None, "b", "b"]
    days = [datetime.date(2024, 1, 1 + number) for number in range(3)]
    assert batch.pylist("partition.1000") == days
    assert batch.pylist(f"content_stats.{day}.upper_bound") == days


def test_only_the_columns_asked_for_are_read_and_those_always_needed() -> None:
    batch = read(manifest([entry(1)]), {"location", "content_stats.1.lower_bound"})
    assert batch.row(0) == {
        "tracking.status": 1,
        "content_type": 0,
        "location": "data/1.parquet",
        "content_stats.1.lower_bound": -1,
    }


def test_a_manifest_without_entries_is_empty() -> None:
    assert read(manifest([])).num_rows == 0


def test_a_file_that_is_cut_short_is_named() -> None:
    with pytest.raises(FormatError, match=r"m\.parquet: not a readable Parquet manifest"):
        read(manifest([entry(1)])[:-9])
