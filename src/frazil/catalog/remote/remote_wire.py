"""Tables as Frazil's own client and server exchange them: states, drafts and histories as JSON.

What a commit leaves alone (the definition) travels only when the other side does not have it, named
by its id; snapshots travel as the text that the catalog stores. Both sides use this module, so a
value is encoded and decoded in one place. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frazil.catalog.names import Identifier
from frazil.catalog.sql.sql_rows import Definition, is_redefined
from frazil.commit.head import Draft, State
from frazil.errors import FormatError, InvalidInput
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

Document = dict[str, Any]
_HEADER_BYTES = 4
_MAX_HEADER_BYTES = 1 << 20


@frozen
class ClientState:
    """What a client has of a table: the id of its definition, and snapshots up to a sequence
    number."""

    definition_id: str = ""
    sequence_number: int = -1

    def document(self) -> Document:
        """As it is sent."""
        return {"definition-id": self.definition_id, "sequence-number": self.sequence_number}


# Metadata


def volatile_document(metadata: TableMetadata) -> Document:
    """What every commit changes."""
    return {
        "last-sequence-number": metadata.last_sequence_number,
        "last-updated-ms": metadata.last_updated_ms,
        "next-row-id": metadata.next_row_id,
        "refs": metadata_json.refs_text(metadata.refs),
    }


def metadata_of(definition: TableMetadata, document: Mapping[str, Any]) -> TableMetadata:
    """A definition with what the last commit changed."""
    rejected: list[FormatError] = []
    refs = metadata_json.load_refs(str(document["refs"]), path="refs", rejected=rejected)
    _refuse(rejected)
    return replace(
        definition,
        last_sequence_number=int(document["last-sequence-number"]),
        last_updated_ms=int(document["last-updated-ms"]),
        next_row_id=int(document["next-row-id"]),
        refs=refs,
    )


def definition_of(text: str) -> TableMetadata:
    """A definition; unlike one that a catalog holds already, nothing of it is left out."""
    rejected: list[FormatError] = []
    definition = metadata_json.load_definition(text, path="table definition", rejected=rejected)
    _refuse(rejected)
    return definition


def snapshot_of(text: str) -> Snapshot:
    """A snapshot; nothing of it is left out."""
    rejected: list[FormatError] = []
    snapshot = metadata_json.load_snapshot(text, path="snapshot", rejected=rejected)
    _refuse(rejected)
    return snapshot


def _refuse(rejected: Sequence[FormatError]) -> None:
    if rejected:
        raise InvalidInput(str(rejected[0]))


def metadata_document(metadata: TableMetadata, history: History | None = None) -> Document:
    """A whole table."""
    recorded = history or History()
    return {
        "definition": metadata_json.definition_text(metadata),
        **volatile_document(metadata),
        "history": history_document(recorded),
    }


def whole_metadata(document: Mapping[str, Any]) -> tuple[TableMetadata, History]:
    """A whole table from its document."""
    metadata = metadata_of(definition_of(str(document["definition"])), document)
    return metadata, history_of(document["history"])


def history_document(history: History) -> Document:
    """Every snapshot and both logs."""
    return {
        "snapshots": [metadata_json.snapshot_text(snapshot) for snapshot in history.snapshots],
        "snapshot-log": [[entry.snapshot_id, entry.timestamp_ms] for entry in history.snapshot_log],
        "metadata-log": [
            [entry.metadata_file, entry.timestamp_ms] for entry in history.metadata_log
        ],
    }


def history_of(document: Mapping[str, Any]) -> History:
    """A history from its document."""
    return History(
        snapshots=tuple(snapshot_of(text) for text in document["snapshots"]),
        snapshot_log=tuple(
            SnapshotLogEntry(snapshot_id=SnapshotId(int(id)), timestamp_ms=int(at))
            for id, at in document["snapshot-log"]
        ),
        metadata_log=tuple(
            MetadataLogEntry(metadata_file=str(file), timestamp_ms=int(at))
            for file, at in document["metadata-log"]
        ),
    )


# States


def state_document(state: State, definition: Definition, known: ClientState) -> Document:
    """A state for a client that has part of it."""
    document: Document = {
        "version": state.version,
        "definition-id": definition.definition_id,
        **volatile_document(state.metadata),
        "snapshots": [
            metadata_json.snapshot_text(snapshot)
            for snapshot in state.snapshots.values()
            if snapshot.sequence_number > known.sequence_number
        ],
    }
    if state.metadata_location is not None:
        document["metadata-location"] = state.metadata_location
    if definition.definition_id != known.definition_id:
        document["definition"] = definition.text
    return document


def state_of(
    document: Mapping[str, Any],
    *,
    definition: Definition | None,
    seen: Mapping[int, Snapshot],
    fetch: Callable[[list[int]], Mapping[int, Snapshot]],
) -> tuple[State, Definition]:
    """A state from its document, with what the client had; `fetch` brings snapshots it lacks."""
    text = document.get("definition")
    if text is not None:
        read = metadata_json.load_definition(str(text), path="table definition")
        definition = Definition(
            definition_id=str(document["definition-id"]), metadata=read, text=""
        )
    if definition is None or definition.definition_id != document["definition-id"]:
        raise InvalidInput("the answer has no table definition; expected one")
    metadata = metadata_of(definition.metadata, document)
    sent = [metadata_json.load_snapshot(text, path="snapshot") for text in document["snapshots"]]
    snapshots = {**seen, **{int(snapshot.snapshot_id): snapshot for snapshot in sent}}
    ref_ids = dict.fromkeys(int(ref.snapshot_id) for ref in metadata.refs.values())
    missing = [snapshot_id for snapshot_id in ref_ids if snapshot_id not in snapshots]
    if missing:
        snapshots.update(fetch(missing))
    state = State(
        version=int(document["version"]),
        metadata=metadata,
        snapshots={snapshot_id: snapshots[snapshot_id] for snapshot_id in ref_ids},
        metadata_location=document.get("metadata-location"),
    )
    return state, definition


# Drafts


def draft_document(base: State, draft: Draft) -> Document:
    """A draft as the difference to its base."""
    document: Document = {
        "base-version": base.version,
        **volatile_document(draft.metadata),
        "added": [metadata_json.snapshot_text(snapshot) for snapshot in draft.added_snapshots],
        "removed": [int(snapshot_id) for snapshot_id in draft.removed_snapshot_ids],
    }
    if is_redefined(base.metadata, draft.metadata):
        document["definition"] = metadata_json.definition_text(draft.metadata)
    return document


def draft_of(document: Mapping[str, Any], base: State) -> Draft:
    """A draft on the base that it was made for."""
    text = document.get("definition")
    definition = base.metadata if text is None else definition_of(text)
    return Draft(
        metadata=metadata_of(definition, document),
        added_snapshots=tuple(snapshot_of(text) for text in document["added"]),
        removed_snapshot_ids=tuple(document["removed"]),
    )


# Names and frames


def name_document(identifier: Identifier) -> list[str]:
    """A full name as the list of its parts."""
    return [*identifier.namespace, identifier.name]


def framed(header: bytes, body: Any) -> bytes:
    """A JSON header and the bytes that follow it."""
    return len(header).to_bytes(_HEADER_BYTES, "big") + header + bytes(body)


def unframed(data: bytes) -> tuple[bytes, memoryview]:
    """The two parts of a frame."""
    size = int.from_bytes(data[:_HEADER_BYTES], "big")
    end = _HEADER_BYTES + size
    if len(data) < _HEADER_BYTES or size > _MAX_HEADER_BYTES or end > len(data):
        raise InvalidInput("the body is not a header and entries; it is cut short")
    return data[_HEADER_BYTES:end], memoryview(data)[end:]


@frozen
class Definitions:
    """Definitions of tables, rendered once for as long as they stay what they are."""

    _known: dict[str, Definition] = field(default_factory=dict)

    def of(self, key: str, metadata: TableMetadata) -> Definition:
        """The definition of a table's current metadata."""
        definition = self._known.get(key)
        if definition is None or is_redefined(definition.metadata, metadata):
            definition = self._known[key] = Definition.of(metadata)
        return definition

    def forget(self, key: str) -> None:
        """The table is gone, or not used any more."""
        self._known.pop(key, None)
