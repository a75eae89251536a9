"""An engine in a virtual environment of its own: a script of this folder is its program."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import frazil
from tests.support.venvs import Venv

DAFT = Venv(name="daft", packages=("daft==0.7.26", "pyiceberg==0.12.0", "pyarrow==25.0.1"))
CLICKHOUSE = Venv(name="clickhouse", packages=("chdb==4.4.0", "pyarrow==26.0.1"))
DLT = Venv(
    name="dlt",
    packages=(
        "dlt[filesystem]==1.31.0",
        "pyiceberg==0.12.0",
        "pyiceberg-core==0.10.0",
        "pyarrow==26.0.1",
        "sqlalchemy==2.1.8",
    ),
)


def run(venv: Venv, script: str, *arguments: str, folder: Path) -> dict[str, Any]:
    """Run a script of this folder and give what it printed last, an object of JSON."""
    printed = run_program(venv, Path(__file__).parent / script, *arguments, folder=folder)
    answer: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return answer


def run_program(venv: Venv, script: Path, *arguments: str, folder: Path) -> str:
    """Run a program in a folder, and give what it printed. Nothing of it is kept in the home
    folder, and nothing is sent to anybody."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"HOME": str(folder), "DO_NOT_TRACK": "1", "RUNTIME__DLTHUB_TELEMETRY": "false"}
    done = subprocess.run(
        [str(venv.ready().python), str(script), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def sound(catalog: frazil.Catalog, name: str) -> list[tuple[Any, ...]]:
    """The rows that a native scan finds, sorted, of a table in which nothing is wrong."""
    table = catalog[name]
    report = table.check(deep=True)
    assert not report.problems, str(report)
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
