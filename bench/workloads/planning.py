"""Which files must a query read: time, memory and bytes, on tables of growing size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.course import BenchRun, forgiving
from bench.drivers import shop
from bench.drivers.first_plan import PLANS
from bench.peers import FRAZIL, Peer
from bench.results import Outcome, median
from bench.session import whole_process

KINDS = ("day and country", "day", "order_id", "all")


def planning(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Four queries, cold and warm, the peers taking turns."""
    most = workload.get("most", {})
    for size in workload["sizes"]:
        peers = [p for p in course.peers(workload) if size <= most.get(p.name, size)]
        ready = []
        for peer in peers:
            with forgiving(outcome, peer.name, f"populating {size:,} files"):
                course.populated(peer, size)
                ready.append(peer)
        with course.sessions(ready) as sessions:
            for peer in ready:
                sessions[peer.name].ask("open", folder=course.populated(peer, size))
                sessions[peer.name].ask("plan", kind="day", total=size, cold=True)
            for kind in KINDS:
                _one_kind(outcome, sessions, kind, size, workload)
        _first_plan(course, outcome, ready, size, workload["starts"])
        for peer in ready:
            _memory(course, outcome, peer, size)
    outcome.note(
        "cold and warm are of a running process, which has imported the library and planned "
        "before. A new process is timed from the start of Python to its end: it imports the "
        "library, opens the table and plans. cold: the table is loaded again and nothing decoded "
        "before is reused; the operating system still has the files in memory."
    )
    outcome.note(
        "delta-rs keeps the whole log in memory once loaded: its warm figures are of that. Frazil "
        "keeps decoded manifests and the compiled form of a filter that was planned before; of a "
        "warm plan, half is comparing the filter with the statistics of the root and of the leaf "
        "that is left, a few microseconds for each operation on Arrow's columns, and 3 % is asking "
        "the catalog for a newer version."
    )


def _one_kind(
    outcome: Outcome, sessions: dict[str, Any], kind: str, size: int, workload: dict[str, Any]
) -> None:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    tired: set[tuple[str, str]] = set()
    for _ in range(workload["repeats"]):
        for name, session in sessions.items():
            for heat in ("cold", "warm"):
                if (name, heat) in tired:
                    continue
                with forgiving(outcome, name, f"{kind}, {size:,} files"):
                    answer = session.ask("plan", kind=kind, total=size, cold=heat == "cold")
                    answer["cpu"] = session.ask("drain")[-1]
                    found.setdefault((name, heat), []).append(answer)
                    if answer["ms"] > workload["patience"] * 1000:
                        tired.add((name, heat))
    case = f"{size:,} files, {kind}"
    for heat in ("cold", "warm"):
        for name in sessions:
            answers = found.get((name, heat), [])
            if answers:
                outcome.add(case, heat, name, median(a["ms"] for a in answers), "ms")
                cpu = min(a["cpu"] for a in answers)
                outcome.add(case, f"{heat}, processor time, least", name, cpu, "cpu ms")
                outcome.series.setdefault(f"{kind}, {heat} (ms)", {}).setdefault(name, []).append(
                    median(a["ms"] for a in answers)
                )
    ours = found.get((FRAZIL, "cold"))
    if ours:
        outcome.add(case, "leaves opened", FRAZIL, ours[0]["leaves"], "leaves")
        outcome.add(case, "metadata bytes read", FRAZIL, ours[0]["bytes"], "B")
    counts = {name: a[0]["files"] for (name, heat), a in found.items() if heat == "cold"}
    if len(set(counts.values())) > 1:
        outcome.note(f"{case}: the plans differ in files: {counts}")


def _first_plan(
    course: BenchRun, outcome: Outcome, peers: list[Peer], size: int, starts: int
) -> None:
    """The first selective plan of a new process, the peers taking turns; the first turn, which may
    compile modules, does not count."""
    found: dict[str, list[dict[str, Any]]] = {}
    for turn in range(starts + 1):
        for peer in peers:
            if peer.name not in PLANS:
                continue
            with forgiving(outcome, peer.name, f"new process, {size:,} files"):
                folder = course.populated(peer, size)
                day = shop.WANTED_DAY.isoformat()
                answer = whole_process(peer, "first_plan.py", peer.name, folder, day)
                if turn:
                    found.setdefault(peer.name, []).append(answer)
    case = f"{size:,} files, day"
    for name, answers in found.items():
        outcome.add(case, "new process", name, median(a["ms"] for a in answers), "ms")
        least = min(a["cpu"] for a in answers)
        outcome.add(case, "new process, processor time, least", name, least, "cpu ms")
    counts = {name: answers[0]["result"] for name, answers in found.items()}
    if len(set(counts.values())) > 1:
        outcome.note(f"{case}, new process: the plans differ in files: {counts}")


def _memory(course: BenchRun, outcome: Outcome, peer: Any, size: int) -> None:
    with forgiving(outcome, peer.name, f"memory, {size:,} files"):
        with course.session(peer) as session:
            session.ask("open", folder=course.populated(peer, size))
            before = session.ask("plan", kind="day", total=size, cold=True)["peak_kb"]
            after = session.ask("plan", kind="all", total=size, cold=False)["peak_kb"]
        case = f"{size:,} files, all"
        outcome.add(
            case, "peak memory over a small plan", peer.name, (after - before) / size, "kB/file"
        )


def wide_table(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Two columns of many: what is read of the others?"""
    files, columns = workload["files"], workload["columns"]
    peers = course.peers(workload)
    found: dict[str, list[dict[str, Any]]] = {}
    with course.sessions(peers) as sessions:
        for peer in peers:
            with forgiving(outcome, peer.name, "populating"):
                folder = course.populated(peer, files, columns)
                sessions[peer.name].ask("open", folder=folder)
                sessions[peer.name].ask("plan_wide", total=files)
        for _ in range(workload["repeats"]):
            for name, session in sessions.items():
                with forgiving(outcome, name, "planning"):
                    found.setdefault(name, []).append(session.ask("plan_wide", total=files))
    case = f"{files:,} files, {columns} columns"
    for name, answers in found.items():
        outcome.add(case, "cold", name, median(a["ms"] for a in answers), "ms")
    ours = Path(course.populated(peers[0], files, columns))
    whole = sum(path.stat().st_size for path in ours.rglob("*.parquet"))
    read = found[FRAZIL][0]["bytes"]
    outcome.add(case, "metadata bytes", FRAZIL, whole, "B")
    outcome.add(case, "of which read", FRAZIL, read, "B")
    outcome.add(case, "share read", FRAZIL, 100 * read / whole, "%")
