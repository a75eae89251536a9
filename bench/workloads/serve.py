"""The REST server: commits of one client on it and on Iceberg's own, plans made by the client and
by the server, and appends of many processes at once."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from bench.course import BenchRun, footprint
from bench.peers import FRAZIL, PEERS
from bench.results import Outcome, median, quantile
from bench.servers import REFERENCE, CannotStart, Server, frazil_server, reference_server
from bench.session import Session
from tests.support.postgres import PostgresUnavailable, postgres_server

PYICEBERG = PEERS["PyIceberg"]
EMBEDDED = "no server, SQLite"
POSTGRES = "no server, PostgreSQL"
_UNCOUNTED = 5


def serve(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Three questions about `frazil serve`."""
    _commits(course, workload, outcome)
    _plans(course, workload, outcome)
    _groups(course, workload, outcome)


# Commits of a client


def _commits(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """PyIceberg appends one file per commit: the same client on both servers, in turns."""
    total, block = workload["commits"], workload["block"]
    times: dict[str, list[float]] = {}
    with ExitStack() as stack:
        found: dict[str, tuple[Session, Server, str]] = {}
        for name, start in ((FRAZIL, frazil_server), (REFERENCE, reference_server)):
            folder = course.place(f"serve_commits_{len(found)}", PEERS[FRAZIL])
            server = _started(stack, outcome, name, start(folder))
            if server is None:
                continue
            session = stack.enter_context(course.session(PYICEBERG))
            session.ask("create", folder=folder, rest=server.uri)
            session.ask("commits", start=total, count=_UNCOUNTED, total=total)
            session.ask("drain")
            found[name] = (session, server, folder)
            times[name] = []
        before = {
            name: (server.processor_ms(), footprint(at)) for name, (_, server, at) in found.items()
        }
        for start in range(0, total, block):
            for name, (session, _, _) in found.items():
                count = min(block, total - start)
                times[name] += session.ask("commits", start=start, count=count, total=total)
        case = "PyIceberg commits, one file each"
        for name, (session, server, folder) in found.items():
            used, (files, size) = before[name]
            for share in (50, 99):
                outcome.add(case, f"p{share}", name, quantile(times[name], share / 100), "ms")
            client = median(session.ask("drain"))
            outcome.add(case, "processor time of the client, p50", name, client, "cpu ms")
            spent = (server.processor_ms() - used) / total
            outcome.add(case, "processor time of the server, mean", name, spent, "cpu ms")
            now = footprint(folder)
            outcome.add(case, "files per commit", name, (now[0] - files) / total, "")
            outcome.add(case, "bytes kept per commit", name, (now[1] - size) / total, "B")
    outcome.note(
        "Iceberg's reference server is RESTCatalogServer 1.11.0 on a SQLite file. It does not sync "
        "metadata files to disk; frazil serve does."
    )


def _started(
    stack: ExitStack, outcome: Outcome, name: str, starting: AbstractContextManager[Server]
) -> Server | None:
    try:
        return stack.enter_context(starting)
    except CannotStart as error:
        if name == FRAZIL:
            raise
        outcome.note(f"{name} was not measured: {error}.")
        return None


# Plans


def _plans(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """PyIceberg plans a scan: from manifests that it reads itself, and by asking the server."""
    files = workload["files"]
    folder = course.populated(PEERS[FRAZIL], files)
    ways = {"the client reads manifests": "client", "the server plans": "server"}
    with ExitStack() as stack:
        server = stack.enter_context(frazil_server(folder))
        sessions: dict[str, Session] = {}
        for way, mode in ways.items():
            sessions[way] = stack.enter_context(course.session(PYICEBERG))
            sessions[way].ask("open", folder=folder, rest=server.uri, planning=mode)
        # The first load has manifests made for a client; they are kept.
        first = sessions["the client reads manifests"].ask(
            "plan", kind="day", total=files, cold=True
        )
        outcome.add(
            f"{files:,} files, first plan of a client", "manifests made", FRAZIL, first["ms"], "ms"
        )
        for kind in ("day", "all"):
            case = f"{files:,} files, {kind}"
            listed: dict[str, int] = {}
            found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
            for _ in range(workload["repeats"]):
                for way, session in sessions.items():
                    session.ask("drain")
                    used = server.processor_ms()
                    answer = session.ask("plan", kind=kind, total=files, cold=True)
                    spent = server.processor_ms() - used
                    found[way].append((answer["ms"], session.ask("drain")[-1], spent))
                    listed[way] = answer["files"]
            for way, answers in found.items():
                whole, client, served = (median(part) for part in zip(*answers, strict=True))
                outcome.add(case, way, FRAZIL, whole, "ms")
                outcome.add(case, f"{way}, processor time of the client", FRAZIL, client, "cpu ms")
                outcome.add(case, f"{way}, processor time of the server", FRAZIL, served, "cpu ms")
            if len(set(listed.values())) > 1:
                outcome.note(f"{case}: the plans differ in files: {listed}")
    outcome.note(
        "Plans are cold for the client: it loads the table again and has no manifest in memory. "
        "PyIceberg makes objects of what it gets, which is most of its time on a plan of all files."
    )


# Many writers


def _groups(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Processes that append at once: through the server, and each on the catalog itself."""
    most = max(workload["writers"])
    with ExitStack() as stack:
        sessions = [stack.enter_context(course.session(PEERS[FRAZIL])) for _ in range(most)]
        folder = course.place("serve_groups", PEERS[FRAZIL])
        served = stack.enter_context(frazil_server(folder))
        ways: dict[str, tuple[dict[str, str], int, Server | None]] = {
            FRAZIL: ({"server": served.uri}, workload["appends"], served),
            EMBEDDED: ({}, workload["direct"], None),
        }
        try:
            database = stack.enter_context(postgres_server())
        except PostgresUnavailable as error:
            outcome.note(f"Not measured on PostgreSQL: {error}.")
        else:
            ways[POSTGRES] = ({"uri": database}, workload["direct"], None)
        for writers in workload["writers"]:
            for name, (options, count, server) in ways.items():
                place = course.place(f"serve_direct_{len(options)}_{writers}", PEERS[FRAZIL])
                _appended(outcome, sessions[:writers], name, options, place, count, server)
    outcome.note("Through the server, appends that arrive together share one snapshot.")
    outcome.note(
        "Writers and server share the machine's cores. A commit is answered when its metadata file "
        "and the SQLite catalog are synced; the PostgreSQL server of the benchmark does not sync."
    )


def _appended(
    outcome: Outcome,
    sessions: Sequence[Session],
    name: str,
    options: dict[str, str],
    folder: str,
    count: int,
    server: Server | None,
) -> None:
    writers = len(sessions)
    each = max(2, count // writers)
    options = {**options, "name": f"shop_{uuid.uuid4().hex[:8]}.orders"}
    sessions[0].ask("create", folder=folder, **options)
    for number, session in enumerate(sessions):
        session.ask("open", folder=folder, **options)
        session.ask("commits", start=1_000_000 + number, count=2, total=2_000_000)
        session.ask("prepare", start=1 + number * each, count=each, total=writers * each)
    used = 0.0 if server is None else server.processor_ms()
    began = time.time()
    for number, session in enumerate(sessions):
        session.send("compete", start=1 + number * each, count=each, total=writers * each)
    found = [session.answer() for session in sessions]
    spent = max(answer["at"][-1] for answer in found) - began
    landed = sum(answer["landed"] for answer in found)
    case = f"{writers} process{'es' if writers > 1 else ''} append"
    outcome.add(case, "committed", name, landed / spent, "commits/s")
    every = [ms for answer in found for ms in answer["ms"]]
    outcome.add(case, "p50", name, quantile(every, 0.5), "ms")
    outcome.add(case, "p99", name, quantile(every, 0.99), "ms")
    if server is not None:
        spent_ms = (server.processor_ms() - used) / landed
        outcome.add(case, "processor time of the server", name, spent_ms, "cpu ms")
    client = sum(answer["cpu"] for answer in found) / landed
    outcome.add(case, "processor time of the writers", name, client, "cpu ms")
    asked = sum(answer["asked"] for answer in found)
    outcome.add(case, "given up", name, asked - landed, "commits")
