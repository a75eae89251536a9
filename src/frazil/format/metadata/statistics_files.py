"""Statistics files in table metadata: what is said of their blobs. Pure; the blobs themselves are
in Puffin files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.format.paths import resolve, resolve_legacy
from frazil.format.values.theta import BLOB_TYPE, DISTINCT


def statistics_entry(
    snapshot: Snapshot, *, path: str, size: int, footer_size: int, distinct: Mapping[int, int]
) -> dict[str, Any]:
    """What the metadata says of a file with one sketch per column, by field id."""
    return {
        "snapshot-id": int(snapshot.snapshot_id),
        "statistics-path": path,
        "file-size-in-bytes": size,
        "file-footer-size-in-bytes": footer_size,
        "blob-metadata": [
            {
                "type": BLOB_TYPE,
                "snapshot-id": int(snapshot.snapshot_id),
                "sequence-number": snapshot.sequence_number,
                "fields": [field_id],
                "properties": {DISTINCT: str(number)},
            }
            for field_id, number in distinct.items()
        ],
    }


def distinct_counts(metadata: TableMetadata, snapshot: Snapshot | None) -> dict[int, int]:
    """Distinct values by field id, as some engine counted them in this very snapshot. Counts of
    other snapshots are stale; what cannot be read is left out."""
    counts: dict[int, int] = {}
    for entry in metadata.statistics:
        if snapshot is None or entry.get("snapshot-id") != snapshot.snapshot_id:
            continue
        for blob in _objects(entry.get("blob-metadata")):
            fields, properties = blob.get("fields"), blob.get("properties")
            if blob.get("type") != BLOB_TYPE or not isinstance(properties, Mapping):
                continue
            number = str(properties.get(DISTINCT, ""))
            if isinstance(fields, list) and len(fields) == 1 and number.isdecimal():
                counts[fields[0]] = int(number)
    return counts


def absolute(entries: Sequence[Mapping[str, Any]], location: str) -> tuple[Mapping[str, Any], ...]:
    """The entries with paths that do not depend on the table's location."""
    return tuple(
        {
            **entry,
            "statistics-path": (resolve_legacy if path.startswith("/") else resolve)(
                location, path
            ),
        }
        if isinstance(path := entry.get("statistics-path"), str)
        else entry
        for entry in entries
    )


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


__all__ = ["absolute", "distinct_counts", "statistics_entry"]
