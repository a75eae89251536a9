"""Values at the edges of their types: written, read, filtered, or refused in plain words."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError, InvalidInput
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import (
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)

UUIDS = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(
        2, "s", StructType(NestedField(3, "u", UUIDType(), required=False)), required=False
    ),
    NestedField(4, "l", ListType(5, UUIDType(), element_required=False), required=False),
    NestedField(6, "m", MapType(7, StringType(), 8, UUIDType(), False), required=False),
    NestedField(9, "r", ListType(10, UUIDType(), element_required=True), required=False),
)


def test_uuids_inside_structs_lists_and_maps_are_written(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("shop.things", UUIDS)
    one, two = uuid.UUID(int=1), uuid.UUID(int=2)
    table.append([{"id": 1, "s": {"u": one}, "l": [two, None], "m": {"a": one}, "r": [one]}])
    table.append([{"id": 2, "s": None, "l": [], "m": None, "r": None}])
    table.update({"id": 3}, "id = 2")
    table.compact(min_input_files=1, sort_by=["id"])
    rows = table.scan().to_pylist()
    assert [row["id"] for row in rows] == [1, 3]
    assert rows[0]["s"] == {"u": one.bytes}
    assert [row["r"] for row in rows] == [[one.bytes], None]
    assert rows[0]["l"] == [two.bytes, None]
    assert dict(rows[0]["m"]) == {"a": one.bytes}
    assert not table.check(deep=True).problems


def test_polars_categories_are_texts(catalog: frazil.Catalog) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "id": [1, 2, 3],
            "e": pl.Series(["b", None, "a"], dtype=pl.Enum(["a", "b"])),
            "c": pl.Series(["x", "y", None], dtype=pl.Categorical),
            "l": pl.Series([["x"], [], None], dtype=pl.List(pl.Categorical)),
        }
    )
    rows = [
        {"id": 1, "e": "b", "c": "x", "l": ["x"]},
        {"id": 2, "e": None, "c": "y", "l": []},
        {"id": 3, "e": "a", "c": None, "l": None},
    ]
    texts = [("e", pa.string()), ("c", pa.string()), ("l", pa.list_(pa.string()))]
    table = catalog.create_table("shop.things", pa.schema([("id", pa.int64()), *texts]))
    table.append(frame.head(1).lazy())
    table.upsert(frame, on=["id"])
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == rows
    made = catalog.create_table("shop.made", frame)
    assert made.scan().to_pylist() == rows


TEXTS = ["NaN", "-0.0", "0.0", "", None]
NUMBERS = [float("nan"), -0.0, 0.0, None]


@pytest.mark.parametrize(
    ("kind", "values"), [(pa.string(), TEXTS), (pa.float64(), NUMBERS)], ids=["text", "number"]
)
def test_partitions_of_odd_values_are_replaced_one_by_one(
    catalog: frazil.Catalog, kind: pa.DataType, values: list[object]
) -> None:
    schema = pa.schema([("p", kind), ("v", pa.int64())])
    table = catalog.create_table("shop.things", schema, partition_by=["p"])

    def rows(chosen: list[object], version: int) -> pa.Table:
        return pa.table({"p": chosen, "v": [version] * len(chosen)}, schema=schema)

    table.append(rows(values, 0))
    for version, value in enumerate(values, start=1):
        done = table.overwrite_partitions(rows([value], version))
        assert (done.rows_added, done.rows_removed) == (1, 1)
    versions = {repr(row["p"]): row["v"] for row in table.scan().to_pylist()}
    assert versions == {repr(value): at for at, value in enumerate(values, start=1)}


LAST_DAY = date(9999, 12, 31)
LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, 999_999)


@pytest.mark.parametrize("transform", ["p", "day(p)", "month(p)", "year(p)"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.date32(), LAST_DAY),
        (pa.timestamp("us"), LAST_MOMENT),
        (pa.timestamp("us", tz="UTC"), LAST_MOMENT.replace(tzinfo=UTC)),
    ],
    ids=str,
)
def test_the_last_day_is_a_partition_as_any_other(
    catalog: frazil.Catalog, transform: str, kind: pa.DataType, value: object
) -> None:
    schema = pa.schema([("p", kind), ("v", pa.int64())])
    table = catalog.create_table("shop.things", schema, partition_by=[transform])
    for version in (1, 2):
        rows = pa.table({"p": [value], "v": [version]}, schema=schema)
        table.overwrite_partitions(rows)
    table.compact_metadata()
    assert table.scan("p = ?", params=[value]).to_pylist() == [{"p": value, "v": 2}]
    assert "9999-12-31" in str(table.scan("p = ?", params=[value]).explain())
    assert table.inspect.partitions.num_rows == table.inspect.files.num_rows == 1
    assert table.inspect.manifests.num_rows == 1


def test_values_past_what_duckdb_holds_are_refused_by_name(catalog: frazil.Catalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ns", tz="UTC"))])
    table = catalog.create_table("shop.things", schema)
    rows = pa.table({"id": [1], "at": pa.array([1], schema.field("at").type)}, schema=schema)
    with pytest.raises(InvalidInput, match="DuckDB cannot hold"):
        table.merge(rows, on=["id"]).when_not_matched_insert().execute()


@pytest.mark.parametrize("value", [Decimal("1E+30"), Decimal("123456789.123"), Decimal("1.555")])
def test_decimals_that_do_not_fit_match_nothing_or_are_refused(
    catalog: frazil.Catalog, value: Decimal
) -> None:
    table = catalog.create_table("shop.things", pa.schema([("d", pa.decimal128(5, 2))]))
    table.append([{"d": Decimal("1.50")}])
    for where in ("d = ?", "d in (?, 1.50)", "d not in (?, 1.60)"):
        try:
            count = table.scan(where, params=[value]).count()
        except FrazilError:
            continue
        assert count == (0 if where == "d = ?" else 1)


def test_a_table_of_the_older_revision_is_whole_for_its_own_writer(tmp_path: Path) -> None:
    """The root that a writer keeps in memory is the one that readers find."""
    properties = {"write.format-revision": "1.12", "write.root.max-data-entries": "2"}
    with frazil.connect(tmp_path / "older") as catalog:
        schema = pa.schema([("id", pa.int64())])
        table = catalog.create_table("shop.things", schema, properties=properties)
        for first in range(0, 12, 2):
            table.append([{"id": first}, {"id": first + 1}])
        table.delete("id in (1, 4)")
        table.compact_metadata()
        table.update({"id": 99}, "id = 3")
        assert not table.check(deep=True).problems
