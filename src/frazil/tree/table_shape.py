"""The shape of a table: what its metadata says of columns, partitions and their types.

Worked out once per definition of a table, not once per commit or manifest: schemas, specs and
derived columns stay the same objects from one commit to the next. The current schema says what a
manifest written now has. A manifest written long ago may speak of a column that has been dropped
or promoted since, or of a partition field of an old spec: every id that any schema or spec of the
table knows has a type; where several schemas know a column, the current one decides.

Settings are not part of it, as they change while the definition stays: see `frazil.properties`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.filter.prune.prune import Filter, PruneContext, compile_filter
from frazil.format.entries import aggregate, stats
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import FILE_PATH, STATS_PREFIX, partition_key, stats_key
from frazil.format.entries.nest import ColumnNames
from frazil.format.entries.stats import TrackedField
from frazil.format.metadata.metadata import TableMetadata
from frazil.format.values.types import arrow_type
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import And, BooleanExpression, Or, literals_of
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import IdentityTransform, Transform, UnknownTransform, VoidTransform
from frazil.value_classes import frozen

_OF_POSITION_DELETES: Final[dict[int, ice.IcebergType]] = {
    FILE_PATH: ice.StringType(),
    FILE_PATH - 1: ice.LongType(),
}
_MAX_FILTERS: Final = 64
_MAX_LITERALS: Final = 100


@frozen
class DerivedType:
    """A derived column: the type of its values, and the partition field they are those of."""

    type: ice.IcebergType
    partition_field_id: int


@frozen
class Summarised:
    """What a partition field's summary in a manifest list speaks of: a column, and its type."""

    field_id: int
    type: ice.IcebergType


class TableShape:
    """What follows from a table's schemas, specs and derived columns; each part on first use."""

    def __init__(self, metadata: TableMetadata) -> None:
        self.schema: Final = metadata.schema()
        self.specs: Final = metadata.specs_by_id()
        self._schemas = metadata.schemas
        self._expressions = metadata.expressions
        self._filters: dict[tuple[int, int], tuple[BooleanExpression, Schema, Filter]] = {}

    # What a manifest written now has

    @cached_property
    def current(self) -> tuple[TrackedField, ...]:
        """Columns of the current schema that have statistics."""
        return stats.tracked_fields(self.schema)

    @cached_property
    def derived(self) -> tuple[TrackedField, ...]:
        """Derived columns whose source is in the current schema."""
        return tuple(
            TrackedField(
                id=column.expr_id,
                full_name=column.name,
                type=column.transform.result_type(self.schema.find_type(column.source_ids[0])),
            )
            for column in self._expressions
            if self.schema.field_ids.issuperset(column.source_ids)
        )

    @cached_property
    def fields(self) -> tuple[TrackedField, ...]:
        """Every column a manifest may have statistics for, derived ones and lineage included."""
        return (*self.current, *self.derived, *stats.ROW_LINEAGE)

    @cached_property
    def stats_types(self) -> dict[str, pa.DataType]:
        """Key to Arrow type of every statistic of those columns."""
        return stats.stats_types(self.fields)

    @cached_property
    def names(self) -> ColumnNames:
        """Names of the partition's columns in a manifest, and which columns hold a uuid."""
        partition = [field for spec in self.specs.values() for field in spec.fields]
        by_id = {field.id: field.type for field in self.fields}
        uuids = {
            stats_key(id, bound)
            for id, kind in by_id.items()
            if isinstance(kind, ice.UUIDType)
            for bound in ("lower_bound", "upper_bound")
        }
        uuids |= {
            partition_key(field.field_id)
            for field in partition
            if isinstance(by_id.get(field.source_id), ice.UUIDType)
            and isinstance(field.transform, IdentityTransform)
        }
        return ColumnNames(
            partition={field.field_id: field.name for field in partition},
            uuids=frozenset(uuids),
        )

    @cached_property
    def unpartitioned(self) -> frozenset[int]:
        """Ids of the specs without fields."""
        return frozenset(id for id, spec in self.specs.items() if not spec.fields)

    @cached_property
    def partition_columns(self) -> dict[int, dict[str, pa.DataType]]:
        """Spec id to the columns of its partition fields, with their types."""
        return {id: self._partition_columns(spec) for id, spec in self.specs.items()}

    def _partition_columns(self, spec: PartitionSpec) -> dict[str, pa.DataType]:
        # A field of a column that no schema knows is null in every file left: any type will do.
        return {
            partition_key(field.field_id): arrow_type(
                field.transform.result_type(
                    self.column_types.get(field.source_id, ice.IntegerType())
                )
            )
            for field in spec.fields
        }

    def conformed(self, batch: EntryBatch) -> EntryBatch:
        """The batch with the statistics of the current schema, as a manifest written now has."""
        for key, kind in batch.types():
            if key.startswith(STATS_PREFIX) and self.stats_types.get(key) != kind:
                return aggregate.conform(batch, self.schema, derived=self.derived)
        return batch

    def with_partitions(self, batch: EntryBatch) -> EntryBatch:
        """The batch without spec ids of unpartitioned files, and with a column for every partition
        field of the specs that its other files have: their partition is not null."""
        if not batch.has("spec_id"):
            return batch
        used = set(batch.numpy("spec_id").tolist())
        if not used.isdisjoint(self.unpartitioned):
            specs = batch.column("spec_id")
            unpartitioned = pa.array(sorted(self.unpartitioned), pa.int32())
            is_unpartitioned = pc.is_in(specs, value_set=unpartitioned)
            specs = pc.if_else(is_unpartitioned, pa.scalar(None, pa.int32()), specs)
            batch = batch.with_column("spec_id", specs)
        for spec in sorted(used - self.unpartitioned):
            for key, kind in self.partition_columns.get(spec, {}).items():
                if not batch.has(key):
                    batch = batch.with_column(key, pa.nulls(batch.num_rows, kind))
        return batch

    # What a filter is pruned with

    def prune_context(self, schema: Schema | None = None) -> PruneContext:
        """What pruning needs to know of the table; by default in the current schema."""
        chosen = self.schema if schema is None else schema
        return PruneContext(schema=chosen, specs=self.specs, derived=self._expressions)

    def filter_of(self, where: BooleanExpression, schema: Schema) -> Filter:
        """A condition bound to the schema, compiled for entries of the table; once for an object,
        as the same text is the same object (`filter_text.parse`)."""
        key = id(where), id(schema)
        cached = self._filters.get(key)
        if cached is not None:
            return cached[2]
        compiled = compile_filter(where, self.prune_context(schema))
        if _is_short(where):
            if len(self._filters) >= _MAX_FILTERS:
                self._filters.clear()
            # The value holds the objects, so that no others have their identity.
            self._filters[key] = where, schema, compiled
        return compiled

    # Types of every id that any schema or spec knows

    @cached_property
    def column_types(self) -> Mapping[int, ice.IcebergType]:
        """Types of columns by id, those of position deletes included."""
        columns = {field.id: field.type for field in self.current}
        for schema in reversed(self._schemas):
            for field in stats.tracked_fields(schema):
                columns.setdefault(field.id, field.type)
        return columns | _OF_POSITION_DELETES

    @cached_property
    def partition_types(self) -> Mapping[int, ice.IcebergType]:
        """Types of the values of partition fields by id; without transforms that have no values."""
        types: dict[int, ice.IcebergType] = {}
        for spec in self.specs.values():
            for field in spec.fields:
                source = self.column_types.get(field.source_id)
                result = None if source is None else _result_type(field.transform, source)
                if result is not None:
                    types.setdefault(field.field_id, result)
        return types

    @cached_property
    def derived_types(self) -> Mapping[int, DerivedType]:
        """Types of derived columns by id."""
        return {
            int(column.expr_id): DerivedType(
                type=self.partition_types[field_id], partition_field_id=field_id
            )
            for column in self._expressions
            if (field_id := column.partition_field_id) in self.partition_types
            and field_id is not None
        }

    @cached_property
    def summaries(self) -> Mapping[int, tuple[Summarised | None, ...]]:
        """By spec, one per partition field; None where the summary says nothing of use."""
        derived = {column.partition_field_id: column.expr_id for column in self._expressions}
        return {
            id: tuple(
                _summarised(
                    field.transform,
                    field.source_id,
                    self.partition_types.get(field.field_id),
                    derived.get(field.field_id),
                )
                for field in spec.fields
            )
            for id, spec in self.specs.items()
        }


def _is_short(where: BooleanExpression) -> bool:
    """Whether a condition may stay in memory: those of merges can list a million keys."""
    rest, literals = [where], 0
    while rest and literals <= _MAX_LITERALS:
        part = rest.pop()
        if isinstance(part, And | Or):
            rest += (part.left, part.right)
        literals += 1 + len(literals_of(part))
    return literals <= _MAX_LITERALS


def shape_of(metadata: TableMetadata) -> TableShape:
    """The shape of a table."""
    return _shape(_Definition(metadata))


class _Definition:
    """The part of table metadata that a shape depends on, compared by identity.

    Holding the objects keeps their identities from being used again.
    """

    def __init__(self, metadata: TableMetadata) -> None:
        self.metadata = metadata
        self._parts: tuple[Any, ...] = (
            metadata.schemas,
            metadata.partition_specs,
            metadata.expressions,
        )
        self._hash = hash((metadata.current_schema_id, *map(id, self._parts)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Definition)
            and self.metadata.current_schema_id == other.metadata.current_schema_id
            and all(part is its for part, its in zip(self._parts, other._parts, strict=True))
        )


@lru_cache(maxsize=128)
def _shape(definition: _Definition) -> TableShape:
    return TableShape(definition.metadata)


def _result_type(transform: Transform, source: ice.IcebergType) -> ice.IcebergType | None:
    if isinstance(transform, UnknownTransform | VoidTransform):
        return None
    return transform.result_type(source)


def _summarised(
    transform: Transform,
    source_id: int,
    result: ice.IcebergType | None,
    expression: int | None,
) -> Summarised | None:
    if result is None or not isinstance(result, ice.PrimitiveType):
        return None
    if isinstance(transform, IdentityTransform):
        return Summarised(field_id=source_id, type=result)
    return None if expression is None else Summarised(field_id=int(expression), type=result)


__all__ = ["DerivedType", "Summarised", "TableShape", "shape_of"]
