"""Random histories through the server, held against a plain model.

`make test` plays a few fixed seeds. `make search` plays FRAZIL_SEARCH_HISTORIES new ones, and
longer. A failure names its seed; with FRAZIL_SEED in the environment that one is played alone.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from tests.state.served_histories import ServedHistory, UpsertedHistory

_COUNT = int(os.environ.get("FRAZIL_SEARCH_HISTORIES", "0"))
_STEPS = 30 if _COUNT or "FRAZIL_SEED" in os.environ else 12


def _seeds() -> list[int]:
    if "FRAZIL_SEED" in os.environ:
        return [int(os.environ["FRAZIL_SEED"])]
    return [secrets.randbelow(2**32) for _ in range(_COUNT // 4)] if _COUNT else [0, 1]


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore:Merge on read", "ignore:Delete operation did not match")
@pytest.mark.parametrize("kind", [ServedHistory, UpsertedHistory])
@pytest.mark.parametrize("seed", _seeds())
def test_a_served_table_is_what_its_clients_made_it(
    seed: int, kind: type[ServedHistory], tmp_path: Path
) -> None:
    history = kind(tmp_path, seed)
    try:
        history.play(_STEPS)
    except BaseException:
        print(f"\nFRAZIL_SEED={seed}; steps: {' '.join(history.log)}")
        raise
