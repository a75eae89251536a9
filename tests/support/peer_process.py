"""Programs of others that tests depend on: peers that write samples, clients that download.

A peer is judged by what it wrote, not by how its process ended: its program creates a file as its
last act. What fails is tried once more, and the error names the peer, so that nobody looks for the
fault here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.project import ROOT

ATTEMPTS = 2
_TAIL_CHARACTERS = 2_000


class PeerFailed(Exception):
    """A program that is not ours did not do its work, twice."""


def write_samples(
    peer: str,
    command: Sequence[str],
    *,
    complete: Path,
    log: Path,
    prepare: Callable[[], None] = lambda: None,
    cwd: Path | None = None,
) -> None:
    """Run a peer's program until it leaves the file `complete`. `prepare` empties its folder."""
    for _ in range(ATTEMPTS):
        prepare()
        complete.unlink(missing_ok=True)
        code = _run(command, log=log, cwd=cwd)
        if complete.exists():
            return
    raise PeerFailed(
        f"{peer} did not finish its samples ({ATTEMPTS} attempts; exit code {code}). "
        f"The end of {log}:\n{log.read_text(errors='replace')[-_TAIL_CHARACTERS:]}"
    )


def fetch(what: str, command: Sequence[str], *, log: Path) -> None:
    """Run a client that downloads or installs something; networks fail, so it runs twice."""
    for _ in range(ATTEMPTS):
        code = _run(command, log=log)
        if code == 0:
            return
    raise PeerFailed(
        f"{what} could not be fetched ({ATTEMPTS} attempts; exit code {code}). "
        f"The end of {log}:\n{log.read_text(errors='replace')[-_TAIL_CHARACTERS:]}"
    )


def _run(command: Sequence[str], *, log: Path, cwd: Path | None = None) -> int:
    log.parent.mkdir(parents=True, exist_ok=True)
    environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("a") as output:
        done = subprocess.run(
            command, stdout=output, stderr=output, env=environment, cwd=cwd, check=False
        )
    return done.returncode
