"""Servers in processes of their own: `frazil serve`, and Iceberg's reference REST catalog."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.project import CACHE, locked

POM = Path(__file__).parent / "reference-pom.xml"
REFERENCE = "Iceberg's reference server"
_START_S = 120
_FRAZIL = """
import sys
import frazil
from frazil import serve
uri, warehouse = sys.argv[1:]
catalog = frazil.connect(uri or warehouse, warehouse=warehouse if uri else None)
serve.run(catalog, port=0, ready=lambda address: print(address, flush=True))
"""


class CannotStart(Exception):
    """A server that is not to be had on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that runs."""

    uri: str
    process: subprocess.Popen[str]

    def processor_ms(self) -> float:
        """Processor time that it has used so far, all threads; 0 where the system does not say."""
        try:
            stated = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(stated[11]) + int(stated[12])) * 1000 / os.sysconf("SC_CLK_TCK")


@contextmanager
def frazil_server(folder: str, database: str = "") -> Iterator[Server]:
    """`frazil serve` on a warehouse folder; its catalog is embedded, or another database."""
    command = [sys.executable, "-c", _FRAZIL, database, folder]
    with _running(command, {}) as process:
        assert process.stdout is not None
        uri = process.stdout.readline().strip()
        if not uri:
            raise CannotStart("frazil serve ended before it was ready")
        yield Server(uri=uri, process=process)


@contextmanager
def reference_server(folder: str) -> Iterator[Server]:
    """Iceberg's RESTCatalogServer on a SQLite file, where its commits survive it."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_WAREHOUSE": f"file://{folder}",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
    }
    main = "org.apache.iceberg.rest.RESTCatalogServer"
    command = ["java", "-Xmx1g", "-cp", _class_path(), main]
    with _running(command, settings) as process:
        server = Server(uri=f"http://127.0.0.1:{port}", process=process)
        _await(server)
        yield server


@contextmanager
def _running(command: list[str], settings: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **settings},
        )
    except OSError as error:
        raise CannotStart(f"{command[0]}: {error}") from error
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _await(server: Server) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and server.process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.uri}/v1/config", timeout=5):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
    raise CannotStart("the server did not answer")


def _class_path() -> str:
    """The server and what it needs, resolved once by Maven."""
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:16]
    resolved = CACHE / "jars" / f"reference-{digest}.txt"
    if not resolved.exists():
        with locked("jars"):
            resolved.parent.mkdir(parents=True, exist_ok=True)
            command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:build-classpath"]
            try:
                subprocess.run([*command, f"-Dmdep.outputFile={resolved}"], check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise CannotStart(f"Maven could not fetch it: {error}") from error
    return resolved.read_text().strip()
