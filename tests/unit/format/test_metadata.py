"""Transitions of table metadata: what is allowed, what ids come out, what is refused."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from frazil.credentials import is_credential
from frazil.errors import InvalidInput, NotFound, Unsupported
from frazil.format.metadata.derived import FieldId
from frazil.format.metadata.metadata import (
    History,
    RefKind,
    Snapshot,
    SnapshotId,
    SnapshotLogEntry,
    SnapshotRef,
    TableMetadata,
    new_table,
)
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import SortField, SortOrder
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
    YearTransform,
)

SCHEMA = Schema(
    ice.NestedField(10, "id", ice.LongType(), required=True),
    ice.NestedField(20, "country", ice.StringType(), required=False),
    ice.NestedField(30, "day", ice.DateType(), required=False),
    ice.NestedField(40, "tags", ice.ListType(41, ice.StringType(), False), required=False),
)


def table(*parts: PartitionField, order: SortOrder | None = None) -> TableMetadata:
    return new_table(
        schema=SCHEMA,
        spec=PartitionSpec(*parts),
        sort_order=order or SortOrder(order_id=0),
        location="/warehouse/t/",
        table_uuid=uuid.UUID(int=1),
        now_ms=1_000,
    )


def snapshot(number: int, sequence: int, **others: object) -> Snapshot:
    values = {
        "snapshot_id": SnapshotId(number),
        "sequence_number": sequence,
        "timestamp_ms": 2_000 + sequence,
        "root_manifest": f"metadata/root-{number}.parquet",
        **others,
    }
    return Snapshot(**values)  # type: ignore[arg-type]


# A new table


def test_a_new_table_counts_its_fields_from_one() -> None:
    metadata = table()
    assert metadata.format_version == 4
    assert [(field.field_id, field.name) for field in metadata.schema().fields] == [
        (1, "id"),
        (2, "country"),
        (3, "day"),
        (4, "tags"),
    ]
    assert metadata.last_column_id == 5
    assert metadata.location == "/warehouse/t"
    assert metadata.spec().fields == ()
    assert metadata.last_partition_id == 999
    assert metadata.sort_order().order_id == 0
    assert (metadata.next_row_id, metadata.last_sequence_number) == (0, 0)
    assert metadata.current_snapshot_id is None


def test_every_partition_field_but_identity_gets_a_derived_column() -> None:
    metadata = table(
        PartitionField(20, 7, IdentityTransform(), "country"),
        PartitionField(10, 8, BucketTransform(16), "id_bucket"),
        PartitionField(30, 9, YearTransform(), "day_year"),
    )
    spec = metadata.spec()
    assert [(f.source_id, f.field_id) for f in spec.fields] == [(2, 1000), (1, 1001), (3, 1002)]
    assert metadata.last_partition_id == 1002
    assert [
        (c.expr_id, c.source_ids, str(c.transform), c.name, c.partition_field_id)
        for c in metadata.expressions
    ] == [
        (900_000, (1,), "bucket[16]", "id_bucket", 1001),
        (900_001, (3,), "year", "day_year", 1002),
    ]
    assert metadata.last_column_id == 5


def test_a_new_table_takes_a_sort_order_by_the_callers_field_ids() -> None:
    metadata = table(order=SortOrder(SortField(source_id=30, transform=IdentityTransform())))
    assert metadata.sort_order().order_id == 1
    assert [field.source_id for field in metadata.sort_order().fields] == [3]


@pytest.mark.parametrize(
    "parts",
    [
        [PartitionField(99, 1000, DayTransform(), "ghost")],
        [PartitionField(20, 1000, DayTransform(), "country_day")],
        [PartitionField(40, 1000, IdentityTransform(), "tags")],
        [PartitionField(10, 1000, BucketTransform(4), "country")],
        [PartitionField(10, 1000, BucketTransform(4), "")],
        [
            PartitionField(10, 1000, BucketTransform(4), "x"),
            PartitionField(20, 1001, BucketTransform(4), "x"),
        ],
        [
            PartitionField(10, 1000, BucketTransform(4), "x"),
            PartitionField(10, 1001, BucketTransform(4), "y"),
        ],
    ],
    ids=["no column", "wrong type", "a list", "a column's name", "no name", "twice", "repeated"],
)
def test_a_partitioning_that_cannot_be_is_refused(parts: list[PartitionField]) -> None:
    with pytest.raises(InvalidInput):
        table(*parts)


@pytest.mark.parametrize(
    "key",
    [
        "s3.secret-access-key",
        "s3.access-key-id",
        "s3.session-token",
        "token",
        "credential",
        "adls.account-key",
        "adls.connection-string",
        "adls.sas-token.account",
        "gcs.oauth2.token",
        "jdbc.password",
        "my_private_key",
        "client-secret",
    ],
)
def test_credentials_are_known_by_name_and_not_stored(key: str) -> None:
    assert is_credential(key)
    with pytest.raises(InvalidInput) as refused:
        table().with_properties({key: "hunter2"}, now_ms=1)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "key", ["owner", "s3.endpoint", "write.parquet.page-size-bytes", "key", "tokenizer"]
)
def test_ordinary_properties_are_not_taken_for_credentials(key: str) -> None:
    assert not is_credential(key)


# Schemas


def test_a_new_schema_gets_the_next_id_and_old_ones_stay() -> None:
    old = table()
    wider = Schema(
        *old.schema().fields, ice.NestedField(6, "price", ice.DoubleType(), required=False)
    )
    new = old.with_schema(wider, now_ms=2_000)
    assert new.current_schema_id == 1
    assert [schema.schema_id for schema in new.schemas] == [0, 1]
    assert new.last_column_id == 6
    assert new.last_updated_ms == 2_000
    assert new.schema_by_id(0) == old.schema()
    assert old.current_schema_id == 0


def test_an_earlier_schema_is_found_again_by_its_fields() -> None:
    first = table()
    wider = Schema(
        *first.schema().fields, ice.NestedField(6, "price", ice.DoubleType(), required=False)
    )
    back = first.with_schema(wider, now_ms=2_000).with_schema(first.schema(), now_ms=3_000)
    assert back.current_schema_id == 0
    assert len(back.schemas) == 2
    assert back.last_column_id == 6


def test_a_field_id_reserved_for_a_derived_column_is_not_free() -> None:
    metadata = table(PartitionField(10, 1000, BucketTransform(16), "id_bucket"))
    assert metadata.expressions[0].expr_id == 900_000
    clash = Schema(
        *metadata.schema().fields, ice.NestedField(900_000, "x", ice.LongType(), required=False)
    )
    with pytest.raises(InvalidInput, match="900000"):
        metadata.with_schema(clash, now_ms=2_000)
    free = Schema(
        *metadata.schema().fields, ice.NestedField(6, "x", ice.LongType(), required=False)
    )
    assert metadata.with_schema(free, now_ms=2_000).last_column_id == 6


def test_a_derived_column_of_version_0_1_keeps_the_id_it_took_from_the_columns() -> None:
    metadata = table(PartitionField(10, 1000, BucketTransform(16), "id_bucket"))
    (column,) = metadata.expressions
    old = replace(metadata, expressions=(replace(column, expr_id=FieldId(6)),), last_column_id=6)
    by_day = PartitionSpec(PartitionField(3, 0, DayTransform(), "day_day"))
    evolved = old.with_spec(by_day, now_ms=2_000)
    assert [c.expr_id for c in evolved.expressions] == [6, 900_000]
    clash = Schema(*old.schema().fields, ice.NestedField(6, "x", ice.LongType(), required=False))
    with pytest.raises(InvalidInput, match="7"):
        old.with_schema(clash, now_ms=2_000)


def test_a_column_the_partitioning_needs_cannot_go() -> None:
    metadata = table(PartitionField(10, 1000, BucketTransform(16), "id_bucket"))
    with pytest.raises(InvalidInput, match="id_bucket"):
        metadata.with_schema(Schema(*metadata.schema().fields[1:]), now_ms=2_000)


def test_lookups_say_what_is_missing() -> None:
    metadata = table()
    for lookup in (metadata.schema_by_id, metadata.spec_by_id):
        with pytest.raises(NotFound, match="77"):
            lookup(77)
    with pytest.raises(NotFound, match="audit"):
        metadata.ref("audit")


def test_a_snapshot_has_the_schema_it_was_written_with() -> None:
    old = table()
    wider = Schema(
        *old.schema().fields, ice.NestedField(6, "price", ice.DoubleType(), required=False)
    )
    new = old.with_schema(wider, now_ms=2_000)
    assert new.schema_of(snapshot(1, 1, schema_id=0)) == old.schema()
    assert new.schema_of(snapshot(1, 1)) == wider


# Partition specs


def test_a_field_keeps_its_id_when_it_comes_back() -> None:
    first = table(PartitionField(10, 1000, BucketTransform(16), "id_bucket"))
    by_day = PartitionSpec(PartitionField(3, 0, DayTransform(), "day_day"))
    second = first.with_spec(by_day, now_ms=2_000)
    both = PartitionSpec(
        PartitionField(3, 0, DayTransform(), "day_day"),
        PartitionField(1, 0, BucketTransform(16), "id_bucket"),
        PartitionField(2, 0, TruncateTransform(2), "country_2"),
    )
    third = second.with_spec(both, now_ms=3_000)
    assert [f.field_id for f in second.spec().fields] == [1001]
    assert [f.field_id for f in third.spec().fields] == [1001, 1000, 1002]
    assert third.default_spec_id == 2
    assert third.last_partition_id == 1002
    assert [(c.expr_id, c.partition_field_id) for c in third.expressions] == [
        (900_000, 1000),
        (900_001, 1001),
        (900_002, 1002),
    ]
    assert sorted(third.specs_by_id()) == [0, 1, 2]


def test_an_earlier_spec_is_found_again() -> None:
    first = table(PartitionField(10, 1000, BucketTransform(16), "id_bucket"))
    plain = first.with_spec(PartitionSpec(), now_ms=2_000)
    back = plain.with_spec(first.spec(), now_ms=3_000)
    assert (plain.default_spec_id, back.default_spec_id) == (1, 0)
    assert len(back.partition_specs) == 2
    assert back.expressions == first.expressions


# Sort orders


def test_sort_orders_are_numbered_from_one_and_found_again() -> None:
    metadata = table()
    by_id = SortOrder(SortField(source_id=1, transform=IdentityTransform()), order_id=50)
    first = metadata.with_sort_order(by_id, now_ms=2_000)
    assert first.default_sort_order_id == 1
    unsorted = first.with_sort_order(SortOrder(order_id=0), now_ms=3_000)
    assert unsorted.default_sort_order_id == 0
    again = unsorted.with_sort_order(by_id, now_ms=4_000)
    assert again.default_sort_order_id == 1
    assert [order.order_id for order in again.sort_orders] == [0, 1]
    with pytest.raises(InvalidInput):
        metadata.with_sort_order(
            SortOrder(SortField(source_id=4, transform=IdentityTransform())), now_ms=2_000
        )


# Properties and refs


def test_properties_are_set_and_removed() -> None:
    metadata = table().with_properties({"a": "1", "b": "2"}, now_ms=2_000)
    changed = metadata.with_properties({"b": "3"}, removals=["a", "gone"], now_ms=3_000)
    assert changed.properties == {"b": "3"}
    assert metadata.properties == {"a": "1", "b": "2"}


@pytest.mark.parametrize("bad", [{"": "x"}, {"a": 1}, {"format-version": "2"}])
def test_a_property_that_cannot_be_stored_is_refused(bad: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        table().with_properties(bad, now_ms=2_000)


def test_a_property_is_not_set_and_removed_at_once() -> None:
    with pytest.raises(InvalidInput, match="a"):
        table().with_properties({"a": "1"}, removals=["a"], now_ms=2_000)


def test_properties_are_not_in_the_repr() -> None:
    assert "hunter2" not in repr(replace(table(), properties={"s3.secret-access-key": "hunter2"}))


def test_branches_and_tags_come_and_go() -> None:
    metadata = table().with_snapshot(snapshot(1, 1))
    tag = SnapshotRef(snapshot_id=SnapshotId(1), kind=RefKind.TAG)
    tagged = metadata.with_ref("eoy", tag, now_ms=3_000)
    assert tagged.ref("eoy") == tag
    assert tagged.without_ref("eoy", now_ms=4_000).refs == metadata.refs
    with pytest.raises(InvalidInput, match="tag"):
        tagged.with_snapshot(snapshot(2, 2), branch="eoy")
    with pytest.raises(InvalidInput):
        metadata.with_ref("main", tag, now_ms=3_000)
    assert metadata.without_ref("main", now_ms=3_000).current_snapshot_id is None
    with pytest.raises(NotFound):
        metadata.without_ref("eoy", now_ms=3_000)
    with pytest.raises(InvalidInput):
        metadata.with_ref(" ", tag, now_ms=3_000)
    with pytest.raises(InvalidInput, match="max_ref_age_ms"):
        metadata.with_ref("t", replace(tag, min_snapshots_to_keep=3), now_ms=3_000)


# Snapshots


def test_a_snapshot_moves_its_branch_and_the_counters() -> None:
    first = table().with_snapshot(snapshot(1, 1, first_row_id=0, added_rows=30))
    second = first.with_snapshot(snapshot(2, 5, added_rows=12))
    assert second.current_snapshot_id == 2
    assert second.last_sequence_number == 5
    assert second.next_row_id == 42
    assert second.last_updated_ms == 2_005
    branched = second.with_snapshot(snapshot(3, 6), branch="audit")
    assert (branched.current_snapshot_id, branched.ref("audit").snapshot_id) == (2, 3)
    assert branched.ref("audit").kind is RefKind.BRANCH
    staged = branched.with_snapshot(snapshot(4, 7), branch=None)
    assert staged.refs == branched.refs
    assert staged.last_sequence_number == 7


def test_a_branch_keeps_its_retention_when_it_moves() -> None:
    metadata = table().with_snapshot(snapshot(1, 1))
    kept = SnapshotRef(snapshot_id=SnapshotId(1), min_snapshots_to_keep=5)
    moved = metadata.with_ref("main", kept, now_ms=2_500).with_snapshot(snapshot(2, 2))
    assert moved.ref("main") == replace(kept, snapshot_id=SnapshotId(2))


@pytest.mark.parametrize(
    "bad",
    [
        snapshot(2, 1),
        snapshot(2, 2, first_row_id=5),
        snapshot(2, 2, timestamp_ms=2_001 - 60_001),
    ],
    ids=["old sequence number", "row ids taken", "from the past"],
)
def test_a_snapshot_that_does_not_follow_is_refused(bad: Snapshot) -> None:
    metadata = table().with_snapshot(snapshot(1, 1, added_rows=10))
    with pytest.raises(InvalidInput, match="snapshot 2"):
        metadata.with_snapshot(bad)


def test_a_clock_that_is_a_little_behind_does_not_turn_time_back() -> None:
    metadata = table().with_snapshot(snapshot(1, 1))
    later = metadata.with_snapshot(snapshot(2, 2, timestamp_ms=1_990))
    assert later.last_updated_ms == 2_001


@pytest.mark.parametrize(
    "trees",
    [
        {"root_manifest": None},
        {"manifest_list": "metadata/snap.avro"},
        {"root_manifest": None, "manifest_list": "x", "manifests": ("y",)},
    ],
)
def test_a_snapshot_has_exactly_one_tree(trees: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="exactly one"):
        snapshot(1, 1, **trees)


# History


def test_history_follows_the_main_branch() -> None:
    empty = table()
    one = snapshot(1, 1)
    first = empty.with_snapshot(one)
    history = History().advanced(empty, first, added=(one,))
    two = snapshot(2, 2)
    branched = first.with_snapshot(two, branch="audit")
    history = history.advanced(first, branched, added=(two,))
    assert history.snapshots == (one, two)
    assert history.snapshot_log == (
        SnapshotLogEntry(snapshot_id=SnapshotId(1), timestamp_ms=2_001),
    )
    assert history.snapshot(2) == two
    assert history.snapshot(3) is None


def test_a_hole_in_the_log_takes_what_lies_before_it() -> None:
    metadata = table()
    history = History()
    for number in (1, 2, 3, 4):
        added = snapshot(number, number)
        after = metadata.with_snapshot(added)
        history = history.advanced(metadata, after, added=(added,))
        metadata = after
    pruned = history.advanced(metadata, metadata, removed={2})
    assert [each.snapshot_id for each in pruned.snapshots] == [1, 3, 4]
    assert [entry.snapshot_id for entry in pruned.snapshot_log] == [3, 4]
    assert [pruned.snapshot_id_as_of(t) for t in (2_002, 2_003, 2_004, 9_999)] == [None, 3, 4, 4]


# Upgrade


def test_an_upgraded_table_has_derived_columns_for_all_its_specs() -> None:
    modern = table(PartitionField(10, 1000, BucketTransform(16), "id_bucket"))
    old = replace(modern, format_version=2, expressions=(), last_column_id=5)
    with pytest.raises(Unsupported, match="upgrade"):
        old.with_snapshot(snapshot(1, 1))
    evolved = old.with_spec(
        PartitionSpec(PartitionField(3, 0, DayTransform(), "day_day")), now_ms=2_000
    )
    assert evolved.expressions == ()
    new = evolved.upgraded(now_ms=3_000)
    assert new.format_version == 4
    assert [(c.expr_id, c.name) for c in new.expressions] == [
        (900_000, "id_bucket"),
        (900_001, "day_day"),
    ]
    assert new.last_column_id == 5
    assert new.upgraded(now_ms=4_000) is new


def test_a_table_can_be_told_where_it_is() -> None:
    assert table().relocated("/elsewhere/t/").location == "/elsewhere/t"
