"""From what a user calls a snapshot (id, branch, tag, time) to the snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time

from frazil.commit.handle import TableHandle
from frazil.errors import NotFound
from frazil.format.metadata import MAIN, Snapshot

AsOf = int | str | date | datetime | Snapshot
"""What names a snapshot: an id, a branch or tag, a time, a date (its first moment), or itself."""


def resolve(handle: TableHandle, as_of: AsOf, *, branch: str = MAIN) -> Snapshot:
    """The snapshot meant. Numbers and digits are ids; other text is a branch, a tag or a time."""
    if isinstance(as_of, Snapshot):
        return as_of
    if isinstance(as_of, int):
        return handle.snapshot(as_of)
    if isinstance(as_of, date):
        return at_time(handle, moment_ms(as_of), branch=branch)
    ref = handle.metadata.refs.get(as_of)
    if ref is not None:
        return handle.snapshot(ref.snapshot_id)
    if is_id(as_of):
        return handle.snapshot(int(as_of))
    try:
        moment = datetime.fromisoformat(as_of)
    except ValueError:
        names = ", ".join(sorted(handle.metadata.refs)) or "none"
        raise NotFound(
            f"{handle.name}: {as_of!r} is not a branch, tag, snapshot id or time; "
            f"branches and tags: {names}"
        ) from None
    return at_time(handle, moment_ms(moment), branch=branch)


def is_id(text: str) -> bool:
    """Whether text is a snapshot id: digits that a computer reads as a number of 64 bits."""
    return text.isascii() and text.isdigit() and len(text) <= 19


def moment_ms(moment: date | datetime) -> int:
    """Milliseconds since 1970. A time without a zone is UTC; a date is its first moment."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)


def at_time(handle: TableHandle, timestamp_ms: int, *, branch: str = MAIN) -> Snapshot:
    """The snapshot that was current at a time: by the log for main, by ancestry elsewhere."""
    as_of = getattr(handle.head, "snapshot_id_as_of", None)
    if branch == MAIN and as_of is not None:
        found = as_of(timestamp_ms)
        if found is not None:
            return handle.snapshot(int(found))
    else:
        for snapshot in ancestors(handle, handle.tip(branch)):
            if snapshot.timestamp_ms <= timestamp_ms:
                return snapshot
    when = datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat()
    raise NotFound(f"{handle.name}: there was no snapshot on {branch} at {when}")


def ancestors(handle: TableHandle, start: Snapshot | None) -> Iterator[Snapshot]:
    """A snapshot and its parents, newest first, as far as they are kept."""
    snapshot = start
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        if parent is None:
            return
        try:
            snapshot = handle.snapshot(parent)
        except NotFound:
            return


def is_ancestor(handle: TableHandle, candidate: Snapshot, of: Snapshot | None) -> bool:
    """Whether a snapshot is in another's history, itself included."""
    return any(each.snapshot_id == candidate.snapshot_id for each in ancestors(handle, of))
