"""Files of commits whose client deletes them when it gets no answer, kept for a while.

DuckDB takes an answer that never comes for a refusal and removes the data files that it wrote, also
when the commit has landed. So the server keeps a second name of them, a hard link or else a copy,
from before the commit until some minutes after it. Whenever it is asked for the table in that time
it looks whether the files are there, and puts them back.

The folder is listed once for each version of a table that a process sees, as another process may
have taken the commit. What a crash leaves behind is removed with the table's other orphans.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from threading import Lock
from typing import Any

from frazil.commit.handle import TableHandle, now_ms
from frazil.errors import AlreadyExists, FrazilError, InvalidInput, NotFound
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.maintenance.removal.kept_files import Kept, folder_of, kept_files
from frazil.serve.limits import KEPT_FILES_S
from frazil.threads import in_threads

log = logging.getLogger("frazil.serve")

_DELETES_WITHOUT_ANSWER = "duckdb/"
"""Clients that do, by the start of their user agent."""
_COPIES_AT_ONCE = 16
_MAX_TABLES = 1_000
_SOON_MS = 1_000


def is_needed(user_agent: str) -> bool:
    """Whether a client deletes files of commits that were not answered."""
    return user_agent.lower().startswith(_DELETES_WITHOUT_ANSWER)


def keep(storage: Any, location: str, snapshot_id: int, added: EntryBatch | None) -> None:
    """Keep the data files that a snapshot adds; InvalidInput if that cannot be done, as they could
    be lost. A commit that is tried again has them already."""
    if added is None or not added.num_rows:
        return
    folder = folder_of(location)
    addresses = paths.resolve_all(location, added.column("location")).to_pylist()
    pairs = [(path, f"{folder}/{snapshot_id}-{n}") for n, path in enumerate(addresses)]
    note = {"until": now_ms() + KEPT_FILES_S * 1000, "files": pairs}
    try:
        # The note first: a copy that no note names would stay until orphans are removed.
        with suppress(AlreadyExists):
            storage.write_new(f"{folder}/{snapshot_id}.json", json.dumps(note).encode())
        for _ in in_threads(pairs, lambda pair: _copied(storage, *pair), threads=_COPIES_AT_ONCE):
            continue
    except FrazilError as error:
        raise InvalidInput(
            f"the files of snapshot {snapshot_id} cannot be kept for the case that the answer is "
            f"lost, upon which this client deletes them: {error}"
        ) from error


def _copied(storage: Any, path: str, to: str) -> None:
    try:
        storage.duplicate(path, to)
    except AlreadyExists:
        if storage.size(to) != storage.size(path):  # a copy that was not completed
            storage.delete(to)
            storage.duplicate(path, to)


class KeptFiles:
    """What is kept of each table, as far as this process has seen it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: dict[str, int] = {}
        """Versions of tables whose folder was listed."""
        self._kept: dict[str, dict[Kept, int]] = {}
        """What is kept of them, and when it is to be verified next."""

    def restore(self, handle: TableHandle) -> None:
        """Put back what is missing of a table; let go of what is old enough."""
        place, version = handle.location, handle.state.version
        with self._lock:
            tries = dict(self._kept.get(place, {}))
            is_new = self._seen.get(place) != version
        try:
            if is_new:
                listed = kept_files(handle.storage, place, known=tries)
                tries = {kept: tries.get(kept, 0) for kept in listed}
        except FrazilError:
            log.exception("%s: its kept files are not verified", handle.name)
            return
        tries = {
            kept: next_ms
            for kept, due_ms in tries.items()
            if (next_ms := _looked_at(handle, kept, due_ms)) is not None
        }
        with self._lock:
            while len(self._seen) >= _MAX_TABLES:
                oldest = next(iter(self._seen))
                del self._seen[oldest]
                self._kept.pop(oldest, None)
            self._seen[place] = version
            self._kept[place] = tries


def _looked_at(handle: TableHandle, kept: Kept, due_ms: int) -> int | None:
    """`_verified`, where files of one snapshot that cannot be looked at do not hide the others."""
    try:
        return _verified(handle, kept, due_ms)
    except FrazilError:
        log.exception(
            "%s: the kept files of snapshot %d are not verified", handle.name, kept.snapshot_id
        )
        return now_ms() + _SOON_MS


def _verified(handle: TableHandle, kept: Kept, due_ms: int) -> int | None:
    """Restore the files of a snapshot that the table has, if they are due to be looked at. Returns
    when they are due again, None once they are not kept any more."""
    storage: Any = handle.storage
    now = now_ms()
    if now < min(due_ms, kept.until_ms):
        return due_ms
    missing = [pair for pair in kept.files if not storage.exists(pair[0])]
    if missing and _has(handle, kept.snapshot_id):
        for path, copy in missing:
            _restore(handle, path, copy)
    if now >= kept.until_ms:
        storage.delete_all([copy for _, copy in kept.files])
        storage.delete(kept.note)
        return None
    # Clients that lost an answer delete at once or when their patience ends: seldom later.
    age = now - (kept.until_ms - KEPT_FILES_S * 1000)
    return now + max(_SOON_MS, age)


def _restore(handle: TableHandle, path: str, copy: str) -> None:
    storage: Any = handle.storage
    became = "is restored"
    try:
        storage.duplicate(copy, path)
    except AlreadyExists:  # another process was quicker
        pass
    except NotFound:
        became = "cannot be restored, as its copy was removed: load its rows again"
    log.warning(
        "%s: %s was deleted by the client that wrote it, after its commit had landed; it %s",
        handle.name,
        path,
        became,
    )


def _has(handle: TableHandle, snapshot_id: int) -> bool:
    try:
        handle.snapshot(snapshot_id)
    except NotFound:
        return False
    return True
