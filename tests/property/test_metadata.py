"""Metadata JSON under random tables and random damage."""

from __future__ import annotations

import copy
import json
import uuid
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.credentials import is_credential
from frazil.errors import FormatError, FrazilError, Unsupported
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import (
    History,
    RefKind,
    Snapshot,
    SnapshotId,
    SnapshotRef,
    TableMetadata,
    new_table,
)
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform

TYPES = [
    ice.BooleanType(),
    ice.IntegerType(),
    ice.LongType(),
    ice.DoubleType(),
    ice.DecimalType(9, 2),
    ice.DateType(),
    ice.TimeType(),
    ice.TimestamptzType(),
    ice.TimestampNanoType(),
    ice.StringType(),
    ice.UUIDType(),
    ice.FixedType(5),
    ice.BinaryType(),
    ice.ListType(50, ice.StringType(), element_required=True),
    ice.MapType(51, ice.StringType(), 52, ice.LongType(), value_required=False),
    ice.StructType(ice.NestedField(53, "inner", ice.IntegerType(), required=True)),
]
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=12)
any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
# A name such as `user.secret` is refused; Hypothesis finds that word in the package's own source.
property_names = words.map(lambda word: f"user.{word}").filter(lambda name: not is_credential(name))
extras = st.dictionaries(words.map(lambda word: f"x-{word}"), any_json, max_size=2)


@st.composite
def tables(draw: st.DrawFn) -> tuple[TableMetadata, History]:
    """A table with some columns, partitions, snapshots, refs and unknown fields."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=6))
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType(), required=True),
        *(
            ice.NestedField(
                100 * n, f"c{n}", kind, required=draw(st.booleans()), doc=draw(st.none() | words)
            )
            for n, kind in enumerate(types, 1)
            if n == 1 or kind.is_primitive
        ),
    )
    transforms = draw(
        st.lists(
            st.sampled_from([BucketTransform(4), TruncateTransform(10), IdentityTransform()]),
            unique_by=str,
            max_size=3,
        )
    )
    parts = [PartitionField(1, 1000, t, f"p{n}") for n, t in enumerate(transforms)]
    empty = new_table(
        schema=schema,
        spec=PartitionSpec(*parts),
        location=draw(st.sampled_from(["/w/t", "s3://b/t"])),
        table_uuid=draw(st.uuids()),
        now_ms=draw(st.integers(0, 2**40)),
        properties=draw(st.dictionaries(property_names, words, max_size=2)),
    )
    metadata, history = replace(empty, extra=draw(extras)), History()
    for number in range(1, draw(st.integers(0, 4)) + 1):
        snapshot = Snapshot(
            snapshot_id=SnapshotId(number * 10**17),
            parent_snapshot_id=metadata.current_snapshot_id,
            sequence_number=number,
            timestamp_ms=metadata.last_updated_ms + draw(st.integers(0, 1000)),
            root_manifest=f"metadata/root-{number}.parquet",
            added_rows=draw(st.integers(0, 2**40)),
            summary=draw(st.dictionaries(words, words, max_size=3)),
            extra=draw(extras),
        )
        after = metadata.with_snapshot(snapshot, branch=draw(st.sampled_from(["main", "b", None])))
        history = history.advanced(metadata, after, added=(snapshot,))
        metadata = after
    if history.snapshots:
        ref = SnapshotRef(
            snapshot_id=draw(st.sampled_from(history.snapshots)).snapshot_id,
            kind=RefKind.TAG,
            extra=draw(extras),
        )
        metadata = metadata.with_ref("tag", ref, now_ms=metadata.last_updated_ms)
    return metadata, history


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_what_is_written_is_read_back_and_written_the_same(
    table: tuple[TableMetadata, History],
) -> None:
    metadata, history = table
    data = metadata_json.dumps(metadata, history)
    read = metadata_json.loads(data, path="t.json")
    assert read == (metadata, history)
    assert metadata_json.dumps(*read) == data


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_the_stored_parts_make_the_whole(table: tuple[TableMetadata, History]) -> None:
    metadata, history = table
    text = metadata_json.definition_text(metadata)
    whole = replace(
        metadata_json.load_definition(text, path="row"),
        refs=metadata_json.load_refs(metadata_json.refs_text(metadata.refs), path="row"),
        last_sequence_number=metadata.last_sequence_number,
        last_updated_ms=metadata.last_updated_ms,
        next_row_id=metadata.next_row_id,
    )
    assert whole == metadata
    for snapshot in history.snapshots:
        record = metadata_json.snapshot_text(snapshot)
        assert metadata_json.load_snapshot(record, path="row") == snapshot


def _paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [*([here] if here else []), *(p for k, v in inner for p in _paths(v, (*here, k)))]


def _document() -> dict[str, Any]:
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType(), required=True),
        ice.NestedField(
            2, "m", ice.MapType(3, ice.StringType(), 4, ice.LongType()), required=False
        ),
    )
    metadata = new_table(
        schema=schema,
        spec=PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "b")),
        location="/w/t",
        table_uuid=uuid.UUID(int=7),
        now_ms=5,
        properties={"k": "v"},
    )
    history = History()
    for number in (1, 2):
        snapshot = Snapshot(
            snapshot_id=SnapshotId(number),
            parent_snapshot_id=metadata.current_snapshot_id,
            sequence_number=number,
            timestamp_ms=5 + number,
            root_manifest="metadata/root.parquet",
            summary={"operation": "append"},
        )
        after = metadata.with_snapshot(snapshot)
        history = history.advanced(metadata, after, added=(snapshot,))
        metadata = after
    document: dict[str, Any] = json.loads(metadata_json.dumps(metadata, history))
    return document


def loaded_or_refused(data: bytes) -> tuple[TableMetadata, History] | FrazilError:
    """What comes out; anything but these two kinds of error fails the test."""
    try:
        return metadata_json.loads(data, path="t.json")
    except (FormatError, Unsupported) as error:
        return error


DOCUMENT = _document()
PATHS = _paths(DOCUMENT)
DATA = json.dumps(DOCUMENT).encode()


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(PATHS), st.none() | st.tuples(any_json)), min_size=1, max_size=3
    ),
    st.sampled_from([1, 2, 3, 4]),
)
def test_damaged_fields_give_only_our_errors(
    damages: list[tuple[tuple[Any, ...], tuple[Any] | None]], version: int
) -> None:
    document = copy.deepcopy(DOCUMENT)
    document["format-version"] = version
    for path, new in damages:
        target: Any = document
        try:
            for step in path[:-1]:
                target = target[step]
            if new is None:
                del target[path[-1]]
            else:
                target[path[-1]] = new[0]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier damage took the place away
    found = loaded_or_refused(json.dumps(document).encode())
    if isinstance(found, FrazilError):
        assert "t.json" in str(found)
    elif version == 4:
        written = metadata_json.dumps(*found)
        assert metadata_json.dumps(*metadata_json.loads(written, path="t.json")) == written


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 255)), min_size=1, max_size=6),
    st.integers(0, len(DATA)),
)
def test_damaged_bytes_give_only_our_errors(flips: list[tuple[int, int]], length: int) -> None:
    data = bytearray(DATA)
    for position, byte in flips:
        data[position] = byte
    for damaged in (bytes(data), bytes(data[:length])):
        found = loaded_or_refused(damaged)
        assert not isinstance(found, FrazilError) or "t.json" in str(found)
