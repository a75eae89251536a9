"""Manifests of v1 to v3 for `TreeReader`: this package's implementation of `ManifestDecoder`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from frazil.format import paths
from frazil.format.metadata.metadata import Snapshot

if TYPE_CHECKING:
    from frazil.format.entries.batch import EntryBatch
    from frazil.tree.read import LeafRef, Positions, Tree, TreeReader


class LegacyDecoder:
    """Reads manifest lists and manifests of v1 to v3, and the interim Parquet of early v4."""

    __slots__ = ()

    def root(self, reader: TreeReader, snapshot: Snapshot) -> EntryBatch:
        """The manifest list as a root."""
        from frazil.legacy.read import manifest_list

        return manifest_list.root_of(
            snapshot,
            metadata=reader.metadata,
            location=reader.location,
            storage=reader.storage,
        )

    def entries(
        self, reader: TreeReader, leaf: LeafRef, keys: Collection[str] | None
    ) -> EntryBatch:
        """The entries of one manifest."""
        from frazil.legacy.read import manifest_entries

        path = paths.resolve(reader.location, leaf.location)
        return manifest_entries.entries_of(
            reader.storage.read(path),
            path=path,
            content_type=leaf.content_type,
            spec_id=leaf.spec_id,
            metadata=reader.metadata,
            location=reader.location,
            keys=keys,
            limits=reader.storage.limits,
        )

    def deleted_rows(
        self, reader: TreeReader, tree: Tree, locations: Collection[str]
    ) -> dict[str, Positions]:
        """Rows retired by position deletes and vectors of v2 and v3."""
        from frazil.legacy.upgrade import carried_deletes

        return carried_deletes.deleted_rows(reader, tree, frozenset(locations))
