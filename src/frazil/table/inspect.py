"""Metadata of a table as Arrow tables: `table.inspect.files`, `.snapshots`, `.partitions`, …

Columns have the names that PyIceberg's inspection gives them where it has them; what only this
format knows comes after. Each table is made when it is asked for. Works for snapshots of every
format version, as they are all read as trees. `table_card` is what a notebook shows of a table: the
catalog has all of it, so no file is opened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.argument_checks import check_arguments
from frazil.commit.handle import TableHandle
from frazil.format import paths
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, partition_key
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import MAIN, History, Snapshot, TableMetadata
from frazil.format.metadata.summary_totals import live_rows, number, rows_changed
from frazil.iceberg.schema import Schema
from frazil.maintenance.analyze import sure_problem
from frazil.table.inspect_files import PARTITION_KEYS, ShownEntries
from frazil.text_format import card, counted, html_bars, html_grid, size
from frazil.tree.read import LEAF, POSITION, LeafRef, Tree, TreeReader, labelled
from frazil.value_classes import dataclass

_LONG, _INT, _TEXT = pa.int64(), pa.int32(), pa.string()
_MILLIS = pa.timestamp("ms")
_COMMITS = 40
_COLUMNS = 30


@check_arguments
@dataclass(frozen=True)
class Inspect:
    """Metadata tables of one snapshot and of the table's history."""

    _handle: TableHandle
    snapshot: Snapshot | None

    def at(self, snapshot: Snapshot | int) -> Inspect:
        """The metadata tables of another snapshot."""
        chosen = snapshot if isinstance(snapshot, Snapshot) else self._handle.snapshot(snapshot)
        return Inspect(self._handle, chosen)

    # History

    @property
    def snapshots(self) -> pa.Table:
        """Every snapshot that is kept, oldest first."""
        snapshots = self._history.snapshots
        location = self._handle.location
        summaries = [
            [(key, value) for key, value in s.summary.items() if key != "operation"]
            for s in snapshots
        ]
        return pa.table(
            {
                "committed_at": pa.array([s.timestamp_ms for s in snapshots], _MILLIS),
                "snapshot_id": pa.array([s.snapshot_id for s in snapshots], _LONG),
                "parent_id": pa.array([s.parent_snapshot_id for s in snapshots], _LONG),
                "operation": pa.array([s.operation for s in snapshots], _TEXT),
                "manifest_list": pa.array([s.manifest_list for s in snapshots], _TEXT),
                "summary": pa.array(summaries, pa.map_(_TEXT, _TEXT)),
                "root_manifest": pa.array(
                    [
                        s.root_manifest and paths.resolve(location, s.root_manifest)
                        for s in snapshots
                    ],
                    _TEXT,
                ),
                "sequence_number": pa.array([s.sequence_number for s in snapshots], _LONG),
                "schema_id": pa.array([s.schema_id for s in snapshots], _INT),
                "first_row_id": pa.array([s.first_row_id for s in snapshots], _LONG),
                "added_rows": pa.array([s.added_rows for s in snapshots], _LONG),
            }
        )

    @property
    def history(self) -> pa.Table:
        """Which snapshot was current, and since when."""
        history = self._history
        parents = {s.snapshot_id: s.parent_snapshot_id for s in history.snapshots}
        ancestors: set[int] = set()
        at = self._handle.metadata.current_snapshot_id
        while at is not None and at not in ancestors:
            ancestors.add(at)
            at = parents.get(at)
        log = history.snapshot_log
        return pa.table(
            {
                "made_current_at": pa.array([e.timestamp_ms for e in log], _MILLIS),
                "snapshot_id": pa.array([e.snapshot_id for e in log], _LONG),
                "parent_id": pa.array([parents.get(e.snapshot_id) for e in log], _LONG),
                "is_current_ancestor": pa.array(
                    [e.snapshot_id in ancestors for e in log], pa.bool_()
                ),
            }
        )

    @property
    def refs(self) -> pa.Table:
        """Branches and tags."""
        refs = self._handle.metadata.refs
        listed = list(refs.values())
        return pa.table(
            {
                "name": pa.array(list(refs), _TEXT),
                "type": pa.array([ref.kind.name for ref in listed], _TEXT),
                "snapshot_id": pa.array([ref.snapshot_id for ref in listed], _LONG),
                "max_reference_age_in_ms": pa.array([ref.max_ref_age_ms for ref in listed], _LONG),
                "min_snapshots_to_keep": pa.array(
                    [ref.min_snapshots_to_keep for ref in listed], _INT
                ),
                "max_snapshot_age_in_ms": pa.array(
                    [ref.max_snapshot_age_ms for ref in listed], _LONG
                ),
            }
        )

    @property
    def metadata_log(self) -> pa.Table:
        """The metadata files written, oldest first, with the snapshot that was current in each."""
        history = self._history
        state = self._handle.state
        log = [(entry.timestamp_ms, entry.metadata_file) for entry in history.metadata_log]
        current = state.metadata_location
        if current is not None and current not in {file for _, file in log}:
            log.append((state.metadata.last_updated_ms, current))
        by_id = {s.snapshot_id: s for s in history.snapshots}
        then = [history.snapshot_id_as_of(timestamp) for timestamp, _ in log]
        latest = [None if at is None else by_id.get(at) for at in then]
        return pa.table(
            {
                "timestamp": pa.array([timestamp for timestamp, _ in log], _MILLIS),
                "file": pa.array([file for _, file in log], _TEXT),
                "latest_snapshot_id": pa.array(then, _LONG),
                "latest_schema_id": pa.array([s and s.schema_id for s in latest], _INT),
                "latest_sequence_number": pa.array(
                    [s and s.sequence_number for s in latest], _LONG
                ),
            }
        )

    # Files of the snapshot

    @property
    def files(self) -> pa.Table:
        """Every data and delete file that is part of the snapshot."""
        return self._listing.files(self._live())

    @property
    def data_files(self) -> pa.Table:
        """The data files of the snapshot."""
        return self._listing.files(self._live(lambda kind: kind == ContentType.DATA))

    @property
    def delete_files(self) -> pa.Table:
        """The delete files of the snapshot; deletion vectors are shown with their data files."""
        return self._listing.files(self._live(lambda kind: kind != ContentType.DATA))

    @property
    def entries(self) -> pa.Table:
        """Every file entry of the snapshot's manifests, including dead ones.

        `manifest` is null for entries of the root itself. An entry is dead by its status, or
        because the root marks its position in the leaf as dead.
        """
        return self._entries_of([self._tree])

    @property
    def manifests(self) -> pa.Table:
        """The leaves that the snapshot's root references."""
        return self._listing.manifests(_manifests_of(self._tree))

    @property
    def partitions(self) -> pa.Table:
        """Files and rows per partition; one row if the table is unpartitioned."""
        fields = [f for spec in self._handle.metadata.partition_specs for f in spec.fields]
        keys = {*PARTITION_KEYS, "tracking.sequence_number"}
        keys |= {partition_key(field.field_id) for field in fields}
        batch = self._live(keys=keys)
        snapshots = sorted(
            self._history.snapshots, key=lambda s: (s.sequence_number, s.timestamp_ms)
        )
        return self._listing.partitions(
            batch, [s.snapshot_id for s in snapshots], [s.timestamp_ms for s in snapshots]
        )

    # Across snapshots

    @property
    def all_manifests(self) -> pa.Table:
        """The leaves of every snapshot, with the snapshot that references them; reads every
        root."""
        tables = []
        for snapshot in self._history.snapshots:
            manifests = _manifests_of(self._reader.tree(snapshot))
            rows = self._listing.manifests(manifests)
            owner = pa.repeat(pa.scalar(snapshot.snapshot_id, _LONG), rows.num_rows)
            tables.append(rows.append_column("reference_snapshot_id", owner))
        if not tables:
            empty = self._listing.manifests(EntryBatch.empty())
            return empty.append_column("reference_snapshot_id", pa.array([], _LONG))
        return pa.concat_tables(tables).combine_chunks()

    @property
    def all_files(self) -> pa.Table:
        """Every file of any snapshot, once; reads every root and every leaf.

        A file whose deletion vector changed is listed as in the newest snapshot.
        """
        reader = self._reader
        batches: list[EntryBatch] = []
        leaves_by_location: dict[str, LeafRef] = {}
        for snapshot in reversed(self._history.snapshots):
            tree = reader.tree(snapshot)
            batches.append(labelled(tree.content(), None))
            for leaf in tree.leaves():
                leaves_by_location.setdefault(leaf.location, leaf)
        leaves = list(leaves_by_location.values())
        for leaf, batch in zip(leaves, reader.map(leaves, reader.entries), strict=True):
            batches.append(labelled(batch.filter(tracking.live_mask(batch)), leaf))
        merged = _together(batches)
        locations = merged.column("location").combine_chunks()
        _, first = np.unique(np.asarray(pc.dictionary_encode(locations).indices), return_index=True)
        return self._listing.files(merged.take(np.sort(first)))

    @property
    def all_data_files(self) -> pa.Table:
        """Every data file of any snapshot, once."""
        return _of_content(self.all_files, is_data=True)

    @property
    def all_delete_files(self) -> pa.Table:
        """Every delete file of any snapshot, once."""
        return _of_content(self.all_files, is_data=False)

    @property
    def all_entries(self) -> pa.Table:
        """The entries of every manifest of any snapshot, each manifest once; reads all of them.

        Whether an entry of a leaf is dead is told as of the newest snapshot that has the leaf.
        """
        newest_first = reversed(self._history.snapshots)
        return self._entries_of([self._reader.tree(snapshot) for snapshot in newest_first])

    # Reading

    def _entries_of(self, trees: Sequence[Tree]) -> pa.Table:
        """The entries of some roots and of their leaves, and whether they are dead."""
        reader = self._reader
        batches, masks = [], []
        leaves: dict[str, LeafRef] = {}
        for tree in trees:
            content = tree.root.numpy("content_type") < ContentType.DATA_MANIFEST
            root = tree.root.filter(content)
            positions = pa.array(np.flatnonzero(content), _LONG)
            batches.append(labelled(root, None).with_column(POSITION, positions))
            masks.append(tracking.live_mask(root))
            for leaf in tree.leaves():
                leaves.setdefault(leaf.location, leaf)
        listed = list(leaves.values())
        for leaf, batch in zip(listed, reader.map(listed, reader.entries), strict=True):
            mask = tracking.live_mask(batch).copy()
            mask[leaf.dead_positions()] = False
            batches.append(labelled(batch, leaf))
            masks.append(mask)
        if not batches:
            return self._entries_of([reader.tree(None)])
        return self._listing.entries(_together(batches), np.concatenate(masks))

    @cached_property
    def _history(self) -> History:
        history: Callable[[], History] | None = getattr(self._handle.head, "history", None)
        if history is not None:
            return history()
        return History(snapshots=tuple(self._handle.head.snapshots()))

    @cached_property
    def _reader(self) -> TreeReader:
        return self._handle.reader()

    @property
    def _tree(self) -> Tree:
        return self._reader.tree(self.snapshot)

    @property
    def _listing(self) -> ShownEntries:
        return ShownEntries(
            location=self._handle.location, metadata=self._handle.metadata, schema=self._schema
        )

    @property
    def _schema(self) -> Schema:
        metadata, snapshot = self._handle.metadata, self.snapshot
        snapshot_ids = {ref.snapshot_id for ref in metadata.refs.values()}
        if snapshot is None or snapshot.snapshot_id in snapshot_ids:
            return metadata.schema()
        return metadata.schema_of(snapshot)

    def _live(
        self,
        keep: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] | None = None,
        *,
        keys: Collection[str] | None = None,
    ) -> EntryBatch:
        """The live files of the snapshot, of the contents that are wanted, as one batch."""
        reader = self._reader
        batch = _together(list(reader.all_live(reader.tree(self.snapshot, keys=keys), keys=keys)))
        return batch if keep is None else batch.filter(keep(batch.numpy("content_type")))


def _of_content(files: pa.Table, *, is_data: bool) -> pa.Table:
    is_data_file = pc.equal(files.column("content"), int(ContentType.DATA))
    chosen = files.filter(is_data_file if is_data else pc.invert(is_data_file))
    return chosen if chosen.num_rows else files.schema.empty_table()


def _manifests_of(tree: Tree) -> EntryBatch:
    kind = tree.root.numpy("content_type")
    dead = tree.root.numpy("tracking.status") == Status.DELETED
    return tree.root.filter((kind >= ContentType.DATA_MANIFEST) & ~dead)


def _together(batches: list[EntryBatch]) -> EntryBatch:
    merged = EntryBatch.concat(batches)
    return merged if merged.has(LEAF) else merged.with_column(LEAF, pa.array([], _TEXT))


def table_card(handle: TableHandle, branch: str) -> str:
    """The card of a table at the state of its handle."""
    metadata, tip = handle.metadata, handle.state.tip(branch)
    history = list(handle.head.snapshots())
    facts = {
        "branch": None if branch == MAIN else branch,
        "rows": None if (rows := live_rows(tip)) is None else f"{rows:,}",
        "size": _size(tip),
        "partitioned by": ", ".join(
            f"{field.transform}({names})" if str(field.transform) != "identity" else names
            for field in metadata.spec().fields
            for names in [", ".join(_name(metadata, id) for id in field.source_ids)]
        ),
        "sorted by": ", ".join(
            _name(metadata, field.source_id) for field in metadata.sort_order().fields
        ),
        "health": _health(metadata, tip),
        "changed": "never" if tip is None else _ago(tip.timestamp_ms),
        "snapshot": None if tip is None else tip.snapshot_id,
        "location": handle.location,
    }
    fields = metadata.schema().fields
    columns = html_grid(
        ("column", "type", "", "comment"),
        [
            (field.name, field.field_type, "required" if field.required else None, field.doc)
            for field in fields[:_COLUMNS]
        ],
    )
    more = len(fields) - _COLUMNS
    return card(
        handle.name,
        facts,
        columns,
        f"<div>… and {counted(more, 'more column')}</div>" if more > 0 else "",
        _commits(history),
    )


def _size(tip: Snapshot | None) -> str | None:
    if tip is None:
        return None
    files, stored = (number(tip.summary, f"total-{key}") for key in ("data-files", "files-size"))
    return None if files is None else f"{size(stored or 0)} in {counted(files, 'file')}"


def _name(metadata: TableMetadata, field_id: int) -> str:
    return metadata.schema().find_column_name(field_id) or str(field_id)


def _health(metadata: TableMetadata, tip: Snapshot | None) -> str | None:
    """What the summary of the snapshot proves; more is known to `analyze` alone."""
    if tip is None:
        return None
    is_partitioned = bool(metadata.spec().fields)
    problem = sure_problem(metadata.properties, tip.summary, is_partitioned=is_partitioned)
    return problem or "no problem in sight; analyze() looks closer"


def _ago(timestamp_ms: int) -> str:
    seconds = max(0, int(time.time() - timestamp_ms / 1000))
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return f"{counted(seconds // length, unit)} ago"
    return "just now"


def _commits(history: list[Snapshot]) -> str:
    if not history:
        return ""
    last = history[-_COMMITS:]
    rows = [sum(rows_changed(snapshot)) for snapshot in last]
    bars = html_bars(rows, "Rows changed by each of the latest commits, oldest first")
    prefix = f"rows changed by the last {len(last)} of " if len(history) > 1 else ""
    return f"{bars}<div style='font-size:12px'>{prefix}{counted(len(history), 'commit')}</div>"
