"""Frames of the caller are tables by the names of their variables, after the catalog's tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError, NotFound

GLOBAL_FRAME = pa.table({"n": [7]})


@pytest.fixture
def catalog(tmp_path: Path) -> frazil.Catalog:
    catalog = frazil.connect(tmp_path)
    catalog.create_table("shop.orders", {"id": [1, 2, 3]})
    return catalog


def test_frames_of_every_kind(catalog: frazil.Catalog) -> None:
    df = pd.DataFrame({"id": [2, 3], "v": ["b", "c"]})
    lots = pl.DataFrame({"id": [3]})
    lazy = pl.LazyFrame({"id": [1, 3, 4]}).filter(pl.col("id") < 4)
    arrow = pa.table({"id": [1, 3]})
    scan = catalog["shop.orders"].scan("id = 3")
    joined = "SELECT id, v FROM shop.orders JOIN df USING (id) ORDER BY id"
    assert catalog.sql(joined).to_pylist() == [{"id": 2, "v": "b"}, {"id": 3, "v": "c"}]
    for name in ("lots", "lazy", "arrow", "scan"):
        query = f"SELECT max(id) AS id FROM {name}"
        assert catalog.sql(query).to_pylist() == [{"id": 3}]
    assert catalog.sql("SELECT n FROM GLOBAL_FRAME").to_pylist() == [{"n": 7}]
    assert catalog.session().sql("SELECT count(*) AS n FROM df").to_pylist() == [{"n": 2}]
    assert catalog.sql("SELECT count(*) AS n FROM t", tables={"t": lazy}).to_pylist() == [{"n": 2}]
    assert (len(df), len(lots), arrow.num_rows, scan.count()) == (2, 1, 2, 1)


def test_a_variable_is_read_as_it_is_now(catalog: frazil.Catalog) -> None:
    df = pa.table({"id": [1]})
    query = "SELECT count(*) AS n FROM df"
    assert catalog.sql(query).to_pylist() == [{"n": 1}]
    df = pa.table({"id": [1, 2]})
    assert catalog.sql(query).to_pylist() == [{"n": 2}]
    assert df.num_rows == 2


def test_tables_of_the_catalog_come_first(catalog: frazil.Catalog) -> None:
    orders = pa.table({"id": [10]})
    assert catalog.sql("SELECT max(id) AS id FROM orders").to_pylist() == [{"id": 3}]
    assert orders.num_rows == 1


def test_rows_of_a_frame_are_inserted(catalog: frazil.Catalog) -> None:
    df = pd.DataFrame({"id": [4, 5]})
    catalog.sql("INSERT INTO shop.orders SELECT id FROM df")
    assert catalog["shop.orders"].scan().count() == 5
    assert len(df) == 2


def test_other_variables_are_no_tables(catalog: frazil.Catalog) -> None:
    number = 1
    rows = [{"id": 1}]
    for name in ("number", "rows", "nothing"):
        with pytest.raises(NotFound, match=f"table {name} does not exist"):
            catalog.sql(f"SELECT * FROM {name}")
    assert (number, rows) == (1, [{"id": 1}])


def test_a_view_sees_no_variables(catalog: frazil.Catalog) -> None:
    df = pa.table({"id": [1]})
    with pytest.raises(FrazilError, match="df does not exist"):
        catalog.sql("CREATE VIEW shop.v AS SELECT * FROM df")
    assert df.num_rows == 1


def test_text_of_others_sees_no_variables(catalog: frazil.Catalog) -> None:
    df = pa.table({"id": [1]})
    with pytest.raises(NotFound, match="df does not exist"):
        list(catalog.session().results("SELECT * FROM df"))
    assert df.num_rows == 1
