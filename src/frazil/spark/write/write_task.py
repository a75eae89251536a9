"""What a task of a job does to write rows: the part of a write that travels to executors.

A worker loads this module and what it needs, so it knows nothing of catalogs and sessions.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

from frazil.data.conform import Conformer
from frazil.data.write.write_files import write_rows
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.derived import DerivedColumn
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import SortOrder
from frazil.spark.session.packed_entries import packed
from frazil.spark.types.spark_arrow import from_spark
from frazil.storage import Storage
from frazil.value_classes import frozen

_ENTRIES: Final = "entries"


@frozen
class WriteTask:
    """What one task of a write needs; travels to executors."""

    storage: Storage
    location: str
    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    derived: tuple[DerivedColumn, ...]
    properties: Mapping[str, str]

    @staticmethod
    def of(
        metadata: TableMetadata, schema: Schema, *, storage: Storage, location: str
    ) -> WriteTask:
        """Writing to a table in its current spec and sort order."""
        return WriteTask(
            storage=storage,
            location=location,
            schema=schema,
            spec=metadata.spec(),
            sort_order=metadata.sort_order(),
            derived=tuple(metadata.expressions),
            properties=dict(metadata.properties),
        )

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows of a partition; yields its entries, packed, if there are any."""
        yield from sent(self.write(batches))

    def write(self, batches: Iterator[pa.RecordBatch]) -> EntryBatch:
        """Write batches as Spark hands them over."""
        return self.write_conforming(self._conformed(batches))

    def write_conforming(self, rows: Iterator[pa.RecordBatch]) -> EntryBatch:
        """Write batches that have the columns of the schema."""
        return write_rows(
            rows,
            storage=self.storage,
            location=self.location,
            schema=self.schema,
            spec=self.spec,
            sort_order=self.sort_order,
            derived=self.derived,
            properties=self.properties,
            write_id=uuid.uuid4(),
        )

    def _conformed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        conformer: Conformer | None = None
        for batch in batches:
            respelled = from_spark(batch, self.schema)
            if conformer is None:
                conformer = Conformer.between(respelled.schema, self.schema)
            yield from conformer.conform(respelled)


def sent(entries: EntryBatch) -> Iterator[pa.RecordBatch]:
    """Entries, packed, as a task's answer; none if there are no entries."""
    if entries.num_rows:
        yield pa.RecordBatch.from_arrays([pa.array([packed(entries)])], names=[_ENTRIES])
