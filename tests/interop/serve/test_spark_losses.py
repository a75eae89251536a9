"""Spark whose answers are lost: no row is lost, none is there twice, no live file is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.serve.app import build
from frazil.serve.running import Running
from frazil.serve.service import Service
from frazil.table import Catalog
from tests.interop.serve.spark_client import Spark, SparkFailed, check, ids, make
from tests.support.lossy import LOSSES, Lossy
from tests.support.mortal import Mortal

pytestmark = [pytest.mark.java, pytest.mark.peers, pytest.mark.xdist_group("served-spark")]


@pytest.fixture(scope="module")
def lossy(catalog: Catalog, spark: Spark) -> Iterator[Lossy]:
    """The served catalog once more, as Spark's catalog `lossy`."""
    made = Lossy(build(Service(catalog)))
    app: Any = made
    with Running(app) as server:
        spark.attach("lossy", server.uri)
        yield made


@pytest.mark.parametrize("loss", LOSSES)
def test_a_commit_whose_answer_is_lost(
    catalog: Catalog, spark: Spark, lossy: Lossy, loss: str
) -> None:
    name = f"lost_{loss.replace(' ', '_')}"
    make(spark, name)
    for statement, landed in (
        (f"INSERT INTO lossy.shop.{name} VALUES (5, 'it')", [1, 2, 3, 4, 5]),
        (f"DELETE FROM lossy.shop.{name} WHERE id = 1", [2, 3, 4, 5]),
    ):
        before = lossy.lost
        lossy.pending = [loss]
        with suppress(SparkFailed):  # in doubt: it may be there or not
            spark.sql(statement)
        assert lossy.lost == before + 1
        lossy.pending = []
        spark.sql(f"REFRESH TABLE shop.{name}")
        found = ids(spark, f"shop.{name}")
        if found != landed:
            assert loss == "cut before"  # only a commit that never arrived may be missing
            spark.sql(statement)
            spark.sql(f"REFRESH TABLE shop.{name}")
        check(catalog, spark, name, *landed)


def test_a_server_that_is_killed_between_the_swap_and_its_answer(
    spark: Spark, tmp_path: Path
) -> None:
    warehouse = tmp_path / "warehouse"
    with frazil.connect(warehouse) as catalog, Mortal(warehouse) as mortal:
        catalog.create_namespace("shop")
        mortal.live("lives")
        spark.attach("mortal", mortal.uri)
        spark.sql("CREATE TABLE mortal.shop.orders (id BIGINT) USING iceberg")
        spark.sql("INSERT INTO mortal.shop.orders VALUES (1)")
        mortal.stop()
        mortal.live("dies")
        with pytest.raises(SparkFailed):
            spark.sql("INSERT INTO mortal.shop.orders VALUES (2)")
        assert mortal.end() == -9
        mortal.live("lives")
        spark.sql("REFRESH TABLE mortal.shop.orders")
        assert ids(spark, "mortal.shop.orders") == [1, 2]
        spark.sql("INSERT INTO mortal.shop.orders VALUES (3)")
        native = catalog["shop.orders"]
        assert sorted(native.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
        assert not native.check(deep=True).problems
