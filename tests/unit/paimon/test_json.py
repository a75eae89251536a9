"""Schema, snapshot and tag files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import FormatError, InvalidInput
from frazil.paimon.read.snapshot import parse_snapshot, parse_tag
from frazil.paimon.read.table_schema import MergeEngine, parse_schema
from tests.unit.paimon.place import schema_json, snapshot_json


def schema_bytes(**changes: Any) -> bytes:
    return json.dumps(schema_json([("k", "INT NOT NULL"), ("v", "STRING")], **changes)).encode()


def test_absent_options_have_the_defaults_of_their_version() -> None:
    third, second = parse_schema(schema_bytes()), parse_schema(schema_bytes(version=2))
    first = parse_schema(schema_bytes(version=1))
    assert (third.bucket, third.file_format) == (-1, "parquet")
    assert (second.bucket, second.file_format) == (-1, "orc")
    assert (first.bucket, first.file_format) == (1, "orc")
    assert third.merge_engine is MergeEngine.DEDUPLICATE
    assert third.legacy_partition_names
    assert third.default_partition_name == "__DEFAULT_PARTITION__"


def test_keys_of_files_leave_partition_columns_out() -> None:
    schema = parse_schema(schema_bytes(partitionKeys=["v"], primaryKeys=["v", "k"]))
    assert schema.trimmed_primary_keys == ("k",)
    assert [field.name for field in schema.partition_fields] == ["v"]


def test_row_tracking_columns_can_be_selected() -> None:
    selected = parse_schema(schema_bytes()).select(["v", "_ROW_ID", "_SEQUENCE_NUMBER"])
    assert [field.id for field in selected] == [1, 2147483642, 2147483646]


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"{", b'{"id": 0}', b"[" * 100_000),
        schema_bytes(fields=[]),
        schema_bytes(fields=[{"id": 0, "name": "k", "type": "INTS"}]),
        schema_bytes(partitionKeys=["nope"]),
        schema_bytes(primaryKeys="k"),
        schema_bytes(id="0"),
        schema_bytes(options=[1]),
        schema_bytes(fields=[{"id": i, "name": "k", "type": "INT"} for i in range(2)]),
    ],
)
def test_a_schema_that_breaks_the_format_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_schema(data)


def test_an_unknown_merge_engine_is_refused() -> None:
    with pytest.raises(InvalidInput, match="merge-engine"):
        _ = parse_schema(schema_bytes(options={"merge-engine": "magic"})).merge_engine


def test_a_snapshot_needs_little_more_than_ids() -> None:
    snapshot = parse_snapshot(json.dumps(snapshot_json(7)).encode())
    assert snapshot.manifest_lists == ("manifest-list-7-0", "manifest-list-7-1")
    assert snapshot.index_manifest is None
    assert snapshot.next_row_id is None


def test_a_tag_has_a_time_and_a_retention() -> None:
    raw = snapshot_json(3, tagCreateTime=[2024, 1, 2, 3, 4, 5, 678000000], tagTimeRetained=3600.5)
    tag = parse_tag("v1", json.dumps(raw).encode())
    assert (tag.name, tag.snapshot.id) == ("v1", 3)
    assert (tag.create_time_ms, tag.time_retained_ms) == (1704164645678, 3600500)
    plain = parse_tag("v2", json.dumps(snapshot_json(3)).encode())
    assert (plain.create_time_ms, plain.time_retained_ms) == (None, None)
    written_out = json.dumps({**raw, "tagCreateTime": "2024-01-02T03:04"}).encode()
    assert parse_tag("v3", written_out).create_time_ms == 1704164640000


@pytest.mark.parametrize(
    "changes",
    [
        *({"commitKind": "MERGE"}, {"id": None}, {"id": 2**70}, {"schemaId": "0"}),
        *({"baseManifestList": "../../x"}, {"indexManifest": 5}, {"properties": [1]}),
        {"totalRecordCount": True},
    ],
)
def test_a_snapshot_that_breaks_the_format_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        parse_snapshot(json.dumps(snapshot_json(1, **changes)).encode())
