"""DELETE, UPDATE and MERGE of Spark SQL: resolved by Spark, carried out by row-level jobs.

Conditions and values come as Spark columns over the very attributes of the statement; the rows of
the table are bound to those attributes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame

from frazil.errors import Unsupported
from frazil.rows.actions import Action
from frazil.rows.engine import KeyPair
from frazil.rows.merge_clauses import Clause, Side
from frazil.spark.delete import delete_rows
from frazil.spark.merge import Merge
from frazil.spark.merge_frames import SparkClause
from frazil.spark.overwrites import overwrite, overwrite_partitions
from frazil.spark.texts import Given
from frazil.spark.update import update_rows
from frazil.spark.writer import widened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.table.table import Table

_MERGE_SCHEMA = "mergeschema"
_SIDES = {side.value: side for side in Side}
_ACTIONS = {"delete": Action.DELETE, "update": Action.UPDATE, "insert": Action.INSERT}


def carry_out(spark: SparkSession, table: Table, change: Any) -> None:
    """One statement as one snapshot."""
    held = spark._jvm.java.util.ArrayList()
    said = json.loads(change.described(held))

    def bound(rows: DataFrame) -> DataFrame:
        return DataFrame(change.bound(rows._jdf), spark)

    match said["verb"]:
        case "delete":
            delete_rows(spark, table, _column(change.condition()), bound=bound)
        case "update":
            values = _assigned(said["assignments"])
            where = _column(change.condition())
            update_rows(spark, table, values, where, bound=bound, held=held)
        case "merge":
            Merge(
                table=table,
                source=DataFrame(change.source(), spark),
                on=_column(change.condition()),
                clauses=tuple(_clause(each) for each in said["clauses"]),
                pairs=tuple(KeyPair(target=ours, source=theirs) for ours, theirs in said["pairs"]),
                bound=bound,
                held=held,
            ).execute()
        case "overwrite" | "overwrite partitions" as verb:
            rows = DataFrame(change.rows(), spark)
            if merges_schema(said["options"]):
                widened(table, rows)
            if verb == "overwrite":
                overwrite(table, rows, _column(change.condition()), bound=bound)
            elif table.spec.fields:
                overwrite_partitions(table, rows)
            else:
                overwrite(table, rows)
        case other:
            raise Unsupported(f"{other} is not supported", feature=other)


def merges_schema(options: Mapping[str, str]) -> bool:
    """Whether a write may add the columns that only its rows have."""
    given = {key.lower(): value for key, value in options.items()}
    return given.get(_MERGE_SCHEMA, "false").lower() == "true"


def _clause(given: Any) -> SparkClause:
    side, action, condition, assignments = given
    return Clause(
        side=_SIDES[side],
        action=_ACTIONS[action],
        condition=None if condition is None else Given(condition),
        values=None if assignments is None else _assigned(assignments),
    )


def _assigned(pairs: Any) -> dict[tuple[str, ...], Given]:
    return {tuple(path): Given(number) for path, number in pairs}


def _column(found: Any) -> Column:
    from pyspark.sql.classic.column import Column as ClassicColumn

    return None if found is None else ClassicColumn(found)
