"""Runs in Flink's own environment: statements from standard input, their rows to standard output.

Both are lines of JSON. The arguments are the jars of Iceberg's runtime for Flink.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    config = tables.get_config()
    config.set("pipeline.jars", ";".join(f"file://{jar}" for jar in sys.argv[1:]))
    config.set("parallelism.default", "1")
    for line in sys.stdin:
        print(json.dumps(_rows(tables, json.loads(line))), flush=True)


def _rows(tables: Any, statement: str) -> list[list[Any]]:
    done = tables.execute_sql(statement)
    if statement.startswith("INSERT"):
        done.wait()
        return []
    with done.collect() as rows:
        return [list(row) for row in rows]


main()
