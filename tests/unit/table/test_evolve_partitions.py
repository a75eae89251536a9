"""Evolving partition specs and sort orders, alone and on a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.commit.change import Change
from frazil.errors import InvalidInput
from frazil.iceberg.partitioning import PartitionField
from frazil.iceberg.sorting import NullOrder, SortDirection
from frazil.iceberg.transforms import (
    BucketTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
)
from frazil.table.columns.evolve import parse_sort_order, sort_order_update
from tests.unit.table.evolving import (
    Definition,
    by,
)
from tests.unit.table.evolving import table as table

# --- partitions ------------------------------------------------------------------------------


def test_partition_fields_are_added_with_fresh_ids() -> None:
    table = Definition(by(PartitionField(6, 1000, MonthTransform(), "ts_month")))
    table.partitions().add("bucket[16](id)").add("name", "who").commit()
    assert table.parts() == [
        (1000, 6, "month", "ts_month"),
        (1001, 1, "bucket[16]", "id_bucket_16"),
        (1002, 4, "identity", "who"),
    ]
    assert table.metadata.default_spec_id == 1


def test_partition_fields_are_removed_by_name_or_term() -> None:
    table = Definition(
        by(
            PartitionField(6, 1000, MonthTransform(), "ts_month"),
            PartitionField(1, 1001, BucketTransform(16), "id_bucket"),
        )
    )
    table.partitions().remove("ts_month").commit()
    assert [part[0] for part in table.parts()] == [1001]
    table.partitions().remove("bucket(16, id)").commit()
    assert table.parts() == []
    table.partitions().add("month(ts)").commit()
    assert table.parts() == [(1000, 6, "month", "ts_month")]


def test_a_renamed_partition_field_keeps_its_id() -> None:
    table = Definition(by(PartitionField(6, 1000, MonthTransform(), "ts_month")))
    table.partitions().rename("ts_month", "month").commit()
    assert table.parts() == [(1000, 6, "month", "month")]
    assert table.metadata.last_partition_id == 1000
    assert [column.partition_field_id for column in table.metadata.expressions] == [1000]


def test_a_finer_time_partition_replaces_the_coarser_one() -> None:
    table = Definition(by(PartitionField(6, 1000, MonthTransform(), "ts_month")))
    with pytest.raises(InvalidInput, match="repeats 'ts_month'"):
        table.partitions().add("day(ts)")
    table.partitions().remove("month(ts)").add("day(ts)").commit()
    assert table.parts() == [(1001, 6, "day", "ts_day")]


@pytest.mark.parametrize(
    ("verb", "arguments", "part"),
    [
        ("add", ("week(ts)",), "'week' is not a transform"),
        ("add", ("day(name)",), "cannot be applied"),
        ("add", ("nowhere",), "unknown column"),
        ("add", ("bucket[4](qty)", "name"), "name of a column"),
        ("add", ("bucket[4](qty)", "ts_month"), "there is a partition field"),
        ("add", ("bucket[4](qty)", ""), "not a name"),
        ("remove", ("ts_day",), "no partition field 'ts_day'; there are: ts_month (month)"),
        ("remove", ("day(ts)",), "no partition field"),
        ("rename", ("ts_month", "name"), "name of a column"),
        ("rename", ("nothing", "x"), "no partition field"),
    ],
)
def test_partitions_that_make_no_sense_are_refused(
    verb: str, arguments: tuple[str, ...], part: str
) -> None:
    table = Definition(by(PartitionField(6, 1000, MonthTransform(), "ts_month")))
    with pytest.raises(InvalidInput) as caught:
        getattr(table.partitions(), verb)(*arguments)
    assert part in str(caught.value)


def test_partition_edits_commit_once_and_only_when_there_are_any(table: Definition) -> None:
    assert not table.partitions().commit().committed
    with table.partitions() as edits:
        edits.add("name")
    assert len(table.changes) == 1
    with pytest.raises(InvalidInput, match="committed already"):
        edits.commit()


# --- sort orders -----------------------------------------------------------------------------


def test_sort_terms_have_a_direction_and_a_place_for_nulls(table: Definition) -> None:
    order = parse_sort_order(
        ["qty", "name desc", "price ASC NULLS LAST", "truncate[4](id) desc nulls first"],
        table.metadata.schema(),
    )
    asc, desc = SortDirection.ASC, SortDirection.DESC
    first, last = NullOrder.NULLS_FIRST, NullOrder.NULLS_LAST
    assert [
        (field.source_id, field.transform, field.direction, field.null_order)
        for field in order.fields
    ] == [
        (2, IdentityTransform(), asc, first),
        (4, IdentityTransform(), desc, last),
        (3, IdentityTransform(), asc, last),
        (1, TruncateTransform(4), desc, first),
    ]


def test_a_sort_order_is_set_and_cleared(table: Definition) -> None:
    table.commit(Change(updates=(sort_order_update(table.metadata, ["qty desc"]),)))
    assert table.metadata.default_sort_order_id == 1
    assert table.metadata.sort_order().fields[0].source_id == 2
    table.commit(Change(updates=(sort_order_update(table.metadata, []),)))
    assert table.metadata.default_sort_order_id == 0


@pytest.mark.parametrize(
    ("terms", "part"),
    [
        (["nowhere"], "sort_by 'nowhere': unknown column"),
        (["qty", "qty desc"], "sorted by twice"),
        (["qty down"], "sort_by 'qty down'"),
        (["day(name)"], "cannot be applied"),
        ([""], "it is empty"),
        ([5], "a term is text"),
    ],
)
def test_sort_orders_that_make_no_sense_are_refused(
    table: Definition, terms: list[Any], part: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_sort_order(terms, table.metadata.schema())
    assert part in str(caught.value)


# --- on a table ------------------------------------------------------------------------------


def test_rows_written_before_and_after_evolution_read_as_one(tmp_path: Path) -> None:
    orders = frazil.connect(tmp_path).create_table(
        "shop.orders", pa.schema([("id", pa.int64()), ("qty", pa.int32()), ("old", pa.string())])
    )
    orders.append(pa.table({"id": [1], "qty": pa.array([5], pa.int32()), "old": ["x"]}))
    with orders.evolve_schema() as columns:
        columns.rename_column("qty", "quantity").update_column("quantity", "long")
        columns.add_column("status", "string", required=True, default="open", after="id")
        columns.drop_column("old")
    orders.append(
        pa.table({"id": [2], "quantity": [2**40], "status": ["done"]}).cast(
            pa.schema(
                [
                    ("id", pa.int64()),
                    ("quantity", pa.int64()),
                    pa.field("status", pa.string(), nullable=False),
                ]
            )
        )
    )
    assert sorted(orders.scan().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "status": "open", "quantity": 5},
        {"id": 2, "status": "done", "quantity": 2**40},
    ]


def test_partitioning_and_order_apply_to_new_files_only(tmp_path: Path) -> None:
    orders = frazil.connect(tmp_path).create_table(
        "shop.orders", pa.schema([("id", pa.int64()), ("country", pa.string())])
    )
    rows = pa.table({"id": [3, 1, 2], "country": ["AT", "US", "AT"]})
    orders.append(rows)
    orders.evolve_partitions().add("country").commit()
    orders.sort_by("id desc")
    orders.append(rows)
    files = orders.inspect.files.sort_by([("spec_id", "ascending"), ("record_count", "ascending")])
    assert files.column("spec_id").to_pylist() == [0, 1, 1]
    assert files.column("partition").to_pylist() == [
        {"country": None},
        {"country": "US"},
        {"country": "AT"},
    ]
    assert orders.scan(where="country = 'AT'").count() == 4


def test_evolution_inside_a_transaction_lands_with_it(tmp_path: Path) -> None:
    orders = frazil.connect(tmp_path).create_table("shop.orders", pa.schema([("id", pa.int64())]))
    with orders.transaction() as tx:
        tx.evolve_schema().add_column("note", "string").commit()
        tx.append(pa.table({"id": [1], "note": ["hi"]}))
        assert [field.name for field in orders.schema.fields] == ["id"]
    assert orders.scan().to_pylist() == [{"id": 1, "note": "hi"}]


def test_evolution_in_a_transaction_of_a_branch_leaves_main_alone(tmp_path: Path) -> None:
    orders = frazil.connect(tmp_path).create_table("shop.orders", pa.schema([("id", pa.int64())]))
    orders.append(pa.table({"id": [1]}))
    audit = orders.branch("audit", create=True)
    with audit.transaction() as tx:
        tx.evolve_schema().add_column("note", "string").commit()
        tx.append(pa.table({"id": [2], "note": ["hi"]}))
    assert audit.scan().count() == 2
    assert orders.refresh().scan().to_pylist() == [{"id": 1, "note": None}]


@pytest.mark.parametrize("term", ["country", "bucket[4](country)"])
def test_a_column_that_was_partitioned_by_once_can_be_dropped(tmp_path: Path, term: str) -> None:
    orders = frazil.connect(tmp_path).create_table(
        "shop.orders",
        pa.schema([("id", pa.int64()), ("country", pa.string())]),
        partition_by=[term],
    )
    orders.append(pa.table({"id": [1, 2], "country": ["AT", "US"]}))
    orders.evolve_partitions().remove(term).commit()
    orders.evolve_schema().drop_column("country").commit()
    orders.append(pa.table({"id": [3]}))
    assert orders.inspect.partitions.column("spec_id").to_pylist() == [0, 0, 1]
    orders.update({"id": frazil.expr("id + 10")}, where="id > 1")
    orders.delete("id = 13")
    assert sorted(orders.scan(columns=["id"]).to_arrow().column("id").to_pylist()) == [1, 12]
