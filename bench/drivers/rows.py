"""Rows for the workloads that have real data; numpy and pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


def keyed(ids: np.ndarray[Any, Any], salt: int) -> pa.Table:
    """Rows with these keys: four columns, values by the salt."""
    rng = np.random.default_rng(salt)
    return pa.table(
        {
            "id": ids,
            "amount": rng.random(len(ids)),
            "country": pa.array(np.array(shop.COUNTRIES)[rng.integers(0, 16, len(ids))]),
            "quantity": rng.integers(0, 1 << 40, len(ids)),
        }
    )


def keyed_parts(rows: int, files: int) -> Iterator[pa.Table]:
    """A table of so many rows in so many files, ascending keys."""
    size = rows // files
    for part in range(files):
        yield keyed(np.arange(part * size, (part + 1) * size), part)


def arriving(rows: int, count: int, turn: int) -> pa.Table:
    """Rows to upsert: half of them have a key of the table, half a new one, in no order."""
    rng = np.random.default_rng(1_000_000 + turn)
    known = rng.choice(rows, count // 2, replace=False)
    start = rows + turn * count
    ids = np.concatenate([known, np.arange(start, start + count - count // 2)])
    return keyed(rng.permutation(ids), 2_000_000 + turn)


def one_file(order_id: int, columns: int) -> pa.Table:
    """Rows of the planning workloads' table whose first has this id."""
    files = shop.files(0, 100, total=100, columns=columns)
    arrays: dict[str, Any] = {}
    for column, field in enumerate(arrow_schema(columns)):
        values = pa.array(files.days, pa.int32()) if column == 1 else pa.array(files.lower[column])
        arrays[field.name] = values.cast(field.type)
    arrays["order_date"] = pa.array([shop.WANTED_DAY] * 100, pa.date32())
    arrays["order_id"] = pa.array(np.arange(order_id, order_id + 100))
    return pa.table(arrays)


def wide(first: int, rows: int, columns: int) -> pa.Table:
    """Rows of a wide table: a key, then long, double, double and string columns in turn."""
    rng = np.random.default_rng(first)
    names = np.array([f"label {n:03d}" for n in range(500)])
    arrays: dict[str, Any] = {"id": np.arange(first, first + rows, dtype=np.int64)}
    for column in range(columns - 1):
        match column % 4:
            case 0:
                arrays[f"c{column}"] = rng.integers(0, 1_000_000, rows)
            case 1 | 2:
                arrays[f"c{column}"] = rng.integers(0, 1_000_000, rows) / 100
            case _:
                arrays[f"c{column}"] = pa.array(names[rng.integers(0, 500, rows)])
    return pa.table(arrays)
