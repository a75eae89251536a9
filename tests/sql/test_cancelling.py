"""Queries that are stopped before their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import frazil
from frazil.errors import Cancelled, FrazilError
from frazil.sql.engine.interruptible import Interruptible
from frazil.sql.session import Session
from frazil.table.catalog import Catalog

LONG = (
    "SELECT count(*) AS n FROM range(100000000) a, range(100000000) b WHERE a.range = -b.range - 1"
)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with frazil.connect(tmp_path / "warehouse") as made:
        made.create_table("s.t", [{"a": 1}])
        yield made


def test_a_result_can_be_cancelled_from_another_thread(catalog: Catalog) -> None:
    result = catalog.sql(LONG)
    timer = threading.Timer(0.5, result.cancel)
    timer.start()
    with pytest.raises(Cancelled, match="the query was cancelled"):
        result.to_arrow()
    assert catalog.sql("SELECT a FROM s.t").to_pylist() == [{"a": 1}]


def test_a_query_may_have_a_time_limit(catalog: Catalog) -> None:
    session = Session(catalog, time_limit=0.5)
    with pytest.raises(Cancelled, match=r"took longer than 0\.5 s"):
        session.sql(LONG).to_arrow()
    assert session.sql("SELECT a FROM s.t").to_pylist() == [{"a": 1}]


def test_a_result_that_was_read_stays_when_it_is_cancelled(catalog: Catalog) -> None:
    result = catalog.sql("SELECT a FROM s.t")
    assert result.to_pylist() == [{"a": 1}]
    result.cancel()
    assert result.to_pylist() == [{"a": 1}]


def test_cancelling_before_reading_stops_the_query(catalog: Catalog) -> None:
    result = catalog.sql(LONG)
    result.cancel()
    with pytest.raises(FrazilError, match="cancelled"):
        result.to_arrow()


@pytest.mark.parametrize("text", ["SELECT a FROM s.t", "SELECT a + 1 AS a FROM s.t"])
def test_a_query_that_was_cancelled_is_not_kept(catalog: Catalog, text: str) -> None:
    """What was bound is kept for the next query of the same text, but not with its end."""
    expected = catalog.sql(text).to_pylist()
    read, unread = catalog.sql(text), catalog.sql(text)
    assert read.to_reader().read_all().to_pylist() == expected
    for result in (read, unread):
        result.cancel()
    del read, unread, result
    assert catalog.sql(text).to_pylist() == expected


RUNS_AT_ONCE = [
    f"EXPLAIN ANALYZE {LONG}",
    "PIVOT (SELECT a.range AS k, b.range AS v FROM range(100000000) a, range(100000000) b) "
    "ON k % 3 USING sum(v)",
]
"""Statements that read rows before their result is there."""


@pytest.mark.parametrize("text", RUNS_AT_ONCE)
def test_what_runs_at_once_has_the_time_limit_too(catalog: Catalog, text: str) -> None:
    session = Session(catalog, time_limit=0.5)
    with pytest.raises(Cancelled, match=r"took longer than 0\.5 s"):
        session.sql(text)
    assert session.sql("SELECT a FROM s.t").to_pylist() == [{"a": 1}]


@pytest.mark.parametrize("text", [*RUNS_AT_ONCE, LONG])
def test_a_session_can_be_cancelled_from_another_thread(catalog: Catalog, text: str) -> None:
    session = Session(catalog)
    threading.Timer(0.5, session.cancel).start()
    with pytest.raises(Cancelled, match="the query was cancelled"):
        session.sql(text).to_arrow()
    with pytest.raises(Cancelled):
        session.sql("SELECT a FROM s.t").to_arrow()
    assert catalog.sql("SELECT a FROM s.t").to_pylist() == [{"a": 1}]


def test_an_interrupt_just_before_the_engine_begins_is_not_lost(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = catalog.sql(LONG)
    original = Interruptible._check

    def checked(self: Interruptible, cause: Exception | None = None) -> None:
        original(self, cause)
        result.cancel()  # DuckDB has not begun

    monkeypatch.setattr(Interruptible, "_check", checked)
    with pytest.raises(FrazilError):
        result.to_arrow()


PROGRAM = """
import sys, frazil
catalog = frazil.connect(sys.argv[1])
catalog.sql("SELECT a FROM s.t").to_arrow()
result = catalog.sql(sys.argv[2])
print("ready", flush=True)
try:
    result.to_arrow()
except KeyboardInterrupt:
    print("stopped", catalog.sql("SELECT a FROM s.t").to_pylist(), flush=True)
"""


def test_control_c_stops_a_query(catalog: Catalog, tmp_path: Path) -> None:
    code = [sys.executable, "-c", PROGRAM, str(tmp_path / "warehouse"), LONG]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert out == "stopped [{'a': 1}]\n"
