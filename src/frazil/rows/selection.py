"""Which data files are worth rewriting, in groups that are written together. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from frazil.errors import InvalidInput
from frazil.format.entries.column_files import have_column_files
from frazil.format.entries.fields import PARTITION_PREFIX
from frazil.format.metadata.metadata import TableMetadata
from frazil.scan.plan import Plan
from frazil.value_classes import dataclass, replace

_GB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """When a file is chosen and how large groups are.

    A file is chosen when it is too small or too large, when more than `delete_ratio` of its rows
    are deleted, when delete files apply to it, or when it was written under another partitioning.
    """

    target_file_bytes: int
    min_file_bytes: int | None = None
    max_file_bytes: int | None = None
    min_input_files: int = 5
    delete_ratio: float = 0.3
    max_group_bytes: int = 100 * _GB
    rewrite_all: bool = False
    only_deleted: bool = False
    """Choose every file with a deleted row, and no other."""
    merge_columns: bool = False
    """Choose every file with columns in column files, too."""

    def __post_init__(self) -> None:
        if self.target_file_bytes <= 0 or self.min_input_files < 1 or self.max_group_bytes <= 0:
            raise InvalidInput("sizes and counts of a rewrite must be above 0")
        if not 0 < self.delete_ratio <= 1:
            raise InvalidInput(f"delete_ratio is {self.delete_ratio}; expected 0 to 1")

    @property
    def large_file_bytes(self) -> int:
        """Above this a file is too large; the room over the target takes in remainders."""
        return self.max_file_bytes or self.target_file_bytes * 9 // 5

    @property
    def small_file_bytes(self) -> int:
        """Below this a file is too small."""
        return self.min_file_bytes or self.target_file_bytes * 3 // 4

    def groups(self, plan: Plan, *, current: Collection[int | None]) -> list[Group]:
        """Groups of files to rewrite, the largest first; `current` are ids of partition specs
        that files may stay under."""
        files = plan.files
        if not files.num_rows:
            return []
        sizes = files.numpy("file_size_in_bytes").astype(np.int64)
        records = np.maximum(files.numpy("record_count").astype(np.int64), 1)
        deleted = files.numpy("deletion_vector.cardinality", missing=0).astype(np.int64)
        stale = np.array([id not in current for id in files.pylist("spec_id")], dtype=np.bool_)
        live = (sizes * (1 - np.maximum(deleted, 0) / records)).astype(np.int64)
        needed = stale | (np.maximum(deleted, 0) / records >= self.delete_ratio)
        needed[list(plan.matches)] = True
        if self.merge_columns:
            needed |= have_column_files(files)
        small = sizes < self.small_file_bytes
        large = sizes > self.large_file_bytes
        chosen = (
            np.ones(len(sizes), dtype=np.bool_) if self.rewrite_all else (needed | small | large)
        )
        if self.only_deleted:
            needed = deleted > 0
            needed[list(plan.matches)] = True
            chosen = needed
        groups: list[Group] = []
        for rows in _by_partition(plan, np.flatnonzero(chosen)):
            for part in _packed(rows, sizes, self.max_group_bytes):
                must = self.rewrite_all or bool((needed | large)[part].any())
                full = len(part) > 1 and int(live[part].sum()) >= self.target_file_bytes
                if must or full or len(part) >= self.min_input_files:
                    groups.append(
                        Group(
                            rows=part,
                            bytes=int(sizes[part].sum()),
                            live_bytes=int(live[part].sum()),
                            records=int((records - np.maximum(deleted, 0))[part].sum()),
                            is_stale=bool(stale[part].any()),
                        )
                    )
        return sorted(groups, key=lambda group: -group.bytes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Files, as rows of a plan, that are rewritten together."""

    rows: npt.NDArray[np.intp]
    bytes: int
    live_bytes: int
    records: int
    is_stale: bool = False

    def outputs(self, target_file_bytes: int) -> int:
        """How many files to aim at."""
        return max(1, -(-self.live_bytes // target_file_bytes))


def _by_partition(plan: Plan, chosen: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    files = plan.files
    keys = ["spec_id", *sorted(key for key in files.keys if key.startswith(PARTITION_PREFIX))]
    columns = [files.pylist(key) for key in keys]
    rows: dict[Any, list[int]] = {}
    for row in chosen.tolist():
        rows.setdefault(repr([column[row] for column in columns]), []).append(row)
    return [np.array(rows, dtype=np.intp) for rows in rows.values()]


def _packed(
    rows: npt.NDArray[np.intp], sizes: npt.NDArray[np.int64], max_bytes: int
) -> list[npt.NDArray[np.intp]]:
    """Runs of files up to a maximum number of bytes, in the order of the plan."""
    bins: list[list[int]] = [[]]
    packed_bytes = 0
    for row in rows.tolist():
        if bins[-1] and packed_bytes + int(sizes[row]) > max_bytes:
            bins.append([])
            packed_bytes = 0
        bins[-1].append(row)
        packed_bytes += int(sizes[row])
    return [np.array(part, dtype=np.intp) for part in bins if part]


def current_specs(metadata: TableMetadata) -> set[int | None]:
    """Ids of the table's spec; every spec without fields, and none at all, are the same one."""
    spec = metadata.spec()
    if spec.fields:
        return {spec.spec_id}
    return {None, *(spec.spec_id for spec in metadata.partition_specs if not spec.fields)}


def even(selection: Selection) -> Selection:
    """The selection of a rewrite that orders rows: every file counts."""
    return replace(selection, rewrite_all=True)
