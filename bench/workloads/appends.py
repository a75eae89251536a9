"""Commits: one at a time, many writers at once, and what a long history costs a reader."""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack
from typing import Any

from bench.course import BenchRun, footprint, forgiving
from bench.peers import FRAZIL, PEERS, Peer
from bench.results import Outcome, median, quantile
from bench.servers import frazil_server
from bench.session import Session
from tests.support.postgres import PostgresUnavailable, postgres_server


def small_appends(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """One file per commit, in blocks, the peers taking turns.

    The last commits take turns with the first ones of a new table: the machine then and now is not
    what growth is about.
    """
    total, block, ends = workload["commits"], workload["block"], workload["ends"]
    peers = course.peers(workload)
    times: dict[str, list[float]] = {peer.name: [] for peer in peers}
    first: dict[str, list[float]] = {peer.name: [] for peer in peers}
    with course.sessions(peers) as sessions, course.sessions(peers) as new:
        folders = {peer.name: course.place("small_appends", peer) for peer in peers}
        before: dict[str, tuple[int, int]] = {}
        for peer in peers:
            name = peer.name
            _begin(sessions[name], folders[name], total)
            _begin(new[name], course.place("first_appends", peer), total)
            before[name] = footprint(folders[name])
            sessions[name].ask("drain")
        for start in range(0, total - ends, block):
            for name, session in sessions.items():
                count = min(block, total - ends - start)
                times[name] += session.ask("commits", start=start, count=count, total=total)
        for index in range(ends):
            for name, session in sessions.items():
                first[name] += new[name].ask("commits", start=index, count=1, total=total)
                at = total - ends + index
                times[name] += session.ask("commits", start=at, count=1, total=total)
        processor = {name: session.ask("drain") for name, session in sessions.items()}
    for name, spent in times.items():
        course.histories[name, total] = folders[name]
        files, size = footprint(folders[name])
        for share in (50, 95, 99):
            outcome.add("commit", f"p{share}", name, quantile(spent, share / 100), "ms")
        outcome.add("commit", "processor time, p50", name, median(processor[name]), "cpu ms")
        early, late = median(first[name]), median(spent[-ends:])
        outcome.add("commit", f"first {ends} of a new table, p50", name, early, "ms")
        outcome.add("commit", f"last {ends}, in turns with them, p50", name, late, "ms")
        outcome.add("commit", "growth, last over first", name, late / early, "×")
        if name != "DuckLake":
            outcome.add("objects", "files per commit", name, (files - before[name][0]) / total, "")
        grown = (size - before[name][1]) / total
        outcome.add("objects", "bytes kept per commit", name, grown, "B")
        step = max(1, total // 200)
        outcome.series.setdefault("ms per commit", {})[name] = [
            median(spent[at : at + step]) for at in range(0, total, step)
        ]
    outcome.note("DuckLake's commit also reads the footer of the small file it registers.")
    outcome.note(
        "Frazil and DuckLake sync to disk at commit; PyIceberg, delta-rs and Paimon do not."
    )


def _begin(session: Session, folder: str, total: int) -> None:
    """A new table, and a few commits that are not counted: the first ones import things."""
    session.ask("create", folder=folder)
    session.ask("commits", start=total, count=5, total=total)


def load(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Import, connect and load, in a new process each time."""
    most = workload.get("most", {})
    peers = course.peers(workload)
    for peer in peers:
        folder = course.place("load", peer)
        done = 0
        for commits in workload["commits"]:
            if commits > most.get(peer.name, commits):
                outcome.note(f"{peer.name} was not taken to {commits:,} commits: too slow.")
                continue
            with forgiving(outcome, peer.name, f"{commits:,} commits"):
                place = course.histories.get((peer.name, commits), folder)
                if place == folder:
                    with course.session(peer) as session:
                        session.ask("open" if done else "create", folder=folder)
                        session.ask("commits", start=done, count=commits - done, total=commits)
                    done = commits
                found = []
                for _ in range(workload["repeats"]):
                    with course.session(peer) as session:
                        found.append(session.ask("open", folder=place))
                case = f"{commits:,} commits"
                outcome.add(case, "load", peer.name, median(f["load_ms"] for f in found), "ms")
                whole = median(f["import_ms"] + f["load_ms"] for f in found)
                outcome.add(case, "import and load", peer.name, whole, "ms")
                kb = median(f["peak_kb"] for f in found)
                outcome.add(case, "memory of the process", peer.name, kb / 1024, "MB")


def concurrent_writers(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Processes that append at once; each retries its own lost races as its library does."""
    for peer in course.peers(workload):
        for writers in workload["writers"]:
            case = f"{writers} writer{'s' if writers > 1 else ''}"
            with forgiving(outcome, peer.name, case):
                found, spent = _competed(course, peer, writers, workload["commits"] // writers)
                _add_competition(outcome, case, peer.name, found, spent)
    with ExitStack() as stack:
        try:
            uri = stack.enter_context(postgres_server())
        except PostgresUnavailable as error:
            outcome.note(f"Not measured on PostgreSQL: {error}.")
        else:
            for writers in workload["writers"]:
                each = workload["shared"] // writers
                found, spent = _competed(course, PEERS[FRAZIL], writers, each, uri=uri)
                case = f"{writers} writer{'s' if writers > 1 else ''}, PostgreSQL"
                _add_competition(outcome, case, FRAZIL, found, spent)
    with frazil_server(course.place("serve_group", PEERS[FRAZIL])) as served:
        for writers in workload["writers"]:
            each = workload["shared"] // writers
            found, spent = _competed(course, PEERS[FRAZIL], writers, each, server=served.uri)
            case = f"{writers} writer{'s' if writers > 1 else ''}, through frazil serve"
            _add_competition(outcome, case, FRAZIL, found, spent)
    outcome.note("Through frazil serve, appends that arrive together share one snapshot.")
    outcome.note("DuckLake is left out: a DuckDB file admits one process.")
    outcome.note(
        "Frazil's commits are on disk when they return: the root, its folder and the database are "
        "synced. Paimon, PyIceberg and delta-rs sync nothing."
    )
    outcome.note(
        "PyIceberg's own retry settings are used; a commit that still fails is tried once more "
        "after a refresh, then counted as given up."
    )
    outcome.note(
        "Smallest share: commits of the slowest writer until the first one was done, over the fair "
        "share; 1 is perfectly fair."
    )


def _competed(
    course: BenchRun, peer: Peer, writers: int, each: int, **options: str
) -> tuple[list[dict[str, Any]], float]:
    """What each of some writers reports, and how long all took together."""
    with ExitStack() as stack:
        folder = course.place("concurrent_writers", peer)
        first = stack.enter_context(course.session(peer))
        name = f"shop_{uuid.uuid4().hex[:8]}.orders"
        options = {**options, "name": name} if options else {}
        first.ask("create", folder=folder, **options)
        first.ask("commits", start=0, count=1, total=1)
        started = [stack.enter_context(course.session(peer)) for _ in range(writers)]
        for number, session in enumerate(started):
            session.ask("open", folder=folder, **options)
            session.ask("commits", start=1_000_000 + number, count=1, total=2_000_000)
        began = time.perf_counter()
        for number, session in enumerate(started):
            session.send("compete", start=1 + number * each, count=each, total=each)
        return [session.answer() for session in started], time.perf_counter() - began


def _add_competition(
    outcome: Outcome, case: str, name: str, found: list[dict[str, Any]], spent: float
) -> None:
    landed = sum(f["landed"] for f in found)
    asked = sum(f["asked"] for f in found)
    outcome.add(case, "committed", name, landed / spent, "commits/s")
    outcome.add(case, "p99", name, quantile([ms for f in found for ms in f["ms"]], 0.99), "ms")
    if len(found) > 1:
        outcome.add(case, "smallest share", name, _smallest_share(found), "of the fair share")
    outcome.add(case, "given up", name, asked - landed, "commits")
    if name == FRAZIL:
        outcome.add(case, "lost races, retried", name, sum(f["retries"] for f in found), "retries")


def _smallest_share(found: list[dict[str, Any]]) -> float:
    """Of the commits that landed until the first writer was done."""
    end = min(f["at"][-1] for f in found if f["at"])
    counts = [sum(at <= end for at in f["at"]) for f in found]
    return float(min(counts) * len(counts) / sum(counts))
