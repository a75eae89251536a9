"""Snapshots that no longer fit into a head: immutable objects beside it, oldest first.

The head keeps the newest snapshots. When it has too many, the older half moves to a small object;
a row of small objects becomes one of at most a thousand. What expires is noted in the head, and an
object is rewritten when half of it is gone. So most commits write no such object, and the head's
list of them stays short.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from frazil.catalog.objects.conditional_put import new_mark
from frazil.errors import FormatError
from frazil.storage.base import ConditionalStore
from frazil.threads import in_threads
from frazil.value_classes import frozen, replace

MAX_RECENT = 64
"""Snapshots in a head; the commit that passes it moves the older ones out."""
KEPT_RECENT = 32
MAX_SNAPSHOTS = 1_000
"""Snapshots in one history object."""
_READERS = 16

Record = Mapping[str, Any]
"""A snapshot, or an entry of the snapshot log, as its JSON has it."""


@frozen
class HistoryObject:
    """An object of older snapshots, as the head names it.

    `removed` are the ids of expired snapshots that are still in the object. `first_entry` numbers
    the first entry of the snapshot log that it holds.
    """

    name: str
    count: int
    first_entry: int
    entry_count: int
    removed: tuple[int, ...] = ()

    def document(self) -> dict[str, Any]:
        """As it stands in the head."""
        return {
            "object": self.name,
            "snapshots": self.count,
            "first-log-entry": self.first_entry,
            "log-entries": self.entry_count,
            "removed-snapshot-ids": list(self.removed),
        }

    @staticmethod
    def of(document: Mapping[str, Any]) -> HistoryObject:
        """From its place in the head."""
        return HistoryObject(
            name=str(document["object"]),
            count=int(document["snapshots"]),
            first_entry=int(document["first-log-entry"]),
            entry_count=int(document["log-entries"]),
            removed=tuple(int(number) for number in document["removed-snapshot-ids"]),
        )


@frozen
class Older:
    """What a history object holds."""

    snapshots: tuple[Record, ...]
    log: tuple[Record, ...]

    def without(self, removed: Collection[int]) -> Older:
        """Without expired snapshots. The log stays: the head knows where it begins."""
        kept = tuple(
            snapshot for snapshot in self.snapshots if snapshot["snapshot-id"] not in removed
        )
        return replace(self, snapshots=kept)


class HistoryStore:
    """Reads and writes the history objects of one table; remembers those it has read."""

    def __init__(self, store: ConditionalStore, folder: str) -> None:
        self._store = store
        self._folder = folder
        self._known: dict[str, Older] = {}

    def path(self, history: HistoryObject) -> str:
        """Where an object lies."""
        return f"{self._folder}/{history.name}"

    def read(self, objects: Sequence[HistoryObject]) -> list[Older]:
        """What objects hold, without what has expired, in their order."""
        missing = [history for history in objects if history.name not in self._known]
        loaded = in_threads(missing, self._load, threads=_READERS)
        for history, older in zip(missing, loaded, strict=True):
            self._known[history.name] = older
        return [self._known[item.name].without(set(item.removed)) for item in objects]

    def write(self, older: Older, *, first_entry: int) -> HistoryObject:
        """Write an object that no head names yet."""
        name = f"history-{first_entry:010d}-{new_mark()}.json"
        document = {"snapshots": list(older.snapshots), "snapshot-log": list(older.log)}
        self._store.put_new(f"{self._folder}/{name}", encode(document))
        self._known[name] = older
        return HistoryObject(
            name=name,
            count=len(older.snapshots),
            first_entry=first_entry,
            entry_count=len(older.log),
        )

    def forget_others(self, objects: Sequence[HistoryObject]) -> None:
        """Remember only what the head still names."""
        names = {history.name for history in objects}
        self._known = {name: kept for name, kept in self._known.items() if name in names}

    def _load(self, history: HistoryObject) -> Older:
        path = self.path(history)
        document = parse(self._store.read(path), path)
        return Older(snapshots=tuple(document["snapshots"]), log=tuple(document["snapshot-log"]))


def moved_out(
    store: HistoryStore, objects: Sequence[HistoryObject], older: Older, *, first_entry: int
) -> tuple[HistoryObject, ...]:
    """The objects after older snapshots have left the head."""
    written = store.write(older, first_entry=first_entry)
    small = _small_tail((*objects, written))
    if sum(history.count for history in small) < MAX_SNAPSHOTS - KEPT_RECENT:
        return (*objects, written)
    merged = _merged(store.read(small))
    # Entries before a gap in the log do not count any more, so numbering from the end is right for
    # all that do.
    end = written.first_entry + written.entry_count
    merged_object = store.write(merged, first_entry=end - len(merged.log))
    return (*objects[: len(objects) + 1 - len(small)], merged_object)


def expired(
    store: HistoryStore,
    objects: Sequence[HistoryObject],
    removed: Collection[int],
    *,
    log_first: int,
) -> tuple[HistoryObject, ...]:
    """The objects after snapshots have expired; those that have lost half are rewritten.
    `log_first` numbers the first entry of the snapshot log that still counts."""
    remaining: list[HistoryObject] = []
    for history, older in zip(objects, store.read(objects), strict=True):
        dropped = tuple(
            int(snapshot["snapshot-id"])
            for snapshot in older.snapshots
            if snapshot["snapshot-id"] in removed
        )
        now = replace(history, removed=(*history.removed, *dropped))
        has_log = history.first_entry + history.entry_count > log_first
        if len(now.removed) == now.count and not has_log:
            continue
        if dropped and 2 * len(now.removed) >= now.count:
            now = store.write(older.without(set(dropped)), first_entry=history.first_entry)
        remaining.append(now)
    return tuple(remaining)


def encode(document: Mapping[str, Any]) -> bytes:
    """A document as the bytes of an object."""
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def parse(data: bytes, path: str) -> dict[str, Any]:
    """The document of an object."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise FormatError("is not JSON", path=path) from error
    if not isinstance(document, dict):
        raise FormatError("is not a JSON object", path=path)
    return document


def _small_tail(objects: Sequence[HistoryObject]) -> Sequence[HistoryObject]:
    """The newest objects that can still be joined into one."""
    total = 0
    for at in range(len(objects) - 1, -1, -1):
        total += objects[at].count
        if total > MAX_SNAPSHOTS or objects[at].count > MAX_SNAPSHOTS // 2:
            return objects[at + 1 :]
    return objects


def _merged(pieces: Sequence[Older]) -> Older:
    return Older(
        snapshots=tuple(snapshot for piece in pieces for snapshot in piece.snapshots),
        log=tuple(entry for piece in pieces for entry in piece.log),
    )
