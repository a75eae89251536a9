"""Work on rows and in SQL: upserts, compaction, a row among many files, TPC-H."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.course import BenchRun, forgiving
from bench.results import Outcome, median
from bench.session import Session
from tests.support.tpch import generate, queries

PLAIN = "plain Parquet"
DELETED = "DELETE FROM lineitem WHERE (l_orderkey * 7 + l_linenumber) % 100 = 3"


def upsert(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Rows arrive by key, half of them known: small for all peers, large for those that can."""
    most = workload["most"]
    for rows, count in workload["sizes"]:
        peers = [peer for peer in course.peers(workload) if rows <= most.get(peer.name, rows)]
        case = f"{count:,} rows into {rows:,}"
        with course.sessions(peers) as sessions:
            for peer in peers:
                with forgiving(outcome, peer.name, case):
                    place = course.place(f"upsert-{rows}", peer)
                    ask = sessions[peer.name].ask
                    ask("create_keyed", folder=place, rows=rows, files=workload["files"])
            found: dict[str, list[dict[str, Any]]] = {}
            for turn in range(workload["repeats"]):
                for name, session in sessions.items():
                    with forgiving(outcome, name, case):
                        answer = session.ask("upsert", rows=rows, count=count, turn=turn)
                        found.setdefault(name, []).append(answer)
            _spent(outcome, case, found)
            _agree(outcome, case, sessions)
    outcome.note(
        "half of the rows have a key of the table. Frazil and DuckLake mark rows as deleted and "
        "write the new ones; delta-rs and PyIceberg rewrite data files. Of the smaller upsert in "
        "Frazil, half is the join in DuckDB, with its scans and their binding, an eighth is "
        "writing the new rows, and a third the commit: deletion vectors of each file, the root, "
        "SQLite, and the syncs of three files and their folders."
    )


def compaction(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Many small files become few."""
    files, rows = workload["files"], workload["rows"]
    peers = course.peers(workload)
    case = f"{files:,} files of {rows:,} rows"
    with course.sessions(peers) as sessions:
        for peer in peers:
            with forgiving(outcome, peer.name, case):
                place = course.place("compaction", peer)
                ask = sessions[peer.name].ask
                ask("create_keyed", folder=place, rows=files * rows, files=files)
        found: dict[str, list[dict[str, Any]]] = {}
        for name, session in sessions.items():
            with forgiving(outcome, name, case):
                found[name] = [session.ask("compact")]
        _spent(outcome, case, found)
        _agree(outcome, case, sessions)
        for name, session in sessions.items():
            outcome.add(case, "files left", name, session.ask("keyed_state")[1], "")
    outcome.note(
        "Of Frazil's processor time, 45 % is reading: for each small file 0.03 ms to open it and "
        "compare its checksum and 0.05 ms to decode four columns in pyarrow, then rows put "
        "together with their ids. A third is encoding with zstd, two columns of row lineage among "
        "them, a twentieth statistics; the rest is planning, the commit, and Python's modules."
    )


def lookup(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """One row of a table of many files, of which only the one that holds it exists."""
    files, order = workload["files"], 1 << 60
    peers = course.peers(workload)
    case = f"one row among {files:,} files"
    with course.sessions(peers) as sessions:
        for peer in peers:
            with forgiving(outcome, peer.name, case):
                place = course.populated(peer, files)
                sessions[peer.name].ask("open", folder=place)
                sessions[peer.name].ask("add_file", order_id=order)
        for heat in ("cold", "warm"):
            found: dict[str, list[dict[str, Any]]] = {}
            for _ in range(workload["repeats"]):
                for name, session in sessions.items():
                    with forgiving(outcome, name, case):
                        answer = session.ask("lookup", order_id=order + 7, cold=heat == "cold")
                        if answer["result"] != 1:
                            outcome.note(f"{name} found {answer['result']} rows instead of one")
                        found.setdefault(name, []).append(answer)
            _spent(outcome, f"{case}, {heat}", found)


def tpch(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """The 22 queries in turns, query by query; then again with 1 % of lineitem deleted."""
    source = course.folder / "tpch"
    source.mkdir(parents=True, exist_ok=True)
    generate(workload["scale"], source)
    texts = queries()
    peers = course.peers(workload)
    with course.sessions(peers) as sessions:
        files: dict[str, list[str]] = {}
        for peer in peers:
            place = course.place("tpch-tables", peer)
            if peer.name == PLAIN:
                sessions[peer.name].ask("attach", files=files)
            else:
                answer = sessions[peer.name].ask("tpch", folder=place, source=str(source))
                files = answer or files
        scale = f"scale {workload['scale']:g}, 22 queries"
        _rounds(outcome, scale, sessions, texts, workload["repeats"])
        for name, session in sessions.items():
            if name != PLAIN:
                session.ask("query", text=DELETED)
        _rounds(outcome, f"{scale}, 1 % of lineitem deleted", sessions, texts, workload["repeats"])
    outcome.note(
        "the best time of each query, added up; plain Parquet are the same data files, and after "
        "the delete they still hold the deleted rows."
    )


def _rounds(
    outcome: Outcome, case: str, sessions: dict[str, Session], texts: list[str], repeats: int
) -> None:
    best: dict[str, list[dict[str, float]]] = {name: [{} for _ in texts] for name in sessions}
    names = list(sessions)
    for turn in range(repeats):
        for at, text in enumerate(texts):
            first = (turn + at) % len(names)
            for name in (*names[first:], *names[:first]):
                answer = sessions[name].ask("query", text=text)
                known = best[name][at]
                for key in ("ms", "cpu"):
                    known[key] = min(known.get(key, answer[key]), answer[key])
    for metric, key, unit in (("time", "ms", "ms"), ("processor time", "cpu", "cpu ms")):
        total = {name: sum(each[key] for each in found) for name, found in best.items()}
        for name, value in total.items():
            outcome.add(case, metric, name, value, unit)
        for name, value in total.items():
            if name != PLAIN and PLAIN in total:
                outcome.add(case, f"{metric} over plain Parquet", name, value / total[PLAIN], "×")


def _spent(outcome: Outcome, case: str, found: dict[str, list[dict[str, Any]]]) -> None:
    for name, answers in found.items():
        outcome.add(case, "time, least", name, min(_all(answers, "ms")), "ms")
        outcome.add(case, "time", name, median(_all(answers, "ms")), "ms")
        outcome.add(case, "processor time, least", name, min(_all(answers, "cpu")), "cpu ms")
        outcome.add(case, "peak memory", name, max(_all(answers, "peak_kb")) / 1024, "MB")


def _all(answers: Iterable[dict[str, Any]], key: str) -> list[float]:
    return [float(answer[key]) for answer in answers]


def _agree(outcome: Outcome, case: str, sessions: dict[str, Session]) -> None:
    rows = {}
    for name, session in sessions.items():
        with forgiving(outcome, name, case):
            rows[name] = session.ask("keyed_state")[0]
    if len(set(rows.values())) > 1:
        outcome.note(f"{case}: the peers do not agree on the number of rows: {rows}")
