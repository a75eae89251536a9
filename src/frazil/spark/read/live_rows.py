"""Deletion vectors applied to a frame of rows that carry their file's base and their position.

Few deleted rows: an anti join with their keys, broadcast; the keys come from the driver, or, when
they are many, from executors. Very many: each executor opens the vectors of the files it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from frazil.format.vectors.puffin import StoredVector
from frazil.spark.session.executor_tasks import groups, received, spread
from frazil.storage import Storage
from frazil.tree.stored_vectors import read_vector
from frazil.value_classes import dataclass, frozen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY = "__frazil_deleted"
Based = tuple[int, int, StoredVector]
"""A file's base and record count, and its vector."""


@frozen
class VectorLimits:
    """Up to how many deleted rows each way is taken."""

    on_driver: int = 200_000
    broadcast: int = 20_000_000


def without_deleted(
    spark: SparkSession,
    frame: DataFrame,
    vectors: Sequence[Based],
    *,
    base: str,
    position: str,
    storage: Storage,
    limits: VectorLimits | None = None,
) -> DataFrame:
    """The rows of the frame that no vector deletes."""
    limits = limits or VectorLimits()
    deleted = sum(vector.cardinality for _, _, vector in vectors)
    if not deleted:
        return frame
    if deleted > limits.broadcast:
        live = F.arrow_udf(LiveRows(tuple(vectors), storage).of, "boolean")
        return frame.filter(live(frame[base], frame[position]))
    reader = KeyReader(storage)
    if deleted <= limits.on_driver:
        keys = spark.createDataFrame(pa.table({KEY: reader.keys(vectors)}))
    else:
        weights = [vector.cardinality for _, _, vector in vectors]
        per_task = max(1, deleted // 64)
        work = [[vectors[at] for at in group] for group in groups(weights, per_task)]
        keys = spread(spark, work).mapInArrow(reader.read, f"{KEY} long")
    return frame.join(F.broadcast(keys), (frame[base] + frame[position]) == keys[KEY], "left_anti")


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Reads vectors into keys of deleted rows."""

    storage: Storage

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Keys of every group that reached this executor."""
        for group in received(batches):
            yield pa.RecordBatch.from_arrays([self.keys(group)], names=[KEY])

    def keys(self, vectors: Sequence[Based]) -> pa.Array:
        """Keys of all rows that these vectors delete."""
        parts = [
            read_vector(self.storage, vector, record_count=records) + base
            for base, records, vector in vectors
        ]
        return pa.array(np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64))


class LiveRows:
    """Tells which rows are left; opens a file's vector when a row of it first comes by."""

    def __init__(self, vectors: tuple[Based, ...], storage: Storage) -> None:
        self._vectors = {base: (records, vector) for base, records, vector in vectors}
        self._storage = storage
        self._open: dict[int, Any] = {}

    def __reduce__(self) -> tuple[type[LiveRows], tuple[tuple[Based, ...], Storage]]:
        vectors = tuple((base, *rest) for base, rest in self._vectors.items())
        return (LiveRows, (vectors, self._storage))

    def of(self, bases: pa.Array, positions: pa.Array) -> pa.Array:
        """One boolean per row."""
        base_of = np.asarray(bases)
        position_of = np.asarray(positions)
        live = np.ones(len(base_of), dtype=np.bool_)
        for base in np.unique(base_of):
            dead = self._dead(int(base))
            if dead is not None:
                rows = base_of == base
                live[rows] = ~dead[position_of[rows]]
        return pa.array(live)

    def _dead(self, base: int) -> Any:
        """A flag per row of the file; the last few files are kept."""
        stored = self._vectors.get(base)
        if stored is None:
            return None
        if base not in self._open:
            if len(self._open) >= 4:
                self._open.pop(next(iter(self._open)))
            records, vector = stored
            flags = np.zeros(records, dtype=np.bool_)
            flags[read_vector(self._storage, vector, record_count=records)] = True
            self._open[base] = flags
        return self._open[base]
