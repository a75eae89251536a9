"""Rows of data files, as the table's columns of today."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from frazil.data.metadata_columns import (
    FILE,
    LAST_UPDATED,
    POS,
    ROW_ID,
    SPEC_ID,
    partition_column,
    with_columns,
    with_dropped,
    with_lineage,
)
from frazil.data.slices import DataFileSlice
from frazil.errors import FormatError, InvalidInput, NotFound
from frazil.filter.text.filter_text import parse
from frazil.format.paths import resolve
from frazil.iceberg import types as ice
from frazil.iceberg.name_mapping import parse_mapping
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import BucketTransform, IdentityTransform
from frazil.properties.registry import NAME_MAPPING
from frazil.storage import LocalStorage
from tests.support.data_files import STORAGE, file_slice, read, slice_of, write
from tests.support.pyiceberg_oracle import transformed

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(2, "name", ice.StringType()),
    ice.NestedField(
        3,
        "s",
        ice.StructType(
            ice.NestedField(4, "x", ice.IntegerType()), ice.NestedField(5, "y", ice.DoubleType())
        ),
    ),
)
GROUPS_OF_TEN = {"write.parquet.row-group-limit": "10"}


def _rows(count: int) -> list[dict[str, Any]]:
    return [{"id": i, "name": f"n{i}", "s": {"x": i % 7, "y": i / 2}} for i in range(count)]


@pytest.fixture
def fifty(tmp_path: Path) -> DataFileSlice:
    """Fifty rows in five row groups."""
    entries = write(_rows(50), SCHEMA, str(tmp_path), properties=GROUPS_OF_TEN)
    return slice_of(entries, str(tmp_path))


def _select(*names: str) -> Schema:
    return Schema(*(SCHEMA.find_field(name) for name in names))


def test_rows_come_back_as_written(fifty: DataFileSlice) -> None:
    assert read(fifty, SCHEMA).to_pylist() == _rows(50)


def test_a_filter_may_look_at_columns_that_are_not_asked_for(fifty: DataFileSlice) -> None:
    table = read(
        fifty,
        _select("name"),
        table_schema=SCHEMA,
        row_filter=parse("id >= 47 and s.x > 0", SCHEMA),
    )
    assert table.to_pylist() == [{"name": "n47"}, {"name": "n48"}]


def test_a_filter_may_look_into_a_struct_that_is_asked_for_in_part(fifty: DataFileSlice) -> None:
    part = Schema(
        ice.NestedField(3, "s", ice.StructType(ice.NestedField(5, "y", ice.DoubleType())))
    )
    table = read(fifty, part, table_schema=SCHEMA, row_filter=parse("s.x = 6 and id < 14", SCHEMA))
    assert table.to_pylist() == [{"s": {"y": 3.0}}, {"s": {"y": 6.5}}]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> DataFileSlice:
    """400,000 rows in eight row groups: large enough that storage reads it in ranges."""
    location = str(tmp_path_factory.mktemp("large"))
    rows = pa.table({"id": range(400_000), "name": [f"{i:020}" for i in range(400_000)]})
    properties = {"write.parquet.row-group-limit": "50000"}
    return slice_of(write(rows, SCHEMA, location, properties=properties), location)


def _bytes_read(source: DataFileSlice, schema: Schema, rows: int, **options: Any) -> int:
    storage = LocalStorage()
    found = read(source, schema, storage=storage, table_schema=SCHEMA, **options)
    assert found.num_rows == rows
    return storage.counters.bytes["read"]


def test_row_groups_that_cannot_match_are_not_read(large: DataFileSlice) -> None:
    whole = _bytes_read(large, SCHEMA, 400_000)
    one = _bytes_read(large, SCHEMA, 1, row_filter=parse("id = 123456", SCHEMA))
    assert one < whole / 4


def test_columns_that_are_not_asked_for_are_not_read(large: DataFileSlice) -> None:
    names = _bytes_read(large, _select("name"), 400_000)
    both = _bytes_read(large, _select("id", "name"), 400_000)
    assert names < both * 0.9


def test_row_groups_with_every_row_dropped_are_not_read(large: DataFileSlice) -> None:
    whole = _bytes_read(large, SCHEMA, 400_000)
    rest = _bytes_read(large, SCHEMA, 50_000, dropped=np.arange(50_000, 400_000))
    assert rest < whole / 4


def test_counting_rows_reads_the_footer_only(large: DataFileSlice) -> None:
    assert _bytes_read(large, Schema(), 400_000) < large.file_size_in_bytes / 10


def test_positions_are_right_when_row_groups_are_skipped(fifty: DataFileSlice) -> None:
    table = read(
        fifty,
        with_columns(_select("id"), [POS]),
        table_schema=SCHEMA,
        row_filter=parse("id in (12, 33, 49)", SCHEMA),
    )
    assert table.to_pylist() == [{"id": n, "_pos": n} for n in (12, 33, 49)]


def test_dropped_positions_are_gone(fifty: DataFileSlice) -> None:
    dropped = np.array([0, 10, 11, 49], dtype=np.uint64)
    found = read(fifty, _select("id"), dropped=dropped).column("id").to_pylist()
    assert found == [i for i in range(50) if i not in (0, 10, 11, 49)]


def test_positions_are_right_when_whole_row_groups_are_dropped(fifty: DataFileSlice) -> None:
    found = read(fifty, with_columns(_select("id"), [POS]), dropped=np.arange(10, 40))
    assert found.column("_pos").to_pylist() == [*range(10), *range(40, 50)]


def test_only_the_positions_asked_for_are_read(fifty: DataFileSlice) -> None:
    found = read(fifty, _select("id"), only=np.array([3, 25, 26]), dropped=np.array([26]))
    assert found.column("id").to_pylist() == [3, 25]


def test_asking_for_no_position_gives_no_rows(fifty: DataFileSlice) -> None:
    assert read(fifty, SCHEMA, only=np.array([], dtype=np.int64)).num_rows == 0


def test_a_dropped_position_outside_the_file_is_a_format_error(fifty: DataFileSlice) -> None:
    with pytest.raises(FormatError, match="position 50 is outside the file; it has 50 rows"):
        read(fifty, SCHEMA, dropped=np.array([50]))


def test_rows_can_be_counted_without_asking_for_a_column(fifty: DataFileSlice) -> None:
    storage = LocalStorage()
    found = read(fifty, Schema(), dropped=np.array([1]), storage=storage, table_schema=SCHEMA)
    assert found.num_rows == 49


def test_small_batches_give_the_same_rows(fifty: DataFileSlice) -> None:
    found = read(fifty, with_columns(_select("id"), [POS]), batch_rows=3, dropped=np.array([4]))
    assert found.column("_pos").to_pylist() == [i for i in range(50) if i != 4]
    assert found.column("id").to_pylist() == found.column("_pos").to_pylist()


def test_slices_cover_every_row_once(tmp_path: Path) -> None:
    entries = write(_rows(50), SCHEMA, str(tmp_path), properties=GROUPS_OF_TEN)
    offsets = entries.row(0)["split_offsets"]
    size = entries.row(0)["file_size_in_bytes"]
    cuts = [0, offsets[1], offsets[3] + 5, size]
    found = []
    for start, end in pairwise(cuts):
        piece = slice_of(entries, str(tmp_path), start=start, length=end - start)
        found.append(read(piece, with_columns(_select("id"), [POS])).to_pylist())
    assert [len(part) for part in found] == [10, 30, 10]
    assert [row for part in found for row in part] == [{"id": i, "_pos": i} for i in range(50)]


def test_metadata_columns_are_computed(tmp_path: Path) -> None:
    spec = PartitionSpec(
        PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="name"),
        PartitionField(source_id=1, field_id=1001, transform=BucketTransform(4), name="b"),
        spec_id=5,
    )
    entries = write([{"id": 34, "name": "a"}] * 2, SCHEMA, str(tmp_path), spec=spec)
    source = slice_of(entries, str(tmp_path), first_row_id=100, data_sequence_number=9)
    older = PartitionSpec(
        PartitionField(source_id=1, field_id=999, transform=IdentityTransform(), name="old"),
        spec_id=0,
    )
    wanted = with_columns(
        Schema(),
        [FILE, POS, SPEC_ID, ROW_ID, LAST_UPDATED, partition_column([older, spec], SCHEMA)],
    )
    bucket = transformed(BucketTransform(4), ice.LongType(), 34)
    assert read(source, wanted, table_schema=SCHEMA, specs={5: spec}).to_pylist() == [
        {
            "_file": source.path,
            "_pos": at,
            "_spec_id": 5,
            "_row_id": 100 + at,
            "_last_updated_sequence_number": 9,
            "_partition": {"old": None, "name": "a", "b": bucket},
        }
        for at in range(2)
    ]


def test_stored_lineage_wins_and_null_falls_back(tmp_path: Path) -> None:
    schema = with_lineage(_select("id"))
    rows = [
        {"id": 1, "_row_id": 7, "_last_updated_sequence_number": 2},
        {"id": 2, "_row_id": None, "_last_updated_sequence_number": None},
    ]
    entries = write(rows, schema, str(tmp_path))
    row = entries.row(0)
    ids = [
        int(f.metadata[b"PARQUET:field_id"])
        for f in pq.read_schema(resolve(str(tmp_path), row["location"]))
    ]
    assert ids == [1, 2147483540, 2147483539]
    source = slice_of(entries, str(tmp_path), first_row_id=50, data_sequence_number=4)
    assert read(source, schema).to_pylist() == [
        {"id": 1, "_row_id": 7, "_last_updated_sequence_number": 2},
        {"id": 2, "_row_id": 51, "_last_updated_sequence_number": 4},
    ]


def test_a_file_without_a_first_row_id_has_no_lineage(fifty: DataFileSlice) -> None:
    found = read(fifty, with_lineage(_select("id"))).slice(0, 1).to_pylist()
    assert found == [{"id": 0, "_row_id": None, "_last_updated_sequence_number": None}]


def test_filters_may_use_metadata_columns(fifty: DataFileSlice) -> None:
    wide = with_columns(SCHEMA, [POS])
    found = read(fifty, _select("id"), table_schema=SCHEMA, row_filter=parse("_pos > 47", wide))
    assert found.column("id").to_pylist() == [48, 49]


def test_an_identity_partition_fills_a_column_the_file_lacks(tmp_path: Path) -> None:
    path = str(tmp_path / "hive.parquet")
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.Table.from_arrays([pa.array([1, 2])], schema=pa.schema([field])), path)
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType()),
        ice.NestedField(2, "day", ice.DateType()),
        ice.NestedField(3, "b", ice.IntegerType()),
    )
    spec = PartitionSpec(
        PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="day"),
        PartitionField(source_id=3, field_id=1001, transform=BucketTransform(4), name="b4"),
        spec_id=1,
    )
    source = DataFileSlice(
        path=path,
        file_format="parquet",
        record_count=2,
        file_size_in_bytes=STORAGE.size(path),
        spec_id=1,
        partition={1000: dt.date(2024, 1, 1), 1001: 3},
    )
    found = read(source, schema, specs={1: spec}, row_filter=parse("day = '2024-01-01'", schema))
    assert found.to_pylist() == [
        {"id": 1, "day": dt.date(2024, 1, 1), "b": None},
        {"id": 2, "day": dt.date(2024, 1, 1), "b": None},
    ]


def test_a_filter_on_a_promoted_and_a_defaulted_column_works(tmp_path: Path) -> None:
    old = Schema(
        ice.NestedField(1, "n", ice.IntegerType()), ice.NestedField(2, "d", ice.DateType())
    )
    rows = [{"n": i, "d": dt.date(2024, 1, 1 + i)} for i in range(20)]
    entries = write(rows, old, str(tmp_path), properties={"write.parquet.row-group-limit": "5"})
    new = Schema(
        ice.NestedField(1, "number", ice.LongType()),
        ice.NestedField(2, "d", ice.TimestampType()),
        ice.NestedField(3, "kind", ice.StringType(), initial_default="old"),
    )
    source = slice_of(entries, str(tmp_path))
    text = "number > 3 and d < '2024-01-07T00:00:00' and kind = 'old'"
    assert read(source, new, row_filter=parse(text, new)).to_pylist() == [
        {"number": 4, "d": dt.datetime(2024, 1, 5), "kind": "old"},
        {"number": 5, "d": dt.datetime(2024, 1, 6), "kind": "old"},
    ]
    assert read(source, new, row_filter=parse("kind = 'new'", new)).num_rows == 0


def test_files_without_ids_are_read_through_the_tables_name_mapping(tmp_path: Path) -> None:
    path = str(tmp_path / "plain.parquet")
    pq.write_table(
        pa.table({"old_name": ["a", "b"], "id": [1, 2], "other": [0, 0]}), path, row_group_size=1
    )
    text = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name", "old_name"]}]'
    mapping = NAME_MAPPING.of({NAME_MAPPING.key: text})
    found = read(
        file_slice(path, 2), SCHEMA, name_mapping=mapping, row_filter=parse("id = 2", SCHEMA)
    )
    assert found.to_pylist() == [{"id": 2, "name": "b", "s": None}]


def test_a_bad_name_mapping_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"schema\.name-mapping\.default"):
        NAME_MAPPING.of({NAME_MAPPING.key: "{nonsense"})
    assert NAME_MAPPING.of({}) is None
    assert parse_mapping("[]") == NAME_MAPPING.of({NAME_MAPPING.key: "[]"})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    source = DataFileSlice(
        path=str(tmp_path / "gone.parquet"),
        file_format="parquet",
        record_count=1,
        file_size_in_bytes=1,
    )
    with pytest.raises(NotFound, match=r"gone\.parquet"):
        read(source, SCHEMA)


@pytest.mark.parametrize("change", [{"record_count": 49}, {"file_size_in_bytes": 10}])
def test_a_changed_file_is_a_format_error(tmp_path: Path, change: dict[str, int]) -> None:
    entries = write(_rows(50), SCHEMA, str(tmp_path))
    with pytest.raises(FormatError, match=r"-0\.parquet: .*was changed after it was committed"):
        read(slice_of(entries, str(tmp_path), **change), SCHEMA)


def test_a_file_that_is_no_parquet_is_a_format_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"not parquet at all, not at all")
    with pytest.raises(FormatError, match=r"bad\.parquet: cannot be read"):
        read(file_slice(str(path), 1), SCHEMA)


def test_damaged_pages_are_a_format_error(fifty: DataFileSlice) -> None:
    path = Path(fifty.path)
    data = bytearray(path.read_bytes())
    data[4:400] = b"\xff" * 396
    path.write_bytes(bytes(data))
    with pytest.raises(FormatError, match=r"\.parquet"):
        read(fifty, SCHEMA)


def test_a_column_of_the_wrong_type_names_file_and_column(tmp_path: Path) -> None:
    path = str(tmp_path / "wrong.parquet")
    field = pa.field("id", pa.string(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.Table.from_arrays([pa.array(["x"])], schema=pa.schema([field])), path)
    with pytest.raises(FormatError, match=r"wrong\.parquet: id: found string; expected long"):
        read(file_slice(path, 1), SCHEMA)


def test_timestamps_of_old_writers_are_read(tmp_path: Path) -> None:
    path = str(tmp_path / "int96.parquet")
    field = pa.field("at", pa.timestamp("us"), metadata={"PARQUET:field_id": "1"})
    value = dt.datetime(3024, 1, 1, 0, 0, 0, 5)
    pq.write_table(
        pa.Table.from_arrays([pa.array([value], pa.timestamp("us"))], schema=pa.schema([field])),
        path,
        use_deprecated_int96_timestamps=True,
    )
    schema = Schema(ice.NestedField(1, "at", ice.TimestampType()))
    assert read(file_slice(path, 1), schema).to_pylist() == [{"at": value}]


def test_names_with_dots_are_not_mixed_up_with_structs(tmp_path: Path) -> None:
    def field(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})

    path = str(tmp_path / "dots.parquet")
    arrow = pa.schema(
        [field("a.b", pa.int64(), 1), field("a", pa.struct([field("b", pa.string(), 3)]), 2)]
    )
    pq.write_table(pa.Table.from_pylist([{"a.b": 5, "a": {"b": "x"}}], arrow), path)
    source = file_slice(path, 1)
    plain = Schema(ice.NestedField(1, "a.b", ice.LongType()))
    struct = Schema(
        ice.NestedField(2, "a", ice.StructType(ice.NestedField(3, "b", ice.StringType())))
    )
    assert read(source, plain).to_pylist() == [{"a.b": 5}]
    assert read(source, struct).to_pylist() == [{"a": {"b": "x"}}]


def _orc_file(path: str) -> DataFileSlice:
    def field(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
        return pa.field(name, kind, metadata={"iceberg.id": str(field_id)})

    arrow = pa.schema(
        [
            field("old_id", pa.int32(), 1),
            field("s", pa.struct([field("b", pa.string(), 3), field("a", pa.int64(), 4)]), 2),
            field("l", pa.list_(field("element", pa.float32(), 6)), 5),
            field("u", pa.binary(), 7),
            field("at", pa.timestamp("us"), 8),
        ]
    )
    rows = [
        {
            "old_id": i,
            "s": {"a": i, "b": "x"} if i else None,
            "l": [0.5],
            "u": bytes([i]) * 16,
            "at": dt.datetime(2024, 1, 1),
        }
        for i in range(5)
    ]
    orc.write_table(pa.Table.from_pylist(rows, arrow), path)
    return file_slice(path, 5, "orc")


def test_orc_files_are_read_by_field_id(tmp_path: Path) -> None:
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType()),
        ice.NestedField(2, "s", ice.StructType(ice.NestedField(4, "alpha", ice.LongType()))),
        ice.NestedField(5, "l", ice.ListType(6, ice.DoubleType(), element_required=False)),
        ice.NestedField(7, "u", ice.UUIDType()),
        ice.NestedField(8, "at", ice.TimestampType()),
    )
    source = _orc_file(str(tmp_path / "f.orc"))
    found = read(
        source,
        with_columns(schema, [POS]),
        table_schema=schema,
        row_filter=parse("id != 3", schema),
        dropped=np.array([1]),
        batch_rows=2,
    ).to_pylist()
    assert [row["_pos"] for row in found] == [0, 2, 4]
    assert found[0]["s"] is None
    assert found[1] == {
        "id": 2,
        "s": {"alpha": 2},
        "l": [0.5],
        "u": b"\x02" * 16,
        "at": dt.datetime(2024, 1, 1),
        "_pos": 2,
    }


def test_an_orc_file_belongs_to_the_slice_of_its_first_byte(tmp_path: Path) -> None:
    source = _orc_file(str(tmp_path / "f.orc"))
    schema = Schema(ice.NestedField(1, "id", ice.LongType()))
    halves = []
    for start, length in ((0, 100), (100, source.file_size_in_bytes)):
        part = DataFileSlice(
            path=source.path,
            file_format="orc",
            record_count=5,
            file_size_in_bytes=source.file_size_in_bytes,
            start=start,
            length=length,
        )
        halves.append(read(part, schema).num_rows)
    assert halves == [5, 0]


def test_reserved_names_cannot_be_asked_for_twice() -> None:
    schema = Schema(ice.NestedField(1, "_pos", ice.LongType()))
    with pytest.raises(InvalidInput, match="_pos"):
        with_columns(schema, [POS])


def test_dropped_columns_can_be_added_back_for_old_deletes() -> None:
    current = Schema(ice.NestedField(3, "name", ice.StringType()))
    older = Schema(
        ice.NestedField(1, "id", ice.LongType(), required=True),
        ice.NestedField(2, "name", ice.LongType()),
    )
    wide = with_dropped(current, [older])
    assert [(f.field_id, f.name, f.required) for f in wide.fields] == [
        (3, "name", False),
        (1, "id", False),
        (2, "name#2", False),
    ]
