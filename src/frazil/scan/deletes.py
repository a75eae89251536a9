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
    """Live delete files of a snapshot."""

    batch: EntryBatch
    location: str

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
                mask &= _same_partition(delete, files)
            for field_id in delete.get("equality_ids") or ():
                mask &= _overlaps(delete, files, int(field_id))
            return mask
        mask = np.asarray(ages <= sequence)
        target = delete.get("referenced_file")
        if target is not None:
            return mask & self._is(files, target)
        if self._is_scoped(delete):
            mask &= _same_partition(delete, files)
        return mask & self._within(files, delete)

    def _is_scoped(self, delete: dict[str, Any]) -> bool:
        return delete.get("spec_id") is not None and any(
            key.startswith(PARTITION_PREFIX) for key in delete
        )

    def _is(self, files: EntryBatch, target: str) -> Mask:
        address = paths.resolve_legacy(self.location, target)
        return np.asarray(pc.equal(self._addresses(files), address))

    def _within(self, files: EntryBatch, delete: dict[str, Any]) -> Mask:
        """Position deletes state the range of paths they speak of."""
        lower = delete.get(stats_key(_FILE_PATH, "lower_bound"))
        upper = delete.get(stats_key(_FILE_PATH, "upper_bound"))
        if lower is None or upper is None or lower != upper:
            # A range is cut and paths compare by spelling: leave it to the rows to decide.
            return np.ones(files.num_rows, dtype=np.bool_)
        return self._is(files, lower)

    def _addresses(self, files: EntryBatch) -> pa.ChunkedArray:
        return paths.resolve_all(self.location, files.column("location"))


def _same_partition(delete: dict[str, Any], files: EntryBatch) -> Mask:
    mask = np.asarray(files.numpy("spec_id") == delete["spec_id"])
    for key in files.keys:
        if not key.startswith(PARTITION_PREFIX):
            continue
        value = delete.get(key)
        column = files.column(key)
        if value is None:
            mask &= np.asarray(pc.is_null(column))
        else:
            same = pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)
            mask &= np.asarray(same)
    return mask


def _overlaps(delete: dict[str, Any], files: EntryBatch, field_id: int) -> Mask:
    """Whether a file's values of a column can meet the delete's; unknown counts as yes."""
    maybe = np.ones(files.num_rows, dtype=np.bool_)
    nulls = delete.get(stats_key(field_id, "null_value_count"))
    lower = delete.get(stats_key(field_id, "lower_bound"))
    upper = delete.get(stats_key(field_id, "upper_bound"))
    if nulls != 0 or lower is None or upper is None:
        return maybe
    lowers = files.column(stats_key(field_id, "lower_bound"))
    uppers = files.column(stats_key(field_id, "upper_bound"))
    if pa.types.is_null(lowers.type) or pa.types.is_null(uppers.type):
        return maybe
    below = pc.less_equal(lowers, pa.scalar(upper, lowers.type))
    above = pc.greater_equal(uppers, pa.scalar(lower, uppers.type))
    return np.asarray(pc.fill_null(pc.and_kleene(below, above), True))


def stats_keys_for(deletes: Sequence[EntryBatch]) -> frozenset[str]:
    """Statistics of data files that matching needs: bounds of the columns deletes compare."""
    ids: set[int] = set()
    for batch in deletes:
        for value in batch.pylist("equality_ids"):
            ids.update(value or ())
    return frozenset(
        stats_key(id, name) for id in ids for name in ("lower_bound", "upper_bound")
    )


def delete_keys(field_ids: Sequence[int], partition_field_ids: Sequence[int]) -> frozenset[str]:
    """Columns of delete manifests that matching needs."""
    keys = set(DELETE_KEYS)
    keys.update(f"{PARTITION_PREFIX}{id}" for id in partition_field_ids)
    for id in (*field_ids, _FILE_PATH):
        keys.update(
            stats_key(id, name) for name in ("lower_bound", "upper_bound", "null_value_count")
        )
    return frozenset(keys)
