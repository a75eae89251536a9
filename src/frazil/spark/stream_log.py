"""What a streaming query has committed to a table, read from the summaries of its snapshots.

A query is known by the id in its checkpoint, a micro-batch by its number. Both go into the summary
of the snapshot that a batch makes, so a batch that Spark runs again is recognised.
"""

from __future__ import annotations

import json

from frazil.errors import FrazilError, InvalidInput
from frazil.format.metadata import Snapshot
from frazil.storage import storage_for
from frazil.table import refs
from frazil.table.table import Table

QUERY_ID = "frazil.stream.query-id"
BATCH_ID = "frazil.stream.batch-id"


def batch_summary(query_id: str, batch_id: int) -> dict[str, str]:
    """What the snapshot of a batch says of it."""
    return {QUERY_ID: query_id, BATCH_ID: str(batch_id)}


def landed(table: Table, query_id: str, batch_id: int) -> Snapshot | None:
    """The snapshot by which a batch, or a later one of its query, is in the table already."""
    for snapshot in refs.ancestors(table.handle, table.current_snapshot()):
        if snapshot.summary.get(QUERY_ID) == query_id:
            last = int(snapshot.summary.get(BATCH_ID, -1))
            return snapshot if last >= batch_id else None
    return None


def query_id_of(checkpoint: str | None) -> str:
    """The id of the query that owns a checkpoint."""
    if checkpoint is None:
        raise InvalidInput(
            "a streaming write needs its checkpoint to commit each batch once: "
            '.option("checkpointLocation", …), or option "query-id" with a name of your own'
        )
    path = f"{checkpoint.rstrip('/')}/metadata"
    try:
        data = storage_for(path).read(path)
        return str(json.loads(data)["id"])
    except (FrazilError, ValueError, KeyError) as error:
        raise InvalidInput(
            f"{path} does not tell the id of the streaming query ({error}); "
            'give one with option "query-id"'
        ) from error
