"""Conditional requests of an object store: create an object only where there is none, replace it
only while it is the version that was read.

They are what a catalog in a bucket is built on. A storage that has them says so by being a
`ConditionalStore`; local disk is none. An error of a conditional put says that the request failed,
not that it had no effect: a reply can be lost, and a client that repeats a request is answered
"already exists" for its own write. So callers read the object afterwards to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, cast

from frazil.errors import StorageError
from frazil.storage.base import FileInfo, Storage
from frazil.value_classes import dataclass


class PreconditionFailed(StorageError):
    """The object is not the version that the request named (412), or it does not exist any more."""


class StoreBusy(StorageError):
    """The store asked to try again later: 409 between two writers, 429, 503."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectVersion:
    """What names one version of an object: an ETag on S3 and Azure, a generation on GCS."""

    e_tag: str | None = None
    generation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object as read."""

    data: bytes
    version: ObjectVersion


class ConditionalStore(Storage, Protocol):
    """A storage whose objects can be created and replaced on a condition."""

    def get(self, path: str, *, unless: ObjectVersion | None = None) -> StoredObject | None:
        """The whole object in one request; None when it is still the version `unless`.

        NotFound when there is none.
        """

    def put_new(self, path: str, data: bytes) -> ObjectVersion:
        """Create an object in one request; AlreadyExists when there is one."""

    def put_if(self, path: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        """Replace an object in one request; PreconditionFailed when it is another version."""

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Folders and files directly in a folder, one LIST for each thousand."""

    def delete_all(self, paths: Iterable[str]) -> None:
        """Remove objects, as many per request as the store takes; missing ones are no error."""


def as_conditional(storage: Storage) -> ConditionalStore | None:
    """A storage as what it is if it has conditional requests, else None."""
    return cast(ConditionalStore, storage) if hasattr(storage, "put_if") else None
