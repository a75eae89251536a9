"""Rows with actions written by the tasks of a Spark job: every task is a `RowSink` of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from frazil.data.conform import Conformer
from frazil.format import paths
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, RowNumbers, RowSink, SinkResult
from frazil.rows.planned import Longs
from frazil.spark.session.executor_tasks import answers
from frazil.spark.session.find_table import prepare
from frazil.spark.types.spark_arrow import from_spark, incoming
from frazil.spark.write.distribution import Distribution, distributed
from frazil.spark.write.key_bitmaps import bitmaps
from frazil.spark.write.sink_task import SinkTask, received
from frazil.value_classes import replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEW: Final = 50_000
"""Rows that the driver writes itself."""


def written(
    frame: DataFrame, sink: RowSink, *, is_distributed: bool = False, max_rows: int | None = None
) -> list[SinkResult]:
    """Carry out the actions of a frame's rows; one result per task that had rows, in order.

    With `is_distributed`, rows are written where they lie; others are clustered for the table.
    Where `max_rows` says that there are few, they are written here: a job would take longer to
    start.
    """
    metadata, schema = sink.metadata, sink.schema
    prepare(frame.sparkSession, (column.field_type for column in schema.fields))
    rows = frame.drop(KEY, ACTION, SOURCE_ROW)
    Conformer.between(incoming(rows.schema, schema), schema)  # every problem, before any work
    if max_rows is not None and max_rows <= _FEW:
        return _written_here(frame, sink)
    if not is_distributed:
        frame = distributed(
            frame,
            schema=schema,
            spec=metadata.spec(),
            sort_order=sink.sort_order,
            mode=Distribution.of(metadata.properties, metadata.spec()),
        )
    task = SinkTask(replace(sink, written=None))
    results = [received(answer) for answer in answers(frame, task.run)]
    if sink.written is not None:
        for result in results:
            located = paths.resolve_all(sink.location, result.entries.column("location"))
            sink.written.extend(located.to_pylist())
    return results


def _written_here(frame: DataFrame, sink: RowSink) -> list[SinkResult]:
    rows = frame.toArrow()
    batches = [from_spark(batch, sink.schema) for batch in rows.to_batches() if batch.num_rows]
    if not batches:
        return []
    return [sink.run(pa.RecordBatchReader.from_batches(batches[0].schema, batches))]


def sources_met(results: Sequence[SinkResult]) -> Longs:
    """Numbers of the source rows that met a row of the table."""
    return RowNumbers.union(result.sources for result in results).to_array()


def collected_keys(keys: DataFrame) -> Longs:
    """The values of a frame's one long column, brought to the driver as bitmaps."""
    merged = BitMap64()
    for answer in answers(keys, bitmaps):
        merged |= BitMap64.deserialize(answer)
    return np.array(merged.to_array(), dtype=np.int64) if len(merged) else np.zeros(0, np.int64)
