"""Chaos: native writers, Spark, PyIceberg and DuckDB append to one table through two servers while
it is maintained, and a server and native writers are killed at random moments.

Runs for a few seconds per database, or for FRAZIL_SOAK_SECONDS altogether. Every row whose append
was acknowledged is there once; one whose answer was lost may be there; no other is. DuckDB is not
among those whose server is killed: it deletes its files when an answer is lost.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException

import frazil
from frazil.errors import CommitConflict
from tests.interop.serve.spark_client import Spark, SparkFailed
from tests.interop.serve.test_duckdb import DUCKDB_REST
from tests.support.postgres import postgres_uri as postgres_uri
from tests.support.project import ROOT

pytestmark = [pytest.mark.java, pytest.mark.peers, pytest.mark.xdist_group("served-spark")]
DATABASES = ("sqlite", "postgresql")
SECONDS = float(os.environ.get("FRAZIL_SOAK_SECONDS", "16")) / len(DATABASES)
SCHEMA = pa.schema([("id", pa.int64()), ("writer", pa.string())])
NAME = "shop.orders"
PROPERTIES = {"commit.retry.num-retries": "1000", "write.root.max-data-entries": "20"}
DUCKDB = ROOT / "tests" / "interop" / "serve" / "duckdb_writer.py"
FIRST_IDS = 10_000_000
"""Between the first ids of two writers."""
_SERVE = """
import sys, frazil
from frazil import serve
serve.run(frazil.connect(sys.argv[1], warehouse=sys.argv[2]), port=int(sys.argv[3]))
"""
_contexts = multiprocessing.get_context("spawn")


@dataclass(kw_only=True)
class Outcomes:
    """Rows that a writer was told have landed, and rows of which it does not know."""

    writer: str
    landed: list[int] = field(default_factory=list)
    doubted: set[int] = field(default_factory=set)
    errors: Counter[str] = field(default_factory=Counter)
    """Why writers were in doubt."""


class Server:
    """A server in a process of its own, which comes back at its address when it was killed."""

    def __init__(self, uri: str, warehouse: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self._port}"
        self._command = [sys.executable, "-c", _SERVE, uri, warehouse, str(self._port)]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command)
        end = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=5).close()
                return
            except OSError:
                assert time.monotonic() < end, "the server did not start"
                assert self._process.poll() is None, "the server has ended"
                time.sleep(0.05)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def pause() -> None:
    """Wait through the second half of every eight seconds: a client that begins again after each
    lost race would never land a commit beside writers that need a tenth of its time."""
    while time.time() % 8 > 4:
        time.sleep(0.1)
    time.sleep(random.random() * 0.3)


def rows(number: int, writer: str) -> pa.Table:
    return pa.table({"id": [number], "writer": [writer]}, schema=SCHEMA)


Append = Callable[[int], object]


def one_by_one(
    outcomes: Outcomes, append: Append, number: int, end: float, *, refused: Any
) -> Outcomes:
    """Append rows with ids from a number on until the time is up and one has landed, as a machine
    may be slow. What `refused` says of an error is whether nothing of the append can be there."""
    while time.monotonic() < end or not outcomes.landed:
        try:
            append(number)
            outcomes.landed.append(number)
        except Exception as error:
            if not refused(error):
                outcomes.doubted.add(number)
                reason = " ".join(str(error).split())[:80]
                outcomes.errors[f"{outcomes.writer}: {type(error).__name__}: {reason}"] += 1
            time.sleep(0.2)
        number += 1
    return outcomes


def through_frazil(uri: str, number: int, end: float) -> Outcomes:
    def append(number: int) -> None:
        pause()
        with frazil.connect(uri) as catalog:
            catalog[NAME].append(rows(number, "remote"))

    return one_by_one(
        Outcomes(writer="remote"),
        append,
        number,
        end,
        refused=lambda error: isinstance(error, CommitConflict),
    )


def through_pyiceberg(uri: str, number: int, end: float) -> Outcomes:
    def append(number: int) -> None:
        table = RestCatalog("c", uri=uri).load_table(NAME)
        table.append(rows(number, "pyiceberg"))

    return one_by_one(
        Outcomes(writer="pyiceberg"),
        append,
        number,
        end,
        refused=lambda error: isinstance(error, CommitFailedException),
    )


def through_spark(session: Spark, number: int, end: float) -> Outcomes:
    return one_by_one(
        Outcomes(writer="spark"),
        lambda number: session.sql(f"INSERT INTO {NAME} VALUES ({number}, 'spark')"),
        number,
        end,
        refused=lambda error: isinstance(error, SparkFailed) and "CommitFailed" in str(error),
    )


def through_duckdb(uri: str, number: int, end: float) -> Outcomes:
    seconds = max(0.0, end - time.monotonic())
    done = subprocess.run(
        [str(DUCKDB_REST.ready().python), str(DUCKDB), uri, str(number), str(seconds)],
        capture_output=True,
        text=True,
        timeout=seconds + 240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Outcomes(writer="duckdb", landed=json.loads(done.stdout))


def _native(uri: str, warehouse: str, number: int, notes: str) -> None:
    """Append and note what was told, until killed."""
    table = frazil.connect(uri, warehouse=warehouse)[NAME]
    with open(notes, "a", buffering=1) as log:
        while True:
            pause()
            log.write(f"do {number}\n")
            try:
                table.append(rows(number, "native"))
                log.write(f"done {number}\n")
            except CommitConflict:
                log.write(f"refused {number}\n")
            number += 1


def _noted(notes: Path) -> Outcomes:
    outcomes = Outcomes(writer="native")
    tried: set[int] = set()
    refused: set[int] = set()
    for line in notes.read_text().splitlines():
        what, _, number = line.partition(" ")
        if what == "do" and number.isdigit():
            tried.add(int(number))
        elif what == "refused" and number.isdigit():
            refused.add(int(number))
        elif what == "done" and number.isdigit():
            outcomes.landed.append(int(number))
    outcomes.doubted = tried - refused - set(outcomes.landed)
    return outcomes


class NativeWriter:
    """A process that appends until it is killed."""

    def __init__(self, notes: Path, arguments: tuple[str, str, int, str]) -> None:
        self._notes = notes
        self._process = _contexts.Process(target=_native, args=arguments, daemon=True)
        self._process.start()

    def wait_until(self, noted: str) -> None:
        """Wait until it has noted something; starting a process takes longer than an append."""
        end = time.monotonic() + 240
        while f"{noted} " not in self._notes.read_text():
            assert time.monotonic() < end, "a native writer does not get on"
            assert self._process.is_alive(), "a native writer has ended"
            time.sleep(0.05)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


class Chaos:
    """What happens to the writers meanwhile: maintenance, and kills."""

    def __init__(self, folder: Path, uri: str, warehouse: str, victim: Server, end: float) -> None:
        self._folder, self._uri, self._warehouse = folder, uri, warehouse
        self._victim, self._end = victim, end
        self.kills = self.maintained = 0
        self._lives = 0

    def notes(self) -> list[Outcomes]:
        """What the native writers were told."""
        return [_noted(notes) for notes in sorted(self._folder.glob("notes-*"))]

    def kill(self) -> None:
        """Kill native writers, and now and then a server, which come back at once."""
        rng = random.Random(0)
        writers = [self._start() for _ in range(2)]
        while time.monotonic() < self._end:
            at = rng.randrange(len(writers))
            writers[at].wait_until("do")
            time.sleep(rng.random() * 3)
            writers[at].kill()
            self.kills += 1
            if rng.random() < 0.3:
                self._victim.kill()
                self.kills += 1
                self._victim.start()
            writers[at] = self._start()
        for writer in writers:
            writer.wait_until("done")
            writer.kill()

    def _start(self) -> NativeWriter:
        self._lives += 1
        notes = str(self._folder / f"notes-{self._lives:04d}")
        Path(notes).touch()
        number = FIRST_IDS * 20 + self._lives * 100_000
        arguments = (self._uri, self._warehouse, number, notes)
        return NativeWriter(Path(notes), arguments)

    def maintain(self) -> None:
        """Compact, rewrite and expire, as a table in use is."""
        table = frazil.connect(self._uri, warehouse=self._warehouse)[NAME]
        while time.monotonic() < self._end:
            for care in (
                lambda: table.compact(),
                lambda: table.compact_metadata(),
                lambda: table.rewrite_manifests(),
                lambda: table.expire_snapshots(older_than=_ago(20), keep_last=5),
            ):
                pause()
                try:
                    table.refresh()
                    care()
                    self.maintained += 1
                except CommitConflict:
                    pass
                time.sleep(0.5)


def _ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.timeout(int(SECONDS * 4) + 600)
def test_every_acknowledged_row_is_there_once(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    warehouse = f"file://{tmp_path}/warehouse"
    uri = f"sqlite:///{tmp_path}/catalog.db"
    if database == "postgresql":
        uri = request.getfixturevalue("postgres_uri")
    catalog = frazil.connect(uri, warehouse=warehouse)
    if catalog.table_exists(NAME):
        catalog.drop_table(NAME)
    table = catalog.create_table(NAME, SCHEMA, properties=PROPERTIES)
    killed, spared = Server(uri, warehouse), Server(uri, warehouse)
    sessions = [Spark(killed.uri), Spark(spared.uri)]
    end = time.monotonic() + SECONDS
    chaos = Chaos(tmp_path, uri, warehouse, killed, end)
    jobs: list[Callable[[int], Outcomes]] = [
        lambda number: through_spark(sessions[0], number, end),
        lambda number: through_spark(sessions[1], number, end),
        lambda number: through_frazil(killed.uri, number, end),
        lambda number: through_frazil(spared.uri, number, end),
        lambda number: through_pyiceberg(killed.uri, number, end),
        lambda number: through_pyiceberg(spared.uri, number, end),
        lambda number: through_duckdb(spared.uri, number, end),
    ]
    failures: list[BaseException] = []
    others = [
        threading.Thread(target=_kept(work, failures)) for work in (chaos.kill, chaos.maintain)
    ]
    try:
        for other in others:
            other.start()
        with ThreadPoolExecutor(len(jobs)) as pool:
            outcomes = list(pool.map(lambda at: jobs[at](FIRST_IDS * (at + 1)), range(len(jobs))))
        for other in others:
            other.join(300)
            assert not other.is_alive()
    finally:
        for session in sessions:
            session.close()
        killed.kill()
        spared.kill()
    assert not failures, failures
    outcomes += chaos.notes()
    _check(table, outcomes, chaos, database)
    table.refresh().remove_orphan_files(older_than=_ago(-300))
    _check(table, outcomes, chaos, database)


def _kept(work: Callable[[], None], failures: list[BaseException]) -> Callable[[], None]:
    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    return run


def _check(table: frazil.Table, outcomes: list[Outcomes], chaos: Chaos, database: str) -> None:
    landed: dict[str, int] = {}
    for outcome in outcomes:
        landed[outcome.writer] = landed.get(outcome.writer, 0) + len(outcome.landed)
    acknowledged = [number for outcome in outcomes for number in outcome.landed]
    doubted = set().union(*(outcome.doubted for outcome in outcomes))
    errors = sum((outcome.errors for outcome in outcomes), Counter[str]())
    found = table.refresh().scan().to_arrow()["id"].to_pylist()
    print(
        f"\n{database}: {len(found)} rows, {len(acknowledged)} acknowledged {landed}, "
        f"{len(doubted)} in doubt {errors.most_common(4)}, {chaos.kills} kills, "
        f"{chaos.maintained} times maintained"
    )
    assert len(set(found)) == len(found), "a row is there twice"
    assert not set(acknowledged) - set(found), "an acknowledged row is lost"
    assert not set(found) - set(acknowledged) - doubted, "a row that nobody wrote, or was refused"
    assert all(landed.get(kind) for kind in ("native", "remote", "pyiceberg", "spark", "duckdb")), (
        f"a kind of writer starved: {landed}"
    )
    report = table.check(deep=True)
    assert not report.problems, str(report)
