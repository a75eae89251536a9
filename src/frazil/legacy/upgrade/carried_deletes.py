"""Rows that position deletes of carried v2 and v3 manifests retire, for edits that do not say.

A file's new vector includes what older delete files say about it. The planner of an edit knows
those files; an edit by path and position alone does not, so they are looked up here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from frazil.data.read.delete_files import read_position_deletes
from frazil.data.slices import DataFileSlice
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import FILE_PATH, VECTOR_KEYS, ContentType, stats_key
from frazil.format.vectors import bitmap
from frazil.format.vectors.puffin import StoredVector
from frazil.tree.decoder import Positions
from frazil.tree.read import Tree, TreeReader, delete_leaves
from frazil.tree.stored_vectors import read_vector

_KEYS = (
    "location",
    "content_type",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "referenced_file",
    *VECTOR_KEYS,
    stats_key(FILE_PATH, "lower_bound"),
    stats_key(FILE_PATH, "upper_bound"),
)


def deleted_rows(
    reader: TreeReader, tree: Tree, locations: Collection[str]
) -> dict[str, Positions]:
    """By location, the rows of the wanted files that old delete files retire."""
    old = [leaf for leaf in delete_leaves(tree.leaves()) if leaf.format_version == 0]
    by_file: dict[str, Positions] = {}
    for batch in reader.map(old, lambda leaf: reader.live(leaf, keys=_KEYS)):
        by_position = batch.numpy("content_type") == ContentType.POSITION_DELETES
        for row in _relevant_to(batch.filter(by_position), locations, reader.location):
            for name, positions in _positions(reader, row, locations).items():
                before = by_file.get(name)
                by_file[name] = positions if before is None else bitmap.union(before, positions)
    return by_file


def _relevant_to(
    batch: EntryBatch, locations: Collection[str], location: str
) -> list[dict[str, Any]]:
    """Delete files that name one of the files, or may."""
    rows = [batch.row(index) for index in range(batch.num_rows)]
    kept: list[dict[str, Any]] = []
    for row in rows:
        lower = row.get(stats_key(FILE_PATH, "lower_bound"))
        same = lower == row.get(stats_key(FILE_PATH, "upper_bound"))
        target = row.get("referenced_file") or (lower if same else None)
        if target is None or paths.relativise(location, target) in locations:
            kept.append(row)
    return kept


def _positions(
    reader: TreeReader, row: dict[str, Any], locations: Collection[str]
) -> dict[str, Positions]:
    path = paths.resolve(reader.location, row["location"])
    target = row.get("referenced_file")
    if row.get("deletion_vector.offset") is not None and target is not None:
        vector = StoredVector(
            location=path,
            offset=row["deletion_vector.offset"],
            size_in_bytes=row["deletion_vector.size_in_bytes"],
            cardinality=row["deletion_vector.cardinality"],
        )
        return {paths.relativise(reader.location, target): read_vector(reader.storage, vector)}
    source = DataFileSlice(
        path=path,
        file_format=row["file_format"],
        record_count=row["record_count"],
        file_size_in_bytes=row["file_size_in_bytes"],
    )
    read = read_position_deletes(source, storage=reader.storage)
    named = {paths.relativise(reader.location, name): rows for name, rows in read.items()}
    return {name: rows for name, rows in named.items() if name in locations}


__all__ = ["deleted_rows"]
