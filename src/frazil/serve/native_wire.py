"""Bodies of requests of Frazil's own client. A field that is not here is refused."""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.catalog import remote_wire
from frazil.serve.rest_errors import bad_request


class Shape(msgspec.Struct, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """What all bodies have in common."""


class Nothing(Shape):
    """No parameters."""


class InNamespace(Shape):
    """Something in a namespace; at the top without one."""

    namespace: list[str]


class SetNamespace(Shape):
    """Properties of a namespace."""

    namespace: list[str]
    updates: dict[str, str]
    removals: list[str] = []


class Since(Shape):
    """A time, or none."""

    since_ms: int | None = None


class Named(Shape):
    """A table or view."""

    name: list[str]


class Rename(Shape):
    """A table or view, and its new name."""

    name: list[str]
    to: list[str]


class HistoryShape(Shape):
    """Every snapshot and both logs."""

    snapshots: list[str]
    snapshot_log: list[tuple[int, int]]
    metadata_log: list[tuple[str, int]]


class TableShape(Shape):
    """A whole table."""

    definition: str
    last_sequence_number: int
    last_updated_ms: int
    next_row_id: int
    refs: str
    history: HistoryShape


class CreateTable(Shape):
    """A table to enter."""

    name: list[str]
    table: TableShape


class Register(Shape):
    """A table to enter from its metadata file."""

    name: list[str]
    metadata_location: str
    location: str | None = None


class Upgrade(Shape):
    """A v1-v3 table, and what it becomes."""

    name: list[str]
    metadata_location: str
    table: TableShape


class KnownShape(Shape):
    """What the client has of a table."""

    definition_id: str = ""
    sequence_number: int = -1

    def value(self) -> remote_wire.Known:
        """As both sides use it."""
        return remote_wire.Known(
            definition_id=self.definition_id, sequence_number=self.sequence_number
        )


class Keyed(Shape):
    """A table by its key."""

    key: str
    known: KnownShape = msgspec.field(default_factory=KnownShape)


class MaybeKeyed(Shape):
    """A table, or the catalog."""

    key: str | None = None


class WithId(Shape):
    """A table and a snapshot's id, or a time."""

    key: str
    id: int
    known: KnownShape = msgspec.field(default_factory=KnownShape)


class WithIds(Shape):
    """A table and ids of snapshots."""

    key: str
    ids: list[int]


class DraftShape(Shape):
    """The next state of a table, as the difference to its base."""

    base_version: int
    last_sequence_number: int
    last_updated_ms: int
    next_row_id: int
    refs: str
    added: list[str]
    removed: list[int]
    definition: str | None = None


class SwapShape(Shape):
    """One table to swap."""

    key: str
    known: KnownShape
    draft: DraftShape
    turn: str | None = None


class Swap(Shape):
    """Tables to swap together."""

    swaps: list[SwapShape]


class Turn(Shape):
    """A turn that was given."""

    turn: str


class Append(Shape):
    """The header of an append; entries follow it."""

    key: str
    branch: str
    summary: dict[str, str]
    append_id: int
    writer: str
    known: KnownShape
    since_version: int
    since_sequence_number: int
    is_repeated: bool = False


class Prefix(Shape):
    """Notes whose key starts so."""

    key: str | None
    prefix: str


class Names(Shape):
    """Notes by key."""

    key: str | None
    names: list[str]


class AddNotes(Shape):
    """Notes to add."""

    key: str | None
    notes: dict[str, str]


class CreateView(Shape):
    """A view to enter."""

    name: list[str]
    metadata: dict[str, Any]


class ReplaceView(Shape):
    """A view to replace."""

    name: list[str]
    version: int
    metadata: dict[str, Any]


def decoded(data: bytes, shape: type[Any]) -> Any:
    """A body as a shape; 400 when it is not one."""
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"Malformed request: {error}") from error


def plain(shape: Shape) -> dict[str, Any]:
    """A shape as the values that `remote_wire` reads."""
    found: dict[str, Any] = msgspec.to_builtins(shape)
    return found
