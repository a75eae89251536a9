"""Statistics of a table's expressions, collected as rows are written: DuckDB evaluates them.

A row that an expression fails on (text that is no number, where it is cast to one) takes the
statistics of that expression away from its file: the file is read, and fails as it should.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from frazil.data.statistics.stats_collector import ColumnStats
from frazil.errors import FrazilError
from frazil.format.entries.metrics import TRUNCATE_16, MetricsMode
from frazil.format.entries.stats import TrackedField
from frazil.format.expressions import SqlTransform, path_of, sql_columns, written
from frazil.format.metadata.derived import DerivedColumn
from frazil.iceberg.schema import Schema
from frazil.parser.duckdb_parser import CLOSED
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    import duckdb

ROWS: Final = "__frazil_rows"
"""What the rows are called while an expression is evaluated."""
VALUE: Final = "value"
_lock = threading.Lock()
_database: duckdb.DuckDBPyConnection | None = None


def connection() -> duckdb.DuckDBPyConnection:
    """A cursor of the one database that evaluates expressions. It opens no files."""
    global _database
    import duckdb

    with _lock:
        if _database is None:
            _database = duckdb.connect(config=CLOSED)
            _database.execute("SET GLOBAL TimeZone = 'UTC'")
        return _database.cursor()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """An expression over rows of one schema: its SQL, and what it needs of them."""

    field: TrackedField
    sql: str
    columns: frozenset[str]


def evaluated(derived: Iterable[DerivedColumn], schema: Schema) -> tuple[Evaluated, ...]:
    """The expressions that rows of a schema have all columns of."""
    expressions = []
    for column in sql_columns(derived):
        if not schema.field_ids.issuperset(column.source_ids):
            continue
        assert isinstance(column.transform, SqlTransform)
        paths = [path_of(schema, source) for source in column.source_ids]
        names = [".".join('"' + part.replace('"', '""') + '"' for part in path) for path in paths]
        expressions.append(
            Evaluated(
                field=TrackedField(
                    id=column.expr_id, full_name=column.name, type=column.transform.type
                ),
                sql=written(column.transform.sql, names),
                columns=frozenset(path[0] for path in paths),
            )
        )
    return tuple(expressions)


class ExpressionStats:
    """Accumulates the statistics of the expressions for one file."""

    def __init__(self, expressions: Iterable[Evaluated], default: MetricsMode) -> None:
        mode = default if default.has_bounds else TRUNCATE_16
        self._left = [
            (expression, ColumnStats(expression.field, (VALUE,), mode))
            for expression in expressions
        ]

    def update(self, rows: pa.Table) -> None:
        """Count more rows."""
        if rows.num_rows == 0 or not self._left:
            return
        import duckdb

        left = []
        for expression, stats in self._left:
            try:
                stats.update(pa.table({VALUE: _values(expression, rows)}))
                left.append((expression, stats))
            except (duckdb.Error, pa.ArrowException, FrazilError):
                continue
        self._left = left

    def finish(self) -> Mapping[str, Any]:
        """The statistics of all rows so far."""
        return {key: value for _, stats in self._left for key, value in stats.finish().items()}


def _values(one: Evaluated, rows: pa.Table) -> pa.ChunkedArray:
    needed = rows.select([name for name in rows.column_names if name in one.columns])
    relation = connection().from_arrow(needed).set_alias(ROWS)
    return relation.project(one.sql).to_arrow_table().column(0)
