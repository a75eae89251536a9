"""The object that is a table's pointer: read, with its large parts, and swapped by If-Match."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from frazil.catalog.objects.conditional_put import Refused, Written, put, read
from frazil.catalog.objects.head_document import HeadDocument, Unresolved
from frazil.catalog.objects.history_objects import encode, parse
from frazil.catalog.objects.layout import folder_of
from frazil.errors import AlreadyExists, CommitConflict, NotFound
from frazil.storage.base import ConditionalStore, ObjectVersion, StoredObject
from frazil.value_classes import frozen

_MAX_CHANGES = 200
_MAX_WAIT_S = 0.05


@frozen
class StoredHead:
    """A head as read, and the version of its object to compare."""

    document: HeadDocument
    version: ObjectVersion


class HeadObject:
    """One head object."""

    def __init__(self, store: ConditionalStore, path: str) -> None:
        self.store = store
        self.path = path
        self.folder = folder_of(path)

    def read(self, last: StoredHead | None = None) -> StoredHead:
        """The current head in one request, which brings nothing if it is the one read last."""
        stored = self.store.get(self.path, unless=None if last is None else last.version)
        if stored is None:
            assert last is not None
            return last
        return self.parsed(stored, last)

    def find(self) -> StoredHead | None:
        """The current head, or None when there is none."""
        stored = read(self.store, self.path)
        return None if stored is None else self.parsed(stored)

    def parsed(self, stored: StoredObject, last: StoredHead | None = None) -> StoredHead:
        """A head with its large parts; those of the head read last are not fetched again."""
        unresolved = Unresolved.of(stored.data, self.path)
        held = () if last is None else last.document.parts
        parts = {part.object: part.document for part in held if part.object is not None}
        for name in unresolved.missing():
            if name not in parts:
                path = f"{self.folder}/{name}"
                parts[name] = parse(self.store.read(path), path)
        return StoredHead(document=unresolved.resolved(parts), version=stored.version)

    def write(self, document: HeadDocument, *, over: StoredHead | None) -> Written | Refused:
        """Write a head that follows another, or the first; new large parts come before it."""
        held = () if over is None else over.document.parts
        there = {part.object for part in held}
        for part in document.parts:
            if part.object is not None and part.object not in there:
                self._write_part(part.object, encode(part.document))
        version = None if over is None else over.version
        return put(self.store, self.path, document.encoded(), over=version, mark=document.id)

    def change(
        self, edit: Callable[[HeadDocument], HeadDocument | None], last: StoredHead | None = None
    ) -> StoredHead:
        """Apply a change that holds for any version; None says that there is nothing to do."""
        current = self.read() if last is None else last
        for _ in range(_MAX_CHANGES):
            document = edit(current.document)
            if document is None:
                return current
            outcome = self.write(document, over=current)
            if isinstance(outcome, Written):
                if outcome.version is None:
                    return self.read()
                return StoredHead(document=document, version=outcome.version)
            if outcome.current is None:
                raise NotFound(f"{self.path}: the head of the table was removed")
            current = self.parsed(outcome.current, current)
            if current.document.follows(document.id):
                return current
            time.sleep(random.random() * _MAX_WAIT_S)
        raise CommitConflict(f"{self.path}: other changes kept landing first; try again")

    def fence(self, last: StoredHead) -> bool:
        """Give the head another version with the same content, so that whoever is about to swap
        that one fails; False when it has changed by itself."""
        outcome = self.write(last.document.followed_by(), over=last)
        return isinstance(outcome, Written)

    def _write_part(self, name: str, data: bytes) -> None:
        try:
            self.store.put_new(f"{self.folder}/{name}", data)
        except AlreadyExists:
            return  # the name is unique: an earlier attempt of this call wrote it


def tombstone(document: HeadDocument) -> HeadDocument | None:
    """The head of a table that is dropped; None when it is already."""
    return None if document.is_dropped else document.followed_by(is_dropped=True)
