"""`frazil bench`: the benchmarks of a checkout, run in a process of their own.

The benchmarks are not part of the package: they need the peers' environments and the sources
beside them. This module only finds the checkout and starts them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from frazil.errors import NotFound, Unsupported


def checkout() -> Path:
    """The folder of the checkout: of this package's sources, or above the current folder."""
    here = Path(__file__).resolve()
    for folder in (*here.parents, Path.cwd(), *Path.cwd().parents):
        if (folder / "bench" / "workloads.toml").is_file() and (
            folder / "pyproject.toml"
        ).is_file():
            return folder
    raise NotFound(
        "the benchmarks are in a checkout of Frazil, not in the installed package; clone the "
        "repository and run this command there"
    )


def run_bench(
    names: Sequence[str] = (),
    *,
    quick: bool = True,
    peers: Sequence[str] | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> int:
    """Run workloads, all of them by default; returns the exit code of the run."""
    if sys.platform == "win32":
        raise Unsupported("the benchmarks need Linux or macOS", feature="benchmarks on Windows")
    command = [sys.executable, "-m", "bench", *names]
    if not quick:
        command.append("--full")
    if peers:
        command += ["--peers", ",".join(peers)]
    if out is not None:
        command += ["--out", str(out.resolve())]
    if as_json:
        command.append("--json")
    return subprocess.run(command, cwd=checkout(), check=False).returncode
