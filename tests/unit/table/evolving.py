"""A table definition to evolve, and a stand-in that commits to it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from frazil.commit.change import Change
from frazil.format.metadata.metadata import TableMetadata, new_table
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import SortOrder
from frazil.table.columns.evolve import EvolvePartitions, EvolveSchema

POINT = ice.StructType(
    ice.NestedField(21, "x", ice.IntegerType(), required=True),
    ice.NestedField(22, "y", ice.IntegerType(), required=False),
)
SPOT = ice.StructType(ice.NestedField(32, "x", ice.FloatType(), required=False))
SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(2, "qty", ice.IntegerType(), required=False),
    ice.NestedField(3, "price", ice.DecimalType(10, 2), required=False),
    ice.NestedField(4, "name", ice.StringType(), required=False, doc="full name"),
    ice.NestedField(5, "day", ice.DateType(), required=False),
    ice.NestedField(6, "ts", ice.TimestampType(), required=False),
    ice.NestedField(7, "point", POINT, required=False),
    ice.NestedField(8, "spots", ice.ListType(31, SPOT, False), required=False),
    ice.NestedField(
        9, "props", ice.MapType(41, ice.StringType(), 42, ice.IntegerType(), False), required=False
    ),
)
# Fresh ids: 1 to 9 at the top, then point.x 10, point.y 11, spots.element 12, spots.element.x 13,
# props.key 14, props.value 15.
LAST = 15


class Definition:
    """A table's metadata with whatever is committed to it."""

    def __init__(self, spec: PartitionSpec | None = None, order: SortOrder | None = None) -> None:
        more: dict[str, Any] = {}
        if spec is not None:
            more["spec"] = spec
        if order is not None:
            more["sort_order"] = order
        self.metadata: TableMetadata = new_table(
            schema=SCHEMA, location="file:///t", table_uuid=uuid.uuid4(), now_ms=1, **more
        )
        self.changes: list[Change] = []

    def commit(self, change: Change) -> None:
        self.changes.append(change)
        for update in change.updates:
            self.metadata = update.apply(self.metadata, now_ms=2)

    def columns(self, *, case_sensitive: bool = True) -> EvolveSchema:
        return EvolveSchema(self.metadata, self.commit, case_sensitive=case_sensitive)

    def partitions(self) -> EvolvePartitions:
        return EvolvePartitions(self.metadata, self.commit)

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.metadata.schema().fields]

    def field(self, name: str) -> ice.NestedField:
        return self.metadata.schema().find_field(name)

    def parts(self) -> list[tuple[int, int, str, str]]:
        return [
            (part.field_id, part.source_id, str(part.transform), part.name)
            for part in self.metadata.spec().fields
        ]


@pytest.fixture
def table() -> Definition:
    return Definition()


def by(*fields: PartitionField) -> PartitionSpec:
    return PartitionSpec(*fields)
