"""Statements of Spark SQL beside queries of plain tables, each on one way to lay out the table.

`make soak` runs each of them on every layout.
"""

from __future__ import annotations

from typing import Any

import pytest

import frazil
from tests.spark.statements_beside import LAYOUTS, Case, cases, check, prepare

pytestmark = pytest.mark.spark

_LAYOUTS = list(LAYOUTS)
_CASES = [(case, _LAYOUTS[at % len(_LAYOUTS)]) for at, case in enumerate(cases())]


@pytest.mark.parametrize(("case", "layout"), _CASES, ids=lambda each: str(each))
def test_a_table_holds_what_a_query_of_plain_tables_says(
    spark: Any, catalog: frazil.Catalog, case: Case, layout: str
) -> None:
    check(spark, case, prepare(spark, catalog, layout))
