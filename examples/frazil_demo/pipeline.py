"""The demo's chapter on Spark: runs the pipeline of `examples/` in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import frazil
from frazil.errors import Unsupported


def pipeline_script() -> Path:
    """The example: beside this package in a checkout, inside it when installed."""
    here = Path(__file__).resolve().parent
    beside = here.parent / "orders_pipeline.py"
    return beside if beside.is_file() else here / "orders_pipeline.py"


def run_pipeline(script: Path, folder: Path, say: Callable[[str], None]) -> list[str]:
    """Run it on a new warehouse below the folder; every line it prints is said and returned."""
    folder.mkdir(parents=True, exist_ok=True)
    errors = folder / "spark.log"
    # Workers find the package where it was found here.
    source = str(Path(frazil.__file__).resolve().parents[1])
    path = os.pathsep.join(part for part in (source, os.environ.get("PYTHONPATH", "")) if part)
    with errors.open("w", encoding="utf-8") as log:
        running = subprocess.Popen(
            [sys.executable, "-u", str(script), "--warehouse", str(folder)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        lines = _told(running, say)
    if running.returncode:
        raise Unsupported(
            f"{script} stopped with exit code {running.returncode}: {_cause(errors)} "
            f"(see {errors}). "
            "Spark needs Java 17 or later; frazil demo --no-spark goes without",
            feature="Spark",
        )
    return lines


def _cause(errors: Path) -> str:
    """The first error that a log tells of; else its last line."""
    log = errors.read_text(encoding="utf-8").strip()
    found = re.search(r"^(?:\w+\.)*\w*(?:Error|Exception): .*", log, re.MULTILINE)
    return found[0] if found else (log.splitlines() or ["no message"])[-1]


def _told(running: subprocess.Popen[str], say: Callable[[str], None]) -> list[str]:
    assert running.stdout is not None
    lines: list[str] = []
    try:
        for line in running.stdout:
            lines.append(line.rstrip())
            say(lines[-1])
        running.wait()
    except BaseException:
        running.terminate()
        running.wait()
        raise
    return lines
