"""Partitions replaced by the rows that come: compared as partitions, whatever the file's spec."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

import frazil
from frazil.errors import CommitConflict

NAN = float("nan")
FLOATS = pa.schema([pa.field("f", pa.float64()), pa.field("v", pa.int64())])
DAYS = pa.schema([pa.field("day", pa.date32()), pa.field("v", pa.int64())])


def values(table: frazil.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["v"].to_pylist())


def test_nan_and_the_two_zeros_are_partitions_of_their_own(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", FLOATS, partition_by=["f"])
    table.append(pa.table({"f": [NAN, 0.0, -0.0, None, 1.0], "v": [1, 2, 3, 4, 5]}))
    table.overwrite_partitions(pa.table({"f": [NAN, 0.0], "v": [11, 12]}, schema=FLOATS))
    assert values(table) == [3, 4, 5, 11, 12]
    table.overwrite_partitions(pa.table({"f": [None], "v": [14]}, schema=FLOATS))
    assert values(table) == [3, 5, 11, 12, 14]


def test_rows_of_an_older_spec_are_replaced_too(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", DAYS)
    old = [{"day": date(2024, 1, 1 + n % 3), "v": n} for n in range(6)]
    table.append(old)
    with table.evolve_partitions() as change:
        change.add("day(day)")
    table.append([{"day": date(2024, 1, 2), "v": 50}])
    table.overwrite_partitions([{"day": date(2024, 1, 2), "v": 100}])
    assert values(table) == [0, 2, 3, 5, 100]


def test_rows_added_to_other_partitions_do_not_conflict(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", DAYS, partition_by=["month(day)"])
    table.append([{"day": date(2024, month, 1), "v": month} for month in (1, 2, 12)])
    tx = table.transaction()
    tx.overwrite_partitions([{"day": date(2024, 12, 31), "v": 100}])
    catalog.load_table("s.t").append([{"day": date(2025, 1, 1), "v": 7}])
    tx.commit()
    assert values(table) == [1, 2, 7, 100]
    tx = table.transaction()
    tx.overwrite_partitions([{"day": date(2024, 2, 29), "v": 200}])
    catalog.load_table("s.t").append([{"day": date(2024, 2, 2), "v": 8}])
    with pytest.raises(CommitConflict):
        tx.commit()
