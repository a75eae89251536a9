"""What one snapshot changed, from its root and only the leaves that root names.

No other root is read: ADDED leaves, `deleted_positions` and `replaced_positions` say it all. A
v1 to v3 snapshot is told from the manifests it added: of their entries, those that carry its id.
Position delete files and vectors of old delete manifests are entries of their own there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from frazil.format import bitmap
from frazil.format.batch import EntryBatch
from frazil.format.fields import ContentType
from frazil.format.metadata import Snapshot
from frazil.format.tracking import Status
from frazil.tree.read import LeafRef, Tree, TreeReader, labelled

CHANGE_KEYS = (
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "spec_id",
    "sort_order_id",
    "split_offsets",
    "equality_ids",
    "referenced_file",
    "deletion_vector.location",
    "deletion_vector.offset",
    "deletion_vector.size_in_bytes",
    "deletion_vector.cardinality",
    "tracking.status",
    "tracking.snapshot_id",
    "tracking.sequence_number",
    "tracking.file_sequence_number",
    "tracking.first_row_id",
    "tracking.dv_snapshot_id",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeChanges:
    """File entries by what the snapshot did to them.

    A file in `modified` has its dead predecessor in `replaced`, with the same location.
    """

    snapshot: Snapshot
    added: EntryBatch
    deleted: EntryBatch
    replaced: EntryBatch
    modified: EntryBatch


def changes_of(
    reader: TreeReader, snapshot: Snapshot, *, keys: Collection[str] | None = CHANGE_KEYS
) -> TreeChanges:
    """The change set of a snapshot; `keys` None reads whole entries."""
    wanted = None if keys is None else [*keys, *_partition_keys(reader)]
    tree = reader.tree(snapshot, keys=wanted)
    found: dict[Status, list[EntryBatch]] = {
        status: [] for status in (Status.ADDED, Status.DELETED, Status.REPLACED, Status.MODIFIED)
    }
    kind = tree.root.numpy("content_type")
    files = labelled(tree.root.filter(kind < ContentType.DATA_MANIFEST), None)
    _sort_out(found, files)
    refs = [ref for ref in tree.leaves() if _speaks(tree, ref)]
    for ref, batch in zip(
        refs, reader.each(refs, lambda leaf: reader.entries(leaf, keys=wanted)), strict=True
    ):
        _from_leaf(found, tree, ref, labelled(batch, ref))
    return TreeChanges(
        snapshot=snapshot,
        added=EntryBatch.concat(found[Status.ADDED]),
        deleted=EntryBatch.concat(found[Status.DELETED]),
        replaced=EntryBatch.concat(found[Status.REPLACED]),
        modified=EntryBatch.concat(found[Status.MODIFIED]),
    )


def _partition_keys(reader: TreeReader) -> list[str]:
    return [
        f"partition.{field.field_id}"
        for spec in reader.metadata.partition_specs
        for field in spec.fields
    ]


def _speaks(tree: Tree, ref: LeafRef) -> bool:
    """Whether a leaf has something to tell about this snapshot."""
    root = tree.root
    return (
        int(root.numpy("tracking.status")[ref.row]) == Status.ADDED
        or root.column("tracking.deleted_positions")[ref.row].is_valid
        or root.column("tracking.replaced_positions")[ref.row].is_valid
    )


def _from_leaf(
    found: dict[Status, list[EntryBatch]], tree: Tree, ref: LeafRef, batch: EntryBatch
) -> None:
    if int(tree.root.numpy("tracking.status")[ref.row]) == Status.ADDED:
        own = np.ones(batch.num_rows, dtype=np.bool_)
        own[ref.dead_positions()] = False
        if ref.format_version == 0 and tree.snapshot is not None:
            # An old manifest that was merged repeats what earlier snapshots did.
            own &= batch.numpy("tracking.snapshot_id") == tree.snapshot.snapshot_id
        _sort_out(found, batch.filter(own))
    for key, status in (
        ("tracking.deleted_positions", Status.DELETED),
        ("tracking.replaced_positions", Status.REPLACED),
    ):
        positions = tree.root.column(key)[ref.row].as_py()
        if positions:
            rows = bitmap.decode(positions, limit=ref.record_count, path=ref.location, field=key)
            found[status].append(batch.take(rows))


def _sort_out(found: dict[Status, list[EntryBatch]], batch: EntryBatch) -> None:
    status = batch.numpy("tracking.status")
    for kind, batches in found.items():
        mask = status == kind
        if mask.any():
            batches.append(batch.filter(mask))
        elif not batches:
            batches.append(batch.slice(0, 0))
