"""Whether a change may be replayed on a head that moved. Pure: what others did comes in as values.

| this change                 | conflicts with a concurrent commit that…                        |
|-----------------------------|-----------------------------------------------------------------|
| append                      | never                                                           |
| remove or rewrite files     | removed one of them; rewrite also: put a vector on one of them  |
| delete rows (vectors)       | removed the file; update also: deleted one of the same rows     |
| by filter, serializable     | added a file that could match the filter                        |
| anything but append         | moved the branch to another history                             |
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
    """Whether the snapshots committed meanwhile must be looked at."""
    rewrites = change.replaced is not None and change.replaced.num_rows > 0
    return rewrites or (
        change.conflict_filter is not None and change.isolation is Isolation.SERIALIZABLE
    )


def check(
    change: Change, meanwhile: Iterable[TreeChanges], context: PruneContext
) -> list[Conflict]:
    """Conflicts of a change with snapshots that landed since it was planned."""
    found: list[Conflict] = []
    for changes in meanwhile:
        by = int(changes.snapshot.snapshot_id)
        if change.replaced is not None and change.replaced.num_rows:
            hit = _shared(changes.modified, change.replaced)
            found += [
                Conflict(what="deletion vector changed", where=location, by_snapshot_id=by)
                for location in hit
            ]
        if change.conflict_filter is not None and change.isolation is Isolation.SERIALIZABLE:
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
