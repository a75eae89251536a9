"""Files that Spark's Parquet reader cannot read as the table means them, read by Arrow.

Equality deletes and carried-over position deletes, files without field ids, ORC, types without a
Parquet counterpart in Spark: the same reader as on one machine, run on executors, one task per
group of files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from frazil.rows.planned import Planned
from frazil.rows.scan import DEFAULT_SPLIT_BYTES
from frazil.scan.tasks import split_tasks
from frazil.spark.read.group_reader import OPEN_COST_BYTES, GroupReader, task_bytes
from frazil.spark.session.executor_tasks import groups, spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(
    spark: SparkSession,
    planned: Planned,
    rows: npt.NDArray[np.intp],
    reader: GroupReader,
    *,
    split_bytes: int = DEFAULT_SPLIT_BYTES,
) -> DataFrame:
    """The rows of these files of the plan."""
    pairs = [
        (int(planned.bases[row]), part)
        for row, task in zip(rows, planned.tasks(rows), strict=True)
        for part in split_tasks([task], split_bytes)
    ]
    sizes = [task_bytes(task) for _, task in pairs]
    work = [
        [pairs[index] for index in group]
        for group in groups(sizes, split_bytes, cost=OPEN_COST_BYTES)
    ]
    return spread(spark, work).mapInArrow(reader.read, reader.spark_schema())
