"""Groups of tasks read by Arrow into batches that Spark takes: what runs on executors.

The process that runs it loads this module, and neither the catalog nor what plans.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import types as sql

from frazil.data.metadata_columns import POS
from frazil.spark.session.executor_tasks import received
from frazil.spark.types.spark_arrow import arrow_of, into_spark
from frazil.spark.types.spark_types import spark_schema
from frazil.value_classes import frozen, replace

if TYPE_CHECKING:
    from frazil.data.read.read_files import Reading
    from frazil.scan.tasks import Task

OPEN_COST_BYTES = 4 * 1024 * 1024
"""What opening one more file weighs when tasks are grouped."""


@frozen
class GroupReader:
    """Reads groups of tasks into batches that Spark takes; `key` names the row-key column."""

    reading: Reading
    key: str | None = None

    def spark_schema(self) -> sql.StructType:
        """The schema of the frame."""
        struct = spark_schema(self.reading.schema)
        if self.key is not None:
            struct = sql.StructType([*struct.fields, sql.StructField(self.key, sql.LongType())])
        return struct

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of every group that reached this executor."""
        for group in received(batches):
            yield from self.rows(group)

    def rows(self, group: list[tuple[int, Task]]) -> Iterator[pa.RecordBatch]:
        """Rows of the tasks of one group, each given with its file's base."""
        from frazil.scan.tasks import TaskReader

        schema = self.reading.schema
        arrow = arrow_of(spark_schema(schema))
        reading = self.reading
        if self.key is not None:
            reading = replace(reading, schema=type(schema)(*schema.fields, _KEY_POSITION))
        reader = TaskReader(reading)
        for base, task in group:
            for batch in reader.read(task):
                if self.key is None:
                    yield into_spark(batch, schema, arrow)
                    continue
                positions = np.asarray(batch.column(batch.num_columns - 1))
                columns = batch.select(list(range(batch.num_columns - 1)))
                converted = into_spark(columns, schema, arrow)
                yield pa.RecordBatch.from_arrays(
                    [*converted.columns, pa.array(positions + base)], names=[*arrow.names, self.key]
                )


_KEY_POSITION = replace(POS, name="@key")


def task_bytes(task: Task) -> int:
    """How much of its file a task reads."""
    return task.source.length if task.source.length is not None else task.source.file_size_in_bytes
