"""Spark's own removal of orphan files deletes nothing that a table needs.

It lists the location that clients see and deletes what published metadata does not name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil import serve
from frazil.serve.view import published_view
from tests.interop.serve.spark_client import Spark, ids

pytestmark = [pytest.mark.java, pytest.mark.peers, pytest.mark.xdist_group("served-spark")]


@pytest.fixture
def lake(tmp_path: Path, spark: Spark, monkeypatch: pytest.MonkeyPatch) -> Iterator[frazil.Catalog]:
    """A catalog of its own, `careless` in Spark: its server does not say `gc.enabled=false`, which
    Spark obeys and other engines do not."""
    monkeypatch.setattr(published_view, "_NO_COLLECTION", {})
    with frazil.connect(tmp_path / "lake") as catalog, serve.start(catalog) as server:
        catalog.create_namespace("shop")
        spark.attach("careless", server.uri)
        yield catalog


def test_orphan_removal_of_spark_takes_litter_alone(lake: frazil.Catalog, spark: Spark) -> None:
    spark.sql(
        "CREATE TABLE careless.shop.kept USING iceberg TBLPROPERTIES ('format-version'='3', "
        "'write.delete.mode'='merge-on-read') AS SELECT id FROM range(10)"
    )
    table = lake["shop.kept"]
    table.set_properties({"write.root.max-data-entries": "2"})
    for number in (10, 11, 12):
        table.append(pa.table({"id": [number]}))
    table.delete("id = 10")
    spark.sql("DELETE FROM careless.shop.kept WHERE id = 1")
    table.branch("audit", create=True).append(pa.table({"id": [100]}))
    table.tag("before")
    spark.sql("DELETE FROM careless.shop.kept WHERE id < 8")
    litter = Path(f"{table.location}/clients/data/litter.parquet".removeprefix("file://"))
    litter.write_bytes(b"what a crash left behind")
    before = files_of(table)
    month_ago_s = time.time() - 30 * 86_400
    for path in before:
        os.utime(path, (month_ago_s, month_ago_s))
    removed = spark.sql("CALL careless.system.remove_orphan_files(table => 'shop.kept')")
    assert litter.name in {Path(row[0]).name for row in removed}, "it was at work"
    lost = before - files_of(table)
    # Spark's own lists of manifests are known to it alone: the server reads what it wrote once.
    assert all(path.match("clients/metadata/*") for path in lost - {litter}), lost
    spark.sql("INSERT INTO careless.shop.kept VALUES (13)")
    report = table.check(deep=True)
    assert not report.problems, str(report)
    assert ids(spark, "careless.shop.kept") == [8, 9, 11, 12, 13]
    assert sorted(table.to_arrow()["id"].to_pylist()) == [8, 9, 11, 12, 13]
    before_delete = [0, *range(2, 10), 11, 12]
    audit = table.branch("audit").scan().to_arrow()["id"].to_pylist()
    assert sorted(audit) == [*before_delete, 100]
    assert sorted(table.scan(as_of="before").to_arrow()["id"].to_pylist()) == before_delete


def files_of(table: frazil.Table) -> set[Path]:
    root = Path(table.location.removeprefix("file://"))
    return {path for path in root.rglob("*") if path.is_file()}
