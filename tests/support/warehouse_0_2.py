"""Warehouses that Frazil 0.2 wrote, unpacked where they were written.

Published metadata and PyIceberg's tables name their files by absolute paths, so a warehouse works
only at its own place. Tests that use it take turns, across processes too.
"""

from __future__ import annotations

import fcntl
import shutil
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

PLACE = Path("/tmp/frazil-warehouse-0.2")
_STORED = Path(__file__).parent / "tables" / "warehouse-0.2"


@contextmanager
def sqlite_warehouse() -> Iterator[Path]:
    """The folder of a warehouse with its SQLite catalog."""
    with _unpacked("sqlite") as folder:
        yield folder


@contextmanager
def postgres_warehouse(server: str) -> Iterator[tuple[str, Path]]:
    """The address of a catalog in a database of its own on a server, and its warehouse."""
    name = f"frazil_0_2_{uuid.uuid4().hex[:12]}"
    with _unpacked("postgresql") as folder:
        _run(server, f"CREATE DATABASE {name}")
        try:
            uri = server.replace("/postgres?", f"/{name}?")
            _run(uri, (_STORED / "postgresql.sql").read_text())
            yield uri, folder
        finally:
            _run(server, f"DROP DATABASE {name} WITH (FORCE)")


def _run(uri: str, statements: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(statements.encode())


@contextmanager
def _unpacked(kind: str) -> Iterator[Path]:
    with Path(f"{PLACE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(PLACE, ignore_errors=True)
        PLACE.mkdir()
        try:
            with tarfile.open(_STORED / f"{kind}.tar.xz") as archive:
                archive.extractall(PLACE, filter="data")
            yield PLACE / kind
        finally:
            shutil.rmtree(PLACE, ignore_errors=True)
