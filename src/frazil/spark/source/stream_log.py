"""What a streaming query has committed to a table, read from the summaries of its snapshots.

A query is known by the id in its checkpoint, a micro-batch by its number. Both go into the summary
of the snapshot that a batch makes, so a batch that Spark runs again is recognised. What expires is
kept in table properties (`commit.batches`).
"""

from __future__ import annotations

import json

from frazil.commit.stream_progress import BATCH_ID, QUERY_ID, batch_of, property_of
from frazil.errors import FrazilError, InvalidInput
from frazil.storage import storage_for
from frazil.table import refs
from frazil.table.table import Table


def batch_summary(query_id: str, batch_id: int) -> dict[str, str]:
    """What the snapshot of a batch says of it."""
    return {QUERY_ID: query_id, BATCH_ID: str(batch_id)}


def has_landed(table: Table, query_id: str, batch_id: int) -> bool:
    """Whether a batch, or a later one of its query, is in the table already."""
    for snapshot in refs.ancestors(table._handle, table.current_snapshot()):
        batch = batch_of(snapshot)
        if batch is not None and batch[0] == query_id:
            return batch[1] >= batch_id
    expired = table.properties.get(property_of(table.branch_name, query_id), "-1")
    return int(expired) >= batch_id


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
            f"{path} does not contain the id of the streaming query ({error}); "
            'give one with option "query-id"'
        ) from error
