"""Write leaves, then the root; report every file written.

Knows names, codecs and how a leaf is summed up in its entry. Decides nothing: `policy` says when,
`edit` says what.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.format import paths
from frazil.format.entries import aggregate, fields, manifest, revisions, stats, tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import PARTITION_PREFIX, ContentType, stats_key
from frazil.format.entries.revisions import revision_to_write
from frazil.format.entries.tracking import Status
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import MAIN, Snapshot, TableMetadata
from frazil.properties.registry import METADATA_COMPRESSION
from frazil.storage import Storage, is_local, readers_at
from frazil.threads import in_threads
from frazil.tree.table_shape import shape_of
from frazil.value_classes import frozen

_SMALL_ROOT_ENTRIES = 500


@frozen
class WrittenManifest:
    """A metadata file this commit wrote; `location` is relative to the table."""

    location: str
    size: int


class TreeWriter:
    """Writes the trees of one table. `new_id` supplies file names, so tests can fix them."""

    def __init__(
        self,
        storage: Storage,
        metadata: TableMetadata,
        *,
        location: str,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._storage = storage
        self._metadata = metadata
        self._location = location
        self._new_id = new_id
        self._shape = shape_of(metadata)
        self._revision = revision_to_write(metadata.properties)
        self.written: list[WrittenManifest] = []

    def root(
        self, batch: EntryBatch, snapshot: Snapshot, *, branch: str | None = MAIN
    ) -> EntryBatch:
        """Write the root at the place the snapshot names; returns its entries as they are read.

        A branch other than main is noted, for the day the catalog is lost.
        """
        assert snapshot.root_manifest is not None
        batch = revisions.shaped(self._conformed(batch), self._revision)
        data = manifest.encode(
            batch,
            revision=self._revision,
            content="root",
            names=self._shape.names,
            codec=self._codec(None if batch.num_rows <= _SMALL_ROOT_ENTRIES else "zstd"),
            metadata={
                "table-uuid": str(self._metadata.table_uuid),
                "snapshot-id": str(snapshot.snapshot_id),
                "sequence-number": str(snapshot.sequence_number),
                "frazil.snapshot": metadata_json.snapshot_text(snapshot),
                **({} if branch in (None, MAIN) else {"frazil.branch": branch}),
            },
        )
        self._write(snapshot.root_manifest, data)
        return revisions.as_read(batch, self._revision)

    def root_location(self, sequence_number: int) -> str:
        """Where a new root goes."""
        return f"metadata/root-{sequence_number:010d}-{self._new_id()}.parquet"

    def leaves(self, batch: EntryBatch, *, target_entries: int) -> EntryBatch:
        """Write entries to as many leaves as they need; returns one manifest entry per leaf.

        Data and delete files go to leaves of their own. Entries are clustered first, so that each
        leaf covers little of the table.
        """
        name = self._new_id()
        jobs: list[tuple[EntryBatch, ContentType, str]] = []
        batch = self._conformed(batch)
        kind = batch.numpy("content_type")
        for content in (ContentType.DATA, ContentType.EQUALITY_DELETES):
            part = batch.filter(kind == content)
            if not part.num_rows:
                continue
            part = clustered(part, self._metadata)
            count = -(-part.num_rows // target_entries)
            size = -(-part.num_rows // count)
            for start in range(0, part.num_rows, size):
                location = f"metadata/leaf-{name}-{len(jobs)}.parquet"
                jobs.append((part.slice(start, size), content, location))
        # A store is waited for, so leaves go side by side; a disk takes them as they are encoded.
        threads = 1 if is_local(self._location) else readers_at(self._location)
        return EntryBatch.concat(
            list(in_threads(jobs, lambda job: self._leaf(*job), threads=threads))
        )

    def _leaf(self, batch: EntryBatch, content: ContentType, location: str) -> EntryBatch:
        holds_data = content is ContentType.DATA
        data = manifest.encode(
            batch,
            revision=self._revision,
            content="data" if holds_data else "delete",
            names=self._shape.names,
            codec=self._codec("zstd"),
        )
        written = self._write(location, data)
        row = {
            "tracking.status": int(Status.EXISTING),
            "content_type": int(
                ContentType.DATA_MANIFEST if holds_data else ContentType.DELETE_MANIFEST
            ),
            "manifest_info.format_version": manifest.FORMAT_VERSION,
            "location": location,
            "file_format": "parquet",
            "record_count": batch.num_rows,
            "file_size_in_bytes": written.size,
            "spec_id": self._leaf_spec(batch),
            **leaf_counts(batch),
            **aggregate.aggregate(batch, self._shape.fields, has_manifest_dv=False),
        }
        return EntryBatch.from_rows([row], self._shape.stats_types)

    def _conformed(self, batch: EntryBatch) -> EntryBatch:
        batch = self._shape.conformed(batch)
        if self._revision is fields.REVISION_1_12:
            return batch
        return self._shape.with_partitions(batch)

    def _leaf_spec(self, batch: EntryBatch) -> int | None:
        """Revision 1.12 states the spec of leaves whose entries share one."""
        if self._revision is not fields.REVISION_1_12:
            return None
        return _only(batch.column("spec_id"))

    def _write(self, location: str, data: pa.Buffer) -> WrittenManifest:
        written = WrittenManifest(location=location, size=data.size)
        self.written.append(written)
        self._storage.write_new(paths.resolve(self._location, location), data)
        return written

    def _codec(self, default: str | None) -> str | None:
        codec = METADATA_COMPRESSION.of(self._metadata.properties) or default
        return "none" if codec == "uncompressed" else codec


def leaf_counts(batch: EntryBatch) -> dict[str, Any]:
    """The `manifest_info` of a leaf, from its entries.

    The least sequence number is None when every entry inherits it.
    """
    status = batch.numpy("tracking.status")
    records = batch.numpy("record_count", missing=0)
    groups = {
        "added": status == Status.ADDED,
        "existing": status == Status.EXISTING,
        "deleted": status == Status.DELETED,
        "replaced": status == Status.REPLACED,
        "modified": status == Status.MODIFIED,
    }
    counts: dict[str, Any] = {}
    for name, mask in groups.items():
        counts[f"manifest_info.{name}_files_count"] = int(mask.sum())
        counts[f"manifest_info.{name}_rows_count"] = int(records[mask].sum())
    live = batch.filter(tracking.live_mask(batch)).column("tracking.sequence_number")
    counts["manifest_info.min_sequence_number"] = pc.min(live).as_py()
    return counts


def clustered(batch: EntryBatch, metadata: TableMetadata) -> EntryBatch:
    """Entries ordered by partition, then by the lower bounds of the sort order's columns."""
    order = cluster_order(batch, metadata)
    return batch if order is None else batch.take(order)


def cluster_keys(batch: EntryBatch, metadata: TableMetadata) -> list[str]:
    """The columns that entries are ordered by, first ones first."""
    keys = ["spec_id"] if batch.has("spec_id") else []
    keys += sorted(
        (key for key in batch.keys if key.startswith(PARTITION_PREFIX)),
        key=lambda key: int(key.removeprefix(PARTITION_PREFIX)),
    )
    order = metadata.row_order()
    sources = [field.source_id for field in order.fields] if order is not None else []
    if not sources:
        sources = [field.id for field in stats.tracked_fields(metadata.schema())[:2]]
    bounds = [stats_key(source, "lower_bound") for source in sources]
    keys += [key for key in bounds if batch.has(key) and key not in keys]
    return [key for key in keys if _sortable(batch.column(key).type)]


def cluster_order(batch: EntryBatch, metadata: TableMetadata) -> np.ndarray[Any, Any] | None:
    """Rows in the order of their keys, equal ones as they were; None where there are no keys."""
    keys = cluster_keys(batch, metadata)
    if not keys:
        return None
    names = [f"k{index}" for index in range(len(keys))]
    table = pa.table([batch.column(key) for key in keys], names=names)
    ascending = [(name, "ascending") for name in names]
    return arrow_values.to_numpy(pc.sort_indices(table, sort_keys=ascending))


def _sortable(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def _only(column: pa.ChunkedArray) -> int | None:
    values = pc.unique(column).to_pylist()
    return values[0] if len(values) == 1 else None


__all__ = [
    "TreeWriter",
    "WrittenManifest",
    "cluster_keys",
    "cluster_order",
    "clustered",
    "leaf_counts",
]
