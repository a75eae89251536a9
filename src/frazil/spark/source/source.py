"""The data source `frazil`: rows and metadata tables for SQL and plain Spark code.

The snapshot is pinned when the source is made, so that all queries on one view or frame see the
same rows. Planning happens in a Python process on the driver's side; executors that read get tasks
and storage, never the catalog.

Filters of a query are not taken into planning. Spark 4.3 keeps what it planned for one query of a
relation and hands it to others, so a relation that was read with a filter loses rows when it is
read again without, or twice in one query. Filters that are to prune go into the option `where`.

In a session whose driver has Frazil's Java classes, batches go through Frazil's own scan instead
(`source_verbs`): it prunes by every filter and starts no Python process. What is here then serves
streams only.

Spark loads this module in up to four new processes before the first row, and in one whenever any
Python data source is first used. It imports what a method needs inside the method.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from frazil.errors import InvalidInput
from frazil.spark.options.source_options import CHANGES_ARE_STREAMS, SourceOptions
from frazil.spark.options.stream_options import STREAM_OPTIONS, StreamMode, StreamOptions

if TYPE_CHECKING:
    from pyspark.sql import types as sql
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

    from frazil.format.metadata.metadata import Snapshot
    from frazil.iceberg.schema import Schema
    from frazil.rows.scan import Scan
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
            from frazil.spark.source.stream_source import stream_schema  # needs Spark 4.2

            return stream_schema(options.load(), self.stream_options, options.columns)
        table, _, columns = self._pin()
        if self.source_options.metadata is not None:
            from frazil.spark.read.metadata_tables import metadata_schema

            return metadata_schema(table, self._metadata)
        from frazil.spark.types.spark_types import spark_schema

        is_whole = self.source_options.columns is None
        return spark_schema(columns if is_whole else self._scan().read_schema)

    def reader(self, schema: sql.StructType) -> DataSourceReader:
        """A reader of the pinned snapshot; of the columns asked for, when there are fewer."""
        if self.stream_options.mode is StreamMode.CHANGES:
            raise InvalidInput(CHANGES_ARE_STREAMS)
        self.source_options.check_without_session()
        from frazil.spark.source.source_reader import FrazilReader, MetadataReader
        from frazil.spark.source.source_scan import narrowed

        scan = self._scan()
        if self.source_options.metadata is not None:
            from frazil.spark.read.metadata_tables import metadata_parts
            from frazil.table.inspect import Inspect

            inspect = Inspect(scan._handle, scan.snapshot)
            return MetadataReader(list(metadata_parts(inspect, self._metadata)))
        return FrazilReader(narrowed(scan, schema), self.source_options)

    def writer(self, schema: sql.StructType, overwrite: bool) -> DataSourceWriter:
        """A writer that appends, or replaces all rows."""
        self.source_options.check_writable()
        from frazil.spark.source.source_writer import FrazilWriter

        return FrazilWriter.of(self.source_options, schema, overwrite=overwrite)

    def streamReader(self, schema: sql.StructType) -> DataSourceStreamReader:  # noqa: N802
        """A reader of the table's snapshots, one after the other."""
        self.source_options.check_without_session()
        from frazil.spark.source.stream_source import StreamSource

        return StreamSource(self.source_options, self.stream_options, schema)

    def streamWriter(  # noqa: N802
        self, schema: sql.StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """A sink that commits every micro-batch once."""
        from frazil.spark.source.stream_sink import StreamSink

        return StreamSink.of(self.source_options, self.stream_options, schema, replaces=overwrite)

    @property
    def _metadata(self) -> str:
        return self.source_options.metadata or ""

    def _scan(self) -> Scan:
        """The scan of the pinned snapshot."""
        from frazil.spark.source.source_scan import scan_of

        table, snapshot, columns = self._pin()
        return scan_of(table, self.source_options, snapshot, columns)

    def _pin(self) -> tuple[Table, Snapshot | None, Schema]:
        """The table, its snapshot and columns; the first call decides which."""
        from frazil.spark.source.source_scan import pinned

        table = self.source_options.load()
        if self._pinned is None:
            self._pinned = pinned(table, self.source_options)
        return table, *self._pinned

    def __getstate__(self) -> dict[str, Any]:
        """A source that is sent anywhere is pinned: with a schema given, nothing else does it."""
        if self._pinned is None:
            self._pin()
        return dict(self.__dict__)
