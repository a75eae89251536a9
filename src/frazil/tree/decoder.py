"""What `TreeReader` asks of formats that are not v4's own: their manifests as entry batches.

A v4 table that was upgraded carries manifests of v1 to v3, and tables of other writers have nothing
else. The package that knows such a format implements this protocol; the code that opens a table
passes it to
the reader. Stateless and picklable, as readers travel to other processes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol, TypeAlias

from frazil.format.metadata.metadata import Snapshot

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from frazil.format.entries.batch import EntryBatch
    from frazil.tree.read import LeafRef, Tree, TreeReader

Positions: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


class ManifestDecoder(Protocol):
    """Manifests of older format versions as v4 sees them."""

    def root(self, reader: TreeReader, snapshot: Snapshot) -> EntryBatch:
        """The manifests of a snapshot without a v4 root, as the entries of a root."""
        ...

    def entries(
        self, reader: TreeReader, leaf: LeafRef, keys: Collection[str] | None
    ) -> EntryBatch:
        """The entries of a manifest with format version 0, in file order, dead ones included."""
        ...

    def deleted_rows(
        self, reader: TreeReader, tree: Tree, locations: Collection[str]
    ) -> dict[str, Positions]:
        """By location, the rows that delete files of such manifests retire."""
        ...
