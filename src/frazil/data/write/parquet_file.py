"""One Parquet data file being written.

Rows come in memory types and leave as Parquet with field ids at every level. It knows row groups,
sizes and offsets; which rows go into which file is decided in `write`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_parquet as pq
from frazil import arrow_values
from frazil.data.projection import file_fields, projection
from frazil.data.reshape import without_nulls_below
from frazil.data.schema import identified_schema, parquet_schema, stored_schema
from frazil.data.statistics.stats_collector import StatsCollector
from frazil.data.write.write_options import WriteOptions
from frazil.errors import InvalidInput
from frazil.format.entries.metrics import MetricsConfig
from frazil.format.entries.seal import Sealer
from frazil.format.values.variant_type import variant_ids
from frazil.iceberg.schema import Schema
from frazil.storage import Storage
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from frazil.data.statistics.expression_stats import Evaluated, ExpressionStats
    from frazil.format.metadata.derived import DerivedColumn


class Background:
    """Runs a job while its caller continues. The thread starts with the first job."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._job: Future[None] | None = None

    def run(self, job: Callable[[], None]) -> None:
        """Start a job once the previous one has finished; raises what that one failed with."""
        from concurrent.futures import ThreadPoolExecutor

        self.wait()
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="frazil")
        self._job = self._thread.submit(job)

    def wait(self) -> None:
        """Wait for the running job; raises what it failed with."""
        job, self._job = self._job, None
        if job is not None:
            job.result()

    def close(self) -> None:
        """Wait, and end the thread."""
        try:
            self.wait()
        finally:
            if self._thread is not None:
                self._thread.shutdown()
                self._thread = None


_SAMPLE: Final = 4096
_SMALL_CHUNK: Final = 16_384
"""Chunks with fewer rows than this on average are put together before they are encoded."""


_BUFFER_BYTES: Final = 1 << 16
"""Parquet's writer hands over headers and pages one by one, four or five pieces a column."""
_WORTH_A_THREAD: Final = 1 << 16
"""Number of rows from which a thread for their statistics pays off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A data file that is complete."""

    path: str
    record_count: int
    size_in_bytes: int
    split_offsets: tuple[int, ...]
    stats: Mapping[str, Any]


class FileShape:
    """How rows of one schema are laid out in Parquet; made once per write."""

    def __init__(
        self,
        schema: Schema,
        options: WriteOptions,
        metrics: MetricsConfig,
        derived: Iterable[DerivedColumn] = (),
    ) -> None:
        self.schema = schema
        self._expressions = _expressions(derived, schema)
        self.options = options
        self.metrics = metrics
        self.arrow = parquet_schema(schema)
        self.variants = variant_ids(schema)
        if not self.arrow.names:  # a file without columns has no rows
            raise InvalidInput(
                "the table has columns of unknown type alone, of which files store nothing; add "
                "a column of another type"
            )
        self._projection = projection(file_fields(identified_schema(schema)), stored_schema(schema))

    def expression_stats(self) -> ExpressionStats | None:
        """What collects the statistics of expressions for one file; None if there are none."""
        if not self._expressions:
            return None
        from frazil.data.statistics.expression_stats import ExpressionStats

        return ExpressionStats(self._expressions, self.metrics.default)

    def stored(self, rows: pa.Table) -> pa.Table:
        """Rows as the file holds them."""
        batches = [self._stored(batch) for batch in rows.to_batches()]
        return pa.Table.from_batches(batches, self.arrow)

    def _stored(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = self._projection.project(rows)
        columns = []
        for column, source, field in zip(rows.columns, rows.schema, self.arrow, strict=True):
            valid = without_nulls_below(column, source)
            columns.append(valid if valid.type == field.type else pc.cast(valid, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow)


def _expressions(derived: Iterable[DerivedColumn], schema: Schema) -> tuple[Evaluated, ...]:
    if all(column.partition_field_id is not None for column in derived):
        return ()
    from frazil.data.statistics.expression_stats import evaluated

    return evaluated(derived, schema)


class ParquetFile:
    """An open data file; ends in `close` or `abort`."""

    def __init__(self, storage: Storage, path: str, shape: FileShape) -> None:
        self.path = path
        self._shape = shape
        self._stats = StatsCollector(shape.schema, shape.metrics)
        self._expressions = shape.expression_stats()
        self._rows = 0
        self._stream = storage.create(path)
        self._sealer = Sealer(self._stream, shape.variants)
        self._sink = pa.BufferedOutputStream(pa.PythonFile(self._sealer, mode="w"), _BUFFER_BYTES)
        self._writer: pq.ParquetWriter | None = None

    @property
    def size_in_bytes(self) -> int:
        """Bytes written so far."""
        return self._sealer.tell()

    def write_row_group(self, rows: pa.Table) -> None:
        """Add rows as one row group."""
        chunks = rows.column(0).num_chunks if rows.num_columns else 0
        if chunks > 1 and chunks * _SMALL_CHUNK > rows.num_rows:
            rows = rows.combine_chunks()
        stored = self._shape.stored(rows)
        writer = self._writer or self._opened(stored)
        with _beside(self._count, rows):
            writer.write_table(stored, row_group_size=max(rows.num_rows, 1))
        self._sink.flush()  # sizes are those of the sealer, and what is left now is the footer
        self._rows += rows.num_rows

    def _count(self, rows: pa.Table) -> None:
        self._stats.update(rows)
        if self._expressions is not None:
            self._expressions.update(rows)

    def _counted(self) -> dict[str, Any]:
        stats = self._stats.finish()
        return stats if self._expressions is None else {**stats, **self._expressions.finish()}

    def _opened(self, first: pa.Table | None) -> pq.ParquetWriter:
        """Open the writer, which its first rows tell what columns are like."""
        options = self._shape.options
        dictionaries = first is None or dictionary_columns(first, options.dictionary_bytes)
        self._writer = pq.ParquetWriter(
            self._sink,
            self._shape.arrow,
            use_dictionary=dictionaries,
            **options.writer_arguments(0 if first is None else first.nbytes),
        )
        return self._writer

    def close(self) -> WrittenFile:
        """Complete the file."""
        writer = self._writer or self._opened(None)
        self._sink.flush()
        self._sealer.hold()
        writer.close()
        self._sink.flush()
        self._sealer.finish()
        size = self.size_in_bytes
        self._stream.close()
        return WrittenFile(
            path=self.path,
            record_count=self._rows,
            size_in_bytes=size,
            split_offsets=pq.row_group_offsets(writer.metadata),
            stats=self._counted(),
        )

    def abort(self) -> None:
        """Let go of the file without completing it; never fails."""
        self._sealer.hold()  # the writer's footer goes nowhere
        with suppress(Exception):
            if self._writer is not None:
                self._writer.close()
        self._stream.abort()


@contextmanager
def _beside(count: Callable[[pa.Table], None], rows: pa.Table) -> Iterator[None]:
    """Collect statistics in a thread while the rows are encoded; both release the GIL."""
    if rows.num_rows < _WORTH_A_THREAD:
        yield
        count(rows)
        return
    with closing(Background()) as background:
        background.run(lambda: count(rows))
        yield


def dictionary_columns(rows: pa.Table, dictionary_bytes: int) -> bool | list[str]:
    """Columns to write with a dictionary: those whose values repeat, as far as a sample tells.

    A dictionary that outgrows its limit, or has nearly as many values as there are rows, takes time
    and bytes for nothing. Nested columns keep theirs.
    """
    if any(pa.types.is_nested(kind) for kind in rows.schema.types):
        return True
    is_sampled = rows.num_rows > _SAMPLE
    sample = rows
    if is_sampled:
        at = arrow_values.array(np.arange(_SAMPLE, dtype=np.int64) * rows.num_rows // _SAMPLE)
        sample = pc.take(rows, at)
    chosen = []
    for name, column in zip(sample.column_names, sample.columns, strict=True):
        values = pc.drop_null(column)
        if isinstance(values.type, pa.BaseExtensionType):
            values = pc.cast(values, values.type.storage_type)
        size = max(1, values.nbytes // max(1, len(values)))
        max_distinct = min(dictionary_bytes // size, rows.num_rows // 2)
        distinct = len(pc.unique(values))
        if is_sampled:
            # Among n of d values, about n * n / 2d pairs are alike.
            is_worth = 2 * max_distinct * (len(values) - distinct) >= len(values) ** 2
        else:
            is_worth = distinct <= max_distinct
        if is_worth:
            chosen.append(name)
    return chosen
