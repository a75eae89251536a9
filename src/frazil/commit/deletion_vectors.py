"""Turn rows to delete into deletion vectors: union with the old vector, one Puffin file per commit.

The Puffin file is written once and reused by every retry, unless another commit changed the vector
of one of the files: then the union is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from frazil.commit.change import Positions, VectorEdit
from frazil.errors import Conflict, InvalidInput
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.vectors import bitmap, puffin
from frazil.format.vectors.puffin import StoredVector
from frazil.storage import Storage
from frazil.tree.stored_vectors import read_vector, vectors_of, with_vectors
from frazil.value_classes import frozen

CREATED_BY = "frazil"


@frozen
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
        self._seen: list[StoredVector | None] | None = None
        self._merged: tuple[list[StoredVector], int] | None = None
        self.written: list[tuple[str, int]] = []

    def write_merged(
        self, entries: EntryBatch, carried: Mapping[str, Positions] | None = None
    ) -> MergedVectors:
        """Merge and write the vectors, unless an earlier attempt did; the entries that have them.

        `entries` are the current entries of the edited files, in the order of the edits.

        `carried` are rows that old delete files retire, for edits that do not say.
        """
        current = vectors_of(entries)
        if self._merged is None or self._seen != current:
            conflicts = self._write(entries, current, carried or {})
            if conflicts:
                return MergedVectors(entries=entries, rows_carried=0, conflicts=conflicts)
            self._seen = current
        assert self._merged is not None
        vectors, rows_carried = self._merged
        return MergedVectors(entries=with_vectors(entries, vectors), rows_carried=rows_carried)

    def _write(
        self,
        entries: EntryBatch,
        current: Sequence[StoredVector | None],
        carried: Mapping[str, Positions],
    ) -> tuple[Conflict, ...]:
        records = entries.numpy("record_count")
        conflicts: list[Conflict] = []
        vectors: list[tuple[str, Positions]] = []
        stored: list[StoredVector | None] = []
        rows_carried = 0
        for index, edit in enumerate(self._edits):
            old = read_vector(
                self._storage,
                current[index],
                location=self._location,
                record_count=int(records[index]),
            )
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
        merged_vectors = [next(written) if vector is None else vector for vector in stored]
        self._merged = (merged_vectors, rows_carried)
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
        path = f"data/{self._new_id()}.puffin"
        data, stored = puffin.write_vectors(
            list(vectors.items()), location=path, created_by=CREATED_BY
        )
        self.written.append((path, len(data)))
        self._storage.write_new(paths.resolve(self._location, path), data)
        return dict(zip(vectors, stored, strict=True))
