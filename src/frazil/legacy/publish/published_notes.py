"""Which published files stand for which snapshots and leaves, as notes in the catalog.

A server publishes every version that a client loads. What it wrote is noted beside the table, so
that all processes share it and maintenance knows it: files of snapshots that are gone are collected
here, and orphan removal leaves the others alone.

Notes by key, with the format version `v`: `json:v:<version>` a metadata file and its time (with
`:gc` at its end if it lets clients delete files), `list:v:<snapshot>` a manifest list,
`uses:v:<snapshot>` what that list names, `leaf:v:<leaf>` the manifests of a leaf,
`positions:<vector>` a position delete file of v2.

Whoever writes to the database writes notes, so a path in one is not trusted: what is read or
deleted because a note names it lies in the table's folder of published files. A note that leads
elsewhere counts as one that is not there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from frazil.catalog.notes import Notes
from frazil.legacy.publish import published
from frazil.legacy.publish.publish_manifests import Rows
from frazil.legacy.publish.published import DeleteFileRef

_OUTSIDE = frozenset("/\\\0")
"""Characters that no name of a published file holds."""


def document_key(version: int, number: int, *, lets_collect: bool) -> str:
    """The note of a metadata file: servers that let clients delete files publish their own."""
    return f"json:{version}:{number:012d}{':gc' if lets_collect else ''}"


def is_published(location: str, path: object) -> bool:
    """Whether a path that a note names is a file of the table's folder of published files."""
    folder = f"{location.rstrip('/')}/{published.FOLDER}/"
    if not isinstance(path, str) or not path.startswith(folder):
        return False
    name = path[len(folder) :]
    return name not in ("", ".", "..") and _OUTSIDE.isdisjoint(name)


def document(notes: Notes, location: str, key: str) -> str | None:
    """The metadata file of a version of the table, by its key; None when it is not published."""
    note = notes.get([key]).get(key)
    entry = None if note is None else _document(location, note)
    return None if entry is None else entry[0]


def documents(notes: Notes, location: str, version: int) -> dict[str, tuple[str, int]]:
    """Metadata files by key, oldest first, with their times."""
    stored = notes.below(f"json:{version}:")
    entries = {key: _document(location, note) for key, note in stored.items()}
    return {key: entry for key, entry in entries.items() if entry is not None}


def _document(location: str, note: str) -> tuple[str, int] | None:
    match json.loads(note):
        case [str(path), int(at)] if is_published(location, path):
            return path, at
    return None


def list_key(version: int, snapshot_id: int) -> str:
    """The note of a manifest list."""
    return f"list:{version}:{snapshot_id}"


def uses_key(version: int, snapshot_id: int) -> str:
    """The note of what a manifest list names."""
    return f"uses:{version}:{snapshot_id}"


def leaf_key(version: int, key: str) -> str:
    """The note of a leaf's manifests."""
    return f"leaf:{version}:{key}"


def list_path(notes: Notes, location: str, version: int, snapshot_id: int) -> str | None:
    """The manifest list of a snapshot; None when it is not published."""
    key = list_key(version, snapshot_id)
    path = notes.get([key]).get(key)
    return path if is_published(location, path) else None


def lists(notes: Notes, location: str, version: int) -> dict[int, str]:
    """Manifest lists by snapshot."""
    prefix = f"list:{version}:"
    return {
        int(key.removeprefix(prefix)): path
        for key, path in notes.below(prefix).items()
        if is_published(location, path)
    }


def known_leaves(notes: Notes, version: int, keys: Collection[str]) -> dict[str, Rows]:
    """Manifests of leaves that were published before."""
    names = {leaf_key(version, key): key for key in keys}
    stored = notes.get(names)
    return {names[name]: published.load_rows(text) for name, text in stored.items()}


def positions(notes: Notes) -> dict[str, DeleteFileRef]:
    """Position delete files by the vector they stand for."""
    refs = {}
    for key, note in notes.below("positions:").items():
        path, size = json.loads(note)
        refs[key.removeprefix("positions:")] = DeleteFileRef(path=path, size=size)
    return refs


def shown_files(notes: Notes) -> set[str]:
    """Every file that was published for clients and is still noted."""
    files = {json.loads(note)[0] for note in notes.below("json:").values()}
    files |= set(notes.below("list:").values())
    for note in notes.below("uses:").values():
        files |= set(json.loads(note)["own"])
    for note in notes.below("leaf:").values():
        files |= {row.path for row in published.load_rows(note)}
    files |= {json.loads(note)[0] for note in notes.below("positions:").values()}
    return files


def shown_snapshots(notes: Notes) -> dict[str, Any]:
    """What the published forms of snapshots use, by the keys of notes."""
    return {key: json.loads(note) for key, note in notes.below("uses:").items()}


def forget_snapshots(
    notes: Notes, location: str, kept: Iterable[int], *, shown: Mapping[str, Any]
) -> tuple[str, ...]:
    """Forget the published forms of removed snapshots; returns the files that are no longer needed.
    `shown` are those of all snapshots.

    Metadata files stay: each names the snapshots of its own time, and their number is limited.
    """
    alive = {int(snapshot_id) for snapshot_id in kept}
    gone = {key: note for key, note in shown.items() if int(key.rpartition(":")[2]) not in alive}
    if not gone:
        return ()
    remaining = [note for key, note in shown.items() if key not in gone]
    leaves = _only(gone.values(), remaining, "leaves")
    vectors = {f"positions:{key}" for key in _only(gone.values(), remaining, "positions")}
    notes.remove([*gone, *(key.replace("uses:", "list:", 1) for key in gone), *leaves, *vectors])
    # Manifests of leaves and position delete files are left to orphan removal: somebody may be
    # publishing another snapshot with them at this moment.
    paths = {path for note in gone.values() for path in (note["list"], *note["own"])}
    return tuple(sorted(path for path in paths if is_published(location, path)))


def _only(
    gone: Iterable[dict[str, list[str]]], kept: Iterable[dict[str, list[str]]], what: str
) -> set[str]:
    mine = {key for note in gone for key in note[what]}
    return mine - {key for note in kept for key in note[what]}
