"""Manifest lists of v1 to v3 as roots; written with PyIceberg, expected values by hand."""

from __future__ import annotations

import struct
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import ManifestContent, ManifestEntryStatus

from frazil.errors import FormatError
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata import metadata
from frazil.format.metadata.metadata import Snapshot, SnapshotId, TableMetadata
from frazil.iceberg.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import BucketTransform, IdentityTransform
from frazil.iceberg.types import DoubleType, LongType, NestedField, StringType
from frazil.legacy.read import manifest_entries, manifest_list
from frazil.storage import LocalStorage
from tests.support import legacy_files
from tests.support.legacy_files import Version

LOCATION = "/warehouse/db/t"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
    NestedField(3, "x", DoubleType(), required=False),
)
SPEC = PartitionSpec(
    PartitionField(2, 1000, IdentityTransform(), "name"),
    PartitionField(1, 1001, BucketTransform(8), "id_bucket"),
)
BY_X = PartitionSpec(PartitionField(3, 1002, IdentityTransform(), "x"), spec_id=1)


def table(*specs: PartitionSpec) -> TableMetadata:
    first, *others = specs or (UNPARTITIONED,)
    made = metadata.new_table(
        schema=SCHEMA, location=LOCATION, table_uuid=uuid.UUID(int=3), now_ms=1, spec=first
    )
    for spec in others:
        made = made.with_spec(spec, now_ms=2)
    return made


def snapshot(**trees: Any) -> Snapshot:
    return Snapshot(snapshot_id=SnapshotId(9), sequence_number=4, timestamp_ms=1, **trees)


def root(
    tmp_path: Path, version: Version, rows: list[Any], described: TableMetadata | None = None
) -> EntryBatch:
    path = tmp_path / "list.avro"
    legacy_files.write_list(path, version, rows)
    return manifest_list.root_of(
        snapshot(manifest_list=str(path)),
        metadata=described or table(),
        location=LOCATION,
        storage=LocalStorage(),
    )


def test_rows_of_a_v3_list_become_manifest_entries(tmp_path: Path) -> None:
    rows = [
        legacy_files.manifest_row(
            3,
            path=f"{LOCATION}/metadata/m1.avro",
            manifest_length=1234,
            added_snapshot_id=9,
            sequence_number=4,
            min_sequence_number=3,
            added_files_count=5,
            existing_files_count=6,
            deleted_files_count=7,
            added_rows_count=50,
            existing_rows_count=60,
            deleted_rows_count=70,
            first_row_id=700,
        ),
        legacy_files.manifest_row(
            3,
            path="s3://bucket/m2.parquet",
            content=ManifestContent.DELETES,
            added_snapshot_id=8,
            key_metadata=b"k",
        ),
    ]
    batch = root(tmp_path, 3, rows)
    assert {key: batch.pylist(key) for key in batch.keys} == {
        "tracking.status": [1, 0],
        "tracking.snapshot_id": [9, 8],
        "tracking.sequence_number": [4, 1],
        "tracking.first_row_id": [700, None],
        "content_type": [3, 4],
        "manifest_info.format_version": [0, 0],
        "location": ["metadata/m1.avro", "s3://bucket/m2.parquet"],
        "file_format": ["avro", "parquet"],
        "record_count": [18, 1],
        "file_size_in_bytes": [1234, 1000],
        "spec_id": [0, 0],
        "key_metadata": [None, b"k"],
        "manifest_info.added_files_count": [5, 1],
        "manifest_info.existing_files_count": [6, 0],
        "manifest_info.deleted_files_count": [7, 0],
        "manifest_info.replaced_files_count": [0, 0],
        "manifest_info.added_rows_count": [50, 1],
        "manifest_info.existing_rows_count": [60, 0],
        "manifest_info.deleted_rows_count": [70, 0],
        "manifest_info.replaced_rows_count": [0, 0],
        "manifest_info.modified_files_count": [0, 0],
        "manifest_info.modified_rows_count": [0, 0],
        "manifest_info.min_sequence_number": [3, 1],
    }


def test_partition_summaries_bound_source_and_derived_columns(tmp_path: Path) -> None:
    described = table(SPEC, BY_X)
    rows = [
        legacy_files.manifest_row(
            2,
            path="s3://b/1",
            partitions=[
                legacy_files.summary(b"a", b"m", contains_null=True),
                legacy_files.summary(struct.pack("<i", 1), struct.pack("<i", 5)),
            ],
        ),
        legacy_files.manifest_row(
            2,
            path="s3://b/2",
            partition_spec_id=1,
            partitions=[legacy_files.summary(struct.pack("<d", -1.5), struct.pack("<d", 2.5))],
        ),
        legacy_files.manifest_row(
            2,
            path="s3://b/3",
            partition_spec_id=1,
            partitions=[legacy_files.summary(None, None, contains_null=True, contains_nan=True)],
        ),
        legacy_files.manifest_row(2, path="s3://b/4", partitions=None),
    ]
    batch = root(tmp_path, 2, rows, described)
    bucket = described.expressions[0].expr_id
    stats = {key: batch.pylist(key) for key in batch.keys if key.startswith("content_stats")}
    assert stats == {
        "content_stats.2.lower_bound": ["a", None, None, None],
        "content_stats.2.upper_bound": ["m", None, None, None],
        "content_stats.2.null_value_count": [None, None, None, None],
        f"content_stats.{bucket}.lower_bound": [1, None, None, None],
        f"content_stats.{bucket}.upper_bound": [5, None, None, None],
        f"content_stats.{bucket}.null_value_count": [0, None, None, None],
        "content_stats.3.lower_bound": [None, -1.5, None, None],
        "content_stats.3.upper_bound": [None, 2.5, None, None],
        "content_stats.3.null_value_count": [None, 0, None, None],
        "content_stats.3.nan_value_count": [None, 0, None, None],
    }


def test_a_v1_list_without_counts_takes_them_from_the_manifests(tmp_path: Path) -> None:
    statuses = [
        ManifestEntryStatus.ADDED,
        ManifestEntryStatus.EXISTING,
        ManifestEntryStatus.DELETED,
    ]
    entries = [
        legacy_files.entry(
            1,
            path=f"s3://b/{number}",
            status=statuses[number % 3],
            snapshot_id=2,
            record_count=10 + number,
        )
        for number in range(4)
    ]
    manifest = tmp_path / "m.avro"
    legacy_files.write_manifest(manifest, 1, entries, schema=SCHEMA, spec=UNPARTITIONED)
    unknown = dict.fromkeys(
        f"{name}_{what}_count"
        for name in ("added", "existing", "deleted")
        for what in ("files", "rows")
    )
    row = legacy_files.manifest_row(1, path=str(manifest), added_snapshot_id=2, **unknown)
    batch = root(tmp_path, 1, [row])
    assert batch.row(0) == {
        "tracking.status": 0,
        "tracking.snapshot_id": 2,
        "tracking.sequence_number": 0,
        "content_type": 3,
        "manifest_info.format_version": 0,
        "location": f"file://{manifest}",
        "file_format": "avro",
        "record_count": 4,
        "file_size_in_bytes": 1000,
        "spec_id": 0,
        "manifest_info.added_files_count": 2,
        "manifest_info.existing_files_count": 1,
        "manifest_info.deleted_files_count": 1,
        "manifest_info.replaced_files_count": 0,
        "manifest_info.added_rows_count": 10 + 13,
        "manifest_info.existing_rows_count": 11,
        "manifest_info.deleted_rows_count": 12,
        "manifest_info.replaced_rows_count": 0,
        "manifest_info.modified_files_count": 0,
        "manifest_info.modified_rows_count": 0,
        "manifest_info.min_sequence_number": 0,
    }


def test_a_v1_snapshot_that_names_its_manifests_is_a_root_too(tmp_path: Path) -> None:
    names = []
    for snapshot_id in (8, 9):
        path = tmp_path / f"m{snapshot_id}.avro"
        entry = legacy_files.entry(1, path="s3://b/f", snapshot_id=snapshot_id, record_count=5)
        legacy_files.write_manifest(path, 1, [entry], schema=SCHEMA, spec=UNPARTITIONED)
        names.append(str(path))
    batch = manifest_list.root_of(
        snapshot(manifests=tuple(names)),
        metadata=table(),
        location=LOCATION,
        storage=LocalStorage(),
    )
    assert batch.pylist("tracking.status") == [0, 1]
    assert batch.pylist("location") == [f"file://{name}" for name in names]
    assert batch.pylist("record_count") == [1, 1]
    assert batch.pylist("manifest_info.added_rows_count") == [5, 5]
    assert batch.pylist("file_size_in_bytes") == [Path(name).stat().st_size for name in names]


def test_an_empty_list_is_an_empty_root(tmp_path: Path) -> None:
    assert root(tmp_path, 2, []).num_rows == 0


def test_a_number_too_large_for_its_field_names_file_and_field() -> None:
    with pytest.raises(FormatError, match=r"spec_id.*expected int32") as raised:
        manifest_entries.declared(pa.array([1, 2**40]), "spec_id", path="list.avro")
    assert (raised.value.path, raised.value.field) == ("list.avro", "spec_id")


def test_a_list_that_is_cut_short_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "list.avro"
    data = legacy_files.write_list(path, 2, [legacy_files.manifest_row(2, path="s3://b/1")])
    with pytest.raises(FormatError) as raised:
        manifest_list.entries_of(
            data[:-20], path="list.avro", snapshot_id=1, metadata=table(), location=LOCATION
        )
    assert raised.value.path == "list.avro"
