"""Iceberg Java as an oracle: one Java virtual machine that answers JSON requests, line by line.

Knows how to fetch the jar, compile the harness in `tests/interop/java/harness` and talk to it. What
the operations mean is said in the harness. Values travel in the exact JSON form that
`tests.support.values` knows.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.support.peer_process import fetch
from tests.support.project import CACHE, ROOT, locked
from tests.support.venvs import ICEBERG_SPARK

ICEBERG_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SQLITE_JDBC = "org.xerial:sqlite-jdbc:3.53.0.0"
HARNESS = ROOT / "tests" / "interop" / "java" / "harness"
_SPARK_JARS = ("hadoop-client-", "slf4j-api", "commons-", "guava", "zstd-jni", "snappy-java")


class OracleFailure(Exception):
    """Iceberg refused a request; the message is its own."""


def maven_jar(coordinates: str) -> Path:
    """The jar with these Maven coordinates, fetched once; Maven verifies its checksum."""
    _, artifact, version = coordinates.split(":")
    jar = CACHE / "jars" / f"{artifact}-{version}.jar"
    if not jar.exists():
        with locked("jars"):
            if not jar.exists():
                jar.parent.mkdir(parents=True, exist_ok=True)
                arriving = jar.parent / "arriving"
                command = ["mvn", "-q", "dependency:copy", f"-Dartifact={coordinates}"]
                command.append(f"-DoutputDirectory={arriving}")
                fetch(coordinates, command, log=CACHE / "logs" / "maven.log")
                (arriving / jar.name).rename(jar)
    return jar


def class_path() -> list[Path]:
    """Iceberg's runtime jar and the few jars it expects its host, Spark, to bring."""
    jars = _spark_jars()
    hosts = sorted(jar for jar in jars.glob("*.jar") if jar.name.startswith(_SPARK_JARS))
    return [maven_jar(ICEBERG_RUNTIME), *hosts]


def _spark_jars() -> Path:
    spark = find_spec("pyspark")
    if spark is not None and spark.origin is not None:
        return Path(spark.origin).parent / "jars"
    return ICEBERG_SPARK.ready().site_packages / "pyspark" / "jars"


def harness_classes() -> Path:
    """The compiled harness, compiled again only when its source changes."""
    sources = sorted(HARNESS.rglob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = CACHE / "java-classes" / digest
    if not classes.is_dir():
        with locked("java-classes"):
            if not classes.is_dir():
                draft = classes.with_suffix(".draft")
                shutil.rmtree(draft, ignore_errors=True)
                draft.mkdir(parents=True)
                command = ["javac", "-nowarn", "-Xlint:-deprecation", "-d", str(draft)]
                command += ["-cp", _joined(class_path()), *map(str, sources)]
                subprocess.run(command, check=True, capture_output=True, text=True)
                draft.rename(classes)
    return classes


def _joined(paths: list[Path]) -> str:
    return os.pathsep.join(str(path) for path in paths)


class JavaOracle:
    """A running harness. `call` sends one request and waits for its answer."""

    def __init__(self) -> None:
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g"]
        command += ["-cp", _joined([harness_classes(), *class_path()])]
        (CACHE / "logs").mkdir(parents=True, exist_ok=True)
        self._log = (CACHE / "logs" / f"java-oracle-{os.getpid()}.log").open("w")
        self._process = subprocess.Popen(
            [*command, "org.apache.iceberg.OracleServer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )

    def call(self, op: str, **arguments: Any) -> Any:
        """The result of an operation; raises `OracleFailure` with Iceberg's message."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise OracleFailure(f"the Java process ended; its log is {self._log.name}")
        reply = json.loads(line)
        if "error" in reply:
            raise OracleFailure(f"{reply['error']}\n{reply['trace']}")
        return reply["result"]

    def close(self) -> None:
        """End the Java process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=20)
        self._log.close()

    def __enter__(self) -> JavaOracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def java_oracle() -> Iterator[JavaOracle]:
    """One Java virtual machine for the caller's scope."""
    with JavaOracle() as oracle:
        yield oracle
