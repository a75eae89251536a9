"""Spark with Iceberg's own runtime on a REST catalog. Runs in its own virtual environment.

    python spark_session.py <uri> <jar>

Reads one JSON request per line, `{"sql": …}`; answers with `{"rows": …}` or `{"error": …}`.
"""

from __future__ import annotations

import json
import sys

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
        "spark.sql.defaultCatalog": "lake",
    }
    builder = SparkSession.builder.master("local[2]").appName("served")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main() -> None:
    """Answer requests until the input ends."""
    spark = session(sys.argv[1], sys.argv[2])
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        try:
            rows = [list(row) for row in spark.sql(json.loads(line)["sql"]).collect()]
            print(json.dumps({"rows": rows}, default=str), flush=True)
        except Exception as error:  # the test decides what it means
            print(json.dumps({"error": f"{type(error).__name__}: {error}"[:2000]}), flush=True)


main()
