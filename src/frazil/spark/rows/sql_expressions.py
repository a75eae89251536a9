"""Expressions of a statement as texts, so that Spark is asked once for a frame and not once for
every operator in it.

Frazil writes the texts; what users or Spark gave (a condition, a value) keeps its own form, and a
name stands for it. On a classic session Java puts it in that place. A client of Spark Connect
builds columns without asking anyone, so there it becomes a column of the frame, computed where the
guard holds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from frazil.errors import InvalidInput
from frazil.filter.text.sql_text import Expression
from frazil.spark.expressions.conditions import quoted, value_of
from frazil.spark.session import jar
from frazil.spark.session.file_list import is_connect
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAME: Final = "__frazil_given_"


@dataclass(frozen=True, slots=True)
class HeldExpression:
    """An expression of a statement that Java holds, by its number."""

    number: int


class SqlExpressions:
    """Collects what texts over a frame refer to; `held` is Java's list of a statement's
    expressions."""

    def __init__(self, frame: DataFrame, held: Any = None) -> None:
        self._frame = frame
        self._held = held
        self._expressions: list[str | int | Column] = []
        self._guards: list[str] = []
        self._conditions: set[int] = set()

    def condition(self, expression: str | Column | HeldExpression, guard: str) -> str:
        """A condition, for the column that a frame gets first; a text is SQL."""
        self._conditions.add(len(self._expressions))
        return self._named(expression, guard)

    def value(self, expression: Any, guard: str) -> str:
        """A value in an assignment; a text is a value, `frazil.expr` is SQL."""
        if isinstance(expression, Expression):
            return self._named(str(expression), guard)
        return self._named(
            expression if isinstance(expression, HeldExpression) else value_of(expression), guard
        )

    def fitting(self, expression: Any, kind: sql.DataType, guard: str, name: str) -> str:
        """A value as one of a column's type, nested fields by name.

        Spark has fitted the values of a statement already.
        """
        text = self.value(expression, guard)
        if isinstance(expression, HeldExpression):
            return text
        if not has_structs(kind):
            return cast(text, kind)
        (field,) = self._frame.select(value_of(expression)).schema.fields
        return fitted(text, field.dataType, kind, name)

    def _named(self, expression: str | Column | HeldExpression, guard: str) -> str:
        self._expressions.append(
            expression.number if isinstance(expression, HeldExpression) else expression
        )
        self._guards.append(guard)
        return f"{_NAME}{len(self._expressions) - 1}"

    def selected(
        self,
        select: Sequence[tuple[str, str]],
        *,
        extra: tuple[str, str] | None = None,
        where: str | None = None,
    ) -> DataFrame:
        """Names and texts selected from the frame, which first gets one more column and a
        filter."""
        frame = self._frame
        spark = frame.sparkSession
        if is_connect(spark):
            return self._selected_there(frame, select, extra, where)
        held = self._held
        if held is None:
            held = spark._jvm.java.util.ArrayList()
        sent: list[str | int] = []
        for expression in self._expressions:
            if isinstance(expression, Column):
                held.add(expression._jc)
                sent.append(held.size() - 1)
            else:
                sent.append(expression)
        asked = json.dumps({"given": sent, "with": extra, "where": where, "select": list(select)})
        jdf = jar.frames(spark).selected(frame._jdf, asked, held)
        return type(frame)(jdf, spark)

    def _selected_there(
        self,
        frame: DataFrame,
        select: Sequence[tuple[str, str]],
        extra: tuple[str, str] | None,
        where: str | None,
    ) -> DataFrame:
        first = [at for at in range(len(self._expressions)) if at in self._conditions]
        rows = self._with_expressions(frame, first)
        if extra is not None:
            rows = rows.withColumn(extra[0], F.expr(extra[1]))
        if where is not None:
            rows = rows.filter(where)
        rows = self._with_expressions(
            rows, [at for at in range(len(self._expressions)) if at not in first]
        )
        return rows.select(*(F.expr(text).alias(name) for name, text in select))

    def _with_expressions(self, frame: DataFrame, numbers: Sequence[int]) -> DataFrame:
        columns = {}
        for at in numbers:
            expression = self._expressions[at]
            assert not isinstance(expression, int)
            column = F.expr(expression) if isinstance(expression, str) else expression
            columns[f"{_NAME}{at}"] = F.when(F.expr(self._guards[at]), column)
        return frame.withColumns(columns) if columns else frame


def cast(text: str, kind: sql.DataType) -> str:
    """A text as a value of a type."""
    return f"CAST({text} AS {_type(kind)})"


def has_structs(kind: sql.DataType) -> bool:
    """Whether values of a type have named fields."""
    match kind:
        case sql.StructType():
            return True
        case sql.ArrayType():
            return has_structs(kind.elementType)
        case sql.MapType():
            return has_structs(kind.keyType) or has_structs(kind.valueType)
    return False


def fitted(text: str, source: sql.DataType, kind: sql.DataType, name: str) -> str:
    """A value of one type as one of another, nested fields by their names. A cast of Spark's would
    go by their order."""
    match source, kind:
        case sql.StructType(), sql.StructType():
            fields = _fields(source, kind, name)
            parts = [
                (
                    target.name,
                    fitted(
                        field_of(text, own.name),
                        own.dataType,
                        target.dataType,
                        f"{name}.{target.name}",
                    ),
                )
                for own, target in fields
            ]
            return f"CASE WHEN {text} IS NOT NULL THEN {named_struct(parts)} END"
        case sql.ArrayType(), sql.ArrayType() if has_structs(kind):
            item = f"e{text.count('->')}"
            new = fitted(item, source.elementType, kind.elementType, f"{name}.element")
            return f"transform({text}, {item} -> {new})"
        case sql.MapType(), sql.MapType() if has_structs(kind):
            key, item = f"k{text.count('->')}", f"v{text.count('->')}"
            new_key = fitted(key, source.keyType, kind.keyType, f"{name}.key")
            new = fitted(item, source.valueType, kind.valueType, f"{name}.value")
            values = f"transform_values({text}, ({key}, {item}) -> {new})"
            return f"transform_keys({values}, ({key}, {item}) -> {new_key})"
    return cast(text, kind)


def _fields(
    source: sql.StructType, kind: sql.StructType, name: str
) -> list[tuple[sql.StructField, sql.StructField]]:
    """Fields of the same name; refuses those that only one side has."""
    known = {field.name.lower(): field for field in source.fields}
    targets = {field.name.lower(): field for field in kind.fields}
    missing = [field.name for lower, field in targets.items() if lower not in known]
    unknown = [field.name for lower, field in known.items() if lower not in targets]
    if missing or unknown:
        what = [f"no field {', '.join(missing)}"] if missing else []
        what += [f"a field {', '.join(unknown)} that the column has not"] if unknown else []
        raise InvalidInput(f"the value for {name} has {' and '.join(what)}")
    return [(known[lower], field) for lower, field in targets.items()]


def field_of(text: str, name: str) -> str:
    """A field of a struct."""
    return f"{text}[{_text(name)}]"


def named_struct(parts: Sequence[tuple[str, str]]) -> str:
    """A struct of named texts."""
    return f"named_struct({', '.join(f'{_text(name)}, {value}' for name, value in parts)})"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _type(kind: sql.DataType) -> str:
    match kind:
        case sql.StructType():
            parts = (f"{quoted(field.name)}: {_type(field.dataType)}" for field in kind.fields)
            return f"STRUCT<{', '.join(parts)}>"
        case sql.ArrayType():
            return f"ARRAY<{_type(kind.elementType)}>"
        case sql.MapType():
            return f"MAP<{_type(kind.keyType)}, {_type(kind.valueType)}>"
    return str(kind.simpleString())
