"""Row-level changes: find the rows, write what is new, and say it as one `Change`.

Deletes become deletion vectors, or drop whole files when statistics or the count prove it. Updates
and merges write the new rows with their row ids kept. What a plain filter says is evaluated here;
everything else is the business of an engine.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.commit.change import Change, Isolation, RowsRead, Searched, VectorEdit
from frazil.commit.handle import TableHandle
from frazil.data.metadata_columns import LINEAGE, with_columns
from frazil.data.schema import arrow_schema
from frazil.data.write.row_input import Rows, conformed, row_reader
from frazil.data.write.write_files import write_rows
from frazil.errors import InvalidInput
from frazil.filter.condition import Where
from frazil.filter.text.sql_text import ROWS, Expression, columns_of_schema, sql_text
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.format.values.variant_type import has_variant
from frazil.iceberg.expressions import AlwaysFalse, AlwaysTrue
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import StructType
from frazil.properties.property import Property
from frazil.properties.registry import (
    COLUMN_UPDATE_MODE,
    DELETE_ISOLATION,
    MERGE_ISOLATION,
    OVERWRITE_ISOLATION,
    UPDATE_ISOLATION,
)
from frazil.rows.actions import Action, RowSink, SinkResult, entries_of, removal_of
from frazil.rows.engine import (
    Assignments,
    Constant,
    Engine,
    KeyPair,
    MergeClause,
    MergePlan,
    MergeSource,
    Value,
    look_at_other_rows,
    reach,
)
from frazil.rows.merge_clauses import Clause, Side, has, may_meet_once, updates
from frazil.rows.partitions import Replaced
from frazil.rows.planned import Longs, Planned
from frazil.rows.scan import Scan
from frazil.scan.plan import MUST_MATCH
from frazil.scan.tasks import Task, TaskReader
from frazil.value_classes import dataclass, field, replace


@dataclass(slots=True)
class RowEditor:
    """Builds row-level changes on one snapshot of a table.

    `read` is the snapshot from which the caller may have computed the rows of an overwrite.
    `written` collects data files as they appear, so that a failed commit can remove them. Without
    an engine the embedded one is loaded when it is needed.
    """

    handle: TableHandle
    metadata: TableMetadata
    snapshot: Snapshot | None
    branch: str
    written: list[str] = field(default_factory=list)
    given_engine: Engine | None = None
    read: RowsRead | None = None

    @property
    def engine(self) -> Engine:
        """What evaluates SQL."""
        if self.given_engine is None:
            from frazil.rows.duckdb.duckdb_engine import DuckDbEngine

            self.given_engine = DuckDbEngine()
        return self.given_engine

    # Rows that come

    def append(self, rows: Rows) -> Change:
        """New rows."""
        return self._change(added=self.write(conformed(rows, self.metadata.schema())))

    def write(self, batches: Iterable[pa.RecordBatch], *, with_lineage: bool = False) -> EntryBatch:
        """Write conforming batches to data files."""
        metadata = self.metadata
        schema = metadata.schema()
        return write_rows(
            batches,
            storage=self.handle.storage,
            location=self.handle.location,
            schema=with_columns(schema, LINEAGE) if with_lineage else schema,
            spec=metadata.spec(),
            sort_order=metadata.row_order(),
            derived=metadata.expressions,
            properties=metadata.properties,
            write_id=uuid.uuid4(),
            written=self.written,
        )

    # Rows that go

    def delete(self, where: Where, params: Sequence[Any] = ()) -> Change:
        """Rows that match go."""
        if where is None:
            raise InvalidInput("delete needs a condition; 'true' deletes every row")
        return self._removal(where, params, DELETE_ISOLATION)

    def overwrite(self, rows: Rows, where: Where, params: Sequence[Any] = ()) -> Change:
        """Rows that match go, by default all, and new rows come; one snapshot."""
        removal = self._removal(where, params, OVERWRITE_ISOLATION)
        searched = tuple(replace(condition, read=self.read) for condition in removal.searched)
        return replace(removal, added=self.append(rows).added, searched=searched)

    def overwrite_partitions(self, rows: Rows) -> Change:
        """Replace every partition that the new rows have a row for."""
        if not self.metadata.spec().fields:
            raise InvalidInput(
                "the table is not partitioned: use overwrite, with or without a filter"
            )
        added = self.append(rows).added
        assert added is not None
        replaced = Replaced.of(added, self.metadata)
        scan = self.scan(replaced.filter, None)
        removed, vectors = replaced.removal(Planned.of(scan, extra_keys=replaced.extra_keys))
        (searched,) = self._searched(scan, OVERWRITE_ISOLATION)
        return self._change(
            added=added,
            removed=removed,
            vectors=vectors,
            searched=(replace(searched, read=self.read),),
        )

    def _removal(self, where: Where, params: Sequence[Any], isolation: Property[str]) -> Change:
        scan = self.scan(where, (), params=params)
        planned = Planned.of(scan)
        if scan.condition.sql is None:
            removed, vectors = self._matching(planned)
        else:
            removed, vectors = removal_of(planned, self.engine.matching(planned))
        return self._change(
            removed=entries_of(removed),
            vectors=vectors,
            searched=self._searched(scan, isolation),
            rows_removed=_leaving(removed, vectors),
        )

    def _matching(self, planned: Planned) -> tuple[list[Task], tuple[VectorEdit, ...]]:
        """Files whose rows all match, and positions in others, read side by side."""
        sure = np.array(planned.plan.files.pylist(MUST_MATCH), dtype=np.bool_)
        if planned.scan.condition.is_everything:
            sure = np.ones(planned.num_files, dtype=np.bool_)
        removed = planned.tasks(np.flatnonzero(sure)) if len(sure) else []
        partial = np.flatnonzero(~sure)
        reader = TaskReader(planned.scan._reading())

        def keys(work: tuple[int, Task]) -> Longs:
            row, task = work
            return np.asarray(reader.positions(task) + planned.bases[row], dtype=np.int64)

        tasks = planned.tasks(partial) if len(partial) else []
        work = list(zip(partial.tolist(), tasks, strict=True))
        keys_by_task = list(self.handle.reader().map(work, keys))
        emptied, vectors = removal_of(
            planned, np.concatenate(keys_by_task) if keys_by_task else np.zeros(0, int)
        )
        return [*removed, *emptied], vectors

    # Rows that change

    def update(
        self,
        assignments: Mapping[str, Any],
        where: Where,
        params: Sequence[Any] = (),
        *,
        mode: str | None = None,
    ) -> Change:
        """Rows that match get new values; their row ids stay. `mode` says what is written: rows,
        columns, or what is less; by default as the table's property has it."""
        schema = self.metadata.schema()
        values = assigned(assignments, schema, {ROWS.name: columns_of_schema(schema)})
        return self.assign(values, where, params, mode=mode)

    def assign(
        self,
        values: Assignments,
        where: Where,
        params: Sequence[Any] = (),
        *,
        mode: str | None = None,
    ) -> Change:
        """The same, with values that were judged before."""
        mode = update_mode(self.metadata, mode)
        scan = self.scan(where, None, params=params)
        if mode == "rows":
            return self._assigned(values, scan, Planned.of(scan))
        # Most updates write rows: this is loaded when columns are asked for.
        from frazil.rows.columns import column_changes

        planned = Planned.of(scan)
        searched = self._searched(scan, UPDATE_ISOLATION)
        by_columns = np.ones(planned.num_files, dtype=np.bool_)
        if mode == "auto":
            by_columns = column_changes.cheaper_by_columns(
                planned,
                self.metadata,
                values,
                lambda: column_changes.rows_touched(self.engine, planned),
            )
            if look_at_other_rows(values) and not by_columns.all():
                by_columns[:] = False
        if by_columns.all():
            change = column_changes.assigned_columns(self, planned, values)
            return replace(change, searched=searched)
        if not by_columns.any():
            return self._assigned(values, scan, planned)
        others = self._assigned(values, scan, planned.part(np.flatnonzero(~by_columns)))
        part = planned.part(np.flatnonzero(by_columns))
        change = column_changes.assigned_columns(self, part, values)
        return replace(others, columns=change.columns, rows_in_place=change.rows_in_place)

    def _assigned(self, values: Assignments, scan: Scan, planned: Planned) -> Change:
        results = self.engine.update(planned, values, self._sink())
        return self._outcome(results, planned, scan, UPDATE_ISOLATION)

    def merge(self, source: MergeSource, plan: MergePlan) -> Change:
        """Rows of a source meet rows of the table, and clauses say what becomes of them."""
        if not plan.clauses:
            raise InvalidInput("merge has no clause: say what to do, e.g. when_matched_update()")
        everything = has(plan.clauses, Side.TARGET_ONLY)
        where = AlwaysTrue() if everything else reach(source, plan.pairs, plan.schema)
        scan = self.scan(where, None)
        planned = Planned.of(scan)
        results = self.engine.merge(
            planned, source, plan, self._sink(with_lineage=updates(plan.clauses))
        )
        is_once = may_meet_once(plan.clauses)
        return self._outcome(results, planned, scan, MERGE_ISOLATION, is_once=is_once)

    def upsert(
        self,
        rows: Rows,
        on: Sequence[str],
        *,
        update_matched: bool = True,
        insert_unmatched: bool = True,
    ) -> Change:
        """Rows whose key exists replace the old ones, keeping row ids; others are new.

        A matched row that is equal in every column is left alone. Columns that the rows lack keep
        their values in matched rows and get their defaults in new ones.
        """
        schema = self.metadata.schema()
        _check_keys(on, schema)
        clauses: list[MergeClause] = []
        if update_matched:
            clauses.append(Clause(side=Side.MATCHED, action=Action.UPDATE))
        if insert_unmatched:
            clauses.append(Clause(side=Side.SOURCE_ONLY, action=Action.INSERT))
        plan = MergePlan(
            schema=schema,
            pairs=[KeyPair(target=name, source=name) for name in on],
            on=None,
            clauses=clauses,
            only_changes=True,
        )
        with closing(self._upsert_source(rows, on, schema)) as source:
            _check_rows(source, on)
            if not clauses or not source.num_rows:
                return self._change(searched=(Searched(filter=AlwaysFalse()),))
            return self.merge(source, plan)

    def _upsert_source(self, rows: Rows, on: Sequence[str], schema: Schema) -> MergeSource:
        """The rows in the table's types."""
        stream = row_reader(rows, schema)
        have = [column for column in schema.fields if column.name in stream.schema.names]
        missing = [name for name in on if name not in stream.schema.names]
        if missing and stream.schema.names:
            raise InvalidInput(
                f"the rows to upsert have no key column {', '.join(missing)}; they have "
                + ", ".join(stream.schema.names)
            )
        extra = set(stream.schema.names) - {column.name for column in have}
        # Columns that the table does not have are refused with the others that do not fit.
        given_columns = Schema(*have)
        fitting = conformed(stream, schema if extra else given_columns)
        batches = pa.RecordBatchReader.from_batches(arrow_schema(given_columns), fitting)
        return self.engine.source(batches, schema)

    def _outcome(
        self,
        results: Sequence[SinkResult],
        planned: Planned,
        scan: Scan,
        isolation: Property[str],
        *,
        is_once: bool = True,
    ) -> Change:
        outcome = SinkResult.union(results)
        if is_once:
            outcome.check()
        removed, vectors = outcome.retired(planned)
        return self._change(
            added=outcome.entries if outcome.entries.num_rows else None,
            removed=removed,
            vectors=vectors,
            searched=self._searched(scan, isolation),
            rows_updated=outcome.counts.get(Action.UPDATE, 0),
            rows_removed=outcome.counts.get(Action.DELETE, 0),
        )

    def _sink(self, *, with_lineage: bool = True) -> RowSink:
        return RowSink.of(
            self.metadata,
            storage=self.handle.storage,
            location=self.handle.location,
            with_lineage=with_lineage,
            written=self.written,
        )

    def scan(
        self, where: Where, columns: Sequence[str] | None, *, params: Sequence[Any] = ()
    ) -> Scan:
        """A scan of the snapshot this editor works on, in the current schema."""
        return Scan(
            _handle=self.handle,
            snapshot=self.snapshot,
            matching=where,
            columns=None if columns is None else tuple(columns),
            schema_override=self.metadata.schema(),
            params=tuple(params),
            is_judged_by_duckdb=self.given_engine is None or self.given_engine.is_duckdb,
        )

    def _searched(self, scan: Scan, isolation: Property[str]) -> tuple[Searched]:
        level = Isolation(isolation.of(self.metadata.properties))
        return (Searched(filter=scan.condition.filter, isolation=level),)

    def _change(self, **parts: Any) -> Change:
        base = None if self.snapshot is None else int(self.snapshot.snapshot_id)
        return Change(branch=self.branch, base_snapshot_id=base, **parts)


def _leaving(files: Sequence[Task], vectors: Sequence[VectorEdit]) -> int | None:
    """How many rows leave with whole files and by vectors, when metadata alone can tell."""
    whole = [task.live_records for task in files]
    parts = sum(len(edit.positions) for edit in vectors)
    return None if None in whole else parts + sum(rows or 0 for rows in whole)


def update_mode(metadata: TableMetadata, mode: str | None) -> str:
    """What an update writes: as it says, or else as the table's property has it."""
    if mode is None:
        return COLUMN_UPDATE_MODE.of(metadata.properties)
    if not COLUMN_UPDATE_MODE.accepts(mode):
        raise InvalidInput(f"mode is {mode!r}; expected 'rows', 'columns' or 'auto'")
    return mode


def assigned(
    assignments: Mapping[str, Any], schema: Schema, scopes: Mapping[str, Any]
) -> Assignments:
    """New values by path. Values are taken as they are; only `frazil.expr` makes an expression."""
    if not assignments:
        raise InvalidInput("an update needs at least one assignment: {'column': value}")
    values: dict[tuple[str, ...], Value] = {}
    for name, value in assignments.items():
        path = path_named(name, schema)
        clash = next(
            (assigned_path for assigned_path in values if _meet(assigned_path, path)), None
        )
        if clash is not None:
            raise InvalidInput(f"{name} and {'.'.join(clash)} are assigned at once; keep one")
        if isinstance(value, Expression):
            what = f"expression for {name}"
            values[path] = sql_text(value, scopes, what=what)
        else:
            values[path] = Constant(value=value)
    return values


def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def path_named(name: str, schema: Schema) -> tuple[str, ...]:
    """A column by its name, or a part of a struct by its path; a name may hold dots."""

    def walk(fields: Iterable[Any], rest: str) -> Iterator[tuple[str, ...]]:
        for column in fields:
            if rest == column.name:
                yield (column.name,)
            elif rest.startswith(f"{column.name}.") and isinstance(column.field_type, StructType):
                inner = rest[len(column.name) + 1 :]
                yield from ((column.name, *path) for path in walk(column.field_type.fields, inner))

    paths = sorted(walk(schema.fields, name), key=len)
    if not paths:
        from frazil.filter.bind.filter_columns import ColumnIndex

        raise InvalidInput(f"unknown column '{name}'. {ColumnIndex.of(schema).known_names(name)}")
    return paths[0]


def _check_keys(on: Sequence[str], schema: Schema) -> None:
    if not on:
        raise InvalidInput("upsert needs at least one key column: on=[…]")
    names = [column.name for column in schema.fields]
    unknown = [name for name in on if name not in names]
    if unknown:
        raise InvalidInput(
            f"unknown key column {', '.join(unknown)}; the table has {', '.join(names)}"
        )
    twice = sorted({name for name in on if list(on).count(name) > 1})
    if twice:
        raise InvalidInput(f"key column {', '.join(twice)} is given twice")
    for name in on:
        if has_variant(schema.find_type(name)):
            raise InvalidInput(f"key column {name} is or has a variant, which identifies no rows")


def _check_rows(source: MergeSource, on: Sequence[str]) -> None:
    """Refuse rows to upsert whose keys are missing or alike."""
    for name in on if source.num_rows else ():
        if source.nulls(name):
            raise InvalidInput(f"key column {name} has nulls in the rows to upsert")
    if source.num_rows and source.duplicates(on):
        raise InvalidInput(
            f"the rows to upsert have duplicate keys in {', '.join(on)}; keep one row per key"
        )


__all__ = ["RowEditor", "assigned", "path_named"]
