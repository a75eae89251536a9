"""Paimon tables laid out by hand in a directory, file by file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.unit.paimon.encode import EMPTY_STATS, avro_file, manifest_schema
from tests.unit.paimon.test_manifest_tables import LIST_FIELDS


def schema_json(columns: Sequence[tuple[str, Any]], **changes: Any) -> dict[str, Any]:
    """A schema version with ids from 0 in the order of the fields."""
    made: dict[str, Any] = {
        "version": 3,
        "id": 0,
        "fields": [{"id": i, "name": name, "type": t} for i, (name, t) in enumerate(columns)],
        "highestFieldId": len(columns) - 1,
        "partitionKeys": [],
        "primaryKeys": [],
        "options": {},
        "timeMillis": 1,
    }
    return {**made, **changes}


def snapshot_json(snapshot_id: int, **changes: Any) -> dict[str, Any]:
    """A snapshot with the fields every version has."""
    made: dict[str, Any] = {
        "version": 3,
        "id": snapshot_id,
        "schemaId": 0,
        "baseManifestList": f"manifest-list-{snapshot_id}-0",
        "deltaManifestList": f"manifest-list-{snapshot_id}-1",
        "commitUser": "u",
        "commitIdentifier": 1,
        "commitKind": "APPEND",
        "timeMillis": 1000 * snapshot_id,
    }
    return {**made, **changes}


class Place:
    """A table directory under construction."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, content: bytes | dict[str, Any]) -> None:
        """One file."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        target.write_bytes(raw)

    def schema(self, *fields: tuple[str, Any], **changes: Any) -> None:
        """A schema version."""
        made = schema_json(fields, **changes)
        self.write(f"schema/schema-{made['id']}", made)

    def snapshot(self, snapshot_id: int, entries: Sequence[dict[str, Any]], **changes: Any) -> None:
        """A snapshot whose delta is one manifest with these entries, and whose base is empty."""
        name = f"manifest-{snapshot_id}"
        self.write(f"manifest/{name}", avro_file(manifest_schema(), list(entries)))
        schema = {"type": "record", "name": "r", "fields": LIST_FIELDS}
        row = {
            "_VERSION": 2,
            "_FILE_NAME": name,
            "_FILE_SIZE": 1,
            "_NUM_ADDED_FILES": 1,
            "_NUM_DELETED_FILES": 0,
            "_PARTITION_STATS": EMPTY_STATS,
            "_SCHEMA_ID": 0,
        }
        self.write(f"manifest/manifest-list-{snapshot_id}-0", avro_file(schema, []))
        self.write(f"manifest/manifest-list-{snapshot_id}-1", avro_file(schema, [row]))
        self.write(f"snapshot/snapshot-{snapshot_id}", snapshot_json(snapshot_id, **changes))
