"""The rows of the Spark workload, as Spark expressions: the same in both Sparks."""

from __future__ import annotations

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


SELECTIVE = "order_date = date '2024-01-01' and country = 'US' and order_id < 1000"
