"""What a user on S3 feels: the same commits and plans, every request delayed and counted."""

from __future__ import annotations

from typing import Any

from bench.course import BenchRun, forgiving
from bench.object_store import BUCKET, ObjectStore
from bench.results import Outcome, median


def object_store(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Peers one after the other, each with the store to itself so that requests can be counted."""
    files, commits = workload["files"], workload["commits"]
    for peer in course.peers(workload):
        with (
            forgiving(outcome, peer.name, "object store"),
            ObjectStore(0) as store,
            course.session(peer, AWS_EC2_METADATA_DISABLED="true") as session,
        ):
            s3 = {"endpoint": store.endpoint, "bucket": BUCKET}
            session.ask("create", folder=course.place("object_store", peer), s3=s3)
            session.ask("populate", total=files)
            session.ask("commits", start=files, count=1, total=files)
            store.delay_ms = workload["delay_ms"]
            store.reset()
            spent = session.ask("commits", start=files + 1, count=commits, total=files)
            case = "commit one file"
            outcome.add(case, "p50", peer.name, median(spent), "ms")
            outcome.add(case, "requests", peer.name, store.total / commits, "requests")
            outcome.add(case, "bytes sent", peer.name, store.sent / commits, "B")
            for kind in ("day and country", "order_id", "all"):
                for heat in ("cold", "warm"):
                    store.reset()
                    with forgiving(outcome, peer.name, kind):
                        found = session.ask("plan", kind=kind, total=files, cold=heat == "cold")
                        case = f"plan {files:,} files, {kind}, {heat}"
                        outcome.add(case, "time", peer.name, found["ms"], "ms")
                        outcome.add(case, "requests", peer.name, store.total, "requests")
    outcome.note(
        f"{workload['delay_ms']} ms before every request; moto's own time is included and grows "
        "with the size of an answer. DuckLake's metadata is not on the object store."
    )
    outcome.note("Frazil's and PyIceberg's catalogs are SQLite files on the local disk here.")
