"""TPC-H in SQL: `catalog.sql` beside DuckDB on the same Parquet files, and beside DuckLake.

All 22 queries, in rounds; each round runs every competitor before the next one starts, in another
order, and the best time of each query counts. Then 1 % of lineitem is deleted in SQL and the rounds
are run again, against plain Parquet files that still hold the deleted rows. Last comes a lookup of
one row among many files, of which only the one that holds it exists.

    python -m bench.tpch [--scale 1] [--rounds 3] [--files 400000] [--ducklake FILE]

`--ducklake` is the file `ducklake.duckdb_extension` of the package duckdb-extension-ducklake.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import frazil
from frazil.format.batch import EntryBatch
from frazil.table.catalog import Catalog
from tests.support.tpch import TABLES, fill, queries, tpch

DELETED = "DELETE FROM lineitem WHERE (l_orderkey * 7 + l_linenumber) % 100 = 3"
ROWS = 1000
Run = Callable[[str], object]


def plain(catalog: Catalog) -> Run:
    """DuckDB on the data files of the tables, without the tables."""
    connection = duckdb.connect()
    for name in TABLES:
        files = catalog.load_table(f"tpch.{name}").inspect.data_files["file_path"].to_pylist()
        listed = ", ".join(f"'{path.removeprefix('file://')}'" for path in files)
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet([{listed}])")
    return lambda text: connection.execute(text).to_arrow_table()


def ducklake(extension: Path, folder: Path, model: duckdb.DuckDBPyConnection) -> Run:
    """DuckLake with the same rows, partitioned alike."""
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"ATTACH 'ducklake:{folder}/lake.db' AS lake (DATA_PATH '{folder}/lake')")
    connection.execute("USE lake")
    for name in TABLES:
        rows = model.execute(f"SELECT * FROM {name}").to_arrow_table()
        connection.register("given", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given WHERE false")
        if name in ("lineitem", "orders"):
            column = "l_shipdate" if name == "lineitem" else "o_orderdate"
            connection.execute(f"ALTER TABLE {name} SET PARTITIONED BY (year({column}))")
        connection.execute(f"INSERT INTO {name} SELECT * FROM given")
        connection.unregister("given")
    return lambda text: connection.execute(text).to_arrow_table()


def rounds(runs: dict[str, Run], texts: list[str], count: int) -> dict[str, float]:
    """Seconds of all queries, the best of each."""
    best = {name: [float("inf")] * len(texts) for name in runs}
    names = list(runs)
    for turn in range(count):
        order = names[turn % len(names) :] + names[: turn % len(names)]
        for at, text in enumerate(texts):
            for name in order:
                start = time.perf_counter()
                runs[name](text)
                best[name][at] = min(best[name][at], time.perf_counter() - start)
    return {name: sum(times) for name, times in best.items()}


def shown(title: str, found: dict[str, float]) -> None:
    base = found["plain Parquet"]
    print(f"\n{title}")
    for name, seconds in found.items():
        print(f"  {name:15} {seconds:8.2f} s   {seconds / base:5.2f}")


def lookup(folder: Path, files: int) -> None:
    """One row of one file among many: milliseconds of a call, the catalog just opened or not."""
    place = folder / "many"
    with frazil.connect(place) as catalog:
        catalog.sql("CREATE TABLE shop.orders (id BIGINT)")
        table = catalog.load_table("shop.orders")
        for start in range(0, files - 1, 50_000):
            table.add_entries(_described(start, min(files - 1, start + 50_000)))
        last = (files - 1) * ROWS
        table.append(pa.table({"id": np.arange(last, last + ROWS)}))
    text = f"SELECT id FROM shop.orders WHERE id = {last + 7}"
    print(f"\none row among {files:,} files")
    with frazil.connect(place) as catalog:
        for label in ("cold", "warm", "warm"):
            start_s = time.perf_counter()
            found = catalog.sql(text).to_arrow().num_rows
            print(f"  {label} {(time.perf_counter() - start_s) * 1000:8.0f} ms   {found} row")


def _described(start: int, end: int) -> EntryBatch:
    """Entries of files that do not exist, with the bounds of their ids."""
    n = end - start
    lower = np.arange(start, end, dtype=np.int64) * ROWS
    return EntryBatch(
        pa.table(
            {
                "tracking.status": pa.array(np.ones(n, dtype=np.int32)),
                "content_type": pa.array(np.zeros(n, dtype=np.int32)),
                "location": pa.array([f"data/{at}.parquet" for at in range(start, end)]),
                "file_format": pa.array(["parquet"] * n),
                "record_count": pa.array(np.full(n, ROWS, dtype=np.int64)),
                "file_size_in_bytes": pa.array(np.full(n, 8 * ROWS, dtype=np.int64)),
                "spec_id": pa.array(np.zeros(n, dtype=np.int32)),
                "content_stats.1.lower_bound": pa.array(lower),
                "content_stats.1.upper_bound": pa.array(lower + ROWS - 1),
                "content_stats.1.tight_bounds": pa.array(np.ones(n, dtype=np.bool_)),
                "content_stats.1.value_count": pa.array(np.full(n, ROWS, dtype=np.int64)),
                "content_stats.1.null_value_count": pa.array(np.zeros(n, dtype=np.int64)),
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=400_000)
    parser.add_argument("--ducklake", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = tpch(given.scale)
        texts = queries(model)
        with frazil.connect(folder / "warehouse") as catalog:
            session = fill(catalog, model)
            runs: dict[str, Run] = {
                "plain Parquet": plain(catalog),
                "catalog.sql": lambda text: session.sql(text).to_arrow(),
            }
            if given.ducklake is not None:
                runs["DuckLake"] = ducklake(given.ducklake, folder, model)
            shown(f"22 queries, scale {given.scale:g}", rounds(runs, texts, given.rounds))
            session.sql(DELETED)
            if "DuckLake" in runs:
                runs["DuckLake"](DELETED)
            shown("1 % of lineitem deleted", rounds(runs, texts, given.rounds))
        if given.files:
            lookup(folder, given.files)


if __name__ == "__main__":
    main()
