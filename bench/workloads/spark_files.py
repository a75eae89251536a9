"""Tables of many files on Spark: what a plan, a count and a lookup take before any row is read."""

from __future__ import annotations

from typing import Any

from bench.course import BenchRun, forgiving
from bench.peers import FRAZIL, SPARK_PEERS
from bench.results import Outcome, median

STEPS = ("plan", "count", "one order")


def spark_files(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Peers in turns, size by size. The files are in metadata alone."""
    peers = course.peers(workload, SPARK_PEERS)
    with course.sessions(peers) as sessions:
        for peer in peers:
            place = course.place("spark_files", peer)
            sessions[peer.name].ask("create", folder=place, rows=1000, files=1)
        for files in workload["sizes"]:
            place = sessions[FRAZIL].ask("many_entries", files=files)
            for step in STEPS:
                spent: dict[str, list[float]] = {peer.name: [] for peer in peers}
                for turn in range(workload["repeats"] + 1):
                    for name, times in spent.items():
                        with forgiving(outcome, name, f"{step} of {files:,} files"):
                            took = sessions[name].ask("planned", step=step, files=files, at=place)
                            times += [took] if turn else []
                for name, times in spent.items():
                    if times:
                        outcome.add(f"{step}, {files:,} files", "time", name, median(times), "ms")
    outcome.note(
        "Frazil's table is published as Iceberg's metadata of version 3, which Iceberg reads by "
        "its path; neither has anything cached of the table. A plan ends with Spark's tasks, a "
        "count with its number."
    )
