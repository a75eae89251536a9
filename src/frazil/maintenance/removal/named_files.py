"""Files that entries name, as columns: a table of a million files stays a few Arrow arrays.

A name may occur several times, once for each place that names it. Puffin files are few (one holds
the vectors of a whole commit), so they are a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.maintenance.removal.address_set import AddressSet, hashes_of
from frazil.value_classes import dataclass, field

Bounds = tuple[tuple[Any, Any] | None, ...]
"""Lower and upper bound in each of a few columns; None where they are not known."""
BoundKeys = Sequence[tuple[str, str]]
"""The keys of lower and upper bound of each of these columns."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedFiles:
    """`files` has the absolute address in `location`, beside the kind and the bounds of an entry.

    `vectors` are Puffin files with the least age (sequence number) they can have.
    """

    files: EntryBatch = field(default_factory=EntryBatch.empty)
    vectors: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def union(parts: Iterable[NamedFiles]) -> NamedFiles:
        """The names of all parts."""
        chosen = list(parts)
        vectors: dict[str, int] = {}
        for part in chosen:
            for name, age in part.vectors.items():
                vectors[name] = min(age, vectors.get(name, age))
        files = EntryBatch.concat((part.files for part in chosen), combine=False)
        return NamedFiles(files=files, vectors=vectors)

    def without(self, in_use: AddressSet) -> NamedFiles:
        """The names that are not among these addresses, as a file or as a Puffin file."""
        if not self or not len(in_use):
            return self
        # Chunk by chunk: the texts of one leaf at a time become Python's, to be hashed.
        chunks = self.files.column("location").chunks
        held = np.concatenate(
            [np.zeros(0, np.bool_), *(in_use.holds(hashes_of(c)) for c in chunks)]
        )
        names = pa.array(list(self.vectors), pa.string())
        kept = names.filter(pa.array(~in_use.holds(hashes_of(names)))).to_pylist()
        return NamedFiles(
            files=self.files.filter(~held), vectors={name: self.vectors[name] for name in kept}
        )

    def addresses(self) -> pa.ChunkedArray:
        """Every address, Puffin files first; some more than once."""
        files = self.files.column("location").cast(pa.string())
        return pa.chunked_array([pa.array(list(self.vectors), pa.string()), *files.chunks])

    def hull(self, keys: BoundKeys) -> Bounds:
        """The bounds of all files together; None in a column where they cannot be told."""
        return tuple(self._enclosing(lower, upper) for lower, upper in keys)

    def _enclosing(self, lower: str, upper: str) -> tuple[Any, Any] | None:
        lows, highs = self.files.column(lower), self.files.column(upper)
        if lows.null_count or highs.null_count or not len(lows):
            return None
        try:
            return pc.min(lows).as_py(), pc.max(highs).as_py()
        except pa.ArrowNotImplementedError:  # a type without an order
            return None

    def data_files(self) -> frozenset[str]:
        """Files with rows, each once."""
        return self._of_kind(is_data=True)

    def delete_files(self) -> frozenset[str]:
        """Files that delete rows, each once; Puffin files are in `vectors`."""
        return self._of_kind(is_data=False)

    def _of_kind(self, *, is_data: bool) -> frozenset[str]:
        mask = (self.files.numpy("content_type") == ContentType.DATA) == is_data
        return frozenset(self.files.filter(mask).column("location").unique().to_pylist())

    def __bool__(self) -> bool:
        return bool(self.files.num_rows or self.vectors)
