"""Column files written by the tasks of a Spark job: one task for each file that gets values."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from frazil.data.conform import Conformer
from frazil.data.metadata_columns import POS
from frazil.format import paths
from frazil.rows.actions import KEY
from frazil.rows.columns.column_functions import Called
from frazil.rows.columns.column_sink import ColumnSink, UpdatedFile
from frazil.rows.planned import Planned
from frazil.rows.scan import DEFAULT_SPLIT_BYTES
from frazil.spark.expressions.conditions import quoted
from frazil.spark.read.group_reader import OPEN_COST_BYTES
from frazil.spark.session.executor_tasks import answers, groups, spread
from frazil.spark.session.find_table import prepare
from frazil.spark.types.spark_arrow import incoming
from frazil.spark.write.column_task import FILE_BASE, FILE_WORK, FunctionsTask, ValuesTask
from frazil.value_classes import replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAX_TASKS: Final = 10_000


def values_written(values: DataFrame, planned: Planned, sink: ColumnSink) -> list[UpdatedFile]:
    """Write the columns of a frame that has the new values of rows, their keys and positions.

    The rows of a file come together in one task, which holds the new columns of one file.
    """
    spark, files = values.sparkSession, sink.files(planned)
    prepare(spark, (column.field_type for column in sink.fields))
    rows = values.select(*(F.col(quoted(column.name)) for column in sink.fields), KEY)
    Conformer.between(incoming(rows.schema, sink.value_schema), sink.value_schema)
    if not files:
        return []
    work = pa.table(
        {
            FILE_BASE: pa.array([file.base for file in files], pa.int64()),
            FILE_WORK: pa.array([pickle.dumps(file) for file in files], pa.binary()),
        }
    )
    numbered = values.withColumn(FILE_BASE, F.col(KEY) - F.col(POS.name)).drop(POS.name)
    both = numbered.unionByName(spark.createDataFrame(work), allowMissingColumns=True)
    arranged = both.repartition(min(len(files), _MAX_TASKS), FILE_BASE).sortWithinPartitions(
        F.col(FILE_BASE), F.col(FILE_WORK).isNull()
    )
    task = ValuesTask(replace(sink, written=None))
    return _noted(answers(arranged, task.run), sink)


def functions_written(
    spark: SparkSession, functions: Called, planned: Planned, sink: ColumnSink
) -> list[UpdatedFile]:
    """Write what functions of batches give for the rows of a plan."""
    files = sink.files(planned)
    if not files:
        return []
    sizes = [file.task.source.file_size_in_bytes for file in files]
    work = [
        [files[at] for at in group]
        for group in groups(sizes, DEFAULT_SPLIT_BYTES, cost=OPEN_COST_BYTES)
    ]
    task = FunctionsTask(functions, replace(sink, written=None))
    return _noted(answers(spread(spark, work), task.run), sink)


def _noted(results: list[bytes], sink: ColumnSink) -> list[UpdatedFile]:
    updated: list[UpdatedFile] = [pickle.loads(result) for result in results]
    if sink.written is not None:
        locations = (file.edit.file.location for file in updated)
        sink.written.extend(paths.resolve(sink.location, location) for location in locations)
    return updated
