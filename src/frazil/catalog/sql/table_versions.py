"""The current version of every table in one query, for observers of a whole catalog."""

from __future__ import annotations

from frazil.catalog.backend import TableVersion
from frazil.catalog.database.database import Database
from frazil.catalog.names import Identifier, undotted

_VERSIONS = """
SELECT t.table_namespace, t.table_name, t.metadata_location, f.version, f.table_id
FROM iceberg_tables t LEFT JOIN frazil_tables f ON f.catalog_name = t.catalog_name
     AND f.table_namespace = t.table_namespace AND f.table_name = t.table_name
WHERE t.catalog_name = :catalog
"""
_COMMITS = """
SELECT l.table_id, l.timestamp_ms FROM frazil_snapshot_log l
JOIN frazil_tables f ON f.table_id = l.table_id
WHERE f.catalog_name = :catalog AND l.timestamp_ms >= :since
ORDER BY l.table_id, l.version, l.position
"""


def pulses(
    database: Database, catalog: str, *, only: str, since_ms: int | None
) -> list[TableVersion]:
    """One statement for the versions, one more for the times. `only` keeps views out."""
    committed: dict[int, list[int]] = {}
    if since_ms is not None:
        for table_id, at in database.rows(_COMMITS, {"catalog": catalog, "since": since_ms}):
            committed.setdefault(table_id, []).append(int(at))
    versions = [
        TableVersion(
            identifier=Identifier(namespace=undotted(namespace), name=name),
            version=str(location) if version is None else f"{table_id}:{version}",
            committed_ms=tuple(committed.get(table_id, ())),
        )
        for namespace, name, location, version, table_id in database.rows(
            _VERSIONS + only, {"catalog": catalog}
        )
    ]
    return sorted(versions, key=lambda version: version.identifier)
