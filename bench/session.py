"""A driver process that is asked things: JSON lines out and in."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.peers import Peer

ROOT = Path(__file__).resolve().parents[1]


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
            # Sources run from a checkout get bytecode like those that were installed.
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment},
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
