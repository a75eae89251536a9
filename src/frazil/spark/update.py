"""Update rows with a Spark job: one snapshot. Old rows are retired, new ones keep their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyiceberg.schema import Schema
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.change import Isolation
from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.errors import InvalidInput
from frazil.rows.editor import UPDATE_ISOLATION
from frazil.spark.conditions import explained, quoted, value_of
from frazil.spark.row_level import ACTION, Action, RowLevelJob
from frazil.spark.scan_plan import KEY
from frazil.spark.session import CatalogLike, session, table_of
from frazil.spark.spark_types import spark_type
from frazil.spark.target import Binding, Condition, Target
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    check_columns(assignments, found.schema)
    return update_rows(spark, found, assignments, where, summary=summary)


def update_rows(
    spark: SparkSession,
    table: Table,
    assignments: Mapping[str, Any],
    where: Condition | None = None,
    *,
    bound: Binding | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """The same with the session at hand; `bound` gives the table's columns other identities."""
    target = Target.of(spark, table, bound=bound)
    with explained("update"):
        rows = target.rows if where is None else target.rows.filter(where)
        frame = rows.select(
            *(
                assigned(F.col(quoted(field.name)), field.name, assignments)
                .cast(spark_type(field.field_type))
                .alias(field.name)
                for field in table.schema.fields
            ),
            rows[ROW_ID.name],
            F.lit(None).cast("long").alias(LAST_UPDATED.name),
            rows[KEY],
            F.lit(int(Action.UPDATE)).alias(ACTION),
        )
        return RowLevelJob(
            target=target,
            with_lineage=True,
            isolation=Isolation.parse(
                table.properties.get(UPDATE_ISOLATION, Isolation.SERIALIZABLE)
            ),
            summary=dict(summary or {}),
        ).run(frame)


def check_columns(assignments: Mapping[str, Any], schema: Schema) -> None:
    """Refuse assignments to columns that the table does not have."""
    if not assignments:
        raise InvalidInput("an update needs at least one assignment: {'column': value}")
    unknown = []
    for name in assignments:
        try:
            schema.find_field(name)
        except ValueError:
            unknown.append(name)
    if unknown:
        known = ", ".join(field.name for field in schema.fields)
        raise InvalidInput(f"unknown column {', '.join(unknown)}; the table has {known}")


def assigned(old: Column, name: str, assignments: Mapping[str, Any]) -> Column:
    """The new value of a top-level column: replaced, changed inside, or as it was."""
    if name in assignments:
        return value_of(assignments[name])
    made = old
    for path, value in assignments.items():
        if path.startswith(f"{name}."):
            made = made.withField(path[len(name) + 1 :], value_of(value))
    return made
