"""Update rows with a Spark job: one snapshot. Old rows are retired, new ones keep their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pyiceberg.schema import Schema
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.change import Isolation
from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.errors import InvalidInput
from frazil.rows.actions import ACTION, KEY, Action
from frazil.rows.editor import UPDATE_ISOLATION, path_named
from frazil.spark.conditions import explained, quoted
from frazil.spark.find_table import CatalogLike, session, table_of
from frazil.spark.row_level import RowLevelJob
from frazil.spark.spark_types import spark_type
from frazil.spark.target import Binding, Condition, Target
from frazil.spark.texts import Texts, cast
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
    found = table_of(spark, table, catalog)
    values = by_path(assignments, found.schema)
    return update_rows(spark, found, values, where, summary=summary)


def update_rows(
    spark: SparkSession,
    table: Table,
    assignments: Paths,
    where: Condition | None = None,
    *,
    bound: Binding | None = None,
    held: Any = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """The same with the session at hand; `bound` gives the table's columns other identities,
    and `held` are the expressions of a statement in Java."""
    target = Target.of(spark, table, bound=bound)
    with explained("update"):
        rows = target.rows if where is None else target.rows.filter(where)
        frame = updated(rows, table.schema, assignments, held=held)
        return RowLevelJob(
            target=target,
            with_lineage=True,
            isolation=Isolation.parse(
                table.properties.get(UPDATE_ISOLATION, Isolation.SERIALIZABLE)
            ),
            summary=dict(summary or {}),
        ).run(frame)


def updated(rows: DataFrame, schema: Schema, assignments: Paths, *, held: Any = None) -> DataFrame:
    """Rows of a table with new values, each with its id, its key, and the action."""
    texts = Texts(held)
    columns = []
    for field in schema.fields:
        new = assigned(quoted(field.name), field.name, assignments, texts, "true")
        columns.append((field.name, cast(new, spark_type(field.field_type))))
    columns += [
        (ROW_ID.name, quoted(ROW_ID.name)),
        (LAST_UPDATED.name, "CAST(NULL AS BIGINT)"),
        (KEY, quoted(KEY)),
        (ACTION, str(int(Action.UPDATE))),
    ]
    return texts.selected(rows, columns)


def by_path(assignments: Mapping[str, Any], schema: Schema) -> dict[tuple[str, ...], Any]:
    """New values by the path of their column; refuses columns that the table does not have."""
    if not assignments:
        raise InvalidInput("an update needs at least one assignment: {'column': value}")
    return {path_named(name, schema): value for name, value in assignments.items()}


def assigned(old: str, name: str, assignments: Paths, texts: Texts, guard: str) -> str:
    """The new value of a top-level column: replaced, changed inside, or as it was."""
    if (name,) in assignments:
        return texts.value(assignments[(name,)], guard)
    inside = {path: value for path, value in assignments.items() if path[0] == name}
    if not inside:
        return old
    made = F.col(old)
    for path, value in inside.items():
        made = made.withField(quoted(*path[1:]), texts.column(value))
    return texts.value(made, guard)
