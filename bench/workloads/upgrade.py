"""A v2 table of another writer: taken over in place, and planned before and after."""

from __future__ import annotations

from typing import Any

from bench.course import BenchRun
from bench.peers import FRAZIL, PEERS
from bench.results import Outcome, median

KINDS = ("day and country", "order_id", "all")


def upgrade(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """PyIceberg writes the table; Frazil upgrades it, commits to it, rewrites its manifests."""
    files = workload["files"]
    theirs, ours = PEERS["PyIceberg"], PEERS[FRAZIL]
    folder = course.populated(theirs, files)
    times: dict[tuple[str, str], float] = {}
    with course.session(theirs) as session:
        session.ask("open", folder=folder)
        session.ask("plan", kind="day", total=files, cold=True)
        for kind in KINDS:
            times["PyIceberg", kind] = session.ask("plan", kind=kind, total=files, cold=True)["ms"]
    with course.session(ours) as session:
        opened = session.ask("open_legacy", folder=folder)
        outcome.add(f"{files:,} files", "open read-only", FRAZIL, opened["load_ms"], "ms")
        session.ask("plan_legacy", kind="day", total=files)
        for stage in ("before the upgrade", "upgraded", "manifests rewritten"):
            if stage == "upgraded":
                done = session.ask("upgrade", folder=folder)
                outcome.add(f"{files:,} files", "upgrade", FRAZIL, done["ms"], "ms")
                outcome.add(f"{files:,} files", "bytes written", FRAZIL, done["written"], "B")
                outcome.add(f"{files:,} files", "bytes read", FRAZIL, done["read"], "B")
                first = session.ask("commits", start=files, count=1, total=files)
                outcome.add(f"{files:,} files", "first commit after it", FRAZIL, first[0], "ms")
            if stage == "manifests rewritten":
                ms = session.ask("rewrite_manifests")
                outcome.add(f"{files:,} files", "rewrite manifests", FRAZIL, ms, "ms")
            for kind in KINDS:
                answers = [
                    session.ask("plan_legacy", kind=kind, total=files)["ms"]
                    for _ in range(workload["repeats"])
                ]
                case = f"{stage}, {kind}"
                outcome.add(case, "cold plan", FRAZIL, median(answers), "ms")
                outcome.add(case, "cold plan", "PyIceberg", times["PyIceberg", kind], "ms")
    outcome.note("PyIceberg's plan is of its own v2 table, before the upgrade.")
