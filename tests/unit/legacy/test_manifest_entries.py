"""Manifests of v1 to v3, written with PyIceberg and compared with what PyIceberg reads."""

from __future__ import annotations

import struct
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus

from frazil.errors import FormatError
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.metadata import metadata
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
)
from frazil.legacy.read import manifest_entries
from tests.support import legacy_files
from tests.support.legacy_files import Version
from tests.support.pyiceberg_oracle import from_bytes, to_bytes

LOCATION = "file:///warehouse/db/t"

COLUMNS: list[tuple[int, str, ice.PrimitiveType, Any, Any]] = [
    (1, "id", ice.LongType(), -5, 1 << 40),
    (2, "ts", ice.TimestampType(), -1, 1_700_000_000_000_000),
    (3, "name", ice.StringType(), "a", "zürich"),
    (4, "amount", ice.DoubleType(), -1.5, 2.25),
    (5, "qty", ice.IntegerType(), -7, 70000),
    (6, "price", ice.DecimalType(12, 2), Decimal("-1.23"), Decimal("99999.99")),
    (7, "d", ice.DateType(), -3, 19_000),
    (8, "flag", ice.BooleanType(), False, True),
    (9, "x", ice.FloatType(), -0.5, 0.5),
    (10, "u", ice.UUIDType(), uuid.UUID(int=1).bytes, uuid.UUID(int=1 << 120).bytes),
    (11, "t", ice.TimeType(), 0, 86_399_999_999),
    (12, "tz", ice.TimestamptzType(), 0, 1),
    (13, "bin", ice.BinaryType(), b"\x00", b"\xff\xff"),
    (14, "fix", ice.FixedType(3), b"abc", b"xyz"),
]
SCHEMA = Schema(
    *[ice.NestedField(id_, name, kind, required=False) for id_, name, kind, *_ in COLUMNS]
)
SPEC = PartitionSpec(
    PartitionField(2, 1000, DayTransform(), "ts_day"),
    PartitionField(1, 1001, BucketTransform(16), "id_bucket"),
    PartitionField(3, 1002, IdentityTransform(), "name"),
    PartitionField(6, 1003, IdentityTransform(), "price"),
    PartitionField(3, 1004, TruncateTransform(2), "name_trunc"),
)


def table(spec: PartitionSpec = UNPARTITIONED) -> TableMetadata:
    return metadata.new_table(
        schema=SCHEMA, location=LOCATION, table_uuid=uuid.UUID(int=7), now_ms=1, spec=spec
    )


def with_stats(number: int) -> dict[str, Any]:
    """Statistics of every column; the even files lack those of column 3."""
    ids = [id_ for id_, *_ in COLUMNS if id_ != 3 or number % 2]
    return {
        "column_sizes": dict.fromkeys(ids, 1000),
        "value_counts": dict.fromkeys(ids, 100 + number),
        "null_value_counts": dict.fromkeys(ids, number),
        "nan_value_counts": {4: number, 9: 0},
        "lower_bounds": {i: to_bytes(kind, low) for i, _, kind, low, _ in COLUMNS if i in ids},
        "upper_bounds": {i: to_bytes(kind, high) for i, _, kind, _, high in COLUMNS if i in ids},
    }


def read(
    data: bytes,
    spec: PartitionSpec = UNPARTITIONED,
    *,
    content: ContentType = ContentType.DATA_MANIFEST,
    keys: set[str] | None = None,
) -> EntryBatch:
    return manifest_entries.entries_of(
        data,
        path="m.avro",
        content_type=content,
        spec_id=spec.spec_id,
        metadata=table(spec),
        location=LOCATION,
        keys=keys,
    )


FIXED = {
    "location": "file_path",
    "record_count": "record_count",
    "file_size_in_bytes": "file_size_in_bytes",
    "sort_order_id": "sort_order_id",
    "key_metadata": "key_metadata",
    "split_offsets": "split_offsets",
}


def compare(batch: EntryBatch, entries: list[ManifestEntry], spec: PartitionSpec) -> None:
    """Every column of the batch against PyIceberg's entries."""
    assert batch.num_rows == len(entries)
    assert batch.pylist("tracking.status") == [int(one.status) for one in entries]
    assert batch.pylist("tracking.snapshot_id") == [one.snapshot_id for one in entries]
    for key, name in FIXED.items():
        assert batch.pylist(key) == [getattr(one.data_file, name) for one in entries], key
    for index, part in enumerate(spec.fields):
        want = [one.data_file.partition[index] for one in entries]
        assert plain(batch, f"partition.{part.field_id}") == want, part.name
    for id_, _, kind, *_ in COLUMNS:
        for name, statistic in (
            ("value_counts", "value_count"),
            ("null_value_counts", "null_value_count"),
            ("nan_value_counts", "nan_value_count"),
            ("lower_bounds", "lower_bound"),
            ("upper_bounds", "upper_bound"),
        ):
            raw = [(getattr(one.data_file, name) or {}).get(id_) for one in entries]
            if statistic.endswith("bound"):
                raw = [None if value is None else _plain(from_bytes(kind, value)) for value in raw]
            assert plain(batch, f"content_stats.{id_}.{statistic}") == raw, (id_, statistic)


def _plain(value: Any) -> Any:
    return value.bytes if isinstance(value, uuid.UUID) else value


def plain(batch: EntryBatch, key: str) -> list[Any]:
    """A column's values, dates and times as the integers that PyIceberg has."""
    column = batch.column(key)
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(column.type):
        column = column.cast(pa.int64())
    return list(column.to_pylist())


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("block", [1, 40])
def test_data_entries_are_those_pyiceberg_reads(
    tmp_path: Path, version: Version, block: int
) -> None:
    statuses = [
        ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED,
    ]  # fmt: skip
    entries = [
        legacy_files.entry(
            version,
            path=f"s3://elsewhere/data/{number}.parquet",
            status=statuses[number % 3],
            snapshot_id=10**18 + number,
            partition=(19_000 + number, number % 16, "p" * (number % 5), Decimal(number) / 4, None),
            record_count=100 + number,
            file_size_in_bytes=10**9 * number,
            key_metadata=b"key" if number % 4 == 0 else None,
            split_offsets=[4, 1 << 33] if number % 3 else None,
            sort_order_id=number if number % 2 else None,
            **with_stats(number),
        )
        for number in range(40)
    ]
    path = tmp_path / "m.avro"
    data = legacy_files.write_manifest(
        path,
        version,
        entries,
        schema=SCHEMA,
        spec=SPEC,
        block=block,
    )
    batch = read(data, SPEC)
    compare(batch, legacy_files.read_entries(path, version), SPEC)
    assert batch.pylist("content_type") == [0] * 40
    assert batch.pylist("spec_id") == [SPEC.spec_id] * 40
    assert batch.pylist("file_format") == ["parquet"] * 40


def test_columns_have_the_types_of_v4(tmp_path: Path) -> None:
    entries = [
        legacy_files.entry(
            2, path="s3://b/f", partition=(1, 2, "c", Decimal(1), "d"), **with_stats(1)
        )
    ]
    data = legacy_files.write_manifest(tmp_path / "m", 2, entries, schema=SCHEMA, spec=SPEC)
    batch = read(data, SPEC)
    types = {key: batch.column(key).type for key in batch.keys}
    assert types["partition.1000"] == pa.date32()
    assert types["partition.1001"] == pa.int32()
    assert types["partition.1003"] == pa.decimal128(12, 2)
    assert types["content_stats.2.lower_bound"] == pa.timestamp("us")
    assert types["content_stats.10.upper_bound"] == pa.binary(16)
    assert types["content_stats.12.upper_bound"] == pa.timestamp("us", "UTC")
    assert types["content_stats.14.upper_bound"] == pa.binary(3)
    assert types["content_stats.5.null_value_count"] == pa.int64()
    assert types["tracking.status"] == pa.int32()


def test_v1_sequence_numbers_are_zero_and_v2_nulls_stay_to_be_inherited(tmp_path: Path) -> None:
    cases: list[tuple[Version, list[int | None]]] = [(1, [0]), (2, [None])]
    for version, expected in cases:
        entries = [legacy_files.entry(version, path="s3://b/f", snapshot_id=5)]
        data = legacy_files.write_manifest(
            tmp_path / str(version),
            version,
            entries,
            schema=SCHEMA,
            spec=UNPARTITIONED,
        )
        batch = read(data)
        assert batch.pylist("tracking.sequence_number") == expected
        assert batch.pylist("tracking.file_sequence_number") == expected


def test_explicit_sequence_numbers_and_row_ids_are_kept(tmp_path: Path) -> None:
    entries = [
        legacy_files.entry(
            3,
            path=f"s3://b/{number}",
            status=ManifestEntryStatus.EXISTING,
            snapshot_id=3,
            sequence_number=number,
            file_sequence_number=number + 1,
            first_row_id=None if number == 2 else 1000 * number,
        )
        for number in range(4)
    ]
    data = legacy_files.write_manifest(
        tmp_path / "m",
        3,
        entries,
        schema=SCHEMA,
        spec=UNPARTITIONED,
    )
    batch = read(data)
    assert batch.pylist("tracking.sequence_number") == [0, 1, 2, 3]
    assert batch.pylist("tracking.file_sequence_number") == [1, 2, 3, 4]
    assert batch.pylist("tracking.first_row_id") == [0, 1000, None, 3000]


def test_delete_files_keep_their_kind(tmp_path: Path) -> None:
    entries = [
        legacy_files.entry(
            3,
            path=f"{LOCATION}/data/p.parquet",
            content=DataFileContent.POSITION_DELETES,
            referenced_data_file=f"{LOCATION}/data/d.parquet",
            record_count=4,
        ),
        legacy_files.entry(
            3,
            path=f"{LOCATION}/data/v.puffin",
            content=DataFileContent.POSITION_DELETES,
            file_format=FileFormat.PUFFIN,
            referenced_data_file="s3://other/e.parquet",
            content_offset=4,
            content_size_in_bytes=55,
            record_count=3,
        ),
        legacy_files.entry(
            3,
            path="s3://other/q.parquet",
            content=DataFileContent.EQUALITY_DELETES,
            equality_ids=[1, 3],
        ),
    ]
    data = legacy_files.write_manifest(
        tmp_path / "m",
        3,
        entries,
        schema=SCHEMA,
        spec=UNPARTITIONED,
    )
    batch = read(data, content=ContentType.DELETE_MANIFEST)
    assert batch.pylist("content_type") == [1, 1, 2]
    assert batch.pylist("location") == ["data/p.parquet", "data/v.puffin", "s3://other/q.parquet"]
    assert batch.pylist("file_format") == ["parquet", "puffin", "parquet"]
    assert batch.pylist("referenced_file") == ["data/d.parquet", "s3://other/e.parquet", None]
    assert batch.pylist("equality_ids") == [None, None, [1, 3]]
    assert batch.pylist("deletion_vector.location") == [None, "data/v.puffin", None]
    assert batch.pylist("deletion_vector.offset") == [None, 4, None]
    assert batch.pylist("deletion_vector.size_in_bytes") == [None, 55, None]
    assert batch.pylist("deletion_vector.cardinality") == [None, 3, None]


def test_an_empty_text_for_a_referenced_file_is_none(tmp_path: Path) -> None:
    """As DuckDB writes position delete files that apply to several data files."""
    entry = legacy_files.entry(
        3,
        path=f"{LOCATION}/data/p.parquet",
        content=DataFileContent.POSITION_DELETES,
        referenced_data_file="",
    )
    data = legacy_files.write_manifest(
        tmp_path / "m",
        3,
        [entry],
        schema=SCHEMA,
        spec=UNPARTITIONED,
    )
    batch = read(data, content=ContentType.DELETE_MANIFEST)
    assert batch.pylist("referenced_file") == [None]


def test_paths_under_the_table_become_relative_with_or_without_scheme(tmp_path: Path) -> None:
    names = [
        f"{LOCATION}/data/a.parquet",
        "/warehouse/db/t/data/b.parquet",
        "file:/warehouse/db/t/data/c.parquet",
        "/elsewhere/d.parquet",
    ]
    data = legacy_files.write_manifest(
        tmp_path / "m",
        2,
        [legacy_files.entry(2, path=name) for name in names],
        schema=SCHEMA,
        spec=UNPARTITIONED,
    )
    assert read(data).pylist("location") == [
        "data/a.parquet",
        "data/b.parquet",
        "data/c.parquet",
        "file:///elsewhere/d.parquet",
    ]


def test_only_the_columns_asked_for_are_read_and_those_always_needed(tmp_path: Path) -> None:
    entries = [legacy_files.entry(2, path="s3://b/f", **with_stats(1))]
    data = legacy_files.write_manifest(
        tmp_path / "m",
        2,
        entries,
        schema=SCHEMA,
        spec=UNPARTITIONED,
    )
    asked = {"location", "content_stats.5.lower_bound"}
    batch = read(data, keys={*asked, "content_stats.77.lower_bound"})
    assert set(batch.keys) == {*asked, "tracking.status", "content_type"}
    assert batch.pylist("content_stats.5.lower_bound") == [-7]


def test_bounds_written_before_a_promotion_are_read_in_the_new_type(tmp_path: Path) -> None:
    entries = [
        legacy_files.entry(
            2,
            path="s3://b/f",
            lower_bounds={1: struct.pack("<i", -9), 4: struct.pack("<f", 0.5)},
            upper_bounds={1: struct.pack("<q", 9)},
        )
    ]
    data = legacy_files.write_manifest(
        tmp_path / "m",
        2,
        entries,
        schema=SCHEMA,
        spec=UNPARTITIONED,
    )
    batch = read(data)
    assert batch.pylist("content_stats.1.lower_bound") == [-9]
    assert batch.pylist("content_stats.1.upper_bound") == [9]
    assert batch.pylist("content_stats.4.lower_bound") == [0.5]


def test_derived_columns_take_their_statistics_from_the_partition(tmp_path: Path) -> None:
    entries = [
        legacy_files.entry(
            2, path="s3://b/1", partition=(19_000, 3, "n", None, "na"), record_count=10
        ),
        legacy_files.entry(
            2, path="s3://b/2", partition=(None, 4, "n", None, "na"), record_count=20
        ),
    ]
    data = legacy_files.write_manifest(tmp_path / "m", 2, entries, schema=SCHEMA, spec=SPEC)
    batch = read(data, SPEC)
    ids = {one.name: one.expr_id for one in table(SPEC).expressions}
    day, bucket = ids["ts_day"], ids["id_bucket"]
    assert plain(batch, f"content_stats.{day}.lower_bound") == [19_000, None]
    assert plain(batch, f"content_stats.{day}.upper_bound") == [19_000, None]
    assert batch.pylist(f"content_stats.{day}.value_count") == [10, 20]
    assert batch.pylist(f"content_stats.{day}.null_value_count") == [0, 20]
    assert batch.pylist(f"content_stats.{bucket}.lower_bound") == [3, 4]


def test_a_bound_of_a_width_no_type_has_names_the_file_and_the_column(tmp_path: Path) -> None:
    entries = [legacy_files.entry(2, path="s3://b/f", lower_bounds={5: b"123"})]
    data = legacy_files.write_manifest(
        tmp_path / "m",
        2,
        entries,
        schema=SCHEMA,
        spec=UNPARTITIONED,
    )
    with pytest.raises(FormatError) as raised:
        read(data)
    assert raised.value.path == "m.avro"
    assert raised.value.field == "content_stats.5.lower_bound"


def test_an_empty_manifest_has_no_entries(tmp_path: Path) -> None:
    data = legacy_files.write_manifest(tmp_path / "m", 2, [], schema=SCHEMA, spec=UNPARTITIONED)
    assert read(data).num_rows == 0


def test_a_file_that_is_no_manifest_is_named() -> None:
    with pytest.raises(FormatError, match=r"m\.avro: not an Avro file"):
        read(b"something else entirely")
