"""Statements of Spark SQL beside queries of plain tables, on every way to lay out the table."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import frazil
from tests.spark.statements_beside import LAYOUTS, Beside, Case, cases
from tests.support.spark_session import own_session, shared_session

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.skipif("FRAZIL_SOAK_SECONDS" not in os.environ, reason="part of make soak"),
]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    session = shared_session()
    with frazil.connect(tmp_path_factory.mktemp("beside") / "warehouse") as catalog:
        yield Beside(own_session(session), catalog)
    session.stop()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_table_holds_what_a_query_of_plain_tables_says(
    beside: Beside, case: Case, layout: str
) -> None:
    beside.check(case, layout)
