"""The object that says that a catalog is here, and in what format.

It is created once, after the store has shown that it keeps its word about conditional requests:
some stores ignore the conditions and answer as if they had been met, and two writers would then
both be told that their commit landed. Who finds the object need not ask again. Until something is
to be defined, nothing is created: a typo in an address leaves no trace.
"""

from __future__ import annotations

from frazil.catalog.objects.conditional_put import new_mark, put, read
from frazil.catalog.objects.history_objects import encode, parse
from frazil.catalog.objects.layout import Layout
from frazil.errors import AlreadyExists, FormatError, Unsupported
from frazil.storage.conditional import ConditionalStore, PreconditionFailed

LAYOUT_VERSION = 1


class Marker:
    """The marker of one warehouse, read once."""

    def __init__(self, store: ConditionalStore, layout: Layout) -> None:
        self._store = store
        self._layout = layout
        self.exists = self._find()

    def ensure(self) -> None:
        """Make the catalog, unless it is there."""
        if self.exists or self._find():
            self.exists = True
            return
        probe(self._store, self._layout.folder)
        mark = new_mark()
        document = {"format": "frazil-catalog", "format-version": LAYOUT_VERSION, "id": mark}
        put(self._store, self._layout.marker, encode(document), over=None, mark=mark)
        self.exists = True

    def _find(self) -> bool:
        stored = read(self._store, self._layout.marker)
        if stored is None:
            return False
        document = parse(stored.data, self._layout.marker)
        if document.get("format") != "frazil-catalog":
            raise FormatError("is not the marker of a catalog", path=self._layout.marker)
        if document.get("format-version") != LAYOUT_VERSION:
            raise Unsupported(
                f"{self._layout.marker}: catalog of format-version "
                f"{document.get('format-version')!r}; this version of Frazil knows "
                f"{LAYOUT_VERSION}. Install a newer one",
                feature="a newer catalog",
            )
        return True


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
