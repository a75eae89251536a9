"""PyIceberg whose answers are lost: what landed is there once, and its files stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

import frazil
from frazil.serve.app import build
from frazil.serve.running import Running
from frazil.serve.service import Service
from frazil.table import Catalog
from tests.support.lossy import LOSSES, Lossy
from tests.support.mortal import Mortal

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def lossy(catalog: Catalog) -> Lossy:
    return Lossy(build(Service(catalog)))


@pytest.fixture
def uri(lossy: Lossy) -> Iterator[str]:
    app: Any = lossy
    with Running(app) as server:
        yield server.uri


def row(number: int) -> pa.Table:
    return pa.table({"id": [number]}, schema=SCHEMA)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("operation", ["append", "delete"])
def test_a_commit_whose_answer_is_lost(
    catalog: Catalog, lossy: Lossy, uri: str, loss: str, operation: str
) -> None:
    catalog.create_table("shop.orders", SCHEMA).append(pa.table({"id": [1, 2]}))
    table = RestCatalog("x", uri=uri).load_table("shop.orders")
    lossy.pending = [loss]
    commit = {"append": lambda: table.append(row(3)), "delete": lambda: table.delete("id = 1")}
    with pytest.raises(Exception):  # noqa: B017 (each loss has an exception of its own)
        commit[operation]()
    assert lossy.lost == 1
    landed = loss != "cut before"
    after = {"append": [1, 2, 3], "delete": [2]}[operation] if landed else [1, 2]
    native = catalog["shop.orders"]
    assert sorted(native.scan().to_arrow()["id"].to_pylist()) == after
    assert not native.check(deep=True).problems  # no file of a snapshot is missing
    table = RestCatalog("y", uri=uri).load_table("shop.orders")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == after
    table.append(row(9))
    assert sorted(native.refresh().scan().to_arrow()["id"].to_pylist()) == [*after, 9]


def test_a_server_that_is_killed_between_the_swap_and_its_answer(tmp_path: Path) -> None:
    with (
        frazil.connect(tmp_path / "warehouse") as catalog,
        Mortal(tmp_path / "warehouse") as mortal,
    ):
        catalog.create_table("shop.orders", SCHEMA).append(row(1))
        mortal.live("dies")
        table = RestCatalog("x", uri=mortal.uri).load_table("shop.orders")
        with pytest.raises(Exception):  # noqa: B017
            table.append(row(2))
        assert mortal.end() == -9
        native = catalog["shop.orders"]
        assert sorted(native.scan().to_arrow()["id"].to_pylist()) == [1, 2]
        mortal.live("lives")
        table = RestCatalog("y", uri=mortal.uri).load_table("shop.orders")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
        table.append(row(3))
        assert sorted(native.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
        assert not native.check(deep=True).problems
