"""Fixtures shared by all interop tests: the one Java virtual machine of the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.java import JavaOracle, java_oracle


@pytest.fixture(scope="session")
def java() -> Iterator[JavaOracle]:
    """Iceberg Java, answering requests; started once."""
    with java_oracle() as oracle:
        yield oracle
