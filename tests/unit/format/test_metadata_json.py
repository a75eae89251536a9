"""Metadata JSON of versions 1 to 4: read, written back byte for byte, refused with a reason."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from pyiceberg.table.metadata import TableMetadataUtil, new_table_metadata

from frazil.errors import FormatError, Unsupported
from frazil.filter.prune.prune import required_keys
from frazil.filter.text.filter_text import parse
from frazil.format.metadata import metadata_json
from frazil.format.metadata.derived import DerivedColumn, FieldId
from frazil.format.metadata.metadata import (
    MetadataLogEntry,
    RefKind,
    SchemaId,
    Snapshot,
    SnapshotId,
    SnapshotLogEntry,
    SnapshotRef,
)
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.pyiceberg_values import pyiceberg_order, pyiceberg_schema, pyiceberg_spec
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import UNSORTED
from frazil.iceberg.transforms import BucketTransform, DayTransform
from frazil.iceberg.types import LongType, NestedField, StringType
from frazil.tree.table_shape import shape_of

PATH = "s3://bucket/t/metadata/00007-x.metadata.json"


def v4() -> dict[str, Any]:
    """Version 4 metadata with one of everything, its keys in the order we write them."""
    return {
        "format-version": 4,
        "table-uuid": "12345678-1234-1234-1234-123456789abc",
        "location": "s3://bucket/t",
        "last-sequence-number": 42,
        "last-updated-ms": 1700000000042,
        "last-column-id": 101,
        "current-schema-id": 1,
        "schemas": [
            {
                "type": "struct",
                "fields": [{"id": 9, "name": "ts", "type": "timestamp", "required": False}],
                "schema-id": 0,
                "identifier-field-ids": [],
            },
            {
                "type": "struct",
                "fields": [
                    {"id": 9, "name": "ts", "type": "timestamp", "required": False},
                    {"id": 10, "name": "größe", "type": "decimal(9, 2)", "required": True},
                ],
                "schema-id": 1,
                "identifier-field-ids": [10],
            },
        ],
        "default-spec-id": 0,
        "partition-specs": [
            {
                "spec-id": 0,
                "fields": [
                    {"source-id": 9, "field-id": 1000, "transform": "day", "name": "ts_day"}
                ],
            }
        ],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"owner": "sales"},
        "next-row-id": 1000,
        "current-snapshot-id": 8,
        "refs": {
            "main": {"snapshot-id": 8, "type": "branch", "min-snapshots-to-keep": 3},
            "eoy": {"snapshot-id": 7, "type": "tag", "max-ref-age-ms": 500},
        },
        "expressions": [
            {
                "expr-id": 101,
                "expr": {"source-ids": [9], "transform": "day", "name": "ts_day"},
                "partition-field-id": 1000,
            }
        ],
        "statistics": [{"snapshot-id": 8, "statistics-path": "s.puffin"}],
        "partition-statistics": [],
        "snapshots": [
            {
                "snapshot-id": 7,
                "sequence-number": 41,
                "timestamp-ms": 1700000000041,
                "manifest-list": "s3://bucket/t/metadata/snap-7.avro",
                "summary": {"operation": "append"},
            },
            {
                "snapshot-id": 8,
                "parent-snapshot-id": 7,
                "sequence-number": 42,
                "timestamp-ms": 1700000000042,
                "schema-id": 1,
                "root-manifest": "metadata/root-0000000042-x.parquet",
                "first-row-id": 900,
                "added-rows": 100,
                "summary": {"operation": "append", "added-records": "100"},
            },
        ],
        "snapshot-log": [
            {"timestamp-ms": 1700000000041, "snapshot-id": 7},
            {"timestamp-ms": 1700000000042, "snapshot-id": 8},
        ],
        "metadata-log": [{"timestamp-ms": 1700000000041, "metadata-file": "m/00006.json"}],
    }


def v1() -> dict[str, Any]:
    """Version 1 metadata as the oldest writers made it."""
    return {
        "format-version": 1,
        "location": "s3://bucket/old",
        "last-updated-ms": 1602638573874,
        "last-column-id": 2,
        "schema": {
            "type": "struct",
            "fields": [
                {"id": 1, "name": "x", "type": "long", "required": True},
                {"id": 2, "name": "y", "type": "string", "required": False},
            ],
        },
        "partition-spec": [{"name": "x_bucket", "transform": "bucket[16]", "source-id": 1}],
        "properties": {},
        "current-snapshot-id": 2,
        "snapshots": [
            {"snapshot-id": 1, "timestamp-ms": 1, "manifests": ["s3://b/a.avro", "s3://b/b.avro"]},
            {"snapshot-id": 2, "timestamp-ms": 2, "manifest-list": "s3://b/list.avro"},
        ],
    }


def loads(document: Any) -> Any:
    return metadata_json.loads(json.dumps(document).encode(), path=PATH)


# Version 4


def test_version_4_becomes_values() -> None:
    metadata, history = loads(v4())
    assert metadata.table_uuid == uuid.UUID("12345678-1234-1234-1234-123456789abc")
    assert metadata.schema().find_field("größe").field_id == 10
    assert metadata.spec().fields[0].field_id == 1000
    assert metadata.refs == {
        "main": SnapshotRef(snapshot_id=SnapshotId(8), min_snapshots_to_keep=3),
        "eoy": SnapshotRef(snapshot_id=SnapshotId(7), kind=RefKind.TAG, max_ref_age_ms=500),
    }
    assert metadata.current_snapshot_id == 8
    assert metadata.expressions == (
        DerivedColumn(
            expr_id=FieldId(101),
            source_ids=(9,),
            transform=DayTransform(),
            name="ts_day",
            partition_field_id=1000,
        ),
    )
    assert metadata.statistics == ({"snapshot-id": 8, "statistics-path": "s.puffin"},)
    assert metadata.extra == {}
    assert history.snapshots[0].manifest_list == "s3://bucket/t/metadata/snap-7.avro"
    assert history.snapshots[1] == Snapshot(
        snapshot_id=SnapshotId(8),
        parent_snapshot_id=SnapshotId(7),
        sequence_number=42,
        timestamp_ms=1700000000042,
        schema_id=SchemaId(1),
        root_manifest="metadata/root-0000000042-x.parquet",
        first_row_id=900,
        added_rows=100,
        summary={"operation": "append", "added-records": "100"},
    )
    assert history.snapshot_log[1] == SnapshotLogEntry(
        snapshot_id=SnapshotId(8), timestamp_ms=1700000000042
    )
    assert history.metadata_log == (
        MetadataLogEntry(metadata_file="m/00006.json", timestamp_ms=1700000000041),
    )


def test_version_4_is_written_back_byte_for_byte() -> None:
    data = json.dumps(v4(), separators=(",", ":")).encode()
    assert metadata_json.dumps(*metadata_json.loads(data, path=PATH)) == data


def test_unknown_fields_survive_at_every_level() -> None:
    document = v4()
    document["snapshots"][1]["key-id"] = {"nested": [1, None, "ü"]}
    document["refs"]["main"]["color"] = "green"
    document["expressions"][0]["note"] = 1
    document["expressions"][0]["expr"]["arguments"] = [2]
    document["encryption-keys"] = [{"key-id": "k"}]
    document["future"] = None
    metadata, history = loads(document)
    assert metadata.extra == {"encryption-keys": [{"key-id": "k"}], "future": None}
    assert history.snapshots[1].extra == {"key-id": {"nested": [1, None, "ü"]}}
    assert metadata.refs["main"].extra == {"color": "green"}
    assert json.loads(metadata_json.dumps(metadata, history)) == document


def test_a_table_never_written_to_has_no_current_snapshot() -> None:
    document = v4()
    for key in ("snapshots", "refs", "snapshot-log", "current-snapshot-id", "metadata-log"):
        del document[key]
    metadata, history = loads(document)
    assert metadata.current_snapshot_id is None
    assert history.snapshots == ()
    assert "current-snapshot-id" not in json.loads(metadata_json.dumps(metadata, history))


def test_a_location_left_out_is_where_the_file_is() -> None:
    document = v4()
    del document["location"]
    assert loads(document)[0].location == "s3://bucket/t"
    data = json.dumps(document).encode()
    supplied, _ = metadata_json.loads(data, path=PATH, location="s3://elsewhere/t/")
    assert supplied.location == "s3://elsewhere/t"
    with pytest.raises(FormatError, match="location"):
        metadata_json.loads(data, path="somewhere.json")


def test_compressed_metadata_is_read() -> None:
    data = gzip.compress(json.dumps(v4()).encode())
    assert metadata_json.loads(data, path=PATH) == loads(v4())
    with pytest.raises(FormatError, match="gzip"):
        metadata_json.loads(data[:-20], path=PATH)


def test_the_parts_a_catalog_stores_make_the_whole_again() -> None:
    metadata, history = loads(v4())
    text = metadata_json.definition_text(metadata)
    assert "last-sequence-number" not in text
    assert "snapshot-id" not in text.replace('"snapshot-id":8,"statistics-path"', "")
    read = metadata_json.load_definition(text, path="row")
    assert read.schemas == metadata.schemas
    assert read.expressions == metadata.expressions
    assert (read.refs, read.next_row_id, read.last_updated_ms) == ({}, 0, 0)
    refs = metadata_json.refs_text(metadata.refs)
    assert metadata_json.load_refs(refs, path="row") == metadata.refs
    for snapshot in history.snapshots:
        record = metadata_json.snapshot_text(snapshot)
        assert metadata_json.load_snapshot(record, path="row") == snapshot


# Versions 1 to 3


def test_version_1_gets_what_later_versions_have() -> None:
    metadata, history = loads(v1())
    assert metadata.format_version == 1
    assert metadata.schema().find_field("y").field_id == 2
    assert metadata.spec().fields == (PartitionField(1, 1000, BucketTransform(16), "x_bucket"),)
    assert metadata.last_partition_id == 1000
    assert metadata.sort_order().order_id == 0
    assert metadata.last_sequence_number == 0
    assert metadata.refs == {"main": SnapshotRef(snapshot_id=SnapshotId(2))}
    assert history.snapshots[0].manifests == ("s3://b/a.avro", "s3://b/b.avro")
    assert history.snapshots[1].manifest_list == "s3://b/list.avro"
    assert loads(v1())[0].table_uuid == metadata.table_uuid


def test_version_1_is_written_with_its_old_fields() -> None:
    metadata, history = loads(v1())
    written = json.loads(metadata_json.dumps(metadata, history))
    assert [field["name"] for field in written["schema"]["fields"]] == ["x", "y"]
    assert written["partition-spec"][0]["field-id"] == 1000
    assert "last-sequence-number" not in written
    assert "sequence-number" not in written["snapshots"][0]
    assert loads(written) == (metadata, history)


def test_a_version_1_table_becomes_version_4() -> None:
    metadata, _ = loads(v1())
    upgraded = metadata.upgraded(now_ms=1700000000000)
    assert upgraded.format_version == 4
    assert [(c.expr_id, c.partition_field_id) for c in upgraded.expressions] == [(900_000, 1000)]


@pytest.mark.parametrize("version", ["1", "2"])
def test_what_pyiceberg_writes_is_read_and_given_back(version: str) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True, doc="key"),
        NestedField(2, "name", StringType(), required=False),
        identifier_field_ids=[1],
    )
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(8), "b"))
    theirs = new_table_metadata(
        pyiceberg_schema(schema),
        pyiceberg_spec(spec),
        pyiceberg_order(UNSORTED),
        "s3://b/t",
        {"format-version": version, "owner": "x"},
    )
    metadata, history = metadata_json.loads(theirs.model_dump_json().encode(), path=PATH)
    assert metadata.format_version == int(version)
    assert pyiceberg_schema(metadata.schema()) == theirs.schema()
    assert pyiceberg_spec(metadata.spec()) == theirs.spec()
    assert metadata.table_uuid == theirs.table_uuid
    assert metadata.properties == {"owner": "x"}
    again = TableMetadataUtil.parse_raw(metadata_json.dumps(metadata, history).decode())
    assert again == theirs


def test_version_3_keeps_its_row_ids() -> None:
    document = v4()
    document["format-version"] = 3
    del document["expressions"]
    document["statistics"] = []
    del document["snapshots"][1]["root-manifest"]
    document["snapshots"][1]["manifest-list"] = "s3://b/list.avro"
    metadata, history = loads(document)
    assert metadata.next_row_id == 1000
    assert history.snapshots[1].first_row_id == 900
    assert json.loads(metadata_json.dumps(metadata, history)) == document
    theirs = TableMetadataUtil.parse_raw(json.dumps(document))
    assert theirs.schema() == pyiceberg_schema(metadata.schema())


# Refusals


@pytest.mark.parametrize("version", [5, 99])
def test_a_newer_version_is_refused_by_name(version: int) -> None:
    with pytest.raises(Unsupported) as refused:
        loads({**v4(), "format-version": version})
    assert PATH in str(refused.value)
    assert str(version) in str(refused.value)
    assert refused.value.feature == f"format-version {version}"


def test_an_unknown_required_feature_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="time-machine"):
        loads({**v4(), "required-features": ["time-machine"]})
    assert loads({**v4(), "required-features": []})[0].extra == {"required-features": []}


def test_expressions_of_the_proposal_are_read_and_kept() -> None:
    """Its own example: one source, no partition field, and the field's id inside."""
    document = v4()
    document["schemas"][-1]["fields"] += [
        {"id": 2, "name": "a", "type": "int", "required": False},
        {"id": 3, "name": "b", "type": "int", "required": False},
        {"id": 11, "name": "str", "type": "string", "required": False},
    ]
    document["last-column-id"] = 11
    document["partition-specs"][0]["fields"].append(
        {"source-ids": [2, 3], "field-id": 1001, "transform": "bucket[16]", "name": "bucket_a_b"}
    )
    document["last-partition-id"] = 1001
    day = {"transform": "day", "name": "ts_day"}
    lower = {"transform": "lower", "name": "lower_str"}
    bucket = {"source-ids": [2, 3], "transform": "bucket[16]", "name": "bucket_a_b"}
    document["expressions"] = [
        {"expr-id": 101, "expr": {"source-id": 9, **day}, "partition-field-id": 1000},
        {"expr-id": 102, "expr": {"source-id": 11, **lower}},
        {"expr-id": 104, "expr": {**bucket, "partition-field-id": 1001}},
    ]
    metadata, history = loads(document)
    read = [(c.expr_id, c.source_ids, c.partition_field_id) for c in metadata.expressions]
    assert read == [(101, (9,), 1000), (102, (11,), None), (104, (2, 3), 1001)]
    assert metadata.upgraded(now_ms=9).expressions == metadata.expressions
    written = json.loads(metadata_json.dumps(metadata, history))["expressions"]
    assert written == [
        {"expr-id": 101, "expr": {"source-ids": [9], **day}, "partition-field-id": 1000},
        {"expr-id": 102, "expr": {"source-ids": [11], **lower}},
        {"expr-id": 104, "expr": bucket, "partition-field-id": 1001},
    ]
    shape = shape_of(metadata)
    assert sorted(shape.derived_types) == [101, 104]
    context = shape.prune_context(metadata.schema())
    for where in ("str = 'a'", "str like 'a%'", "a = 1 and b = 2"):
        assert required_keys(parse(where, metadata.schema()), context)


def test_a_transform_that_is_not_known_keeps_its_name() -> None:
    document = v4()
    document["partition-specs"][0]["fields"][0]["transform"] = "fortnight"
    document["expressions"][0]["expr"]["transform"] = "fortnight"
    assert json.loads(metadata_json.dumps(*loads(document))) == document


def test_variants_at_every_level_are_loaded_and_written_as_they_were() -> None:
    document = v4()
    document["last-column-id"] = 16
    document["schemas"][0]["fields"] += [
        {"id": 11, "name": "v", "type": "variant", "required": False},
        {
            "id": 12,
            "name": "variant",
            "type": {
                "type": "list",
                "element-id": 13,
                "element": "variant",
                "element-required": True,
            },
            "required": True,
        },
        {
            "id": 14,
            "name": "m",
            "type": {
                "type": "map",
                "key-id": 15,
                "key": "string",
                "value-id": 16,
                "value": "variant",
                "value-required": False,
            },
            "required": False,
        },
    ]
    loaded = loads(document)
    schema = loaded[0].schemas[0]
    assert [str(schema.find_type(name)) for name in ("v", "variant.element", "m.value")] == [
        "variant"
    ] * 3
    assert json.loads(metadata_json.dumps(*loaded))["schemas"] == document["schemas"]


def change(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def apply(document: dict[str, Any]) -> None:
        target: Any = document
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = to

    return apply


def remove(*path: Any) -> Callable[[dict[str, Any]], None]:
    def apply(document: dict[str, Any]) -> None:
        target: Any = document
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]

    return apply


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (remove("format-version"), "format-version"),
        (change("format-version", to="4"), "format-version"),
        (change("format-version", to=0), "format-version"),
        (change("format-version", to=True), "format-version"),
        (remove("table-uuid"), "table-uuid"),
        (change("table-uuid", to="no"), "table-uuid"),
        (change("location", to=5), "location"),
        (change("last-column-id", to=1.5), "last-column-id"),
        (change("last-updated-ms", to=2**63), "last-updated-ms"),
        (remove("schemas"), "schemas"),
        (change("schemas", to=[]), "schemas"),
        (change("schemas", 1, to=7), "schemas[1]"),
        (remove("schemas", 1, "fields"), "schemas[1].fields"),
        (remove("schemas", 1, "schema-id"), "schemas[1].schema-id"),
        (remove("partition-specs", 0, "fields"), "partition-specs[0].fields"),
        (change("sort-orders", 0, "order-id", to="0"), "sort-orders[0].order-id"),
        (change("schemas", 1, "fields", 0, "type", to="nonsense"), "schemas[1]"),
        (change("schemas", 1, "schema-id", to=0), "schemas"),
        (change("current-schema-id", to=5), "schemas"),
        (change("partition-specs", 0, "fields", 0, "transform", to=7), "partition-specs[0]"),
        (change("default-spec-id", to=5), "partition-specs"),
        (change("default-sort-order-id", to=5), "sort-orders"),
        (change("sort-orders", to={}), "sort-orders"),
        (change("properties", to={"a": 1}), "properties.a"),
        (change("properties", to=[]), "properties"),
        (change("refs", "main", "type", to="twig"), "refs.main.type"),
        (change("refs", "main", to=None), "refs.main.type"),
        (change("refs", "eoy", "snapshot-id", to=99), "refs.eoy"),
        (change("current-snapshot-id", to=7), "current-snapshot-id"),
        (change("snapshots", 1, "root-manifest", to=None), "snapshots[1]"),
        (change("snapshots", 1, "manifest-list", to="x"), "snapshots[1]"),
        (change("snapshots", 1, "snapshot-id", to=7), "snapshots"),
        (remove("snapshots", 1, "sequence-number"), "snapshots[1].sequence-number"),
        (change("snapshots", 1, "timestamp-ms", to="now"), "snapshots[1].timestamp-ms"),
        (change("snapshots", 1, "summary", to={"operation": 1}), "snapshots[1].summary.operation"),
        (change("snapshots", to={}), "snapshots"),
        (change("snapshot-log", 0, to=5), "snapshot-log[0]"),
        (remove("metadata-log", 0, "metadata-file"), "metadata-log[0].metadata-file"),
        (change("expressions", 0, "expr-id", to=10), "expressions"),
        (
            change("expressions", 0, "expr", "source-ids", to=["9"]),
            "expressions[0].expr.source-ids",
        ),
        (remove("expressions", 0, "expr"), "expressions[0].expr.source-ids"),
        (
            change("expressions", 0, "expr", "transform", to="bucket[x]"),
            "expressions[0].expr.transform",
        ),
        (change("statistics", to=[1]), "statistics[0]"),
        (change("required-features", to="x"), "required-features"),
    ],
)
def test_a_bad_field_is_named_with_its_file(
    damage: Callable[[dict[str, Any]], None], field: str
) -> None:
    document = v4()
    damage(document)
    with pytest.raises(FormatError) as refused:
        loads(document)
    assert refused.value.path == PATH
    assert refused.value.field == field


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"format-version": NaN}',
        b"[" * 100_000,
        json.dumps(v4()).encode()[:-1],
        b"9" * 10_000,
    ],
)
def test_what_is_not_json_is_refused_with_the_file(data: bytes) -> None:
    with pytest.raises(FormatError) as refused:
        metadata_json.loads(data, path=PATH)
    assert refused.value.path == PATH


def test_a_version_1_snapshot_may_not_have_two_trees() -> None:
    document = v1()
    document["snapshots"][1]["root-manifest"] = "metadata/root.parquet"
    with pytest.raises(FormatError, match="exactly one"):
        loads(document)
