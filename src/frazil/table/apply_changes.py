"""Changes of one table applied to another, each once.

The replica keeps the snapshot of the source up to which it has applied changes in a property, which
moves in the same commit as the rows. Changes that were applied before are left out, whoever brings
them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.commit.updates import MovePosition
from frazil.errors import InvalidInput
from frazil.format.metadata.metadata import TableMetadata
from frazil.scan.change_feed import CHANGE_COLUMNS, Changes, ChangeType
from frazil.table.transaction import Transaction
from frazil.value_classes import replace

_POSITION: Final = "frazil.applied."
_GONE: Final = pa.array([ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE])
_FEED: Final = ("_row_id", *CHANGE_COLUMNS.names)


def position(metadata: TableMetadata, source: str) -> int | None:
    """The snapshot of a source, given by its uuid, up to which changes were applied."""
    text = metadata.properties.get(_POSITION + source)
    return None if text is None else int(text)


def apply(tx: Transaction, changes: Changes, on: Sequence[str], *, name: str, schema: str) -> None:
    """Add what is left of the changes to a transaction, with the position that follows."""
    applied = position(tx.metadata, changes.source)
    left = _left(changes, applied, name)
    if not left.snapshots:
        return
    absent = [column for column in on if column not in left.schema.names]
    if absent:
        raise InvalidInput(f"the changes have no column {absent[0]!r}, which tells rows apart")
    net = replace(left, collapse=True).to_arrow()
    is_gone = pc.is_in(net["_change_type"], value_set=_GONE)
    columns = [column for column in net.column_names if column not in _FEED]
    came = net.filter(pc.invert(is_gone)).select(columns)
    removed = _without(net.filter(is_gone).select(list(on)), came.select(list(on)))
    if removed.num_rows:
        tx.merge(removed, on=list(on)).when_matched_delete().execute()
    if came.num_rows:
        tx._merge_columns(came, schema)
        tx.upsert(came, list(on))
    last = int(left.snapshots[-1].snapshot_id)
    tx._apply_update(
        MovePosition(
            key=_POSITION + changes.source,
            expected=None if applied is None else str(applied),
            to=str(last),
        )
    )


def _left(changes: Changes, known: int | None, name: str) -> Changes:
    """The changes after the position. They must begin there or before: a gap would lose rows."""
    if known is None or not changes.snapshots:
        return changes
    if changes.since is not None and int(changes.since.snapshot_id) == known:
        return changes
    for at, snapshot in enumerate(changes.snapshots):
        if int(snapshot.snapshot_id) == known:
            later = changes.snapshots[at + 1 :]
            return replace(changes, since=snapshot, snapshots=later, starts_whole=False)
    raise InvalidInput(
        f"{name} has applied changes up to snapshot {known}, which these do not follow; pass "
        f"changes(since={known}). If that snapshot has expired, delete the rows of this source "
        f"from {name}, remove its property {_POSITION + changes.source}, and apply all changes"
    )


def _without(keys: pa.Table, others: pa.Table) -> pa.Table:
    """Keys, each once, that are not among others: a row that comes back is an update."""
    if not keys.num_rows:
        return keys
    other_keys = set(zip(*(column.to_pylist() for column in others.columns), strict=True))
    rows: list[int] = []
    for at, key in enumerate(zip(*(column.to_pylist() for column in keys.columns), strict=True)):
        if key not in other_keys:
            other_keys.add(key)
            rows.append(at)
    return keys.take(pa.array(rows, pa.int64()))
