"""Tables written by PyIceberg: absolute paths without a scheme, an SQL catalog, copy-on-write.

PyIceberg does not write v3.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg import types as ice
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, IdentityTransform, TruncateTransform

EVENTS = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(2, "kind", ice.StringType(), required=False),
    ice.NestedField(3, "at", ice.TimestamptzType(), required=False),
    ice.NestedField(4, "price", ice.DecimalType(12, 3), required=False),
    identifier_field_ids=[1],
)
BY_DAY = PartitionSpec(
    PartitionField(source_id=3, field_id=1000, transform=DayTransform(), name="at_day"),
    PartitionField(source_id=2, field_id=1001, transform=IdentityTransform(), name="kind"),
)
BY_PREFIX = PartitionSpec(
    PartitionField(source_id=2, field_id=1000, transform=TruncateTransform(1), name="kind_trunc")
)
_START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def catalog(folder: Path) -> SqlCatalog:
    """The catalog that holds them."""
    folder.mkdir(parents=True, exist_ok=True)
    uri = f"sqlite:///{folder / 'catalog.db'}"
    return SqlCatalog("pyiceberg", uri=uri, warehouse=str(folder / "warehouse"))


def events(table: Table, ids: range) -> pa.Table:
    """Rows of `EVENTS`."""
    rows = [
        {
            "id": id,
            "kind": None if id % 5 == 4 else f"k{id % 3}",
            "at": _START + dt.timedelta(hours=7 * id),
            "price": Decimal(id).scaleb(-1),
        }
        for id in ids
    ]
    return pa.Table.from_pylist(rows, schema=table.schema().as_arrow())


def _create(where: SqlCatalog, name: str, version: int, **more: Any) -> Table:
    properties = {"format-version": str(version)}
    return where.create_table(f"peers.{name}", properties=properties, **more)


def _commits(table: Table) -> None:
    table.append(events(table, range(8)))
    table.append(events(table, range(8, 12)))
    table.delete("id = 3 or id = 9")
    table.overwrite(events(table, range(20, 22)), overwrite_filter="id < 2")
    table.upsert(events(table, range(10, 14)))


def v1(where: SqlCatalog) -> None:
    """v1; appends and copy-on-write deletes, unpartitioned"""
    _commits(_create(where, "v1", 1, schema=EVENTS))


def v2_partitioned(where: SqlCatalog) -> None:
    """v2; by day and kind; appends, deletes, overwrite, upsert"""
    _commits(_create(where, "v2_partitioned", 2, schema=EVENTS, partition_spec=BY_DAY))


def v2_evolved(where: SqlCatalog) -> None:
    """v2; columns and spec evolve, a tag and a branch"""
    table = _create(where, "v2_evolved", 2, schema=EVENTS, partition_spec=BY_PREFIX)
    table.append(events(table, range(6)))
    first = table.current_snapshot()
    assert first is not None
    with table.update_schema() as schema:
        schema.add_column("extra", ice.BooleanType())
        schema.rename_column("kind", "sort")
        schema.delete_column("price")
    with table.update_spec() as spec:
        spec.add_field("at", DayTransform(), "at_day")
    rows = [{"id": 100, "sort": "k9", "at": _START, "extra": True}]
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    with table.manage_snapshots() as snapshots:
        snapshots.create_tag(first.snapshot_id, "first")
        snapshots.create_branch(first.snapshot_id, "side")
    table.delete("id = 2")


def v2_types(where: SqlCatalog) -> None:
    """v2; date, time, binary, double with NaN and negative zero"""
    schema = Schema(
        ice.NestedField(1, "day", ice.DateType(), required=False),
        ice.NestedField(2, "clock", ice.TimeType(), required=False),
        ice.NestedField(3, "bytes", ice.BinaryType(), required=False),
        ice.NestedField(4, "number", ice.DoubleType(), required=False),
    )
    table = _create(where, "v2_types", 2, schema=schema)
    rows = [
        {"day": dt.date(1, 1, 1), "clock": dt.time(23, 59, 59, 999_999), "bytes": b"\xff" * 20},
        {"number": float("nan"), "bytes": b""},
        {"number": -0.0, "clock": dt.time(0)},
        {},
    ]
    table.append(pa.Table.from_pylist(rows, schema=schema.as_arrow()))


MAKERS = (v1, v2_partitioned, v2_evolved, v2_types)
"""Each makes one table; its name is the function's, its notes are the docstring."""
