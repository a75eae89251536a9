"""Tables in one bucket without a database: commits of writers that compete, and a cold plan."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from bench.course import BenchRun, forgiving
from bench.peers import BUCKET_PEERS
from bench.results import Outcome, median
from bench.session import Session
from tests.support.object_server import new_bucket, versitygw
from tests.support.request_proxy import Proxy, request_proxy


def bucket_catalog(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Every peer has a bucket of its own on the same server, behind a proxy that waits before each
    request and counts them."""
    with versitygw() as server:
        for peer in course.peers(workload, BUCKET_PEERS):
            with forgiving(outcome, peer.name, "bucket"), ExitStack() as stack:
                sessions = [
                    stack.enter_context(course.session(peer, AWS_EC2_METADATA_DISABLED="true"))
                    for _ in range(max(workload["writers"]))
                ]
                for delay_ms in workload["delays_ms"]:
                    folder = course.place(f"bucket-{delay_ms}", peer)
                    with request_proxy(new_bucket(server)) as proxy:
                        _connect(sessions, proxy, folder)
                        proxy.delay_seconds = delay_ms / 1000
                        run = _Run(peer.name, delay_ms, sessions, proxy, outcome)
                        run.appends(workload["commits"])
                        for writers in workload["writers"]:
                            if writers <= workload["most"].get(peer.name, writers):
                                run.competition(writers, workload["commits"])
                        run.plan()
    outcome.note(
        "Frazil's catalog is in the bucket, as the logs of delta-rs and Lance are; PyIceberg's is "
        "a SQLite file on the local disk. Lance keeps no statistics per fragment, so its plan "
        "leaves all of them."
    )


def _connect(sessions: list[Session], proxy: Proxy, folder: str) -> None:
    properties = proxy.bucket.properties
    place = {
        "endpoint": proxy.bucket.endpoint,
        "bucket": proxy.bucket.name,
        "key": properties["s3.access-key-id"],
        "secret": properties["s3.secret-access-key"],
    }
    for at, session in enumerate(sessions):
        session.ask("connect", place=place, folder=folder)
        if at == 0:
            session.ask("create")
        session.ask("appends", start=50_000 + at, count=1)  # a first append loads the library


@dataclass(frozen=True, slots=True)
class _Run:
    """One peer at one delay."""

    peer: str
    delay_ms: int
    sessions: list[Session]
    proxy: Proxy
    outcome: Outcome

    def appends(self, count: int) -> None:
        """Appends of a handle that is open."""
        self.sessions[0].ask("appends", start=1, count=2)
        self.proxy.clear()
        spent = self.sessions[0].ask("more", start=3, count=count)
        case = f"append at {self.delay_ms} ms"
        self.outcome.add(case, "p50", self.peer, median(spent), "ms")
        self.outcome.add(case, "requests", self.peer, self._requests / count, "requests")

    def competition(self, writers: int, count: int) -> None:
        """Appends of several processes."""
        self.proxy.clear()
        for at, session in enumerate(self.sessions[:writers]):
            session.send("compete", writer=writers * 10 + at, count=count)
        found = [session.answer() for session in self.sessions[:writers]]
        landed = sum(each["landed"] for each in found)
        seconds = max(sum(each["ms"]) for each in found) / 1000
        case = f"{writers} writers at {self.delay_ms} ms"
        self.outcome.add(case, "commits per second", self.peer, landed / seconds, "/s")
        each = self._requests / max(landed, 1)
        self.outcome.add(case, "requests per commit", self.peer, each, "requests")
        if landed < writers * count:
            missing = writers * count - landed
            self.outcome.note(f"{self.peer}, {case}: {missing} commits failed")

    def plan(self) -> None:
        """The table opened anew, and the files of one id."""
        self.proxy.clear()
        found = self.sessions[0].ask("plan", number=1)
        case = f"cold open and plan of one id at {self.delay_ms} ms"
        self.outcome.add(case, "time", self.peer, found["ms"], "ms")
        self.outcome.add(case, "requests", self.peer, self._requests, "requests")
        self.outcome.add(case, "files left", self.peer, found["files"], "files")

    @property
    def _requests(self) -> int:
        return len(self.proxy.requests)
