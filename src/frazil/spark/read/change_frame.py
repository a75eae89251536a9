"""The change feed of a table as a Spark frame, read by executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from frazil.rows.scan import DEFAULT_SPLIT_BYTES
from frazil.scan.change_feed import Changes, ChangeType
from frazil.scan.change_steps import StepPlanner
from frazil.scan.row_changes import feed_columns, net_files
from frazil.spark.read.feed import AGE, CHANGE_FIELDS, SINCE, Cutter, Piece, Unit, UnitReader
from frazil.spark.read.group_reader import OPEN_COST_BYTES
from frazil.spark.session.executor_tasks import groups, received, spread
from frazil.spark.session.find_table import CatalogLike, prepare, session, table_of
from frazil.spark.types.spark_types import spark_schema
from frazil.table.refs import AsOf
from frazil.table.table import Table
from frazil.value_classes import dataclass, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BEFORE, _AFTER = ChangeType.UPDATE_PREIMAGE.value, ChangeType.UPDATE_POSTIMAGE.value


def changes(
    table: Table | str,
    since: AsOf | None = None,
    until: AsOf | None = None,
    *,
    columns: Sequence[str] | None = None,
    collapse: bool = False,
    pair_updates: bool = True,
    catalog: CatalogLike | None = None,
) -> DataFrame:
    """Rows that changed after `since`, up to and including `until`: the table's columns, `_row_id`,
    `_change_type`, `_change_ordinal`, `_commit_snapshot_id` and `_commit_timestamp`.

    Arguments are those of `Table.changes`. Rows are unordered; sort by `_change_ordinal`.
    """
    spark = session()
    opened = table_of(spark, table, catalog)
    return frame(
        spark,
        opened.changes(since, until, columns=columns, collapse=collapse, pair_updates=pair_updates),
    )


def change_schema(table: Table) -> sql.StructType:
    """The columns of a change feed."""
    own = spark_schema(feed_columns(table.metadata.schema()))
    return sql.StructType([*own.fields, *CHANGE_FIELDS])


def frame(spark: SparkSession, feed: Changes) -> DataFrame:
    """The changes as a frame."""
    reader = UnitReader.of(feed._reader, feed._reading, pair_updates=feed.pair_updates)
    prepare(spark, (field.field_type for field in reader.reading.schema.fields))
    units = list(_units(feed, reader))
    paired = [unit for unit in units if isinstance(unit, Piece) and unit.is_paired]
    unpaired = [unit for unit in units if not isinstance(unit, Piece) or not unit.is_paired]
    parts: list[DataFrame] = []
    if unpaired:
        parts.append(_read(spark, unpaired, reader))
    if paired:
        aged = _read(spark, paired, replace(reader, with_ages=True))
        parts.append(_put_together(aged, pair_updates=feed.pair_updates))
    if not parts:
        return spark.createDataFrame([], reader.spark_schema())
    return parts[0] if len(parts) == 1 else parts[0].union(parts[1])


def _units(feed: Changes, reader: UnitReader) -> Iterator[Unit]:
    cutter = Cutter(reader=feed._reader, reading=reader.reading)
    if not feed.snapshots:
        return
    if feed.collapse:
        planner = StepPlanner(reader=feed._reader, reading=reader.reading)
        until = feed.snapshots[-1]
        since = None if feed.starts_whole else feed.since
        step = (
            planner.whole(until)
            if since is None
            else planner.between(since, until, net_files(feed._reader, feed.snapshots))
        )
        yield from cutter.pieces(step, until, 0)
        return
    for ordinal, snapshot in enumerate(feed.snapshots):
        starts_whole = feed.starts_whole and ordinal == 0
        yield from cutter.units(snapshot, ordinal, starts_whole=starts_whole)


@dataclass(frozen=True, slots=True)
class _Job:
    """Reads the units that reach an executor."""

    reader: UnitReader

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of every group of units."""
        for units in received(batches):
            yield from self.reader.rows(units)


def _read(spark: SparkSession, units: Sequence[Unit], reader: UnitReader) -> DataFrame:
    weights = [unit.weight for unit in units]
    work = [
        [units[at] for at in group]
        for group in groups(weights, DEFAULT_SPLIT_BYTES, cost=OPEN_COST_BYTES)
    ]
    return spread(spark, work).mapInArrow(_Job(reader).run, reader.spark_schema())


def _put_together(rows: DataFrame, *, pair_updates: bool) -> DataFrame:
    """Rows that a step both took and brought: updated ones paired, merely moved ones dropped."""
    kind = F.col("_change_type")
    alone = -1 - F.monotonically_increasing_id()
    same = Window.partitionBy("_change_ordinal", "__frazil_same")
    came, went = kind == ChangeType.INSERT.value, kind == ChangeType.DELETE.value
    both = F.max(came).over(same) & F.max(went).over(same)
    age = F.max(F.when(came, F.col(AGE))).over(same)
    known = rows.withColumn("__frazil_same", F.coalesce(F.col("_row_id"), alone))
    known = known.withColumn("__frazil_both", both).withColumn(
        "__frazil_moved", both & F.coalesce(age <= F.col(SINCE), F.lit(False))
    )
    left = known.filter(~F.col("__frazil_moved"))
    if pair_updates:
        paired = F.when(came, F.lit(_AFTER)).otherwise(F.lit(_BEFORE))
        left = left.withColumn(
            "_change_type", F.when(F.col("__frazil_both"), paired).otherwise(kind)
        )
    return left.drop("__frazil_same", "__frazil_both", "__frazil_moved", AGE, SINCE)
