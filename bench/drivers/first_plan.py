"""One process that opens a table, plans one day and ends: `first_plan.py PEER FOLDER DAY`.

It imports what the peer needs for that and nothing else, and prints the number of files. The time
of the whole process is taken by who starts it.
"""

from __future__ import annotations

import sys


def plan_frazil(folder: str, day: str) -> int:
    """Plan with Frazil."""
    import frazil

    table = frazil.connect(folder).load_table("shop.orders")
    return table.scan(where=f"order_date = '{day}'").plan().files.num_rows


def plan_delta(folder: str, day: str) -> int:
    """Plan with delta-rs."""
    from deltalake import DeltaTable

    where = f"order_date = '{day}'"
    return len(DeltaTable(f"{folder}/orders").file_uris(file_pruning_predicate=where))


def plan_ducklake(folder: str, day: str) -> int:
    """Plan with DuckLake: the query that its driver plans with."""
    from pathlib import Path

    import duckdb
    import duckdb_extension_ducklake

    package = Path(duckdb_extension_ducklake.__file__).parent
    con = duckdb.connect()
    con.execute(f"load '{next(package.rglob('ducklake.duckdb_extension'))}'")
    con.execute(f"attach 'ducklake:{folder}/meta.ducklake' as lake (data_path '{folder}/data/')")
    files = con.execute(
        "select data.path, gone.path from __ducklake_metadata_lake.ducklake_data_file data "
        "left join (from __ducklake_metadata_lake.ducklake_delete_file where end_snapshot is null) "
        "gone using (data_file_id) where data.end_snapshot is null and data_file_id in "
        "(select data_file_id from __ducklake_metadata_lake.ducklake_file_column_stats where "
        f"column_id = 2 and date '{day}' between try_cast(min_value as date) "
        "and try_cast(max_value as date))"
    ).fetchall()
    return len(files)


def plan_pyiceberg(folder: str, day: str) -> int:
    """Plan with PyIceberg."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("default", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder)
    scan = catalog.load_table("shop.orders").scan(row_filter=f"order_date = '{day}'")
    return len(list(scan.plan_files()))


PLANS = {
    "Frazil": plan_frazil,
    "delta-rs": plan_delta,
    "DuckLake": plan_ducklake,
    "PyIceberg": plan_pyiceberg,
}

if __name__ == "__main__":
    print(PLANS[sys.argv[1]](sys.argv[2], sys.argv[3]))
