"""Delete files: equality deletes written and read, position deletes read."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.data.metadata_columns import with_dropped
from frazil.data.read.delete_files import (
    equality_schema,
    read_equality_deletes,
    read_position_deletes,
    write_equality_deletes,
)
from frazil.errors import InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import IdentityTransform
from frazil.iceberg.types import IntegerType, LongType, NestedField, StringType, StructType
from tests.support.data_files import STORAGE, file_slice, read, slice_of, write

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "country", StringType()),
    NestedField(
        3,
        "s",
        StructType(
            NestedField(4, "x", IntegerType(), required=True), NestedField(5, "y", IntegerType())
        ),
    ),
)
BY_COUNTRY = PartitionSpec(
    PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="country"),
    spec_id=2,
)


def _delete(location: Path, rows: object, ids: list[int], **more: object) -> EntryBatch:
    return write_equality_deletes(
        rows,
        storage=STORAGE,
        location=str(location),
        schema=SCHEMA,
        equality_ids=ids,
        write_id=uuid.uuid4(),
        **more,  # type: ignore[arg-type]
    )


def test_an_equality_delete_is_described_by_its_entry(tmp_path: Path) -> None:
    row = _delete(tmp_path, [{"id": 7}, {"id": 3}], [1]).row(0)
    expected = {
        "content_type": 2,
        "equality_ids": [1],
        "record_count": 2,
        "tracking.status": 1,
        "content_stats.1.lower_bound": 3,
        "content_stats.1.upper_bound": 7,
    }
    assert {key: row.get(key) for key in expected} == expected
    assert "spec_id" not in row
    stored = pq.read_schema(tmp_path / row["location"])
    assert [(f.name, f.metadata[b"PARQUET:field_id"]) for f in stored] == [("id", b"1")]


def test_partitioned_deletes_hold_the_partition_source_too(tmp_path: Path) -> None:
    rows = [{"id": 1, "country": "NO"}, {"id": 2, "country": "SE"}]
    entries = _delete(tmp_path, rows, [1], spec=BY_COUNTRY)
    assert entries.pylist("partition.1000") == ["NO", "SE"]
    assert entries.pylist("spec_id") == [2, 2]
    with pytest.raises(InvalidInput, match="country"):
        _delete(tmp_path, [{"id": 1, "city": "Oslo"}], [1], spec=BY_COUNTRY)


def test_deleted_rows_are_dropped_when_read(tmp_path: Path) -> None:
    rows = [{"id": i, "country": "NS"[i % 2], "s": {"x": i, "y": i % 3}} for i in range(12)]
    data = slice_of(write(rows, SCHEMA, str(tmp_path)), str(tmp_path))
    by_id = _delete(tmp_path, [{"id": 4}, {"id": 99}], [1])
    by_both = _delete(tmp_path, [{"country": "N", "s": {"x": 6}}], [2, 4])
    equality = [
        read_equality_deletes(slice_of(one, str(tmp_path)), ids, storage=STORAGE, schema=SCHEMA)
        for one, ids in ((by_id, [1]), (by_both, [2, 4]))
    ]
    found = read(data, Schema(SCHEMA.fields[0]), table_schema=SCHEMA, equality=equality)
    assert found.column("id").to_pylist() == [i for i in range(12) if i not in (4, 6)]


def test_a_delete_may_compare_a_nested_column_alone() -> None:
    held = equality_schema(SCHEMA, [5])
    assert [str(field) for field in held.fields] == ["3: s: optional struct<5: y: optional int>"]


def test_deletes_written_before_a_promotion_still_match(tmp_path: Path) -> None:
    old = Schema(NestedField(1, "n", IntegerType()))
    entries = write_equality_deletes(
        [{"n": 5}, {"n": None}],
        storage=STORAGE,
        location=str(tmp_path),
        schema=old,
        equality_ids=[1],
        write_id=uuid.uuid4(),
    )
    new = Schema(NestedField(1, "number", LongType()))
    deletes = read_equality_deletes(
        slice_of(entries, str(tmp_path)), [1], storage=STORAGE, schema=new
    )
    data = slice_of(write([{"number": 5}, {"number": 6}, {}], new, str(tmp_path)), str(tmp_path))
    assert read(data, new, equality=[deletes]).column("number").to_pylist() == [6]


def test_deletes_may_compare_a_column_dropped_since(tmp_path: Path) -> None:
    deletes_entry = _delete(tmp_path, [{"country": "NO"}], [2])
    rows = [{"id": 1, "country": "NO"}, {"id": 2, "country": "SE"}]
    data = slice_of(write(rows, SCHEMA, str(tmp_path)), str(tmp_path))
    current = Schema(SCHEMA.fields[0])
    wide = with_dropped(current, [SCHEMA])
    deletes = read_equality_deletes(
        slice_of(deletes_entry, str(tmp_path)), [2], storage=STORAGE, schema=wide
    )
    found = read(data, current, table_schema=wide, equality=[deletes])
    assert found.to_pylist() == [{"id": 2}]


@pytest.mark.parametrize("ids", [[], [3], [99]])
def test_what_cannot_be_compared_is_refused(tmp_path: Path, ids: list[int]) -> None:
    with pytest.raises(InvalidInput):
        _delete(tmp_path, [{"id": 1}], ids)


def _position_deletes(path: Path, groups: list[dict[str, list[object]]]) -> None:
    arrow = pa.schema(
        [
            pa.field(
                "file_path",
                pa.string(),
                nullable=False,
                metadata={"PARQUET:field_id": "2147483546"},
            ),
            pa.field(
                "pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}
            ),
        ]
    )
    with pq.ParquetWriter(path, arrow) as writer:
        for group in groups:
            writer.write_table(pa.Table.from_pydict(group, arrow))


def test_position_deletes_are_grouped_by_data_file(tmp_path: Path) -> None:
    path = tmp_path / "deletes.parquet"
    _position_deletes(
        path,
        [
            {"file_path": ["s3://b/x", "s3://b/y", "s3://b/x"], "pos": [5, 0, 2]},
            {"file_path": ["s3://b/x"], "pos": [2]},
        ],
    )
    found = read_position_deletes(file_slice(str(path), 4), storage=STORAGE)
    assert {key: value.tolist() for key, value in found.items()} == {
        "s3://b/x": [2, 5],
        "s3://b/y": [0],
    }


def test_only_the_files_asked_for_are_given(tmp_path: Path) -> None:
    path = tmp_path / "deletes.parquet"
    _position_deletes(path, [{"file_path": ["a", "b", "c"], "pos": [1, 2, 3]}])
    found = read_position_deletes(
        file_slice(str(path), 3), storage=STORAGE, paths={"b", "elsewhere"}
    )
    assert {key: value.tolist() for key, value in found.items()} == {"b": [2]}
