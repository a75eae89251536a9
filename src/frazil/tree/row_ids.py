"""Row ids that a commit gives out: to the leaves of an upgraded table, and to files it adds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import FORMAT_VERSION_KEY, ContentType

Rows = np.ndarray[Any, np.dtype[Any]]


def numbered(root: EntryBatch, next_row_id: int) -> tuple[EntryBatch, int]:
    """A parent root before it is edited: leaves carried over from v1-v3 get what their manifest
    list did not say, as a root has no nulls to inherit. Data files from before row lineage get row
    ids now; the second value is where the next ids start.
    """
    if not root.num_rows:
        return root, next_row_id
    carried = tracking.leaf_mask(root) & (root.numpy(FORMAT_VERSION_KEY) == 0)
    if not carried.any():
        return root, next_row_id
    ages = root.column("tracking.file_sequence_number")
    if ages.null_count:
        order = pc.coalesce(ages, root.column("tracking.sequence_number"))
        root = root.with_column("tracking.file_sequence_number", order)
    starts = root.column("tracking.first_row_id")
    unnumbered = (
        carried
        & np.asarray(pc.is_null(starts))
        & (root.numpy("content_type") == ContentType.DATA_MANIFEST)
    )
    if not unnumbered.any():
        return root, next_row_id
    rows = sum(
        root.numpy(f"manifest_info.{kind}_rows_count", missing=0)
        for kind in ("added", "existing", "modified")
    )
    numbers, next_row_id = counted(np.where(unnumbered, rows, 0), next_row_id)
    row_ids = pa.array(numbers, pa.int64(), mask=~unnumbered)
    return root.with_column("tracking.first_row_id", pc.coalesce(starts, row_ids)), next_row_id


def counted(rows: Rows, start: int) -> tuple[Rows, int]:
    """Where each count starts when they follow one another, and where the last one ends."""
    ends = start + np.cumsum(rows)
    return ends - rows, int(ends[-1])
