"""A large v2 table of metadata alone: manifests and a list are real, data files need not exist.

All manifests say the same, as making them takes longer than what is measured.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa

from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import stats_key
from frazil.format.metadata.metadata import new_table
from frazil.iceberg.partitioning import UNPARTITIONED
from frazil.iceberg.schema import Schema, schema_document
from frazil.iceberg.types import LongType, NestedField, StringType
from frazil.legacy.publish import write_manifests
from frazil.legacy.publish.write_manifests import ListRow

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
)
ROWS = 100


def big_table(folder: Path, *, manifests: int, files: int) -> str:
    """The metadata file of a v2 table with that many manifests of that many files each."""
    location = f"file://{folder}"
    (folder / "metadata").mkdir(parents=True)
    metadata = new_table(schema=SCHEMA, location=location, table_uuid=uuid.uuid4(), now_ms=1_000)
    content = write_manifests.encode_manifest(
        _entries(files),
        format_version=2,
        is_deletes=False,
        spec=UNPARTITIONED,
        metadata=metadata,
        location=location,
        codec="uncompressed",
    )
    rows: list[ListRow] = []
    for number in range(manifests):
        path = folder / "metadata" / f"m{number}.avro"
        path.write_bytes(content)
        rows.append(
            ListRow(
                path=f"file://{path}",
                length=path.stat().st_size,
                spec_id=0,
                is_deletes=False,
                sequence_number=1,
                min_sequence_number=1,
                added_snapshot_id=7,
                files=(files, 0, 0),
                rows=(files * ROWS, 0, 0),
            )
        )
    listed = folder / "metadata" / "snap-7.avro"
    listed.write_bytes(
        write_manifests.encode_list(
            rows, format_version=2, snapshot_id=7, parent_snapshot_id=None, sequence_number=1
        )
    )
    document = {
        "format-version": 2,
        "table-uuid": str(metadata.table_uuid),
        "location": location,
        "last-sequence-number": 1,
        "last-updated-ms": 2_000,
        "last-column-id": 2,
        "schemas": [schema_document(SCHEMA)],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": 7,
        "refs": {"main": {"snapshot-id": 7, "type": "branch"}},
        "snapshots": [
            {
                "snapshot-id": 7,
                "sequence-number": 1,
                "timestamp-ms": 2_000,
                "schema-id": 0,
                "manifest-list": f"file://{listed}",
                "summary": {"operation": "append"},
            }
        ],
        "snapshot-log": [{"snapshot-id": 7, "timestamp-ms": 2_000}],
        "metadata-log": [],
    }
    path = folder / "metadata" / f"00001-{metadata.table_uuid}.metadata.json"
    path.write_text(json.dumps(document))
    return f"file://{path}"


def _entries(files: int) -> EntryBatch:
    first = np.arange(files, dtype=np.int64) * ROWS
    names = [f"data/{index:06d}.parquet" for index in range(files)]
    constants = {
        "tracking.status": (1, pa.int32()),
        "tracking.snapshot_id": (7, pa.int64()),
        "content_type": (0, pa.int32()),
        "record_count": (ROWS, pa.int64()),
        "file_size_in_bytes": (5_000, pa.int64()),
        stats_key(1, "value_count"): (ROWS, pa.int64()),
        stats_key(1, "null_value_count"): (0, pa.int64()),
    }
    columns = {key: pa.repeat(pa.scalar(*value), files) for key, value in constants.items()}
    return EntryBatch(
        pa.table(
            {
                **columns,
                "file_format": pa.repeat(pa.scalar("parquet"), files),
                "location": pa.array(names),
                stats_key(1, "lower_bound"): pa.array(first),
                stats_key(1, "upper_bound"): pa.array(first + ROWS - 1),
            }
        )
    )
