"""What a head object holds, and its JSON.

A unique id of this version and those of the versions before it; the table's name, and whether it is
dropped; its metadata, refs, newest snapshots and logs; and the names of the objects with older
snapshots. Parts that are large, the definition of a table with thousands of columns or its
thousands of refs, are objects of their own, which the head names. Makes no request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from frazil.catalog.names import Identifier
from frazil.catalog.objects.conditional_put import new_mark
from frazil.catalog.objects.history_objects import HistoryObject, Record, encode, parse
from frazil.errors import FormatError, Unsupported
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import (
    MetadataLogEntry,
    Snapshot,
    SnapshotId,
    SnapshotLogEntry,
    TableMetadata,
)
from frazil.value_classes import field, frozen, replace

HEAD_VERSION = 1
MAX_IDS = 256
"""Ids of earlier versions that a head keeps, so that a writer can tell whether it has landed."""
MAX_INLINE_BYTES = 32 * 1024
"""Larger parts become objects of their own."""


@frozen
class Part:
    """A piece of the head: its JSON, and the object that holds it when it is large."""

    document: Mapping[str, Any]
    object: str | None = None

    @staticmethod
    def of(document: Mapping[str, Any], kind: str, before: Part | None = None) -> Part:
        """A part to write. One that is as it was before keeps its object."""
        if before is not None and before.document == document:
            return before
        is_large = len(encode(document)) > MAX_INLINE_BYTES
        return Part(
            document=document, object=f"part-{kind}-{new_mark()}.json" if is_large else None
        )


@frozen
class HeadDocument:
    """One version of a head.

    `log_first` numbers the first entry of the snapshot log that counts, `log_offset` the first one
    that the head itself holds. `tagged` are older snapshots that refs name.
    """

    id: str = field(default_factory=new_mark)
    earlier_ids: tuple[str, ...] = ()
    identifier: Identifier
    is_dropped: bool = False
    version: int = 0
    created_ms: int
    location: str
    table_uuid: str
    definition: Part
    refs: Part
    last_sequence_number: int
    last_updated_ms: int
    next_row_id: int
    recent: tuple[Record, ...] = ()
    log: tuple[Record, ...] = ()
    log_offset: int = 0
    log_first: int = 0
    metadata_log: tuple[Record, ...] = ()
    history: tuple[HistoryObject, ...] = ()
    metadata_location: str | None = None
    rendered_version: int | None = None

    def followed_by(self, **changes: Any) -> HeadDocument:
        """The next version, which knows this one."""
        ids = (*self.earlier_ids, self.id)[-MAX_IDS:]
        return replace(self, id=new_mark(), earlier_ids=ids, **changes)

    def follows(self, other: str) -> bool:
        """Whether this is the version of an id, or a later one, as far as it remembers."""
        return other == self.id or other in self.earlier_ids

    @property
    def parts(self) -> tuple[Part, Part]:
        """The pieces that may be objects of their own."""
        return self.definition, self.refs

    @property
    def object_names(self) -> tuple[str, ...]:
        """The objects beside the head that it names."""
        parts = (part.object for part in self.parts if part.object is not None)
        return (*parts, *(history.name for history in self.history))

    def metadata(self) -> TableMetadata:
        """The table's metadata."""
        path = f"head of {self.identifier}"
        definition = _definition(_text(self.definition.document), path)
        return replace(
            definition,
            last_sequence_number=self.last_sequence_number,
            last_updated_ms=self.last_updated_ms,
            next_row_id=self.next_row_id,
            refs=metadata_json.load_refs(_text(self.refs.document["refs"]), path=path),
        )

    def snapshots_held(self) -> dict[int, Record]:
        """The snapshots that the head holds, by id: the newest, and those that refs name."""
        records = (*self.refs.document["snapshots"], *self.recent)
        return {int(record["snapshot-id"]): record for record in records}

    def log_entries(self) -> tuple[SnapshotLogEntry, ...]:
        """The entries of the snapshot log that the head holds."""
        return tuple(log_entry_of(record) for record in self.log)

    def metadata_log_entries(self) -> tuple[MetadataLogEntry, ...]:
        """The metadata log."""
        return tuple(
            MetadataLogEntry(
                metadata_file=str(record["metadata-file"]), timestamp_ms=record["timestamp-ms"]
            )
            for record in self.metadata_log
        )

    def encoded(self) -> bytes:
        """The bytes of the head object."""
        return encode(
            {
                "format": "frazil-head",
                "format-version": HEAD_VERSION,
                "id": self.id,
                "state": "dropped" if self.is_dropped else "live",
                "namespace": list(self.identifier.namespace),
                "name": self.identifier.name,
                "version": self.version,
                "created-ms": self.created_ms,
                "location": self.location,
                "table-uuid": self.table_uuid,
                "last-sequence-number": self.last_sequence_number,
                "last-updated-ms": self.last_updated_ms,
                "next-row-id": self.next_row_id,
                "metadata-location": self.metadata_location,
                "rendered-version": self.rendered_version,
                "definition": _stored(self.definition),
                "refs": _stored(self.refs),
                "snapshots": list(self.recent),
                "snapshot-log": list(self.log),
                "log-offset": self.log_offset,
                "log-first": self.log_first,
                "metadata-log": list(self.metadata_log),
                "history": [history.document() for history in self.history],
                "earlier-ids": list(self.earlier_ids),
            }
        )


@frozen
class Unresolved:
    """A head as read, whose large parts may still have to be fetched."""

    raw: Mapping[str, Any]
    path: str

    @staticmethod
    def of(data: bytes, path: str) -> Unresolved:
        """Parse a head object."""
        raw = parse(data, path)
        if raw.get("format") != "frazil-head":
            raise FormatError("is not the head of a table", path=path)
        if raw.get("format-version") != HEAD_VERSION:
            raise Unsupported(
                f"{path}: head of format-version {raw.get('format-version')!r}; this version of "
                f"Frazil reads {HEAD_VERSION}. Install a newer one",
                feature="a newer head",
            )
        return Unresolved(raw=raw, path=path)

    def missing(self) -> list[str]:
        """The names of the objects of its large parts."""
        stored = (self.raw["definition"], self.raw["refs"])
        return [str(part["object"]) for part in stored if "object" in part]

    def resolved(self, parts: Mapping[str, Mapping[str, Any]]) -> HeadDocument:
        """With the large parts."""
        try:
            return _document(self.raw, parts)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"is not a head: {error!r}", path=self.path) from error


def _document(raw: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> HeadDocument:
    return HeadDocument(
        id=str(raw["id"]),
        earlier_ids=tuple(raw["earlier-ids"]),
        identifier=Identifier(namespace=tuple(raw["namespace"]), name=str(raw["name"])),
        is_dropped=raw["state"] != "live",
        version=int(raw["version"]),
        created_ms=int(raw["created-ms"]),
        location=str(raw["location"]),
        table_uuid=str(raw["table-uuid"]),
        definition=_part(raw["definition"], parts),
        refs=_part(raw["refs"], parts),
        last_sequence_number=int(raw["last-sequence-number"]),
        last_updated_ms=int(raw["last-updated-ms"]),
        next_row_id=int(raw["next-row-id"]),
        recent=tuple(raw["snapshots"]),
        log=tuple(raw["snapshot-log"]),
        log_offset=int(raw["log-offset"]),
        log_first=int(raw["log-first"]),
        metadata_log=tuple(raw["metadata-log"]),
        history=tuple(HistoryObject.of(item) for item in raw["history"]),
        metadata_location=raw["metadata-location"],
        rendered_version=raw["rendered-version"],
    )


def _stored(part: Part) -> Mapping[str, Any]:
    return {"inline": part.document} if part.object is None else {"object": part.object}


def _part(stored: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> Part:
    name = stored.get("object")
    if name is None:
        return Part(document=stored["inline"])
    return Part(document=parts[str(name)], object=str(name))


def definition_document(metadata: TableMetadata) -> dict[str, Any]:
    """The parts of metadata that ordinary commits leave alone."""
    document: dict[str, Any] = json.loads(metadata_json.definition_text(metadata))
    return document


def refs_document(
    metadata: TableMetadata, recent: tuple[Record, ...], known: Mapping[int, Record]
) -> dict[str, Any]:
    """The refs, with the snapshots they name that are not among the newest."""
    newest = {int(record["snapshot-id"]) for record in recent}
    snapshot_ids = dict.fromkeys(int(ref.snapshot_id) for ref in metadata.refs.values())
    return {
        "refs": json.loads(metadata_json.refs_text(metadata.refs)),
        "snapshots": [known[number] for number in snapshot_ids if number not in newest],
    }


def snapshot_record(snapshot: Snapshot) -> Record:
    """A snapshot as its JSON has it."""
    record: Record = json.loads(metadata_json.snapshot_text(snapshot))
    return record


def snapshot_of(record: Record) -> Snapshot:
    """The snapshot of a record."""
    return _snapshot(_text(record))


def log_record(entry: SnapshotLogEntry) -> Record:
    """An entry of the snapshot log as JSON."""
    return {"snapshot-id": int(entry.snapshot_id), "timestamp-ms": entry.timestamp_ms}


def log_entry_of(record: Record) -> SnapshotLogEntry:
    """An entry of the snapshot log."""
    return SnapshotLogEntry(
        snapshot_id=SnapshotId(record["snapshot-id"]), timestamp_ms=record["timestamp-ms"]
    )


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))


@lru_cache(maxsize=64)
def _definition(text: str, path: str) -> TableMetadata:
    return metadata_json.load_definition(text, path=path)


@lru_cache(maxsize=1024)
def _snapshot(text: str) -> Snapshot:
    return metadata_json.load_snapshot(text, path="a snapshot in a head")
