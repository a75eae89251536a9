"""A server among clients that misbehave answers all those that do not, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.overload import overloaded

MAX_MEMORY_MB = 600


@pytest.mark.timeout(300)
def test_polite_clients_are_answered_among_rude_ones(tmp_path: Path) -> None:
    figures = overloaded(tmp_path, polite=4, rude=30, seconds=8)
    print(figures)
    assert not figures.failures, figures.failures[:5]
    assert set(figures.seconds) == {"load", "list", "plan", "append"}
    assert figures.memory_mb < MAX_MEMORY_MB, figures
    assert len(figures.rude) >= 8, figures.rude
