"""Expressions of columns, such as `lower(name)`, that have statistics of their own.

In metadata an expression is a derived column without a partition field. Its transform keeps the
text with `$1`, `$2`, … for the columns, so that renaming a column changes nothing, and the type of
the values. Who reads the text, and who evaluates it, is above: here it is only kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import InvalidInput
from frazil.iceberg.transforms import Transform
from frazil.iceberg.types import (
    IcebergType,
    NestedField,
    PrimitiveType,
    StructType,
    primitive_type,
)
from frazil.value_classes import frozen

if TYPE_CHECKING:
    from frazil.format.metadata.derived import DerivedColumn
    from frazil.iceberg.schema import Schema

SQL: Final = "sql"
"""What the transform of an expression is called in metadata."""
DIALECT: Final = "duckdb"
"""The SQL that Frazil writes; expressions in any other are kept and not used."""


class SqlTransform(Transform):
    """The values of an expression: an engine evaluates it, so it takes no single value."""

    __slots__ = ("sql", "type")
    name = SQL

    def __init__(self, sql: str, type: IcebergType) -> None:
        self.sql = sql
        """The text, with `$1` for the first column."""
        self.type = type
        """The type of its values."""

    def result_type(self, source: IcebergType) -> IcebergType:
        """The type of its values, whatever the columns are."""
        return self.type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SqlTransform) and self.sql == other.sql and self.type == other.type

    def __hash__(self) -> int:
        return hash((SqlTransform, self.sql))

    def __repr__(self) -> str:
        return f"SqlTransform(sql={self.sql!r}, type={self.type})"


@frozen
class Declaration:
    """An expression that was judged: its columns in the order of `$1`, `$2`, …, and its type."""

    sql: str
    source_ids: tuple[int, ...]
    type: PrimitiveType


def sql_columns(derived: Iterable[DerivedColumn]) -> list[DerivedColumn]:
    """Those of the derived columns that are expressions in SQL."""
    return [column for column in derived if isinstance(column.transform, SqlTransform)]


def parts_of(sql: str) -> list[str | int]:
    """The text around the columns, and their positions from 0."""
    parts: list[str | int] = []
    rest = sql
    while True:
        at = _next_column(rest)
        if at is None:
            return [*parts, rest]
        start, end = at
        parts += [rest[:start], int(rest[start + 1 : end]) - 1]
        rest = rest[end:]


def _next_column(text: str) -> tuple[int, int] | None:
    """Where the next `$n` is that is not in quotes."""
    at = 0
    while at < len(text):
        sign = text[at]
        if sign in "'\"":
            closing = text.find(sign, at + 1)
            if closing < 0:
                return None
            at = closing + 1
        elif sign == "$" and text[at + 1 : at + 2].isdigit():
            end = at + 1
            while text[end : end + 1].isdigit():
                end += 1
            return at, end
        else:
            at += 1
    return None


def written(sql: str, names: Sequence[str]) -> str:
    """The text with columns by name; each name as it stands in SQL."""
    return "".join(part if isinstance(part, str) else names[part] for part in parts_of(sql))


def transform_from(expr: Mapping[str, Any], count: int) -> SqlTransform | None:
    """The transform that JSON tells of; None for another dialect. Raises ValueError."""
    sql, kind = expr.get("sql"), expr.get("type")
    if expr.get("dialect") != DIALECT:
        return None
    if not isinstance(sql, str) or not isinstance(kind, str):
        raise ValueError("sql and type must be text")
    if any(isinstance(part, int) and not 0 <= part < count for part in parts_of(sql)):
        raise ValueError(f"{sql!r} has more columns than source-ids")
    return SqlTransform(sql, primitive_type(kind))


def transform_fields(transform: SqlTransform) -> dict[str, str]:
    """What JSON has of an expression beside its columns and its name."""
    return {"sql": transform.sql, "dialect": DIALECT, "type": str(transform.type)}


def check_kept(derived: Iterable[DerivedColumn], before: Schema, after: Schema) -> None:
    """Refuse a schema in which a column of an expression is gone or has another type: statistics
    of the old values would be taken for those of the new."""
    for column in sql_columns(derived):
        for source in column.source_ids:
            name = before.find_column_name(source)
            if name is None:
                continue
            new = after.find_column_name(source)
            if new is not None and after.find_type(source) == before.find_type(source):
                continue
            change = "is dropped" if new is None else f"becomes {after.find_type(source)}"
            raise InvalidInput(
                f"column '{name}' {change}, and expression {text_of(column, before)} has "
                "statistics of it; remove the expression first with set_expressions"
            )


def text_of(column: DerivedColumn, schema: Schema, *, quotes_all: bool = False) -> str:
    """An expression with the names of the columns in a schema, in quotes unless they are plain.

    Plain names that are words of SQL need quotes as well: `quotes_all` gives them to all.
    """
    assert isinstance(column.transform, SqlTransform)
    paths = [path_of(schema, id) for id in column.source_ids]
    names = [
        ".".join(name if _is_plain(name) and not quotes_all else _quoted(name) for name in path)
        for path in paths
    ]
    return written(column.transform.sql, names)


def path_of(schema: Schema, field_id: int) -> tuple[str, ...]:
    """The names of a column from the root of the schema through structs; names may have dots."""

    def below(fields: Iterable[NestedField], path: tuple[str, ...]) -> tuple[str, ...] | None:
        for field in fields:
            field_path = (*path, field.name)
            if field.field_id == field_id:
                return field_path
            if isinstance(field.field_type, StructType):
                inner = below(field.field_type.fields, field_path)
                if inner is not None:
                    return inner
        return None

    path = below(schema.fields, ())
    if path is None:
        raise InvalidInput(f"no column outside of lists and maps has field id {field_id}")
    return path


def _is_plain(name: str) -> bool:
    return name.isidentifier() and name.isascii() and name.lower() == name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
