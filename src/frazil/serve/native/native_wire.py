"""Bodies of requests of Frazil's own client. A field that is not here is refused."""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.catalog.remote import remote_wire
from frazil.serve.wire.wire import Long


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

    since_ms: Long | None = None


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
    snapshot_log: list[tuple[Long, Long]]
    metadata_log: list[tuple[str, Long]]


class TableShape(Shape):
    """A whole table."""

    definition: str
    last_sequence_number: Long
    last_updated_ms: Long
    next_row_id: Long
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


class ClientStateShape(Shape):
    """What the client has of a table."""

    definition_id: str = ""
    sequence_number: Long = -1

    def value(self) -> remote_wire.ClientState:
        """As both sides use it."""
        return remote_wire.ClientState(
            definition_id=self.definition_id, sequence_number=self.sequence_number
        )


class Keyed(Shape):
    """A table by its key."""

    key: str
    known: ClientStateShape = msgspec.field(default_factory=ClientStateShape)


class MaybeKeyed(Shape):
    """A table, or the catalog."""

    key: str | None = None


class WithId(Shape):
    """A table and a snapshot's id, or a time."""

    key: str
    id: Long
    known: ClientStateShape = msgspec.field(default_factory=ClientStateShape)


class WithIds(Shape):
    """A table and ids of snapshots."""

    key: str
    ids: list[Long]


class DraftShape(Shape):
    """The next state of a table, as the difference to its base."""

    base_version: Long
    last_sequence_number: Long
    last_updated_ms: Long
    next_row_id: Long
    refs: str
    added: list[str]
    removed: list[Long]
    definition: str | None = None


class SwapShape(Shape):
    """One table to swap."""

    key: str
    known: ClientStateShape
    draft: DraftShape
    turn: str | None = None


class Swap(Shape):
    """Tables to swap together."""

    swaps: list[SwapShape]


class TakeTurn(Keyed):
    """A turn of a table, for a writer that has chosen this name."""

    writer: str = ""


class Turn(Shape):
    """A turn that was given."""

    turn: str


class Append(Shape):
    """The header of an append; entries follow it."""

    key: str
    branch: str
    summary: dict[str, str]
    append_id: Long
    writer: str
    known: ClientStateShape
    since_version: Long
    since_sequence_number: Long
    is_repeated: bool = False


class Prefix(Shape):
    """Notes whose key starts so."""

    key: str
    prefix: str


class Names(Shape):
    """Notes by key."""

    key: str
    names: list[str]


class Claim(Shape):
    """A published version that a client is about to write."""

    key: str
    version: Long
    by: str


class CreateView(Shape):
    """A view to enter."""

    name: list[str]
    metadata: dict[str, Any]


class ReplaceView(Shape):
    """A view to replace."""

    name: list[str]
    version: Long
    metadata: dict[str, Any]


def builtins_of(shape: Shape) -> dict[str, Any]:
    """A shape as the values that `remote_wire` reads."""
    document: dict[str, Any] = msgspec.to_builtins(shape)
    return document
