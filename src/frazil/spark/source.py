"""The data source `frazil`: rows and metadata tables for SQL and plain Spark code.

The snapshot is pinned when the source is made, so that all queries on one view or frame see the
same rows. Planning happens in a Python process on the driver's side; executors that read get tasks
and storage, never the catalog.

Filters of a query are not taken into planning. Spark 4.3 keeps what it planned for one query of a
relation and hands it to others, so a relation that was read with a filter loses rows when it is
read again without, or twice in one query. Filters that are to prune go into the option `where`, and
`Attached.sql` does that for SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyspark.sql import types as sql
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)

from frazil.errors import InvalidInput
from frazil.format.metadata import Snapshot
from frazil.rows.scan import Scan
from frazil.spark.arrow_route import OPEN_COST_BYTES, GroupReader, task_bytes
from frazil.spark.shipping import groups
from frazil.spark.source_options import SourceOptions
from frazil.spark.spark_types import spark_schema
from frazil.spark.stream_options import STREAM_OPTIONS, StreamMode, StreamOptions
from frazil.table.table import Table


class FrazilSource(DataSource):  # type: ignore[misc]
    """`spark.read.format("frazil")` and `df.write.format("frazil")`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.source_options = SourceOptions.parse(options, extra=STREAM_OPTIONS)
        self.stream_options = StreamOptions.parse(options)
        self._pinned: tuple[Snapshot | None, Schema] | None = None

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "frazil"

    def schema(self) -> sql.StructType:
        """The columns of the table as of the snapshot, which is pinned by this."""
        if self.stream_options.mode is StreamMode.CHANGES:
            options = self.source_options
            from frazil.spark.stream_source import stream_schema  # needs Spark 4.2

            return stream_schema(options.load(), self.stream_options, options.columns)
        scan = self._scan()
        if self.source_options.metadata is not None:
            from frazil.spark.metadata_tables import metadata_schema

            return metadata_schema(self.source_options.load(), self._metadata)
        return spark_schema(scan.schema)

    def reader(self, schema: sql.StructType) -> DataSourceReader:
        """A reader of the pinned snapshot; of the columns asked for, when there are fewer."""
        if self.stream_options.mode is StreamMode.CHANGES:
            raise InvalidInput("changes are read as a stream, or with frazil.spark.changes")
        scan = self._scan()
        if self.source_options.metadata is not None:
            from frazil.spark.metadata_tables import metadata_parts
            from frazil.table.inspect import Inspect

            inspect = Inspect(scan._handle, scan.snapshot)
            return MetadataReader(list(metadata_parts(inspect, self._metadata)))
        return FrazilReader(_narrowed(scan, schema), self.source_options.split_bytes)

    def writer(self, schema: sql.StructType, overwrite: bool) -> DataSourceWriter:
        """A writer that appends, or replaces all rows."""
        if self.source_options.metadata is not None:
            raise InvalidInput("metadata tables cannot be written to")
        from frazil.spark.source_writer import FrazilWriter

        return FrazilWriter.of(self.source_options, schema, overwrite=overwrite)

    def streamReader(self, schema: sql.StructType) -> DataSourceStreamReader:  # noqa: N802
        """A reader of the table's snapshots, one after the other."""
        from frazil.spark.stream_source import StreamSource

        return StreamSource(self.source_options, self.stream_options, schema)

    def streamWriter(  # noqa: N802
        self, schema: sql.StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """A sink that commits every micro-batch once."""
        from frazil.spark.stream_sink import StreamSink

        return StreamSink.of(self.source_options, self.stream_options, schema, replaces=overwrite)

    @property
    def _metadata(self) -> str:
        return self.source_options.metadata or ""

    def _scan(self) -> Scan:
        """The scan of the pinned snapshot; the first call pins."""
        options = self.source_options
        table = options.load()
        if self._pinned is None:
            self._pinned = _pinned(table, options)
        return _scan_of(table, options, *self._pinned)

    def __getstate__(self) -> dict[str, Any]:
        """A source that is sent anywhere is pinned: with a schema given, nothing else does it."""
        if self._pinned is None:
            self._scan()
        return dict(self.__dict__)


def _scan_of(
    table: Table, options: SourceOptions, snapshot: Snapshot | None, schema: Schema
) -> Scan:
    return Scan(
        _handle=table._handle,
        snapshot=snapshot,
        matching=options.where,
        columns=options.columns,
        schema_override=schema,
    )


def _pinned(table: Table, options: SourceOptions) -> tuple[Snapshot | None, Schema]:
    """The snapshot and the schema to read it in."""
    if options.snapshot == 0:
        snapshot, schema = None, table.schema
    else:
        first = table.scan(as_of=options.moment(table))
        snapshot, schema = first.snapshot, first.table_schema
    if options.schema_id is not None:
        schema = table.metadata.schema_by_id(options.schema_id)
    return snapshot, schema


def _narrowed(scan: Scan, asked: sql.StructType) -> Scan:
    """The scan with only the columns asked for, in their order."""
    known = {field.name: field.dataType for field in spark_schema(scan.schema)}
    problems = [
        f"\n  - column '{field.name}': asked for as {field.dataType.simpleString()}; the table has "
        + (known[field.name].simpleString() if field.name in known else "no such column")
        for field in asked
        if field.name not in known
        or known[field.name].simpleString() != field.dataType.simpleString()
    ]
    if problems:
        raise InvalidInput("The schema asked for does not fit the table:" + "".join(problems))
    names = tuple(field.name for field in asked)
    if names == tuple(known):
        return scan
    return replace(scan, columns=names)


class FrazilReader(DataSourceReader):  # type: ignore[misc]
    """Plans on the driver's side, reads on executors."""

    def __init__(self, scan: Scan, split_bytes: int) -> None:
        self._scan: Scan | None = scan
        self._split_bytes = split_bytes
        self._reader: GroupReader | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """Groups of tasks of about the split size."""
        assert self._scan is not None
        tasks = self._scan.tasks(split_bytes=self._split_bytes)
        weights = [task_bytes(task) for task in tasks]
        return [
            InputPartition([(0, tasks[at]) for at in group])
            for group in groups(weights, self._split_bytes, cost=OPEN_COST_BYTES)
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
        return {"reader": GroupReader(reading=self._scan._reading())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._scan = None
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
