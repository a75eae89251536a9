"""Turn rows to delete into deletion vectors: union with the old vector, one Puffin file per commit.

The Puffin file is written once and reused by every retry, unless another commit changed the vector
of one of the files: then the union is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from frazil.commit.change import Positions, StoredVector, VectorEdit
from frazil.errors import Conflict, InvalidInput
from frazil.format import bitmap, paths, puffin
from frazil.format.batch import EntryBatch
from frazil.format.fields import VECTOR_KEYS
from frazil.storage import Storage

CREATED_BY = "frazil"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedVectors:
    """Entries with their new vectors, and conflicts found.

    `rows_carried` counts rows in the new vectors that delete files had retired before.
    """

    entries: EntryBatch
    rows_carried: int
    conflicts: tuple[Conflict, ...] = ()


class VectorMerger:
    """Merges the edits of one commit into entries, remembering what it wrote."""

    def __init__(
        self,
        edits: Sequence[VectorEdit],
        *,
        storage: Storage,
        location: str,
        new_id: Callable[[], str],
    ) -> None:
        self._edits = tuple(edits)
        self._storage = storage
        self._location = location
        self._new_id = new_id
        self._seen: tuple[object, ...] | None = None
        self._merged: tuple[tuple[StoredVector, ...], int] | None = None
        self.written: list[tuple[str, int]] = []

    def write_merged(
        self, entries: EntryBatch, carried: Mapping[str, Positions] | None = None
    ) -> MergedVectors:
        """Merge and write the vectors, unless an earlier attempt did; the entries that have them.

        `entries` are the current entries of the edited files, in the order of the edits.

        `carried` are rows that old delete files retire, for edits that do not say.
        """
        current = tuple(zip(*(entries.pylist(key) for key in VECTOR_KEYS), strict=True))
        if self._merged is None or self._seen != current:
            conflicts = self._write(entries, current, carried or {})
            if conflicts:
                return MergedVectors(entries=entries, rows_carried=0, conflicts=conflicts)
            self._seen = current
        assert self._merged is not None
        blobs, rows_carried = self._merged
        where, offset, size, cardinality = VECTOR_KEYS
        changed = (
            entries.with_column(where, pa.array([blob.location for blob in blobs], pa.string()))
            .with_column(offset, pa.array([blob.offset for blob in blobs], pa.int64()))
            .with_column(size, pa.array([blob.size_in_bytes for blob in blobs], pa.int64()))
            .with_column(cardinality, pa.array([blob.cardinality for blob in blobs], pa.int64()))
        )
        return MergedVectors(entries=changed, rows_carried=rows_carried)

    def _write(
        self,
        entries: EntryBatch,
        current: Sequence[tuple[object, ...]],
        carried: Mapping[str, Positions],
    ) -> tuple[Conflict, ...]:
        records = entries.numpy("record_count")
        conflicts: list[Conflict] = []
        vectors: list[tuple[str, Positions]] = []
        stored: list[StoredVector | None] = []
        rows_carried = 0
        for index, edit in enumerate(self._edits):
            old = read_vector(self._storage, self._location, current[index], int(records[index]))
            merged = bitmap.union(old, edit.positions)
            if edit.exclusive and len(merged) < len(old) + len(edit.positions):
                conflicts.append(
                    Conflict(what="a row to update was deleted meanwhile", where=edit.location)
                )
                continue
            if edit.positions.size and int(edit.positions.max()) >= records[index]:
                raise InvalidInput(
                    f"{edit.location}: position {int(edit.positions.max())} is past the file's "
                    f"{int(records[index])} rows"
                )
            resolved = carried.get(edit.location) if edit.resolved is None else edit.resolved
            if resolved is not None:
                rows_carried += len(bitmap.union(old, resolved)) - len(old)
                merged = bitmap.union(merged, resolved)
            whole = len(merged) == len(edit.positions)
            if whole and edit.adopted is not None and edit.adopted.cardinality == len(merged):
                stored.append(edit.adopted)
                continue
            stored.append(None)
            vectors.append((paths.resolve(self._location, edit.location), merged))
        if conflicts:
            return tuple(conflicts)
        written = iter(self._stored(vectors))
        blobs = tuple(next(written) if blob is None else blob for blob in stored)
        self._merged = (blobs, rows_carried)
        return ()

    def _stored(self, vectors: Sequence[tuple[str, Positions]]) -> list[StoredVector]:
        """Write vectors into one Puffin file.

        Entries of one file share a vector where it is the same; another one needs another Puffin
        file, which has at most one for each data file.
        """
        files: list[dict[str, Positions]] = []
        chosen: list[tuple[int, str]] = []
        for path, positions in vectors:
            fits = (
                number
                for number, held in enumerate(files)
                if path not in held or np.array_equal(held[path], positions)
            )
            number = next(fits, len(files))
            if number == len(files):
                files.append({})
            files[number][path] = positions
            chosen.append((number, path))
        stored = [self._puffin(held) for held in files]
        return [stored[number][path] for number, path in chosen]

    def _puffin(self, vectors: Mapping[str, Positions]) -> dict[str, StoredVector]:
        data, blobs = puffin.write_vectors(list(vectors.items()), created_by=CREATED_BY)
        path = f"data/{self._new_id()}.puffin"
        self.written.append((path, len(data)))
        self._storage.write_new(paths.resolve(self._location, path), data)
        return {
            blob.location: StoredVector(
                location=path,
                offset=blob.offset,
                size_in_bytes=blob.size_in_bytes,
                cardinality=blob.cardinality,
            )
            for blob in blobs
        }


def read_vector(
    storage: Storage, location: str, vector: tuple[object, ...], record_count: int
) -> Positions:
    """The positions an entry's deletion vector holds; none when it has no vector."""
    where, offset, size, cardinality = vector
    if where is None:
        return np.zeros(0, dtype=np.int64)
    assert isinstance(where, str)
    assert isinstance(offset, int)
    assert isinstance(size, int)
    assert isinstance(cardinality, int)
    path = paths.resolve(location, where)
    return puffin.read_vector_at(
        storage.open(path),
        offset=offset,
        size_in_bytes=size,
        path=path,
        cardinality=cardinality,
        record_count=record_count,
        limits=storage.limits,
    )
