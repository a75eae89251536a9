"""A table of orders with twelve columns, partitioned by day, and entries of any number of files.

Order ids grow with time, as they do in shops; every file has one day and one country.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import stats_key
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import DayTransform
from frazil.table import Catalog, Table
from frazil.tree.table_shape import shape_of
from tests.support.trees import Bench

ORDERS = Schema(
    ice.NestedField(1, "order_id", ice.LongType(), required=True),
    ice.NestedField(2, "customer_id", ice.LongType(), required=False),
    ice.NestedField(3, "order_date", ice.DateType(), required=False),
    ice.NestedField(4, "country", ice.StringType(), required=False),
    ice.NestedField(5, "status", ice.StringType(), required=False),
    ice.NestedField(6, "price", ice.DecimalType(12, 2), required=False),
    ice.NestedField(7, "quantity", ice.IntegerType(), required=False),
    ice.NestedField(8, "discount", ice.DoubleType(), required=False),
    ice.NestedField(9, "created_at", ice.TimestamptzType(), required=False),
    ice.NestedField(10, "updated_at", ice.TimestamptzType(), required=False),
    ice.NestedField(11, "note", ice.StringType(), required=False),
    ice.NestedField(12, "is_gift", ice.BooleanType(), required=False),
)
BY_DAY = PartitionSpec(PartitionField(3, 1000, DayTransform(), "order_date_day"))
COUNTRIES = ("AT", "BR", "CN", "DE", "ES", "FR", "GB", "IN", "JP", "US")
FIRST_DAY = (date(2024, 1, 1) - date(1970, 1, 1)).days
ROWS_PER_FILE = 1_000


def orders_bench(folder: Path, **properties: str) -> Bench:
    """An empty table of orders."""
    return Bench(folder, schema=ORDERS, spec=BY_DAY, properties=properties)


def day_of(file: int, files_per_day: int) -> int:
    """The day of a file, as a count from the epoch."""
    return FIRST_DAY + file // files_per_day


def order_files(bench: Bench, first: int, count: int, *, files_per_day: int = 100) -> EntryBatch:
    """Entries of `count` files with statistics of every column; made in columns, so it is fast."""
    number = np.arange(first, first + count)
    days = pa.array((FIRST_DAY + number // files_per_day).astype(np.int32), pa.date32())
    country = pa.array([COUNTRIES[n % len(COUNTRIES)] for n in number])
    # Orders of one day are spread over its files; days follow one another.
    low = (number // files_per_day) * files_per_day * ROWS_PER_FILE + number % files_per_day
    stamps = (FIRST_DAY + number // files_per_day) * 86_400_000_000
    random = np.random.default_rng(first)
    customers = random.integers(0, 10_000_000, count)
    bounds: dict[int, tuple[Any, Any]] = {
        1: (low, low + (ROWS_PER_FILE - 1) * files_per_day),
        2: (customers, customers + 5_000_000),
        3: (days, days),
        4: (country, country),
        5: (pa.array(["open"] * count), pa.array(["shipped"] * count)),
        6: _decimals(random.integers(100, 900, count)),
        7: (pa.array(np.ones(count, np.int32)), pa.array(np.full(count, 99, np.int32))),
        8: (random.random(count) / 10, random.random(count)),
        9: (_stamps(stamps), _stamps(stamps + 86_399_000_000)),
        10: (_stamps(stamps), _stamps(stamps + 186_399_000_000)),
        11: (pa.array([f"a{n % 977:05d}" for n in number]), pa.array(["zzzz"] * count)),
        12: (pa.array([False] * count), pa.array([True] * count)),
        13: (days, days),
    }
    columns: dict[str, pa.Array] = {
        "tracking.status": pa.array(np.ones(count, np.int32)),
        "content_type": pa.array(np.zeros(count, np.int32)),
        "location": pa.array(
            [
                f"data/order_date_day={FIRST_DAY + n // files_per_day}/"
                f"{(n * 2654435761) % 2**32:08x}-5a1c-4d3e-9f2b-{n:012x}-00001.parquet"
                for n in number
            ]
        ),
        "file_format": pa.array(["parquet"] * count),
        "record_count": pa.array(np.full(count, ROWS_PER_FILE)),
        "file_size_in_bytes": pa.array(random.integers(900_000, 1_100_000, count)),
        "spec_id": pa.array(np.zeros(count, np.int32)),
        "partition.1000": days,
        "split_offsets": pa.array([[4]] * count, pa.list_(pa.int64())),
    }
    types = shape_of(bench.metadata).stats_types
    for field_id, (lower, upper) in bounds.items():
        stats: dict[str, Any] = {
            "lower_bound": lower,
            "upper_bound": upper,
            "tight_bounds": np.full(count, field_id not in (5, 11)),
            "value_count": np.full(count, ROWS_PER_FILE),
            "null_value_count": random.integers(0, 3, count) if field_id > 3 else np.zeros(count),
            "nan_value_count": np.zeros(count),
            "avg_value_size_in_bytes": np.full(count, 8),
        }
        for name, values in stats.items():
            key = stats_key(field_id, name)
            if key in types:
                columns[key] = _as(values, types[key])
    return EntryBatch(pa.table(columns))


def batches(bench: Bench, total: int, size: int, *, files_per_day: int) -> Iterator[EntryBatch]:
    """All files of a large table, some at a time."""
    for first in range(0, total, size):
        yield order_files(bench, first, min(size, total - first), files_per_day=files_per_day)


def served_orders(catalog: Catalog, files: int, *, files_per_day: int) -> Table:
    """A table of orders in a catalog, filled with files that need not exist."""
    table = catalog.create_table(
        "shop.orders",
        ORDERS,
        partition_by=["day(order_date)"],
        properties={"write.leaf.target-entries": "1000"},
    )
    for batch in batches(cast(Any, table), files, 20_000, files_per_day=files_per_day):
        table._add_entries(batch)
    return table


def _as(values: Any, kind: pa.DataType) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return array if array.type == kind else array.cast(kind)


def _stamps(micros: Any) -> pa.Array:
    return pa.array(micros.astype(np.int64)).cast(pa.timestamp("us", "UTC"))


def _decimals(values: Any) -> tuple[pa.Array, pa.Array]:
    wide, kind = pa.decimal128(21, 2), pa.decimal128(12, 2)
    low, high = (pa.array(part).cast(wide).cast(kind) for part in (values, values + 100))
    return low, high
