"""The walks on the page of architecture are those that the code takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.walked import WALKS, on_page, sql_merge


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_on_the_page_is_the_one_that_was_recorded(name: str, tmp_path: Path) -> None:
    assert WALKS[name](tmp_path).drawn() == on_page(name), "run python -m tools.walks"


def test_a_merge_in_sql_takes_at_most_fifteen_steps_to_the_commit(tmp_path: Path) -> None:
    walk = sql_merge(tmp_path)
    steps = walk.steps(packages=frozenset({"sql", "table", "rows"}), before="commit.loop")
    assert len(steps) <= 15, steps
