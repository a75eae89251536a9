"""Which entries of a Paimon snapshot are alive: ADD and DELETE entries folded in columns.

An entry is known by partition, bucket, level, file name, extra files, embedded index and external
path; statistics are not part of it. All DELETE entries are taken first, then the ADDs they name are
dropped: the order of manifests does not matter. The level belongs to the key because an LSM tree
moves a file up as DELETE at the old level plus ADD at the new one, under the same name.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import FormatError
from frazil.paimon.read.manifest_tables import ADD, DELETE

_LIST_SEPARATOR: Final = "\x00"


def live_entries(entries: pa.Table) -> pa.Table:
    """The ADD entries that no DELETE entry names, in order, each once."""
    kinds = entries["kind"].to_numpy()
    unknown = (kinds != ADD) & (kinds != DELETE)
    if unknown.any():
        raise FormatError(
            f"is {int(kinds[np.argmax(unknown)])}; expected 0 (ADD) or 1 (DELETE)", field="_KIND"
        )
    is_add = kinds == ADD
    keys = entry_keys(entries)
    alive = is_add & ~np.isin(keys, keys[~is_add]) if not is_add.all() else is_add
    first = np.zeros(len(keys), bool)
    positions = np.flatnonzero(alive)
    first[positions[np.unique(keys[positions], return_index=True)[1]]] = True
    return entries.filter(pa.array(first))


def entry_keys(entries: pa.Table) -> npt.NDArray[np.int64]:
    """A number per entry, equal for entries that stand for the same file."""
    codes = np.zeros(entries.num_rows, np.int64)
    for column in (
        entries["file_name"],
        entries["level"],
        entries["bucket"],
        entries["partition"],
        pc.binary_join(entries["extra_files"], _LIST_SEPARATOR),
        entries["embedded_file_index"],
        entries["external_path"],
    ):
        codes = _combine(codes, _codes(column))
    return codes


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    if column.null_count == len(column):
        return np.zeros(len(column), np.int64)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    indices: npt.NDArray[Any] = encoded.indices.to_numpy(zero_copy_only=False)
    return indices.astype(np.int64)


def _combine(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Codes of pairs, kept dense so that no product of sizes can overflow."""
    width = int(right.max(initial=0)) + 1
    if width == 1:
        return left
    paired = left * width + right
    if int(paired.max(initial=0)) < 2 * len(paired):
        return paired
    dense: npt.NDArray[np.int64] = np.unique(paired, return_inverse=True)[1].astype(np.int64)
    return dense
