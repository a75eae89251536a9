"""What table metadata says of the columns of its manifests: names, tracked fields, types.

Worked out once per definition of a table, not once per commit: schemas, specs and derived columns
stay the same objects from one commit to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, UUIDType

from frazil.format import aggregate, stats
from frazil.format.batch import EntryBatch
from frazil.format.fields import STATS_PREFIX, partition_key, stats_key
from frazil.format.metadata import TableMetadata
from frazil.format.nest import ColumnNames
from frazil.format.stats import TrackedField
from frazil.format.types import arrow_type


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """The table-dependent columns that manifests of one table definition have."""

    metadata: TableMetadata
    names: ColumnNames
    fields: tuple[TrackedField, ...]
    derived: tuple[TrackedField, ...]
    types: dict[str, pa.DataType]
    partitions: dict[int, dict[str, pa.DataType]]
    """Spec id to the columns of its partition fields, with their types."""
    unpartitioned: frozenset[int]

    def conformed(self, batch: EntryBatch) -> EntryBatch:
        """The batch with the statistics of the current schema, as a manifest written now has."""
        for key, kind in batch.types():
            if key.startswith(STATS_PREFIX) and self.types.get(key) != kind:
                return aggregate.conform(batch, self.metadata.schema(), derived=self.derived)
        return batch

    def with_partitions(self, batch: EntryBatch) -> EntryBatch:
        """The batch without spec ids of unpartitioned files, and with a column for every partition
        field of the specs that its other files have: their partition is not null."""
        if not batch.has("spec_id"):
            return batch
        used = {int(spec) for spec in np.unique(batch.numpy("spec_id"))}
        if not used.isdisjoint(self.unpartitioned):
            specs = batch.column("spec_id")
            plain = pa.array(sorted(self.unpartitioned), pa.int32())
            is_plain = pc.is_in(specs, value_set=plain)
            specs = pc.if_else(is_plain, pa.scalar(None, pa.int32()), specs)
            batch = batch.with_column("spec_id", specs)
        for spec in sorted(used - self.unpartitioned):
            for key, kind in self.partitions.get(spec, {}).items():
                if not batch.has(key):
                    batch = batch.with_column(key, pa.nulls(batch.num_rows, kind))
        return batch


def layout_of(metadata: TableMetadata) -> Layout:
    """The layout of a table's manifests."""
    return _layout(_Definition(metadata))


class _Definition:
    """The part of table metadata that a layout depends on, compared by identity.

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
            and all(mine is its for mine, its in zip(self._parts, other._parts, strict=True))
        )


@lru_cache(maxsize=128)
def _layout(definition: _Definition) -> Layout:
    metadata = definition.metadata
    specs = metadata.partition_specs
    derived = _derived_fields(metadata)
    fields = (*stats.tracked_fields(metadata.schema()), *derived, *stats.ROW_LINEAGE)
    return Layout(
        metadata=metadata,
        names=_column_names(metadata, fields),
        fields=fields,
        derived=derived,
        types=stats.stats_types(fields),
        partitions={spec.spec_id: _partition_types(spec, metadata) for spec in specs},
        unpartitioned=frozenset(spec.spec_id for spec in specs if not spec.fields),
    )


def _partition_types(spec: PartitionSpec, metadata: TableMetadata) -> dict[str, pa.DataType]:
    """Types of the partition columns. A field of a dropped column is null in every file left."""
    types: dict[str, pa.DataType] = {}
    for field in spec.fields:
        source = next(
            (
                schema.find_type(field.source_id)
                for schema in (metadata.schema(), *reversed(metadata.schemas))
                if field.source_id in schema.field_ids
            ),
            IntegerType(),
        )
        kind = field.transform.result_type(source)
        types[partition_key(field.field_id)] = arrow_type(kind)
    return types


def _derived_fields(metadata: TableMetadata) -> tuple[TrackedField, ...]:
    schema = metadata.schema()
    return tuple(
        TrackedField(
            id=column.expr_id,
            full_name=column.name,
            type=column.transform.result_type(schema.find_type(column.source_ids[0])),
        )
        for column in metadata.expressions
        if column.source_ids[0] in schema.field_ids
    )


def _column_names(metadata: TableMetadata, tracked: tuple[TrackedField, ...]) -> ColumnNames:
    partition = [field for spec in metadata.partition_specs for field in spec.fields]
    by_id = {field.id: field.type for field in tracked}
    uuids = {
        stats_key(id, bound)
        for id, kind in by_id.items()
        if isinstance(kind, UUIDType)
        for bound in ("lower_bound", "upper_bound")
    }
    uuids |= {
        partition_key(field.field_id)
        for field in partition
        if isinstance(by_id.get(field.source_id), UUIDType)
        and isinstance(field.transform, IdentityTransform)
    }
    return ColumnNames(
        stats={field.id: field.full_name for field in tracked},
        partition={field.field_id: field.name for field in partition},
        uuids=frozenset(uuids),
    )


def tracked_fields(metadata: TableMetadata) -> tuple[TrackedField, ...]:
    """Every column a manifest of this table may have statistics for, derived ones included."""
    return layout_of(metadata).fields


def column_names(metadata: TableMetadata) -> ColumnNames:
    """Names for the table-dependent columns of a manifest."""
    return layout_of(metadata).names


__all__ = ["Layout", "column_names", "layout_of", "tracked_fields"]
