"""Statements of Spark SQL beside queries of plain tables, each on one way to lay out the table.

`make soak` runs each of them on every layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import frazil
from tests.spark.statements_beside import LAYOUTS, Beside, Case, cases
from tests.support.spark_session import own_session

pytestmark = pytest.mark.spark

_LAYOUTS = list(LAYOUTS)
_CASES = [(case, _LAYOUTS[at % len(_LAYOUTS)]) for at, case in enumerate(cases())]


@pytest.fixture(scope="module")
def beside(spark_context: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    with frazil.connect(tmp_path_factory.mktemp("beside") / "warehouse") as catalog:
        yield Beside(own_session(spark_context), catalog)


@pytest.mark.parametrize(("case", "layout"), _CASES, ids=str)
def test_a_table_holds_what_a_query_of_plain_tables_says(
    beside: Beside, case: Case, layout: str
) -> None:
    beside.check(case, layout)
