"""Update rows with a Spark job: one snapshot. Old rows are retired, new ones keep their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField
from pyspark.sql import types as sql

from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.errors import InvalidInput
from frazil.properties.registry import UPDATE_ISOLATION
from frazil.rows.actions import ACTION, KEY, Action
from frazil.rows.editor import path_named
from frazil.spark.expressions.conditions import explained, quoted
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.rows.changed_rows import Binding, ChangedRows, Condition
from frazil.spark.rows.row_level import RowLevelJob
from frazil.spark.rows.sql_expressions import SqlExpressions, field_of, named_struct
from frazil.spark.session.cache import refresh_cache
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.spark.types.spark_types import spark_type
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Paths: TypeAlias = Mapping[tuple[str, ...], Any]
"""New values by path: a column, or a part of a struct."""


def update(
    table: Table | str,
    assignments: Mapping[str, Any],
    where: Condition | None = None,
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """Update matching rows (all rows without `where`).

    Values are literals; `frazil.expr("price * 2")` and Spark columns are expressions over the row.
    `address.city` names a part of a struct.

    >>> frazil.spark.update(orders, {"price": frazil.expr("price * 2")}, "id = 7")  # doctest: +SKIP
    """
    spark = session()
    opened = table_of(spark, table, catalog)
    values = by_path(assignments, opened.schema)
    result = update_rows(
        spark, WriteTerms(table=opened, summary=dict(summary or {})), values, where
    )
    refresh_cache(spark, opened)
    return result


def update_rows(
    spark: SparkSession,
    terms: WriteTerms,
    assignments: Paths,
    where: Condition | None = None,
    *,
    bound: Binding | None = None,
    metadata_columns: Sequence[str] = (),
    held: Any = None,
) -> CommitResult:
    """The same on the terms of a statement; `bound` gives the table's columns other identities,
    and `held` are the expressions of a statement in Java."""
    table = terms.table
    target = ChangedRows.of(
        spark, table, bound=bound, scan=terms.scan(), metadata_columns=metadata_columns
    )
    with explained("update"):
        rows = target.rows if where is None else target.rows.filter(where)
        frame = updated(rows, table.schema, assignments, held=held)
        return RowLevelJob(
            terms=terms,
            target=target,
            with_lineage=True,
            isolation=terms.level(UPDATE_ISOLATION),
        ).run(frame)


def updated(rows: DataFrame, schema: Schema, assignments: Paths, *, held: Any = None) -> DataFrame:
    """Rows of a table with new values, each with its id, its key, and the action."""
    texts = SqlExpressions(rows, held)
    columns = [
        (field.name, assigned(quoted(field.name), field, assignments, texts, "true"))
        for field in schema.fields
    ]
    columns += [
        (ROW_ID.name, quoted(ROW_ID.name)),
        (LAST_UPDATED.name, "CAST(NULL AS BIGINT)"),
        (KEY, quoted(KEY)),
        (ACTION, str(int(Action.UPDATE))),
    ]
    return texts.selected(columns)


def by_path(assignments: Mapping[str, Any], schema: Schema) -> dict[tuple[str, ...], Any]:
    """New values by the path of their column; refuses columns that the table does not have."""
    if not assignments:
        raise InvalidInput("an update needs at least one assignment: {'column': value}")
    values: dict[tuple[str, ...], Any] = {}
    for name, value in assignments.items():
        path = path_named(name, schema)
        for other in values:
            if path[: len(other)] == other or other[: len(path)] == path:
                raise InvalidInput(f"{'.'.join(path)} is assigned twice: also by {'.'.join(other)}")
        values[path] = value
    return values


def assigned(
    old: str, field: NestedField, assignments: Paths, texts: SqlExpressions, guard: str
) -> str:
    """The new value of a top-level column: replaced, changed inside, or as it was."""
    inside = {path[1:]: value for path, value in assignments.items() if path[0] == field.name}
    return _new(old, spark_type(field.field_type), inside, texts, guard, field.name)


def _new(
    old: str, kind: sql.DataType, inside: Paths, texts: SqlExpressions, guard: str, name: str
) -> str:
    if () in inside:
        return texts.fitting(inside[()], kind, guard, name)
    if not inside:
        return old
    assert isinstance(kind, sql.StructType)
    parts = []
    for child in kind.fields:
        below = {path[1:]: value for path, value in inside.items() if path[0] == child.name}
        was, path = field_of(old, child.name), f"{name}.{child.name}"
        parts.append((child.name, _new(was, child.dataType, below, texts, guard, path)))
    return named_struct(parts)
