"""Run the benchmarks.

    python -m bench [NAME …] [--full] [--peers PyIceberg,DuckLake] [--out bench/results]
    python -m bench --render bench/results/full.json

Without names every workload runs, quick by default. A run of named workloads takes their place in
the results there are.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
import tomllib
import traceback
from pathlib import Path
from typing import Any

from bench import machine, render
from bench.course import BenchRun
from bench.results import Outcome
from bench.workloads import WORKLOADS

HERE = Path(__file__).parent


def main() -> int:
    """Run what is asked for; the exit code says whether a workload failed."""
    arguments = _arguments()
    if arguments.render is not None:
        finished = json.loads(arguments.render.read_text())
        render.write(finished, arguments.out, docs=arguments.docs)
        return 0
    described = tomllib.loads((HERE / "workloads.toml").read_text())
    unknown = sorted(set(arguments.names) - set(described))
    if unknown:
        print(f"no workload {unknown[0]!r}; there are: {', '.join(described)}", file=sys.stderr)
        return 2
    mode = "full" if arguments.full else "quick"
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-", dir=arguments.work))
    chosen = arguments.peers.split(",") if arguments.peers else None
    course = BenchRun(mode=mode, folder=folder, chosen=chosen)
    run: dict[str, Any] = {"mode": mode, "machine": machine.described()}
    earlier = _earlier(arguments.out / f"{mode}.json") if arguments.names else {}
    found = {data["name"]: data for data in earlier.get("workloads", [])}
    tables = sys.stderr if arguments.json else sys.stdout
    failed = False
    for name in arguments.names or described:
        outcome = _run(course, name, described[name])
        failed |= outcome is None
        if outcome is not None:
            outcome.commit, outcome.when = run["machine"]["commit"], run["machine"]["when"]
            found[name] = outcome.to_dict()
            print(render.text(outcome), file=tables, flush=True)
        run["workloads"] = [found[name] for name in described if name in found]
        run["peers"] = {**earlier.get("peers", {}), **course.about}
        render.save(run, arguments.out)
    render.write(run, arguments.out, docs=arguments.docs)
    if arguments.json:
        print(json.dumps(run))
    if arguments.keep or failed:
        print(f"tables and logs are in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return int(failed)


def _earlier(results: Path) -> dict[str, Any]:
    return dict(json.loads(results.read_text())) if results.is_file() else {}


def _run(course: BenchRun, name: str, described: dict[str, Any]) -> Outcome | None:
    settings = {**described, **described[course.mode]}
    outcome = Outcome(name=name, title=described["title"], settings=described[course.mode])
    print(f"… {name}", file=sys.stderr, flush=True)
    began = time.perf_counter()
    try:
        WORKLOADS[name](course, settings, outcome)
    except Exception:
        traceback.print_exc()
        return None
    outcome.seconds = time.perf_counter() - began
    return outcome


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Frazil beside its peers.")
    parser.add_argument("names", nargs="*", help="workloads; all by default")
    parser.add_argument("--full", action="store_true", help="sizes of the published figures")
    parser.add_argument("--peers", help="only these, separated by commas; Frazil always runs")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder for results")
    parser.add_argument("--docs", type=Path, help="a page to write the tables to")
    parser.add_argument("--work", type=Path, help="where tables are made; the temporary folder")
    parser.add_argument("--keep", action="store_true", help="keep the tables and logs")
    parser.add_argument("--json", action="store_true", help="results as JSON on standard output")
    parser.add_argument("--render", type=Path, help="only render these results")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
