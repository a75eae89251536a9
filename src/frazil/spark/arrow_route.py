"""Files that Spark's Parquet reader cannot read as the table means them, read by Arrow.

Equality deletes and carried-over position deletes, files without field ids, ORC, types without a
Parquet counterpart in Spark: the same reader as on one machine, run on executors, one task per
group of files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import types as sql

from frazil.data.metadata_columns import POS
from frazil.data.read_files import Reading
from frazil.rows.planned import Planned
from frazil.rows.scan import DEFAULT_SPLIT_BYTES
from frazil.scan.tasks import Task, TaskReader, split_tasks
from frazil.spark.shipping import groups, received, spread
from frazil.spark.spark_types import arrow_of, into_spark, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPEN_COST_BYTES = 4 * 1024 * 1024
"""What opening one more file weighs when tasks are grouped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReader:
    """Reads groups of tasks into batches that Spark takes; `key` names the row-key column."""

    reading: Reading
    key: str | None = None

    def spark_schema(self) -> sql.StructType:
        """The schema of the frame."""
        made = spark_schema(self.reading.schema)
        if self.key is not None:
            made = sql.StructType([*made.fields, sql.StructField(self.key, sql.LongType())])
        return made

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of every group that reached this executor."""
        for group in received(batches):
            yield from self.rows(group)

    def rows(self, group: list[tuple[int, Task]]) -> Iterator[pa.RecordBatch]:
        """Rows of the tasks of one group, each given with its file's base."""
        wanted = self.reading.schema
        arrow = arrow_of(spark_schema(wanted))
        reading = self.reading
        if self.key is not None:
            reading = replace(reading, schema=type(wanted)(*wanted.fields, _KEY_POSITION))
        reader = TaskReader(reading)
        for base, task in group:
            for batch in reader.read(task):
                if self.key is None:
                    yield into_spark(batch, wanted, arrow)
                    continue
                positions = np.asarray(batch.column(batch.num_columns - 1))
                plain = batch.select(list(range(batch.num_columns - 1)))
                made = into_spark(plain, wanted, arrow)
                yield pa.RecordBatch.from_arrays(
                    [*made.columns, pa.array(positions + base)], names=[*arrow.names, self.key]
                )


_KEY_POSITION = POS.model_copy(update={"name": "@key"})


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


def task_bytes(task: Task) -> int:
    """How much of its file a task reads."""
    return task.source.length if task.source.length is not None else task.source.file_size_in_bytes
