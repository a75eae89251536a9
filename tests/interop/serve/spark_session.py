"""Spark with Iceberg's own runtime on a REST catalog. Runs in its own virtual environment.

    python spark_session.py <uri> <jar>

Reads one JSON request per line: `{"sql": …}`, or what SQL has no word for, `{"stream": [from, to,
folder]}` and `{"between": [table, first, last]}`. Answers with `{"rows": …}` or `{"error": …}`. The
catalog `planned` is the same one with scans planned on the server.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession


def session(uri: str, jar: str) -> SparkSession:
    """A local session whose default catalog is the server."""
    settings = {
        "spark.jars": jar,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "OFF",
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.uri": uri,
        "spark.sql.catalog.planned": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.planned.type": "rest",
        "spark.sql.catalog.planned.uri": uri,
        "spark.sql.catalog.planned.scan-planning-mode": "server",
        "spark.sql.defaultCatalog": "lake",
    }
    builder = SparkSession.builder.master("local[2]").appName("served")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def stream(spark: SparkSession, source: str, target: str, folder: str) -> list[list[Any]]:
    """Copy what is new of one table to another, and how many rows that was."""
    options = {"checkpointLocation": folder, "fanout-enabled": "true"}
    query = (
        spark.readStream.table(source)
        .writeStream.options(**options)
        .trigger(availableNow=True)
        .toTable(target)
    )
    query.awaitTermination()
    return [[sum(progress["numInputRows"] for progress in query.recentProgress)]]


def between(spark: SparkSession, table: str, first: str, last: str) -> list[list[Any]]:
    """Rows that appends added after one snapshot up to another."""
    reader = spark.read.option("start-snapshot-id", first).option("end-snapshot-id", last)
    return [list(row) for row in reader.table(table).orderBy("id").collect()]


def answer(spark: SparkSession, request: dict[str, Any]) -> list[list[Any]]:
    """The rows of one request."""
    if "sql" in request:
        return [list(row) for row in spark.sql(request["sql"]).collect()]
    ((verb, arguments),) = request.items()
    verbs: dict[str, Any] = {"stream": stream, "between": between}
    rows: list[list[Any]] = verbs[verb](spark, *arguments)
    return rows


def main() -> None:
    """Answer requests until the input ends."""
    spark = session(sys.argv[1], sys.argv[2])
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        try:
            rows = answer(spark, json.loads(line))
            print(json.dumps({"rows": rows}, default=str), flush=True)
        except Exception as error:  # the test decides what it means
            print(json.dumps({"error": f"{type(error).__name__}: {error}"[:2000]}), flush=True)


main()
