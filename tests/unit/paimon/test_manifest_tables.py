"""Manifests of different Paimon releases, and what makes them unreadable."""

from __future__ import annotations

import datetime
import io
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from frazil.errors import FormatError, Unsupported
from frazil.paimon.read.manifest_tables import (
    INDEX_MANIFEST,
    MANIFEST,
    MANIFEST_LIST,
    read_index_manifest,
    read_manifest,
    read_manifest_list,
)
from tests.unit.paimon.encode import (
    EMPTY_ROW,
    EMPTY_STATS,
    STATS_FIELDS,
    avro_file,
    entry,
    manifest_schema,
)


@pytest.mark.parametrize("newer_fields", range(8))
def test_fields_that_a_release_did_not_have_yet_are_null(newer_fields: int) -> None:
    newest = {
        "delete_row_count": 3,
        "embedded_file_index": b"i",
        "file_source": 1,
        "value_stats_cols": ["v"],
        "external_path": "s3://b/f",
        "first_row_id": 100,
        "write_cols": ["v", "w"],
    }
    record = entry("data-1.parquet", level=5, bucket=2, extra_files=["x.index"], **newest)
    table = read_manifest(avro_file(manifest_schema(newer_fields), [record]))
    assert table.column_names == list(MANIFEST)
    row = table.to_pylist()[0]
    assert (row["file_name"], row["level"], row["bucket"]) == ("data-1.parquet", 5, 2)
    assert row["extra_files"] == ["x.index"]
    for number, (name, value) in enumerate(newest.items()):
        assert row[name] == (value if number < newer_fields else None), name


def test_records_of_the_09_era_are_wrapped_in_unions() -> None:
    schema = manifest_schema(3)
    fields = schema["fields"]
    wrapped = {
        **schema,
        "fields": [*fields[:-1], {**fields[-1], "type": ["null", fields[-1]["type"]]}],
    }
    table = read_manifest(avro_file(["null", wrapped], [entry("a"), entry("b", kind=1)]))
    assert table.select(["file_name", "kind"]).to_pylist() == [
        {"file_name": "a", "kind": 0},
        {"file_name": "b", "kind": 1},
    ]


LIST_FIELDS: list[dict[str, Any]] = [
    {"name": "_VERSION", "type": "int"},
    {"name": "_FILE_NAME", "type": "string"},
    {"name": "_FILE_SIZE", "type": "long"},
    {"name": "_NUM_ADDED_FILES", "type": "long"},
    {"name": "_NUM_DELETED_FILES", "type": "long"},
    {
        "name": "_PARTITION_STATS",
        "type": {"type": "record", "name": "stats", "fields": STATS_FIELDS},
    },
    {"name": "_SCHEMA_ID", "type": "long"},
]


def test_a_manifest_list_is_read() -> None:
    record = {
        "_VERSION": 2,
        "_FILE_NAME": "manifest-1",
        "_FILE_SIZE": 9,
        "_NUM_ADDED_FILES": 2,
        "_NUM_DELETED_FILES": 1,
        "_PARTITION_STATS": EMPTY_STATS,
        "_SCHEMA_ID": 4,
    }
    data = avro_file({"type": "record", "name": "r", "fields": LIST_FIELDS}, [record])
    table = read_manifest_list(data)
    assert table.column_names == list(MANIFEST_LIST)
    row = table.to_pylist()[0]
    assert (row["file_name"], row["num_added_files"], row["schema_id"]) == ("manifest-1", 2, 4)
    assert row["partition_min"] == EMPTY_ROW
    assert row["min_bucket"] is row["max_row_id"] is None


def index_file(*, with_cardinality: bool) -> bytes:
    ranges = [{"name": "f0", "type": "string"}, {"name": "f1", "type": "int"}]
    ranges.append({"name": "f2", "type": "int"})
    if with_cardinality:
        ranges.append({"name": "_CARDINALITY", "type": ["null", "long"]})  # type: ignore[dict-item]
    items = {"type": "record", "name": "range", "fields": ranges}
    fields: list[dict[str, Any]] = [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_INDEX_TYPE", "type": "string"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        {
            "name": "_DELETIONS_VECTORS_RANGES",
            "type": ["null", {"type": "array", "items": ["null", items]}],
        },
    ]
    one = {"f0": "data-1", "f1": 1, "f2": 24}
    if with_cardinality:
        one["_CARDINALITY"] = 2
    shared = {"_VERSION": 1, "_KIND": 0, "_PARTITION": EMPTY_ROW, "_BUCKET": 0, "_ROW_COUNT": 1}
    records = [
        {
            **shared,
            "_INDEX_TYPE": "DELETION_VECTORS",
            "_FILE_NAME": "index-1",
            "_FILE_SIZE": 60,
            "_DELETIONS_VECTORS_RANGES": [one],
        },
        {
            **shared,
            "_INDEX_TYPE": "HASH",
            "_FILE_NAME": "index-2",
            "_FILE_SIZE": 20,
            "_DELETIONS_VECTORS_RANGES": None,
        },
    ]
    return avro_file({"type": "record", "name": "r", "fields": fields}, records)


@pytest.mark.parametrize("with_cardinality", [True, False])
def test_an_index_manifest_lists_ranges_of_vectors(with_cardinality: bool) -> None:
    table = read_index_manifest(index_file(with_cardinality=with_cardinality))
    assert table.column_names == list(INDEX_MANIFEST)
    known = 2 if with_cardinality else None
    assert table["ranges"].to_pylist() == [
        [{"f0": "data-1", "f1": 1, "f2": 24, "_CARDINALITY": known}],
        None,
    ]


def test_orc_manifests_have_the_same_columns() -> None:
    file = entry("data-1.orc", level=3)["_FILE"]
    file["_CREATION_TIME"] = datetime.datetime(2024, 1, 1)
    stats = pa.struct(
        [
            ("_MIN_VALUES", pa.binary()),
            ("_MAX_VALUES", pa.binary()),
            ("_NULL_COUNTS", pa.list_(pa.int64())),
        ]
    )
    kinds = {"_KEY_STATS": stats, "_VALUE_STATS": stats, "_EXTRA_FILES": pa.list_(pa.string())}
    kinds["_CREATION_TIME"] = pa.timestamp("ms")
    struct = pa.struct([(k, kinds.get(k) or pa.scalar(v).type) for k, v in file.items()])
    top = {"_VERSION": 2, "_KIND": 0, "_PARTITION": EMPTY_ROW, "_BUCKET": 1, "_TOTAL_BUCKETS": -1}
    columns = {name: pa.array([value]) for name, value in top.items()}
    columns["_FILE"] = pa.array([file], struct)
    sink = io.BytesIO()
    orc.write_table(pa.table(columns), sink)
    row = read_manifest(sink.getvalue()).to_pylist()[0]
    assert (row["file_name"], row["level"], row["bucket"]) == ("data-1.orc", 3, 1)
    assert row["creation_time_ms"] == 1704067200000
    assert row["value_min"] == EMPTY_ROW
    assert row["delete_row_count"] is None


def test_a_missing_required_field_is_named() -> None:
    schema = manifest_schema()
    without = {**schema, "fields": [f for f in schema["fields"] if f["name"] != "_BUCKET"]}
    with pytest.raises(FormatError, match="m/manifest-1: _BUCKET"):
        read_manifest(avro_file(without, [entry("a")]), "m/manifest-1")


def test_the_first_manifest_version_is_refused() -> None:
    with pytest.raises(Unsupported, match="_VERSION is 1"):
        read_manifest(avro_file(manifest_schema(), [entry("a", version=1)]))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"ORC", b"ORC" + bytes(50), b"Obj\x01"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        read_manifest(data)
