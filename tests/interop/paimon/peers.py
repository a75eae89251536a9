"""Paimon tables written by Paimon's own implementations, made once and kept in the cache.

Each maker gives a folder with a warehouse and the rows its writer reads back, per table, branch and
snapshot. The folder is named after the source that made it, so a change makes it anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.java import maven_jar
from tests.support.peer_process import write_samples
from tests.support.project import CACHE, ROOT, locked
from tests.support.venvs import Venv

PAIMON_BUNDLE = "org.apache.paimon:paimon-bundle:1.3.1"
PYPAIMON = Venv(name="pypaimon", packages=("pypaimon==2.1.0",))

_JAVA_SOURCE = ROOT / "tests" / "interop" / "java" / "paimon" / "PaimonTables.java"
_PYTHON_SOURCE = ROOT / "tests" / "interop" / "paimon" / "write_with_pypaimon.py"
_HOST_JARS = ("hadoop-client-", "slf4j-api", "commons-")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerTables:
    """Tables of one writer."""

    root: Path

    @property
    def warehouse(self) -> Path:
        """The directory of its database."""
        return self.root / "warehouse" / "db.db"

    @property
    def names(self) -> list[str]:
        """All tables."""
        return sorted(path.name for path in self.warehouse.iterdir())

    def table(self, name: str) -> str:
        """A table's directory."""
        return str(self.warehouse / name)

    def rows(self, name: str, snapshot_id: int, branch: str = "main") -> list[str]:
        """The rows that the writer reads at a snapshot, as sorted lines."""
        file = self.root / "expected" / name / branch / f"{snapshot_id}.jsonl"
        return sorted(file.read_text(encoding="utf-8").splitlines())


def java_tables() -> PeerTables:
    """Tables by Paimon's Java API."""
    return _made("java", [_JAVA_SOURCE], _run_java)


def pypaimon_tables() -> PeerTables:
    """Tables by pypaimon."""
    form = _PYTHON_SOURCE.with_name("text_form.py")
    return _made("pypaimon", [_PYTHON_SOURCE, form], _run_pypaimon)


def _made(kind: str, sources: list[Path], make: Callable[[Path], None]) -> PeerTables:
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    # Written where they stay: external paths in manifests are absolute.
    folder = CACHE / "paimon" / f"{kind}-{digest}"
    done = folder / "done"
    if not done.exists():
        with locked(f"paimon-{kind}"):
            if not done.exists():
                make(folder)
    return PeerTables(root=folder)


def _run_java(folder: Path) -> None:
    import pyspark

    jars = Path(str(pyspark.__file__)).parent / "jars"
    hosts = sorted(jar for jar in jars.glob("*.jar") if jar.name.startswith(_HOST_JARS))
    path = os.pathsep.join(str(jar) for jar in [maven_jar(PAIMON_BUNDLE), *hosts])
    classes = folder.with_name(f"{folder.name}-classes")
    compile = ["javac", "-nowarn", "-cp", path, "-d", str(classes), str(_JAVA_SOURCE)]
    subprocess.run(compile, check=True)
    java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"]
    command = [*java, "-cp", f"{classes}{os.pathsep}{path}", "PaimonTables"]
    _write("Paimon (Java)", command, folder)


def _run_pypaimon(folder: Path) -> None:
    python = PYPAIMON.ready().python
    _write("pypaimon", [str(python), str(_PYTHON_SOURCE)], folder)


def _write(peer: str, command: list[str], folder: Path) -> None:
    def empty() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    done = folder / "done"
    places = [str(folder / "warehouse"), str(folder / "expected"), str(done)]
    log = folder.with_name(f"{folder.name}.log")
    write_samples(peer, [*command, *places], complete=done, log=log, prepare=empty)
