"""What a task of a column update does: values of rows into the column files of their data files.

A worker loads this module and what it needs, so it knows nothing of catalogs and sessions. A task
that runs twice writes its files twice; the driver hears of one run, and what the other wrote are
orphans.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from frazil.rows.actions import KEY
from frazil.rows.columns.column_functions import Called
from frazil.rows.columns.column_sink import ColumnSink, FileToUpdate, NewValues, UpdatedFile
from frazil.spark.session.executor_tasks import received
from frazil.spark.types.spark_arrow import from_spark
from frazil.value_classes import dataclass

FILE_BASE: Final = "__frazil_file_base"
"""Column with the number of the first row of a row's file."""
FILE_WORK: Final = "__frazil_file_work"
"""Column with a file to update; null in rows with values."""
_RESULT: Final = "result"


@dataclass(frozen=True, slots=True)
class ValuesTask:
    """Rows with values, file after file, each file's below one that says which file it is."""

    sink: ColumnSink

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One answer for each file of which a row has a new value."""
        writer = self.sink.writer()
        for file, values in self._by_file(batches):
            rows = (from_spark(piece, self.sink.value_schema) for piece in values)
            updated = writer.write(file, NewValues.of(rows, self.sink.fields))
            if updated is not None:
                yield _sent(updated)

    def _by_file(
        self, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[tuple[FileToUpdate, list[pa.RecordBatch]]]:
        file: FileToUpdate | None = None
        values: list[pa.RecordBatch] = []
        names = [*(column.name for column in self.sink.fields), KEY]
        for batch in batches:
            bases = np.asarray(batch.column(FILE_BASE))
            starts = [0, *(np.flatnonzero(bases[1:] != bases[:-1]) + 1).tolist(), len(bases)]
            for start, end in pairwise(starts):
                piece = batch.slice(start, end - start)
                if end > start and (file is None or file.base != bases[start]):
                    if file is not None:
                        yield file, values
                    file = pickle.loads(piece.column(FILE_WORK)[0].as_py())
                    values, piece = [], piece.slice(1)
                if piece.num_rows:
                    values.append(piece.select(names))
        if file is not None:
            yield file, values


@dataclass(frozen=True, slots=True)
class FunctionsTask:
    """Functions of batches of rows, called on the rows of files."""

    functions: Called
    sink: ColumnSink

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One answer for each file that has rows."""
        writer = self.sink.writer()
        for files in received(batches):
            for file in files:
                rows = self.functions.rows([file], self.sink)
                updated = writer.write(file, NewValues.of(rows, self.sink.fields))
                if updated is not None:
                    yield _sent(updated)


def _sent(updated: UpdatedFile) -> pa.RecordBatch:
    answer = pa.array([pickle.dumps(updated)], pa.binary())
    return pa.RecordBatch.from_arrays([answer], names=[_RESULT])
