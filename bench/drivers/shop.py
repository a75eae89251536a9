"""The table every peer is given: files of orders, described by number, the same for all.

A file's description depends on its index alone, so any part of a table of any size can be made by
any process. Needs numpy only: it runs in the environments of all peers.

Columns: `order_id` (grows with the file), `order_date` (the partition), `country` (one per file),
then long, double and string columns in turn with random bounds.
"""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np

FIRST_DAY = 19_700
DAYS = 365
ROWS = 20_000
COUNTRIES = tuple("AU BR CA CN DE ES FR GB IN IT JP MX NL PL SE US".split())  # noqa: SIM905
WANTED_DAY = datetime.date(2024, 1, 15)
WANTED_COUNTRY = "US"
EPOCH = datetime.date(1970, 1, 1)


def kind_of(column: int) -> str:
    """The type of a column by its number from 0."""
    if column < 3:
        return ("long", "date", "string")[column]
    return ("long", "double", "string")[(column - 3) % 3]


def names(columns: int) -> list[str]:
    """Column names of a table with so many columns."""
    return ["order_id", "order_date", "country", *(f"c{n}" for n in range(columns - 3))]


def _mixed(index: np.ndarray[Any, Any], salt: int) -> np.ndarray[Any, Any]:
    """Well-mixed 64-bit numbers, a function of index and salt alone."""
    with np.errstate(over="ignore"):
        x = index.astype(np.uint64) + np.uint64((salt * 0x9E3779B97F4A7C15) % (1 << 64))
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


@dataclass(frozen=True)
class Files:
    """A run of files: plain lists and arrays, one element per file."""

    start: int
    columns: int
    days: np.ndarray[Any, Any]
    sizes: np.ndarray[Any, Any]
    lower: list[Any]
    upper: list[Any]

    def __len__(self) -> int:
        return len(self.days)

    @property
    def paths(self) -> list[str]:
        """Paths relative to the table."""
        found = []
        for offset, day in enumerate(self.days):
            name = uuid.UUID(int=int(self.start + offset) + (1 << 100))
            found.append(f"data/order_date={date_of(day)}/{name}-0.parquet")
        return found

    def bounds(self, column: int, row: int) -> tuple[Any, Any]:
        """Lower and upper bound as plain Python values; days as numbers."""
        lower, upper = self.lower[column][row], self.upper[column][row]
        if hasattr(lower, "item"):
            return lower.item(), upper.item()
        return lower, upper


def date_of(day: int) -> datetime.date:
    """A date from its number."""
    return EPOCH + datetime.timedelta(days=int(day))


def files(start: int, stop: int, *, total: int, columns: int = 12) -> Files:
    """Files `start` to `stop` of a table of `total` files."""
    index = np.arange(start, stop, dtype=np.int64)
    days = (FIRST_DAY + index * DAYS // max(total, 1)).astype(np.int32)
    countries = [COUNTRIES[n] for n in (_mixed(index, 1) % np.uint64(len(COUNTRIES))).astype(int)]
    lower: list[Any] = [index * ROWS, days, countries]
    upper: list[Any] = [index * ROWS + ROWS - 1, days, countries]
    for column in range(3, columns):
        bits = _mixed(index, column + 7)
        kind = kind_of(column)
        if kind == "long":
            low: Any = (bits >> np.uint64(24)).astype(np.int64)
            high: Any = low + 1_000_000
        elif kind == "double":
            low = bits.astype(np.float64) / 2.0**64
            high = low + 1.0
        else:
            low = [f"{int(n):016x}"[:14] for n in bits]
            high = [text + "z" for text in low]
        lower.append(low)
        upper.append(high)
    sizes = (_mixed(index, 2) % np.uint64(200_000_000)).astype(np.int64) + 1_000_000
    return Files(start=start, columns=columns, days=days, sizes=sizes, lower=lower, upper=upper)


def wanted_order(total: int) -> int:
    """An order in the middle of the table."""
    return (total // 2) * ROWS + 123
