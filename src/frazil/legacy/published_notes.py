"""Which published files stand for which snapshots and leaves, as notes in the catalog.

A server publishes every version that a client loads. What it wrote is noted beside the table, so
that all processes share it and maintenance knows it: files of snapshots that are gone are collected
here, and orphan removal leaves the others alone.

Notes by key, with the format version `v`: `json:v:<version>` a metadata file and its time,
`list:v:<snapshot>` a manifest list, `uses:v:<snapshot>` what that list names, `leaf:v:<leaf>` the
manifests of a leaf, `positions:<vector>` a position delete file of v2.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from frazil.catalog.notes import Notes
from frazil.legacy import published
from frazil.legacy.publish_manifests import Rows
from frazil.legacy.published import DeleteFileRef


def document_key(version: int, number: int) -> str:
    """The note of a metadata file."""
    return f"json:{version}:{number:012d}"


def documents(notes: Notes, version: int) -> dict[str, tuple[str, int]]:
    """Metadata files by key, oldest first, with their times."""
    return {key: tuple(json.loads(note)) for key, note in notes.below(f"json:{version}:").items()}


def list_key(version: int, snapshot_id: int) -> str:
    """The note of a manifest list."""
    return f"list:{version}:{snapshot_id}"


def uses_key(version: int, snapshot_id: int) -> str:
    """The note of what a manifest list names."""
    return f"uses:{version}:{snapshot_id}"


def leaf_key(version: int, key: str) -> str:
    """The note of a leaf's manifests."""
    return f"leaf:{version}:{key}"


def lists(notes: Notes, version: int) -> dict[int, str]:
    """Manifest lists by snapshot."""
    prefix = f"list:{version}:"
    return {int(key.removeprefix(prefix)): path for key, path in notes.below(prefix).items()}


def known_leaves(notes: Notes, version: int, keys: Collection[str]) -> dict[str, Rows]:
    """Manifests of leaves that were published before."""
    names = {leaf_key(version, key): key for key in keys}
    found = notes.get(names)
    return {names[name]: published.load_rows(text) for name, text in found.items()}


def positions(notes: Notes) -> dict[str, DeleteFileRef]:
    """Position delete files by the vector they stand for."""
    found = {}
    for key, note in notes.below("positions:").items():
        path, size = json.loads(note)
        found[key.removeprefix("positions:")] = DeleteFileRef(path=path, size=size)
    return found


def shown_files(notes: Notes) -> set[str]:
    """Every file that was published for clients and is still noted."""
    found = {json.loads(note)[0] for note in notes.below("json:").values()}
    found |= set(notes.below("list:").values())
    for note in notes.below("uses:").values():
        found |= set(json.loads(note)["own"])
    for note in notes.below("leaf:").values():
        found |= {row.path for row in published.load_rows(note)}
    found |= {json.loads(note)[0] for note in notes.below("positions:").values()}
    return found


def forget_snapshots(notes: Notes, kept: Iterable[int]) -> tuple[str, ...]:
    """Forget the published forms of removed snapshots; returns the files that are no longer needed.

    Metadata files stay: each names the snapshots of its own time, and their number is limited.
    """
    alive = {int(each) for each in kept}
    uses = {key: json.loads(note) for key, note in notes.below("uses:").items()}
    gone = {key: note for key, note in uses.items() if int(key.rpartition(":")[2]) not in alive}
    if not gone:
        return ()
    rest = [note for key, note in uses.items() if key not in gone]
    leaves = _only(gone.values(), rest, "leaves")
    vectors = {f"positions:{key}" for key in _only(gone.values(), rest, "positions")}
    notes.remove([*gone, *(key.replace("uses:", "list:", 1) for key in gone), *leaves, *vectors])
    # Manifests of leaves and position delete files are left to orphan removal: somebody may be
    # publishing another snapshot with them at this moment.
    return tuple(sorted(path for note in gone.values() for path in (note["list"], *note["own"])))


def _only(
    gone: Iterable[dict[str, list[str]]], kept: Iterable[dict[str, list[str]]], what: str
) -> set[str]:
    mine = {key for note in gone for key in note[what]}
    return mine - {key for note in kept for key in note[what]}
