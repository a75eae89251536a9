"""What a task of a row-level job does: rows with actions into a sink, keys into a bitmap.

A worker loads this module and what it needs, so it knows nothing of catalogs and sessions.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import chain
from typing import Final

import pyarrow as pa

from frazil.format.entries.batch import EntryBatch
from frazil.rows.actions import RowSink, SinkResult
from frazil.spark.session.packed_entries import packed, unpacked
from frazil.spark.types.spark_arrow import from_spark
from frazil.value_classes import dataclass

_RESULT: Final = "result"


@dataclass(frozen=True, slots=True)
class SinkTask:
    """A sink that travels to executors."""

    sink: RowSink

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One result per task that had rows."""
        respelled = (from_spark(batch, self.sink.schema) for batch in batches)
        first = next(respelled, None)
        if first is None:
            return
        stream = pa.RecordBatchReader.from_batches(first.schema, chain([first], respelled))
        sent = _sent(self.sink.run(stream))
        yield pa.RecordBatch.from_arrays([pa.array([sent], pa.binary())], names=[_RESULT])


def _sent(result: SinkResult) -> bytes:
    entries = packed(result.entries) if result.entries.num_rows else None
    return pickle.dumps((entries, result.keys, result.counts, result.sources))


def received(data: bytes) -> SinkResult:
    """The result that a task sent."""
    entries, keys, counts, sources = pickle.loads(data)
    return SinkResult(
        entries=EntryBatch.concat([unpacked(entries)] if entries else []),
        keys=keys,
        counts=counts,
        sources=sources,
    )
