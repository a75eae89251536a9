"""Random changes through SQL leave the rows that plain DuckDB has.

`make test` plays a few fixed seeds. `make search` plays FRAZIL_SEARCH_HISTORIES new ones, and
longer. A failure names its seed; with FRAZIL_SEED in the environment that one is played alone.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from tests.state.sql_changes import SqlChanges

_COUNT = int(os.environ.get("FRAZIL_SEARCH_HISTORIES", "0"))
_STEPS = 40 if _COUNT or "FRAZIL_SEED" in os.environ else 12


def _seeds() -> list[int]:
    if "FRAZIL_SEED" in os.environ:
        return [int(os.environ["FRAZIL_SEED"])]
    return [secrets.randbelow(2**32) for _ in range(_COUNT)] if _COUNT else [1, 2, 3]


@pytest.mark.parametrize("seed", _seeds())
def test_changes_leave_the_rows_that_duckdb_has(seed: int, tmp_path: Path) -> None:
    history = SqlChanges(seed, tmp_path / "w")
    try:
        history.run(_STEPS)
    except AssertionError as error:
        told = [f"FRAZIL_SEED={seed}", *history.ran, str(error)[-600:]]
        raise AssertionError("\n".join(told)) from None
