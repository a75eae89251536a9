"""Row changes cut into pieces that executors read: a file that came, rows of a file that went.

A snapshot that took rows and brought rows may have moved or updated some. Such pieces are marked,
so that whoever puts them together pairs them by row id; or the snapshot stays in one piece, which
one executor reads with the same code as on one machine. So does a snapshot under delete files,
where finding the rows that went means reading rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import types as sql

from frazil.data.metadata_columns import LAST_UPDATED
from frazil.data.read.read_files import Reading
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.iceberg.schema import Schema
from frazil.legacy.read.legacy_decoder import LegacyDecoder
from frazil.scan.change_feed import CHANGE_COLUMNS, ChangeType, RowFeed, feed_columns
from frazil.scan.change_steps import ChangeStep, StepPlanner
from frazil.scan.deletes_in_force import live_deletes
from frazil.scan.tasks import Positions, Task, TaskReader
from frazil.spark.read.group_reader import task_bytes
from frazil.spark.types.spark_arrow import arrow_of, into_spark
from frazil.spark.types.spark_types import spark_schema
from frazil.storage import Storage
from frazil.tree.read import TreeReader
from frazil.value_classes import frozen, replace

AGE, SINCE = "__frazil_age", "__frazil_since"
CHANGE_FIELDS = [
    sql.StructField("_change_type", sql.StringType()),
    sql.StructField("_change_ordinal", sql.LongType()),
    sql.StructField("_commit_snapshot_id", sql.LongType()),
    sql.StructField("_commit_timestamp", sql.TimestampType()),
]


@frozen(eq=False)
class Piece:
    """Rows of one file that one snapshot added (`kind` insert) or took (delete)."""

    snapshot: Snapshot
    ordinal: int
    kind: ChangeType
    task: Task
    positions: Positions | None = None
    is_paired: bool = False
    since_sequence_number: int = -1

    @property
    def rows(self) -> int:
        """About how many rows it has."""
        if self.positions is not None:
            return int(self.positions.size)
        live = self.task.live_records
        return self.task.source.record_count if live is None else live

    @property
    def weight(self) -> int:
        """Bytes to read."""
        return task_bytes(self.task)


@frozen(eq=False)
class Whole:
    """All changes of one snapshot; with `starts_whole` every row of it, as inserted."""

    snapshot: Snapshot
    ordinal: int
    starts_whole: bool = False

    @property
    def rows(self) -> int:
        """About how many rows it has."""
        counted = ("added-records", "deleted-records", "added-position-deletes")
        return sum(int(self.snapshot.summary.get(key, 0)) for key in counted)

    @property
    def weight(self) -> int:
        """Bytes to read."""
        return int(self.snapshot.summary.get("added-files-size", 0))


Unit: TypeAlias = Piece | Whole


@frozen
class Cutter:
    """Cuts snapshots into units, from metadata alone."""

    reader: TreeReader
    reading: Reading
    keeps_pairs_whole: bool = False

    def units(self, snapshot: Snapshot, ordinal: int, *, starts_whole: bool = False) -> list[Unit]:
        """What one snapshot changed; the same units in the same order whenever it is asked."""
        planner = StepPlanner(reader=self.reader, reading=self.reading)
        if starts_whole:
            return self.pieces(planner.whole(snapshot), snapshot, ordinal)
        if snapshot.operation == "replace":
            return []
        if live_deletes(self.reader, snapshot) is not None:
            return [Whole(snapshot=snapshot, ordinal=ordinal)]
        step = planner.snapshot(snapshot)
        if self.keeps_pairs_whole and step.removed and step.added:
            return [Whole(snapshot=snapshot, ordinal=ordinal)]
        return self.pieces(step, snapshot, ordinal)

    def appended(self, snapshot: Snapshot, ordinal: int) -> list[Unit]:
        """The files that an append brought, whatever delete files are in force."""
        step = StepPlanner(reader=self.reader, reading=self.reading).snapshot(snapshot)
        return self.pieces(ChangeStep(added=step.added), snapshot, ordinal)

    def pieces(self, step: ChangeStep, snapshot: Snapshot, ordinal: int) -> list[Unit]:
        """A step's files, those that went first."""
        paired = bool(step.removed and step.added)
        parts = {ChangeType.DELETE: step.removed, ChangeType.INSERT: step.added}
        return [
            Piece(
                snapshot=snapshot,
                ordinal=ordinal,
                kind=kind,
                task=part.task,
                positions=part.positions,
                is_paired=paired,
                since_sequence_number=step.since_sequence_number,
            )
            for kind, changed in parts.items()
            for part in changed
        ]


def feed_spark_schema(schema: Schema) -> sql.StructType:
    """The Spark schema of a feed whose columns and `_row_id` are those of `schema`."""
    return sql.StructType([*spark_schema(schema).fields, *CHANGE_FIELDS])


@frozen
class UnitReader:
    """Reads units into batches that Spark takes; travels to executors.

    `reading` has the columns of the feed. `with_ages` adds what pairing needs to know of a row.
    """

    reading: Reading
    storage: Storage
    metadata: TableMetadata
    location: str
    pair_updates: bool = True
    with_ages: bool = False

    @staticmethod
    def of(reader: TreeReader, reading: Reading, *, pair_updates: bool = True) -> UnitReader:
        """A reader of a table's feed: the columns of `reading`, and `_row_id`."""
        return UnitReader(
            reading=replace(reading, schema=feed_columns(reading.schema)),
            storage=reader.storage,
            metadata=reader.metadata,
            location=reader.location,
            pair_updates=pair_updates,
        )

    def spark_schema(self) -> sql.StructType:
        """The schema of the frame."""
        struct = feed_spark_schema(self.reading.schema)
        if self.with_ages:
            more = [sql.StructField(name, sql.LongType()) for name in (AGE, SINCE)]
            struct = sql.StructType([*struct.fields, *more])
        return struct

    def rows(self, units: Sequence[Unit]) -> Iterator[pa.RecordBatch]:
        """The changes of units, in their order."""
        schema = self.reading.schema
        arrow = arrow_of(spark_schema(schema))
        names = [*arrow.names, *CHANGE_COLUMNS.names, *((AGE, SINCE) if self.with_ages else ())]
        for unit in units:
            batches = self._piece(unit) if isinstance(unit, Piece) else self._whole(unit)
            for batch in batches:
                if not batch.num_rows:
                    continue
                width = len(schema.fields)
                own = into_spark(batch.select(list(range(width))), schema, arrow)
                columns = [*own.columns, *batch.columns[width:]]
                yield pa.RecordBatch.from_arrays(columns, names=names)

    def inserted(self, units: Sequence[Unit], schema: Schema) -> Iterator[pa.RecordBatch]:
        """Only the rows of pieces, as the table's rows, without the columns of a feed."""
        arrow = arrow_of(spark_schema(schema))
        reader = TaskReader(replace(self.reading, schema=schema))
        for unit in units:
            assert isinstance(unit, Piece)
            for batch in reader.read(unit.task):
                if batch.num_rows:
                    yield into_spark(batch, schema, arrow)

    def _piece(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        schema = self.reading.schema
        if self.with_ages:
            schema = Schema(*schema.fields, replace(LAST_UPDATED, name=AGE))
        reader = TaskReader(replace(self.reading, schema=schema))
        for batch in reader.read(piece.task, only=piece.positions):
            rows = batch.num_rows
            columns = list(batch.columns)
            ages: list[pa.Array] = []
            if self.with_ages:
                ages = [columns.pop(), _repeated(piece.since_sequence_number, rows)]
            arrays = [*columns, *_stamp(piece.snapshot, piece.ordinal, piece.kind, rows), *ages]
            yield pa.RecordBatch.from_arrays(arrays, names=[f"c{at}" for at in range(len(arrays))])

    def _whole(self, unit: Whole) -> Iterator[pa.RecordBatch]:
        reader = TreeReader(
            self.storage, self.metadata, location=self.location, decoder=LegacyDecoder()
        )
        feed = RowFeed.of(reader, self.reading, pair_updates=self.pair_updates)
        for batch in feed.batches(
            [unit.snapshot], first_ordinal=unit.ordinal, starts_whole=unit.starts_whole
        ):
            if not self.with_ages:
                yield batch
                continue
            nothing = pa.nulls(batch.num_rows, pa.int64())
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, nothing, nothing],
                names=[*batch.schema.names, AGE, SINCE],
            )


def _stamp(snapshot: Snapshot, ordinal: int, kind: ChangeType, rows: int) -> list[pa.Array]:
    moment = pa.scalar(snapshot.timestamp_ms * 1000, pa.timestamp("us", tz="UTC"))
    return [
        pa.repeat(pa.scalar(kind.value, pa.string()), rows),
        _repeated(ordinal, rows),
        _repeated(int(snapshot.snapshot_id), rows),
        pa.repeat(moment, rows),
    ]


def _repeated(value: int, rows: int) -> pa.Array:
    return pa.array(np.full(rows, value, dtype=np.int64))
