"""Micro-batches of streaming queries, so that each lands once, whatever expires.

The snapshot of a batch names its query and number in the summary. When such a snapshot expires, the
newest number per query and branch moves into a table property. Knows nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from frazil.format.metadata.metadata import Snapshot

QUERY_ID: Final = "frazil.stream.query-id"
BATCH_ID: Final = "frazil.stream.batch-id"
_PREFIX: Final = "frazil.stream.batch."


def batch_of(snapshot: Snapshot) -> tuple[str, int] | None:
    """The query and the number of the batch that made a snapshot."""
    query, number = snapshot.summary.get(QUERY_ID), snapshot.summary.get(BATCH_ID, "")
    return (query, int(number)) if query is not None and number.isdigit() else None


def property_of(branch: str, query_id: str) -> str:
    """The property that holds the newest batch of a query whose snapshot has expired."""
    return f"{_PREFIX}{branch}.{query_id}"


def carried(
    branch: str, expired: Iterable[Snapshot], properties: Mapping[str, str]
) -> dict[str, str]:
    """Properties to set before snapshots of a branch expire."""
    newest: dict[str, int] = {}
    for snapshot in expired:
        progress = batch_of(snapshot)
        if progress is not None:
            key = property_of(branch, progress[0])
            newest[key] = max(progress[1], newest.get(key, int(properties.get(key, -1))))
    return {key: str(number) for key, number in newest.items()}
