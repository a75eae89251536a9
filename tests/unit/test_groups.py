"""Tests that share something expensive run on one worker."""

from __future__ import annotations

import pytest


def test_ids_carry_their_group(request: pytest.FixtureRequest) -> None:
    if not hasattr(request.config, "workerinput"):
        pytest.skip("runs on one process")
    assert request.node.nodeid.endswith("@unit/test_groups.py")
