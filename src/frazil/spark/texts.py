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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from frazil.expr.sql_text import Expression
from frazil.spark import jar
from frazil.spark.conditions import quoted, value_of
from frazil.spark.log import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAME: Final = "__frazil_given_"


@dataclass(frozen=True, slots=True)
class Given:
    """An expression of a statement that Java holds, by its number."""

    number: int


class Texts:
    """Collects what texts refer to; `held` is Java's list of a statement's expressions."""

    def __init__(self, held: Any = None) -> None:
        self._held = held
        self._given: list[str | int | Column] = []
        self._guards: list[str] = []
        self._conditions: set[int] = set()

    def condition(self, given: str | Column | Given, guard: str) -> str:
        """A condition, for the column that a frame gets first; a text is SQL."""
        self._conditions.add(len(self._given))
        return self._named(given, guard)

    def value(self, given: Any, guard: str) -> str:
        """A value in an assignment; a text is a value, `frazil.expr` is SQL."""
        if isinstance(given, Expression):
            return self._named(str(given), guard)
        return self._named(given if isinstance(given, Given) else value_of(given), guard)

    def column(self, given: Any) -> Column:
        """The same as a column, for what only columns can do."""
        if not isinstance(given, Given):
            return value_of(given)
        from pyspark.sql.classic.column import Column as ClassicColumn

        return ClassicColumn(self._held.get(given.number))

    def _named(self, given: str | Column | Given, guard: str) -> str:
        self._given.append(given.number if isinstance(given, Given) else given)
        self._guards.append(guard)
        return f"{_NAME}{len(self._given) - 1}"

    def selected(
        self,
        frame: DataFrame,
        select: Sequence[tuple[str, str]],
        *,
        extra: tuple[str, str] | None = None,
        where: str | None = None,
    ) -> DataFrame:
        """Names and texts selected from a frame, which first gets one more column and a filter."""
        spark = frame.sparkSession
        if is_connect(spark):
            return self._selected_there(frame, select, extra, where)
        held = self._held
        if held is None:
            held = spark._jvm.java.util.ArrayList()
        sent: list[str | int] = []
        for given in self._given:
            if isinstance(given, Column):
                held.add(given._jc)
                sent.append(held.size() - 1)
            else:
                sent.append(given)
        asked = json.dumps({"given": sent, "with": extra, "where": where, "select": list(select)})
        made = jar.frames(spark).selected(frame._jdf, asked, held)
        return type(frame)(made, spark)

    def _selected_there(
        self,
        frame: DataFrame,
        select: Sequence[tuple[str, str]],
        extra: tuple[str, str] | None,
        where: str | None,
    ) -> DataFrame:
        first = [at for at in range(len(self._given)) if at in self._conditions]
        made = self._with_given(frame, first)
        if extra is not None:
            made = made.withColumn(extra[0], F.expr(extra[1]))
        if where is not None:
            made = made.filter(where)
        made = self._with_given(made, [at for at in range(len(self._given)) if at not in first])
        return made.select(*(F.expr(text).alias(name) for name, text in select))

    def _with_given(self, frame: DataFrame, numbers: Sequence[int]) -> DataFrame:
        made = {}
        for at in numbers:
            given = self._given[at]
            assert not isinstance(given, int)
            column = F.expr(given) if isinstance(given, str) else given
            made[f"{_NAME}{at}"] = F.when(F.expr(self._guards[at]), column)
        return frame.withColumns(made) if made else frame


def cast(text: str, kind: sql.DataType) -> str:
    """A text as a value of a type."""
    return f"CAST({text} AS {_type(kind)})"


def _type(kind: sql.DataType) -> str:
    match kind:
        case sql.StructType():
            parts = (f"{quoted(each.name)}: {_type(each.dataType)}" for each in kind.fields)
            return f"STRUCT<{', '.join(parts)}>"
        case sql.ArrayType():
            return f"ARRAY<{_type(kind.elementType)}>"
        case sql.MapType():
            return f"MAP<{_type(kind.keyType)}, {_type(kind.valueType)}>"
    return str(kind.simpleString())
