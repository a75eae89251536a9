"""New values of columns, written as column files beside the data files.

The values come by the number of the row, in any order; a row without a value keeps the one it has,
a deleted row gets none. Here the files of a plan are written on this machine, with the new columns
of about a million rows at a time in memory; `column_sink` writes one of them, wherever that is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.rows.columns.column_sink import ColumnSink, NewValues, UpdatedFile
from frazil.rows.planned import Planned

_CHUNK_ROWS: Final = 1 << 20

Compute = Callable[[Planned], Generator[pa.RecordBatch]]
"""New values of the rows of a plan: columns by name, and `KEY`, the number of the row."""


def written_here(planned: Planned, sink: ColumnSink, compute: Compute) -> list[UpdatedFile]:
    """Compute the values file by file and write those of files where there are any."""
    reader = planned.scan._handle.reader()
    writer = sink.writer()
    updated: list[UpdatedFile] = []
    for rows in _chunks(planned):
        part = planned.part(rows)
        with closing(compute(part)) as batches:
            values = NewValues.of(batches, sink.fields)
        outcomes = reader.map(sink.files(part), partial(writer.write, values=values))
        updated += [outcome for outcome in outcomes if outcome is not None]
    return updated


def _chunks(planned: Planned) -> Iterator[npt.NDArray[np.intp]]:
    """Files, as rows of the plan, of about so many rows together."""
    ends = np.cumsum(planned.records)
    numbers = (ends - planned.records) // _CHUNK_ROWS
    for number in dict.fromkeys(numbers.tolist()):
        yield np.flatnonzero(numbers == number)


__all__ = ["Compute", "written_here"]
