"""The rows of a merge's source on Spark: numbered, kept, and looked at once.

The values or the range of their keys say which part of the table they can match (`engine.reach`);
how many there are says how to join.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from frazil import arrow_compute as pc
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.rows.actions import SOURCE_ROW
from frazil.rows.engine import KeyPair, KeyValues
from frazil.spark.expressions.conditions import quoted
from frazil.spark.session.file_list import is_connect
from frazil.spark.types.spark_types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")
_LEVELS: Final = (StorageLevel.MEMORY_AND_DISK_DESER, StorageLevel.DISK_ONLY_2)
"""Where rows are kept, one attempt after the other: first by one executor, then by two."""
_LOST: Final = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
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


def pairs_of(condition: str, schema: Schema, source_columns: Sequence[str]) -> list[KeyPair]:
    """Equalities that a condition surely asks for; none where it is too involved to tell."""
    if _INVOLVED.search(condition):
        return []
    tables = {field.name for field in schema.fields}
    pairs: list[KeyPair] = []
    for part in re.split(r"\s+and\s+", condition.strip(), flags=re.IGNORECASE):
        match = _EQUALITY.match(part.strip())
        if match is None or match[1] == match[3]:
            continue
        names = {match[1]: match[2].strip("`"), match[3]: match[4].strip("`")}
        if names["t"] in tables and names["s"] in source_columns:
            pairs.append(KeyPair(target=names["t"], source=names["s"]))
    return pairs


def with_source(frame: DataFrame, run: Callable[[SparkSource], T]) -> T:
    """Run something on the rows of a frame, and all of it again if some of them were lost.

    A merge reads its source more than once. A source that is computed again may come in another
    order or with other rows, so what is lost with an executor must not be: the frame is cut off
    from where it came from, and whoever misses rows fails.
    """
    for level in _LEVELS:
        source = SparkSource(frame, level)
        try:
            return run(source)
        except Exception as error:
            if _LOST not in str(error) or level is _LEVELS[-1]:
                raise
        finally:
            source.close()
    raise AssertionError("there is a level")


class SparkSource:
    """Rows of a frame, computed once and numbered (`SOURCE_ROW`); whoever made it calls `close`."""

    def __init__(
        self, frame: DataFrame, level: StorageLevel = StorageLevel.MEMORY_AND_DISK_DESER
    ) -> None:
        self.columns: Sequence[str] = frame.columns
        numbered = frame.withColumn(SOURCE_ROW, F.monotonically_increasing_id())
        self.frame = numbered.localCheckpoint(eager=True, storageLevel=level)
        exact = frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
        self._names = {name if exact else name.lower(): name for name in self.columns}

    def close(self) -> None:
        """Let the rows go."""
        if not is_connect(self.frame.sparkSession):  # a server does so when the frame has gone
            self.frame._jdf.queryExecution().logical().rdd().unpersist(False)

    def named(self, name: str) -> str | None:
        """The source's spelling of a column."""
        return self._names.get(name) or self._names.get(name.lower())

    @cached_property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self.frame.count())

    def keys(
        self, names: Sequence[str], kinds: Sequence[ice.IcebergType], *, limit: int
    ) -> Sequence[KeyValues | None]:
        """Values of key columns, or their ends where there are many; this reads the rows."""
        usable = [at for at in range(len(names)) if self._is_usable(names[at], kinds[at])]
        columns = [
            f"TRY_CAST({quoted(names[at])} AS {spark_type(kinds[at]).simpleString()}) AS k{at}"
            for at in usable
        ]
        keys = self.frame.selectExpr(*columns)
        ends = [f"{end}(k{at})" for at in usable for end in ("min", "max")]
        first = keys.selectExpr("count(1)", *ends).toArrow()
        rows = self.__dict__["num_rows"] = int(first.column(0)[0].as_py())
        is_all = rows <= limit
        if is_all and usable:
            distinct = keys.distinct().toArrow()
            values = {at: distinct.column(place) for place, at in enumerate(usable)}
        else:
            values = {
                at: pa.chunked_array(
                    [*first.column(1 + 2 * place).chunks, *first.column(2 + 2 * place).chunks]
                )
                for place, at in enumerate(usable)
            }
        return [
            KeyValues(values=_distinct(values[at]), is_all=is_all) if at in values else None
            for at in range(len(names))
        ]

    def duplicates(self, names: Sequence[str]) -> int:
        """How many rows have the key of another."""
        keys = [F.col(quoted(name)) for name in names]
        return self.num_rows - int(self.frame.select(*keys).distinct().count())

    def nulls(self, name: str) -> int:
        """How many rows have no value in a column."""
        return int(self.frame.filter(F.col(quoted(name)).isNull()).count())

    def _is_usable(self, name: str, kind: ice.IcebergType) -> bool:
        """Whether values of the two columns are equal exactly when they are the same value."""
        if not isinstance(kind, _PLAIN):
            return False
        source_type, target_type = self.frame.schema[name].dataType, spark_type(kind)
        whole = isinstance(source_type, _INTEGERS) and isinstance(target_type, _INTEGERS)
        return bool(source_type == target_type) or whole


def _distinct(values: pa.ChunkedArray) -> pa.Array:
    distinct = pc.drop_null(pc.unique(values))
    return distinct.combine_chunks() if isinstance(distinct, pa.ChunkedArray) else distinct
