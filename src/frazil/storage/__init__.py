"""Where bytes live: read, write_new, list, delete; thin, and every call is counted.

Local paths (plain or `file:`) go straight to the operating system and are written durably. S3, GCS
and Azure go through obstore, any other scheme through PyIceberg's FileIO; both take PyIceberg's
properties (`s3.endpoint`, …). Knows nothing of tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from frazil.limits import Limits
from frazil.storage.base import (
    Counters,
    FileInfo,
    RandomAccess,
    Storage,
    StorageCall,
    Verb,
    is_local,
    local_path,
    readers_at,
)
from frazil.storage.local import LocalStorage
from frazil.storage.places import Places, check_absolute, checked_location, same_store

if TYPE_CHECKING:
    from frazil.storage.objects import ObjectStorage


def storage_for(location: str, properties: Mapping[str, str] | None = None) -> Storage:
    """The storage that serves a location: local files, an object store, or PyIceberg's FileIO."""
    properties = properties or {}
    if is_local(location):
        return LocalStorage(Limits.of(properties))
    from frazil.storage.store_settings import KINDS

    # Whoever names a FileIO of their own gets it.
    if location.partition(":")[0].lower() in KINDS and "py-io-impl" not in properties:
        from frazil.storage.objects import ObjectStorage

        return ObjectStorage(properties, location)
    from frazil.storage.file_io import FileIOStorage

    return FileIOStorage(dict(properties), location)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Object stores are loaded when first used."""
        if name == "ObjectStorage":
            from frazil.storage.objects import ObjectStorage

            return ObjectStorage
        raise AttributeError(f"module 'frazil.storage' has no attribute {name!r}")


__all__ = [
    "Counters",
    "FileInfo",
    "LocalStorage",
    "ObjectStorage",
    "Places",
    "RandomAccess",
    "Storage",
    "StorageCall",
    "Verb",
    "check_absolute",
    "checked_location",
    "is_local",
    "local_path",
    "readers_at",
    "same_store",
    "storage_for",
]
