"""The scans of a query's tables: planned once, pruned by join keys, made known to the engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from frazil.filter.prune.tree_filter import key_filter
from frazil.filter.text.quotes import quoted
from frazil.iceberg.expressions import And, BooleanExpression
from frazil.rows.duckdb import duckdb_filter
from frazil.rows.planned import Planned
from frazil.rows.scan import Scan
from frazil.sql.bind.pushed_conditions import PushedConditions
from frazil.sql.bind.references import Reference
from frazil.sql.engine.interruptible import called
from frazil.sql.engine.scan_cache import PlannedScan, state_of
from frazil.sql.engine.sql_engine import Pruned, SqlEngine
from frazil.value_classes import replace

if TYPE_CHECKING:
    import pyarrow as pa

_SMALL_ROWS: Final = 200_000
_SMALL_BYTES: Final = 16 * 1024 * 1024
_MANY_FILES = 64
_MANY_ROWS: Final = 100
_KEPT_KEY_BYTES: Final = 64 * 1024


def planned_scan(engine: SqlEngine, reference: Reference) -> PlannedScan:
    """A table's rows, planned now, or before for this query or another one."""
    assert reference.scan is not None
    state = state_of(reference.resolved) if reference.as_of is None else None
    if engine.scans is None or state is None:
        return PlannedScan(Planned.of(reference.scan), engine.folders)
    reference.key = (
        state,
        reference.filter,
        None if reference.columns is None else tuple(reference.columns),
    )
    statement_scans = engine.statement_scans
    if reference.key not in statement_scans:
        kept = engine.scans.find(reference.key)
        statement_scans[reference.key] = kept or PlannedScan(
            Planned.of(reference.scan), engine.folders
        )
    return statement_scans[reference.key]


def attach_scan(engine: SqlEngine, reference: Reference, *, as_view: bool) -> None:
    """Make the rows of a table known. Making a view costs as much as planning a small table,
    so that the query stands for the name wherever the grammar allows it."""
    ready = reference.ready
    assert ready is not None
    report = ready.planned.plan.report
    engine.pruned.append(Pruned(name=str(reference.name), filter=reference.filter, report=report))
    scan = ready.scan
    if reference.key is not None and engine.scans is not None:
        engine.scans.keep(reference.key, ready)
    engine.bind(scan)
    if as_view:
        scan.create_view(engine.compiled, reference.view)
    else:
        reference.query = scan.text
    if engine.is_written:
        scan.verify()


def prune_by_keys(engine: SqlEngine, references: list[Reference], pushed: PushedConditions) -> None:
    """Where an inner join has a small side, read that side once, now, and prune the other by
    its keys."""
    by_node = {
        reference.node: reference
        for reference in references
        if (reference.ready is not None or reference.is_unread) and not reference.is_shared
    }
    for (left, left_column), (right, right_column) in pushed.joined:
        ends = [(by_node.get(left), left_column), (by_node.get(right), right_column)]
        for (small, key), (large, column) in (ends, ends[::-1]):
            if small is None or large is None or not _is_worth(small, large):
                continue
            values = _keys(engine, small, key)
            if large.is_unread:
                large.keys.append((column, values))
                continue
            assert large.scan is not None
            where = key_filter(column, values, large.scan.table_schema)
            if where is not None:
                both = And(large.scan.filter, where)
                large.scan, large.filter = filtered(large.scan, both)
                large.ready = planned_scan(engine, large)


def _keys(engine: SqlEngine, small: Reference, key: str) -> list[Any]:
    """The keys of a small table. One whose files DuckDB does not open itself becomes a table of the
    engine: it is read once."""
    if small.ready is not None and small.ready.is_shared:
        return _local_keys(engine, small, key)
    if small.ready is not None:
        inner = f"{small.view}_files"
        attach_scan(engine, small, as_view=True)
        engine.run_own(f"ALTER VIEW {small.view} RENAME TO {inner}")
        where = small.filter or "true"
        rows = f"SELECT * FROM {inner} WHERE {where}"
        called(engine, partial(engine.run_own, f"CREATE TEMP TABLE {small.view} AS {rows}"))
        small.ready = None
    return list(_distinct(engine, key, small.view).to_pylist())


def _local_keys(engine: SqlEngine, small: Reference, key: str) -> list[Any]:
    """The same, known from a query before where the table still has the same state."""
    assert small.ready is not None
    values = None if small.key is None else small.ready.keys.get(key)
    if values is None:
        engine.bind(small.ready.scan)
        where = small.filter or "true"
        values = _distinct(engine, key, f"({small.ready.scan.text}) WHERE {where}")
        if values.nbytes <= _KEPT_KEY_BYTES:
            small.ready.keys[key] = values
    return list(values.to_pylist())


def _distinct(engine: SqlEngine, key: str, rows: str) -> pa.ChunkedArray:
    keys = engine.connection.sql(f"SELECT DISTINCT {quoted(key)} AS k FROM {rows}")
    return called(engine, keys.to_arrow_table).column("k")


def filtered(scan: Scan, where: BooleanExpression) -> tuple[Scan, str]:
    """A scan of the rows that pass a filter too, and its filter as text."""
    narrowed = replace(scan, matching=where)
    return narrowed, duckdb_filter.condition(narrowed.filter)


def _is_worth(small: Reference, large: Reference) -> bool:
    if small.is_unread or (large.ready is None and not large.is_unread):
        return False
    if large.ready is not None and large.ready.planned.num_files < _MANY_FILES:
        return False
    if small.ready is None:
        return True  # read already
    rows, size = _size(small.ready.planned)
    if rows > _SMALL_ROWS or size > _SMALL_BYTES:
        return False
    if large.ready is None:
        return True  # files that are not opened are not rewritten either
    large_rows, large_size = _size(large.ready.planned)
    if not small.filter and rows * _MANY_ROWS > large_rows:
        return False  # all rows of a dimension: most likely every file has rows of them
    return size <= large_size // 8


def _size(planned: Planned) -> tuple[int, int]:
    sizes = planned.plan.files.numpy("file_size_in_bytes")
    return int(planned.records.sum()), int(sizes.sum())
