"""Manifests on disk: columns by field id, lean, projected, and refused when they are wrong."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import FormatError
from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.nest import ColumnNames

NAMES = ColumnNames(
    partition={1000: "day", 1001: "day"},
    uuids=frozenset({"content_stats.6.lower_bound", "content_stats.6.upper_bound"}),
)
DATA: dict[str, Any] = {
    "tracking.status": 1,
    "content_type": 0,
    "location": "data/f.parquet",
    "file_format": "parquet",
    "record_count": 10,
    "file_size_in_bytes": 1000,
}
LEAF: dict[str, Any] = {
    **DATA,
    "content_type": 3,
    "location": "metadata/leaf.parquet",
    "manifest_info.added_files_count": 1,
    "manifest_info.existing_files_count": 0,
    "manifest_info.deleted_files_count": 0,
    "manifest_info.replaced_files_count": 0,
    "manifest_info.added_rows_count": 10,
    "manifest_info.existing_rows_count": 0,
    "manifest_info.deleted_rows_count": 0,
    "manifest_info.replaced_rows_count": 0,
    "manifest_info.modified_files_count": 0,
    "manifest_info.modified_rows_count": 0,
    "manifest_info.min_sequence_number": 1,
    "manifest_info.format_version": 4,
}


def _encode(rows: list[dict[str, Any]], types: dict[str, pa.DataType] | None = None) -> pa.Buffer:
    return manifest.encode(
        EntryBatch.from_rows(rows, types), content="root", names=NAMES, codec="zstd"
    )


def _decode(data: pa.Buffer | bytes, **more: Any) -> EntryBatch:
    return manifest.decode(data, path="m.parquet", **more).batch


def _ids(data: pa.Buffer) -> dict[str, int]:
    """Field ids by path, as any Parquet reader sees them."""
    found: dict[str, int] = {}

    def walk(prefix: str, field: pa.Field) -> None:
        found[prefix + field.name] = int(field.metadata[b"PARQUET:field_id"])
        if pa.types.is_struct(field.type):
            for child in field.type:
                walk(f"{prefix}{field.name}.", child)
        elif pa.types.is_list(field.type):
            walk(f"{prefix}{field.name}.", field.type.value_field)

    for field in pq.ParquetFile(pa.BufferReader(data)).schema_arrow:
        walk("", field)
    return found


def test_fields_have_the_ids_of_the_format() -> None:
    row = {
        **DATA,
        "tracking.snapshot_id": 1,
        "tracking.first_row_id": 0,
        "spec_id": 0,
        "partition.1000": 5,
        "content_stats.1.lower_bound": 7,
        "content_stats.1.value_count": 10,
        "split_offsets": [4],
        "equality_ids": [1],
        "deletion_vector.location": "v.puffin",
        "deletion_vector.offset": 4,
        "deletion_vector.size_in_bytes": 40,
        "deletion_vector.cardinality": 2,
    }
    assert _ids(_encode([row])) == {
        "tracking": 147,
        "tracking.status": 0,
        "tracking.snapshot_id": 1,
        "tracking.first_row_id": 142,
        "content_type": 134,
        "location": 100,
        "file_format": 101,
        "record_count": 103,
        "file_size_in_bytes": 104,
        "spec_id": 141,
        "partition": 102,
        "partition.day": 1000,
        "s": 146,
        "s.1": 10_200,
        "s.1.l": 10_201,
        "s.1.t": 10_203,
        "s.1.v": 10_204,
        "deletion_vector": 148,
        "deletion_vector.location": 155,
        "deletion_vector.offset": 144,
        "deletion_vector.size_in_bytes": 145,
        "deletion_vector.cardinality": 156,
        "split_offsets": 132,
        "split_offsets.element": 133,
        "equality_ids": 135,
        "equality_ids.element": 136,
    }


def test_what_is_null_everywhere_is_not_in_the_file() -> None:
    data = _encode([DATA, DATA])
    assert set(_ids(data)) == {
        "tracking",
        "tracking.status",
        *(key for key in DATA if "." not in key),
    }
    file = pq.ParquetFile(pa.BufferReader(data))
    assert set(file.metadata.metadata) == {b"format-version", b"content", b"frazil.columns"}
    assert all(not file.metadata.row_group(0).column(c).is_stats_set for c in range(6))


def test_required_fields_are_required_on_disk() -> None:
    schema = pq.ParquetFile(pa.BufferReader(_encode([DATA]))).schema_arrow
    assert not schema.field("location").nullable
    assert not schema.field("tracking").nullable
    assert not schema.field("tracking").type.field("status").nullable


def test_names_that_would_be_the_same_are_told_apart() -> None:
    row = {
        **DATA,
        "spec_id": 0,
        "partition.1000": 1,
        "partition.1001": 2,
    }
    data = _encode([row])
    names = _ids(data)
    assert names["partition.day"] == 1000
    assert names["partition.day_1001"] == 1001
    back = _decode(data).row(0)
    assert {key: back[key] for key in row} == row


def test_structs_are_null_where_they_do_not_apply() -> None:
    data = _encode(
        [
            LEAF,
            {**DATA, "spec_id": 0, "partition.1000": None, "content_stats.1.value_count": 10},
            {**DATA, "spec_id": 0, "partition.1000": 3},
            {**DATA, "deletion_vector.location": "v.puffin", "deletion_vector.offset": 4}
            | {"deletion_vector.size_in_bytes": 40, "deletion_vector.cardinality": 1},
        ]
    )
    table = pq.read_table(pa.BufferReader(data))
    for column, null in (
        ("manifest_info", [False, True, True, True]),
        ("partition", [True, False, False, True]),
        ("s", [True, False, True, True]),
        ("deletion_vector", [True, True, True, False]),
    ):
        assert table.column(column).is_null().to_pylist() == null, column
    back = _decode(data)
    assert back.pylist("manifest_info.added_files_count") == [1, None, None, None]
    assert back.pylist("deletion_vector.offset") == [None, None, None, 4]
    assert back.pylist("partition.1000") == [None, None, 3, None]


def test_tight_bounds_is_false_where_nobody_said() -> None:
    """Readers of the released library require a value wherever there are statistics."""
    data = _encode(
        [
            {**DATA, "content_stats.1.value_count": 3},
            DATA,
            {**DATA, "content_stats.1.value_count": 3, "content_stats.1.tight_bounds": True},
        ]
    )
    assert _decode(data).pylist("content_stats.1.tight_bounds") == [False, None, True]
    without = _encode([{**DATA, "content_stats.1.value_count": 3}])
    assert _decode(without).pylist("content_stats.1.tight_bounds") == [False]


def test_points_are_structs_of_their_coordinates() -> None:
    corners = {
        f"content_stats.5.{side}_{axis}": 1.5 for side in ("lower", "upper") for axis in "xy"
    }
    data = _encode([{**DATA, **corners, "content_stats.5.value_count": 2}, DATA])
    ids = _ids(data)
    assert ids["s.5.l"] == 11_001
    assert ids["s.5.l.x"] == 11_010
    assert ids["s.5.u.y"] == 11_015
    assert "s.5.t" not in ids
    back = _decode(data)
    assert {key: back.row(0)[key] for key in corners} == corners
    assert back.pylist("content_stats.5.lower_x") == [1.5, None]


def test_uuids_differ_from_fixed_on_disk_and_are_bytes_in_memory() -> None:
    key = "content_stats.6.lower_bound"
    data = _encode([{**DATA, key: bytes(range(16))}], {key: pa.binary(16)})
    logical = {
        column.path: str(column.logical_type)
        for column in (pq.ParquetFile(pa.BufferReader(data)).schema.column(i) for i in range(8))
    }
    assert logical["s.6.l"] == "UUID"
    back = _decode(data)
    assert back.column(key).type == pa.binary(16)
    assert back.pylist(key) == [bytes(range(16))]


def test_a_projection_has_the_asked_columns_with_status_and_content_type() -> None:
    row = {**DATA, "content_stats.1.lower_bound": 7, "content_stats.1.upper_bound": 9}
    back = _decode(_encode([row]), keys=["location", "content_stats.1.upper_bound", "spec_id"])
    assert set(back.keys) == {
        "tracking.status",
        "content_type",
        "location",
        "content_stats.1.upper_bound",
    }


def test_an_empty_manifest_can_be_written_and_read() -> None:
    data = manifest.encode(EntryBatch.empty(), content="data", names=NAMES, codec="none")
    read = manifest.decode(data, path="m.parquet")
    assert read.content == "data"
    assert read.batch.num_rows == 0


def test_batches_in_several_chunks_are_written_whole() -> None:
    one, two = EntryBatch.from_rows([DATA]), EntryBatch.from_rows([{**DATA, "location": "b"}])
    both = EntryBatch.concat([one, two], combine=False)
    assert both.column("location").num_chunks == 2
    data = manifest.encode(both, content="data", names=NAMES, codec="lz4")
    assert _decode(data).pylist("location") == ["data/f.parquet", "b"]


def test_many_entries_have_dictionaries_and_read_the_same() -> None:
    rows = [
        {**DATA, "location": f"data/{n}.parquet", "tracking.snapshot_id": 5} for n in range(600)
    ]
    data = _encode(rows)
    back = _decode(data)
    assert back.pylist("location") == [row["location"] for row in rows]
    assert back.pylist("tracking.snapshot_id") == [5] * 600
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    encodings = {
        group.column(i).path_in_schema: group.column(i).encodings for i in range(group.num_columns)
    }
    assert "RLE_DICTIONARY" in encodings["tracking.snapshot_id"]
    assert "DELTA_BYTE_ARRAY" in encodings["location"]


def test_key_value_metadata_comes_back() -> None:
    data = manifest.encode(
        EntryBatch.from_rows([DATA]),
        content="root",
        names=NAMES,
        codec="zstd",
        metadata={"snapshot-id": "7"},
    )
    read = manifest.decode(data, path="m.parquet")
    stated = {key: value for key, value in read.metadata.items() if key != "frazil.columns"}
    assert stated == {"format-version": "4", "content": "root", "snapshot-id": "7"}
    seen = manifest.describe(data, path="m.parquet")
    assert seen["entries"] == 1
    assert "location" in seen["columns"]


# Files of others


def _rewritten(
    change: Any,
    metadata: dict[str, str] | None = None,
    row: dict[str, Any] = DATA,
) -> bytes:
    """A manifest as another writer could have made it."""
    table = pq.read_table(pa.BufferReader(_encode([row])))
    table = change(table)
    sink = pa.BufferOutputStream()
    kept = {"format-version": "4", "content": "root"} if metadata is None else metadata
    pq.write_table(table.replace_schema_metadata(kept), sink)
    return bytes(sink.getvalue())


def _same(table: pa.Table) -> pa.Table:
    return table


def test_columns_are_found_by_id_whatever_they_are_called() -> None:
    def renamed(table: pa.Table) -> pa.Table:
        return table.rename_columns([f"c{index}" for index in range(table.num_columns)])

    back = _decode(_rewritten(renamed, row={**DATA, "content_stats.1.lower_bound": 7}))
    assert back.row(0) == {
        **DATA,
        "content_stats.1.lower_bound": 7,
        "content_stats.1.tight_bounds": False,
    }


def test_unknown_columns_are_ignored() -> None:
    def more(table: pa.Table) -> pa.Table:
        field = pa.field("new", pa.string(), metadata={"PARQUET:field_id": "999"})
        return table.append_column(field, pa.array(["x"])).append_column("bare", pa.array([1]))

    assert _decode(_rewritten(more)).row(0) == DATA


def _dropped(name: str) -> Any:
    return lambda table: table.drop_columns([name])


def _recast(name: str, values: pa.Array) -> Any:
    def change(table: pa.Table) -> pa.Table:
        index = table.column_names.index(name)
        field = table.schema.field(index).with_type(values.type).with_nullable(True)
        return table.set_column(index, field, values)

    return change


@pytest.mark.parametrize(
    ("change", "metadata", "field", "says"),
    [
        (_same, {}, "format-version", "not a v4 manifest"),
        (_same, {"format-version": "5", "content": "root"}, "format-version", "is 5"),
        (_same, {"format-version": "x", "content": "root"}, "format-version", "'x'"),
        (_same, {"format-version": "4", "content": "twig"}, "content", "'twig'"),
        (_same, {"format-version": "4"}, "content", "''"),
        (_dropped("location"), None, "location", "missing"),
        (_dropped("tracking"), None, "tracking.status", "missing"),
        (_recast("location", pa.array([None], pa.string())), None, "location", "null"),
        (_recast("record_count", pa.array(["ten"])), None, "record_count", "expected int64"),
        (_recast("record_count", pa.array([10], pa.int32())), None, "record_count", "is int32"),
        (_recast("tracking", pa.array([3])), None, "tracking", "expected a struct"),
        (_recast("content_type", pa.array([7], pa.int32())), None, "content_type", "is 7"),
    ],
)
def test_what_breaks_the_format_is_refused_by_path_and_field(
    change: Any, metadata: dict[str, str] | None, field: str, says: str
) -> None:
    with pytest.raises(FormatError) as error:
        manifest.decode(_rewritten(change, metadata), path="m.parquet")
    assert error.value.path == "m.parquet"
    assert error.value.field == field
    assert says in str(error.value)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"\x00" * 100, b"Obj\x01" + b"x" * 50])
def test_what_is_not_parquet_is_refused_by_path(data: bytes) -> None:
    for read in (manifest.decode, manifest.describe):
        with pytest.raises(FormatError) as error:
            read(data, path="m.parquet")
        assert error.value.path == "m.parquet"


def _flipped(data: pa.Buffer, text: bytes) -> bytes:
    whole = bytearray(data.to_pybytes())
    whole[whole.index(text)] ^= 1
    return bytes(whole)


def test_a_small_manifest_has_one_checksum_over_all_of_it() -> None:
    row = {**DATA, "location": "data/abcdefgh.parquet"}
    data = manifest.encode(EntryBatch.from_rows([row]), content="root", names=NAMES, codec="none")
    for text in (b"abcdefgh", b"file_size_in_bytes", b"format-version"):
        with pytest.raises(FormatError, match=r"checksum of the file is .* damaged") as error:
            _decode(_flipped(data, text))
        assert error.value.path == "m.parquet"
    # Other readers pass over it.
    assert pq.read_table(pa.BufferReader(data)).column("location").to_pylist() == [row["location"]]


def test_a_large_manifest_has_a_checksum_per_page() -> None:
    rows = [{**DATA, "location": f"data/file-{n:09d}.parquet"} for n in range(4_000)]
    data = manifest.encode(EntryBatch.from_rows(rows), content="data", names=NAMES, codec="none")
    damaged = _flipped(data, b"file-000000000")
    with pytest.raises(FormatError, match="not a readable Parquet manifest"):
        _decode(damaged)
    # A column that is not asked for is not read, so its damage is not seen.
    assert _decode(damaged, keys=["record_count"]).num_rows == 4_000


def test_the_footer_of_a_large_manifest_is_compared_before_it_is_parsed() -> None:
    data = _encode([DATA] * 4_000).to_pybytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert data[footer - 12 : footer - 8] == b"FZ\x02C"
    for at in range(footer, len(data) - 8, 7):  # some end the process when pyarrow meets them
        with pytest.raises(FormatError, match="checksum of the footer"):
            _decode(data[:at] + bytes([data[at] ^ 0x5E]) + data[at + 1 :])
    unmarked = data[: footer - 12] + b"FZ\x03C" + data[footer - 8 :]
    with pytest.raises(FormatError, match="The file is damaged"):
        _decode(unmarked)
    # Other readers pass over it.
    assert pq.read_table(pa.BufferReader(data)).num_rows == 4_000


def test_a_large_manifest_of_version_0_1_has_no_seal_and_is_read() -> None:
    data = _encode([DATA] * 4_000).to_pybytes()
    table = pq.read_table(pa.BufferReader(data))
    stated = pq.read_metadata(pa.BufferReader(data)).metadata
    kept = {**stated, b"frazil.columns": stated[b"frazil.columns"].removesuffix(b" sealed")}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(kept), sink, write_page_checksum=True)
    read = _decode(sink.getvalue()).table
    assert read.equals(_decode(data).table.select(read.column_names))
    assert read.num_columns == _decode(data).table.num_columns


def test_a_small_manifest_of_many_columns_is_not_small() -> None:
    keys = [f"content_stats.{n}.value_count" for n in range(1, 800)]
    wide = EntryBatch.from_rows(
        [{**DATA, **dict.fromkeys(keys, 5)}] * 3, dict.fromkeys(keys, pa.int64())
    )
    data = manifest.encode(wide, content="root", names=NAMES, codec="lz4")
    assert data.size > manifest.SEALED_BYTES
    assert b"FZ\x01C" not in data.to_pybytes()
    assert _decode(data).pylist(keys[-1]) == [5, 5, 5]


def test_a_column_that_lost_its_id_is_noticed() -> None:
    data = _encode([{**DATA, "tracking.snapshot_id": 5}])
    table = pq.read_table(pa.BufferReader(data)).drop_columns(["file_format"])
    stated = pq.ParquetFile(pa.BufferReader(data)).metadata.metadata[b"frazil.columns"]
    sink = pa.BufferOutputStream()
    kept = {"format-version": "4", "content": "root", "frazil.columns": stated.decode()}
    pq.write_table(table.replace_schema_metadata(kept), sink)
    with pytest.raises(FormatError, match="The file is damaged") as error:
        _decode(sink.getvalue(), keys=["location"])
    assert error.value.field == "frazil.columns"


@pytest.mark.parametrize("last", ["parquet", "orc", "iceberg"])
def test_the_file_format_of_many_entries_is_told_by_statistics_or_read(last: str) -> None:
    rows = [DATA] * 600 + [{**DATA, "file_format": last}]
    data = _encode(rows)
    formats = [*["parquet"] * 600, last]
    assert _decode(data).pylist("file_format") == formats
    assert _decode(data, keys=["file_format"]).pylist("file_format") == formats
    assert not _decode(data, keys=["location"]).has("file_format")


def test_manifests_of_one_shape_are_known_whatever_their_files_say() -> None:
    batch = EntryBatch.from_rows([DATA])
    for number in ("1", "2"):
        data = manifest.encode(
            batch, content="root", names=NAMES, codec="zstd", metadata={"snapshot-id": number}
        )
        read = manifest.decode(data, path="m.parquet")
        assert read.metadata["snapshot-id"] == number
        assert read.batch.row(0) == DATA
