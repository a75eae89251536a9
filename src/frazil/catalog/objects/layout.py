"""Where the objects of a catalog in a bucket lie.

    warehouse/_frazil/catalog.json                  the marker of the catalog
    warehouse/_frazil/namespaces/<ns>.json          properties
    warehouse/_frazil/names/<ns>/<table>.json       which table has the name; empty: nobody
    warehouse/_frazil/views/<ns>/<view>.json        a view, whole; empty: nobody
    warehouse/_frazil/notes/<kind>.json             notes of the catalog
    <table>/metadata/head.json                      the pointer of a table below the warehouse
    warehouse/_frazil/heads/<digest>/head.json      the pointer of a table elsewhere
    <folder of the head>/history-…, part-…          what the head names
    <folder of the head>/_notes/<kind>.json         notes of the table

Keys are plain ASCII, because stores and clients differ in what else they accept.
"""

from __future__ import annotations

import hashlib
import re

from frazil.catalog.names import Identifier, Namespace, namespace_location
from frazil.catalog.objects.conditional_put import new_mark, put, read
from frazil.catalog.objects.history_objects import encode, parse
from frazil.errors import AlreadyExists, FormatError, InvalidInput, Unsupported
from frazil.storage import Places
from frazil.storage.base import ConditionalStore, PreconditionFailed
from frazil.value_classes import frozen

FOLDER = "_frazil"
HEAD = "head.json"
SUFFIX = ".json"
MAX_PART_BYTES = 200
"""What a part of a key may have: file systems behind gateways hold 255 bytes."""

_PLAIN = re.compile(r"[^A-Za-z0-9_-]")
_ESCAPED = re.compile(r"((?:=[0-9A-F]{2})+)")
LAYOUT_VERSION = 1


def encoded(text: str) -> str:
    """A name as a part of a key, without dots."""
    return _PLAIN.sub(lambda match: "".join(f"={byte:02X}" for byte in match[0].encode()), text)


def decoded(part: str) -> str:
    """The name of a part of a key."""
    return _ESCAPED.sub(lambda match: bytes.fromhex(match[1].replace("=", "")).decode(), part)


def namespace_key(namespace: Namespace) -> str:
    """The levels of a namespace, joined by dots, which no level has."""
    return _short(".".join(encoded(level) for level in namespace), namespace)


def namespace_of_key(key: str) -> Namespace:
    """The levels of a key."""
    return tuple(decoded(level) for level in key.split("."))


@frozen
class Layout:
    """The paths of one warehouse."""

    warehouse: str

    @property
    def folder(self) -> str:
        """What belongs to the catalog and to no table."""
        return f"{self.warehouse}/{FOLDER}"

    @property
    def marker(self) -> str:
        """The object that says that a catalog is here."""
        return f"{self.folder}/catalog.json"

    @property
    def namespaces(self) -> str:
        """The folder of namespaces."""
        return f"{self.folder}/namespaces"

    def namespace(self, namespace: Namespace) -> str:
        """The properties of a namespace."""
        return f"{self.namespaces}/{namespace_key(namespace)}{SUFFIX}"

    def names(self, namespace: Namespace) -> str:
        """The folder of a namespace's table names."""
        return f"{self.folder}/names/{namespace_key(namespace)}"

    def name(self, identifier: Identifier) -> str:
        """The object of a table's name."""
        return f"{self.names(identifier.namespace)}/{_file(identifier)}"

    def views(self, namespace: Namespace) -> str:
        """The folder of a namespace's views."""
        return f"{self.folder}/views/{namespace_key(namespace)}"

    def view(self, identifier: Identifier) -> str:
        """The object of a view."""
        return f"{self.views(identifier.namespace)}/{_file(identifier)}"

    @property
    def notes(self) -> str:
        """The folder of the catalog's own notes."""
        return f"{self.folder}/notes"

    def new_location(self, identifier: Identifier, base: str | None, unique: str) -> str:
        """Where a new table goes, which no table had before: dropped and renamed ones keep
        theirs."""
        parent = base or namespace_location(self.warehouse, identifier.namespace)
        return f"{parent.rstrip('/')}/{_readable(identifier.name)}-{unique}"

    def head(self, location: str) -> str:
        """The head of the table at a location; one location has one head."""
        places = Places()
        place, warehouse = places.folder(location), places.folder(self.warehouse)
        if place.startswith(warehouse):
            return f"{location.rstrip('/')}/metadata/{HEAD}"
        digest = hashlib.blake2b(place.encode(), digest_size=16).hexdigest()
        return f"{self.folder}/heads/{digest}/{HEAD}"


def folder_of(path: str) -> str:
    """The folder of an object."""
    return path.rpartition("/")[0]


def _file(identifier: Identifier) -> str:
    return f"{_short(encoded(identifier.name), identifier)}{SUFFIX}"


def _short(key: str, name: object) -> str:
    if len(key) > MAX_PART_BYTES:
        raise InvalidInput(
            f"{str(name)[:60]!r} has {len(key)} characters as an object's key; at most "
            f"{MAX_PART_BYTES}, and those that are not letters, digits, _ or - count three each"
        )
    return key


def _readable(name: str) -> str:
    """What of a name shows in a location."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:60].strip("_") or "table"


class Marker:
    """The object that says that a catalog is here, and in what format; read once.

    It is created when something is to be defined first, so a typo in an address leaves no trace.
    Before that the store must show that it keeps conditional requests: some stores ignore the
    conditions and answer as if they had been met, and two writers would both be told that their
    commit landed.
    """

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
