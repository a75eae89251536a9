"""Which delete manifests a plan opens, and which delete files apply to which data files.

They match by sequence number, scope and overlap.

Deletion vectors need no matching, they are in the data file's entry. Equality deletes apply to
older files of their partition (or of the table), whose statistics overlap theirs. Position delete
files and vectors of carried v2 and v3 delete manifests apply by path.

A delete manifest is left closed when every data file that is left is younger than its deletes, when
it belongs to a data manifest that was pruned, or when it is of one partition spec whose partitions
the filter rules out: a delete of a partition applies to no other. Bounds of other columns tell
nothing, as only the delete files themselves say which columns they compare.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.filter.prune.prune import Filter
from frazil.format import paths
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import (
    FILE_PATH,
    PARTITION_PREFIX,
    VECTOR_KEYS,
    ContentType,
    stats_key,
)
from frazil.tree.partition_tuples import PartitionColumn, PartitionColumns
from frazil.tree.read import LeafRef, leaf_refs
from frazil.value_classes import frozen

MIN_SEQUENCE = "manifest_info.min_sequence_number"
_MEMBERS = ("lower_bound", "upper_bound", "value_count", "null_value_count", "nan_value_count")


def leaves_to_open(
    root: EntryBatch,
    *,
    data_rows: np.ndarray[Any, np.dtype[np.int64]],
    opened: Collection[str],
    filter: Filter,
    partitions: PartitionColumns,
) -> list[LeafRef]:
    """Delete manifests that may apply to what the root's `data_rows` (files and leaves) hold."""
    if not data_rows.size:
        return []
    kind = root.numpy("content_type")
    listed = np.flatnonzero(tracking.live_mask(root) & (kind == ContentType.DELETE_MANIFEST))
    if not listed.size:
        return []
    oldest = _oldest(root, data_rows)
    leaves = [
        leaf
        for leaf in leaf_refs(root, listed)
        if (leaf.referenced_file is None or leaf.referenced_file in opened)
        and leaf.sequence_number >= oldest
    ]
    return _in_partitions(root, leaves, filter, partitions)


def _oldest(root: EntryBatch, rows: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """The smallest data sequence number that a file of these entries can have."""
    picked = root.select({"content_type", MIN_SEQUENCE, "tracking.sequence_number"}).take(rows)
    in_leaf = picked.numpy("content_type") == ContentType.DATA_MANIFEST
    min_sequence = picked.numpy(MIN_SEQUENCE, missing=0)
    sequence_numbers = picked.numpy("tracking.sequence_number", missing=0)
    return int(np.where(in_leaf, min_sequence, sequence_numbers).min())


def _in_partitions(
    root: EntryBatch, leaves: Sequence[LeafRef], filter: Filter, partitions: PartitionColumns
) -> list[LeafRef]:
    """Those whose partitions the filter does not rule out."""
    chosen_rows: set[int] = set()
    by_spec: dict[int | None, list[LeafRef]] = {}
    for leaf in leaves:
        # Leaves of v4 may hold files of several specs.
        spec_id = leaf.spec_id if leaf.format_version == 0 else None
        by_spec.setdefault(spec_id, []).append(leaf)
    for spec_id, group in by_spec.items():
        fields = [part.stats_id for part in partitions.of_spec(spec_id)]
        keys = {stats_key(id, name) for id in fields if id is not None for name in _MEMBERS}
        rows = np.array([leaf.row for leaf in group], dtype=np.int64)
        if keys:
            entries = root.select({"content_type", *keys & set(root.keys)}).take(rows)
            rows = rows[filter.might_match(entries)]
        chosen_rows.update(rows.tolist())
    return [leaf for leaf in leaves if leaf.row in chosen_rows]


Mask = np.ndarray[Any, np.dtype[np.bool_]]

DELETE_KEYS = (
    "content_type",
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "spec_id",
    "equality_ids",
    "referenced_file",
    *VECTOR_KEYS,
    "tracking.sequence_number",
    "tracking.file_sequence_number",
    "tracking.snapshot_id",
    "tracking.first_row_id",
    "tracking.status",
)


@frozen
class DeleteFiles:
    """Live delete files of a snapshot, and the partition fields of the table's specs."""

    batch: EntryBatch
    location: str
    partitions: PartitionColumns

    def match(self, files: EntryBatch) -> dict[int, tuple[int, ...]]:
        """Row of a data file to the rows of the delete files that apply to it."""
        matched: dict[int, list[int]] = {}
        targets = self._targets()
        for index, row in self._by_target(files, targets):
            matched.setdefault(index, []).append(row)
        for row in np.flatnonzero(np.asarray(pc.is_null(targets))).tolist():
            for index in np.flatnonzero(self._applies(row, files)).tolist():
                matched.setdefault(index, []).append(row)
        return {index: tuple(sorted(rows)) for index, rows in matched.items()}

    def _targets(self) -> pa.ChunkedArray:
        """The one data file that a delete file speaks of, as metadata calls it; null: not one.

        A vector names it; of a position delete file the bounds of its paths are the same.
        """
        referenced = self.batch.column("referenced_file")
        kinds = self.batch.column("content_type")
        lower = self.batch.column(stats_key(FILE_PATH, "lower_bound"))
        upper = self.batch.column(stats_key(FILE_PATH, "upper_bound"))
        nothing = pa.scalar(None, pa.string())
        if pa.types.is_string(lower.type) and pa.types.is_string(upper.type):
            referenced = pc.coalesce(referenced, pc.if_else(pc.equal(lower, upper), lower, nothing))
        by_position = pc.equal(kinds, int(ContentType.POSITION_DELETES))
        referenced = pc.if_else(by_position, referenced, nothing)
        return paths.relativise_all(self.location, referenced)

    def _by_target(self, files: EntryBatch, targets: pa.ChunkedArray) -> Iterator[tuple[int, int]]:
        """Data file and delete file, for delete files that speak of one."""
        rows = np.flatnonzero(np.asarray(pc.is_valid(targets)))
        if not rows.size or not files.num_rows:
            return
        ages = files.numpy("tracking.sequence_number", missing=0)
        limits = self.batch.numpy("tracking.sequence_number", missing=0)[rows]
        encoded = targets.take(pa.array(rows)).combine_chunks().dictionary_encode()
        # A table may list a file twice, and several deletes may speak of one file.
        file_of = pc.index_in(files.column("location"), value_set=encoded.dictionary)
        code = np.asarray(pc.fill_null(file_of, -1), dtype=np.int64)
        listing = np.flatnonzero(code >= 0)
        listing = listing[np.argsort(code[listing], kind="stable")]
        target_index = np.asarray(encoded.indices, dtype=np.int64)
        starts = np.searchsorted(code[listing], target_index, side="left")
        ends = np.searchsorted(code[listing], target_index, side="right")
        for at in np.flatnonzero(starts < ends).tolist():
            for index in listing[starts[at] : ends[at]].tolist():
                if ages[index] <= limits[at]:
                    yield index, int(rows[at])

    def _applies(self, row: int, files: EntryBatch) -> Mask:
        """Which files a delete file without a target may have rows of."""
        delete = self.batch.row(row)
        spec = self.partitions.of_spec(delete.get("spec_id"))
        sequence = int(delete.get("tracking.sequence_number") or 0)
        ages = files.numpy("tracking.sequence_number", missing=0)
        is_equality = delete["content_type"] == ContentType.EQUALITY_DELETES
        mask = np.asarray(ages < sequence if is_equality else ages <= sequence)
        if spec:
            mask &= self._same_partition(row, files, spec)
        for field_id in delete.get("equality_ids") or ():
            mask &= self._overlaps(row, files, int(field_id))
        return mask

    def stats_keys(self) -> frozenset[str]:
        """Statistics of data files that matching needs: bounds of the columns that deletes compare,
        and of those that tell a partition where its tuple is missing."""
        ids = {id for value in self.batch.pylist("equality_ids") for id in value or ()}
        compared = (stats_key(id, name) for id in ids for name in ("lower_bound", "upper_bound"))
        specs = {id for id in self.batch.pylist("spec_id") if id is not None}
        return frozenset(compared) | self.partitions.stats_keys(specs)

    def _same_partition(self, row: int, files: EntryBatch, spec: Sequence[PartitionColumn]) -> Mask:
        delete = self.batch.slice(row, 1)
        mask = np.asarray(files.numpy("spec_id") == delete.column("spec_id")[0].as_py())
        rows = np.flatnonzero(mask)
        partitions = files.take(rows)
        for part in spec:
            mask[rows] &= _equal(part.values(partitions), part.values(delete)[0])
        return mask

    def _overlaps(self, row: int, files: EntryBatch, field_id: int) -> Mask:
        """Whether a file's values of a column can meet the delete's; unknown counts as yes.

        Bounds say nothing of nulls and NaN, which a delete may hold as well.
        """
        nulls = self.batch.column(stats_key(field_id, "null_value_count"))[row].as_py()
        nans = self.batch.column(stats_key(field_id, "nan_value_count"))[row].as_py()
        lower = self.batch.column(stats_key(field_id, "lower_bound"))[row]
        upper = self.batch.column(stats_key(field_id, "upper_bound"))[row]
        unbounded = nulls != 0 or (nans != 0 and pa.types.is_floating(lower.type))
        if unbounded or not lower.is_valid or not upper.is_valid:
            return np.ones(files.num_rows, dtype=np.bool_)
        below = pc.less_equal(files.column(stats_key(field_id, "lower_bound")), upper)
        above = pc.greater_equal(files.column(stats_key(field_id, "upper_bound")), lower)
        return np.asarray(pc.fill_null(pc.and_kleene(below, above), True))


def _equal(column: pa.ChunkedArray, value: pa.Scalar) -> Mask:
    """Where a partition value is the same; null is the same as null, and NaN as NaN."""
    if not value.is_valid:
        return np.asarray(pc.is_null(column))
    is_nan = pa.types.is_floating(column.type) and pc.is_nan(value).as_py()
    same = pc.is_nan(column) if is_nan else pc.equal(column, value)
    return np.asarray(pc.fill_null(same, False))


def delete_keys(field_ids: Sequence[int], partition_field_ids: Sequence[int]) -> frozenset[str]:
    """Columns of delete manifests that matching needs."""
    keys = set(DELETE_KEYS)
    keys.update(f"{PARTITION_PREFIX}{id}" for id in partition_field_ids)
    names = ("lower_bound", "upper_bound", "null_value_count", "nan_value_count")
    for id in (*field_ids, FILE_PATH):
        keys.update(stats_key(id, name) for name in names)
    return frozenset(keys)


__all__ = ["DELETE_KEYS", "MIN_SEQUENCE", "DeleteFiles", "Mask", "delete_keys", "leaves_to_open"]
