"""A v2 table with many delete manifests: manifests and a list are real, data files are not."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import Snapshot, SnapshotId, TableMetadata, new_table
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import LongType, NestedField, StringType
from frazil.legacy.publish import write_manifests
from frazil.legacy.publish.write_manifests import ListRow
from frazil.legacy.read.legacy_decoder import LegacyDecoder
from frazil.storage import LocalStorage
from frazil.tree.read import TreeReader

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "country", StringType(), required=False),
)
COUNTRIES = tuple(f"{letter}T" for letter in "ABCDEFGHIJ")


@dataclass(frozen=True, kw_only=True)
class DeleteTable:
    """The table's one snapshot, and what reads it."""

    metadata: TableMetadata
    snapshot: Snapshot
    location: str

    def reader(self) -> TreeReader:
        """A reader that remembers nothing."""
        return TreeReader(
            LocalStorage(), self.metadata, location=self.location, decoder=LegacyDecoder()
        )


def with_delete_manifests(
    folder: Path, *, spec: PartitionSpec, manifests: int, data_age: int = 1
) -> DeleteTable:
    """One data file per country, each in a manifest, and so many delete manifests with one equality
    delete of one country each. The delete manifests have sequence numbers from 1 on when the data
    files state an age, 2 otherwise."""
    location = f"file://{folder}"
    (folder / "metadata").mkdir(parents=True)
    metadata = new_table(
        schema=SCHEMA, spec=spec, location=location, table_uuid=uuid.uuid4(), now_ms=1_000
    )
    rows: list[ListRow] = []

    def list_one(name: str, entry: dict[str, object], *, age: int, is_deletes: bool) -> None:
        row = {
            "tracking.status": 1,
            "tracking.snapshot_id": 7,
            "tracking.sequence_number": age,
            "record_count": 1,
            "file_size_in_bytes": 1_000,
            "file_format": "parquet",
            "spec_id": 0,
            **entry,
        }
        batch = EntryBatch.from_rows([row], {"partition.1000": pa.string()})
        path = folder / "metadata" / f"{name}.avro"
        path.write_bytes(
            write_manifests.encode_manifest(
                batch,
                format_version=2,
                is_deletes=is_deletes,
                spec=spec,
                metadata=metadata,
                location=location,
                codec="uncompressed",
            )
        )
        rows.append(
            ListRow(
                path=f"file://{path}",
                length=path.stat().st_size,
                spec_id=0,
                is_deletes=is_deletes,
                sequence_number=age,
                min_sequence_number=age,
                added_snapshot_id=7,
                files=(1, 0, 0),
                rows=(1, 0, 0),
                summaries=write_manifests.summarise(batch, spec, metadata),
            )
        )

    for country in COUNTRIES:
        data = {"content_type": 0, "location": f"data/{country}", "partition.1000": country}
        list_one(f"data-{country}", data, age=data_age, is_deletes=False)
    for number in range(manifests):
        deletes: dict[str, object] = {
            "content_type": 2,
            "location": f"data/delete-{number}",
            "equality_ids": [1],
            "partition.1000": COUNTRIES[number % len(COUNTRIES)],
        }
        age = number + 1 if data_age > 1 else 2
        list_one(f"deletes-{number}", deletes, age=age, is_deletes=True)
    listed = folder / "metadata" / "snap-7.avro"
    listed.write_bytes(
        write_manifests.encode_list(
            rows, format_version=2, snapshot_id=7, parent_snapshot_id=None, sequence_number=99
        )
    )
    snapshot = Snapshot(
        snapshot_id=SnapshotId(7),
        sequence_number=99,
        timestamp_ms=2_000,
        manifest_list=f"file://{listed}",
        summary={"operation": "append"},
    )
    return DeleteTable(metadata=metadata, snapshot=snapshot, location=location)
