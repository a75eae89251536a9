"""Whether a change may be replayed on a head that moved. Pure: what others did comes in as values.

| this change                 | conflicts with a concurrent commit that…                        |
|-----------------------------|-----------------------------------------------------------------|
| append                      | never                                                           |
| remove files                | removed one of them                                             |
| rewrite files, or swap them | removed one of them, or put a deletion vector on one of them:   |
| for others by name          | the new files would bring the deleted rows back                 |
| delete rows (vectors)       | removed the file; update also: deleted one of the same rows     |
| by filter, serializable     | added a file that could match the filter                        |

Whatever looks at the history refuses a branch that was moved to another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression

from frazil.commit.change import Change, Isolation
from frazil.errors import Conflict
from frazil.expr.prune import PruneContext, might_match
from frazil.format.batch import EntryBatch
from frazil.format.fields import ContentType
from frazil.tree.changes import TreeChanges


def needs_history(change: Change) -> bool:
    """Whether the snapshots committed in the meantime must be checked."""
    return _is_serializable(change) or bool(_rewritten(change))


def _is_serializable(change: Change) -> bool:
    return change.conflict_filter is not None and change.isolation is Isolation.SERIALIZABLE


def _rewritten(change: Change) -> list[EntryBatch]:
    """Files whose rows the change writes again elsewhere, as they were when it was planned.

    Files removed by a filter are not among them: what is added beside does not come from them.
    """
    found = [change.replaced]
    if change.conflict_filter is None and change.added is not None:
        found.append(change.removed)
    return [batch for batch in found if batch is not None and batch.num_rows]


def check(
    change: Change, meanwhile: Iterable[TreeChanges], context: PruneContext
) -> list[Conflict]:
    """Conflicts of a change with snapshots that landed since it was planned."""
    found: list[Conflict] = []
    for changes in meanwhile:
        by = int(changes.snapshot.snapshot_id)
        for files in _rewritten(change):
            found += [
                Conflict(what="deletion vector changed", where=location, by_snapshot_id=by)
                for location in _shared(changes.modified, files)
            ]
        if change.conflict_filter is not None and _is_serializable(change):
            added = _could_match(changes.added, change.conflict_filter, context)
            found += [
                Conflict(what="file added that could match", where=location, by_snapshot_id=by)
                for location in added
            ]
    return found


def missing(locations: Sequence[str]) -> list[Conflict]:
    """Conflicts for files that are not live any more."""
    return [Conflict(what="file is no longer in the table", where=where) for where in locations]


def _shared(entries: EntryBatch, wanted: EntryBatch) -> list[str]:
    if not entries.num_rows:
        return []
    mask = pc.is_in(
        entries.column("location"), value_set=wanted.column("location").combine_chunks()
    )
    return list(entries.column("location").filter(mask).to_pylist())


def _could_match(
    added: EntryBatch, expression: BooleanExpression, context: PruneContext
) -> list[str]:
    files = added.filter(added.numpy("content_type") == ContentType.DATA)
    if not files.num_rows:
        return []
    mask = might_match(expression, files, context)
    return list(files.filter(mask).column("location").to_pylist())
