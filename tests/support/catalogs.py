"""Small tables and commits for tests of catalogs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from frazil.commit.head import Draft, Head, Landed, State
from frazil.format.metadata.metadata import (
    MAIN,
    History,
    SchemaId,
    Snapshot,
    SnapshotId,
    SnapshotLogEntry,
    SnapshotRef,
    TableMetadata,
    new_table,
)
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import DayTransform
from frazil.iceberg.types import LongType, NestedField, StringType, TimestampType

ORDERS = Schema(
    NestedField(1, "order_id", LongType(), required=True),
    NestedField(2, "country", StringType(), required=False),
    NestedField(3, "ordered_at", TimestampType(), required=False),
)
BY_DAY = PartitionSpec(PartitionField(3, 1000, DayTransform(), "ordered_at_day"))


def orders(location: str, properties: Mapping[str, str] | None = None) -> TableMetadata:
    """A table just made."""
    return new_table(
        schema=ORDERS,
        spec=BY_DAY,
        location=location,
        table_uuid=uuid.uuid4(),
        now_ms=1_000,
        properties=properties,
    )


def snapshot_after(metadata: TableMetadata, number: int, *, branch: str = MAIN) -> Snapshot:
    """The snapshot of an append of ten rows."""
    ref = metadata.refs.get(branch)
    sequence = metadata.last_sequence_number + 1
    return Snapshot(
        snapshot_id=SnapshotId(number),
        parent_snapshot_id=None if ref is None else ref.snapshot_id,
        sequence_number=sequence,
        timestamp_ms=metadata.last_updated_ms + 10,
        schema_id=SchemaId(metadata.current_schema_id),
        root_manifest=f"metadata/root-{sequence:010d}-{number}.parquet",
        first_row_id=metadata.next_row_id,
        added_rows=10,
        summary={"operation": "append", "added-records": "10"},
    )


def append(base: State, number: int, *, branch: str = MAIN) -> Draft:
    """A draft that adds one snapshot to a branch."""
    snapshot = snapshot_after(base.metadata, number, branch=branch)
    metadata = base.metadata.with_snapshot(snapshot, branch=branch)
    return Draft(metadata=metadata, added_snapshots=(snapshot,))


def append_and_land(head: Head, number: int, *, branch: str = MAIN) -> State:
    """Append on a fresh base; nobody else may be writing."""
    outcome = head.swap(head.load(), append(head.load(), number, branch=branch))
    assert isinstance(outcome, Landed)
    return outcome.states[0]


def long_history(metadata: TableMetadata, count: int) -> tuple[TableMetadata, History]:
    """A table after many appends, without making them one by one."""
    snapshots = []
    log = []
    for number in range(1, count + 1):
        snapshots.append(
            Snapshot(
                snapshot_id=SnapshotId(number),
                parent_snapshot_id=SnapshotId(number - 1) if number > 1 else None,
                sequence_number=number,
                timestamp_ms=1_000 + number,
                root_manifest=f"metadata/root-{number:010d}.parquet",
                summary={"operation": "append", "added-records": "10"},
            )
        )
        log.append(SnapshotLogEntry(snapshot_id=SnapshotId(number), timestamp_ms=1_000 + number))
    grown = replace(
        metadata,
        refs={MAIN: SnapshotRef(snapshot_id=SnapshotId(count))},
        last_sequence_number=count,
        last_updated_ms=1_000 + count,
    )
    return grown, History(snapshots=tuple(snapshots), snapshot_log=tuple(log))
