"""Keys of rows as one bitmap per task: all that the workers of a deletion load of Frazil."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64


def bitmaps(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The keys of all rows of a task."""
    keys = BitMap64()
    for batch in batches:
        keys |= BitMap64(np.asarray(batch.column(0)).astype(np.uint64))
    if keys:
        yield pa.RecordBatch.from_arrays([pa.array([keys.serialize()])], names=["keys"])
