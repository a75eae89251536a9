"""A writer of v2 tables made by hand: manifests by PyIceberg's Avro writer, commits as plain JSON.

It can send what no client at hand sends: equality deletes as Flink writes them, files that lie
elsewhere, requests that make no sense. Nothing here uses Frazil.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    read_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema

from tests.support.legacy_files import IO, entry, manifest_row, write_list, write_manifest

_NUMBERS = count(1000)


@dataclass
class RawClient:
    """Writes one unpartitioned table of a server; `http` is a `TestClient` or the like."""

    http: Any
    folder: Path
    """Where its files go."""
    path: str = "/v1/v2/namespaces/shop/tables/orders"
    headers: dict[str, str] = field(default_factory=dict)

    def load(self) -> dict[str, Any]:
        """The table's metadata as v2."""
        answer = self.http.get(self.path, headers=self.headers)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["metadata"]
        return found

    def data(self, rows: pa.Table, *, path: str | None = None) -> ManifestEntry:
        """A data file with these rows; `path` states another place than where it is."""
        return self._file(rows, DataFileContent.DATA, path=path)

    def equality_deletes(self, keys: pa.Table, *, path: str | None = None) -> ManifestEntry:
        """A file that deletes older rows by the columns of `keys`; `path` as for data."""
        ids = [_field_id(column) for column in keys.schema]
        return self._file(keys, DataFileContent.EQUALITY_DELETES, path=path, equality_ids=ids)

    def _file(
        self, rows: pa.Table, content: DataFileContent, *, path: str | None = None, **more: Any
    ) -> ManifestEntry:
        place = self.folder / f"{next(_NUMBERS)}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, place)
        return entry(
            2,
            path=f"file://{place}" if path is None else path,
            content=content,
            record_count=rows.num_rows,
            file_size_in_bytes=place.stat().st_size,
            **more,
        )

    def updates(
        self,
        *files: ManifestEntry,
        operation: str = "append",
        lists: str | None = None,
        base: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The body of a commit that adds files to the current snapshot, or to that of `base`."""
        known = base or self.load()
        parent = known.get("current-snapshot-id")
        parent = None if parent in (None, -1) else parent
        number = next(_NUMBERS)
        kept: list[ManifestFile] = []
        for snapshot in known.get("snapshots", ()):
            if snapshot["snapshot-id"] == parent:
                kept = list(read_manifest_list(IO.new_input(snapshot["manifest-list"])))
        is_delete = [each.data_file.content != DataFileContent.DATA for each in files]
        sequence = known["last-sequence-number"] + 1
        for deletes in (False, True):
            mine = [each for each, one in zip(files, is_delete, strict=True) if one is deletes]
            if mine:
                kept.append(self._manifest(known, mine, number, sequence, deletes=deletes))
        where = self.folder / f"snap-{number}.avro"
        write_list(where, 2, kept)
        snapshot = {
            "snapshot-id": number,
            "sequence-number": sequence,
            "timestamp-ms": known["last-updated-ms"] + 1,
            "manifest-list": f"file://{where}" if lists is None else lists,
            "summary": {"operation": operation},
        }
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent
        ref = {"ref-name": "main", "type": "branch", "snapshot-id": number}
        expected = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent}
        return {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": known["table-uuid"]},
                expected,
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", **ref},
            ],
        }

    def _manifest(
        self,
        known: dict[str, Any],
        files: Sequence[ManifestEntry],
        snapshot_id: int,
        sequence: int,
        *,
        deletes: bool,
    ) -> ManifestFile:
        for each in files:
            each.snapshot_id = snapshot_id
        place = self.folder / f"m-{next(_NUMBERS)}.avro"
        place.parent.mkdir(parents=True, exist_ok=True)
        schema = Schema.model_validate(known["schemas"][-1])
        data = write_manifest(place, 2, files, schema=schema, spec=UNPARTITIONED_PARTITION_SPEC)
        return manifest_row(
            2,
            path=f"file://{place}",
            manifest_length=len(data),
            content=ManifestContent.DELETES if deletes else ManifestContent.DATA,
            added_snapshot_id=snapshot_id,
            sequence_number=sequence,
            min_sequence_number=sequence,
            added_files_count=len(files),
            added_rows_count=sum(each.data_file.record_count for each in files),
        )

    def post(self, body: dict[str, Any]) -> Any:
        """Send a commit."""
        return self.http.post(self.path, json=body, headers=self.headers)


def with_ids(rows: pa.Table, **ids: int) -> pa.Table:
    """Rows whose columns carry field ids."""
    fields = [
        pa.field(name, rows.schema.field(name).type, metadata={"PARQUET:field_id": str(number)})
        for name, number in ids.items()
    ]
    return rows.select(list(ids)).cast(pa.schema(fields))


def _field_id(column: pa.Field) -> int:
    return int(column.metadata[b"PARQUET:field_id"])
