"""A Spark process that tests drive, and what they check after each statement."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from frazil.table import Catalog
from tests.support.java import ICEBERG_RUNTIME, maven_jar
from tests.support.project import ROOT
from tests.support.venvs import ICEBERG_SPARK

SCRIPT = ROOT / "tests" / "interop" / "serve" / "spark_session.py"


class SparkFailed(Exception):
    """Spark's own message."""


class Spark:
    """A Spark process that runs one statement after the other."""

    def __init__(self, uri: str) -> None:
        python = str(ICEBERG_SPARK.ready().python)
        command = [python, str(SCRIPT), uri, str(maven_jar(ICEBERG_RUNTIME))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()

    def sql(self, text: str) -> list[list[Any]]:
        """Run a statement; the rows it gives."""
        return self.ask(sql=text)

    def ask(self, **request: Any) -> list[list[Any]]:
        """Send any request of the script; the rows it gives."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise SparkFailed(answer["error"])
        rows: list[list[Any]] = answer["rows"]
        return rows

    def attach(self, name: str, uri: str, **options: str) -> None:
        """Make another server a catalog of the session."""
        prefix = f"spark.sql.catalog.{name}"
        self.sql(f"SET {prefix}=org.apache.iceberg.spark.SparkCatalog")
        for key, value in {"type": "rest", "uri": uri, **options}.items():
            self.sql(f"SET {prefix}.{key}={value}")

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise SparkFailed("Spark has ended")


def ids(spark: Spark, name: str) -> list[int]:
    """The column `id` of a table, sorted."""
    return [row[0] for row in spark.sql(f"SELECT id FROM {name} ORDER BY id")]


def check(catalog: Catalog, spark: Spark, name: str, *expected: int) -> None:
    """Spark's rows, however planned, native rows and the expected ones are the same; the tree is
    sound."""
    native = catalog[f"shop.{name}"]
    assert ids(spark, f"shop.{name}") == sorted(expected)
    spark.sql(f"REFRESH TABLE planned.shop.{name}")
    assert ids(spark, f"planned.shop.{name}") == sorted(expected)
    assert sorted(native.scan().to_arrow()["id"].to_pylist()) == sorted(expected)
    report = native.check(deep=True)
    assert not report.problems, str(report)


def make(spark: Spark, name: str, *, mode: str = "merge-on-read", version: int = 3) -> None:
    """A table of four rows, two in each of two partitions."""
    modes = ", ".join(f"'write.{v}.mode'='{mode}'" for v in ("delete", "update", "merge"))
    spark.sql(
        f"CREATE TABLE shop.{name} (id BIGINT, country STRING) USING iceberg "
        f"PARTITIONED BY (country) TBLPROPERTIES ('format-version'='{version}', {modes})"
    )
    spark.sql(f"INSERT INTO shop.{name} VALUES (1, 'de'), (2, 'de'), (3, 'fr'), (4, 'fr')")
