"""Which delete files apply to which data files: by sequence number, scope and overlap.

Deletion vectors need no matching, they are in the data file's entry. Equality deletes apply to
older files of their partition (or of the table), whose statistics overlap theirs. Position delete
files and vectors of carried v2 and v3 delete manifests apply by path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.format import paths
from frazil.format.batch import EntryBatch
from frazil.format.fields import PARTITION_PREFIX, ContentType, stats_key

Mask = np.ndarray[Any, np.dtype[np.bool_]]
_FILE_PATH = 2_147_483_546
"""Field id of `file_path` in position delete files."""

DELETE_KEYS = (
    "content_type",
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "spec_id",
    "equality_ids",
    "referenced_file",
    "deletion_vector.location",
    "deletion_vector.offset",
    "deletion_vector.size_in_bytes",
    "deletion_vector.cardinality",
    "tracking.sequence_number",
    "tracking.file_sequence_number",
    "tracking.snapshot_id",
    "tracking.first_row_id",
    "tracking.status",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFiles:
    """Live delete files of a snapshot. `partitioned` are the ids of specs that have partitions."""

    batch: EntryBatch
    location: str
    partitioned: frozenset[int]

    def match(self, files: EntryBatch) -> dict[int, tuple[int, ...]]:
        """Row of a data file to the rows of the delete files that apply to it."""
        matched: dict[int, list[int]] = {}
        for row in range(self.batch.num_rows):
            for index in np.flatnonzero(self._applies(row, files)):
                matched.setdefault(int(index), []).append(row)
        return {index: tuple(rows) for index, rows in matched.items()}

    def _applies(self, row: int, files: EntryBatch) -> Mask:
        delete = self.batch.row(row)
        sequence = int(delete.get("tracking.sequence_number") or 0)
        ages = files.numpy("tracking.sequence_number", missing=0)
        if delete["content_type"] == ContentType.EQUALITY_DELETES:
            mask = np.asarray(ages < sequence)
            if self._is_scoped(delete):
                mask &= self._same_partition(row, files)
            for field_id in delete.get("equality_ids") or ():
                mask &= self._overlaps(row, files, int(field_id))
            return mask
        mask = np.asarray(ages <= sequence)
        target = delete.get("referenced_file")
        if target is not None:
            return mask & self._is(files, target)
        if self._is_scoped(delete):
            mask &= self._same_partition(row, files)
        return mask & self._within(files, delete)

    def _is_scoped(self, delete: dict[str, Any]) -> bool:
        return delete.get("spec_id") in self.partitioned

    def _is(self, files: EntryBatch, target: str) -> Mask:
        stored = paths.relativise(self.location, target)
        return np.asarray(pc.equal(files.column("location"), stored))

    def _within(self, files: EntryBatch, delete: dict[str, Any]) -> Mask:
        """Position deletes state the range of paths they speak of."""
        lower = delete.get(stats_key(_FILE_PATH, "lower_bound"))
        upper = delete.get(stats_key(_FILE_PATH, "upper_bound"))
        if lower is None or upper is None or lower != upper:
            # A range is cut and paths compare by spelling: leave it to the rows to decide.
            return np.ones(files.num_rows, dtype=np.bool_)
        return self._is(files, lower)

    def _same_partition(self, row: int, files: EntryBatch) -> Mask:
        mask = np.asarray(files.numpy("spec_id") == self.batch.column("spec_id")[row].as_py())
        for key in {*files.keys, *self.batch.keys}:
            if key.startswith(PARTITION_PREFIX):
                mask &= _equal(files.column(key), self.batch.column(key)[row])
        return mask

    def _overlaps(self, row: int, files: EntryBatch, field_id: int) -> Mask:
        """Whether a file's values of a column can meet the delete's; unknown counts as yes."""
        nulls = self.batch.column(stats_key(field_id, "null_value_count"))[row].as_py()
        lower = self.batch.column(stats_key(field_id, "lower_bound"))[row]
        upper = self.batch.column(stats_key(field_id, "upper_bound"))[row]
        if nulls != 0 or not lower.is_valid or not upper.is_valid:
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


def stats_keys_for(deletes: Sequence[EntryBatch]) -> frozenset[str]:
    """Statistics of data files that matching needs: bounds of the columns deletes compare."""
    ids: set[int] = set()
    for batch in deletes:
        for value in batch.pylist("equality_ids"):
            ids.update(value or ())
    return frozenset(stats_key(id, name) for id in ids for name in ("lower_bound", "upper_bound"))


def delete_keys(field_ids: Sequence[int], partition_field_ids: Sequence[int]) -> frozenset[str]:
    """Columns of delete manifests that matching needs."""
    keys = set(DELETE_KEYS)
    keys.update(f"{PARTITION_PREFIX}{id}" for id in partition_field_ids)
    for id in (*field_ids, _FILE_PATH):
        keys.update(
            stats_key(id, name) for name in ("lower_bound", "upper_bound", "null_value_count")
        )
    return frozenset(keys)
