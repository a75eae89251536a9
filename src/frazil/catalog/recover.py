"""Rebuild what a lost catalog knew of a table: from its newest JSON and the roots after it.

Every root is complete by itself and carries the record of its own snapshot, so commits that no JSON
file has seen can be replayed, whether or not the snapshots before them have expired. What the files
cannot tell is said in `notes`: a root that may never have landed, two roots that claim one place,
commits that are missing. Changes without a snapshot (properties, refs) since the JSON are lost.
Reads files, writes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from frazil.catalog import export
from frazil.errors import FormatError, FrazilError, InvalidInput, NotFound, Unsupported
from frazil.format.entries import manifest
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import (
    MAIN,
    History,
    MetadataLogEntry,
    RefKind,
    Snapshot,
    SnapshotId,
    TableMetadata,
)
from frazil.format.paths import resolve, resolve_legacy
from frazil.storage import Storage
from frazil.text_format import counted
from frazil.value_classes import dataclass, field, frozen, replace

SNAPSHOT_KEY = "frazil.snapshot"
BRANCH_KEY = "frazil.branch"


@frozen
class Recovered:
    """A table as reconstructed from its files. `is_certain` is false if they are ambiguous, which
    `doubts` then tell; they are among the `notes`."""

    metadata: TableMetadata
    history: History
    metadata_location: str
    is_certain: bool
    notes: tuple[str, ...]
    doubts: tuple[str, ...] = ()


@frozen
class _Root:
    path: str
    snapshot: Snapshot
    branch: str | None


@dataclass(slots=True)
class _Story:
    """What has been put together so far."""

    metadata: TableMetadata
    history: History
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def doubt(self, note: str) -> None:
        self.doubts.append(note)
        self.notes.append(note)


def recover(location: str, storage: Storage) -> Recovered:
    """The metadata and history of the table at a location, as well as its files can tell."""
    folder = f"{location.rstrip('/')}/metadata"
    paths = sorted(info.path for info in storage.list(folder))
    notes: list[str] = []
    base = _newest_json(paths, location, storage, notes)
    if base is None:
        raise NotFound(
            f"{folder}: no metadata JSON can be read, and only it knows the schema"
            + "".join(f"\n  - {note}" for note in notes)
        )
    path, metadata, history = base
    written = MetadataLogEntry(metadata_file=path, timestamp_ms=metadata.last_updated_ms)
    history = replace(history, metadata_log=(*history.metadata_log, written))
    story = _Story(metadata, history, notes=notes)
    roots = _later_roots(paths, story, storage)
    _replay(story, roots)
    _forget_expired(story, storage)
    _check_names(story, roots)
    return Recovered(
        metadata=story.metadata,
        history=story.history,
        metadata_location=path,
        is_certain=not story.doubts,
        notes=tuple(story.notes),
        doubts=tuple(story.doubts),
    )


def _newest_json(
    paths: Iterable[str], location: str, storage: Storage, notes: list[str]
) -> tuple[str, TableMetadata, History] | None:
    """Names say nothing reliable, so every JSON file is read and the furthest one kept."""
    best: tuple[str, TableMetadata, History] | None = None
    others: set[str] = set()
    for path in paths:
        if not path.endswith((".metadata.json", ".metadata.json.gz")):
            continue
        try:
            metadata, history = export.read(path, storage=storage, location=location, rejected=[])
        except (FormatError, Unsupported) as error:
            notes.append(f"left out, it cannot be read: {error}")
            continue
        others.add(str(metadata.table_uuid))
        if best is None or _progress(metadata, best[1]) > _progress(best[1], metadata):
            best = (path, metadata, history)
    if best is not None:
        others.discard(str(best[1].table_uuid))
        notes.extend(
            f"JSON of another table, {uuid}, is in the same folder" for uuid in sorted(others)
        )
    return best


def _progress(one: TableMetadata, other: TableMetadata) -> tuple[int, int, int]:
    """What tells the later of two: sequence numbers within one table, else only the time.

    A v4 table may lie beside JSON of older versions: what it was, or what was published of it.
    """
    if one.table_uuid != other.table_uuid:
        return one.last_updated_ms, 0, 0
    return one.format_version, one.last_sequence_number, one.last_updated_ms


def _later_roots(paths: Iterable[str], story: _Story, storage: Storage) -> list[_Root]:
    roots: list[_Root] = []
    for path in paths:
        if not path.endswith(".parquet"):
            continue
        try:
            root = _root(path, story, storage)
        except FrazilError as error:
            story.doubt(f"left out, it cannot be read: {error}")
            continue
        if root is not None:
            roots.append(root)
    return roots


def _root(path: str, story: _Story, storage: Storage) -> _Root | None:
    """The root in a file, or None when it is not a root of this table after the JSON."""
    footer = manifest.describe(storage.open(path).arrow(), path=path)["metadata"]
    metadata = story.metadata
    if footer.get("content") != "root" or footer.get("table-uuid") != str(metadata.table_uuid):
        return None
    sequence = footer.get("sequence-number", "")
    if sequence.isdecimal() and int(sequence) <= metadata.last_sequence_number:
        return None
    record = footer.get(SNAPSHOT_KEY)
    if record is None:
        story.doubt(f"{path}: does not record which snapshot it belongs to; ignored")
        return None
    snapshot = metadata_json.load_snapshot(record, path=path)
    root = snapshot.root_manifest
    if root is None or resolve(metadata.location, root) != path:
        story.doubt(f"{path}: gives its location as {root}; left out")
        return None
    return _Root(path=path, snapshot=snapshot, branch=footer.get(BRANCH_KEY))


def _replay(story: _Story, roots: list[_Root]) -> None:
    by_sequence: dict[int, list[_Root]] = defaultdict(list)
    for root in roots:
        by_sequence[root.snapshot.sequence_number].append(root)
    parents = {root.snapshot.parent_snapshot_id for root in roots}
    last: _Root | None = None
    for sequence in sorted(by_sequence):
        last = _choose(story, by_sequence[sequence], parents)
        _accept(story, last)
    if last is not None and last.snapshot.snapshot_id not in parents:
        story.notes.append(
            f"{last.path}: is the newest root and nothing follows it; its commit may not have "
            "been confirmed to its writer"
        )


def _choose(story: _Story, roots: list[_Root], parents: Collection[int | None]) -> _Root:
    """At most one root of a sequence number landed; the others lost a race."""
    if len(roots) == 1:
        return roots[0]
    followed = [root for root in roots if root.snapshot.snapshot_id in parents]
    chosen = max(followed or roots, key=lambda root: (root.snapshot.timestamp_ms, root.path))
    rest = ", ".join(root.path for root in roots if root is not chosen)
    claim = f"sequence number {chosen.snapshot.sequence_number} has {len(roots)} roots"
    if len(followed) == 1:
        story.notes.append(f"{claim}; {chosen.path} has successors and was taken, not {rest}")
    else:
        story.doubt(f"{claim} and it is not known which one landed; used {chosen.path}, not {rest}")
    return chosen


def _accept(story: _Story, root: _Root) -> None:
    """Take a root's snapshot: it lists all of the table, whatever became of those before it."""
    snapshot, before = root.snapshot, story.metadata
    parent = snapshot.parent_snapshot_id
    is_known = parent is None or story.history.snapshot(parent) is not None
    expected = before.last_sequence_number + 1
    if not is_known:
        story.notes.append(
            f"{root.path}: its parent, snapshot {parent}, has no root any more; history starts here"
        )
    elif snapshot.sequence_number > expected:
        story.doubt(
            f"no root has a sequence number from {expected} to {snapshot.sequence_number - 1}"
        )
    if snapshot.schema_id not in {None, *(schema.schema_id for schema in before.schemas)}:
        story.doubt(
            f"{root.path}: was written with schema {snapshot.schema_id}, which no JSON file has"
        )
    branch = root.branch or _branch_of(story, snapshot, is_known=is_known)
    after = _after(story, root, branch)
    story.history = story.history.advanced(before, after, added=(snapshot,))
    story.metadata = after


def _after(story: _Story, root: _Root, branch: str | None) -> TableMetadata:
    """The metadata with a snapshot more. A root that lost its race may have been counted before,
    so row ids and the clock may seem to go back; the higher ones are kept."""
    snapshot, before = root.snapshot, story.metadata
    first = before.next_row_id if snapshot.first_row_id is None else snapshot.first_row_id
    lenient = replace(
        before,
        next_row_id=min(before.next_row_id, first),
        last_updated_ms=min(before.last_updated_ms, snapshot.timestamp_ms),
    )
    try:
        after = lenient.with_snapshot(snapshot, branch=branch)
    except InvalidInput as error:
        story.doubt(f"{root.path}: kept without a name: {error}")
        after = lenient.with_snapshot(snapshot, branch=None)
    return replace(
        after,
        next_row_id=max(before.next_row_id, after.next_row_id),
        last_updated_ms=max(before.last_updated_ms, after.last_updated_ms),
    )


def _forget_expired(story: _Story, storage: Storage) -> None:
    """Leave out snapshots of the JSON that have no root any more: they expired after it."""
    before, history = story.metadata, story.history
    expired_ids = {
        snapshot.snapshot_id
        for snapshot in history.snapshots
        if not _has_root(snapshot, before, storage)
    }
    current = before.current_snapshot_id
    if current in expired_ids:
        story.doubt(f"snapshot {current}, which main points at, has no root: its rows are lost")
        expired_ids.discard(current)
    if not expired_ids:
        return
    names = sorted(name for name, ref in before.refs.items() if ref.snapshot_id in expired_ids)
    if names:
        story.notes.append(f"left out, what they name has expired: {', '.join(names)}")
    refs = {name: ref for name, ref in before.refs.items() if name not in names}
    story.metadata = replace(before, refs=refs)
    story.history = history.advanced(before, story.metadata, removed=expired_ids)
    story.notes.append(f"{counted(len(expired_ids), 'snapshot')} of the JSON expired after it")


def _has_root(snapshot: Snapshot, metadata: TableMetadata, storage: Storage) -> bool:
    path = snapshot.root_manifest or snapshot.manifest_list
    if path is None:
        return True
    if path.startswith("/"):
        return storage.exists(resolve_legacy(metadata.location, path))
    return storage.exists(resolve(metadata.location, path))


def _check_names(story: _Story, roots: list[_Root]) -> None:
    """Doubt whether all names were found when a snapshot that is kept belongs to none."""
    parents = {
        snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in story.history.snapshots
    }
    snapshot_ids: set[int] = set()
    for ref in story.metadata.refs.values():
        at: int | None = ref.snapshot_id
        while at is not None and at not in snapshot_ids:
            snapshot_ids.add(at)
            at = parents.get(SnapshotId(at))
    lost = [root for root in roots if root.snapshot.snapshot_id in parents]
    for root in lost:
        if root.snapshot.snapshot_id not in snapshot_ids:
            story.doubt(
                f"{root.path}: no branch leads to its snapshot, {root.snapshot.snapshot_id}; a tag "
                "or branch made after the JSON may have kept it, or its commit lost a race"
            )


def _branch_of(story: _Story, snapshot: Snapshot, *, is_known: bool) -> str | None:
    """The branch a snapshot continues: the one whose tip is its parent."""
    refs = story.metadata.refs
    parent = snapshot.parent_snapshot_id
    if parent is None and MAIN not in refs:
        return MAIN
    if not is_known:
        others = [n for n, ref in refs.items() if ref.kind is RefKind.BRANCH and n != MAIN]
        if others:
            story.doubt(
                f"snapshot {snapshot.snapshot_id} may belong to main or to {', '.join(others)}: "
                "its parent is not there"
            )
        return MAIN
    tips = [
        name
        for name, ref in refs.items()
        if ref.kind is RefKind.BRANCH and ref.snapshot_id == parent
    ]
    if not tips:
        story.doubt(
            f"snapshot {snapshot.snapshot_id} continues no known branch: its parent, {parent}, "
            "has another successor; it is kept without a name"
        )
        return None
    if len(tips) > 1:
        story.doubt(
            f"snapshot {snapshot.snapshot_id} may belong to any of {', '.join(sorted(tips))}"
        )
    return MAIN if MAIN in tips else tips[0]
