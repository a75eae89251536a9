"""One run's surroundings: the mode, where tables are made, sessions, tables shared by workloads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.peers import PEERS, Peer
from bench.results import Outcome
from bench.session import Failed, Session, Skipped

_SETTINGS = {"bucket_driver.py": ", in a bucket", "columns_driver.py": ", wide table"}


@dataclass(slots=True, kw_only=True)
class BenchRun:
    """What workloads get: sizes, peers, a folder, and ways to ask all peers in turn."""

    mode: str
    folder: Path
    chosen: Sequence[str] | None = None
    about: dict[str, dict[str, str]] = field(default_factory=dict)
    histories: dict[tuple[str, int], str] = field(default_factory=dict)
    """Tables with so many commits, by peer: made by one workload, of use to another."""

    def peers(self, workload: dict[str, Any], among: dict[str, Peer] = PEERS) -> list[Peer]:
        """The peers of a workload that take part in this run, Frazil first."""
        return [
            among[name]
            for name in workload["peers"]
            if name in among and (self.chosen is None or name in self.chosen or name == "Frazil")
        ]

    def session(self, peer: Peer, **environment: str) -> Session:
        """A new driver process."""
        started = Session(peer, self.folder / "logs" / f"{peer.name}.log", **environment)
        name = peer.name
        if peer not in PEERS.values():
            name += _SETTINGS.get(peer.script, ", on Spark")
        if name not in self.about:
            self.about[name] = started.ask("about")
        return started

    def place(self, name: str, peer: Peer) -> str:
        """A folder for one table of one peer, empty."""
        path = self.folder / name / peer.name.replace(" ", "-")
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        return str(path)

    def populated(self, peer: Peer, files: int, columns: int = 12) -> str:
        """A table of so many files, made once per run and shared by workloads."""
        path = self.folder / "populated" / f"{peer.name.replace(' ', '-')}-{files}-{columns}"
        done = path.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(path, ignore_errors=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            with self.session(peer) as session:
                session.ask("create", folder=str(path), columns=columns)
                session.ask("populate", total=files, columns=columns)
            done.touch()
        return str(path)

    @contextmanager
    def sessions(self, peers: Sequence[Peer]) -> Iterator[dict[str, Session]]:
        """A driver of each peer at once, so that their turns can be interleaved."""
        with ExitStack() as stack:
            yield {peer.name: stack.enter_context(self.session(peer)) for peer in peers}


@contextmanager
def forgiving(outcome: Outcome, peer: str, what: str) -> Iterator[None]:
    """A peer that cannot do something is noted, not fatal; Frazil's own failures are."""
    try:
        yield
    except Skipped as reason:
        outcome.note(f"{what}: {reason}")
    except Failed as error:
        if peer == "Frazil":
            raise
        outcome.note(f"{what}: failed with {error}")


def footprint(folder: str) -> tuple[int, int]:
    """Files and bytes below a folder."""
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)
