"""Tables of a catalog as streams: `readStream.table` and `writeStream.toTable`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException

import frazil
from tests.spark.shop import content, orders

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ORDERS = "frazil.shop.orders"


def copied(rows: Any, target: str, checkpoint: Path, mode: str = "append") -> None:
    writer = rows.writeStream.outputMode(mode).trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).toTable(target).awaitTermination()


def test_a_stream_names_its_tables(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table, tmp_path: Path
) -> None:
    audit = table.branch("audit", create=True)
    audit.append(orders(range(90, 95)))
    read = spark.readStream.option("streaming-max-files-per-micro-batch", "3")
    rows = read.table(f"{ORDERS}.branch_audit").where("id >= 10")
    rows = rows.select("id", "day", "country", "price")
    copied(rows, "frazil.shop.copied", tmp_path / "check")
    copy = catalog.load_table("shop.copied")
    assert content(copy) == {id: row for id, row in content(audit).items() if id >= 10}
    assert len(list(copy.snapshots())) > 1


def test_changes_are_streamed_and_whole_results_replace_each_other(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table, tmp_path: Path
) -> None:
    table.delete("id < 3")
    kinds = spark.readStream.table(f"{ORDERS}.changes").groupBy("_change_type").count()
    copied(kinds, "frazil.shop.kinds", tmp_path / "check", "complete")
    told = catalog.load_table("shop.kinds").scan().to_pylist()
    assert {row["_change_type"]: row["count"] for row in told} == {"insert": 90, "delete": 3}


def test_what_does_not_grow_is_refused(spark: Any, table: frazil.Table, tmp_path: Path) -> None:
    table.tag("monday")
    for name in ("files", "tag_monday"):
        with pytest.raises(
            IllegalArgumentException, match="metadata tables and past states do not"
        ):
            spark.readStream.table(f"{ORDERS}.{name}")
    with pytest.raises(IllegalArgumentException, match="unknown option colour"):
        spark.readStream.option("colour", "red").table(ORDERS)
    with pytest.raises((AnalysisException, IllegalArgumentException), match="tag_monday"):
        copied(spark.readStream.table(ORDERS), f"{ORDERS}.tag_monday", tmp_path / "check")


def test_batches_of_a_stream_run_statements_on_the_catalog_of_its_session(
    spark: Any, table: frazil.Table, tmp_path: Path
) -> None:
    def merged(batch: Any, number: int) -> None:
        batch.createOrReplaceTempView("batch")
        session = batch.sparkSession
        session.sql(
            f"MERGE INTO {ORDERS} t USING batch s ON t.id = s.value WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED BY SOURCE AND t.id > 88 THEN UPDATE SET price = -1"
        )
        session.sql(f"ALTER TABLE {ORDERS} CREATE TAG batch_{number}")

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    writer = rows.writeStream.foreachBatch(merged)
    writer = writer.option("checkpointLocation", str(tmp_path / "check"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert set(content(table)) == set(range(5, 90))
    assert content(table)[89][2] == -1.0
    assert "batch_0" in table.refresh().metadata.refs
