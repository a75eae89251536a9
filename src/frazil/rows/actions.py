"""Rows with actions: the algebra of row-level changes, the same for every engine.

An engine gives rows that each say what is to happen (`ACTION`) and to which row of the table
(`KEY`, a number of `Planned`). A `RowSink` writes the rows that live on and notes the keys of those
that leave; the outcome of all sinks becomes one `Change`. Rows pass once, so a source that gives
other rows when it is read again can do no harm.
"""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.commit.change import VectorEdit
from frazil.data.metadata_columns import LINEAGE, with_columns
from frazil.data.write.row_input import conformed
from frazil.data.write.write_files import write_rows
from frazil.errors import InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.schema import Schema
from frazil.rows.planned import Longs, Planned
from frazil.scan.tasks import Task, TaskReader
from frazil.storage import Storage
from frazil.text_format import counted
from frazil.tree.locate import FIRST_ROW_ID
from frazil.tree.read import LEAF, POSITION
from frazil.value_classes import dataclass, field

if TYPE_CHECKING:
    from frazil.iceberg.sorting import SortOrder


_NONE: Final = np.zeros(0, dtype=np.int64)
_MAX_HELD: Final = 1 << 22
"""Numbers kept as they are, 32 MB of them; sorting those takes a quarter of the time that putting
them into a bitmap does. Beyond, they go into one, which may be a hundredth of the size."""


class RowNumbers:
    """A set that knows how many numbers were put into it. It travels as a bitmap."""

    __slots__ = ("_bitmap", "_held", "_parts", "added")

    def __init__(self) -> None:
        self.added = 0
        self._held = 0
        self._parts: list[Longs] = []
        self._bitmap: BitMap64 | None = None

    def add(self, numbers: npt.NDArray[Any]) -> None:
        """Put numbers in, each 0 or more."""
        self.added += len(numbers)
        self._hold(np.asarray(numbers, dtype=np.int64))

    def _hold(self, numbers: Longs) -> None:
        self._parts.append(numbers)
        self._held += len(numbers)
        if self._held > _MAX_HELD:
            self._fold()

    def _fold(self) -> None:
        """Put what is held into the bitmap."""
        numbers = np.sort(np.concatenate([_NONE, *self._parts]))
        self._bitmap = BitMap64() if self._bitmap is None else self._bitmap
        self._bitmap.update(array("Q", numbers.tobytes()))
        self._parts, self._held = [], 0

    def __len__(self) -> int:
        if self._bitmap is None:
            return len(self.to_array())
        self._fold()
        return len(self._bitmap)

    def to_array(self) -> Longs:
        """The numbers, ascending, each once."""
        if self._bitmap is not None:
            self._fold()
            return np.array(self._bitmap.to_array(), dtype=np.int64)
        numbers = np.sort(np.concatenate([_NONE, *self._parts]))
        is_new = np.ones(len(numbers), dtype=np.bool_)
        np.not_equal(numbers[1:], numbers[:-1], out=is_new[1:])
        numbers = numbers if is_new.all() else numbers[is_new]
        self._parts, self._held = [numbers], len(numbers)  # asked again, they are in order
        return numbers

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.added, BitMap64(array("Q", self.to_array().tobytes())).serialize())

    @staticmethod
    def union(sets: Iterable[RowNumbers]) -> RowNumbers:
        """The numbers of all; what was added to them is added up."""
        merged = RowNumbers()
        for numbers in sets:
            merged.added += numbers.added
            for part in numbers._parts:
                merged._hold(part)
            if numbers._bitmap is not None:
                merged._bitmap = (merged._bitmap or BitMap64()) | numbers._bitmap
        return merged


def _restored(added: int, data: bytes) -> RowNumbers:
    restored = RowNumbers()
    restored.add(np.array(BitMap64.deserialize(data).to_array(), dtype=np.int64))
    restored.added = added
    return restored


KEY: Final = "__frazil_key"
"""Column with the number of the row that is replaced or deleted; null for new rows."""
ACTION: Final = "__frazil_action"
SOURCE_ROW: Final = "__frazil_source"
"""Column with the number of the source row, where each may meet one row of the table only."""
_JOB_COLUMNS: Final = (KEY, ACTION, SOURCE_ROW)


class Action(IntEnum):
    """What happens to a row."""

    KEEP = 0
    DELETE = 1
    UPDATE = 2
    INSERT = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SinkResult:
    """What one sink saw, or several: entries, keys by action, counts by action, and source rows
    met."""

    entries: EntryBatch
    keys: Mapping[int, RowNumbers]
    counts: Mapping[int, int]
    sources: RowNumbers

    @staticmethod
    def union(results: Sequence[SinkResult]) -> SinkResult:
        """Results of several sinks as one."""
        keys: dict[int, list[RowNumbers]] = {}
        counts: dict[int, int] = {}
        for result in results:
            for action, numbers in result.keys.items():
                keys.setdefault(action, []).append(numbers)
            for action, count in result.counts.items():
                counts[action] = counts.get(action, 0) + count
        return SinkResult(
            entries=EntryBatch.concat([result.entries for result in results]),
            keys={action: RowNumbers.union(numbers) for action, numbers in keys.items()},
            counts=counts,
            sources=RowNumbers.union(result.sources for result in results),
        )

    def check(self) -> None:
        """Refuse a row of the table, or a numbered row of the source, that was met twice."""
        met = sum(count for action, count in self.counts.items() if action != Action.INSERT)
        distinct = len(RowNumbers.union(self.keys.values()))
        if met > distinct:
            raise InvalidInput(
                f"{counted(met - distinct, 'source row')} matched a table row that another "
                "source row matched; make the source distinct first"
            )
        check_met_once(self.sources.added - len(self.sources))

    def retired(self, planned: Planned) -> tuple[EntryBatch | None, tuple[VectorEdit, ...]]:
        """Rows that leave, as files that go and vector edits; a file is named once.

        A file that an update moves rows out of stays, with the vector edit that reveals conflicts.
        """
        deleted, updated = (_longs(self.keys.get(a)) for a in (Action.DELETE, Action.UPDATE))
        moved_from = {row for row, _ in planned.located(updated)} if len(deleted) else set()
        alone: list[Longs] = []
        vectors: list[Longs] = [updated]
        for row, positions in planned.located(deleted) if len(deleted) else ():
            (vectors if row in moved_from else alone).append(positions + planned.bases[row])
        removed, edits = removal_of(planned, _joined(alone))
        _, exclusive = removal_of(planned, _joined(vectors), exclusive=True)
        return entries_of(removed), (*edits, *exclusive)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSink:
    """Writes the rows that live on. It is picklable, so engines can take it elsewhere."""

    metadata: TableMetadata
    schema: Schema
    storage: Storage
    location: str
    properties: Mapping[str, str]
    sort_order: SortOrder | None
    written: list[str] | None = None

    @staticmethod
    def of(
        metadata: TableMetadata,
        *,
        storage: Storage,
        location: str,
        with_lineage: bool = True,
        written: list[str] | None = None,
    ) -> RowSink:
        """A sink for rows of the table's schema, with `_row_id` and the sequence number."""
        schema = metadata.schema()
        return RowSink(
            metadata=metadata,
            schema=with_columns(schema, LINEAGE) if with_lineage else schema,
            storage=storage,
            location=location,
            properties=metadata.properties,
            sort_order=metadata.row_order(),
            written=written,
        )

    def run(self, rows: pa.RecordBatchReader) -> SinkResult:
        """Write a stream of rows with actions."""
        notes = _Notes()
        living = pa.schema([column for column in rows.schema if column.name not in _JOB_COLUMNS])
        stream = pa.RecordBatchReader.from_batches(living, notes.living(rows))
        metadata = self.metadata
        entries = write_rows(
            conformed(stream, self.schema),
            storage=self.storage,
            location=self.location,
            schema=self.schema,
            spec=metadata.spec(),
            sort_order=self.sort_order,
            derived=metadata.expressions,
            properties=self.properties,
            write_id=uuid.uuid4(),
            written=self.written,
        )
        return SinkResult(
            entries=entries,
            keys=notes.keys,
            counts=notes.counts,
            sources=notes.sources,
        )


@dataclass(slots=True)
class _Notes:
    """Takes keys and actions off the rows that pass by."""

    keys: dict[int, RowNumbers] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    sources: RowNumbers = field(default_factory=RowNumbers)

    def living(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows to write, without the columns of the job."""
        for batch in batches:
            actions = arrow_values.to_numpy(batch.column(ACTION))
            self._note(batch, actions)
            lives = actions >= Action.UPDATE
            if lives.any():
                rows = batch if lives.all() else pc.filter(batch, arrow_values.array(lives))
                names = [name for name in _JOB_COLUMNS if name in rows.schema.names]
                yield rows.drop_columns(names)

    def _note(
        self, batch: pa.RecordBatch, actions: np.ndarray[tuple[int], np.dtype[np.generic]]
    ) -> None:
        for action in Action:
            has_action = actions == action
            count = int(np.count_nonzero(has_action))
            if not count:
                continue
            self.counts[action] = self.counts.get(action, 0) + count
            if action is Action.INSERT:
                continue
            chosen = arrow_values.array(has_action)
            keys = self.keys.setdefault(action, RowNumbers())
            keys.add(arrow_values.to_numpy(pc.filter(batch.column(KEY), chosen)))
            if SOURCE_ROW in batch.schema.names:
                source_rows = pc.filter(batch.column(SOURCE_ROW), chosen)
                self.sources.add(arrow_values.to_numpy(pc.drop_null(source_rows)))


def check_met_once(twice: int) -> None:
    """Reject a source whose rows match more than one row of the table each."""
    if twice:
        raise InvalidInput(
            f"{counted(twice, 'table row')} {'shares' if twice == 1 else 'share'} a key with "
            "another row; key columns must be unique"
        )


def removal_of(
    planned: Planned, keys: Longs, *, exclusive: bool = False
) -> tuple[list[Task], tuple[VectorEdit, ...]]:
    """Row keys of a plan as files that lose every row, and vector edits of the others.

    Rows that are `exclusive` live on elsewhere: their files stay, so that conflicts are seen.
    """
    if not len(keys):
        return [], ()
    located = list(planned.located(keys))
    tasks = planned.tasks(np.array([row for row, _ in located], dtype=np.intp))
    has_deletes = any(task.deletes for task in tasks)
    reader = TaskReader(planned.reading()) if has_deletes else None
    none = np.zeros(0, dtype=np.int64)
    whole_files: list[Task] = []
    edits: list[VectorEdit] = []
    for task, (_, positions) in zip(tasks, located, strict=True):
        if not exclusive and task.live_records == len(positions):
            whole_files.append(task)
            continue
        edits.append(
            VectorEdit(
                location=task.location,
                positions=positions,
                resolved=none if reader is None else reader.resolved(task),
                leaf=task.leaf,
                position=task.position,
                first_row_id=task.source.first_row_id,
                exclusive=exclusive,
            )
        )
    return whole_files, tuple(edits)


def entries_of(tasks: Sequence[Task]) -> EntryBatch | None:
    """Files as a commit removes them."""
    if not tasks:
        return None
    rows = [
        {
            "location": task.location,
            LEAF: task.leaf,
            POSITION: task.position,
            FIRST_ROW_ID: task.source.first_row_id,
        }
        for task in tasks
    ]
    return EntryBatch.from_rows(rows, {LEAF: pa.string(), POSITION: pa.int64()})


def _joined(parts: list[Longs]) -> Longs:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _longs(keys: RowNumbers | None) -> Longs:
    return RowNumbers().to_array() if keys is None else keys.to_array()
