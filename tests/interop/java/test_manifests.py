"""Manifests we write, read by Iceberg Java's own v4 reader and compared entry by entry."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.format.entries import fields, manifest, stats, tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.nest import ColumnNames
from frazil.format.values.types import STORAGE
from frazil.format.values.variant_bounds import encoded_bounds
from frazil.iceberg.schema import Schema, schema_document
from frazil.iceberg.types import GeometryType, NestedField, VariantType
from tests.interop.java import scenarios
from tests.interop.java.conftest import NAMES, JavaReader
from tests.interop.java.scenarios import Entry, Inherited
from tests.support.java import JavaOracle
from tests.support.values import to_json

pytestmark = pytest.mark.java

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _without_row_ids_of_deletes(entries: list[Entry]) -> list[Entry]:
    """Java numbers the rows of every live entry; only data files and data manifests have any."""
    for entry in entries:
        if entry["content_type"] in (2, 4):
            entry.pop("tracking.first_row_id", None)
    return entries


@given(entries=scenarios.roots(), codec=st.sampled_from(["zstd", "snappy", "lz4", "none", None]))
@QUICK
def test_a_root_reads_back_as_written(
    java_reader: JavaReader, entries: list[Entry], codec: str | None
) -> None:
    inherited = Inherited()
    seen = java_reader.read(entries, inherited, content="root", codec=codec)
    expected = scenarios.as_read(entries, inherited)
    assert _without_row_ids_of_deletes(seen) == _without_row_ids_of_deletes(expected)


@given(entries=scenarios.leaves())
@QUICK
def test_a_leaf_inherits_what_it_leaves_null(java_reader: JavaReader, entries: list[Entry]) -> None:
    inherited = Inherited()
    seen = java_reader.read(entries, inherited, content="data")
    assert seen == scenarios.as_read(entries, inherited)


@given(entries=scenarios.leaves())
@QUICK
def test_we_hand_down_tracking_as_java_does(java_reader: JavaReader, entries: list[Entry]) -> None:
    inherited = Inherited()
    seen = java_reader.read(entries, inherited, content="data")
    ours = tracking.inherit(
        EntryBatch.from_rows(entries, scenarios.column_types()),
        snapshot_id=inherited.snapshot_id,
        sequence_number=inherited.sequence_number,
        first_row_id=inherited.first_row_id,
    )
    for key in ("snapshot_id", "sequence_number", "file_sequence_number", "first_row_id"):
        assert ours.pylist(f"tracking.{key}") == [entry.get(f"tracking.{key}") for entry in seen]


@given(entries=scenarios.delete_leaves())
@QUICK
def test_a_leaf_of_equality_deletes_reads_back_as_written(
    java_reader: JavaReader, entries: list[Entry]
) -> None:
    inherited = Inherited(first_row_id=None)
    seen = java_reader.read(entries, inherited, content="delete")
    assert seen == scenarios.as_read(entries, inherited)


@given(entries=scenarios.roots())
@QUICK
def test_live_entries_are_the_same_for_both(java_reader: JavaReader, entries: list[Entry]) -> None:
    for number, entry in enumerate(entries):
        entry["location"] = f"data/{number}"
    seen = java_reader.read(entries, Inherited(), content="root", live_only=True)
    batch = EntryBatch.from_rows(entries, scenarios.column_types())
    ours = batch.filter(tracking.live_mask(batch)).pylist("location")
    assert [entry["location"].rpartition("/")[2] for entry in seen] == [
        location.rpartition("/")[2] for location in ours
    ]


def test_columns_java_does_not_know_are_ignored(java_reader: JavaReader) -> None:
    entry = {
        "tracking.status": 1,
        "content_type": 4,
        "location": "metadata/leaf.parquet",
        "file_format": "parquet",
        "record_count": 1,
        "file_size_in_bytes": 1,
        "referenced_file": "metadata/other.parquet",
        "content_stats.101.lower_bound": 3,
        "content_stats.101.upper_bound": 3,
    }
    batch = EntryBatch.from_rows([entry], scenarios.column_types())
    data = manifest.encode(
        batch, content="root", names=NAMES, codec="zstd", revision=fields.REVISION_1_12
    )
    [seen] = java_reader.dump(data, schema=scenarios.SCHEMA, inherited=Inherited())
    assert seen["location"] == f"{scenarios.TABLE_LOCATION}/metadata/leaf.parquet"
    assert not seen["content_stats"]


def test_java_leaves_out_files_without_rows(java_reader: JavaReader) -> None:
    entry = {
        "tracking.status": 1,
        "content_type": 0,
        "location": "data/empty.parquet",
        "file_format": "parquet",
        "record_count": 0,
        "file_size_in_bytes": 1,
    }
    full = {**entry, "location": "data/full.parquet", "record_count": 1}
    seen = java_reader.read([entry, full], Inherited(), content="data")
    assert [one["location"].rpartition("/")[2] for one in seen] == ["full.parquet"]


def test_points_that_bound_a_geometry_read_back(java_reader: JavaReader) -> None:
    schema = Schema(NestedField(1, "shape", GeometryType(), required=False))
    corners = {"lower_x": -1.5, "lower_y": 0.0, "lower_z": 2.0, "upper_x": 1.5, "upper_y": 9.0}
    entry = {
        "tracking.status": 1,
        "content_type": 0,
        "location": "data/a.parquet",
        "file_format": "parquet",
        "record_count": 4,
        "file_size_in_bytes": 1,
        "content_stats.1.value_count": 4,
        **{f"content_stats.1.{name}": value for name, value in corners.items()},
    }
    types = {f"content_stats.1.{name}": pa.float64() for name in corners}
    batch = EntryBatch.from_rows([entry], types | {"content_stats.1.value_count": pa.int64()})
    names = ColumnNames(partition={})
    data = manifest.encode(
        batch, content="data", names=names, codec="zstd", revision=fields.REVISION_1_12
    )
    [seen] = java_reader.dump(data, schema=schema, inherited=Inherited(), specs=[])
    found = seen["content_stats"]["1"]
    assert found["value_count"] == 4
    double = scenarios.STATS_TYPES[5]
    assert found["lower_bound"] == {
        "10210": to_json(double, -1.5),
        "10211": to_json(double, 0.0),
        "10212": to_json(double, 2.0),
        "10213": None,
    }
    assert found["upper_bound"] == {
        "10214": to_json(double, 1.5),
        "10215": to_json(double, 9.0),
        "10216": None,
        "10217": None,
    }


def test_variants_that_bound_a_variant_read_back(java_reader: JavaReader) -> None:
    schema = Schema(NestedField(1, "v", VariantType(), required=False))
    ends = {
        "lower_bound": encoded_bounds({"$['price']": 5, "$['name']": "a"}),
        "upper_bound": encoded_bounds({"$['price']": 70000}),
    }
    entry = {
        "tracking.status": 1,
        "content_type": 0,
        "location": "data/a.parquet",
        "file_format": "parquet",
        "record_count": 4,
        "file_size_in_bytes": 1,
        "content_stats.1.value_count": 4,
        "content_stats.1.lower_bound": ends["lower_bound"],
        "content_stats.1.upper_bound": ends["upper_bound"],
    }
    without = {**entry, "location": "data/b.parquet"}
    del without["content_stats.1.lower_bound"], without["content_stats.1.upper_bound"]
    types = {f"content_stats.1.{name}": STORAGE for name in ends}
    types["content_stats.1.value_count"] = pa.int64()
    batch = EntryBatch.from_rows([entry, without], types)
    data = manifest.encode(
        batch,
        content="data",
        names=ColumnNames(partition={}),
        codec="zstd",
        revision=fields.REVISION_1_12,
    )
    seen, other = java_reader.dump(data, schema=schema, inherited=Inherited(), specs=[])
    found = seen["content_stats"]["1"]
    assert found["value_count"] == 4
    assert "5" in str(found["lower_bound"])
    assert "70000" in str(found["upper_bound"])
    assert other["content_stats"]["1"].get("lower_bound") is None


# --- declarations ----------------------------------------------------------------------------


def test_fields_are_declared_as_java_declares_them(java: JavaOracle) -> None:
    declared = java.call("manifest.schema", schema=_json(scenarios.SCHEMA), specs=[])
    theirs = {
        (field["id"], field["name"], field["required"]): [
            (child["id"], child["name"], child["required"]) for child in field.get("fields", [])
        ]
        for field in declared
        if field["name"] not in ("content_stats", "partition")
    }
    ours = {
        (field.id, field.name, field.required): [
            (child.id, child.name, child.required) for child in field.children
        ]
        for field in fields.REVISION_1_12.entry
        if field.name not in ("content_stats", "partition", "referenced_file")
    }
    assert ours == theirs


def test_statistics_are_declared_as_java_declares_them(java: JavaOracle) -> None:
    schema = Schema(
        *scenarios.SCHEMA.fields,
        NestedField(30, "shape", GeometryType(), required=False),
        NestedField(31, "v", VariantType(), required=False),
    )
    declared = java.call("manifest.schema", schema=_json(schema), specs=[])
    [content_stats] = [field for field in declared if field["name"] == "content_stats"]
    theirs = {
        struct["id"]: [(leaf["id"], leaf["name"]) for leaf in _leaves(struct)]
        for struct in content_stats["fields"]
    }
    ours = {
        stats.stats_base(field.id): [
            (stats.stats_base(field.id) + column.offset, column.name)
            for column in stats.stats_columns(field)
        ]
        for field in stats.tracked_fields(schema)
    }
    only_ours = set(ours) - set(theirs)
    assert only_ours <= {stats.stats_base(22)}, "counts of a list are ours alone"
    assert {base: ours[base] for base in theirs} == theirs


def _leaves(struct: Entry) -> list[Entry]:
    found: list[Entry] = []
    for child in struct["fields"]:
        found += _leaves(child) if "fields" in child else [child]
    return found


def _json(schema: Schema) -> Entry:
    return schema_document(schema)
