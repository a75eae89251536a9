"""Statements of Spark SQL beside queries of plain tables, on every way to lay out the table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frazil
from tests.spark.statements_beside import LAYOUTS, Case, cases, check, prepare
from tests.support.spark_session import own_session, shared_session

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.skipif("FRAZIL_SOAK_SECONDS" not in os.environ, reason="part of make soak"),
]


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    session = shared_session()
    yield session
    session.stop()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_table_holds_what_a_query_of_plain_tables_says(
    context: Any, tmp_path: Path, case: Case, layout: str
) -> None:
    spark = own_session(context)
    with frazil.connect(tmp_path / "warehouse") as catalog:
        check(spark, case, prepare(spark, catalog, layout))
