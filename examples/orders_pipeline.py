"""A streaming pipeline: orders arrive in small batches, are merged, compacted, queried, followed.

    python examples/orders_pipeline.py [--warehouse FOLDER] [--batches N] [--orders N]

Everything runs on this machine: Spark in local mode, tables in a folder. The script narrates what
happens, how long it takes, and what the metadata tree looks like.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table as Grid

import frazil
import frazil.spark
from frazil.cli.terminal.drawing import draw
from frazil.cli.terminal.render import text
from frazil.spark import jobs
from frazil.text_format import counted

ORDERS = pa.schema(
    [
        pa.field("order_id", pa.int64(), nullable=False),
        pa.field("ordered_on", pa.date32()),
        pa.field("country", pa.string()),
        pa.field("status", pa.string()),
        pa.field("amount", pa.float64()),
    ]
)
COUNTRIES = ("DE", "FR", "JP", "US")
STATUSES = ("paid", "shipped", "delivered", "cancelled")
console = Console(highlight=False)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Say what is done and how long it took."""
    console.print(f"\n[bold cyan]▶ {title}[/]")
    began = time.perf_counter()
    yield
    console.print(f"  [dim]{time.perf_counter() - began:.1f} s[/]")


def say(message: str) -> None:
    """One line of the story."""
    console.print(f"  {message}", soft_wrap=True)


def spark_session() -> Any:
    """Spark on two cores of this machine, quiet."""
    from pyspark.sql import SparkSession

    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("orders")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def arrive(landing: Path, batch: int, orders: int, chance: random.Random) -> tuple[int, int]:
    """A file of orders: new ones, and status updates of old ones. Returns how many of each."""
    landing.mkdir(parents=True, exist_ok=True)
    first = batch * orders
    new = list(range(first, first + orders))
    old = sorted(chance.sample(range(first), k=min(first, orders // 5)))
    rows = [
        {
            "order_id": order,
            "ordered_on": date(2026, 1, 1) + timedelta(days=order * 7 // orders),
            "country": COUNTRIES[order % len(COUNTRIES)],
            "status": "paid" if order >= first else chance.choice(STATUSES[1:]),
            "amount": round(5 + (order * 37 % 20_000) / 100, 2),
        }
        for order in (*old, *new)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=ORDERS), landing / f"{batch:04}.parquet")
    return len(new), len(old)


def ingest(spark: Any, orders: frazil.Table, landing: Path, checkpoint: Path) -> None:
    """Merge every file that has arrived, one micro-batch and one snapshot each, exactly once."""
    schema = frazil.spark.spark_schema(orders.schema)
    arriving = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(landing))
    query = (
        arriving.writeStream.foreachBatch(
            frazil.spark.foreach_batch(orders, "merge", on=["order_id"])
        )
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def show_tree(table: frazil.Table, *, limit: int = 12) -> None:
    """The metadata tree of the current snapshot, drawn."""
    drawing = draw(table._handle, table.current_snapshot(), limit=limit, columns=2)
    console.print(text(drawing), style="green", markup=False, soft_wrap=True)


def shape(table: frazil.Table) -> str:
    """How many files there are and what describes them."""
    report = table.scan().explain()
    last = table.current_snapshot()
    assert last is not None
    written = int(last.summary["frazil.metadata-bytes-written"])
    return (
        f"{counted(report.files, 'data file')}, {report.files_with_vectors} with deletion vectors; "
        f"the last commit wrote {counted(written, 'byte')} of metadata"
    )


def print_grid(title: str, names: list[str], rows: list[Any]) -> None:
    """Rows as a table on the terminal."""
    grid = Grid(title=title, title_justify="left")
    for name in names:
        grid.add_column(name, justify="right")
    for row in rows:
        grid.add_row(
            *(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in row)
        )
    console.print(grid)


def revenue_from_changes(spark: Any, orders: frazil.Table) -> dict[str, float]:
    """Revenue by country, kept from the change feed alone: what came counts, what went does not."""
    feed = frazil.spark.changes(orders)
    feed.createOrReplaceTempView("changes")
    rows = spark.sql(
        """
        SELECT country, round(sum(CASE
          WHEN _change_type IN ('insert', 'update_postimage') THEN amount ELSE -amount END), 2)
        FROM changes GROUP BY country
        """
    ).collect()
    return dict(rows)


def main() -> None:
    """Run the pipeline."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--warehouse", type=Path, help="where to keep the tables")
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--orders", type=int, default=400, help="new orders in a batch")
    options = parser.parse_args()
    folder = options.warehouse or Path(tempfile.mkdtemp(prefix="frazil-demo-"))
    try:
        run(folder, options.batches, options.orders)
    finally:
        if options.warehouse is None:
            shutil.rmtree(folder, ignore_errors=True)
    console.print()


def run(folder: Path, batches: int, size: int) -> None:
    """The story, from the first order to the last."""
    chance = random.Random(7)
    landing, checkpoint = folder / "landing", folder / "checkpoint"
    with step("Start Spark and create a table, partitioned by month"):
        spark = spark_session()
        catalog = frazil.connect(folder / "warehouse")
        orders = catalog.create_table("shop.orders", ORDERS, partition_by=["month(ordered_on)"])
        say(f"{orders.name} at {orders.location}")
    with step(f"{batches} files of orders arrive; each is merged as one snapshot"):
        for batch in range(batches):
            new, old = arrive(landing, batch, size, chance)
            say(f"file {batch}: {new} new orders, {old or 'no'} status updates")
        ingest(spark, orders, landing, checkpoint)
        say(f"{counted(len(orders.snapshots()), 'snapshot')}, {orders.scan().count():,} orders")
        say(shape(orders))
    orders.tag("before-compaction")
    with step("The tree: small commits live in the root, changed files carry deletion vectors"):
        show_tree(orders)
    with step("One more file, then the stream is restarted: nothing is merged twice"):
        arrive(landing, batches, size, chance)
        ingest(spark, orders, landing, checkpoint)
        ingest(spark, orders, landing, checkpoint)
        say(f"{counted(len(orders.snapshots()), 'snapshot')}, {orders.scan().count():,} orders")
    with step("Delete unpaid orders; mark one week as shipped (two Spark jobs, two snapshots)"):
        say(str(frazil.spark.delete(orders, "status = 'cancelled' and amount < 20")))
        say(str(frazil.spark.update(orders, {"status": "shipped"}, "ordered_on < '2026-01-08'")))
    with step("Compact: fewer, fuller files in Z-order; every row keeps its id"):
        done = jobs.rewrite_data_files(
            orders, strategy="z-order", by=["country", "ordered_on"], progress=True
        )
        say(str(done))
        say(str(jobs.rewrite_manifests(orders)))
        show_tree(orders)
    with step("Query: planned from the tree, read by Spark"):
        frazil.spark.table(orders).createOrReplaceTempView("orders")
        rows = spark.sql(
            "SELECT country, count(*), round(sum(amount), 2) FROM orders GROUP BY 1 ORDER BY 1"
        ).collect()
        print_grid("Revenue by country", ["country", "orders", "revenue"], rows)
        first = orders.snapshots()[0]
        then = frazil.spark.table(orders, as_of=int(first.snapshot_id)).count()
        say(f"As of the first snapshot there were {then:,} orders.")
    with step("Follow the changes: the change feed alone gives the same revenue"):
        followed = revenue_from_changes(spark, orders)
        direct = {country: revenue for country, _, revenue in rows}
        assert followed == direct, (followed, direct)
        say(f"{frazil.spark.changes(orders).count():,} row changes add up to the same sums")
        moved = frazil.spark.changes(orders, since=orders.snapshots()[-2]).count()
        say(f"compaction adds {moved or 'no'} rows to the change feed")
    spark.stop()
    catalog.close()


if __name__ == "__main__":
    main()
