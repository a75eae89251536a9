"""Fixtures shared by all interop tests: the one Java virtual machine, tables of other writers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.peers import tables
from tests.interop.peers.tables import PeerTable
from tests.support.java import JavaOracle, java_oracle


@pytest.fixture(scope="session")
def java() -> Iterator[JavaOracle]:
    """Iceberg Java, answering requests; started once."""
    with java_oracle() as oracle:
        yield oracle


@pytest.fixture(scope="session")
def peer_tables(java: JavaOracle) -> dict[str, PeerTable]:
    """Tables of v1, v2, v3 and interim v4 by other writers, with their rows at every snapshot."""
    return tables.peer_tables(java)
