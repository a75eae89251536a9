"""Tables to try things on, and an S3 API on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from tests.support.s3 import S3, s3_server

ORDERS = pa.schema(
    [
        pa.field("order_id", pa.int64(), nullable=False),
        pa.field("order_date", pa.date32()),
        pa.field("country", pa.string()),
        pa.field("price", pa.float64()),
    ]
)


def orders(first: int, last: int, *, country: str | None = None) -> pa.Table:
    """Orders first to last, three days, countries alternating between DE and US."""
    ids = range(first, last)
    return pa.table(
        {
            "order_id": list(ids),
            "order_date": [date(2024, 1, 1 + i % 3) for i in ids],
            "country": [country or ("US" if i % 2 else "DE") for i in ids],
            "price": [float(i) for i in ids],
        },
        schema=ORDERS,
    )


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[frazil.Catalog]:
    with frazil.connect(tmp_path / "warehouse") as opened:
        yield opened


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    return catalog.create_table("shop.orders", ORDERS, partition_by=["day(order_date)"])


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server
