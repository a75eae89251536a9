"""Orders that the tests of row-level work share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

import pyarrow as pa

import frazil

ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("country", pa.string()),
        ("price", pa.float64()),
    ]
)


def orders(ids: Iterable[int], price: float | None = None) -> pa.Table:
    """Orders with these ids: three days, two countries, the price equal to the id."""
    chosen = list(ids)
    return pa.table(
        {
            "id": chosen,
            "day": [date(2024, 1, 1 + i % 3) for i in chosen],
            "country": ["US" if i % 2 else "DE" for i in chosen],
            "price": [float(i) if price is None else price for i in chosen],
        },
        schema=ORDERS,
    )


def row(id: int) -> tuple[date, str, float]:
    """What `orders` says of an id."""
    return date(2024, 1, 1 + id % 3), "US" if id % 2 else "DE", float(id)


def content(table: frazil.Table) -> dict[int, tuple[Any, ...]]:
    """The rows of a table by id, read without Spark."""
    found = table.refresh().scan().to_pylist()
    assert len({each["id"] for each in found}) == len(found)
    return {each["id"]: (each["day"], each["country"], each["price"]) for each in found}


def row_ids(table: frazil.Table) -> dict[int, int]:
    """Row ids by order id."""
    found = table.refresh().scan(columns=["id", "_row_id"]).to_pylist()
    return {each["id"]: each["_row_id"] for each in found}


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """The rows of a frame, in order."""
    return sorted(tuple(row) for row in frame.collect())
