"""Row-level changes on one machine: find the rows, write what is new, and say it as a `Change`.

Deletes become deletion vectors, or drop whole files when statistics or the count prove it. Updates
and upserts write the new rows with their row ids kept.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.literals import literal
from pyiceberg.schema import Schema

from frazil.commit.change import Change, Isolation, VectorEdit
from frazil.commit.handle import TableHandle
from frazil.data.metadata_columns import LAST_UPDATED, LINEAGE, ROW_ID, with_columns
from frazil.data.row_input import Rows, conformed
from frazil.data.write_files import write_rows
from frazil.errors import InvalidInput
from frazil.expr import assign
from frazil.expr.bind import conjunction, predicate
from frazil.expr.filter_columns import ColumnIndex
from frazil.expr.operators import Op
from frazil.expr.parse import parse
from frazil.format.batch import EntryBatch
from frazil.format.metadata import Snapshot, TableMetadata
from frazil.rows.scan import Scan
from frazil.scan.tasks import Task, TaskReader
from frazil.tree.read import LEAF, POSITION

DELETE_ISOLATION = "write.delete.isolation-level"
UPDATE_ISOLATION = "write.update.isolation-level"
MERGE_ISOLATION = "write.merge.isolation-level"
_MAX_KEYS_IN_FILTER = 200


@dataclass(slots=True)
class RowEditor:
    """Builds row-level changes on one snapshot of a table.

    `written` collects data files as they appear, so that a failed commit can remove them.
    """

    handle: TableHandle
    metadata: TableMetadata
    snapshot: Snapshot | None
    branch: str
    written: list[str] = field(default_factory=list)

    def append(self, rows: Rows) -> Change:
        """New rows."""
        return self._change(added=self.write(conformed(rows, self.metadata.schema())))

    def write(self, batches: Iterator[pa.RecordBatch], *, with_lineage: bool = False) -> EntryBatch:
        """Write conforming batches to data files."""
        metadata = self.metadata
        schema = metadata.schema()
        return write_rows(
            batches,
            storage=self.handle.storage,
            location=self.handle.location,
            schema=with_columns(schema, LINEAGE) if with_lineage else schema,
            spec=metadata.spec(),
            sort_order=metadata.sort_order(),
            derived=metadata.expressions,
            properties=metadata.properties,
            write_id=uuid.uuid4(),
            written=self.written,
        )

    def delete(self, where: str | BooleanExpression | None) -> Change:
        """Rows that match go."""
        scan = self.scan(where, ("_pos",))
        reader = TaskReader(scan.reading())
        gone: list[Task] = []
        vectors: list[VectorEdit] = []
        for task in scan.tasks():
            if task.must_match:
                gone.append(task)
                continue
            positions = _column(reader.read(task), "_pos")
            if not positions.size:
                continue
            live = task.live_records
            if live is not None and positions.size == live:
                gone.append(task)
            else:
                vectors.append(_edit(task, positions, reader.resolved(task)))
        return self._change(
            removed=_entries_of(gone),
            vectors=tuple(vectors),
            conflict_filter=scan.filter,
            isolation=self._isolation(DELETE_ISOLATION),
        )

    def overwrite(self, rows: Rows, where: str | BooleanExpression | None) -> Change:
        """Rows that match go, new rows come; one snapshot."""
        removal = self.delete(where)
        return replace(removal, added=self.append(rows).added)

    def overwrite_partitions(self, rows: Rows) -> Change:
        """Replace every partition that the new rows have a row for."""
        added = self.append(rows).added
        spec = self.metadata.spec()
        if added is None or not spec.fields:
            raise InvalidInput(
                "the table is not partitioned: use overwrite, with or without a filter"
            )
        keys = [f"partition.{part.field_id}" for part in spec.fields]
        touched = {tuple(row) for row in zip(*(added.pylist(key) for key in keys), strict=True)}
        files = self.scan(None, None).plan().files
        same = zip(files.pylist("spec_id"), *(files.pylist(key) for key in keys), strict=True)
        mask = np.array(
            [row[0] == spec.spec_id and tuple(row[1:]) in touched for row in same], dtype=np.bool_
        )
        hit = files.filter(mask) if files.num_rows else files
        return self._change(
            added=added,
            removed=_hints(hit),
            conflict_filter=AlwaysTrue(),
            isolation=self._isolation("write.overwrite.isolation-level"),
        )

    def update(
        self, assignments: Mapping[str, Any], where: str | BooleanExpression | None
    ) -> Change:
        """Rows that match get new values; their row ids stay."""
        schema = self.metadata.schema()
        compiled = assign.compile_assignments(assignments, schema)
        return self._rewrite_rows(
            self.scan(where, None),
            lambda batch: assign.apply(compiled, batch, schema),
            isolation=self._isolation(UPDATE_ISOLATION),
        )

    def _rewrite_rows(
        self,
        scan: Scan,
        change: Callable[[pa.RecordBatch], pa.RecordBatch],
        *,
        isolation: Isolation,
    ) -> Change:
        names = tuple(column.name for column in scan.table_schema.fields)
        wide = replace(scan, columns=(*names, "_pos", ROW_ID.name))
        reader = TaskReader(wide.reading())
        vectors: list[VectorEdit] = []

        def rows() -> Iterator[pa.RecordBatch]:
            for task in wide.tasks():
                found: list[np.ndarray[Any, Any]] = []
                for batch in reader.read(task):
                    found.append(np.asarray(batch.column("_pos")))
                    yield _with_lineage(change(batch), batch.column(ROW_ID.name))
                positions = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
                if positions.size:
                    vectors.append(_edit(task, positions, reader.resolved(task), exclusive=True))

        added = self.write(rows(), with_lineage=True)
        return self._change(
            added=added,
            vectors=tuple(vectors),
            conflict_filter=scan.filter,
            isolation=isolation,
            rows_updated=sum(edit.positions.size for edit in vectors),
        )

    def scan(self, where: str | BooleanExpression | None, columns: Sequence[str] | None) -> Scan:
        """A scan of the snapshot this editor works on, in the current schema."""
        return Scan(
            handle=self.handle,
            snapshot=self.snapshot,
            where=where,
            columns=None if columns is None else tuple(columns),
            schema_override=self.metadata.schema(),
        )

    def _isolation(self, name: str) -> Isolation:
        return Isolation.parse(self.metadata.properties.get(name, Isolation.SERIALIZABLE))

    def _change(self, **parts: Any) -> Change:
        base = None if self.snapshot is None else int(self.snapshot.snapshot_id)
        return Change(branch=self.branch, base_snapshot_id=base, **parts)

    # Upsert

    def upsert(
        self,
        rows: Rows,
        on: Sequence[str],
        *,
        update_matched: bool = True,
        insert_unmatched: bool = True,
    ) -> Change:
        """Rows whose key exists replace the old ones, keeping row ids; others are new.

        A matched row that is equal in every column is left alone.
        """
        schema = self.metadata.schema()
        source = pa.Table.from_batches(list(conformed(rows, schema)))
        _check_keys(source, on, schema)
        matches = self._matches(source, on)
        fresh = np.ones(source.num_rows, dtype=np.bool_)
        fresh[matches.source_rows] = False
        changed = matches.changed if update_matched else np.zeros(0, dtype=np.int64)
        pieces: list[pa.RecordBatch] = []
        if changed.size:
            updates = source.take(pa.array(matches.source_rows[changed]))
            known = matches.row_ids[changed]
            ids = pa.array(known, pa.int64(), mask=known == _NO_ROW_ID)
            pieces += _lineage_batches(updates, ids)
        if insert_unmatched and fresh.any():
            inserts = source.filter(pa.array(fresh))
            pieces += _lineage_batches(inserts, pa.nulls(inserts.num_rows, pa.int64()))
        has_updates = bool(changed.size)
        added = None
        if pieces:
            batches = iter(pieces) if has_updates else (_plain(piece) for piece in pieces)
            added = self.write(batches, with_lineage=has_updates)
        return self._change(
            added=added,
            vectors=tuple(matches.edits(changed)),
            conflict_filter=matches.filter,
            isolation=self._isolation(MERGE_ISOLATION),
            rows_updated=int(changed.size),
        )

    def _matches(self, source: pa.Table, on: Sequence[str]) -> _Matches:
        schema = self.metadata.schema()
        where = key_range(source, on, schema)
        names = tuple(column.name for column in schema.fields)
        scan = replace(self.scan(where, None), columns=(*names, "_pos", ROW_ID.name))
        reader = TaskReader(replace(scan.reading(), row_filter=AlwaysTrue()))
        keys = _key_codes(source, on)
        found = _Matches(filter=scan.filter)
        for task in scan.tasks():
            for batch in reader.read(task):
                rows = keys.lookup(batch)
                hit = np.flatnonzero(rows >= 0)
                if hit.size:
                    found.add(task, reader, batch.take(pa.array(hit)), rows[hit], source)
        found.finish()
        return found


_NO_ROW_ID = -1
"""Rows of files from before row lineage have none until the next commit."""


class _Matches:
    """Target rows that a source row has the key of."""

    def __init__(self, *, filter: BooleanExpression) -> None:
        self.filter = filter
        self._parts: list[tuple[Task, TaskReader, Any, Any, Any, Any]] = []

    def add(
        self, task: Task, reader: TaskReader, batch: pa.RecordBatch, rows: Any, source: pa.Table
    ) -> None:
        names = source.column_names
        taken = source.take(pa.array(rows))
        same = np.ones(batch.num_rows, dtype=np.bool_)
        for name in names:
            same &= _equal(batch.column(name), taken.column(name))
        self._parts.append(
            (
                task,
                reader,
                np.asarray(batch.column("_pos")),
                np.asarray(batch.column(ROW_ID.name).fill_null(_NO_ROW_ID)),
                rows,
                ~same,
            )
        )

    def finish(self) -> None:
        empty = np.zeros(0, dtype=np.int64)
        self.source_rows = np.concatenate([part[4] for part in self._parts] or [empty])
        self.row_ids = np.concatenate([part[3] for part in self._parts] or [empty])
        flags = [part[5] for part in self._parts]
        self.changed = np.flatnonzero(np.concatenate(flags)) if flags else empty
        _, counts = np.unique(self.source_rows, return_counts=True)
        if (counts > 1).any():
            raise InvalidInput(
                f"{int((counts > 1).sum())} keys match more than one row of the table; "
                "upsert needs columns that identify a row"
            )

    def edits(self, chosen: Any) -> Iterator[VectorEdit]:
        start = 0
        by_task: dict[str, tuple[Task, TaskReader, list[Any]]] = {}
        for task, reader, positions, *_ in self._parts:
            mine = chosen[(chosen >= start) & (chosen < start + len(positions))] - start
            start += len(positions)
            if mine.size:
                slot = by_task.setdefault(task.location, (task, reader, []))
                slot[2].append(positions[mine])
        for task, reader, parts in by_task.values():
            yield _edit(task, np.sort(np.concatenate(parts)), reader.resolved(task), exclusive=True)


class _KeyCodes:
    """Source rows by key, null-safe, for many lookups."""

    def __init__(self, source: pa.Table, on: Sequence[str]) -> None:
        self._on = list(on)
        keys = source.select(self._on).append_column(
            "@row", pa.array(np.arange(source.num_rows, dtype=np.int64))
        )
        self._keys = keys

    def lookup(self, batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Per row of the batch: the source row of that key, or -1."""
        target = pa.Table.from_batches([batch]).select(self._on)
        if len(self._on) == 1:
            index = pc.index_in(target.column(0), value_set=self._keys.column(0).combine_chunks())
            return np.asarray(pc.fill_null(index, -1).to_numpy(), dtype=np.int64)
        target = target.append_column("@at", pa.array(np.arange(target.num_rows, dtype=np.int64)))
        joined = target.join(self._keys, keys=self._on, join_type="inner")
        rows = np.full(target.num_rows, -1, dtype=np.int64)
        rows[np.asarray(joined.column("@at"))] = np.asarray(joined.column("@row"))
        return rows


def _key_codes(source: pa.Table, on: Sequence[str]) -> _KeyCodes:
    return _KeyCodes(source, on)


def key_range(source: pa.Table, on: Sequence[str], schema: Schema) -> BooleanExpression:
    """A filter that every row with a key of the source passes: small sets, else the range."""
    columns = ColumnIndex.of(schema)
    parts: list[BooleanExpression] = []
    for name in on:
        values = source.column(name)
        if not source.num_rows or pa.types.is_nested(values.type):
            continue
        column = columns.with_id(schema.find_field(name).field_id)
        distinct = pc.unique(values)
        if len(distinct) <= _MAX_KEYS_IN_FILTER:
            literals = [literal(value) for value in distinct.to_pylist()]
            parts.append(predicate(Op.IN, column, literals))
        elif not pa.types.is_floating(values.type):
            ends = pc.min_max(values)
            parts.append(predicate(Op.GE, column, [literal(ends["min"].as_py())]))
            parts.append(predicate(Op.LE, column, [literal(ends["max"].as_py())]))
    return parse(conjunction(parts), schema)


def _check_keys(source: pa.Table, on: Sequence[str], schema: Schema) -> None:
    if not on:
        raise InvalidInput("upsert needs at least one key column: on=[…]")
    twice = sorted({name for name in on if list(on).count(name) > 1})
    if twice:
        raise InvalidInput(f"key column {twice[0]} is named twice")
    unknown = [name for name in on if name not in {column.name for column in schema.fields}]
    if unknown:
        raise InvalidInput(
            f"unknown key column {', '.join(unknown)}; the table has "
            + ", ".join(column.name for column in schema.fields)
        )
    for name in on:
        if source.column(name).null_count:
            raise InvalidInput(f"key column {name} has nulls in the rows to upsert")
    if source.select(list(on)).group_by(list(on)).aggregate([]).num_rows < source.num_rows:
        raise InvalidInput(
            f"the rows to upsert have duplicate keys in {', '.join(on)}; keep one row per key"
        )


def _edit(task: Task, positions: Any, resolved: Any, *, exclusive: bool = False) -> VectorEdit:
    return VectorEdit(
        location=task.location,
        positions=positions,
        resolved=resolved,
        leaf=task.leaf,
        position=task.position,
        exclusive=exclusive,
    )


def _entries_of(tasks: Sequence[Task]) -> EntryBatch | None:
    if not tasks:
        return None
    return EntryBatch.from_rows(
        [{"location": task.location, LEAF: task.leaf, POSITION: task.position} for task in tasks],
        {LEAF: pa.string(), POSITION: pa.int64()},
    )


def _hints(files: EntryBatch) -> EntryBatch | None:
    return files.select(["location", LEAF, POSITION]) if files.num_rows else None


def _column(batches: Iterator[pa.RecordBatch], name: str) -> np.ndarray[Any, Any]:
    parts = [np.asarray(batch.column(name)) for batch in batches]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _with_lineage(batch: pa.RecordBatch, row_ids: pa.Array) -> pa.RecordBatch:
    """Rows with the two lineage columns; a null sequence number is inherited."""
    columns = [*batch.columns, row_ids, pa.nulls(batch.num_rows, pa.int64())]
    lineage = [pa.field(column.name, pa.int64()) for column in LINEAGE]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*batch.schema, *lineage]))


def _lineage_batches(table: pa.Table, row_ids: pa.Array) -> list[pa.RecordBatch]:
    batch = table.combine_chunks().to_batches()
    return [_with_lineage(part, row_ids) for part in batch[:1]] if batch else []


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.drop_columns([ROW_ID.name, LAST_UPDATED.name])


def _equal(left: pa.Array, right: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([a == b for a, b in pairs], dtype=np.bool_)
    same = pc.equal(left, right.combine_chunks().cast(left.type))
    both_null = pc.and_(pc.is_null(left), pc.is_null(right.combine_chunks()))
    return np.asarray(pc.or_(pc.fill_null(same, False), both_null))


__all__ = ["RowEditor", "key_range"]
