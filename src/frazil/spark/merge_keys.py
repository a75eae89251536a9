"""Which part of a table the rows of a merge's source can match: a filter from their keys.

Executors look at the keys, few distinct values or the ends of their range come back. The filter
prunes files and leaves before anything of the table is read, and is what conflicts are judged by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
from frazil.spark.row_level import quoted
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


def reach(source: DataFrame, pairs: Sequence[KeyPair], schema: Schema) -> BooleanExpression:
    """A filter that every row of the table with a key of the source passes."""
    usable = [pair for pair in pairs if _is_usable(pair, source, schema)]
    if not usable:
        return AlwaysTrue()
    columns = [
        F.col(quoted(pair.source))
        .try_cast(spark_type(schema.find_field(pair.target).field_type))
        .alias(f"k{at}")
        for at, pair in enumerate(usable)
    ]
    looked = source.select(*columns).mapInArrow(_looked_at, "at int, keys binary, is_all boolean")
    rows = looked.collect()
    index = ColumnIndex.of(schema)
    filters: list[BooleanExpression] = []
    for at, pair in enumerate(usable):
        mine = [row for row in rows if row["at"] == at]
        if not mine:
            return AlwaysFalse()
        values = pa.concat_tables(_unpacked(bytes(row["keys"])) for row in mine).column(0)
        column = index.with_id(schema.find_field(pair.target).field_id)
        filters += _filters(column, values, is_all=all(row["is_all"] for row in mine))
    return parse(conjunction(filters), schema)


def _is_usable(pair: KeyPair, source: DataFrame, schema: Schema) -> bool:
    """Whether values of the two columns are equal exactly when they are the same value."""
    kind = schema.find_field(pair.target).field_type
    if not isinstance(kind, _PLAIN):
        return False
    given, wanted = source.schema[pair.source].dataType, spark_type(kind)
    return bool(given == wanted) or (isinstance(given, _INTEGERS) and isinstance(wanted, _INTEGERS))


def _looked_at(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Per key column: its distinct values, or its ends when there are many."""
    found: dict[int, pa.Array] = {}
    many: set[int] = set()
    for batch in batches:
        for at, array in enumerate(batch.columns):
            seen = array.drop_null()
            if at in found:
                seen = pa.concat_arrays([found[at], seen])
            values = pc.unique(seen)
            if len(values) > _MAX_VALUES:
                many.add(at)
                ends = pc.min_max(values)
                values = pa.array([ends["min"].as_py(), ends["max"].as_py()], values.type)
            found[at] = values
    rows = [at for at, values in found.items() if len(values)]
    yield pa.RecordBatch.from_arrays(
        [
            pa.array(rows, pa.int32()),
            pa.array([_packed(found[at]) for at in rows], pa.binary()),
            pa.array([at not in many for at in rows], pa.bool_()),
        ],
        names=["at", "keys", "is_all"],
    )


def _packed(values: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"values": values})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


def _filters(column: Column, values: pa.ChunkedArray, *, is_all: bool) -> list[BooleanExpression]:
    distinct = pc.unique(values)
    if is_all and len(distinct) <= _MAX_VALUES:
        return [predicate(Op.IN, column, [literal(value) for value in distinct.to_pylist()])]
    ends = pc.min_max(distinct)
    return [
        predicate(Op.GE, column, [literal(ends["min"].as_py())]),
        predicate(Op.LE, column, [literal(ends["max"].as_py())]),
    ]
