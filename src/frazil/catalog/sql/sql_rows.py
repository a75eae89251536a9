"""A table's state and history as database rows: the statements, and rows in and out.

Knows the layout of `sql_schema` and the JSON of the parts. Decides nothing: `sql` and `sql_head`
say when which statement runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from frazil.catalog.backend import TableVersion
from frazil.catalog.database.database import Database, DatabaseTransaction, Row
from frazil.catalog.names import Identifier, dotted, undotted
from frazil.catalog.sql import sql_places
from frazil.catalog.sql.sql_schema import HISTORY_TABLES, VIEW_TYPE
from frazil.errors import FormatError
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import (
    History,
    MetadataLogEntry,
    Snapshot,
    SnapshotId,
    SnapshotLogEntry,
    TableMetadata,
)
from frazil.value_classes import field, frozen, replace

_FIELDS = """
SELECT t.metadata_location, f.table_id, f.version, f.definition_id, f.last_sequence_number,
       f.last_updated_ms, f.next_row_id, f.refs,
       CASE WHEN f.definition_id = :known THEN NULL ELSE d.definition END,
       s.record, f.rendered_version
"""
_PARTS = """
LEFT JOIN frazil_definitions d ON d.table_id = f.table_id
LEFT JOIN frazil_snapshots s ON s.table_id = f.table_id AND s.snapshot_id = f.current_snapshot_id
"""
_SAME_NAME = """f.catalog_name = t.catalog_name AND f.table_namespace = t.table_namespace
             AND f.table_name = t.table_name"""

LOAD_BY_NAME = f"""{_FIELDS}
FROM iceberg_tables t LEFT JOIN frazil_tables f ON {_SAME_NAME} {_PARTS}
WHERE t.catalog_name = :catalog AND t.table_namespace = :namespace AND t.table_name = :name
"""
LOAD_BY_ID = f"""{_FIELDS}
FROM frazil_tables f LEFT JOIN iceberg_tables t ON {_SAME_NAME} {_PARTS}
WHERE f.table_id = :table_id
"""
NOT_A_VIEW = f" AND (iceberg_type IS NULL OR iceberg_type NOT IN ('VIEW', '{VIEW_TYPE}'))"

SWAP = """
UPDATE frazil_tables SET version = :version + 1, last_sequence_number = :last_sequence_number,
       last_updated_ms = :last_updated_ms, next_row_id = :next_row_id,
       current_snapshot_id = :current_snapshot_id, refs = :refs
WHERE table_id = :table_id AND version = :version
"""
DEFINE = "UPDATE frazil_definitions SET definition = :definition WHERE table_id = :table_id"
NAME_DEFINITION = """
UPDATE frazil_tables SET definition_id = :definition_id, location = :location
WHERE table_id = :table_id
"""
ADD_SNAPSHOT = """
INSERT INTO frazil_snapshots (table_id, snapshot_id, version, position, record)
VALUES (:table_id, :snapshot_id, :version, :position, :record)
"""
ADD_SNAPSHOT_LOG = """
INSERT INTO frazil_snapshot_log (table_id, version, position, snapshot_id, timestamp_ms)
VALUES (:table_id, :version, :position, :snapshot_id, :timestamp_ms)
"""
ADD_METADATA_LOG = """
INSERT INTO frazil_metadata_log (table_id, version, position, metadata_file, timestamp_ms)
VALUES (:table_id, :version, :position, :metadata_file, :timestamp_ms)
"""
REMOVE_SNAPSHOT = (
    "DELETE FROM frazil_snapshots WHERE table_id = :table_id AND snapshot_id = :snapshot_id"
)
CLEAR_SNAPSHOT_LOG = "DELETE FROM frazil_snapshot_log WHERE table_id = :table_id"
TRIM_SNAPSHOT_LOG = """
DELETE FROM frazil_snapshot_log WHERE table_id = :table_id
   AND (version < :version OR (version = :version AND position <= :position))
"""
SNAPSHOT = """
SELECT record FROM frazil_snapshots WHERE table_id = :table_id AND snapshot_id = :snapshot_id
"""
SNAPSHOTS = """
SELECT snapshot_id, record FROM frazil_snapshots WHERE table_id = :table_id
ORDER BY version, position
"""
SNAPSHOTS_SINCE = """
SELECT snapshot_id, record FROM frazil_snapshots
WHERE table_id = :table_id AND version > :version ORDER BY version, position
"""
SNAPSHOTS_NAMING = """
SELECT snapshot_id, record FROM frazil_snapshots
WHERE table_id = :table_id AND version > :version
  AND (snapshot_id = :number OR record LIKE :pattern) ORDER BY version, position
"""
COUNT_SINCE = """
SELECT count(*) FROM frazil_snapshots WHERE table_id = :table_id AND version > :version
"""
SNAPSHOT_LOG = """
SELECT snapshot_id, timestamp_ms, version, position FROM frazil_snapshot_log
WHERE table_id = :table_id ORDER BY version, position
"""
METADATA_LOG = """
SELECT metadata_file, timestamp_ms, version, position FROM frazil_metadata_log
WHERE table_id = :table_id ORDER BY version, position
"""
RENDERED = """
UPDATE frazil_tables SET rendered_version = :version
WHERE table_id = :table_id AND (rendered_version IS NULL OR rendered_version < :version)
"""
POINT_TO_JSON = """
UPDATE iceberg_tables
SET previous_metadata_location = metadata_location, metadata_location = :metadata_location
WHERE (catalog_name, table_namespace, table_name) = (
      SELECT catalog_name, table_namespace, table_name FROM frazil_tables
      WHERE table_id = :table_id)
"""
FORGET_METADATA_LOG = """
DELETE FROM frazil_metadata_log
WHERE table_id = :table_id AND version = :version AND position = :position
"""
AS_OF = """
SELECT snapshot_id FROM frazil_snapshot_log
WHERE table_id = :table_id AND timestamp_ms <= :timestamp_ms
ORDER BY version DESC, position DESC LIMIT 1
"""
_ADD_TABLE = """
INSERT INTO frazil_tables (catalog_name, table_namespace, table_name, location, version,
       rendered_version, definition_id, last_sequence_number, last_updated_ms, next_row_id,
       current_snapshot_id, refs)
VALUES (:catalog, :namespace, :name, :location, :version, :rendered_version, :definition_id,
       :last_sequence_number, :last_updated_ms, :next_row_id, :current_snapshot_id, :refs)
RETURNING table_id
"""
_ADD_DEFINITION = (
    "INSERT INTO frazil_definitions (table_id, definition) VALUES (:table_id, :definition)"
)


_BATCH = 500
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


@frozen
class Definition:
    """The parts of a table's metadata that ordinary commits leave alone, as stored and as read."""

    definition_id: str
    metadata: TableMetadata
    text: str = field(repr=False)

    @staticmethod
    def of(metadata: TableMetadata) -> Definition:
        """The definition to store; equal ones have equal ids."""
        import hashlib  # which loads OpenSSL

        text = metadata_json.definition_text(metadata)
        digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        return Definition(definition_id=digest, metadata=metadata, text=text)


def is_redefined(before: TableMetadata, after: TableMetadata) -> bool:
    """Whether a change touches the definition; cheap when nothing was replaced."""
    return any(
        old is not new and old != new
        for old, new in zip(_definition_fields(before), _definition_fields(after), strict=True)
    )


def _definition_fields(metadata: TableMetadata) -> tuple[Any, ...]:
    return (
        metadata.format_version,
        metadata.table_uuid,
        metadata.location,
        metadata.last_column_id,
        len(metadata.schemas),
        metadata.schemas,
        metadata.current_schema_id,
        metadata.partition_specs,
        metadata.default_spec_id,
        metadata.last_partition_id,
        metadata.sort_orders,
        metadata.default_sort_order_id,
        metadata.properties,
        metadata.expressions,
        metadata.statistics,
        metadata.partition_statistics,
        metadata.extra,
    )


@frozen
class TableRow:
    """A v4 table as one statement loads it."""

    metadata_location: str | None
    table_id: int
    version: int
    definition_id: str
    last_sequence_number: int
    last_updated_ms: int
    next_row_id: int
    refs: str
    definition: str | None
    current_record: str | None
    rendered_version: int | None

    @staticmethod
    def of(row: Row) -> TableRow:
        """From the columns of `LOAD_BY_NAME` and `LOAD_BY_ID`, in their order."""
        return TableRow(**dict(zip(TableRow.__annotations__, row, strict=True)))

    def metadata(self, definition: TableMetadata, *, path: str) -> TableMetadata:
        """The metadata of the row and its definition."""
        return replace(
            definition,
            last_sequence_number=self.last_sequence_number,
            last_updated_ms=self.last_updated_ms,
            next_row_id=self.next_row_id,
            refs=metadata_json.load_refs(self.refs, path=path),
        )


def volatile(metadata: TableMetadata) -> dict[str, Any]:
    """What every commit writes."""
    return {
        "last_sequence_number": metadata.last_sequence_number,
        "last_updated_ms": metadata.last_updated_ms,
        "next_row_id": metadata.next_row_id,
        "current_snapshot_id": metadata.current_snapshot_id,
        "refs": metadata_json.refs_text(metadata.refs),
    }


def snapshot_rows(
    table_id: int, version: int, snapshots: Iterable[Snapshot]
) -> list[dict[str, Any]]:
    """Rows for snapshots that one version adds."""
    values = (
        {"snapshot_id": snapshot.snapshot_id, "record": metadata_json.snapshot_text(snapshot)}
        for snapshot in snapshots
    )
    return _numbered(table_id, version, values)


def log_rows(
    table_id: int, version: int, entries: Iterable[SnapshotLogEntry | MetadataLogEntry]
) -> list[dict[str, Any]]:
    """Rows for entries of the snapshot log, or of the metadata log, that one version adds."""
    from dataclasses import asdict

    return _numbered(table_id, version, map(asdict, entries))


def _numbered(
    table_id: int, version: int, values: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    return [
        {"table_id": table_id, "version": version, "position": position, **row}
        for position, row in enumerate(values)
    ]


def snapshot_of(record: str, *, path: str, rejected: list[FormatError] | None = None) -> Snapshot:
    """A snapshot from its row; values that cannot be used are left out and noted in `rejected`."""
    if rejected is None:
        return _snapshot(record, path)
    return metadata_json.load_snapshot(record, path=path, rejected=rejected)


@lru_cache(maxsize=1024)
def _snapshot(record: str, path: str) -> Snapshot:
    """A snapshot is a value, and its row never changes: histories are read again and again."""
    return metadata_json.load_snapshot(record, path=path)


def read_snapshots(
    source: Database | DatabaseTransaction, table_id: int, snapshot_ids: Sequence[int], *, path: str
) -> dict[int, Snapshot]:
    """Snapshots by id; those that are not there are left out."""
    snapshots: dict[int, Snapshot] = {}
    for start in range(0, len(snapshot_ids), _BATCH):
        names = {
            f"id_{i}": snapshot_id
            for i, snapshot_id in enumerate(snapshot_ids[start : start + _BATCH])
        }
        placeholders = ", ".join(f":{name}" for name in names)
        for snapshot_id, record in source.rows(
            "SELECT snapshot_id, record FROM frazil_snapshots "
            f"WHERE table_id = :table_id AND snapshot_id IN ({placeholders})",
            {"table_id": table_id, **names},
        ):
            snapshots[snapshot_id] = snapshot_of(record, path=path)
    return snapshots


def define(transaction: DatabaseTransaction, table_id: int, definition: Definition) -> None:
    """Store a changed definition."""
    transaction.run(DEFINE, {"table_id": table_id, "definition": definition.text})
    transaction.run(
        NAME_DEFINITION,
        {
            "table_id": table_id,
            "definition_id": definition.definition_id,
            "location": sql_places.canonical(definition.metadata.location),
        },
    )


def remove_snapshots(
    transaction: DatabaseTransaction, table_id: int, removed: Collection[int]
) -> None:
    """Forget snapshots, and the log up to the last of them, which would have a hole."""
    transaction.run_each(
        REMOVE_SNAPSHOT,
        [{"table_id": table_id, "snapshot_id": snapshot_id} for snapshot_id in removed],
    )
    gone = set(removed)
    log = transaction.rows(SNAPSHOT_LOG, {"table_id": table_id})
    holes = [row for row in log if row[0] in gone]
    if holes:
        _, _, version, position = holes[-1]
        key = {"table_id": table_id, "version": version, "position": position}
        transaction.run(TRIM_SNAPSHOT_LOG, key)


def record_export(
    transaction: DatabaseTransaction,
    table_id: int,
    version: int,
    written: MetadataLogEntry,
    *,
    keep: int,
) -> list[str] | None:
    """Note a JSON file that was written; returns the files the log forgets for it.

    None when another session has noted this version, or a later one, first.
    """
    key = {"table_id": table_id}
    if not transaction.run(RENDERED, {**key, "version": version}):
        return None
    transaction.run(POINT_TO_JSON, {**key, "metadata_location": written.metadata_file})
    transaction.run_each(ADD_METADATA_LOG, log_rows(table_id, version, [written]))
    stale = transaction.rows(METADATA_LOG, key)[: -(keep + 1)]
    transaction.run_each(
        FORGET_METADATA_LOG, [{**key, "version": row[2], "position": row[3]} for row in stale]
    )
    return [str(row[0]) for row in stale]


def insert_table(
    transaction: DatabaseTransaction,
    names: Mapping[str, str],
    metadata: TableMetadata,
    history: History,
    *,
    metadata_location: str | None,
) -> int:
    """Enter a table at version 0 with its history; returns its id."""
    definition = Definition.of(metadata)
    ((table_id,),) = transaction.rows(
        _ADD_TABLE,
        {
            **names,
            **volatile(metadata),
            "location": sql_places.canonical(metadata.location),
            "version": 0,
            "rendered_version": None if metadata_location is None else 0,
            "definition_id": definition.definition_id,
        },
    )
    log = history.metadata_log
    if metadata_location is not None:
        written = MetadataLogEntry(
            metadata_file=metadata_location, timestamp_ms=metadata.last_updated_ms
        )
        log = (*log, written)
    transaction.run(_ADD_DEFINITION, {"table_id": table_id, "definition": definition.text})
    transaction.run_each(ADD_SNAPSHOT, snapshot_rows(table_id, 0, history.snapshots))
    transaction.run_each(ADD_SNAPSHOT_LOG, log_rows(table_id, 0, history.snapshot_log))
    transaction.run_each(ADD_METADATA_LOG, log_rows(table_id, 0, log))
    return int(table_id)


def delete_table(transaction: DatabaseTransaction, table_id: int) -> None:
    """Remove every row of a table of ours."""
    for table in (*HISTORY_TABLES, "frazil_definitions", "frazil_tables"):
        transaction.run(f"DELETE FROM {table} WHERE table_id = :table_id", {"table_id": table_id})


def read_history(transaction: DatabaseTransaction, table_id: int, *, path: str) -> History:
    """Every snapshot and both logs of a table."""
    key = {"table_id": table_id}
    return History(
        snapshots=tuple(
            snapshot_of(record, path=path) for _, record in transaction.rows(SNAPSHOTS, key)
        ),
        snapshot_log=tuple(
            SnapshotLogEntry(snapshot_id=SnapshotId(row[0]), timestamp_ms=row[1])
            for row in transaction.rows(SNAPSHOT_LOG, key)
        ),
        metadata_log=tuple(
            MetadataLogEntry(metadata_file=row[0], timestamp_ms=row[1])
            for row in transaction.rows(METADATA_LOG, key)
        ),
    )


def name_parameters(catalog: str, identifier: Identifier) -> dict[str, str]:
    """The key of a table's row."""
    return {
        "catalog": catalog,
        "namespace": dotted(identifier.namespace),
        "name": identifier.name,
    }


def table_versions(
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
