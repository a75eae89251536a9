"""Update rows with a Spark job: one snapshot. Old rows are retired, new ones keep their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.change import Isolation
from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.errors import InvalidInput
from frazil.rows.editor import UPDATE_ISOLATION
from frazil.rows.planned import Planned
from frazil.spark import native
from frazil.spark.row_level import (
    ACTION,
    KEY,
    Action,
    RowLevelJob,
    explained,
    quoted,
    value_of,
)
from frazil.spark.session import CatalogLike, table_of
from frazil.spark.spark_types import spark_type
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def update(
    spark: SparkSession,
    table: Table | str,
    assignments: Mapping[str, Any],
    where: str | BooleanExpression | None = None,
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
) -> CommitResult:
    """Give the rows that match new values. Texts are Spark SQL over the row, columns are taken as
    they are, other values are literals; `address.city` names a part of a struct.

    >>> frazil.spark.update(spark, orders, {"price": "price * 2"}, "id = 7")  # doctest: +SKIP
    """
    target = table_of(spark, table, catalog)
    target.handle.check_writable()
    schema = target.schema
    check_columns(assignments, schema)
    scan = target.scan(where)
    planned = Planned.of(scan)
    rows = native.frame(spark, scan, metadata_columns=(ROW_ID.name,), key=KEY, planned=planned)
    with explained("update"):
        frame = rows.select(
            *(
                assigned(F.col(quoted(field.name)), field.name, assignments)
                .cast(spark_type(field.field_type))
                .alias(field.name)
                for field in schema.fields
            ),
            rows[ROW_ID.name],
            F.lit(None).cast("long").alias(LAST_UPDATED.name),
            rows[KEY],
            F.lit(int(Action.UPDATE)).alias(ACTION),
        )
    return RowLevelJob(
        table=target,
        planned=planned,
        with_lineage=True,
        conflict_filter=scan.filter,
        isolation=Isolation.parse(target.properties.get(UPDATE_ISOLATION, Isolation.SERIALIZABLE)),
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
