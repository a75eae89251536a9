"""The rows of the Spark workload, as Spark expressions: the same in both Sparks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PER_DAY = 100_000
COLUMNS = (
    "id as order_id",
    "date_add(date '2024-01-01', cast(id div 100000 as int)) as order_date",
    "element_at(array('US','DE','FR','IN','JP','BR','CN','GB'), "
    "cast(pmod(hash(id), 8) as int) + 1) as country",
    "pmod(xxhash64(id), 1000000) / 100.0D as price",
    "cast(pmod(xxhash64(id, 1), 1000) as int) as quantity",
    "sha1(cast(id as string)) as note",
)


def frame(spark: Any, start: int, stop: int) -> Any:
    """Rows `start` to `stop`."""
    return spark.range(start, stop, 1, 2).selectExpr(*COLUMNS)


def arriving(spark: Any, folder: Path, batches: int) -> Any:
    """A stream of so many batches, one small file each."""
    for number in range(batches):
        rows = frame(spark, 10_000_000 + number * 100, 10_000_100 + number * 100)
        rows.coalesce(1).write.parquet(str(folder / f"part-{number}"))
    stream = spark.readStream.schema(frame(spark, 0, 1).schema).option("maxFilesPerTrigger", 1)
    return stream.parquet(str(folder / "*"))


SELECTIVE = "order_date = date '2024-01-01' and country = 'US' and order_id < 1000"
