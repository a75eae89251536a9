"""Deletion vectors that entries name, and the positions they hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import VECTOR_KEYS
from frazil.format.vectors import puffin
from frazil.format.vectors.puffin import Positions, StoredVector
from frazil.storage import Storage


def vectors_of(entries: EntryBatch) -> list[StoredVector | None]:
    """The vector of each entry, as its metadata spells the place; None for one without."""
    if not entries.has(VECTOR_KEYS[0]):
        return [None] * entries.num_rows
    columns = zip(*(entries.pylist(key) for key in VECTOR_KEYS), strict=True)
    return [
        None
        if location is None
        else StoredVector(
            location=location, offset=offset, size_in_bytes=size, cardinality=cardinality
        )
        for location, offset, size, cardinality in columns
    ]


def read_vector(
    storage: Storage,
    vector: StoredVector | None,
    *,
    location: str = "",
    record_count: int | None = None,
) -> Positions:
    """The positions of a vector of the table at `location`, by one range request; none of None."""
    if vector is None:
        return np.zeros(0, dtype=np.int64)
    path = paths.resolve(location, vector.location) if location else vector.location
    return puffin.read_vector_at(
        storage.open(path, size=vector.offset + vector.size_in_bytes),
        offset=vector.offset,
        size_in_bytes=vector.size_in_bytes,
        path=path,
        cardinality=vector.cardinality,
        record_count=record_count,
        limits=storage.limits,
    )


def with_vectors(entries: EntryBatch, vectors: Sequence[StoredVector | None]) -> EntryBatch:
    """Entries that name these vectors, one for each."""
    fields = ("location", "offset", "size_in_bytes", "cardinality")
    for key, field in zip(VECTOR_KEYS, fields, strict=True):
        values = [None if vector is None else getattr(vector, field) for vector in vectors]
        entries = entries.with_column(key, values)
    return entries
