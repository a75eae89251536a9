"""A standalone Spark cluster on loopback: a master and two workers as processes of their own.

Processes are started and stopped by their ids. Driver and executors get the package through
PYTHONPATH alone: from the sources, or from an installed wheel.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tests.support.project import ROOT

_PATIENCE_S = 240.0
_JAVA_OPTIONS = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "-Dspark.master.rest.enabled=false",
)


def spark_home() -> Path:
    """Where PySpark keeps its jars and scripts."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


@dataclass(kw_only=True)
class Cluster:
    """A running cluster."""

    master: str
    folder: Path
    package: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)


def installed_wheel(folder: Path) -> Path:
    """A wheel built from a copy of the project, with its jar, and installed alone into a folder."""
    copy = folder / "project"
    copy.mkdir()
    for name in ("src", "java", "tools", "examples"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    site = folder / "site"
    for command in (
        ["tools/spark_jar.py"],
        ["-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), "."],
    ):
        subprocess.run([sys.executable, *command], cwd=copy, env=environment, check=True)
    (wheel,) = folder.glob("frazil-*.whl")
    install = ["-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run([sys.executable, *install], check=True)
    shutil.rmtree(copy)
    return site


def executor_pids(workers: Collection[int], app_id: str) -> list[int]:
    """Process ids of the executors of an application: children of these workers."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent in workers and app_id in line and "CoarseGrained" in line:
            found.append(int(entry.name))
    return sorted(found)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def standalone_cluster(
    folder: Path, *, workers: int = 2, package: Path = ROOT / "src"
) -> Iterator[Cluster]:
    """Start a master and workers of one core each; all are stopped in the end."""
    port = _free_port()
    cluster = Cluster(master=f"spark://127.0.0.1:{port}", folder=folder, package=package)
    try:
        _start(
            cluster,
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"),
        )
        _until(lambda: _answers(port), cluster, "the master does not answer")
        for number in range(workers):
            work = folder / f"work-{number}"
            _start(
                cluster,
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--cores", "1", "--memory", "600m"),
                *("--webui-port", "0", "--work-dir", str(work), cluster.master),
            )
        log = folder / "master.log"
        _until(
            lambda: log.read_text().count("Registering worker") >= workers,
            cluster,
            "the workers did not register",
        )
        yield cluster
    finally:
        for process in reversed(cluster.processes):
            process.send_signal(signal.SIGTERM)
        for process in cluster.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(cluster: Cluster, name: str, main: str, *arguments: str) -> None:
    home = spark_home()
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": _scala_version(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(cluster.package),
    }
    command = ["java", "-Xmx256m", *_JAVA_OPTIONS, "-cp", f"{home / 'jars'}/*", main, *arguments]
    with (cluster.folder / f"{name}.log").open("wb") as log:
        cluster.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))


def _scala_version(home: Path) -> str:
    """Spark's scripts would find it out; without them a worker cannot start executors."""
    (core,) = (home / "jars").glob("spark-core_*.jar")
    return core.name.removeprefix("spark-core_").split("-")[0]


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _until(ready: Callable[[], bool], cluster: Cluster, problem: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not ready():
        dead = [process for process in cluster.processes if process.poll() is not None]
        if dead or time.monotonic() > deadline:
            logs = "".join(
                f"\n--- {log.name}\n{log.read_text()[-2000:]}"
                for log in sorted(cluster.folder.glob("*.log"))
            )
            raise RuntimeError(f"{problem}{logs}")
        time.sleep(0.1)


def run_on(cluster: Cluster, module: str, *arguments: str, patience_s: float = 800.0) -> str:
    """Run a module as a driver of its own on the cluster; what it prints on standard output.

    It is given the cluster's address, the ids of its processes, and the arguments.
    """
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(cluster.package), str(ROOT)]),
    }
    pids = ",".join(str(process.pid) for process in cluster.processes)
    done = subprocess.run(
        [sys.executable, "-m", module, cluster.master, pids, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=patience_s,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout
