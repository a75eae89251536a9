"""Python values as rows of a frame, so that work reaches executors as data.

One row is one unit of work; `spread` gives every row a partition of its own. What is shipped is
pickled and needs nothing but the package at the other end.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMN = "work"
_MAX_PARTITIONS = 10_000


def spread(spark: SparkSession, work: Sequence[Any]) -> DataFrame:
    """A frame with one row, and as far as that goes one partition, per unit of work."""
    rows = pa.table(
        {
            _COLUMN: pa.array([pickle.dumps(unit) for unit in work], pa.binary()),
            "at": pa.array(range(len(work)), pa.int32()),
        }
    )
    frame = spark.createDataFrame(rows)
    parts = max(1, min(len(work), _MAX_PARTITIONS))
    if parts == 1:
        return frame.coalesce(1)
    by_id = getattr(frame, "repartitionById", None)
    return by_id(parts, frame["at"] % parts) if by_id is not None else frame.repartition(parts)


def received(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """The units of work that reached this executor."""
    for batch in batches:
        for value in batch.column(_COLUMN):
            yield pickle.loads(value.as_py())


def groups(weights: Sequence[int], target: int, *, cost: int = 0) -> list[list[int]]:
    """Indices in runs of about the target weight; `cost` is what one more item weighs by itself."""
    made: list[list[int]] = []
    held = 0
    for index, weight in enumerate(weights):
        full = weight + cost
        if not made or held + full > target:
            made.append([])
            held = 0
        made[-1].append(index)
        held += full
    return made
