"""Metadata updates refuse a base other than the one they were built on."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.commit.change import Change
from frazil.commit.updates import (
    MetadataUpdate,
    RemoveRef,
    SetProperties,
    SetRef,
    SetSchema,
    SetSortOrder,
    SetSpec,
)
from frazil.errors import CommitConflict
from frazil.format.metadata.metadata import RefKind, SnapshotId, SnapshotRef
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import SortField, SortOrder
from frazil.iceberg.transforms import IdentityTransform
from frazil.iceberg.types import LongType, NestedField
from tests.support.trees import SCHEMA, Bench


def _wider(bench: Bench, name: str) -> SetSchema:
    metadata = bench.metadata
    field = NestedField(metadata.last_column_id + 1, name, LongType(), required=False)
    return SetSchema(
        schema=Schema(*metadata.schema().fields, field),
        based_on_schema_id=metadata.current_schema_id,
        based_on_last_column_id=metadata.last_column_id,
    )


def _apply(bench: Bench, *updates: MetadataUpdate) -> None:
    bench.commit(Change(updates=updates))


def test_two_schemas_built_on_one_base_do_not_both_land(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    first, second = _wider(bench, "a"), _wider(bench, "b")
    _apply(bench, first)
    with pytest.raises(CommitConflict, match="current schema changed from 0 to 1"):
        _apply(bench, second)
    assert [field.name for field in bench.metadata.schema().fields] == ["id", "country", "a"]


def test_two_specs_and_two_orders_built_on_one_base_do_not_both_land(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    by = [PartitionSpec(PartitionField(n, 1000, IdentityTransform(), f"p{n}")) for n in (1, 2)]
    _apply(bench, SetSpec(spec=by[0], based_on_spec_id=0))
    with pytest.raises(CommitConflict, match="default partition spec changed from 0 to 1"):
        _apply(bench, SetSpec(spec=by[1], based_on_spec_id=0))
    order = [SortOrder(SortField(source_id=n, transform=IdentityTransform())) for n in (1, 2)]
    _apply(bench, SetSortOrder(order=order[0], based_on_order_id=0))
    with pytest.raises(CommitConflict, match="default sort order changed from 0 to 1"):
        _apply(bench, SetSortOrder(order=order[1], based_on_order_id=0))


def test_properties_of_two_writers_both_land(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.head.before_swap = [
        lambda: bench.other(Change(updates=(SetProperties(updates={"a": "1"}),)))
    ]
    _apply(bench, SetProperties(updates={"b": "2"}, removals=("write.metadata.json-every",)))
    properties = bench.metadata.properties
    assert (properties["a"], properties["b"]) == ("1", "2")
    assert "write.metadata.json-every" not in properties


def test_a_ref_moves_only_from_where_it_was(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    bench.append("D2")
    tag = SnapshotRef(snapshot_id=SnapshotId(1), kind=RefKind.TAG)
    _apply(bench, SetRef(name="v1", ref=tag, expected=None))
    with pytest.raises(CommitConflict, match="ref v1 changed from None to 1"):
        _apply(bench, SetRef(name="v1", ref=tag, expected=None))
    moved = SnapshotRef(snapshot_id=SnapshotId(2), kind=RefKind.TAG)
    _apply(bench, SetRef(name="v1", ref=moved, expected=1))
    assert bench.metadata.refs["v1"].snapshot_id == 2
    _apply(bench, RemoveRef(name="v1"))
    assert "v1" not in bench.metadata.refs


def test_files_are_written_under_the_schema_of_the_same_commit(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.commit(Change(added=bench.files("D1"), updates=(_wider(bench, "a"),)))
    assert bench.tip.schema_id == 1
    assert SCHEMA.schema_id == 0
