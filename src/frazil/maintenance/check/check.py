"""Check a table against every rule of the format: metadata, roots, leaves, files.

Reports, never fails: a table that is broken gets a list of what is wrong, by file and field. Every
manifest is decoded once however many snapshots share it.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from frazil import arrow_compute as pc
from frazil.commit.handle import TableHandle
from frazil.format import paths
from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import History, Snapshot
from frazil.format.vectors import bitmap
from frazil.maintenance.check.check_files import FILE_KEYS, FileChecks, check_row_ids
from frazil.maintenance.check.check_leaf import (
    check_aggregates,
    check_counts,
    check_leaf_entries,
    plain_entry,
)
from frazil.maintenance.check.check_metadata import check_metadata
from frazil.maintenance.check.check_root import RootCheck, overlapping_rows, summary_totals
from frazil.maintenance.check.problems import CheckReport, Place, Problems
from frazil.maintenance.progress import Progress, silent
from frazil.maintenance.removal.reachable import root_address, statistics_files
from frazil.scan.change_steps import FileSets
from frazil.tree.changes import TreeChanges, changes_of
from frazil.tree.read import POSITION, LeafRef, Tree, TreeReader, leaf_refs
from frazil.tree.stored_vectors import read_vector, vectors_of
from frazil.tree.table_shape import shape_of
from frazil.value_classes import replace

Parts = dict[tuple[str, bytes | None], frozenset[str]]
"""Names of live files by the manifest that lists them and its dead positions."""


def check(
    handle: TableHandle,
    *,
    deep: bool = False,
    history: bool = True,
    repair: bool = False,
    progress: Progress = silent,
) -> CheckReport:
    """Look for broken rules. `deep` reads all data files and vectors; without `history` only the
    snapshots that branches and tags point at are looked at. `repair` replaces values in the catalog
    that cannot be used, and that are left out when the table is loaded."""
    problems = Problems()
    repaired = Problems()
    with problems.at(f"table {handle.name}").guarded():
        _stored(handle, repaired if repair else problems, repair=repair)
    work = _Check(handle, problems)
    with problems.at(f"table {handle.name}").guarded():
        state = handle.refresh()
        histories = _history_of(handle)
        check_metadata(state.metadata, histories, problems)
        snapshot_ids = {int(ref.snapshot_id) for ref in state.metadata.refs.values()}
        chosen = [s for s in histories.snapshots if history or int(s.snapshot_id) in snapshot_ids]
        work.run(chosen, histories, deep=deep, progress=progress)
        for snapshot in chosen if deep else ():
            if int(snapshot.snapshot_id) in snapshot_ids:
                where = root_address(handle.location, snapshot) or handle.name
                place = problems.at(where, snapshot_id=int(snapshot.snapshot_id))
                with place.guarded():
                    check_row_ids(handle, snapshot, place)
    return CheckReport(
        table=handle.name,
        problems=problems.listed,
        snapshots=work.snapshots,
        manifests=len(work.manifests),
        revisions=dict(sorted(Counter(work.revisions.values()).items())),
        files=work.files.count,
        is_deep=deep,
        repaired=repaired.listed,
    )


def _stored(handle: TableHandle, problems: Problems, *, repair: bool) -> None:
    stored = getattr(handle.head, "stored_problems", None)
    for error in () if stored is None else stored(repair=repair):
        problems.add(error.path or "catalog", error.field or "", error.problem)


def _history_of(handle: TableHandle) -> History:
    history = getattr(handle.head, "history", None)
    if history is not None:
        recorded: History = history()
        return recorded
    return History(snapshots=tuple(handle.head.snapshots()))


class _Check:
    def __init__(self, handle: TableHandle, problems: Problems) -> None:
        self._handle = handle
        self._problems = problems
        self._location = handle.location
        self.files = FileChecks(handle.storage, handle.location, problems)
        self.manifests: set[str] = set()
        self.revisions: dict[str, str] = {}
        self.snapshots = 0
        self._seen: set[tuple[Any, ...]] = set()
        self._names: Parts = {}
        self._twice: set[str] = set()  # names do not tell what became of their entries

    def run(
        self, snapshots: list[Snapshot], history: History, *, deep: bool, progress: Progress
    ) -> None:
        ordered = sorted(
            snapshots, key=lambda snapshot: (snapshot.sequence_number, snapshot.timestamp_ms)
        )
        is_all_ours = all(snapshot.root_manifest is not None for snapshot in history.snapshots)
        parts: dict[int, Parts] = {}
        for number, snapshot in enumerate(ordered, start=1):
            id = int(snapshot.snapshot_id)
            where = root_address(self._location, snapshot) or f"snapshot {id}"
            place = self._problems.at(where, snapshot_id=id)
            with place.guarded():
                batches, parts[id] = self._tree(snapshot, where)
                self._live(batches, snapshot, place, is_all_ours=is_all_ours)
                parent = parts.get(int(snapshot.parent_snapshot_id or 0))
                if parent is not None and snapshot.root_manifest is not None:
                    self._flow(snapshot, parent, parts[id], place, deep=deep)
            self.snapshots = number
            progress(number, len(ordered), "snapshots")
        self._metadata_files()
        self.files.run(deep=deep, progress=progress)

    def _tree(self, snapshot: Snapshot, where: str) -> tuple[EntryBatch, Parts]:
        """Check a root and its leaves; returns the live entries, and their names by manifest."""
        self.manifests.add(where)
        reader = self._handle.reader()
        if snapshot.root_manifest is not None:
            tree = self._root(reader, snapshot, where)
        else:
            tree = reader.tree(snapshot)
        if snapshot.manifests is None:
            self.files.manifest(where, None)
        batches = [tree.content()]
        parts: Parts = {(where, None): _content_names(batches)}
        self.files.entries(tree.content(), where)
        for ref in leaf_refs(tree.root):
            address = paths.resolve(self._location, ref.location)
            self.manifests.add(address)
            self.files.manifest(address, ref.file_size_in_bytes)
            with self._problems.at(address, snapshot_id=int(snapshot.snapshot_id)).guarded():
                self._leaf(reader, tree, ref, address)
                live = reader.live(ref, keys=FILE_KEYS).without(POSITION)
                batches.append(live)
                state = (address, ref.dv)
                if state not in self._names:
                    self._names[state] = _content_names([live])
                    self.files.entries(live, address)
                parts[state] = self._names[state]
        return EntryBatch.concat([batch.select(FILE_KEYS) for batch in batches]), parts

    def _root(self, reader: TreeReader, snapshot: Snapshot, where: str) -> Tree:
        """Check a root of v4, decoded here once: who else reads it has it from the cache."""
        root = manifest.decode(self._handle.storage.open(where).arrow(), path=where)
        tree = Tree(snapshot=snapshot, root=reader.cache.fetch(where, None, lambda _: root.batch))
        self.revisions[where] = root.revision.name
        metadata, place = self._handle.metadata, self._problems.at(where)
        for key, expected in (
            ("table-uuid", str(metadata.table_uuid)),
            ("snapshot-id", str(snapshot.snapshot_id)),
            ("sequence-number", str(snapshot.sequence_number)),
        ):
            stored = root.metadata.get(key)
            is_right = stored in (None, expected)
            place.need(is_right, key, f"is {stored}; expected {expected}")
        RootCheck(tree.root, snapshot, path=where, problems=self._problems).run()
        return tree

    def _leaf(self, reader: TreeReader, tree: Tree, ref: LeafRef, address: str) -> None:
        if ref.format_version == 0:
            return
        place = self._problems.at(address)
        if (address,) not in self._seen:
            self._seen.add((address,))
            source = self._handle.storage.open(address).arrow()
            entries = manifest.decode(source, path=address)
            self.revisions[address] = entries.revision.name
            raw = entries.batch
            check_leaf_entries(raw, ref.content_type, place)
            check_counts(raw, plain_entry(tree.root, ref.row), place)
        state = (address, ref.dv, len(self._handle.metadata.schemas))
        if state not in self._seen:
            self._seen.add(state)
            entry = plain_entry(tree.root, ref.row)
            shape = shape_of(self._handle.metadata)
            check_aggregates(reader.live(ref), entry, shape, place)

    def _live(
        self, merged: EntryBatch, snapshot: Snapshot, place: Place, *, is_all_ours: bool
    ) -> None:
        """Rules over everything that is live in a snapshot."""
        content = merged.numpy("content_type") != ContentType.POSITION_DELETES
        listed = merged.select(("location",)).filter(content).column("location")
        if pc.count_distinct(listed).as_py() < len(listed):
            for name, count in Counter(listed.to_pylist()).items():
                if count > 1:
                    self._twice.add(name)
                    place.add("location", f"{name} is live more than once")
        for first, second in overlapping_rows(merged):
            place.add("tracking.first_row_id", f"row ids of {first} and {second} overlap")
        is_data = merged.numpy("content_type") == ContentType.DATA
        starts = merged.numpy("tracking.first_row_id", missing=0)[is_data]
        ends = starts + merged.numpy("record_count", missing=0)[is_data]
        limit = self._handle.metadata.next_row_id
        if snapshot.root_manifest is not None and ends.size:
            end = int(ends.max())
            what = f"row ids reach {end}; the table's next is {limit}"
            place.need(end <= limit, "tracking.first_row_id", what)
        wrong = summary_totals(merged, snapshot, everything=is_all_ours)
        of_snapshot = replace(place, path=f"snapshot {snapshot.snapshot_id}")
        for key, (value, expected) in wrong.items():
            of_snapshot.add(key, f"is {expected}; live entries make {value}")

    def _flow(
        self, snapshot: Snapshot, parent: Parts, live: Parts, place: Place, *, deep: bool
    ) -> None:
        """What is live follows from the parent and what the root says it changed."""
        changes = changes_of(self._handle.reader(), snapshot)
        removed = _content_names([changes.deleted, changes.replaced])
        came = _content_names([changes.added, changes.modified])
        # A leaf that both list with the same dead positions has the same files in both.
        shared = parent.keys() & live.keys()
        before = frozenset[str]().union(*(parent[key] for key in parent.keys() - shared))
        after = frozenset[str]().union(*(live[key] for key in live.keys() - shared))
        still = frozenset[str]().union(*(removed & parent[key] for key in shared))
        expected = (before - removed) | came
        for names, what in (
            (expected - after, "should be live and is not: nothing says that it went"),
            ((after - expected) | still, "is live and should not be: nothing says that it came"),
            (removed - before - still, "was removed but was not live in the parent"),
        ):
            for name in sorted(names - self._twice)[:5]:
                place.add("tracking.status", f"{name} {what}")
        modified = set(changes.modified.pylist("location"))
        alone = modified - set(changes.replaced.pylist("location"))
        for name in sorted(alone)[:5]:
            what = f"{name} is MODIFIED and its predecessor is not REPLACED"
            place.add("tracking.status", what)
        if deep:
            check_growth(self._handle, changes, place)

    def _metadata_files(self) -> None:
        metadata = self._handle.metadata
        about = (*metadata.statistics, *metadata.partition_statistics)
        for address in statistics_files(about, self._location):
            self.files.manifest(address, None)
        current = self._handle.state.metadata_location
        if current is not None:
            self.files.manifest(current, None)


def _content_names(batches: list[EntryBatch]) -> frozenset[str]:
    """Data files and equality delete files; vectors of v3 share their file's name."""
    names: set[str] = set()
    for batch in batches:
        kind = batch.numpy("content_type")
        mask = np.asarray((kind == ContentType.DATA) | (kind == ContentType.EQUALITY_DELETES))
        names.update(batch.select(("location",)).filter(mask).pylist("location"))
    return frozenset(names)


def check_growth(handle: TableHandle, changes: TreeChanges, place: Place) -> None:
    """Read the vectors of modified files before and after, and compare them."""
    files = FileSets.of(changes)
    records = files.after.numpy("record_count", missing=0)
    names = files.after.pylist("location")
    vectors = zip(names, vectors_of(files.before), vectors_of(files.after), strict=True)
    for row, (name, old, new) in enumerate(vectors):
        with place.guarded():
            read = partial(
                read_vector,
                handle.storage,
                location=handle.location,
                record_count=int(records[row]),
            )
            back = bitmap.difference(read(old), read(new))
            if back.size:
                place.add("deletion_vector", f"{name}: row {back[0]} is no longer deleted")
