"""The object that says that a catalog is here, and in what format.

It is created once, after the store has shown that it keeps its word about conditional requests;
who finds it need not ask again. Until something is to be defined, nothing is created: a typo in an
address leaves no trace.
"""

from __future__ import annotations

from frazil.catalog.objects.conditional_put import new_mark, put, read
from frazil.catalog.objects.history_objects import encode, parse
from frazil.catalog.objects.layout import Layout
from frazil.catalog.objects.probe import probe
from frazil.errors import FormatError, Unsupported
from frazil.storage.conditional import ConditionalStore

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
