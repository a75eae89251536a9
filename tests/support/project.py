"""Where tests keep what is expensive to make: jars, classes, virtual environments, tables."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold a lock shared by every test process of this checkout."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
