"""Second names of data files that a server keeps for a while, below `metadata/kept`.

A note of JSON for each snapshot says until when, and which copy is of which file. `serve` writes
and uses them; here they are read, and those of snapshots that are gone are told.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

from frazil.errors import NotFound
from frazil.value_classes import frozen

FOLDER = "metadata/kept"


@frozen
class Kept:
    """The files of one snapshot, each with its second name, and the note that lists them."""

    note: str
    snapshot_id: int
    until_ms: int
    files: tuple[tuple[str, str], ...]


def folder_of(location: str) -> str:
    """Where the copies of a table are."""
    return f"{location.rstrip('/')}/{FOLDER}"


def kept_files(storage: Any, location: str, *, known: Iterable[Kept] = ()) -> list[Kept]:
    """What is kept of a table. Notes that are known are not read again: none ever changes. Those
    that say something else are passed over."""
    folder = folder_of(location)
    _, files = storage.children(folder)
    by_note = {one.note: one for one in known}
    notes = []
    for file in files:
        if file.path in by_note:
            notes.append(by_note[file.path])
        elif file.path.endswith(".json"):
            with suppress(NotFound, ValueError):  # another process has let go of it
                notes.append(_read(storage.read(file.path), folder, file.path))
    return notes


def copies_for(storage: Any, location: str, snapshot_ids: Collection[int]) -> list[str]:
    """The copies and notes of some snapshots: when these are gone nothing is put back any more, and
    rows that were deleted must not live on in a copy."""
    return [
        path
        for one in kept_files(storage, location)
        if one.snapshot_id in snapshot_ids
        for path in (*(copy for _, copy in one.files), one.note)
    ]


def _read(text: bytes, folder: str, note: str) -> Kept:
    name = note.rpartition("/")[2].removesuffix(".json")
    match json.loads(text):
        case {"until": int(until), "files": [*pairs]} if name.isdecimal():
            files = tuple((str(path), str(copy)) for path, copy in pairs)
            # Whoever can write there names no copy elsewhere.
            prefix = f"{folder}/{name}-"
            if all(
                copy.startswith(prefix) and copy.removeprefix(prefix).isdecimal()
                for _, copy in files
            ):
                return Kept(note=note, snapshot_id=int(name), until_ms=until, files=files)
    raise ValueError(f"{note}: is not a list of kept files")
