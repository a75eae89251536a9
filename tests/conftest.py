"""Generated examples are the same in every run; `make search` looks for new ones.

`make test` runs on several workers. Tests that share something expensive (a Spark context, the
Java oracle, PostgreSQL) stay on one worker, so that it is started once; all others are shared out
by file. The groups that take longest start first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.object_server import Bucket, new_bucket, versitygw

# How long an example takes says how busy the machine is, so it fails no test.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", _UNTIMED, derandomize=True)
settings.register_profile("search", _UNTIMED, derandomize=False, print_blob=True)
settings.load_profile("fixed")

_TESTS = Path(__file__).parent
_OWN_PROCESS = ("cluster/test_cluster.py", "cli/test_compact.py", "spark/test_connect.py")
"""Files that start Spark outside the test process, so they share no context with others."""
_FIRST = ("spark", "java", "interop/paimon/test_tables.py", "cluster/test_cluster.py", "state")


def _group(item: pytest.Item) -> str:
    file = item.path.relative_to(_TESTS).as_posix()
    if item.get_closest_marker("spark") and file not in _OWN_PROCESS:
        return "spark"
    if file.startswith(("interop/java/", "interop/legacy/", "interop/peers/")):
        return "java"
    if file.startswith(("contracts/", "soak/")):
        return "postgres"
    return file


def _rank(group: str) -> int:
    found = [place for place, first in enumerate(_FIRST) if group.startswith(first)]
    return found[0] if found else len(_FIRST)


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in its own hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name each test's group, and put long groups first when several workers share the tests."""
    groups = {item: _group(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _rank(groups[item]))


@pytest.fixture(scope="session")
def object_server() -> Iterator[Bucket]:
    """versitygw on loopback, with one bucket that tests share."""
    with versitygw() as server:
        yield server


@pytest.fixture
def bucket(object_server: Bucket) -> Bucket:
    """A new bucket."""
    return new_bucket(object_server)
