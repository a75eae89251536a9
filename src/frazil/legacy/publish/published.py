"""What was published of a table so far: where it lies, and which leaves it stands for.

Published metadata lies in the table's metadata folder as `v<n>.metadata.json`, found through
`version-hint.text` as any Iceberg reader finds it. Beside it lies a state file that says which
published manifests stand for which leaves, so that the next publication writes only what is new;
the metadata names it in a property. Every file but the hint is written once and never changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from frazil.catalog import export
from frazil.errors import AlreadyExists, FormatError, NotFound
from frazil.format.metadata.metadata import TableMetadata
from frazil.legacy.publish.write_manifests import FieldSummary, ListRow
from frazil.legacy.read.open import VERSION_HINT, newest_version
from frazil.storage import Storage
from frazil.storage.base import (
    ConditionalStore,
    ObjectVersion,
    PreconditionFailed,
    StoreBusy,
    as_conditional,
)
from frazil.value_classes import field, frozen

FOLDER = "metadata/published"
"""Where the metadata that a server shows lies, below the table: apart from the table's own."""
STATE_PROPERTY = "frazil.published-state"
_ROW_FIELDS = (
    "path",
    "length",
    "spec_id",
    "is_deletes",
    "sequence_number",
    "min_sequence_number",
    "added_snapshot_id",
    "first_row_id",
)


@frozen
class DeleteFileRef:
    """A position delete file written for a deletion vector, as v2 needs it."""

    path: str
    size: int


@frozen
class Publication:
    """One publication. `leaves` maps a leaf, as its root names it, to manifests of it;
    `positions` maps a deletion vector to the position delete file that says the same."""

    version: int = 0
    format_version: int | None = None
    sequence_number: int = -1
    snapshot_id: int | None = None
    metadata_location: str | None = None
    manifest_list: str | None = None
    leaves: Mapping[str, tuple[ListRow, ...]] = field(default_factory=dict)
    positions: Mapping[str, DeleteFileRef] = field(default_factory=dict)
    state_location: str | None = None
    hint: ObjectVersion | None = None
    """The version hint's object as this process wrote it, where a store tells versions."""

    def for_version(self, format_version: int) -> Publication:
        """What of it can be used again for another publication."""
        if self.format_version == format_version:
            return self
        return Publication(version=self.version)

    @property
    def files(self) -> frozenset[str]:
        """Every file of this publication that was written for it or is named by it."""
        paths_in_use = {row.path for rows in self.leaves.values() for row in rows}
        paths_in_use |= {ref.path for ref in self.positions.values()}
        metadata_files = (self.metadata_location, self.manifest_list, self.state_location)
        return frozenset(paths_in_use | {path for path in metadata_files if path is not None})


def folder_of(metadata: TableMetadata) -> str:
    """Where metadata is published: readers look nowhere else."""
    return f"{metadata.location}/metadata"


def load(metadata: TableMetadata, storage: Storage) -> Publication:
    """The newest publication; an empty state, with the version in use, when there is none."""
    newest = newest_version(folder_of(metadata), storage)
    if newest is None:
        return Publication()
    path, version = newest
    properties = export.read(path, storage=storage)[0].properties
    where = properties.get(STATE_PROPERTY)
    if where is None:
        return Publication(version=version)
    try:
        text = storage.read(where)
    except NotFound:
        return Publication(version=version)
    return _parsed(text, path=where, version=version, metadata_location=path)


def published_files(metadata: TableMetadata, storage: Storage) -> frozenset[str]:
    """Files of the newest publication, which are not orphans although no snapshot references
    them."""
    publication = load(metadata, storage)
    if publication.metadata_location is None:
        return frozenset()
    return publication.files | {f"{folder_of(metadata)}/{VERSION_HINT}"}


def point_at(
    metadata: TableMetadata, version: int, storage: Storage, *, over: ObjectVersion | None = None
) -> ObjectVersion | None:
    """Make the version hint say a version. Readers look for later versions by themselves, so it
    may lag, and one that finds no hint lists the folder.

    A store with conditional requests replaces it, best in one request: `over` is the version of the
    object as it was written last, and the new one is returned."""
    path = f"{folder_of(metadata)}/{VERSION_HINT}"
    data = str(version).encode()
    store = as_conditional(storage)
    try:
        if store is None:
            storage.delete(path)
            storage.write_new(path, data)
            return None
        return store.put_new(path, data) if over is None else store.put_if(path, data, over)
    except (AlreadyExists, PreconditionFailed, StoreBusy):
        return None if store is None else _replaced(store, path, data)


def _replaced(store: ConditionalStore, path: str, data: bytes) -> ObjectVersion | None:
    try:
        current = store.get(path)
        assert current is not None
        return store.put_if(path, data, current.version)
    except (NotFound, PreconditionFailed, StoreBusy):  # another publisher was as quick
        return None


# --- JSON ------------------------------------------------------------------------------------


def dumps(state: Publication) -> bytes:
    """The state file's content."""
    return json.dumps(
        {
            "format-version": state.format_version,
            "sequence-number": state.sequence_number,
            "snapshot-id": state.snapshot_id,
            "manifest-list": state.manifest_list,
            "leaves": {key: [_row_json(row) for row in rows] for key, rows in state.leaves.items()},
            "positions": {key: [ref.path, ref.size] for key, ref in state.positions.items()},
        },
        separators=(",", ":"),
    ).encode("ascii")


def dump_rows(rows: tuple[ListRow, ...]) -> str:
    """The manifests of one leaf as text."""
    return json.dumps([_row_json(row) for row in rows], separators=(",", ":"))


def load_rows(text: str) -> tuple[ListRow, ...]:
    """The manifests of one leaf from text."""
    return tuple(_row(row) for row in json.loads(text))


def _row_json(row: ListRow) -> dict[str, Any]:
    document: dict[str, Any] = {name: getattr(row, name) for name in _ROW_FIELDS}
    document["files"], document["rows"] = list(row.files), list(row.rows)
    document["summaries"] = [
        [
            summary.contains_null,
            summary.contains_nan,
            None if summary.lower_bound is None else summary.lower_bound.hex(),
            None if summary.upper_bound is None else summary.upper_bound.hex(),
        ]
        for summary in row.summaries
    ]
    return document


def _parsed(text: bytes, *, path: str, version: int, metadata_location: str) -> Publication:
    try:
        raw = json.loads(text)
        return Publication(
            version=version,
            format_version=raw["format-version"],
            sequence_number=raw["sequence-number"],
            snapshot_id=raw["snapshot-id"],
            metadata_location=metadata_location,
            manifest_list=raw["manifest-list"],
            leaves={key: tuple(_row(row) for row in rows) for key, rows in raw["leaves"].items()},
            positions={
                key: DeleteFileRef(path=ref[0], size=ref[1])
                for key, ref in raw["positions"].items()
            },
            state_location=path,
        )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise FormatError(f"is not the state of a publication: {error!r}", path=path) from error


def _row(raw: Mapping[str, Any]) -> ListRow:
    summaries = tuple(
        FieldSummary(
            contains_null=contains_null,
            contains_nan=contains_nan,
            lower_bound=None if lower is None else bytes.fromhex(lower),
            upper_bound=None if upper is None else bytes.fromhex(upper),
        )
        for contains_null, contains_nan, lower, upper in raw["summaries"]
    )
    added, existing, deleted = raw["files"]
    added_rows, existing_rows, deleted_rows = raw["rows"]
    return ListRow(
        **{name: raw[name] for name in _ROW_FIELDS},
        files=(added, existing, deleted),
        rows=(added_rows, existing_rows, deleted_rows),
        summaries=summaries,
    )


__all__ = [
    "FOLDER",
    "DeleteFileRef",
    "Publication",
    "dump_rows",
    "dumps",
    "folder_of",
    "load",
    "load_rows",
    "point_at",
    "published_files",
]
