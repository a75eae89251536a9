"""Spark jobs on the same rows: Frazil on its Spark, Iceberg Java on the Spark it supports."""

from __future__ import annotations

from typing import Any

from bench.course import Course, forgiving
from bench.peers import SPARK_PEERS
from bench.results import Outcome, median

STEPS = ("full scan", "selective scan", "append", "delete 1 %", "scan with deletes", "merge")


def spark(course: Course, workload: dict[str, Any], outcome: Outcome) -> None:
    """Peers in turn, step by step."""
    peers = course.peers(workload, SPARK_PEERS)
    with course.sessions(peers) as sessions:
        ready = []
        for peer in peers:
            with forgiving(outcome, peer.name, "start"):
                sessions[peer.name].ask(
                    "create",
                    folder=course.place("spark", peer),
                    rows=workload["rows"],
                    files=workload["files"],
                )
                ready.append(peer.name)
        for step in STEPS:
            for name in ready:
                with forgiving(outcome, name, step):
                    times = [
                        sessions[name].ask("step", step=step, turn=turn)
                        for turn in range(workload["repeats"])
                    ]
                    outcome.add(step, "time", name, median(times), "ms")
        for name in ready:
            with forgiving(outcome, name, "streaming"):
                found = sessions[name].ask("stream", batches=workload["batches"])
                outcome.add(
                    "streaming micro-batch", "whole batch", name, median(found["batch"]), "ms"
                )
                if found["commit"]:
                    outcome.add(
                        "streaming micro-batch", "our commit", name, median(found["commit"]), "ms"
                    )
    outcome.note(
        "two Sparks: Frazil on PySpark 4.3, Iceberg 1.12 on PySpark 4.1 (the newest it supports); "
        "local[2], the first query of each session is not counted."
    )
