"""Random histories, held against a plain model.

`make test` plays a few fixed seeds. `make search` plays FRAZIL_SEARCH_HISTORIES new ones, and
longer. A failure names its seed; with FRAZIL_SEED in the environment that one is played alone.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from tests.state.histories import History

_COUNT = int(os.environ.get("FRAZIL_SEARCH_HISTORIES", "0"))
STEPS = 40 if _COUNT or "FRAZIL_SEED" in os.environ else 20


def _seeds() -> list[int]:
    if "FRAZIL_SEED" in os.environ:
        return [int(os.environ["FRAZIL_SEED"])]
    return [secrets.randbelow(2**32) for _ in range(_COUNT)] if _COUNT else list(range(8))


SEEDS = _seeds()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_is_what_its_history_made_it(seed: int, tmp_path: Path) -> None:
    history = History(tmp_path, seed)
    try:
        history.play(STEPS)
    except BaseException:
        print(f"\nFRAZIL_SEED={seed}; steps: {' '.join(history.log)}")
        raise
