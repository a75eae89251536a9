"""Readers of the data source: planned on the driver's side, read on executors.

A process that reads loads this module, and neither the catalog nor what plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from frazil.credentials import Carried
from frazil.spark.read.group_reader import OPEN_COST_BYTES, GroupReader, task_bytes
from frazil.spark.session.executor_tasks import groups

if TYPE_CHECKING:
    from frazil.rows.scan import Scan
    from frazil.spark.options.source_options import SourceOptions


class FrazilReader(DataSourceReader):  # type: ignore[misc]
    """Plans on the driver's side, reads on executors."""

    def __init__(self, scan: Scan, options: SourceOptions) -> None:
        self._scan: Scan | None = scan
        self._split_bytes = options.split_bytes
        self._credentials = Carried(options.properties)
        self._reader: GroupReader | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """Groups of tasks of about the split size."""
        from frazil.rows.scan import DEFAULT_SPLIT_BYTES

        assert self._scan is not None
        split_bytes = self._split_bytes or DEFAULT_SPLIT_BYTES
        tasks = self._scan.tasks(split_bytes=split_bytes)
        weights = [task_bytes(task) for task in tasks]
        return [
            InputPartition([(0, tasks[at]) for at in group])
            for group in groups(weights, split_bytes, cost=OPEN_COST_BYTES)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one group."""
        if partition.value is None:  # Spark's stand-in for a plan without partitions
            return
        assert self._reader is not None
        yield from self._reader.rows(partition.value)

    def __getstate__(self) -> dict[str, Any]:
        """What executors need: how to read, nothing of the catalog."""
        assert self._scan is not None
        reader = GroupReader(reading=self._scan._reading())
        return {"credentials": self._credentials, "reader": reader}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._scan = None
        self._credentials = state["credentials"]
        self._reader = state["reader"]


class MetadataReader(DataSourceReader):  # type: ignore[misc]
    """Rows of a metadata table, made on the driver's side."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts

    def partitions(self) -> Sequence[InputPartition]:
        """One per stream of rows."""
        return [InputPartition(part) for part in self._parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one stream."""
        with pa.ipc.open_stream(partition.value) as stream:
            yield from stream

    def __getstate__(self) -> dict[str, Any]:
        return {"_parts": []}
