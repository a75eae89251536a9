"""A table from rows in one call, and properties that are checked when they are set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import InvalidInput, NotFound
from frazil.iceberg.schema import Schema

ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[frazil.Catalog]:
    with frazil.connect(tmp_path / "lake") as made:
        yield made


def _pandas() -> Any:
    return pytest.importorskip("pandas").DataFrame(ROWS)


def _polars() -> Any:
    return pytest.importorskip("polars").DataFrame(ROWS)


def _spark() -> Any:
    """What a Spark frame looks like: a class of that name and place that gives Arrow."""
    arrow = {"toArrow": lambda self: pa.Table.from_pylist(ROWS), "__module__": "pyspark.sql"}
    return type("DataFrame", (), arrow)()


@pytest.mark.parametrize(
    "data",
    [
        lambda: pa.Table.from_pylist(ROWS),
        lambda: pa.Table.from_pylist(ROWS).to_reader(),
        lambda: ROWS,
        lambda: (row for row in ROWS),
        lambda: {"id": [1, 2], "name": ["a", None]},
        _pandas,
        _polars,
        _spark,
    ],
    ids=["arrow", "reader", "dicts", "generator", "columns", "pandas", "polars", "spark"],
)
def test_rows_make_a_table(catalog: frazil.Catalog, data: Any) -> None:
    table = catalog.create_table("shop.orders", data())
    assert table.scan().to_pylist() == ROWS
    assert [str(field.field_type) for field in table.schema.fields] == ["long", "string"]
    assert len(table.snapshots()) == 1


def test_a_schema_makes_an_empty_table(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    assert table.current_snapshot() is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (5, "rows are 5; expected an Arrow table, batch or reader, a pandas or polars frame"),
        ("id:long", "rows are 'id:long'; expected"),
        ([], "no rows are given to tell the columns from; pass a schema"),
        ([1, 2], "a row is 1; expected a dict"),
        ([{"a": None}], "column 'a' has no value to tell its type from; create it with a schema"),
    ],
)
def test_what_is_neither_is_refused(catalog: frazil.Catalog, data: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=f"^({problem}|The column types .*{problem})"):
        catalog.create_table("shop.orders", data)
    with pytest.raises(NotFound):
        catalog.load_table("shop.orders")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"name": "Bob"}, "column 'name' is 'Bob'; expected a list of values"),
        ({"name": b"Bob"}, "column 'name' is b'Bob'; expected a list of values"),
        ({"id": 1}, "column 'id' is 1; expected a list of values"),
        (pa.chunked_array([[1]]), "rows are a ChunkedArray, which is one column"),
        ({"id": [1, 2], "name": ["a"]}, "columns differ in length"),
    ],
    ids=["text", "bytes", "number", "column", "lengths"],
)
def test_one_value_or_one_column_is_no_rows(
    catalog: frazil.Catalog, data: Any, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        catalog.create_table("shop.refused", data)
    table = catalog.create_table("shop.orders", ROWS)
    with pytest.raises(InvalidInput, match=problem):
        table.append(data)
    with pytest.raises(InvalidInput, match=problem):
        table.upsert(data, on="id")
    assert table.scan().to_pylist() == ROWS


def test_a_series_is_one_column(catalog: frazil.Catalog) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = catalog.create_table("shop.orders", ROWS)
    for series in (pandas.Series([1], name="id"), polars.Series("id", [1])):
        with pytest.raises(InvalidInput, match="rows are a Series, which is one column"):
            table.append(series)


def test_python_objects_in_a_polars_frame_are_refused(catalog: frazil.Catalog) -> None:
    """They were written as addresses in memory."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": polars.Series([object()], dtype=polars.Object)})
    problem = "column 'id' of the polars frame has Python objects"
    with pytest.raises(InvalidInput, match=problem):
        catalog.create_table("shop.refused", frame)
    with pytest.raises(InvalidInput, match=problem):
        catalog.create_table("shop.orders", ROWS).append(frame)
    with pytest.raises(InvalidInput, match=problem):
        catalog.sql("SELECT * FROM frame")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"id": [1], "name": ["a", 3]}, "column 'name': no Arrow form"),
        ([{"id": 1, "name": "a"}, {"id": 2, "name": 3}], "column 'name': no Arrow form"),
        (
            {"id": pa.array([1], pa.uint64())},
            "has no table type; cast it to int64 or decimal",
        ),
        ({"id": pa.array([1], pa.duration("s"))}, "has no table type; cast it to int64 or text"),
    ],
    ids=["columns", "rows", "unsigned", "duration"],
)
def test_a_column_without_a_type_is_named(catalog: frazil.Catalog, data: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        catalog.create_table("shop.orders", data)


BAD = {
    "write.root.max-data-entries": "abc",
    "write.leaf.max-dead-ratio": "2",
    "write.parquet.compression-codec": "rar",
    "write.metadata.metrics.column.id": "some",
    "write.delete.isolation-level": "none",
    "history.expire.min-snapshots-to-keep": "0",
    "read.parquet.verify-checksums": "maybe",
    "publish.format-version": "nine",
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_refused_when_it_is_set(catalog: frazil.Catalog, name: str) -> None:
    told = re.escape(f"property {name} is {BAD[name]!r}; expected ")
    table = catalog.create_table("shop.orders", ROWS)
    before = dict(table.properties)
    with pytest.raises(InvalidInput, match=told):
        table.set_properties({name: BAD[name]})
    with pytest.raises(InvalidInput, match=told):
        catalog.create_table("shop.other", ROWS, properties={name: BAD[name]})
    with pytest.raises(InvalidInput, match=told):
        catalog.sql(f"ALTER TABLE shop.orders SET TBLPROPERTIES ('{name}' = '{BAD[name]}')")
    assert dict(table.refresh().properties) == before
    assert catalog.list_tables() == ["shop.orders"]


def test_good_values_and_unknown_names_are_kept(catalog: frazil.Catalog) -> None:
    good = {
        "write.root.max-data-entries": "7",
        "write.metadata.metrics.column.id": "truncate(4)",
        "write.parquet.compression-codec": "ZSTD",
        "owner": "ann",
    }
    table = catalog.create_table("shop.orders", ROWS, properties=good)
    assert {**good, **table.properties} == dict(table.properties)


def test_a_table_without_columns_gets_them_later(catalog: frazil.Catalog) -> None:
    """PyIceberg and Java let a table begin so."""
    evolved = catalog.create_table("shop.evolved", Schema())
    assert evolved.scan().count() == 0
    assert not evolved.check(deep=True).problems
    with pytest.raises(InvalidInput, match="has no columns yet"):
        evolved.append([{"id": 1}])
    with pytest.raises(InvalidInput, match=r"shop\.evolved has no columns yet"):
        catalog.sql("SELECT count(*) FROM shop.evolved")
    catalog.sql("ALTER TABLE shop.evolved ADD COLUMN id BIGINT")
    evolved.append([{"id": 1}])
    assert catalog.sql("SELECT id FROM shop.evolved").to_pylist() == [{"id": 1}]
    merged = catalog.create_table("shop.merged", pa.schema([]))
    merged.append([{"id": 1}], schema="merge")
    assert merged.to_arrow().to_pylist() == [{"id": 1}]
    with pytest.raises(InvalidInput, match="the only one left"):
        merged.evolve_schema().drop_column("id").commit()
