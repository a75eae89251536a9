"""Whether a store keeps its word about conditional requests, tried before a catalog is made there.

Some stores ignore the conditions and answer as if they had been met: two writers would then both be
told that their commit landed.
"""

from __future__ import annotations

from frazil.catalog.objects.conditional_put import new_mark
from frazil.errors import AlreadyExists, Unsupported
from frazil.storage.conditional import ConditionalStore, PreconditionFailed


def probe(store: ConditionalStore, folder: str) -> None:
    """Create an object twice and replace an old version of it: both must be refused."""
    path = f"{folder}/probe-{new_mark()}.json"
    first = store.put_new(path, b'{"probe":1}')
    try:
        if _creates_twice(store, path):
            raise _refusal(folder, "a second creation of an object (If-None-Match: *)")
        store.put_if(path, b'{"probe":2}', first)
        try:
            store.put_if(path, b'{"probe":3}', first)
        except PreconditionFailed:
            return
        raise _refusal(folder, "a replacement of an old version (If-Match)")
    finally:
        store.delete(path)


def _creates_twice(store: ConditionalStore, path: str) -> bool:
    try:
        store.put_new(path, b'{"probe":0}')
    except AlreadyExists:
        return False
    return True


def _refusal(folder: str, request: str) -> Unsupported:
    return Unsupported(
        f"{folder}: this store accepted {request}, so two writers could both be told that they "
        "landed. Use a store with conditional writes (AWS S3, Google Cloud Storage, Azure, R2, "
        "MinIO, versitygw), keep the catalog in a database "
        "(connect('postgresql://…', warehouse='s3://…')), or read only with read_only=True",
        feature="a catalog in a store without conditional writes",
    )
