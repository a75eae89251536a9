"""SQL: the first query of a new process, binding, and TPC-DS beside DuckDB on the same files.

    python -m bench.sql [--repeats 5] [--tpcds 0.1]

Times are processor time of all threads: medians, and for TPC-DS the best of each query's runs. A
first query is a new process that imports, connects and reads one row, beside one that only imports
pyarrow, both with compiled modules. A text is new when a constant in it is. For TPC-DS, `plain` is
DuckDB on the data files of the fresh tables; after the changes it still reads those.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import duckdb

import frazil
from frazil.sql.session import Session
from tests.support import tpcds

FIRST_QUERY = """
import sys, frazil
with frazil.connect(sys.argv[1]) as catalog:
    catalog.sql("SELECT a, b FROM s.t WHERE a = 3").to_arrow()
"""


def process_s(bytecode: Path, code: str, *arguments: str) -> float:
    """Processor time of a new process, which keeps compiled modules in a folder."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def spent_ms(work: Callable[[], object]) -> float:
    """Processor time of a call."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def first_query(folder: Path, repeats: int) -> None:
    """A new process, beside one that only imports pyarrow."""
    with frazil.connect(folder) as catalog:
        catalog.sql("CREATE TABLE s.t AS SELECT range AS a, range + 1 AS b FROM range(1000)")
    times: dict[str, list[float]] = {"pyarrow": [], "query": []}
    bytecode = folder / "bytecode"
    for _ in range(repeats + 1):
        times["pyarrow"].append(process_s(bytecode, "import pyarrow"))
        times["query"].append(process_s(bytecode, FIRST_QUERY, str(folder)))
    pyarrow, query = (median(values[1:]) for values in times.values())  # the first one compiles
    print(
        f"importing pyarrow {pyarrow * 1000:.0f} ms, first query {query * 1000:.0f} ms: "
        f"{query / pyarrow:.2f} times (aim 2.2)"
    )


def binding(folder: Path, repeats: int) -> None:
    """A query until its rows can be asked for."""
    with frazil.connect(folder) as catalog:
        session = Session(catalog)
        text = "SELECT a, max(b) AS m FROM s.t WHERE a > {} GROUP BY a"
        session.sql(text.format(-1)).to_arrow()
        new, known = [], []
        for number in range(20 * repeats):
            new.append(spent_ms(partial(session.sql, text.format(number))))
        for _ in range(20 * repeats):
            session.sql(text.format(-1)).to_arrow()
            known.append(spent_ms(partial(session.sql, text.format(-1))))
    times = f"a new text {median(new):.2f} ms (aim 5), a known one {median(known):.2f} ms (aim 2)"
    print(f"binding: {times}")


def mine(session: Session, text: str) -> None:
    """Run a query to its end."""
    session.sql(text).to_arrow()


def other(plain: duckdb.DuckDBPyConnection, text: str) -> None:
    """The same in DuckDB alone."""
    plain.execute(text).to_arrow_table()


def queries(scale: str, folder: Path, repeats: int) -> None:
    """TPC-DS, fresh and after changes."""
    texts = tpcds.generate(scale, folder)
    plain = duckdb.connect()
    with frazil.connect(folder / "warehouse") as catalog:
        session = tpcds.loaded(catalog, folder)
        for file in sorted(folder.glob("*.parquet")):
            data = folder / "warehouse" / "ds" / file.stem / "data"
            files = sorted(map(str, data.glob("*.parquet")))
            plain.execute(f"CREATE VIEW {file.stem} AS FROM read_parquet({files})")
        for state in ("fresh", "after changes"):
            if state != "fresh":
                for statement in tpcds.CHANGES:
                    session.sql(statement)
            ours, theirs = [0.0] * len(texts), [0.0] * len(texts)
            for at, text in enumerate(texts):
                runs = [
                    (spent_ms(partial(mine, session, text)), spent_ms(partial(other, plain, text)))
                    for _ in range(repeats)
                ]
                ours[at], theirs[at] = (min(values) for values in zip(*runs, strict=True))
            aim = 1.3 if state == "fresh" else 1.6
            print(
                f"TPC-DS {scale}, {state}: {sum(ours):.0f} ms, plain {sum(theirs):.0f} ms: "
                f"{sum(ours) / sum(theirs):.2f} times (aim {aim})"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tpcds", metavar="SCALE", help="also TPC-DS at this scale")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first_query(Path(folder) / "first", chosen.repeats)
        binding(Path(folder) / "first", chosen.repeats)
        if chosen.tpcds:
            queries(chosen.tpcds, Path(folder), chosen.repeats)


if __name__ == "__main__":
    main()
