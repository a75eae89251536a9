"""400,000 files in 1,000 leaves: answers stay small, and no view opens what it does not show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import frazil
from frazil.serve.app import build
from frazil.serve.service import Service
from frazil.table import Catalog
from tests.serve.explorer.conftest import API, HERE
from tests.support.explorer_shop import forest

BIG = f"{API}/tables/shop/big"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table, of metadata alone."""
    made = tmp_path_factory.mktemp("forest") / "warehouse"
    with frazil.connect(made) as catalog:
        catalog.create_namespace("shop")
        forest(catalog, "shop.big")
    return made


@pytest.fixture
def big(folder: Path) -> Iterator[Catalog]:
    """The catalog, with nothing in memory yet."""
    with frazil.connect(folder) as opened:
        yield opened


def asked(catalog: Catalog, view: str, **query: str) -> tuple[dict[str, Any], int, set[str]]:
    """An answer, its bytes on the wire, and the files that were read for it."""
    storage = catalog._pointers.storage(catalog.load_table("shop.big").location)
    with (
        TestClient(build(Service(catalog)), base_url=HERE) as client,
        storage.recording() as calls,
    ):
        answer = client.get(f"{BIG}/{view}", params=query, headers={"accept-encoding": "gzip"})
    assert answer.status_code == 200
    read = {call.path for call in calls if call.bytes}
    return answer.json(), int(answer.headers["content-length"]), read


def test_the_tree_is_drawn_from_its_root(big: Catalog) -> None:
    found, size, read = asked(big, "tree")
    assert found["totals"]["files"] == 400_004
    assert len(found["leaves"]["id"]) == 1000
    assert len(read) == 1
    assert size < 100_000


def test_a_plan_opens_the_leaves_that_are_left(big: Catalog) -> None:
    found, size, read = asked(big, "plan", where="order_day = '2023-10-01'")
    assert found["files"] == 1000
    assert len(read) == 1 + found["opened"]
    assert found["opened"] < 10
    assert size < 10_000


def test_a_leaf_is_opened_alone_and_in_few_cells(big: Catalog) -> None:
    tree, _, _ = asked(big, "tree", columns="2")
    found, size, read = asked(big, "leaf", id=tree["leaves"]["id"][7])
    assert sum(found["cells"]["live"]) == tree["leaves"]["entries"][7]
    assert len(found["cells"]["live"]) <= 2000
    assert len(found["page"]["id"]) == 50
    assert len(read) == 2  # more columns of the root, and the leaf
    assert size < 30_000


def test_a_step_between_trees_has_no_leaf_that_was_seen(big: Catalog) -> None:
    first, second = (str(each.snapshot_id) for each in big.load_table("shop.big").snapshots()[-2:])
    found, size, read = asked(big, "tree", snapshot=second, columns="2", base=first)
    assert found["leaves"]["runs"] == [[0, 1000]]
    assert found["leaves"]["id"] == []
    assert found["totals"]["files"] == 400_004
    assert len(read) == 2  # the two roots
    assert size < 2_000


def test_a_step_from_a_snapshot_that_is_gone_is_the_whole_tree(big: Catalog) -> None:
    found, _, _ = asked(big, "tree", columns="2", base="12345")
    assert len(found["leaves"]["id"]) == 1000
