"""Notes as objects: one for each kind of note, which is the key up to its colon, swapped by
If-Match."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from frazil.catalog.notes import claim_key
from frazil.catalog.objects.conditional_put import Written, new_mark, put, read
from frazil.catalog.objects.history_objects import encode, parse
from frazil.catalog.objects.layout import SUFFIX, encoded
from frazil.errors import CatalogError
from frazil.storage.base import ConditionalStore, ObjectVersion

_MAX_TRIES = 100


class ObjectNotes:
    """The notes in one folder."""

    def __init__(self, store: ConditionalStore, folder: str) -> None:
        self._store = store
        self._folder = folder

    def is_empty(self) -> bool:
        return not self._kinds()

    def below(self, prefix: str) -> dict[str, str]:
        kinds = [_kind(prefix)] if ":" in prefix else self._kinds()
        notes: dict[str, str] = {}
        for kind in kinds:
            held, _ = self._read(kind)
            notes.update({key: text for key, text in held.items() if key.startswith(prefix)})
        return dict(sorted(notes.items()))

    def get(self, keys: Collection[str]) -> dict[str, str]:
        notes: dict[str, str] = {}
        for kind, names in _by_kind(keys).items():
            held, _ = self._read(kind)
            notes.update({key: held[key] for key in names if key in held})
        return notes

    def add(self, notes: Mapping[str, str]) -> dict[str, str]:
        kept: dict[str, str] = {}
        for kind, names in _by_kind(notes).items():
            new = {key: notes[key] for key in names}
            held = self._change(kind, lambda held, new=new: {**new, **held})  # type: ignore[misc]
            kept.update({key: held[key] for key in names})
        return kept

    def remove(self, keys: Iterable[str]) -> None:
        for kind, names in _by_kind(keys).items():
            gone = set(names)

            def without(held: dict[str, str], gone: set[str] = gone) -> dict[str, str]:
                return {key: text for key, text in held.items() if key not in gone}

            self._change(kind, without)

    def claim(self, version: int, by: str) -> str:
        return self.add({claim_key(version): by})[claim_key(version)]

    def clear(self) -> None:
        """Forget every note."""
        self._store.delete_all([file.path for file in self._store.children(self._folder)[1]])

    def _change(
        self, kind: str, edit: Callable[[dict[str, str]], dict[str, str]]
    ) -> dict[str, str]:
        for _ in range(_MAX_TRIES):
            held, version = self._read(kind)
            notes = edit(held)
            if notes == held:
                return notes
            mark = new_mark()
            data = encode({"id": mark, "notes": notes})
            outcome = put(self._store, self._path(kind), data, over=version, mark=mark)
            if isinstance(outcome, Written):
                return notes
        raise CatalogError(f"{self._path(kind)}: others kept changing the notes; try again")

    def _read(self, kind: str) -> tuple[dict[str, str], ObjectVersion | None]:
        path = self._path(kind)
        stored = read(self._store, path)
        if stored is None:
            return {}, None
        return dict(parse(stored.data, path)["notes"]), stored.version

    def _kinds(self) -> list[str]:
        files = self._store.children(self._folder)[1]
        names = (file.path.rpartition("/")[2].removesuffix(SUFFIX) for file in files)
        return [name.partition("kind-")[2] for name in names]

    def _path(self, kind: str) -> str:
        return f"{self._folder}/kind-{kind}{SUFFIX}"


def _kind(key: str) -> str:
    """The kind of a note, as a part of an object's key."""
    return encoded(key.partition(":")[0])[:60] if ":" in key else ""


def _by_kind(keys: Iterable[str]) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for key in keys:
        kinds.setdefault(_kind(key), []).append(key)
    return kinds
