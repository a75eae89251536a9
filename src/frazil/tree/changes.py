"""What one snapshot changed, from its root and only the leaves that root names.

No other root is read: ADDED leaves, `deleted_positions` and `replaced_positions` say it all. What a
run of appends added is told by the last of their roots, which still lists the files, each with the
snapshot that added it. A v1 to v3 snapshot is told from the manifests it added: of their entries,
those that carry its id. Position delete files and vectors of old delete manifests are entries of
their own there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import VECTOR_KEYS, partition_key
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import Snapshot
from frazil.format.vectors import bitmap
from frazil.tree.locate import Rows
from frazil.tree.partition_tuples import PartitionColumns
from frazil.tree.read import LeafRef, Tree, TreeReader, data_leaves, labelled
from frazil.value_classes import frozen

FILE_KEYS = (
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "spec_id",
    "sort_order_id",
)
"""What is worth knowing of any file."""
CHANGE_KEYS = (
    *FILE_KEYS,
    "split_offsets",
    "equality_ids",
    "referenced_file",
    *VECTOR_KEYS,
    "tracking.status",
    "tracking.snapshot_id",
    "tracking.sequence_number",
    "tracking.file_sequence_number",
    "tracking.first_row_id",
    "tracking.modified_snapshot_id",
)


@frozen
class TreeChanges:
    """File entries by what the snapshot did to them.

    A file in `modified` has its dead predecessor in `replaced`, with the same location.
    """

    snapshot: Snapshot
    added: EntryBatch
    deleted: EntryBatch
    replaced: EntryBatch
    modified: EntryBatch

    def column_updates(self) -> EntryBatch:
        """Files whose columns it updated: their sequence number was raised."""
        numbers = self.modified.numpy("tracking.sequence_number")
        return self.modified.filter(numbers == self.snapshot.sequence_number)


def changes_of(
    reader: TreeReader, snapshot: Snapshot, *, keys: Collection[str] | None = CHANGE_KEYS
) -> TreeChanges:
    """The change set of a snapshot; `keys` None reads whole entries."""
    entry_keys = None if keys is None else _with_partitions(reader, keys)
    tree = reader.tree(snapshot, keys=entry_keys)
    by_status: dict[Status, list[EntryBatch]] = {
        status: [] for status in (Status.ADDED, Status.DELETED, Status.REPLACED, Status.MODIFIED)
    }
    _sort_out(by_status, labelled(tree.root.filter(~tracking.leaf_mask(tree.root)), None))
    refs = [ref for ref in tree.leaves() if _has_changes(tree, ref)]
    for ref, batch in zip(
        refs, reader.map(refs, lambda leaf: reader.entries(leaf, keys=entry_keys)), strict=True
    ):
        _from_leaf(by_status, tree, ref, labelled(batch, ref))
    return TreeChanges(
        snapshot=snapshot,
        added=EntryBatch.concat(by_status[Status.ADDED]),
        deleted=EntryBatch.concat(by_status[Status.DELETED]),
        replaced=EntryBatch.concat(by_status[Status.REPLACED]),
        modified=EntryBatch.concat(by_status[Status.MODIFIED]),
    )


def _with_partitions(reader: TreeReader, keys: Collection[str]) -> list[str]:
    specs = reader.metadata.partition_specs
    tuples = (partition_key(field.field_id) for spec in specs for field in spec.fields)
    columns = PartitionColumns.of(reader.metadata)
    return [*keys, *tuples, *columns.stats_keys({spec.spec_id for spec in specs})]


@frozen(eq=False)
class AppendedFiles:
    """Data files that a run of appends added, oldest first; `by` is each one's place in the run."""

    files: EntryBatch
    by: Rows

    def of(self, place: int) -> EntryBatch:
        """The files that one snapshot of the run added."""
        start, stop = np.searchsorted(self.by, (place, place + 1))
        return self.files.slice(int(start), int(stop - start))


def append_runs(snapshots: Iterable[Snapshot]) -> Iterator[tuple[Snapshot, ...]]:
    """Snapshots, oldest first: appends that follow one another together, all others alone."""
    run: list[Snapshot] = []
    for snapshot in snapshots:
        if run and not (
            snapshot.parent_snapshot_id == run[-1].snapshot_id
            and _only_adds(run[-1])
            and _only_adds(snapshot)
        ):
            yield tuple(run)
            run = []
        run.append(snapshot)
    if run:
        yield tuple(run)


_ADDED_FILES, _ADDED_RECORDS = "added-data-files", "added-records"
_NOT_ONLY_ADDS = (
    "added-delete-files",
    "deleted-data-files",
    "deleted-records",
    "removed-delete-files",
)


def _only_adds(snapshot: Snapshot) -> bool:
    # Where nothing is removed, the last root of a run still names all that the run added.
    summary = snapshot.summary
    return (
        snapshot.root_manifest is not None
        and snapshot.operation == "append"
        and all(summary.get(key, "").isdigit() for key in (_ADDED_FILES, _ADDED_RECORDS))
        and not any(key in summary for key in _NOT_ONLY_ADDS)
    )


def appended(reader: TreeReader, run: Sequence[Snapshot]) -> AppendedFiles | None:
    """What a run of appends added, from the last of their roots and the leaves written meanwhile.

    None where that is not what their summaries say: then each has to be asked for itself, as a
    snapshot that stands alone.
    """
    if len(run) < 2:
        return None
    keys = _with_partitions(reader, CHANGE_KEYS)
    tree = reader.tree(run[-1], keys=keys)
    leaves = [
        leaf
        for leaf in data_leaves(tree.leaves())
        if leaf.sequence_number >= run[0].sequence_number
    ]
    batches = reader.map(leaves, lambda leaf: labelled(reader.live(leaf, keys=keys), leaf))
    # Appends remove nothing, so whatever they added is still live in the last tree.
    ids = np.array([snapshot.snapshot_id for snapshot in run], dtype=np.int64)
    parts = [_added_by(ids, batch) for batch in (labelled(tree.content(), None), *batches)]
    files = EntryBatch.concat(parts)
    place = np.argsort(ids)
    by = place[np.searchsorted(ids, files.numpy("tracking.snapshot_id"), sorter=place)]
    counts = np.bincount(by, minlength=len(run))
    records = np.zeros(len(run), dtype=np.int64)
    np.add.at(records, by, files.numpy("record_count", missing=0))
    # A file that another commit moved here meanwhile would be missed or counted twice: the counts
    # that each append stated tell.
    for index, snapshot in enumerate(run):
        totals = (int(snapshot.summary[_ADDED_FILES]), int(snapshot.summary[_ADDED_RECORDS]))
        if (counts[index], records[index]) != totals:
            return None
    order = np.lexsort((files.numpy("tracking.first_row_id"), by))
    return AppendedFiles(files=files.take(order), by=by[order])


def _added_by(ids: Rows, batch: EntryBatch) -> EntryBatch:
    return batch.filter(np.isin(batch.numpy("tracking.snapshot_id"), ids))


def _has_changes(tree: Tree, ref: LeafRef) -> bool:
    """Whether a leaf contains changes of this snapshot."""
    root = tree.root
    return (
        int(root.numpy("tracking.status")[ref.row]) == Status.ADDED
        or root.column("tracking.deleted_positions")[ref.row].is_valid
        or root.column("tracking.replaced_positions")[ref.row].is_valid
    )


def _from_leaf(
    by_status: dict[Status, list[EntryBatch]], tree: Tree, ref: LeafRef, batch: EntryBatch
) -> None:
    if int(tree.root.numpy("tracking.status")[ref.row]) == Status.ADDED:
        is_changed = np.ones(batch.num_rows, dtype=np.bool_)
        is_changed[ref.dead_positions()] = False
        if ref.format_version == 0 and tree.snapshot is not None:
            # An old manifest that was merged repeats what earlier snapshots did.
            is_changed &= batch.numpy("tracking.snapshot_id") == tree.snapshot.snapshot_id
        _sort_out(by_status, batch.filter(is_changed))
    for key, status in (
        ("tracking.deleted_positions", Status.DELETED),
        ("tracking.replaced_positions", Status.REPLACED),
    ):
        positions = tree.root.column(key)[ref.row].as_py()
        if positions:
            rows = bitmap.decode(positions, limit=ref.record_count, path=ref.location, field=key)
            by_status[status].append(batch.take(rows))


def _sort_out(by_status: dict[Status, list[EntryBatch]], batch: EntryBatch) -> None:
    status = batch.numpy("tracking.status")
    for kind, batches in by_status.items():
        mask = status == kind
        if mask.any():
            batches.append(batch.filter(mask))
        elif not batches:
            batches.append(batch.slice(0, 0))
