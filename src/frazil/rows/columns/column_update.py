"""New values of columns, written as column files beside the data files.

The values come by the number of the row, in any order; a row without a value keeps the one it has,
a deleted row gets none. Here the files of a plan are written on this machine, with the new columns
of about a million rows at a time in memory; `column_sink` writes one of them, wherever that is. A
file of which every row has its value is written while the values of the next ones are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values, cancellation
from frazil.rows.actions import KEY
from frazil.rows.columns.column_sink import (
    ColumnSink,
    FileToUpdate,
    NewValues,
    SinkWriter,
    UpdatedFile,
    refuse_repeated,
)
from frazil.rows.planned import Longs, Planned
from frazil.storage import readers_at
from frazil.threads import as_they_come
from frazil.value_classes import dataclass, field

_CHUNK_ROWS: Final = 1 << 20

Compute = Callable[[Planned], Generator[pa.RecordBatch]]
"""New values of the rows of a plan: columns by name, and `KEY`, the number of the row."""


def written_here(
    planned: Planned, sink: ColumnSink, compute: Compute, *, together: bool = False
) -> list[UpdatedFile]:
    """Compute the values and write those of files where there are any. Values that depend on other
    rows are computed `together`."""
    threads = readers_at(sink.location)
    writer = sink.writer()
    updated: list[UpdatedFile] = []
    for part in [planned] if together else map(planned.part, _chunks(planned)):
        files = sorted(map(_Values, sink.files(part)), key=lambda values: values.place)
        with closing(compute(part)) as batches:
            complete = _complete(batches, files)
            for _ in as_they_come(complete, lambda values: values.write(writer), threads=threads):
                cancellation.check()
        updated += [values.updated for values in files if values.updated is not None]
    return updated


@dataclass(slots=True, eq=False)
class _Values:
    """The values that a file has got so far."""

    file: FileToUpdate
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    updated: UpdatedFile | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Where the file stands: the rows at a base are those of the last file there, as the others
        have none."""
        return self.file.base, self.file.task.source.record_count

    @property
    def is_complete(self) -> bool:
        """Whether every row that is left has a value."""
        return self.rows == self.file.task.live_records

    def add(self, batch: pa.RecordBatch) -> bool:
        """Take more; says whether that completes the file."""
        if self.is_complete:
            refuse_repeated(batch.num_rows)
        self.batches.append(batch)
        self.rows += batch.num_rows
        return self.is_complete

    def write(self, writer: SinkWriter) -> None:
        batches, self.batches = self.batches, []
        self.updated = writer.write(self.file, NewValues.of(batches, writer.fields))


def _complete(batches: Iterable[pa.RecordBatch], files: list[_Values]) -> Iterator[_Values]:
    """Files by ascending bases, each once all of its values are there."""
    bases = np.array([values.file.base for values in files], dtype=np.int64)
    for batch in batches:
        for at, piece in _by_file(batch, bases):
            if files[at].add(piece):
                yield files[at]
    yield from (values for values in files if values.rows and not values.is_complete)


def _by_file(batch: pa.RecordBatch, bases: Longs) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The values of each file that a batch has some of."""
    keys = arrow_values.to_numpy(batch.column(KEY))
    if not (keys[1:] > keys[:-1]).all():
        order = np.argsort(keys, kind="stable")
        batch, keys = pc.take(batch, arrow_values.array(order)), keys[order]
    starts = [*np.searchsorted(keys, bases).tolist(), len(keys)]
    for at, (start, end) in enumerate(pairwise(starts)):
        if end > start:
            yield at, batch.slice(start, end - start)


def _chunks(planned: Planned) -> Iterator[npt.NDArray[np.intp]]:
    """Files, as rows of the plan, of about so many rows together."""
    ends = np.cumsum(planned.records)
    numbers = (ends - planned.records) // _CHUNK_ROWS
    for number in dict.fromkeys(numbers.tolist()):
        yield np.flatnonzero(numbers == number)


__all__ = ["Compute", "written_here"]
