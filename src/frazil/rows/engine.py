"""What an engine does for row-level changes, and the merge it is asked for.

Engines get a plan and values that no engine owns (expressions as checked text, a sink that can
travel) and give back what their sinks saw. `DuckDbEngine` is the embedded one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from frazil.filter.bind.bind import conjunction, keys_predicate
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.bind.literals import typed
from frazil.filter.text.filter_text import parse
from frazil.filter.text.sql_text import SOURCE, TARGET, RowsName, SqlText
from frazil.format.values.types import plain_value
from frazil.iceberg.expressions import BooleanExpression, Column
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import IcebergType, PrimitiveType, VariantType
from frazil.rows.actions import RowSink, SinkResult
from frazil.rows.merge_clauses import Clause
from frazil.rows.planned import Longs, Planned
from frazil.rows.z_order import ZOrder
from frazil.value_classes import dataclass, field

if TYPE_CHECKING:
    from frazil.iceberg.sorting import SortOrder
    from frazil.rows.columns.column_functions import Called
    from frazil.rows.columns.column_sink import ColumnSink, UpdatedFile

MAX_KEYS_IN_FILTER = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A value of a column's type."""

    value: Any


Value = SqlText | Constant
Assignments = Mapping[tuple[str, ...], Value]
"""New values by path: a column, or a part of a struct."""


MergeClause = Clause[SqlText, Assignments]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A column of the table and the column of the source that it must equal."""

    target: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValues:
    """What a source column holds, nulls aside: every value, or its ends when there are many."""

    values: pa.Array
    is_all: bool


class MergeSource(Protocol):
    """Rows to merge, held so that they can be read more than once."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""

    def keys(
        self, names: Sequence[str], kinds: Sequence[IcebergType], *, limit: int
    ) -> Sequence[KeyValues | None]:
        """The values of key columns as values of these types: all of them up to a limit, else the
        least and the greatest; None for a column that compares differently."""

    def duplicates(self, names: Sequence[str]) -> int:
        """How many rows have the key of another."""

    def nulls(self, name: str) -> int:
        """How many rows have no value in a column."""

    def close(self) -> None:
        """Let the rows go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """A merge for an engine to carry out. Rows meet where `on` holds and all `pairs` are equal.

    Of the clauses for a row the first whose condition holds applies; without one it stays. With
    `only_changes`, an update that changes no column is left out, and each source row may meet one
    row of the table only. Expressions call the rows of the table and of the source `target` and
    `source`; those of a clause for one side see the rows of that side alone.
    """

    schema: Schema
    pairs: Sequence[KeyPair]
    on: SqlText | None
    clauses: Sequence[MergeClause]
    only_changes: bool = False
    is_using: bool = False
    """Whether a column of a pair may stand without a name of rows: both are equal."""
    target: RowsName = field(default_factory=lambda: RowsName(TARGET))
    source: RowsName = field(default_factory=lambda: RowsName(SOURCE))

    @property
    def expressions(self) -> list[SqlText]:
        """Every expression in it."""
        values: list[object] = [self.on]
        for clause in self.clauses:
            values += [clause.condition, *(clause.values or {}).values()]
        return [value for value in values if isinstance(value, SqlText)]


class Engine(Protocol):
    """Evaluates SQL over the rows of a plan."""

    is_duckdb: bool
    """Whether that is DuckDB, so that statistics of expressions say what it will find."""

    def matching(self, planned: Planned) -> Longs:
        """Keys of the rows that the scan's condition holds for."""

    def update(self, planned: Planned, values: Assignments, sink: RowSink) -> list[SinkResult]:
        """Rows that match, with new values, into sinks."""

    def source(self, rows: Any, schema: Schema) -> MergeSource:
        """Rows to merge; columns that the table has, too, get its types."""

    def merge(
        self, planned: Planned, source: Any, plan: MergePlan, sink: RowSink
    ) -> list[SinkResult]:
        """Rows of the table joined with a source of this engine, into sinks."""

    def sorted(
        self, planned: Planned, order: SortOrder | ZOrder, sink: RowSink
    ) -> list[SinkResult]:
        """All rows of the plan's files with their lineage, in an order, into sinks: what one sink
        gets comes before what the next one gets."""


@runtime_checkable
class ColumnEngine(Protocol):
    """Computes columns of the rows of a plan and writes them with a sink; the files whose rows got
    new values come back."""

    def computed(
        self, planned: Planned, values: Assignments, sink: ColumnSink
    ) -> list[UpdatedFile]:
        """New values for the rows that match."""

    def joined(
        self, planned: Planned, source: Any, on: Sequence[str], sink: ColumnSink
    ) -> list[UpdatedFile]:
        """Values of a source of this engine, by keys."""

    def called(self, planned: Planned, functions: Called, sink: ColumnSink) -> list[UpdatedFile]:
        """What functions of batches give."""

    def types(self, planned: Planned, values: Mapping[str, SqlText]) -> Schema:
        """The columns that expressions over the rows of a plan give."""


def look_at_other_rows(values: Assignments) -> bool:
    """Whether new values of a row depend on other rows, so that all are needed to compute one."""
    return any(isinstance(value, SqlText) and value.has_window for value in values.values())


def reach(source: MergeSource, pairs: Sequence[KeyPair], schema: Schema) -> BooleanExpression:
    """A filter that every row of the table with a key of the source passes."""
    columns = ColumnIndex.of(schema)
    usable = [
        (pair, columns.with_id(schema.find_field(pair.target).field_id))
        for pair in pairs
        if _is_compared(schema.find_field(pair.target).field_type)
    ]
    source_keys = source.keys(
        [pair.source for pair, _ in usable],
        [column.field.field_type for _, column in usable],
        limit=MAX_KEYS_IN_FILTER,
    )
    parts = [
        _filter(column, keys)
        for (_, column), keys in zip(usable, source_keys, strict=True)
        if keys is not None
    ]
    return parse(conjunction(parts), schema) if parts else parse(None, schema)


def _is_compared(kind: IcebergType) -> bool:
    return isinstance(kind, PrimitiveType) and not isinstance(kind, VariantType)


def _filter(column: Column, keys: KeyValues) -> BooleanExpression:
    kind = column.field.field_type
    values = [plain_value(value, kind) for value in keys.values]
    numbers = [typed(value, kind) for value in values if value == value]
    has_nan = len(numbers) < len(values)  # greater than every number: then it is the upper end
    return keys_predicate(column, numbers, is_all=keys.is_all, has_nan=has_nan)
