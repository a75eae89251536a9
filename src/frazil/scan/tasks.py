"""Plans as tasks: a file or a slice of one, with the deletes that apply to it.

Objects are made only when asked for. A task is picklable and holds no driver state; `TaskReader`
turns it into rows, here or on an executor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from frazil.data.read.equality import EqualityDeletes
from frazil.data.read.read_files import Reading, Shapes, read_file, read_positions
from frazil.data.read.read_together import WholeFile, is_small, read_together
from frazil.data.slices import DataFileSlice
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import column_files_of
from frazil.format.entries.fields import PARTITION_PREFIX, ContentType
from frazil.format.values.types import is_variable_length
from frazil.format.vectors import bitmap
from frazil.format.vectors.puffin import StoredVector
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.schema import Schema
from frazil.storage import readers_at
from frazil.threads import in_threads
from frazil.tree.stored_vectors import read_vector, vectors_of
from frazil.value_classes import field, frozen, replace

if TYPE_CHECKING:
    from frazil.scan.plan import Plan

Positions = np.ndarray[Any, np.dtype[np.int64]]
_BUNDLE_FILES: Final = 64
_FEW_VALUES: Final = 1 << 20
"""Of a file; files with more are read one after the other."""
_WEIGHT_OF_TEXT: Final = 4
"""Numbers that take as much memory as a text."""
_READ_AHEAD_BYTES: Final = 64 << 20


@frozen
class DeleteFile:
    """A delete file that applies to a task."""

    source: DataFileSlice
    content_type: ContentType
    equality_ids: tuple[int, ...] = ()
    vector: StoredVector | None = None


@frozen
class Task:
    """Rows to read. `location` is the file as metadata calls it; `leaf` and `position` say where
    its entry was found (`leaf` None: in the root)."""

    location: str
    source: DataFileSlice
    vector: StoredVector | None = None
    deletes: tuple[DeleteFile, ...] = ()
    must_match: bool = False
    leaf: str | None = None
    position: int | None = None
    split_offsets: tuple[int, ...] = field(default=(), repr=False)

    @property
    def live_records(self) -> int | None:
        """Rows that are left, when metadata alone can tell."""
        if self.deletes:
            return None
        return self.source.record_count - (self.vector.cardinality if self.vector else 0)

    def split(self, target_bytes: int) -> list[Task]:
        """Slices at the file's own offsets, each of about the target size."""
        offsets = [offset for offset in self.split_offsets if offset > 0]
        size = self.source.file_size_in_bytes
        if size <= target_bytes or len(offsets) < 2 or sorted(offsets) != offsets:
            return [self]
        cuts = [0]
        for offset in offsets[1:]:
            if offset - cuts[-1] >= target_bytes:
                cuts.append(offset)
        ends = [*cuts[1:], size]
        return [
            replace(self, source=replace(self.source, start=start, length=end - start))
            for start, end in zip(cuts, ends, strict=True)
        ]


def tasks_of(plan: Plan, *, location: str) -> Iterator[Task]:
    """One task per file of the plan."""
    return file_tasks(plan.files, plan.deletes, plan.matches, location=location)


def file_tasks(
    files: EntryBatch,
    deletes: EntryBatch | None,
    matches: Mapping[int, tuple[int, ...]],
    *,
    location: str,
) -> Iterator[Task]:
    """One task per file; `matches` maps a row of `files` to the rows of `deletes` that apply."""
    from frazil.scan.plan import MUST_MATCH
    from frazil.tree.read import LEAF, POSITION

    applied = _delete_files(deletes, location) if deletes is not None else []
    vectors = _vectors(files, location)
    leaves = files.pylist(LEAF)
    positions = files.pylist(POSITION)
    must = files.pylist(MUST_MATCH)
    splits = files.pylist("split_offsets")
    names = files.pylist("location")
    for index, source in enumerate(slices_of(files, location)):
        yield Task(
            location=names[index],
            source=source,
            vector=vectors[index],
            deletes=tuple(applied[row] for row in matches.get(index, ())),
            must_match=bool(must[index]),
            leaf=leaves[index],
            position=positions[index] if leaves[index] is not None else None,
            split_offsets=tuple(splits[index] or ()),
        )


def slices_of(files: EntryBatch, location: str) -> Iterator[DataFileSlice]:
    """Entries as whole-file slices with absolute paths."""
    partitions = {
        int(key.removeprefix(PARTITION_PREFIX)): files.pylist(key)
        for key in files.keys
        if key.startswith(PARTITION_PREFIX)
    }
    columns = zip(
        paths.resolve_all(location, files.column("location")).to_pylist(),
        files.pylist("file_format"),
        files.pylist("record_count"),
        files.pylist("file_size_in_bytes"),
        files.pylist("spec_id"),
        files.pylist("tracking.first_row_id"),
        files.pylist("tracking.sequence_number"),
        column_files_of(files),
        strict=True,
    )
    for index, (path, kind, records, size, spec, first_row, sequence, parts) in enumerate(columns):
        yield DataFileSlice(
            path=path,
            file_format=kind,
            record_count=records,
            file_size_in_bytes=size,
            spec_id=spec,
            partition={id: values[index] for id, values in partitions.items()},
            first_row_id=first_row,
            data_sequence_number=sequence,
            column_files=tuple(
                replace(part, location=paths.resolve(location, part.location)) for part in parts
            ),
        )


def _vectors(files: EntryBatch, location: str) -> list[StoredVector | None]:
    """The vectors of files, by the addresses of their Puffin files."""
    return [
        None
        if vector is None
        else replace(vector, location=paths.resolve(location, vector.location))
        for vector in vectors_of(files)
    ]


def _delete_files(batch: EntryBatch, location: str) -> list[DeleteFile]:
    vectors = _vectors(batch, location)
    kinds = batch.pylist("content_type")
    ids = batch.pylist("equality_ids")
    return [
        DeleteFile(
            source=source,
            content_type=ContentType(kinds[index]),
            equality_ids=tuple(ids[index] or ()),
            vector=vectors[index],
        )
        for index, source in enumerate(slices_of(batch, location))
    ]


class TaskReader:
    """Reads tasks of one scan. Delete files are read once and kept while it lives."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._without_columns = replace(reading, schema=Schema(), shapes=Shapes())
        self._equality: dict[str, EqualityDeletes] = {}
        self._positions: dict[str, dict[str, Positions]] = {}

    def __reduce__(self) -> tuple[type[TaskReader], tuple[Reading]]:
        return (TaskReader, (self.reading,))

    def stream(self, tasks: Sequence[Task]) -> Iterator[pa.RecordBatch]:
        """The rows of all tasks, in order and with few of them in memory: files of few values are
        read side by side, others one after the other."""
        if has_few_values(tasks, self.reading.schema):
            yield from self.read_all(tasks)
            return
        for task in tasks:
            yield from self.read(task)

    def read_all(self, tasks: Sequence[Task]) -> Iterator[pa.RecordBatch]:
        """The rows of all tasks, in order; files are read in threads and held whole."""
        threads = readers_at(tasks[0].source.path) if tasks else 1
        bundles = list(self._bundles(tasks, max_tasks=min(_BUNDLE_FILES, len(tasks) // threads)))
        if len(bundles) < 2:
            for bundle in bundles:
                yield from self._read_bundle(bundle)
            return
        for part in in_threads(
            bundles, lambda bundle: list(self._read_bundle(bundle)), threads=threads
        ):
            yield from part

    def read_ahead(self, tasks: Sequence[Task]) -> Iterator[pa.RecordBatch]:
        """The rows of all tasks, in order: files are read side by side, up to a number of their
        bytes at once, whatever their columns."""
        ahead: list[Task] = []
        held = 0
        for task in tasks:
            size = task.source.file_size_in_bytes
            if ahead and held + size > _READ_AHEAD_BYTES:
                yield from self.read_all(ahead)
                ahead, held = [], 0
            ahead.append(task)
            held += size
        yield from self.read_all(ahead)

    def _bundles(self, tasks: Sequence[Task], *, max_tasks: int) -> Iterator[list[Task]]:
        """Tasks in order; small files that give all their rows are read together."""
        bundle: list[Task] = []
        rows = 0
        for task in tasks:
            count = task.source.record_count
            is_full = len(bundle) >= max_tasks or rows + count > self.reading.batch_rows
            if bundle and (is_full or not self._is_plain(task)):
                yield bundle
                bundle, rows = [], 0
            if self._is_plain(task):
                bundle.append(task)
                rows += count
            else:
                yield [task]
        if bundle:
            yield bundle

    def _is_plain(self, task: Task) -> bool:
        every = task.must_match or isinstance(self.reading.row_filter, AlwaysTrue)
        return every and not task.deletes and is_small(task.source)

    def _read_bundle(self, bundle: Sequence[Task]) -> Iterator[pa.RecordBatch]:
        if len(bundle) == 1:
            return self.read(bundle[0])
        files = [WholeFile(source=task.source, dropped=self.dropped(task)) for task in bundle]
        return read_together(files, self.reading)

    def read(self, task: Task, *, only: Positions | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a task that are left and match, in file order."""
        return read_file(
            task.source,
            _filtered(self.reading, task),
            dropped=self.dropped(task),
            only=only,
            equality=self._equality_deletes(task),
        )

    def positions(self, task: Task) -> Positions:
        """The positions of the rows that are left and match, whatever columns are asked for."""
        return read_positions(
            task.source,
            _filtered(self._without_columns, task),
            dropped=self.dropped(task),
            equality=self._equality_deletes(task),
        )

    def dropped(self, task: Task) -> Positions | None:
        """Positions deleted by the vector and by carried-over position deletes."""
        positions: Positions | None = None
        if task.vector is not None:
            positions = read_vector(
                self.reading.storage, task.vector, record_count=task.source.record_count
            )
        resolved = self.resolved(task)
        if not resolved.size:
            return positions
        return resolved if positions is None else bitmap.union(positions, resolved)

    def resolved(self, task: Task) -> Positions:
        """Positions that delete files of carried v2 and v3 manifests retire."""
        positions: Positions = np.zeros(0, dtype=np.int64)
        for file in task.deletes:
            if file.content_type is not ContentType.POSITION_DELETES:
                continue
            if file.vector is not None:
                more = read_vector(
                    self.reading.storage, file.vector, record_count=task.source.record_count
                )
            else:
                more = self._positions_of(file, task)
            positions = bitmap.union(positions, more)
        return positions

    def _equality_deletes(self, task: Task) -> list[EqualityDeletes]:
        return [self._equality_of(file) for file in task.deletes if file.equality_ids]

    def _equality_of(self, file: DeleteFile) -> EqualityDeletes:
        cached = self._equality.get(file.source.path)
        if cached is None:
            from frazil.data.read.delete_files import read_equality_deletes

            cached = read_equality_deletes(
                file.source,
                file.equality_ids,
                storage=self.reading.storage,
                schema=self.reading.table_schema,
                name_mapping=self.reading.name_mapping,
            )
            self._equality[file.source.path] = cached
        return cached

    def _positions_of(self, file: DeleteFile, task: Task) -> Positions:
        by_path = self._positions.get(file.source.path)
        if by_path is None:
            from frazil.data.read.delete_files import read_position_deletes

            raw = read_position_deletes(file.source, storage=self.reading.storage)
            by_path = {_plain(path): positions for path, positions in raw.items()}
            self._positions[file.source.path] = by_path
        return by_path.get(_plain(task.source.path), np.zeros(0, dtype=np.int64))


def has_few_values(tasks: Sequence[Task], schema: Schema) -> bool:
    """Whether several files can be held at once: their columns are few and have simple types."""
    if not tasks or not all(column.field_type.is_primitive for column in schema.fields):
        return False
    weights = (
        _WEIGHT_OF_TEXT if is_variable_length(column.field_type) else 1 for column in schema.fields
    )
    return max(task.source.record_count for task in tasks) * max(sum(weights), 1) <= _FEW_VALUES


def _filtered(reading: Reading, task: Task) -> Reading:
    return replace(reading, row_filter=AlwaysTrue()) if task.must_match else reading


def _plain(path: str) -> str:
    """Spellings of one local file compare equal: `file:/x`, `file:///x`, `/x`."""
    if path.startswith("file:"):
        return "/" + path[5:].lstrip("/")
    return path


def split_tasks(tasks: Sequence[Task], target_bytes: int) -> list[Task]:
    """Every task cut at its file's own offsets to about the target size."""
    return [part for task in tasks for part in task.split(target_bytes)]
