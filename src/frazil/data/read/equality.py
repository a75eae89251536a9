"""Which rows equality deletes remove: null-safe matching of column tuples, vectorised.

Values are replaced by small numbers, one column after the other, so any number of columns of any
types costs a few lookups per batch. Which delete applies to which file is for the planner to say.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.value_classes import dataclass

_Codes = npt.NDArray[np.int64]
_NO_MATCH = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Step:
    """One column of the deletes: its distinct values, and the tuples known up to here."""

    values: pa.Array
    tuples: _Codes


class EqualityDeletes:
    """Rows to remove, given as tuples of some columns. Null equals null, NaN equals NaN."""

    def __init__(self, field_ids: tuple[int, ...], rows: pa.Table) -> None:
        """`rows` has one column per field id, in that order, in the table's types."""
        self.field_ids = field_ids
        self.num_rows = int(rows.num_rows)
        self._steps: list[_Step] = []
        codes = np.zeros(self.num_rows, dtype=np.int64)
        for column in rows.columns:
            encoded = _comparable(column.combine_chunks()).dictionary_encode(null_encoding="encode")
            if isinstance(encoded, pa.ChunkedArray):
                encoded = encoded.combine_chunks()
            indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            tuples, codes = np.unique(
                codes * len(encoded.dictionary) + indices, return_inverse=True
            )
            self._steps.append(_Step(values=encoded.dictionary, tuples=tuples))

    def matches(self, columns: list[pa.Array]) -> npt.NDArray[np.bool_]:
        """Which rows are removed; one column per field id, in that order."""
        length = len(columns[0])
        if self.num_rows == 0:
            return np.zeros(length, dtype=np.bool_)
        codes = np.zeros(length, dtype=np.int64)
        for column, step in zip(columns, self._steps, strict=True):
            codes = _advance(codes, _comparable(column), step)
            if (codes == _NO_MATCH).all():
                break
        matched: npt.NDArray[np.bool_] = codes != _NO_MATCH
        return matched


def _advance(codes: _Codes, column: pa.Array, step: _Step) -> _Codes:
    # A row's code is the number of its tuple so far among those of the deletes; with the next value
    # it is looked up among the longer tuples. Nulls are values here: null equals null.
    codes_in_step = pc.fill_null(pc.index_in(column, value_set=step.values), _NO_MATCH)
    indices: _Codes = codes_in_step.to_numpy(zero_copy_only=False).astype(np.int64)
    combined = codes * len(step.values) + indices
    places = np.minimum(np.searchsorted(step.tuples, combined), len(step.tuples) - 1)
    is_known = (codes != _NO_MATCH) & (indices != _NO_MATCH) & (step.tuples[places] == combined)
    return np.where(is_known, places, _NO_MATCH)


def _comparable(column: Any) -> Any:
    """Floats with one zero: an equality delete of 0.0 removes -0.0 as well."""
    if pa.types.is_floating(column.type):
        return pc.add(column, pa.scalar(0.0, column.type))
    return column
