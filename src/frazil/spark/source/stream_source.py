"""The streaming source of the data source: snapshots of a table, one after the other.

An offset says how far the stream has come: a snapshot, and how many of its units (`feed`) have
been given; -1 means all. Units of a snapshot are the same whenever they are cut, so a query that
starts again from its checkpoint reads the same rows. `replace` snapshots change no row and are
passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as sql
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from frazil.credentials import Carried
from frazil.errors import InvalidInput
from frazil.format.metadata.metadata import Snapshot
from frazil.iceberg.schema import Schema
from frazil.rows.scan import DEFAULT_SPLIT_BYTES
from frazil.spark.options.source_options import SourceOptions
from frazil.spark.options.stream_options import StreamMode, StreamOptions
from frazil.spark.read.feed import Cutter, Unit, UnitReader, feed_spark_schema
from frazil.spark.read.group_reader import OPEN_COST_BYTES
from frazil.spark.session.executor_tasks import groups
from frazil.spark.types.spark_types import spark_schema
from frazil.table import refs
from frazil.table.table import Table

Offset = dict[str, int]
_BEGINNING: Offset = {"snapshot": 0, "units": -1}
_MANY = 1 << 40


def stream_schema(table: Table, options: StreamOptions, columns: tuple[str, ...] | None) -> Any:
    """The Spark schema of a stream: rows, or rows of a change feed."""
    if options.mode is StreamMode.CHANGES:
        feed = table.changes(columns=columns)
        return feed_spark_schema(UnitReader.of(feed._reader, feed._reading).reading.schema)
    return spark_schema(table.scan(columns=columns).read_schema)


class StreamSource(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads a table's snapshots as micro-batches."""

    def __init__(
        self, options: SourceOptions, stream: StreamOptions, asked: sql.StructType
    ) -> None:
        self._credentials = Carried(options.properties)  # loaded before what needs them
        self._options = options
        self._stream = stream
        self._table: Table | None = options.load()
        self._target: Snapshot | None = None
        self._is_bounded = False
        self._cut: dict[int, list[Unit]] = {}
        feed = self._table.changes(columns=options.columns)
        if (
            asked.simpleString()
            != stream_schema(self._table, stream, options.columns).simpleString()
        ):
            raise InvalidInput(
                "a stream has the columns of the table; choose some with option columns"
            )
        self._rows = UnitReader.of(feed._reader, feed._reading)
        self._schema: Schema = feed._reading.schema

    # Where the stream is

    def initialOffset(self) -> Offset:  # noqa: N802
        """Where a new query begins."""
        table = self._fresh()
        stream = self._stream
        if stream.from_latest:
            return _end_of(table.current_snapshot())
        if stream.start_snapshot is not None:
            return _end_of(table.snapshot(stream.start_snapshot))
        if stream.start_ms is not None:
            for snapshot in refs.ancestors(table._handle, table.current_snapshot()):
                if snapshot.timestamp_ms <= stream.start_ms:
                    return _end_of(snapshot)
        return dict(_BEGINNING)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """How far the next batch goes."""
        table = self._fresh()
        tip = self._target if self._is_bounded else table.current_snapshot()
        limits = StreamOptions() if isinstance(limit, ReadAllAvailable) else self._stream
        return self._advanced(start, tip, limits)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Tells Spark whether batches are limited; the limits themselves are this source's own."""
        if not self._stream.is_limited:
            return ReadAllAvailable()
        return ReadMaxFiles(self._stream.max_files or _MANY)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is there now is where the query ends."""
        self._target = self._fresh().current_snapshot()
        self._is_bounded = True

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """The end of what is there, for the query's status."""
        tip = self._fresh().current_snapshot()
        return None if tip is None else _end_of(tip)

    def _advanced(self, start: Offset, tip: Snapshot | None, limits: StreamOptions) -> Offset:
        offset = dict(start)
        files = rows = snapshots = 0
        for snapshot, starts_whole in self._after(start, tip):
            units = self._units(snapshot, starts_whole=starts_whole)
            first = 0
            if int(snapshot.snapshot_id) == start["snapshot"]:
                first = start["units"]
            if limits.max_snapshots is not None and snapshots >= limits.max_snapshots:
                return offset
            for at in range(first, len(units)):
                files, rows = files + 1, rows + units[at].rows
                too_much = _is_over(files, limits.max_files) or _is_over(rows, limits.max_rows)
                if too_much and files > 1:
                    return offset
                offset = {"snapshot": int(snapshot.snapshot_id), "units": at + 1}
            offset = _end_of(snapshot)
            snapshots += bool(units)
        return offset

    # What is read

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Groups of units of about the split size."""
        self._fresh()
        chosen: list[Unit] = []
        last = self._snapshot_at(end)
        for snapshot, starts_whole in self._after(start, last):
            name = int(snapshot.snapshot_id)
            first = start["units"] if name == start["snapshot"] else 0
            stop = end["units"] if name == end["snapshot"] and end["units"] >= 0 else None
            chosen += self._units(snapshot, starts_whole=starts_whole)[first:stop]
        weights = [unit.weight for unit in chosen]
        split_bytes = self._options.split_bytes or DEFAULT_SPLIT_BYTES
        return [
            InputPartition([chosen[at] for at in group])
            for group in groups(weights, split_bytes, cost=OPEN_COST_BYTES)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one group."""
        if partition.value is None:
            return
        if self._stream.mode is StreamMode.CHANGES:
            yield from self._rows.rows(partition.value)
        else:
            yield from self._rows.inserted(partition.value, self._schema)

    def __getstate__(self) -> dict[str, Any]:
        """What executors need: how to read, nothing of the catalog."""
        return {**self.__dict__, "_table": None, "_target": None, "_cut": {}}

    # Snapshots

    def _fresh(self) -> Table:
        if self._table is None:
            self._table = self._options.load()
        return self._table.refresh()

    def _snapshot_at(self, offset: Offset) -> Snapshot | None:
        if not offset["snapshot"]:
            return None
        return self._fresh().snapshot(offset["snapshot"])

    def _after(self, start: Offset, tip: Snapshot | None) -> list[tuple[Snapshot, bool]]:
        """Snapshots after an offset, oldest first, one begun already included; and whether one is
        to be taken whole because what was before it has expired."""
        assert self._table is not None
        chain: list[Snapshot] = []
        for snapshot in refs.ancestors(self._table._handle, tip):
            if int(snapshot.snapshot_id) == start["snapshot"]:
                begun = [(snapshot, False)] if start["units"] >= 0 else []
                return [*begun, *((snapshot, False) for snapshot in reversed(chain))]
            chain.append(snapshot)
        if start["snapshot"]:
            raise InvalidInput(
                f"the stream stopped at snapshot {start['snapshot']}, which is no longer in the "
                "history of the table: it has expired, or the table was rolled back. Start a new "
                "query with another checkpoint."
            )
        chain.reverse()
        return [
            (snapshot, at == 0 and snapshot.parent_snapshot_id is not None)
            for at, snapshot in enumerate(chain)
        ]

    def _units(self, snapshot: Snapshot, *, starts_whole: bool) -> list[Unit]:
        """The units of one snapshot, remembered for the batch that reads them."""
        cached = self._cut.get(int(snapshot.snapshot_id))
        if cached is not None:
            return cached
        units = self._new_units(snapshot, starts_whole=starts_whole)
        if len(self._cut) >= 100:
            self._cut.clear()
        self._cut[int(snapshot.snapshot_id)] = units
        return units

    def _new_units(self, snapshot: Snapshot, *, starts_whole: bool) -> list[Unit]:
        assert self._table is not None
        is_feed = self._stream.mode is StreamMode.CHANGES
        operation = snapshot.operation
        if not is_feed and not starts_whole and operation not in ("append", "replace"):
            if self._stream.skip_changes:
                return []
            raise InvalidInput(
                f"snapshot {snapshot.snapshot_id} ({operation}) changes rows that a stream of "
                'appends has given; read with option "stream-mode" = "changes", or pass over such '
                'snapshots with "skip-changes" = "true"'
            )
        cutter = Cutter(
            reader=self._table._handle.reader(),
            reading=self._rows.reading,
            keeps_pairs_whole=True,
        )
        if not is_feed and not starts_whole and operation == "append":
            return cutter.appended(snapshot, snapshot.sequence_number)
        return cutter.units(snapshot, snapshot.sequence_number, starts_whole=starts_whole)


def _end_of(snapshot: Snapshot | None) -> Offset:
    if snapshot is None:
        return dict(_BEGINNING)
    return {"snapshot": int(snapshot.snapshot_id), "units": -1}


def _is_over(count: int, limit: int | None) -> bool:
    return limit is not None and count > limit


__all__ = ["StreamSource", "stream_schema"]
