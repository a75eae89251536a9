"""What is around a table when it is read and committed to: storage, cache, clock and names.

A table is opened with it, so nothing heavy is imported before it is used.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from frazil.format.metadata.metadata import TableMetadata
from frazil.storage import Storage
from frazil.tree.cache import ManifestCache
from frazil.value_classes import frozen

if TYPE_CHECKING:
    from frazil.tree.read import ManifestDecoder, TreeReader


@frozen
class CommitContext:
    """Where a commit runs: storage, cache, clock and names come in from outside."""

    storage: Storage
    location: str
    cache: ManifestCache
    now_ms: Callable[[], int]
    new_snapshot_id: Callable[[], int]
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    decoder: ManifestDecoder | None = None
    """Reads manifests that older format versions left in the table."""

    def reader(self, metadata: TableMetadata) -> TreeReader:
        """A reader of the table's trees."""
        from frazil.tree.read import TreeReader

        return TreeReader(
            self.storage,
            metadata,
            location=self.location,
            cache=self.cache,
            decoder=self.decoder,
        )
