"""The workloads. A function per name in workloads.toml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.course import BenchRun
from bench.results import Outcome
from bench.workloads.appends import concurrent_writers, load, small_appends
from bench.workloads.bucket import bucket_catalog
from bench.workloads.changes import change_feed, small_changes
from bench.workloads.columns import column_updates
from bench.workloads.designs import bitmaps, designs
from bench.workloads.object_store import object_store
from bench.workloads.planning import planning, wide_table
from bench.workloads.rows import compaction, lookup, tpch, upsert
from bench.workloads.serve import serve
from bench.workloads.spark import spark, spark_parquet
from bench.workloads.spark_files import spark_files
from bench.workloads.upgrade import upgrade

Workload = Callable[[BenchRun, dict[str, Any], Outcome], None]

WORKLOADS: dict[str, Workload] = {
    "small_appends": small_appends,
    "planning": planning,
    "wide_table": wide_table,
    "small_changes": small_changes,
    "change_feed": change_feed,
    "load": load,
    "concurrent_writers": concurrent_writers,
    "serve": serve,
    "upgrade": upgrade,
    "object_store": object_store,
    "bucket_catalog": bucket_catalog,
    "column_updates": column_updates,
    "upsert": upsert,
    "compaction": compaction,
    "lookup": lookup,
    "tpch": tpch,
    "designs": designs,
    "bitmaps": bitmaps,
    "spark": spark,
    "spark_million": spark,
    "spark_parquet": spark_parquet,
    "spark_files": spark_files,
}
