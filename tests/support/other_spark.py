"""Statements on another version of Spark, whose packages come from a peer's environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.support.project import ROOT
from tests.support.venvs import Venv

_STATEMENTS = '''
import json, sys
from pathlib import Path
import pyspark
import frazil, frazil.spark
from frazil.sql.output.display import cell
from tests.support.spark_session import own_session, shared_session
from tests.support.sqllogic import check_file

shared = shared_session()
shared.conf.set("spark.sql.session.timeZone", "UTC")
done = []
for name in sys.argv[2:]:
    spark = own_session(shared)
    catalog = frazil.connect(f"{sys.argv[1]}/{name}")
    frazil.spark.register(spark, catalog)
    spark.sql("USE frazil")

    def run(text):
        rows = spark.sql(text).toArrow()
        columns = [column.to_pylist() for column in rows.columns]
        return [[cell(v).replace(chr(10), "\\\\n") for v in row] for row in zip(*columns)]

    check_file(Path("tests/sql") / f"{name}.test", "spark", run)
    done.append(name)
spark = own_session(shared)
place = f"{sys.argv[1]}/source"
table = frazil.connect(place).create_table("s.t", [{"id": 1}, {"id": 2}])
frazil.spark.register(spark, place)
spark.range(3, 5).write.format("frazil").option("catalog", place).mode("append").save("s.t")
rows = spark.read.format("frazil").option("catalog", place).load("s.t").where("id > 1")
source = sorted(row.id for row in rows.collect())
spark.conf.set("spark.sql.geospatial.enabled", True)
point = "X'0101000000000000000000f03f000000000000f03f'"  # (1, 1)
windows = spark.sql(f"""
    SELECT frazil.system.bbox({point}, 0, 0, 2, 2), frazil.system.bbox({point}, 2, 2, 3, 3),
      frazil.system.bbox(ST_GeomFromWKB({point}), 0, 0, 2, 2),
      frazil.system.bbox(ST_GeogFromWKB({point}), 2, 2, 3, 3)
""").first()
result = {"done": done, "source": source, "windows": list(windows)}
print("FOUND " + json.dumps({"version": pyspark.__version__, **result}))
shared.stop()
'''


def statements_on(
    spark: Venv, folder: Path, names: list[str], *, patience_s: float = 800
) -> dict[str, Any]:
    """What statements of files below `tests/sql`, and the data source, do on a version of Spark."""
    path = (str(spark.ready().site_packages),)
    return ran(_STATEMENTS, str(folder), *names, cwd=ROOT, path=path, patience_s=patience_s)


def ran(
    script: str, *arguments: str, cwd: Path, path: tuple[str, ...] = (), patience_s: float = 500
) -> dict[str, Any]:
    """What a script prints after FOUND."""
    places = [*path, str(ROOT / "src"), str(ROOT)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(places),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=patience_s,
        cwd=cwd,
        env=environment,
        check=False,
    )
    _, marked, answer = done.stdout.partition("FOUND ")
    assert marked, done.stdout[-1000:] + done.stderr[-4000:]
    found: dict[str, Any] = json.loads(answer.splitlines()[0])
    return found
