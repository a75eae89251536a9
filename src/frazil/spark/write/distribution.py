"""Rows brought together before they are written: by partition, and in the table's sort order.

`write.distribution-mode` says how: `none` leaves rows where they are, `hash` brings the rows of a
partition together, `range` sorts over all tasks. The default is `hash` for partitioned tables and
`none` for others. Partition values come from the same code that partitions rows in files.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from frazil.filter.transforms import joint_array, transform_array
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import NullOrder, SortDirection, SortOrder
from frazil.iceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    Transform,
    VoidTransform,
)
from frazil.properties.registry import DISTRIBUTION_MODE
from frazil.spark.types.spark_arrow import arrow_type, column_from_spark, column_into_spark
from frazil.spark.types.spark_types import spark_type
from frazil.value_classes import dataclass

_HOUR_US = 3_600_000_000
_DAY_US = 86_400_000_000


class Distribution(StrEnum):
    """How rows are spread over the tasks that write them."""

    NONE = "none"
    HASH = "hash"
    RANGE = "range"

    @staticmethod
    def of(properties: Mapping[str, str], spec: PartitionSpec) -> Distribution:
        """What the table asks for."""
        mode = DISTRIBUTION_MODE.of(properties)
        if mode is None:
            return Distribution.HASH if _parts(spec) else Distribution.NONE
        return Distribution(mode)


def distributed(
    frame: DataFrame,
    *,
    schema: Schema,
    spec: PartitionSpec,
    sort_order: SortOrder | None,
    mode: Distribution,
) -> DataFrame:
    """The rows of the frame, placed and sorted for writing; its columns stay as they are."""
    names = frame.columns
    known = set(names)
    parts = [
        _joined(frame, part, schema)
        for part in _parts(spec)
        if all(_top_name(schema, source) in known for source in part.source_ids)
    ]
    order = [] if sort_order is None else _order(frame, sort_order, schema, known)
    if not parts and not order:
        return frame
    by = [f"__frazil_p{at}" for at in range(len(parts))]
    wide = frame.select("*", *(part.alias(name) for name, part in zip(by, parts, strict=True)))
    if mode is Distribution.HASH and by:
        wide = wide.hint("rebalance", *by)
    elif mode is Distribution.RANGE:
        wide = wide.repartitionByRange(*by, *order)
    if order:
        wide = wide.sortWithinPartitions(*by, *order)
    return wide.select(*(wide[_quoted(name)] for name in names))


def order_columns(frame: DataFrame, sort_order: SortOrder, schema: Schema) -> list[Column]:
    """A sort order as Spark's, for the columns that the frame has."""
    return _order(frame, sort_order, schema, set(frame.columns))


def _parts(spec: PartitionSpec) -> list[Any]:
    return [part for part in spec.fields if not isinstance(part.transform, VoidTransform)]


def _order(
    frame: DataFrame, sort_order: SortOrder, schema: Schema, known: set[str]
) -> list[Column]:
    columns = []
    for field in sort_order.fields:
        if _top_name(schema, field.source_id) not in known:
            continue
        column = _transformed(frame, field.transform, field.source_id, schema)
        first = field.null_order == NullOrder.NULLS_FIRST
        if field.direction == SortDirection.ASC:
            columns.append(column.asc_nulls_first() if first else column.asc_nulls_last())
        else:
            columns.append(column.desc_nulls_first() if first else column.desc_nulls_last())
    return columns


def _top_name(schema: Schema, field_id: int) -> str:
    return str(schema.find_column_name(field_id)).split(".", 1)[0]


def _column(frame: DataFrame, source_id: int, schema: Schema) -> Column:
    first, *rest = str(schema.find_column_name(source_id)).split(".")
    column = frame[_quoted(first)]
    for name in rest:
        column = column.getField(name)
    return column


def _transformed(frame: DataFrame, transform: Transform, source_id: int, schema: Schema) -> Column:
    """The transform of a column: in Spark where Spark has it to the letter, else in Arrow."""
    kind = schema.find_field(source_id).field_type
    column = _column(frame, source_id, schema)
    if isinstance(transform, IdentityTransform):
        return column
    native = _native(transform, column, kind)
    if native is not None:
        return native
    compute = _Transform(transform, kind)
    return F.arrow_udf(compute.of, spark_type(transform.result_type(kind)))(column)


def _joined(frame: DataFrame, part: PartitionField, schema: Schema) -> Column:
    """The values of a partition field. Rows of one bucket of several columns stay together."""
    if not part.is_joint:
        return _transformed(frame, part.transform, part.source_id, schema)
    kinds = tuple(schema.find_field(source).field_type for source in part.source_ids)
    columns = [_column(frame, source, schema) for source in part.source_ids]
    compute = _JointTransform(part.transform, kinds)
    return F.arrow_udf(compute.of, spark_type(ice.IntegerType()))(*columns)


def _native(transform: Transform, column: Column, kind: ice.IcebergType) -> Column | None:
    if isinstance(transform, DayTransform) and isinstance(kind, ice.DateType):
        return F.unix_date(column)
    if isinstance(kind, ice.TimestamptzType):
        if isinstance(transform, DayTransform):
            return F.floor(F.unix_micros(column) / F.lit(_DAY_US))
        if isinstance(transform, HourTransform):
            return F.floor(F.unix_micros(column) / F.lit(_HOUR_US))
    return None


@dataclass(frozen=True, slots=True)
class _Transform:
    """A transform of Spark's Arrow columns; travels to executors."""

    transform: Transform
    kind: ice.IcebergType

    def of(self, values: pa.Array) -> pa.Array:
        """The transform of every value."""
        result = self.transform.result_type(self.kind)
        transformed = transform_array(
            self.transform, column_from_spark(values, self.kind), self.kind
        )
        return column_into_spark(transformed, result, arrow_type(spark_type(result)))


@dataclass(frozen=True, slots=True)
class _JointTransform:
    """A transform of several of Spark's Arrow columns; travels to executors."""

    transform: Transform
    kinds: tuple[ice.IcebergType, ...]

    def of(self, *values: pa.Array) -> pa.Array:
        """The transform of every row."""
        columns = [
            column_from_spark(array, kind) for array, kind in zip(values, self.kinds, strict=True)
        ]
        return joint_array(self.transform, columns, self.kinds)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
