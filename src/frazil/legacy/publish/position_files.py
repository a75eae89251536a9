"""Position delete files of v2 that say what deletion vectors say: one per vector, written once."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.commit.handle import TableHandle
from frazil.data.metadata_columns import DELETED_FILE_PATH, DELETED_POS
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import FILE_PATH, VECTOR_KEYS, stats_key
from frazil.format.vectors.puffin import StoredVector
from frazil.legacy.publish.published import DeleteFileRef
from frazil.tree.stored_vectors import read_vector, vectors_of

_WHERE, _OFFSET = VECTOR_KEYS[:2]


class PositionFiles:
    """Writes the files that are not known yet and remembers which are used."""

    def __init__(self, handle: TableHandle, *, known: Mapping[str, DeleteFileRef]) -> None:
        self._handle = handle
        self._known = known
        self.used: dict[str, DeleteFileRef] = {}
        self.written = 0

    def keep(self, vectors: EntryBatch) -> None:
        """Note that the files of these vectors are still used."""
        for key in _keys(vectors):
            if key in self._known:
                self.used[key] = self._known[key]

    def entries(self, vectors: EntryBatch) -> EntryBatch:
        """Entries of vectors as entries of position delete files."""
        refs: list[DeleteFileRef] = []
        targets = paths.spelled(self._handle.location, vectors.column("referenced_file"))
        addresses = targets.to_pylist()
        stored_vectors = vectors_of(vectors)
        for index, key in enumerate(_keys(vectors)):
            ref = self.used.get(key) or self._known.get(key)
            if ref is None:
                ref = self._write(addresses[index], stored_vectors[index])
            self.used[key] = ref
            refs.append(ref)
        rows = vectors.num_rows
        stored = [paths.relativise(self._handle.location, ref.path) for ref in refs]
        batch = (
            vectors.with_column("location", pa.array(stored, pa.string()))
            .with_column("file_format", pa.repeat(pa.scalar("parquet"), rows))
            .with_column("record_count", vectors.column(VECTOR_KEYS[3]))
            .with_column("file_size_in_bytes", pa.array([ref.size for ref in refs], pa.int64()))
        )
        # Bounds of the path that are the same tell readers that the file speaks of one data file.
        for bound in ("lower_bound", "upper_bound"):
            batch = batch.with_column(stats_key(FILE_PATH, bound), targets)
        # Trino expects bounds of positions too. A file that was written before is not read for
        # them: every position lies between these.
        for bound, position in (("lower_bound", 0), ("upper_bound", _LAST_POSITION)):
            positions = pa.repeat(pa.scalar(position, pa.int64()), rows)
            batch = batch.with_column(stats_key(DELETED_POS.field_id, bound), positions)
        return batch.without(*VECTOR_KEYS)

    def _write(self, address: str, vector: StoredVector | None) -> DeleteFileRef:
        handle = self._handle
        positions = read_vector(handle.storage, vector, location=handle.location)
        table = pa.table(
            [
                pa.repeat(pa.scalar(address), len(positions)),
                pa.array(positions, pa.int64()),
            ],
            schema=_SCHEMA,
        )
        path = paths.resolve(handle.location, f"data/{handle.context.new_id()}-deletes.parquet")
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", store_schema=False)
        data = sink.getvalue()
        handle.storage.write_new(path, data)
        self.written += 1
        return DeleteFileRef(path=path, size=data.size)


_LAST_POSITION = (1 << 63) - 1


def _field(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(field_id)})


_SCHEMA = pa.schema(
    [
        _field(DELETED_FILE_PATH.name, pa.string(), DELETED_FILE_PATH.field_id),
        _field(DELETED_POS.name, pa.int64(), DELETED_POS.field_id),
    ]
)


def _keys(vectors: EntryBatch) -> list[str]:
    places = zip(vectors.pylist(_WHERE), vectors.pylist(_OFFSET), strict=True)
    return [f"{where} {offset}" for where, offset in places]


__all__ = ["PositionFiles"]
