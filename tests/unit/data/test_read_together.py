"""Small files read together give the rows that each gives alone."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.data.metadata_columns import FILE, POS, with_columns, with_lineage
from frazil.data.read.read_files import Reading
from frazil.data.read.read_together import WholeFile, is_small, read_together
from frazil.data.slices import DataFileSlice
from frazil.errors import FormatError
from frazil.filter.text.filter_text import parse
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import IdentityTransform
from frazil.iceberg.types import DateType, IntegerType, LongType, NestedField, StringType
from frazil.scan.tasks import Task, TaskReader
from frazil.storage import LocalStorage
from tests.support.data_files import STORAGE, slice_of, write

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))


def _file(folder: Path, rows: list[dict[str, Any]], schema: Schema, **known: Any) -> DataFileSlice:
    return slice_of(write(rows, schema, str(folder)), str(folder), **known)


def _reading(schema: Schema, **options: Any) -> Reading:
    return Reading(storage=STORAGE, schema=schema, table_schema=schema, **options)


def _together(files: list[WholeFile], reading: Reading) -> list[dict[str, Any]]:
    return [row for batch in read_together(files, reading) for row in batch.to_pylist()]


def test_rows_follow_in_order_with_the_ids_of_their_files(tmp_path: Path) -> None:
    one = _file(
        tmp_path,
        [{"id": 1, "name": "a"}, {"id": 2, "name": None}],
        SCHEMA,
        first_row_id=70,
        data_sequence_number=3,
    )
    moved = _file(
        tmp_path,
        [
            {"id": 3, "name": "c", "_row_id": 7, "_last_updated_sequence_number": 2},
            {"id": 4, "name": "d", "_row_id": None, "_last_updated_sequence_number": None},
        ],
        with_lineage(SCHEMA),
        first_row_id=90,
        data_sequence_number=5,
    )
    none = _file(tmp_path, [{"id": 0}], SCHEMA, first_row_id=95, data_sequence_number=6)
    three = _file(
        tmp_path,
        [{"id": i, "name": "z"} for i in (5, 6, 7)],
        SCHEMA,
        first_row_id=20,
        data_sequence_number=1,
    )
    files = [
        WholeFile(source=one),
        WholeFile(source=moved),
        WholeFile(source=none, dropped=np.array([0])),
        WholeFile(source=three, dropped=np.array([1], dtype=np.int32)),
    ]
    found = _together(files, _reading(with_lineage(SCHEMA)))
    assert [tuple(row.values()) for row in found] == [
        (1, "a", 70, 3),
        (2, None, 71, 3),
        (3, "c", 7, 2),
        (4, "d", 91, 5),
        (5, "z", 20, 1),
        (7, "z", 22, 1),
    ]


def test_files_of_older_schemas_are_read_as_the_columns_of_today(tmp_path: Path) -> None:
    known: dict[str, Any] = {"first_row_id": 0, "data_sequence_number": 1}
    older = Schema(NestedField(1, "n", IntegerType()))
    old = _file(tmp_path, [{"n": 1}], older, **known)
    now = Schema(
        NestedField(3, "kind", StringType(), initial_default="old"),
        NestedField(1, "number", LongType()),
    )
    new = _file(tmp_path, [{"number": 1 << 40, "kind": "new"}], now, **known)
    files = [WholeFile(source=each) for each in (old, new, old, old)]
    first = {"kind": "old", "number": 1}
    second = {"kind": "new", "number": 1 << 40}
    assert _together(files, _reading(now)) == [first, second, first, first]
    only = Schema(now.fields[0])
    assert _together(files, _reading(only)) == [{"kind": k} for k in ("old", "new", "old", "old")]
    assert sum(b.num_rows for b in read_together(files, _reading(Schema()))) == 4


def test_columns_that_differ_by_file_are_told_by_each_file(tmp_path: Path) -> None:
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", DateType()))
    spec = PartitionSpec(
        PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="day"),
        spec_id=1,
    )
    files = []
    for day in (1, 2):
        path = str(tmp_path / f"{day}.parquet")
        pq.write_table(pa.Table.from_arrays([pa.array([day])], schema=pa.schema([field])), path)
        files.append(
            WholeFile(
                source=DataFileSlice(
                    path=path,
                    file_format="parquet",
                    record_count=1,
                    file_size_in_bytes=STORAGE.size(path),
                    spec_id=1,
                    partition={1000: dt.date(2024, 1, day)},
                    first_row_id=day,
                    data_sequence_number=1,
                )
            )
        )
    assert _together(files, _reading(schema, specs={1: spec})) == [
        {"id": 1, "day": dt.date(2024, 1, 1)},
        {"id": 2, "day": dt.date(2024, 1, 2)},
    ]
    wide = with_columns(Schema(schema.fields[0]), [FILE, POS])
    assert [row["_file"] for row in _together(files, _reading(wide))] == [
        file.source.path for file in files
    ]


def test_the_damaged_file_is_named(tmp_path: Path) -> None:
    known: dict[str, Any] = {"first_row_id": 0, "data_sequence_number": 1}
    files = [_file(tmp_path, [{"id": i, "name": "n" * 50}], SCHEMA, **known) for i in range(3)]
    data = bytearray(Path(files[1].path).read_bytes())
    data[10] ^= 1
    Path(files[1].path).write_bytes(data)
    with pytest.raises(FormatError, match="checksum") as caught:
        _together([WholeFile(source=file) for file in files], _reading(SCHEMA))
    assert caught.value.path == files[1].path


def test_a_value_that_does_not_fit_names_its_file(tmp_path: Path) -> None:
    wide = Schema(NestedField(1, "d", DateType()))
    known: dict[str, Any] = {"first_row_id": 0, "data_sequence_number": 1}
    files = [_file(tmp_path, [{"id": i, "name": "n"}], SCHEMA, **known) for i in range(2)]
    with pytest.raises(FormatError, match="found int64; expected date") as caught:
        _together([WholeFile(source=file) for file in files], _reading(wide))
    assert caught.value.path in {file.path for file in files}


def test_filters_and_order_hold_when_a_scan_has_small_and_large_files(tmp_path: Path) -> None:
    storage = LocalStorage()
    reading = Reading(
        storage=storage,
        schema=SCHEMA,
        table_schema=SCHEMA,
        row_filter=parse("id < 2", SCHEMA),
        batch_rows=8,
    )
    tasks = []
    for number in range(12):
        rows = [{"id": id, "name": f"{number}"} for id in range(3)]
        known = {"first_row_id": None if number == 5 else 1, "data_sequence_number": 1}
        source = _file(tmp_path, rows, SCHEMA, **known)
        assert is_small(source) == (number != 5)
        # Statistics may have told that every row matches; the filter is then not asked.
        tasks.append(Task(location=source.path, source=source, must_match=number % 4 != 3))
    found = [
        (row["name"], row["id"])
        for batch in TaskReader(reading).read_all(tasks)
        for row in batch.to_pylist()
    ]
    assert found == [
        (str(number), id) for number in range(12) for id in range(3 if number % 4 != 3 else 2)
    ]
    assert storage.counters.calls["read"] == 12
