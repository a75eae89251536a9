"""From what a user calls a snapshot (id, branch, tag, time) to the snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from frazil.commit.handle import TableHandle
from frazil.errors import NotFound
from frazil.format.metadata.metadata import MAIN, RefKind, Snapshot, TableMetadata
from frazil.text_format import did_you_mean

if TYPE_CHECKING:
    from frazil.iceberg.schema import Schema

AsOf = int | str | date | datetime | Snapshot
"""What names a snapshot: an id, a branch or tag, a time ("2 minutes ago" is one), a date (its first
moment), or itself."""


def resolve(handle: TableHandle, as_of: AsOf, *, branch: str = MAIN) -> Snapshot:
    """The snapshot meant. Numbers and digits are ids; other text is a branch, a tag or a time."""
    if isinstance(as_of, Snapshot):
        return as_of
    if isinstance(as_of, int):
        return _by_id(handle, as_of)
    if isinstance(as_of, date):
        return at_time(handle, moment_ms(as_of), branch=branch)
    ref = handle.metadata.refs.get(as_of)
    if ref is not None:
        return handle.snapshot(ref.snapshot_id)
    if is_id(as_of):
        return _by_id(handle, int(as_of))
    timestamp_ms = time_ms(handle, as_of)
    if timestamp_ms is None:
        raise missing(handle, as_of)
    return at_time(handle, timestamp_ms, branch=branch)


def time_ms(handle: TableHandle, text: str) -> int | None:
    """The time that a text means, in milliseconds since 1970: ISO 8601, or "2 minutes ago"."""
    back = _age_of(text)
    if back is not None:
        return handle.context.now_ms() - int(back.total_seconds() * 1000)
    return _iso_ms(text)


def is_time(text: str) -> bool:
    """Whether a text means a time: ISO 8601, or "2 minutes ago"."""
    return _age_of(text) is not None or _iso_ms(text) is not None


def _age_of(text: str) -> timedelta | None:
    ago = _AGO.fullmatch(text)
    return None if ago is None else age(ago["age"])


def _iso_ms(text: str) -> int | None:
    try:
        return moment_ms(datetime.fromisoformat(text))
    except ValueError:
        return None


def age(text: str) -> timedelta | None:
    """An age with its unit, such as "7 days", or None for other text."""
    match = _AGE.fullmatch(text)
    if match is None:
        return None
    return timedelta(**{f"{match['unit'].lower()}s": float(match["number"])})


_AGO = re.compile(r"(?P<age>.+\S)\s+ago\s*", re.IGNORECASE)
_AGE = re.compile(
    r"\s*(?P<number>\d{1,6}(\.\d+)?)\s*(?P<unit>second|minute|hour|day|week)s?\s*", re.IGNORECASE
)


def missing(
    handle: TableHandle, name: str, *, kinds: Sequence[RefKind] = (RefKind.BRANCH, RefKind.TAG)
) -> NotFound:
    """The error for a name that is not there, with those that are."""
    names = [key for key, ref in sorted(handle.metadata.refs.items()) if ref.kind in kinds]
    if len(kinds) == 1:
        plurals = {RefKind.BRANCH: "branches", RefKind.TAG: "tags"}
        what, all_of = f"a {kinds[0].value}", plurals[kinds[0]]
    else:
        what, all_of = "a branch, tag, snapshot id or time", "branches and tags"
    return NotFound(
        f"{handle.name}: {name!r} is not {what}; {all_of}: {', '.join(names) or 'none'}"
        f"{did_you_mean(name, names)}"
    )


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
        latest = as_of(timestamp_ms)
        if latest is not None:
            return handle.snapshot(int(latest))
    else:
        for snapshot in ancestors(handle, handle.tip(branch)):
            if snapshot.timestamp_ms <= timestamp_ms:
                return snapshot
    raise NotFound(
        f"{handle.name}: no snapshot of {branch} is as old as {_time_text(timestamp_ms)}; "
        f"{_oldest(handle)}"
    )


def _by_id(handle: TableHandle, snapshot_id: int) -> Snapshot:
    try:
        return handle.snapshot(snapshot_id)
    except NotFound as error:
        raise NotFound(f"{error}; {_oldest(handle)}") from error


def _oldest(handle: TableHandle) -> str:
    oldest = min(handle.head.snapshots(), key=lambda snapshot: snapshot.timestamp_ms, default=None)
    if oldest is None:
        return "the table has no snapshots"
    return f"the oldest is {oldest.snapshot_id} of {_time_text(oldest.timestamp_ms)}"


def _time_text(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat()


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
    return any(snapshot.snapshot_id == candidate.snapshot_id for snapshot in ancestors(handle, of))


def schema_at(metadata: TableMetadata, as_of: AsOf, snapshot: Snapshot) -> Schema:
    """Branches are read in the current schema, tags and times in the schema of their time."""
    ref = metadata.refs.get(as_of) if isinstance(as_of, str) else None
    if ref is not None and ref.kind is RefKind.BRANCH:
        return metadata.schema()
    return metadata.schema_of(snapshot)
