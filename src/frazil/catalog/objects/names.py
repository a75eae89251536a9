"""Names of tables as objects: who has a name, and how one is taken, given up and taken over.

A name object says which table claims the name. The claim holds if the head of that table says the
same; a name whose head says otherwise is nobody's. Names are given up by making the object empty,
never by deleting it: a DELETE has no condition on many stores and could hit the next owner.

A claim that its head does not confirm may be a rename under way. It may be taken over after ten
minutes: the taker first gives the claimant's head another version, so that a renamer that was
stalled cannot confirm it any more (which stops by itself after five).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from frazil.catalog.names import Identifier
from frazil.catalog.objects.conditional_put import Refused, Written, new_mark, put, read
from frazil.catalog.objects.head_document import HeadDocument
from frazil.catalog.objects.head_object import HeadObject, StoredHead
from frazil.catalog.objects.history_objects import encode, parse
from frazil.catalog.objects.layout import Layout
from frazil.errors import AlreadyExists, CommitConflict, NotFound
from frazil.storage.base import ConditionalStore, ObjectVersion, StoredObject
from frazil.value_classes import frozen

MAX_CLAIM_MS = 10 * 60 * 1000
"""An unconfirmed claim that is older may be taken over."""
MAX_RENAME_S = 300.0
"""A rename stops by itself after this time, well before its claim may be taken over."""
_MAX_TRIES = 20


@frozen
class NameEntry:
    """What a name object says. A table of other Iceberg writers has a metadata file instead of a
    head."""

    id: str
    since_ms: int
    table_uuid: str | None = None
    location: str | None = None
    metadata_location: str | None = None

    def encoded(self) -> bytes:
        """The bytes of the object."""
        document: dict[str, Any] = {"id": self.id, "since-ms": self.since_ms}
        if self.metadata_location is not None:
            document["metadata-location"] = self.metadata_location
        else:
            document |= {"table-uuid": self.table_uuid, "location": self.location}
        return encode(document)

    @staticmethod
    def of(data: bytes, path: str) -> NameEntry:
        """From the bytes of the object."""
        document = parse(data, path)
        return NameEntry(
            id=str(document["id"]),
            since_ms=int(document["since-ms"]),
            table_uuid=document.get("table-uuid"),
            location=document.get("location"),
            metadata_location=document.get("metadata-location"),
        )


@frozen
class HeldName:
    """A name object that is not empty, with the head it leads to, if there is one."""

    entry: NameEntry
    version: ObjectVersion
    head: HeadObject | None = None
    stored_head: StoredHead | None = None

    def is_confirmed(self, identifier: Identifier) -> bool:
        """Whether the name is a table's."""
        if self.entry.metadata_location is not None:
            return True
        if self.stored_head is None or self.stored_head.document.is_dropped:
            return False
        document = self.stored_head.document
        return document.table_uuid == self.entry.table_uuid and document.identifier == identifier

    @property
    def may_be_confirmed(self) -> bool:
        """Whether a rename under way may still make the claim hold."""
        if self.stored_head is None or self.stored_head.document.is_dropped:
            return False
        return self.stored_head.document.table_uuid == self.entry.table_uuid


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Names:
    """The name objects of one warehouse."""

    def __init__(
        self,
        store: ConditionalStore,
        layout: Layout,
        *,
        head_at: Callable[[str], HeadObject],
        now_ms: Callable[[], int] = _now_ms,
    ) -> None:
        self._store = store
        self._layout = layout
        self._head_at = head_at
        self.now_ms = now_ms

    def find(self, identifier: Identifier) -> HeldName | None:
        """What claims a name, and its head: two requests."""
        stored = read(self._store, self._layout.name(identifier))
        return None if stored is None or not stored.data else self._held(identifier, stored)

    def claim(
        self,
        identifier: Identifier,
        *,
        table_uuid: str | None = None,
        location: str | None = None,
        metadata_location: str | None = None,
        instead_of: HeldName | None = None,
    ) -> HeldName:
        """Take a name that nobody has; AlreadyExists when somebody does. `instead_of` is an owner
        that gives way."""
        path = self._layout.name(identifier)
        entry = NameEntry(
            id=new_mark(),
            since_ms=self.now_ms(),
            table_uuid=table_uuid,
            location=location,
            metadata_location=metadata_location,
        )
        over = None if instead_of is None else instead_of.version
        for _ in range(_MAX_TRIES):
            outcome = put(self._store, path, entry.encoded(), over=over, mark=entry.id)
            if isinstance(outcome, Written):
                version = outcome.version
                if version is None:
                    break
                return HeldName(entry=entry, version=version)
            if instead_of is not None:
                break
            over = self._free_version(identifier, outcome)
        raise AlreadyExists(f"table {identifier} already exists")

    def release(self, identifier: Identifier, held: HeldName) -> None:
        """Give a name up, unless it is another's by now."""
        put(self._store, self._layout.name(identifier), b"", over=held.version, mark="\0")

    def heal(self, identifier: Identifier, held: HeldName) -> None:
        """Give up a name that nobody confirms, and that is too old for a rename under way."""
        if self._is_old(held):
            self.release(identifier, held)

    def is_still(self, identifier: Identifier, held: HeldName) -> bool:
        """Whether a name object is unchanged."""
        stored = read(self._store, self._layout.name(identifier))
        return stored is not None and stored.version == held.version

    def confirm_rename(
        self,
        old: Identifier,
        new: Identifier,
        held: HeldName,
        claim: HeldName,
        started: float,
    ) -> None:
        """Swap the head's name, which is what renames the table."""
        assert held.head is not None
        stored_head = held.stored_head
        while True:
            if stored_head is None or not is_live(stored_head.document, old):
                raise NotFound(f"table {old} does not exist")
            # The head was read before this check: if the claim is taken over after it, the taker
            # has given the head another version by then, and the swap below fails.
            if time.monotonic() - started > MAX_RENAME_S:
                raise CommitConflict(f"renaming {old} took too long; nothing was renamed")
            if not self.is_still(new, claim):
                raise AlreadyExists(f"table {new} already exists")
            outcome = held.head.write(
                stored_head.document.followed_by(identifier=new), over=stored_head
            )
            if isinstance(outcome, Written):
                return
            current = outcome.current
            stored_head = None if current is None else held.head.parsed(current, stored_head)

    def _held(self, identifier: Identifier, stored: StoredObject) -> HeldName:
        entry = NameEntry.of(stored.data, self._layout.name(identifier))
        if entry.location is None:
            return HeldName(entry=entry, version=stored.version)
        head = self._head_at(entry.location)
        return HeldName(entry=entry, version=stored.version, head=head, stored_head=head.find())

    def _free_version(self, identifier: Identifier, refused: Refused) -> ObjectVersion | None:
        """The version of a name object that may be replaced; AlreadyExists when none may."""
        stored = refused.current
        if stored is None:
            return None
        if not stored.data:
            return stored.version
        held = self._held(identifier, stored)
        if held.is_confirmed(identifier):
            raise AlreadyExists(f"table {identifier} already exists")
        if held.may_be_confirmed:
            if not self._is_old(held):
                raise AlreadyExists(
                    f"{identifier}: a table is being renamed to or from this name; if its writer "
                    "was stopped, the name is free ten minutes after that"
                )
            assert held.head is not None
            assert held.stored_head is not None
            held.head.fence(held.stored_head)
        return stored.version

    def _is_old(self, held: HeldName) -> bool:
        return self.now_ms() - held.entry.since_ms > MAX_CLAIM_MS


def is_live(document: HeadDocument, identifier: Identifier) -> bool:
    """Whether a head is that of a table with this name."""
    return not document.is_dropped and document.identifier == identifier
