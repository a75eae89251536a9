"""Rows for the workloads that have real data; numpy and pyarrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.drivers import shop

COLUMNS = 6


def rows_of(index: int, rows: int) -> pa.Table:
    """The rows of one file: one day, ascending order ids."""
    ids = np.arange(index * rows, (index + 1) * rows, dtype=np.int64)
    day = np.full(rows, shop.FIRST_DAY + index, dtype=np.int32)
    rng = np.random.default_rng(index)
    return pa.table(
        {
            "order_id": ids,
            "order_date": pa.array(day).cast(pa.date32()),
            "country": pa.array(np.array(shop.COUNTRIES)[rng.integers(0, 16, rows)]),
            "c0": rng.integers(0, 1 << 40, rows),
            "c1": rng.random(rows),
            "c2": pa.array([f"{n:014x}" for n in rng.integers(0, 1 << 56, rows)]),
        }
    )


def arrow_schema(columns: int) -> pa.Schema:
    """The table's columns as Arrow types."""
    types = {
        "long": pa.int64(),
        "date": pa.date32(),
        "double": pa.float64(),
        "string": pa.string(),
    }
    return pa.schema([(name, types[shop.kind_of(n)]) for n, name in enumerate(shop.names(columns))])
