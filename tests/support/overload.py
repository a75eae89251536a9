"""A server between clients that misbehave and clients that do not: what the latter see of it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

import frazil
from tests.support.orders import served_orders
from tests.support.project import ROOT

LOAD = "/v1/namespaces/shop/tables/orders"
ROWS = pa.table({"id": [1]})
FRAZIL = (sys.executable, "-c", "from frazil.cli import main; main()")
LOG = "server.log"
ANSWER_S = 120.0
"""A request that takes longer hangs."""


@dataclass(kw_only=True)
class Figures:
    """What well-behaved clients met, and what the server took."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    refusals: int = 0
    memory_mb: float = 0.0
    rude: dict[str, int] = field(default_factory=dict)

    @property
    def answered(self) -> int:
        return sum(map(len, self.seconds.values()))

    def p99(self, kind: str | None = None) -> float:
        """The time that one request in a hundred exceeds."""
        taken = [
            second
            for name, seconds in self.seconds.items()
            for second in seconds
            if kind in (None, name)
        ]
        return float(np.percentile(taken, 99)) if taken else 0.0

    def __str__(self) -> str:
        kinds = ", ".join(
            f"{name}: {len(taken)} answered, p99 {self.p99(name):.2f} s, worst {max(taken):.2f} s"
            for name, taken in self.seconds.items()
            if taken
        )
        return (
            f"{self.answered} answered, p99 {self.p99():.2f} s ({kinds}); {self.refusals} told to "
            f"come again; {len(self.failures)} failed; {self.memory_mb:.0f} MB; rude: {self.rude}"
        )


@contextmanager
def serving(warehouse: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address. A token is the name of its owner."""
    tokens = warehouse.parent / "tokens.toml"
    tokens.write_text(
        "".join(
            f'[tokens.{name}]\nsha256 = "{sha256(name.encode()).hexdigest()}"\n'
            'rules = ["write:shop"]\n'
            for name in ("polite", "rude")
        )
    )
    with (warehouse.parent / LOG).open("w") as log:
        server = subprocess.Popen(
            [*FRAZIL, "serve", "--catalog", str(warehouse), "--port", "0", "--tokens", str(tokens)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        yield server, line.split()[1]
    finally:
        server.terminate()
        server.wait(60)


def peak_mb(process: int) -> float:
    """The most memory that a process has had."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


_HEADERS = {"Accept-Encoding": "gzip", "Authorization": "Bearer polite"}


class _Polite:
    """A client that asks again when it is told to, over one connection."""

    def __init__(self, uri: str, figures: Figures, lock: threading.Lock) -> None:
        parts = urlsplit(uri)
        self._where = (parts.hostname or "", parts.port)
        self._figures, self._lock = figures, lock
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: Any = None) -> None:
        data = None if body is None else json.dumps(body).encode()
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                if self._connection is None:
                    self._connection = http.client.HTTPConnection(*self._where, timeout=ANSWER_S)
                self._connection.request(method, path, data, _HEADERS)
                answer = self._connection.getresponse()
                answer.read()
            except (http.client.HTTPException, ConnectionError):
                self._connection = None  # it was idle, and made room for another
                if time.monotonic() > deadline:
                    raise
                continue
            if answer.status not in (429, 503):
                break
            with self._lock:
                self._figures.refusals += 1
            assert answer.headers["Retry-After"], "not told when to come again"
            assert time.monotonic() < deadline, "refused for ever"
            time.sleep(float(answer.headers["Retry-After"]) / 4)
        assert answer.status < 300, answer.status


def overloaded(folder: Path, *, polite: int, rude: int, seconds: float) -> Figures:
    """Let both kinds of clients at a server, and count."""
    warehouse = folder / "warehouse"
    with frazil.connect(warehouse) as catalog:
        served_orders(catalog, 4_000, files_per_day=200)
        table = catalog.create_table("shop.appended", ROWS.schema)
        key = table._handle.head.key  # type: ignore[attr-defined]
    figures, lock = Figures(), threading.Lock()
    appended = 0

    def work(number: int) -> None:
        nonlocal appended
        client = _Polite(uri, figures, lock)
        with frazil.connect(uri, token="polite") as remote:
            mine = remote["shop.appended"]
            day = {"type": "eq", "term": "order_date", "value": "2024-01-15"}
            kinds: dict[str, Callable[[], object]] = {
                "load": lambda: client.ask("GET", LOAD),
                "list": lambda: client.ask("GET", "/v1/namespaces/shop/tables"),
                "plan": lambda: client.ask("POST", f"{LOAD}/plan", {"filter": day}),
                "append": lambda: mine.append(ROWS),
            }
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                for kind, do in kinds.items():
                    began = time.monotonic()
                    try:
                        do()
                    except Exception as error:
                        with lock:
                            figures.failures.append(f"{kind}: {error!r}"[:300])
                        continue
                    with lock:
                        taken = time.monotonic() - began
                        figures.seconds.setdefault(kind, []).append(taken)
                        appended += kind == "append"
                    time.sleep(0.05)

    with serving(warehouse) as (server, uri):
        _Polite(uri, figures, lock).ask("GET", LOAD)  # published once, whoever comes first
        crowd = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.support.rude_clients"),
                *(uri, str(seconds), str(rude), key),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        with ThreadPoolExecutor(polite) as pool:
            list(pool.map(work, range(polite)))
        told, _ = crowd.communicate(timeout=seconds + ANSWER_S)
        figures.rude = json.loads(told)
        figures.memory_mb = peak_mb(server.pid)
        assert server.poll() is None, "the server has died"
        log = (folder / LOG).read_text()
        assert "Traceback" not in log, log[-2_000:]
        with frazil.connect(warehouse) as catalog:
            assert catalog["shop.appended"].scan().count() == appended
            assert not catalog["shop.appended"].check(deep=True).problems
    return figures
