"""Random changes through SQL leave the rows that plain DuckDB has.

`make test` plays a few fixed seeds. `make search` plays FRAZIL_SEARCH_HISTORIES new ones, and
prints the seed and the statements of one that fails; keep the seed here.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.state.sql_changes import SqlChanges

_COUNT = int(os.environ.get("FRAZIL_SEARCH_HISTORIES", "0"))
SEEDS = [1, 2, 3]


def _new_seeds() -> list[int]:
    return [random.SystemRandom().randrange(1 << 32) for _ in range(_COUNT)]


@pytest.mark.parametrize("seed", [*SEEDS, *_new_seeds()])
def test_changes_leave_the_rows_that_duckdb_has(seed: int, tmp_path: Path) -> None:
    history = SqlChanges(seed, tmp_path / "w")
    try:
        history.run(40 if _COUNT else 12)
    except AssertionError as error:
        raise AssertionError("\n".join([f"seed {seed}", *history.ran, str(error)[-600:]])) from None
