"""Statistics files in table metadata: what is said of their blobs. Pure; the blobs themselves are
in Puffin files."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.format.paths import resolve, resolve_legacy
from frazil.format.values.murmur128 import hashes

Hashes: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

BLOB_TYPE: Final = "apache-datasketches-theta-v1"
DISTINCT: Final = "ndv"
"""The property of a blob that holds the number of distinct values."""
MAX_HASHES: Final = 4096
"""What Iceberg's sketches keep: an error of about 1.6 %."""

_SEED: Final = 9001
_SEED_HASH: Final = 0x93CC
_VERSION: Final = 3
_FAMILY: Final = 3
_EMPTY: Final = 4
_SINGLE: Final = 32
_FLAGS: Final = 2 | 8 | 16  # read only, compact, ordered
_ALL: Final = 2**63 - 1


class ThetaSketch:
    """Distinct values of one column, added batch by batch."""

    def __init__(self) -> None:
        self._hashes: Hashes = np.zeros(0, dtype=np.uint64)
        self._theta = _ALL

    def add(self, values: pa.Array) -> None:
        """Take in serialised values; nulls do not count."""
        new = hashes(values.drop_null().unique(), _SEED) >> np.uint64(1)
        self._take_in(new[new > 0])

    def merge(self, other: ThetaSketch) -> None:
        """Take in the values of another sketch."""
        self._theta = min(self._theta, other._theta)
        self._take_in(other._hashes)

    def _take_in(self, new: Hashes) -> None:
        all_hashes = np.union1d(self._hashes, new)
        all_hashes = all_hashes[all_hashes < np.uint64(self._theta)]
        if len(all_hashes) > MAX_HASHES:
            self._theta = int(all_hashes[MAX_HASHES])
            all_hashes = all_hashes[:MAX_HASHES]
        self._hashes = all_hashes

    @property
    def estimate(self) -> int:
        """About how many distinct values there are; exact up to `MAX_HASHES`."""
        return int(len(self._hashes) / (self._theta / _ALL))

    def to_bytes(self) -> bytes:
        """The sketch as the library reads it."""
        count = len(self._hashes)
        body = self._hashes.astype("<u8").tobytes()
        if self._theta < _ALL:
            return self._preamble(3) + struct.pack("<iiQ", count, 0, self._theta) + body
        if count == 0:
            return self._preamble(1, _EMPTY)
        if count == 1:
            return self._preamble(1, _SINGLE) + body
        return self._preamble(2) + struct.pack("<ii", count, 0) + body

    @staticmethod
    def _preamble(longs: int, flags: int = 0) -> bytes:
        return struct.pack("<BBBxxBH", longs, _VERSION, _FAMILY, _FLAGS | flags, _SEED_HASH)


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


__all__ = [
    "BLOB_TYPE",
    "DISTINCT",
    "MAX_HASHES",
    "Hashes",
    "ThetaSketch",
    "absolute",
    "distinct_counts",
    "statistics_entry",
]
