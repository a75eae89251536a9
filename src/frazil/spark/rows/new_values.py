"""Rows of a frame with the new values that an update assigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import types as sql

from frazil.data.metadata_columns import LAST_UPDATED, POS, ROW_ID
from frazil.errors import InvalidInput
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField
from frazil.rows.actions import ACTION, KEY, Action
from frazil.rows.editor import path_named
from frazil.spark.expressions.conditions import quoted
from frazil.spark.rows.sql_expressions import SqlExpressions, field_of, named_struct
from frazil.spark.types.spark_types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Paths: TypeAlias = Mapping[tuple[str, ...], Any]
"""New values by path: a column, or a part of a struct."""


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


def new_columns(
    rows: DataFrame, fields: Sequence[NestedField], assignments: Paths, *, held: Any = None
) -> DataFrame:
    """The columns that get new values, with the key and the position of each row."""
    texts = SqlExpressions(rows, held)
    columns = [
        (field.name, assigned(quoted(field.name), field, assignments, texts, "true"))
        for field in fields
    ]
    return texts.selected([*columns, (KEY, quoted(KEY)), (POS.name, quoted(POS.name))])


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
