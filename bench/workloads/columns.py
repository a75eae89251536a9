"""A wide table gets a new column with values, and new values of a column."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from bench.course import BenchRun, footprint, forgiving
from bench.drivers.columns_driver import PLAIN
from bench.drivers.rows import wide
from bench.peers import COLUMN_PEERS, COLUMN_SPARK_PEERS, FRAZIL, Peer
from bench.results import Outcome, median
from bench.session import Session

_PER_FILE = 100_000
_NEW, _VALUE = "margin", "c1 - c0 * 0.5"
_OLD, _NEW_VALUE = "c5", "c5 * 2 + 1"
_NOT_REWRITING = (FRAZIL, "Lance")


def column_updates(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """One peer after the other, as each has copies of its table; the large table goes to those
    that do not rewrite rows."""
    rows, columns = workload["rows"], workload["columns"]
    with _source(course, rows, columns) as source:
        for peers, where in ((COLUMN_PEERS, ""), (COLUMN_SPARK_PEERS, ", Spark")):
            taking_part = course.peers(workload, peers)
            if len(taking_part) < 2:  # nobody to compare with
                continue
            run = _Run(f"{rows:,} × {columns}{where}", source, workload, course, outcome)
            for peer in taking_part:
                with forgiving(outcome, peer.name, f"columns{where}"):
                    run.peer(peer)
            run.compared()
    if "large" in workload:
        rows = workload["large"]
        with _source(course, rows, columns) as source:
            run = _Run(f"{rows:,} × {columns}", source, workload, course, outcome)
            for name in _NOT_REWRITING:
                with forgiving(outcome, name, "columns, large"):
                    run.peer(COLUMN_PEERS[name], updates=False)
            run.compared()
    outcome.note(
        "Frazil writes column files, Lance's add_columns files of the new column. All others, "
        "and Lance's update, write rows again; `Frazil by rows` is Frazil with mode='rows'."
    )
    outcome.note(
        "scans are repeated; `over the table without column files` compares the best scan with "
        "the best of a clone whose column files were merged, both read in turns."
    )


@contextmanager
def _source(course: BenchRun, rows: int, columns: int) -> Iterator[list[str]]:
    """The rows as Parquet files, which all peers are filled from."""
    folder = course.folder / f"wide-{rows}"
    folder.mkdir(parents=True)
    files = []
    for first in range(0, rows, _PER_FILE):
        path = folder / f"{first:012d}.parquet"
        pq.write_table(wide(first, min(_PER_FILE, rows - first), columns), path)
        files.append(str(path))
    yield files
    shutil.rmtree(folder)


@dataclass(slots=True)
class _Run:
    """The same work by peers, one after the other."""

    case: str
    source: list[str]
    workload: dict[str, Any]
    course: BenchRun
    outcome: Outcome

    def peer(self, peer: Peer, *, updates: bool = True) -> None:
        """All that one peer does; its tables are removed."""
        folder = self.course.place("columns", peer)
        try:
            with self.course.session(peer) as session:
                session.ask("create", folder=folder, files=self.source)
                name = self._changes("add a column", session, folder, "add", _NEW, _VALUE)
                if updates:
                    self._changes("update a column", session, folder, "update", _OLD, _NEW_VALUE)
                self._totals(peer.name, session, name)
                self._scans(session, name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _changes(
        self, what: str, session: Session, folder: str, op: str, column: str, value: str
    ) -> str:
        """Do it to several columns, one after the other; which was the last."""
        answers, sizes = [], []
        for turn in range(self.workload["repeats"]):
            name = f"{column}{turn}" if op == "add" else f"c{int(column[1:]) + 4 * turn}"
            before = footprint(folder)[1]
            answers.append(session.ask(op, name=name, value=value.replace(column, name)))
            sizes.append(footprint(folder)[1] - before)
        peer, case = session.peer.name, f"{what}, {self.case}"
        self.outcome.add(case, "time", peer, median(a["ms"] for a in answers), "ms")
        self.outcome.add(case, "bytes written", peer, median(sizes), "B")
        if not self.case.endswith("Spark"):  # Spark works elsewhere
            cpu = median(a["cpu"] for a in answers)
            self.outcome.add(case, "processor time", peer, cpu, "cpu ms")
            peak = max(a["peak_kb"] for a in answers) / 1024
            self.outcome.add(case, "peak memory", peer, peak, "MB")
        return name

    def _totals(self, peer: str, session: Session, name: str) -> None:
        for column in (name, _OLD):
            total = session.ask("total", name=column)
            self.outcome.add(f"sum of {column}, {self.case}", "sum", peer, total, "")

    def _scans(self, session: Session, name: str) -> None:
        first = len(self.source) // 2 * _PER_FILE + 17
        times = session.ask("scans", name=name, first=first, repeats=self.workload["scans"])
        for what, spent in times.items():
            if what.endswith(PLAIN):
                continue
            case = f"scan of {what}, {self.case}"
            self.outcome.add(case, "time", session.peer.name, median(spent), "ms")
            if what + PLAIN in times:
                ratio = min(spent) / min(times[what + PLAIN])
                metric = "over the table without column files"
                self.outcome.add(case, metric, session.peer.name, ratio, "×")

    def compared(self) -> None:
        """Frazil beside the best that writes rows again."""
        for row in self.outcome.rows():
            rewrites = [v for name, v in row.values.items() if name not in _NOT_REWRITING]
            changes = row.case.endswith(self.case) and row.case.startswith(("add", "update"))
            if changes and row.metric in ("time", "bytes written") and rewrites:
                ratio = row.values[FRAZIL] / min(rewrites)
                metric = f"{row.metric} over the best rewrite"
                self.outcome.add(row.case, metric, FRAZIL, ratio, "×")
        for row in self.outcome.rows():
            if row.metric == "sum" and row.case.endswith(self.case):
                low, high = min(row.values.values()), max(row.values.values())
                if high - low > 1e-6 * abs(high):
                    self.outcome.note(f"{row.case}: the peers do not agree: {row.values}")
        self.outcome.figures = [f for f in self.outcome.figures if f.metric != "sum"]
