"""The walk of a MERGE in Spark SQL on the page of architecture is the one that the code takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.walked import on_page, spark_merge


def test_the_walk_on_the_page_is_the_one_that_was_recorded(spark: Any, tmp_path: Path) -> None:
    drawn = spark_merge(spark, tmp_path).drawn()
    assert drawn == on_page("spark-merge"), "run python -m tools.walks spark-merge"
