"""Starts servers that die, one after the other at one address."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests.support.project import ROOT


class Mortal:
    """A server in another process. It has one address, in this life and the next."""

    def __init__(self, warehouse: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._warehouse = warehouse
        self._process: subprocess.Popen[str] | None = None
        self.uri = f"http://127.0.0.1:{self._port}"

    def live(self, fate: str) -> None:
        """Start; a server that `dies` is killed after its next commit."""
        command = [sys.executable, "-m", "tests.support.mortal_server"]
        self._process = subprocess.Popen(
            [*command, str(self._warehouse), str(self._port), fate],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"},
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == self.uri

    def end(self) -> int:
        """Wait for the death of the server; its exit code."""
        assert self._process is not None
        return self._process.wait(60)

    def stop(self) -> None:
        """End the server in an orderly way."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(60)

    def __enter__(self) -> Mortal:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
