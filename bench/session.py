"""A driver process that is asked things: JSON lines out and in."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.peers import DRIVERS, Peer

ROOT = Path(__file__).resolve().parents[1]
# Sources run from a checkout get bytecode like those that were installed.
_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}


class Skipped(Exception):
    """The peer cannot do it, and says why."""


class Failed(Exception):
    """The peer tried and failed."""


class Session:
    """One running driver."""

    def __init__(self, peer: Peer, log: Path, **environment: str) -> None:
        self.peer = peer
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log.open("a")
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            peer.command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, **_BYTECODE, **environment},
        )

    def ask(self, op: str, **arguments: Any) -> Any:
        """Send a request and wait for its answer."""
        self.send(op, **arguments)
        return self.answer()

    def send(self, op: str, **arguments: Any) -> None:
        """Send a request; `answer` waits for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """The answer to the request sent before."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"{self.peer.name}: the driver ended; see {self._log.name}")
        answer = json.loads(line)
        if "skip" in answer:
            raise Skipped(answer["skip"])
        if "error" in answer:
            raise Failed(f"{self.peer.name}: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        """End the driver."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def whole_process(peer: Peer, script: str, *arguments: str) -> dict[str, Any]:
    """A script in the peer's environment, from the start of Python to its end: time, processor time
    of all threads, and what it printed."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [peer.command[0], str(DRIVERS / script), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **_BYTECODE},
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        printed, complaint = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        ms = (time.perf_counter() - began) * 1000
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Failed(f"{peer.name}: {script} failed: {complaint.splitlines()[-1:]}")
    return {"ms": ms, "cpu": (usage.ru_utime + usage.ru_stime) * 1000, "result": printed.strip()}
