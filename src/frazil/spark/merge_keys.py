"""Which part of a table the rows of a merge's source can match: a filter from their keys.

A few distinct values or the ends of their range say it. The filter prunes files and leaves before
anything of the table is read, and is what conflicts are judged by.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import types as ice
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from pyiceberg.expressions.literals import literal
from pyiceberg.schema import Schema
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from frazil.expr.bind import conjunction, predicate
from frazil.expr.filter_columns import Column, ColumnIndex
from frazil.expr.operators import Op
from frazil.expr.parse import parse
from frazil.spark.conditions import quoted
from frazil.spark.spark_types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAX_VALUES = 200
_INTEGERS = sql.ByteType | sql.ShortType | sql.IntegerType | sql.LongType
_PLAIN = (
    ice.IntegerType
    | ice.LongType
    | ice.StringType
    | ice.DateType
    | ice.TimestampType
    | ice.TimestamptzType
    | ice.DecimalType
)
_NAME = r"(?:`[^`]+`|[A-Za-z_][A-Za-z0-9_]*)"
_EQUALITY = re.compile(rf"^\(?\s*([ts])\.({_NAME})\s*=\s*([ts])\.({_NAME})\s*\)?$")
_INVOLVED = re.compile(r"\b(or|not|case|between)\b|['\"()]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A column of the table and the column of the source that it must equal."""

    target: str
    source: str


def pairs_of(condition: str, schema: Schema, source_columns: Sequence[str]) -> list[KeyPair]:
    """Equalities that a condition surely asks for; none where it is too involved to tell."""
    if _INVOLVED.search(condition):
        return []
    tables = {field.name for field in schema.fields}
    found: list[KeyPair] = []
    for part in re.split(r"\s+and\s+", condition.strip(), flags=re.IGNORECASE):
        match = _EQUALITY.match(part.strip())
        if match is None or match[1] == match[3]:
            continue
        names = {match[1]: match[2].strip("`"), match[3]: match[4].strip("`")}
        if names["t"] in tables and names["s"] in source_columns:
            found.append(KeyPair(target=names["t"], source=names["s"]))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What one look at a source tells: how many rows, and the values or the range of its keys."""

    rows: int
    keys: tuple[tuple[KeyPair, pa.ChunkedArray, bool], ...]
    """Pairs with distinct values, or, where the flag is false, the ends of their range."""


def looked_at(source: DataFrame, pairs: Sequence[KeyPair], schema: Schema) -> Looked:
    """Look at a source that is kept: this is what reads it."""
    usable = [pair for pair in pairs if _is_usable(pair, source, schema)]
    columns = [
        F.col(quoted(pair.source))
        .try_cast(spark_type(schema.find_field(pair.target).field_type))
        .alias(f"k{at}")
        for at, pair in enumerate(usable)
    ]
    keys = source.select(*columns)
    ends = [end(F.col(f"k{at}")) for at in range(len(usable)) for end in (F.min, F.max)]
    first = keys.agg(F.count(F.lit(1)), *ends).toArrow()
    rows = int(first.column(0)[0].as_py())
    if 0 < rows <= _MAX_VALUES and usable:
        found = keys.distinct().toArrow()
        values = [found.column(at) for at in range(len(usable))]
    else:
        values = [
            pa.chunked_array([*first.column(1 + 2 * at).chunks, *first.column(2 + 2 * at).chunks])
            for at in range(len(usable))
        ]
    is_all = 0 < rows <= _MAX_VALUES
    return Looked(
        rows=rows,
        keys=tuple((pair, each, is_all) for pair, each in zip(usable, values, strict=True)),
    )


def reach(looked: Looked, schema: Schema) -> BooleanExpression:
    """A filter that every row of the table with a key of the source passes."""
    if not looked.keys:
        return AlwaysTrue() if looked.rows else AlwaysFalse()
    index = ColumnIndex.of(schema)
    filters: list[BooleanExpression] = []
    for pair, values, is_all in looked.keys:
        known = pc.drop_null(values)
        if not len(known):
            return AlwaysFalse()
        column = index.with_id(schema.find_field(pair.target).field_id)
        filters += _filters(column, known, is_all=is_all)
    return parse(conjunction(filters), schema)


def _is_usable(pair: KeyPair, source: DataFrame, schema: Schema) -> bool:
    """Whether values of the two columns are equal exactly when they are the same value."""
    kind = schema.find_field(pair.target).field_type
    if not isinstance(kind, _PLAIN):
        return False
    given, wanted = source.schema[pair.source].dataType, spark_type(kind)
    return bool(given == wanted) or (isinstance(given, _INTEGERS) and isinstance(wanted, _INTEGERS))


def _filters(column: Column, values: pa.ChunkedArray, *, is_all: bool) -> list[BooleanExpression]:
    distinct = pc.unique(values)
    if is_all and len(distinct) <= _MAX_VALUES:
        return [predicate(Op.IN, column, [literal(value) for value in distinct.to_pylist()])]
    ends = pc.min_max(distinct)
    return [
        predicate(Op.GE, column, [literal(ends["min"].as_py())]),
        predicate(Op.LE, column, [literal(ends["max"].as_py())]),
    ]
