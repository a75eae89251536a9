"""Types of a table's columns, partition fields and derived columns, as old manifests need them.

A manifest written long ago may speak of a column that has been dropped or promoted since, or of a
partition field of an old spec. Here every id that any schema or spec of the table knows has a type;
where several schemas know a column, the current one decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
from pyiceberg import types as ice
from pyiceberg.transforms import IdentityTransform, Transform, UnknownTransform, VoidTransform

from frazil.errors import FormatError, InvalidInput
from frazil.format import single_value, stats
from frazil.format.fields import FILE_PATH
from frazil.format.metadata import TableMetadata
from frazil.format.types import arrow_type, is_geo, promote

__all__ = ["DerivedType", "Summarised", "TableTypes", "is_geo", "typed"]

_OF_POSITION_DELETES: Final[dict[int, ice.IcebergType]] = {
    FILE_PATH: ice.StringType(),
    FILE_PATH - 1: ice.LongType(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedType:
    """A derived column: the type of its values, and the partition field they are those of."""

    type: ice.IcebergType
    partition_field_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarised:
    """What a partition field's summary in a manifest list speaks of: a column, and its type."""

    field_id: int
    type: ice.IcebergType


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTypes:
    """Types by id, from every schema and spec of a table."""

    columns: Mapping[int, ice.IcebergType]
    current_ids: tuple[int, ...]
    """Columns of the current schema that have statistics."""
    partitions: Mapping[int, ice.IcebergType]
    derived: Mapping[int, DerivedType]
    summaries: Mapping[int, tuple[Summarised | None, ...]]
    """By spec, one per partition field; None where the summary says nothing of use."""

    @staticmethod
    def of(metadata: TableMetadata) -> TableTypes:
        """The types of a table; kept, as they are asked for once per manifest."""
        return _table_types(_Identity(metadata))


@dataclass(frozen=True, slots=True, eq=False)
class _Identity:
    """A table's metadata, compared by what the types depend on."""

    metadata: TableMetadata

    def _parts(self) -> tuple[object, ...]:
        one = self.metadata
        return (one.table_uuid, one.current_schema_id, len(one.schemas), one.last_column_id)

    def __hash__(self) -> int:
        return hash(self._parts())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Identity):
            return NotImplemented
        if self._parts() != other._parts():
            return False
        mine, others = self.metadata, other.metadata
        return mine is others or (
            mine.schemas == others.schemas
            and mine.partition_specs == others.partition_specs
            and mine.expressions == others.expressions
        )


@lru_cache(maxsize=64)
def _table_types(key: _Identity) -> TableTypes:
    metadata = key.metadata
    current = metadata.schema()
    columns: dict[int, ice.IcebergType] = {}
    for schema in (current, *reversed(metadata.schemas)):
        for field in stats.tracked_fields(schema):
            columns.setdefault(field.id, field.type)
    columns |= _OF_POSITION_DELETES
    results: dict[int, ice.IcebergType] = {}
    for spec in metadata.partition_specs:
        for part in spec.fields:
            source = columns.get(part.source_id)
            result = None if source is None else _result_type(part.transform, source)
            if result is not None:
                results.setdefault(part.field_id, result)
    expressions = {one.partition_field_id: one.expr_id for one in metadata.expressions}
    derived = {
        int(one.expr_id): DerivedType(
            type=results[one.partition_field_id], partition_field_id=one.partition_field_id
        )
        for one in metadata.expressions
        if one.partition_field_id in results
    }
    summaries: dict[int, tuple[Summarised | None, ...]] = {}
    for spec in metadata.partition_specs:
        summaries[spec.spec_id] = tuple(
            _summarised(part.transform, part.source_id, results.get(part.field_id), expression)
            for part in spec.fields
            for expression in [expressions.get(part.field_id)]
        )
    return TableTypes(
        columns=columns,
        current_ids=tuple(field.id for field in stats.tracked_fields(current)),
        partitions=results,
        derived=derived,
        summaries=summaries,
    )


def _result_type(
    transform: Transform[object, object], source: ice.IcebergType
) -> ice.IcebergType | None:
    if isinstance(transform, UnknownTransform | VoidTransform):
        return None
    return transform.result_type(source)


def _summarised(
    transform: Transform[object, object],
    source_id: int,
    result: ice.IcebergType | None,
    expression: int | None,
) -> Summarised | None:
    if result is None or not isinstance(result, ice.PrimitiveType):
        return None
    if isinstance(transform, IdentityTransform):
        return Summarised(field_id=source_id, type=result)
    return None if expression is None else Summarised(field_id=int(expression), type=result)


def typed(array: pa.Array, kind: ice.IcebergType) -> pa.Array:
    """Partition values as stored in a file, in the Arrow type of their Iceberg type."""
    target = arrow_type(kind)
    source = array.type
    if source == target:
        return array
    try:
        if isinstance(kind, ice.DecimalType) and not pa.types.is_decimal(source):
            return single_value.decode_bounds(array.cast(pa.binary()), kind)
        if isinstance(kind, ice.FixedType | ice.UUIDType):
            return array.cast(pa.binary()).cast(target)
        if pa.types.is_integer(source):
            if isinstance(kind, ice.DateType):
                return array.cast(pa.int32()).cast(target)
            return array.cast(target)
        return promote(array, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidInput) as error:
        raise FormatError(f"values of {source} do not fit {kind}: {error}") from error
