"""Random histories of tables that share files and list them twice, held against rows by row id.

`make test` plays a few fixed seeds. `make search` plays FRAZIL_SEARCH_HISTORIES new ones, and
longer. A failure names its seed; with FRAZIL_SEED in the environment that one is played alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.state.entry_histories import EntryHistory
from tests.state.test_histories import SEEDS, STEPS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_keep_their_ids_whatever_becomes_of_their_files(seed: int, tmp_path: Path) -> None:
    history = EntryHistory(tmp_path, seed)
    try:
        history.play(STEPS)
    except BaseException:
        print(f"\nFRAZIL_SEED={seed}; steps: {' '.join(history.log)}")
        raise
