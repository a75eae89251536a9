"""v2 and v3 manifests and lists that we write, read back by PyIceberg."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntryStatus,
    read_manifest_list,
)

from frazil.format.entries import stats
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.metadata import metadata
from frazil.format.values.types import arrow_type
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from frazil.legacy.publish import write_manifests
from frazil.legacy.publish.write_manifests import FieldSummary, ListRow
from frazil.legacy.read import manifest_entries
from frazil.tree.table_shape import shape_of
from tests.support import legacy_files
from tests.support.legacy_files import Version
from tests.support.pyiceberg_oracle import to_bytes

LOCATION = "s3://bucket/t"
SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=False),
    ice.NestedField(2, "name", ice.StringType(), required=False),
    ice.NestedField(3, "ts", ice.TimestampType(), required=False),
    ice.NestedField(4, "price", ice.DecimalType(12, 2), required=False),
    ice.NestedField(5, "x", ice.DoubleType(), required=False),
    ice.NestedField(6, "u", ice.UUIDType(), required=False),
    ice.NestedField(7, "w", ice.UUIDType(), required=False),
)
SPEC = PartitionSpec(
    PartitionField(3, 1000, DayTransform(), "ts_day"),
    PartitionField(4, 1001, IdentityTransform(), "price"),
    PartitionField(1, 1002, BucketTransform(8), "id_bucket"),
    PartitionField(5, 1003, IdentityTransform(), "x"),
    PartitionField(6, 1004, IdentityTransform(), "u"),
    PartitionField(7, 1005, IdentityTransform(), "w"),
)
TABLE = metadata.new_table(
    schema=SCHEMA, location=LOCATION, table_uuid=uuid.UUID(int=5), now_ms=1, spec=SPEC
)
U = uuid.UUID(int=77).bytes


def data_row(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "tracking.status": number % 2,
        "tracking.snapshot_id": 10 + number,
        "tracking.sequence_number": number,
        "tracking.file_sequence_number": number + 1,
        "tracking.first_row_id": 1000 * number,
        "content_type": 0,
        "location": f"data/{number}.parquet",
        "file_format": "parquet",
        "record_count": 5 + number,
        "file_size_in_bytes": 1 << 33,
        "split_offsets": [4, 9],
        "sort_order_id": 3,
        "partition.1000": datetime.date(2024, 1, 1 + number),
        "partition.1001": Decimal("-1.25") if number else None,
        "partition.1002": number,
        "partition.1003": float("nan") if number == 1 else -0.5,
        "partition.1004": U,
        "content_stats.1.lower_bound": -5,
        "content_stats.1.value_count": 5,
        "content_stats.2.lower_bound": "a" if number else None,
        "content_stats.2.upper_bound": "z",
        "content_stats.2.null_value_count": number,
        "content_stats.4.upper_bound": Decimal("12.50"),
        "content_stats.5.nan_value_count": 1,
        **changes,
    }


def batch_of(rows: list[dict[str, Any]]) -> EntryBatch:
    kinds = dict(stats.stats_types(stats.tracked_fields(SCHEMA)))
    for field_id, kind in shape_of(TABLE).partition_types.items():
        kinds[f"partition.{field_id}"] = arrow_type(kind)
    return EntryBatch.from_rows(rows, kinds)


def encoded(rows: list[dict[str, Any]], version: Version, *, is_deletes: bool = False) -> bytes:
    return write_manifests.encode_manifest(
        batch_of(rows),
        format_version=version,
        is_deletes=is_deletes,
        spec=SPEC,
        metadata=TABLE,
        location=LOCATION,
    )


@pytest.mark.parametrize("version", [2, 3])
def test_a_data_manifest_is_read_by_pyiceberg(tmp_path: Path, version: Version) -> None:
    path = tmp_path / "m.avro"
    path.write_bytes(encoded([data_row(0), data_row(1)], version))
    first, second = legacy_files.read_entries(path, version)
    assert first.status is ManifestEntryStatus.EXISTING
    assert second.status is ManifestEntryStatus.ADDED
    assert (second.snapshot_id, second.sequence_number, second.file_sequence_number) == (11, 1, 2)
    file = second.data_file
    assert file.content is DataFileContent.DATA
    assert file.file_format is FileFormat.PARQUET
    assert file.file_path == "s3://bucket/t/data/1.parquet"
    assert (file.record_count, file.file_size_in_bytes) == (6, 1 << 33)
    assert (file.split_offsets, file.sort_order_id) == ([4, 9], 3)
    assert file.partition[0] == (datetime.date(2024, 1, 2) - datetime.date(1970, 1, 1)).days
    assert file.partition[1] == Decimal("-1.25")
    assert file.partition[2] == 1
    assert file.partition[4] == uuid.UUID(int=77)
    assert file.partition[5] is None
    assert first.data_file.partition[1] is None
    assert file.value_counts == {1: 5}
    assert file.null_value_counts == {2: 1}
    assert file.nan_value_counts == {5: 1}
    assert file.lower_bounds == {1: to_bytes(ice.LongType(), -5), 2: b"a"}
    assert first.data_file.lower_bounds == {1: to_bytes(ice.LongType(), -5)}
    assert file.upper_bounds == {
        2: b"z",
        4: to_bytes(ice.DecimalType(12, 2), Decimal("12.50")),
    }
    if version == 3:
        assert file[16] == 1000  # first_row_id


def test_a_manifest_reads_back_as_it_was_written() -> None:
    rows = [data_row(number) for number in range(5)]
    data = encoded(rows, 3)
    batch = manifest_entries.entries_of(
        data,
        path="m.avro",
        content_type=ContentType.DATA_MANIFEST,
        spec_id=SPEC.spec_id,
        metadata=TABLE,
        location=LOCATION,
    )
    written = batch_of(rows)
    for key in written.keys:
        if key != "partition.1003":  # it holds NaN
            assert batch.pylist(key) == written.pylist(key), key


def test_deletion_vectors_are_delete_entries_of_v3(tmp_path: Path) -> None:
    row = {
        **data_row(1),
        "content_type": 1,
        "location": "data/v.puffin",
        "file_format": "puffin",
        "record_count": 2,
        "referenced_file": "data/1.parquet",
        "deletion_vector.offset": 4,
        "deletion_vector.size_in_bytes": 40,
        "tracking.first_row_id": None,
    }
    equality = {**data_row(2), "content_type": 2, "equality_ids": [1, 2]}
    path = tmp_path / "m.avro"
    path.write_bytes(encoded([row, equality], 3, is_deletes=True))
    vector, by_equality = legacy_files.read_entries(path, 3)
    assert vector.data_file.content is DataFileContent.POSITION_DELETES
    assert vector.data_file.file_format is FileFormat.PUFFIN
    assert [vector.data_file[i] for i in (17, 18, 19)] == ["s3://bucket/t/data/1.parquet", 4, 40]
    assert by_equality.data_file.content is DataFileContent.EQUALITY_DELETES
    assert by_equality.data_file.equality_ids == [1, 2]


def test_summaries_are_those_of_the_partition_values() -> None:
    summaries = write_manifests.summarise(batch_of([data_row(n) for n in range(3)]), SPEC, TABLE)
    days = [(datetime.date(2024, 1, d) - datetime.date(1970, 1, 1)).days for d in (1, 3)]
    assert summaries[0] == FieldSummary(
        contains_null=False,
        contains_nan=False,
        lower_bound=to_bytes(ice.IntegerType(), days[0]),
        upper_bound=to_bytes(ice.IntegerType(), days[1]),
    )
    assert summaries[1].contains_null
    half = to_bytes(ice.DoubleType(), -0.5)
    assert summaries[3] == FieldSummary(
        contains_null=False, contains_nan=True, lower_bound=half, upper_bound=half
    )
    assert summaries[5] == FieldSummary(
        contains_null=True, contains_nan=False, lower_bound=None, upper_bound=None
    )


@pytest.mark.parametrize("version", [2, 3])
def test_a_manifest_list_is_read_by_pyiceberg(tmp_path: Path, version: Version) -> None:
    rows = [
        ListRow(
            path="s3://bucket/t/metadata/m1.avro",
            length=123,
            spec_id=0,
            is_deletes=False,
            sequence_number=7,
            min_sequence_number=2,
            added_snapshot_id=99,
            files=(1, 2, 3),
            rows=(10, 20, 30),
            first_row_id=500,
            summaries=(
                FieldSummary(
                    contains_null=True, contains_nan=False, lower_bound=b"a", upper_bound=None
                ),
            ),
        ),
        ListRow(
            path="m2",
            length=5,
            spec_id=1,
            is_deletes=True,
            sequence_number=8,
            min_sequence_number=8,
            added_snapshot_id=98,
            files=(4, 0, 0),
            rows=(4, 0, 0),
        ),
    ]
    path = tmp_path / "list.avro"
    path.write_bytes(
        write_manifests.encode_list(
            rows,
            format_version=version,
            snapshot_id=99,
            parent_snapshot_id=None,
            sequence_number=7,
            first_row_id=500,
        )
    )
    first, second = read_manifest_list(PyArrowFileIO().new_input(str(path)))
    assert first.manifest_path == "s3://bucket/t/metadata/m1.avro"
    assert (first.manifest_length, first.partition_spec_id) == (123, 0)
    assert first.content is ManifestContent.DATA
    assert (first.sequence_number, first.min_sequence_number, first.added_snapshot_id) == (7, 2, 99)
    assert (first.added_files_count, first.existing_files_count, first.deleted_files_count) == (
        1, 2, 3,
    )  # fmt: skip
    assert (first.added_rows_count, first.existing_rows_count, first.deleted_rows_count) == (
        10, 20, 30,
    )  # fmt: skip
    assert first.partitions is not None
    assert first.partitions[0].contains_null
    assert first.partitions[0].lower_bound == b"a"
    assert first.partitions[0].upper_bound is None
    assert second.content is ManifestContent.DELETES
    assert second.partitions == []  # Trino reads no manifest list without them
