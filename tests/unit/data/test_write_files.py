"""Rows written to data files, and the entries that describe them."""

from __future__ import annotations

import datetime as dt
import os
import uuid
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.data.write.row_input import conformed
from frazil.data.write.write_files import write_rows
from frazil.data.write.write_options import WriteOptions
from frazil.errors import InvalidInput, StorageError, Unsupported
from frazil.format.metadata.derived import DerivedColumn
from frazil.format.paths import resolve
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import NullOrder, SortDirection, SortField, SortOrder
from frazil.iceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from frazil.storage import LocalStorage
from frazil.storage.streams import Sink
from tests.support.data_files import STORAGE, WRITE_ID, read, slice_of, write
from tests.support.pyiceberg_oracle import transformed

ORDERS = Schema(
    ice.NestedField(1, "order_id", ice.LongType(), required=True),
    ice.NestedField(2, "day", ice.DateType()),
    ice.NestedField(3, "country", ice.StringType()),
)
BY_DAY_AND_BUCKET = PartitionSpec(
    PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="day"),
    PartitionField(source_id=1, field_id=1001, transform=BucketTransform(4), name="bucket"),
    spec_id=3,
)
BUCKET_COLUMN = DerivedColumn(
    expr_id=100,  # type: ignore[arg-type]
    source_ids=(1,),
    transform=BucketTransform(4),
    name="bucket",
    partition_field_id=1001,
)


def _orders(count: int) -> list[dict[str, Any]]:
    return [
        {"order_id": i, "day": dt.date(2024, 1, 1 + i % 2), "country": "NO"} for i in range(count)
    ]


def _paths(location: Path) -> list[Path]:
    return sorted(path for path in location.rglob("*") if path.is_file())


def test_an_entry_describes_its_file(tmp_path: Path) -> None:
    entries = write(_orders(10), ORDERS, str(tmp_path), write_id=WRITE_ID)
    assert entries.num_rows == 1
    row = entries.row(0)
    path = tmp_path / "data" / f"{WRITE_ID}-0.parquet"
    expected = {
        "tracking.status": 1,
        "content_type": 0,
        "location": f"data/{WRITE_ID}-0.parquet",
        "file_format": "parquet",
        "record_count": 10,
        "file_size_in_bytes": path.stat().st_size,
        "split_offsets": [4],
        "content_stats.1.lower_bound": 0,
        "content_stats.1.upper_bound": 9,
        "content_stats.1.tight_bounds": True,
        "content_stats.1.value_count": 10,
        "content_stats.1.null_value_count": 0,
        "content_stats.3.lower_bound": "NO",
    }
    assert {key: row.get(key) for key in expected} == expected
    for key in ("spec_id", "sort_order_id", "equality_ids", "tracking.snapshot_id"):
        assert key not in row


def test_each_partition_gets_its_files_and_values(tmp_path: Path) -> None:
    entries = write(
        _orders(100), ORDERS, str(tmp_path), spec=BY_DAY_AND_BUCKET, derived=[BUCKET_COLUMN]
    )
    assert entries.num_rows == 8
    assert sum(entries.pylist("record_count")) == 100
    for index in range(entries.num_rows):
        row = entries.row(index)
        day, bucket = row["partition.1000"], row["partition.1001"]
        assert row["location"].startswith(f"data/day={day}/bucket={bucket}/")
        assert row["spec_id"] == 3
        assert row["content_stats.100.lower_bound"] == bucket
        assert row["content_stats.100.upper_bound"] == bucket
        assert row["content_stats.100.tight_bounds"] is True
        assert row["content_stats.100.value_count"] == row["record_count"]
        assert row["content_stats.100.null_value_count"] == 0
        rows = read(slice_of(entries, str(tmp_path), index), ORDERS).to_pylist()
        assert {
            (r["day"], transformed(BucketTransform(4), ice.LongType(), r["order_id"])) for r in rows
        } == {(day, bucket)}
    assert entries.table.schema.field("partition.1000").type == pa.date32()
    assert entries.table.schema.field("content_stats.100.lower_bound").type == pa.int32()


def test_a_null_partition_has_null_derived_bounds(tmp_path: Path) -> None:
    spec = PartitionSpec(
        PartitionField(source_id=2, field_id=1000, transform=DayTransform(), name="d"), spec_id=1
    )
    column = DerivedColumn(
        expr_id=50,  # type: ignore[arg-type]
        source_ids=(2,),
        transform=DayTransform(),
        name="d",
        partition_field_id=1000,
    )
    rows = [{"order_id": 1, "day": None}, {"order_id": 2, "day": dt.date(2024, 1, 1)}]
    entries = write(rows, ORDERS, str(tmp_path), spec=spec, derived=[column])
    assert entries.pylist("partition.1000") == [None, dt.date(2024, 1, 1)]
    assert entries.pylist("content_stats.50.lower_bound") == [None, dt.date(2024, 1, 1)]
    assert entries.pylist("content_stats.50.null_value_count") == [1, 0]


def test_an_identity_partition_column_keeps_whole_bounds(tmp_path: Path) -> None:
    spec = PartitionSpec(
        PartitionField(source_id=3, field_id=1000, transform=IdentityTransform(), name="c"),
        spec_id=1,
    )
    long = "x" * 100
    entries = write([{"order_id": 1, "country": long}], ORDERS, str(tmp_path), spec=spec)
    assert entries.row(0)["content_stats.3.upper_bound"] == long


def test_files_roll_at_the_target_size(tmp_path: Path) -> None:
    data = pa.table({"order_id": range(200_000)})
    properties = {
        "write.target-file-size-bytes": "200000",
        "write.parquet.compression-codec": "uncompressed",
    }
    entries = write(data, ORDERS, str(tmp_path), properties=properties)
    sizes = entries.pylist("file_size_in_bytes")
    assert len(sizes) > 3
    assert all(150_000 < size < 500_000 for size in sizes[:-1])
    assert sum(entries.pylist("record_count")) == 200_000
    assert entries.pylist("location") == [
        f"{entries.pylist('location')[0][:-9]}{at}.parquet" for at in range(len(sizes))
    ]


def test_row_groups_follow_the_properties(tmp_path: Path) -> None:
    properties = {"write.parquet.row-group-limit": "30"}
    entries = write(_orders(100), ORDERS, str(tmp_path), properties=properties)
    row = entries.row(0)
    footer = pq.read_metadata(resolve(str(tmp_path), row["location"]))
    assert [footer.row_group(at).num_rows for at in range(4)] == [25, 25, 25, 25]
    starts = []
    for at in range(4):
        column = footer.row_group(at).column(0)
        starts.append(column.dictionary_page_offset or column.data_page_offset)
    assert row["split_offsets"] == starts


@pytest.mark.parametrize(
    ("asked", "stored"),
    [("zstd", "ZSTD"), ("snappy", "SNAPPY"), ("gzip", "GZIP"), ("uncompressed", "UNCOMPRESSED")],
)
def test_the_codec_follows_the_property(tmp_path: Path, asked: str, stored: str) -> None:
    properties = {"write.parquet.compression-codec": asked}
    write(_orders(5), ORDERS, str(tmp_path), properties=properties)
    assert _codec(tmp_path) == stored


def test_small_files_are_written_with_snappy_unless_something_else_is_asked(tmp_path: Path) -> None:
    write(_orders(5), ORDERS, str(tmp_path / "small"))
    write(_orders(10_000), ORDERS, str(tmp_path / "large"))
    level = {"write.parquet.compression-level": "3"}
    write(_orders(5), ORDERS, str(tmp_path / "level"), properties=level)
    assert _codec(tmp_path / "small") == "SNAPPY"
    assert _codec(tmp_path / "large") == "ZSTD"
    assert _codec(tmp_path / "level") == "ZSTD"


def _codec(folder: Path) -> str:
    footer = pq.read_metadata(_paths(folder)[0])
    return str(footer.row_group(0).column(0).compression)


def test_a_bloom_filter_is_written_where_asked(tmp_path: Path) -> None:
    properties = {"write.parquet.bloom-filter-enabled.column.country": "true"}
    write(_orders(5), ORDERS, str(tmp_path / "with"), properties=properties)
    write(_orders(5), ORDERS, str(tmp_path / "without"))
    query = (
        "select bloom_filter_offset from parquet_metadata('{}') where path_in_schema = 'country'"
    )
    (found,) = duckdb.sql(query.format(_paths(tmp_path / "with")[0])).fetchall()
    (missing,) = duckdb.sql(query.format(_paths(tmp_path / "without")[0])).fetchall()
    assert found[0] is not None
    assert missing[0] is None


@pytest.mark.parametrize(
    "properties",
    [
        {"write.parquet.compression-codec": "lzma"},
        {"write.target-file-size-bytes": "big"},
        {"write.parquet.row-group-size-bytes": "0"},
        {
            "write.parquet.bloom-filter-enabled.column.country": "true",
            "write.parquet.bloom-filter-fpp.column.country": "2",
        },
    ],
)
def test_a_property_that_cannot_be_used_is_refused_before_any_file(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    with pytest.raises(InvalidInput, match=next(reversed(properties))):
        write(_orders(1), ORDERS, str(tmp_path), properties=properties)
    assert _paths(tmp_path) == []


def test_other_formats_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="orc"):
        write(_orders(1), ORDERS, str(tmp_path), properties={"write.format.default": "orc"})


def test_the_data_path_can_lie_elsewhere(tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    entries = write(
        _orders(1), ORDERS, str(tmp_path / "table"), properties={"write.data.path": elsewhere}
    )
    location = entries.row(0)["location"]
    assert location.startswith("file://")
    assert read(slice_of(entries, str(tmp_path / "table")), ORDERS).num_rows == 1


BY_COUNTRY = SortOrder(
    SortField(3, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST), order_id=7
)


def test_sorted_files_are_sorted_and_say_so(tmp_path: Path) -> None:
    rows = [{"order_id": i, "country": "abc"[i % 3]} for i in range(30)]
    entries = write(rows, ORDERS, str(tmp_path), sort_order=BY_COUNTRY)
    assert entries.pylist("sort_order_id") == [7]
    found = read(slice_of(entries, str(tmp_path)), ORDERS).column("country").to_pylist()
    assert found == sorted(found, reverse=True)


def test_every_rolled_file_is_sorted_in_itself(tmp_path: Path) -> None:
    batches = [
        pa.record_batch({"order_id": [i], "country": [f"{i * 7 % 50:02}"]}) for i in range(50)
    ]
    entries = write_rows(
        (batch for source in batches for batch in conformed(source, ORDERS)),
        storage=STORAGE,
        location=str(tmp_path),
        schema=ORDERS,
        spec=PartitionSpec(spec_id=0),
        write_id=uuid.uuid4(),
        sort_order=BY_COUNTRY,
        options=WriteOptions(target_file_bytes=100),
    )
    assert entries.num_rows > 1
    for index in range(entries.num_rows):
        table = read(slice_of(entries, str(tmp_path), index), ORDERS)
        found = table.column("country").to_pylist()
        assert found == sorted(found, reverse=True)
    assert sum(entries.pylist("record_count")) == 50


class _OpenFiles(LocalStorage):
    """Counts how many files are being written at once."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: list[Sink] = []
        self.most = 0

    def create(self, path: str) -> Sink:
        self.streams = [stream for stream in self.streams if not stream.closed]
        self.streams.append(super().create(path))
        self.most = max(self.most, len(self.streams))
        return self.streams[-1]


def test_a_full_buffer_is_written_early_and_few_files_are_open(tmp_path: Path) -> None:
    storage = _OpenFiles()
    spec = PartitionSpec(
        PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="id"),
        spec_id=1,
    )
    data = [pa.record_batch({"order_id": [*range(20)] * 5}) for _ in range(10)]
    entries = write_rows(
        (batch for source in data for batch in conformed(source, ORDERS)),
        storage=storage,
        location=str(tmp_path),
        schema=ORDERS,
        spec=spec,
        write_id=uuid.uuid4(),
        options=WriteOptions(buffer_bytes=500, max_open_files=3),
    )
    assert sum(entries.pylist("record_count")) == 1_000
    assert set(entries.pylist("partition.1000")) == set(range(20))
    assert storage.most == 3
    assert entries.num_rows > 20  # more files than partitions: some were closed early


def test_no_rows_make_no_files(tmp_path: Path) -> None:
    entries = write([], ORDERS, str(tmp_path))
    assert entries.num_rows == 0
    assert _paths(tmp_path) == []


def test_a_failing_source_leaves_no_files(tmp_path: Path) -> None:
    def batches() -> Any:
        yield from conformed(_orders(100), ORDERS)
        raise RuntimeError("the source broke")

    written: list[str] = []
    with pytest.raises(RuntimeError, match="the source broke"):
        write_rows(
            batches(),
            storage=STORAGE,
            location=str(tmp_path),
            schema=ORDERS,
            spec=BY_DAY_AND_BUCKET,
            write_id=uuid.uuid4(),
            options=WriteOptions(row_group_rows=2),
            written=written,
        )
    assert _paths(tmp_path) == []
    assert written == []


class _FullDisk(LocalStorage):
    """A storage whose disk is full after some bytes."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def create(self, path: str) -> Sink:
        inner = super().create(path)

        def write(view: memoryview) -> None:
            self.room -= len(view)
            if self.room < 0:
                raise StorageError("no space left on device")
            inner.write(view)

        return Sink(self, path, write=write, close=inner.close, abort=inner.abort)


@pytest.mark.parametrize("room", [0, 10, 500, 3_000])
def test_a_full_disk_leaves_no_files(tmp_path: Path, room: int) -> None:
    written: list[str] = []
    with pytest.raises(StorageError, match="no space left"):
        write(
            _orders(500),
            ORDERS,
            str(tmp_path),
            spec=BY_DAY_AND_BUCKET,
            storage=_FullDisk(room),
            written=written,
        )
    assert _paths(tmp_path) == []
    assert written == []


class _Undeletable(_FullDisk):
    def delete(self, path: str) -> None:
        raise StorageError(f"{path}: cannot be deleted")


def test_files_that_cannot_be_removed_stay_listed(tmp_path: Path) -> None:
    written: list[str] = []
    with pytest.raises(StorageError, match="no space left"):
        write(
            _orders(50),
            ORDERS,
            str(tmp_path),
            storage=_Undeletable(10),
            written=written,
        )
    assert [Path(path) for path in written] == _paths(tmp_path)


def test_written_paths_are_reported(tmp_path: Path) -> None:
    written: list[str] = []
    entries = write(_orders(20), ORDERS, str(tmp_path), spec=BY_DAY_AND_BUCKET, written=written)
    found = [resolve(str(tmp_path), location) for location in entries.pylist("location")]
    assert sorted(found) == sorted(written)
    assert all(os.path.exists(path) for path in written)


RICH = Schema(
    ice.NestedField(1, "uid", ice.UUIDType()),
    ice.NestedField(2, "code", ice.FixedType(3)),
    ice.NestedField(3, "small", ice.DecimalType(9, 2)),
    ice.NestedField(4, "large", ice.DecimalType(38, 10)),
    ice.NestedField(5, "at", ice.TimestampType()),
    ice.NestedField(6, "when", ice.TimestamptzType()),
    ice.NestedField(7, "fine", ice.TimestampNanoType()),
    ice.NestedField(8, "tags", ice.ListType(9, ice.StringType(), element_required=True)),
    ice.NestedField(
        10, "props", ice.MapType(11, ice.StringType(), 12, ice.DoubleType(), value_required=False)
    ),
    ice.NestedField(
        13,
        "place",
        ice.StructType(
            ice.NestedField(14, "lat", ice.DoubleType(), required=True),
            ice.NestedField(
                15,
                "floor",
                ice.StructType(ice.NestedField(16, "n", ice.IntegerType(), required=True)),
                required=True,
            ),
        ),
    ),
    ice.NestedField(17, "nothing", ice.UnknownType()),
)


def _rich(path: Path) -> str:
    rows: list[dict[str, Any]] = [
        {
            "uid": uuid.UUID(int=1),
            "code": b"abc",
            "small": 1,
            "large": 2,
            "at": dt.datetime(2024, 1, 1),
            "when": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
            "fine": 1_500,
            "tags": ["a"],
            "props": {"k": 1.5},
            "place": {"lat": 1.5, "floor": {"n": 2}},
        },
        {"place": None},
    ]
    entries = write(rows, RICH, str(path))
    return resolve(str(path), entries.row(0)["location"])


def test_parquet_types_and_ids_are_those_of_iceberg(tmp_path: Path) -> None:
    text = str(pq.ParquetFile(_rich(tmp_path)).schema)
    for line in (
        "optional fixed_len_byte_array(16) field_id=1 uid (UUID);",
        "optional fixed_len_byte_array(3) field_id=2 code;",
        "optional int32 field_id=3 small (Decimal(precision=9, scale=2));",
        "optional fixed_len_byte_array(16) field_id=4 large (Decimal(precision=38, scale=10));",
        "optional int64 field_id=5 at (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds",
        "optional int64 field_id=6 when (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds",
        "optional int64 field_id=7 fine (Timestamp(isAdjustedToUTC=false, timeUnit=nanoseconds",
        "optional group field_id=8 tags (List)",
        "required binary field_id=9 element (String);",
        "optional group field_id=10 props (Map)",
        "required binary field_id=11 key (String);",
        "optional double field_id=12 value;",
        "optional group field_id=13 place {",
        "required double field_id=14 lat;",
        "required group field_id=15 floor {",
        "required int32 field_id=16 n;",
    ):
        assert line in text
    assert "nothing" not in text


def test_required_children_of_a_null_struct_do_not_stop_a_write(tmp_path: Path) -> None:
    places = pq.read_table(_rich(tmp_path)).column("place").to_pylist()
    assert places == [{"lat": 1.5, "floor": {"n": 2}}, None]


def test_a_column_of_unknown_type_reads_as_null(tmp_path: Path) -> None:
    entries = write([{"code": b"abc"}], RICH, str(tmp_path))
    table = read(slice_of(entries, str(tmp_path)), RICH)
    assert table.column("nothing").to_pylist() == [None]


def test_duckdb_reads_our_files(tmp_path: Path) -> None:
    path = _rich(tmp_path)
    row = duckdb.sql(
        "select uid::varchar, small::varchar, \"at\", tags, props['k'], place.floor.n "
        f"from read_parquet('{path}') where uid is not null"
    ).fetchall()[0]
    assert row == (
        "00000000-0000-0000-0000-000000000001",
        "1.00",
        dt.datetime(2024, 1, 1),
        ["a"],
        1.5,
        2,
    )
