"""Spark jobs on the same rows: Frazil on its Spark, Iceberg Java on the Spark it supports."""

from __future__ import annotations

from typing import Any

from bench.course import BenchRun, forgiving
from bench.peers import FRAZIL, SPARK_PEERS
from bench.results import Outcome, median

STEPS = (
    "full scan",
    "count",
    "selective scan",
    "join of bucketed tables",
    "min, max, count of a column",
    "append",
    "append to 30 partitions",
    "delete 1 %",
    "scan, 1 % deleted",
    "count, 1 % deleted",
    "delete 0.1 %",
    "update 0.1 %",
    "update 1 %",
    "merge 1 %",
    "merge 10 %",
    "compaction",
)
READS = STEPS[:5]
"""Steps whose first turns are not counted: until then Java compiles what they run."""
ONCE = ("delete 1 %", "compaction")
"""Steps after which the next turn would find something else."""
OWN = ("selective scan, by the function",)
PROFILES = (
    "the version of Spark makes little difference: processor time of Frazil on PySpark 4.3, of "
    "Frazil on 4.1 and of Iceberg on 4.1, 1 million rows, best of nine turns on a busy machine: "
    "full scan 240, 240 and 320 ms; selective scan 80, 90 and 80 ms; join of bucketed tables 480, "
    "460 and 450 ms; append 640, 690 and 550 ms.",
    "an append hands rows to Python, which encodes them; Iceberg encodes them in Java. Samples of "
    "Frazil's writing tasks in Java: 31 % make the rows, 27 % put them into Arrow batches, 23 % "
    "are Spark's own check of a batch's bytes after every row "
    "(`spark.sql.execution.arrow.maxBytesPerBatch`), the rest sends them. Python takes 170 of the "
    "640 ms.",
)
"""Where the time of cases goes that take longer than Iceberg's, as profiles showed it."""


def spark(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Peers in turns, step by step; every step is the same SQL."""
    peers = course.peers(workload, SPARK_PEERS)
    with course.sessions(peers) as sessions:
        ready = []
        for peer in peers:
            with forgiving(outcome, peer.name, "start"):
                session = sessions[peer.name]
                session.ask(
                    "create",
                    folder=course.place("spark", peer),
                    rows=workload["rows"],
                    files=workload["files"],
                )
                session.ask("small_files", count=workload["small"])
                session.ask("bucketed", rows=workload["joined"])
                ready.append(peer.name)
        for step in (*STEPS, *OWN):
            takes = [FRAZIL] if step in OWN else ready
            repeats = 1 if step in ONCE else workload["repeats"]
            spent: dict[str, list[float]] = {name: [] for name in takes}
            for name in takes * workload["warm"] if step in READS else ():
                with forgiving(outcome, name, step):
                    sessions[name].ask("step", step=step, turn=0)
            for turn in range(repeats):
                for name in takes:
                    with forgiving(outcome, name, step):
                        spent[name].append(sessions[name].ask("step", step=step, turn=turn))
            for name, times in spent.items():
                if times:
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
            with forgiving(outcome, name, "sink"):
                spent = {name: sessions[name].ask("sink", batches=workload["batches"])}
                outcome.add("streaming sink", "trigger", name, median(spent[name]), "ms")
    outcome.note(
        "two Sparks: Frazil on PySpark 4.3, Iceberg 1.12 on PySpark 4.1 (the newest it supports); "
        "local[2], the first query of each session is not counted, nor are the first "
        f"turns ({workload['warm']}) of each of the first {len(READS)} cases."
    )
    for profile in PROFILES:
        outcome.note(profile)


PLAIN = "plain Parquet"


def spark_parquet(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """What a table costs over the bare files, in one session."""
    (peer,) = course.peers(workload, SPARK_PEERS)
    repeats = workload["repeats"]

    def both(case: str, times: list[list[float]], other: str = PLAIN) -> None:
        for name, spent in zip((FRAZIL, other), times, strict=True):
            outcome.add(case, "time", name, median(spent), "ms")

    with course.session(peer) as session:
        folder = course.place("spark_parquet", peer)
        session.ask("create", folder=folder, rows=workload["rows"], files=workload["files"])
        scans = session.ask("scans", repeats=repeats)
        both("full scan", scans["plain"])
        both("scan, 1 % of the rows deleted", scans["deleted"], "the same without deletes")
        both("append", session.ask("appends", rows=workload["rows"] // 4, repeats=repeats))
        many = workload["many"]
        both(f"one order of {many:,} files", session.ask("many_files", count=many, repeats=repeats))
        listed = workload["listed"]
        spent = session.ask("listed", count=listed, repeats=repeats)
        case = f"plan {listed:,} files and hand them to Spark"
        outcome.add(case, "time", FRAZIL, median(spent), "ms")
        found = session.ask("stream", batches=workload["batches"])
        outcome.add("streaming micro-batch", "our commit", FRAZIL, median(found["commit"]), "ms")
    outcome.note(
        "the append is clustered by day on both sides; plain Parquet keeps no statistics of its "
        "files apart from footers, no snapshots, and is not atomic."
    )
