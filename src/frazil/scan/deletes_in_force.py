"""Delete files in force around a change, and the files they may apply to.

A change of rows is judged by the deletes before it and after it: a row that an equality delete took
long ago is not deleted again when its file goes. Trees without delete files cost nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.filter.text.filter_text import parse
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.metadata.metadata import Snapshot
from frazil.iceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    Op,
    Or,
    Reference,
    UnboundPredicate,
)
from frazil.iceberg.literals import literal
from frazil.iceberg.schema import Schema
from frazil.scan.match_deletes import DeleteFiles, delete_keys
from frazil.scan.tasks import Task, file_tasks
from frazil.tree.partition_tuples import PartitionColumns
from frazil.tree.read import TreeReader, delete_leaves
from frazil.value_classes import frozen

_MAX_FILTERS = 50


def live_deletes(reader: TreeReader, snapshot: Snapshot | None) -> EntryBatch | None:
    """Every delete file that is part of a snapshot; None when there is none."""
    if snapshot is None:
        return None
    metadata = reader.metadata
    tree = reader.tree(snapshot, keys=())
    kind = tree.root.numpy("content_type")
    in_root = tracking.live_mask(tree.root) & (kind == ContentType.EQUALITY_DELETES)
    leaves = delete_leaves(tree.leaves())
    if not in_root.any() and not leaves:
        return None
    ids = sorted({id for schema in metadata.schemas for id in schema.field_ids})
    parts = sorted({part.field_id for spec in metadata.partition_specs for part in spec.fields})
    keys = delete_keys(ids, parts) | PartitionColumns.of(metadata).stats_keys(
        {spec.spec_id for spec in metadata.partition_specs}
    )
    batches: list[EntryBatch] = []
    if in_root.any():
        batches.append(reader.tree(snapshot, keys=keys).root.filter(in_root))
    batches += reader.map(leaves, lambda leaf: reader.live(leaf, keys=keys))
    deletes = EntryBatch.concat(batches)
    return deletes if deletes.num_rows else None


@frozen(eq=False)
class DeleteSets:
    """Delete files in force before and after a change; `fresh` came with it."""

    before: EntryBatch | None = None
    after: EntryBatch | None = None
    fresh: EntryBatch | None = None

    @staticmethod
    def of(before: EntryBatch | None, after: EntryBatch | None) -> DeleteSets:
        """The sets of two states."""
        return DeleteSets(before=before, after=after, fresh=_minus(after, before))

    @staticmethod
    def around(
        reader: TreeReader, snapshot: Snapshot, *, added: EntryBatch, removed: EntryBatch
    ) -> DeleteSets:
        """The sets around one snapshot, from what it holds and what it did."""
        after = live_deletes(reader, snapshot)
        removed_deletes = removed.filter(_is_delete(removed))
        if after is None and not removed_deletes.num_rows:
            return DeleteSets()
        fresh = added.filter(_is_delete(added))
        old_deletes = _minus(after, fresh if fresh.num_rows else None)
        parts = [
            batch
            for batch in (old_deletes, removed_deletes)
            if batch is not None and batch.num_rows
        ]
        before = EntryBatch.concat(parts) if parts else None
        return DeleteSets(before=before, after=after, fresh=_minus(after, old_deletes))


def _is_delete(batch: EntryBatch) -> np.ndarray[Any, np.dtype[np.bool_]]:
    kind = batch.numpy("content_type")
    return np.asarray(
        (kind == ContentType.POSITION_DELETES) | (kind == ContentType.EQUALITY_DELETES)
    )


def _names(batch: EntryBatch) -> list[tuple[str, int | None]]:
    """What identifies a delete file: a Puffin file holds many vectors."""
    columns = (batch.pylist("location"), batch.pylist("deletion_vector.offset"))
    return list(zip(*columns, strict=True))


def _minus(batch: EntryBatch | None, others: EntryBatch | None) -> EntryBatch | None:
    if batch is None or others is None:
        return batch
    names = set(_names(others))
    remaining = batch.filter(
        np.array([name not in names for name in _names(batch)], dtype=np.bool_)
    )
    return remaining if remaining.num_rows else None


def tasks_for(reader: TreeReader, files: EntryBatch, deletes: EntryBatch | None) -> list[Task]:
    """Tasks of files with the delete files of a set that apply to them."""
    matches: dict[int, tuple[int, ...]] = {}
    if deletes is not None and files.num_rows:
        partitions = PartitionColumns.of(reader.metadata)
        matcher = DeleteFiles(batch=deletes, location=reader.location, partitions=partitions)
        matches = matcher.match(files)
    return list(file_tasks(files, deletes, matches, location=reader.location))


def reach_of(deletes: EntryBatch, schema: Schema) -> BooleanExpression:
    """A filter that every row which one of the deletes can take passes, for pruning."""
    if deletes.num_rows > _MAX_FILTERS:
        return AlwaysTrue()
    either: BooleanExpression | None = None
    for row in range(deletes.num_rows):
        part = _range_of(deletes, row, schema)
        if isinstance(part, AlwaysTrue):
            return part
        either = part if either is None else Or(either, part)
    return AlwaysTrue() if either is None else parse(either, schema)


def _range_of(deletes: EntryBatch, row: int, schema: Schema) -> BooleanExpression:
    """The bounds of one equality delete; what has none can be anywhere."""
    result: BooleanExpression = AlwaysTrue()
    for field_id in _equality_ids(deletes, row):
        name = schema.find_column_name(field_id)
        lower = deletes.column(stats_key(field_id, "lower_bound"))[row]
        upper = deletes.column(stats_key(field_id, "upper_bound"))[row]
        nulls = deletes.column(stats_key(field_id, "null_value_count"))[row].as_py()
        if name is None or nulls != 0 or not lower.is_valid or not upper.is_valid:
            continue
        if not _is_plain(lower.type):
            continue
        for op, bound in ((Op.GE, lower), (Op.LE, upper)):
            end = UnboundPredicate(op, Reference(name), (literal(bound.as_py()),))
            result = And(result, end)
    return result


def _equality_ids(deletes: EntryBatch, row: int) -> Sequence[int]:
    if deletes.numpy("content_type")[row] != ContentType.EQUALITY_DELETES:
        return ()
    return deletes.column("equality_ids")[row].as_py() or ()


def _is_plain(kind: pa.DataType) -> bool:
    checks = (pa.types.is_integer, pa.types.is_string, pa.types.is_date)
    return any(check(kind) for check in checks)
