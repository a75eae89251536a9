"""From a snapshot and a filter to the files to read.

Root read, entries pruned; surviving leaves read in parallel, only the needed columns, minus dead
positions; the same predicate again; deletes, which are read beside the leaves, matched. A plan
stays in Arrow: one row per file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_values
from frazil.errors import FormatError
from frazil.filter.prune.prune import Codes, Filter, PruneResult, Reason
from frazil.filter.text.filter_display import filter_text
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import PARTITION_PREFIX, STATS_PREFIX, VECTOR_KEYS, ContentType
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression
from frazil.iceberg.schema import Schema
from frazil.scan.match_deletes import MIN_SEQUENCE, DeleteFiles, Mask, delete_keys, leaves_to_open
from frazil.scan.report import LeafReport, LevelReport, ScanReport
from frazil.storage import Storage, StorageCall
from frazil.tree.partition_tuples import PartitionColumns
from frazil.tree.read import (
    LeafRef,
    ManifestDecoder,
    Tree,
    TreeReader,
    data_leaves,
    labelled,
    leaf_refs,
)
from frazil.tree.table_shape import shape_of
from frazil.value_classes import field, frozen, replace

FILE_KEYS = (
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "spec_id",
    *VECTOR_KEYS,
    "tracking.sequence_number",
    "tracking.first_row_id",
)
"""The columns of every plan, in addition to the partition."""

COUNT_KEYS = ("record_count", "file_size_in_bytes", *VECTOR_KEYS)
"""What counting rows needs of a file that no delete file applies to."""

MUST_MATCH = "@must_match"
"""In-memory column: every row of the file matches, so no row filter is needed."""


@frozen(eq=False)
class RootReasons:
    """Why entries of a root were ruled out; -1 in a column of codes is an entry that was kept.

    `left` has the files to read of each leaf, -1 of one that was not opened.
    """

    reasons: tuple[Reason, ...]
    leaf_rows: npt.NDArray[np.int64]
    """Rows of the root that are leaves of data files."""
    opened: tuple[LeafRef, ...]
    """The leaves that were opened."""
    leaf_codes: Codes
    left: npt.NDArray[np.int64]
    inline_rows: npt.NDArray[np.int64]
    """Rows of the root that are data files, and were considered."""
    inline_codes: Codes


@frozen(eq=False)
class Plan:
    """Files to read: `files` has one row per data file, `deletes` one per applicable delete file.

    `matches` maps a row of `files` to rows of `deletes`.
    """

    snapshot: Snapshot | None
    files: EntryBatch
    deletes: EntryBatch | None
    matches: dict[int, tuple[int, ...]] = field(default_factory=dict)
    report: ScanReport
    reasons: RootReasons | None = None

    def count_mask(self) -> Mask:
        """The files whose matching rows metadata alone can count."""
        mask = arrow_values.to_numpy(self.files.column(MUST_MATCH)).astype(np.bool_)
        mask[list(self.matches)] = False
        return mask

    def live_records(self) -> npt.NDArray[np.int64]:
        """Rows of each file that its deletion vector leaves, as metadata counts them.

        The files are not opened. Counts that no file can have are refused; any other wrong count is
        found by those who read the file, and by a deep check.
        """
        records = self.files.numpy("record_count", missing=0).astype(np.int64)
        deleted = self.files.numpy("deletion_vector.cardinality", missing=0).astype(np.int64)
        bad = np.flatnonzero((records < 0) | (deleted < 0) | (deleted > records))
        if bad.size:
            at = self.snapshot
            raise FormatError(
                f"record_count is {records[bad[0]]} in the entry of a data file with "
                f"{deleted[bad[0]]} deleted rows. table.check() names the file",
                path=None if at is None else at.root_manifest or at.manifest_list,
                field="record_count",
            )
        return records - deleted

    def only(self, mask: Mask) -> Plan:
        """The same plan for some of its files."""
        rows = np.flatnonzero(mask)
        matches = {
            new: self.matches[old] for new, old in enumerate(rows.tolist()) if old in self.matches
        }
        return replace(self, files=self.files.filter(mask), matches=matches)

    @property
    def table(self) -> pa.Table:
        """The plan as a plain Arrow table."""
        return self.files.table


def plan(
    reader: TreeReader,
    snapshot: Snapshot | None,
    *,
    schema: Schema | None = None,
    where: BooleanExpression | None = None,
    keys: Sequence[str] = FILE_KEYS,
    extra_keys: Sequence[str] = (),
    each_leaf: EachLeaf | None = None,
    per_leaf: bool = False,
    reasons: bool = False,
) -> Plan:
    """Plan a scan of one snapshot; `where` is bound to `schema`, by default the current one.

    `keys` and `extra_keys` are the columns of entries to read; a snapshot with delete files needs
    all of `FILE_KEYS` and reads them. `each_leaf` runs the work on leaves elsewhere than in threads
    of this process, or on some of them. With `reasons` the plan says which predicate ruled out
    each entry of the root, and with `per_leaf` its report does so too, leaf by leaf.
    """
    return _Planner(
        reader,
        snapshot,
        schema or reader.metadata.schema(),
        where or AlwaysTrue(),
        (*keys, *extra_keys),
        each_leaf or _in_threads,
        per_leaf=per_leaf,
        reasons=reasons or per_leaf,
    ).run()


LeafPlan = tuple[EntryBatch, LevelReport]
"""The files of one leaf to read, and what was pruned."""


class LeafPlanner:
    """Plans single leaves, here or in another process: it is picklable and holds no cache then."""

    def __init__(
        self,
        reader: TreeReader,
        schema: Schema,
        where: BooleanExpression,
        keys: frozenset[str],
        compiled: Filter,
    ) -> None:
        self.reader = reader
        self._schema = schema
        self._where = where
        self._keys = keys
        self._filter = compiled

    def plan(self, leaf: LeafRef) -> LeafPlan:
        """The live data files of a leaf that may have matching rows."""
        batch = self.reader.live(leaf, keys=self._keys)
        batch = batch.filter(batch.numpy("content_type") == ContentType.DATA)
        result = self._filter.prune(batch)
        files = labelled(batch.filter(result.mask), leaf)
        files = files.with_column(MUST_MATCH, arrow_values.array(self._filter.must_match(files)))
        report = _level(result, considered=batch.num_rows)
        dead = leaf.record_count - batch.num_rows
        return files, replace(report, manifests_read=1, dead=dead)

    def __reduce__(self) -> tuple[object, ...]:
        reader = self.reader
        place = (reader.storage, reader.metadata, reader.location, reader.decoder)
        return (_leaf_planner, (*place, self._schema, self._where, self._keys))


def _leaf_planner(
    storage: Storage,
    metadata: TableMetadata,
    location: str,
    decoder: ManifestDecoder | None,
    schema: Schema,
    where: BooleanExpression,
    keys: frozenset[str],
) -> LeafPlanner:
    reader = TreeReader(storage, metadata, location=location, decoder=decoder)
    compiled = shape_of(metadata).filter_of(where, schema)
    return LeafPlanner(reader, schema, where, keys, compiled)


EachLeaf = Callable[[LeafPlanner, Sequence[LeafRef]], Iterable[LeafPlan]]


def _in_threads(planner: LeafPlanner, leaves: Sequence[LeafRef]) -> Iterable[LeafPlan]:
    return planner.reader.map(leaves, planner.plan)


class _Planner:
    def __init__(
        self,
        reader: TreeReader,
        snapshot: Snapshot | None,
        schema: Schema,
        where: BooleanExpression,
        keys: Sequence[str],
        each_leaf: EachLeaf,
        *,
        per_leaf: bool,
        reasons: bool,
    ) -> None:
        self._reader = reader
        self._snapshot = snapshot
        self._schema = schema
        self._where = where
        self._each_leaf = each_leaf
        self._per_leaf = per_leaf
        self._with_reasons = reasons
        self._left: dict[int, int] = {}
        self._ruled_out: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        metadata = reader.metadata
        self._filter = shape_of(metadata).filter_of(where, schema)
        self._partition_ids = sorted(
            {field.field_id for spec in metadata.partition_specs for field in spec.fields}
        )
        partition = frozenset(f"{PARTITION_PREFIX}{id}" for id in self._partition_ids)
        self._matched_keys = partition | {*FILE_KEYS}
        self._keys = frozenset(keys)
        if self._keys >= {*FILE_KEYS}:
            self._keys |= partition
        self._filter_keys = self._filter.required_keys

    def run(self) -> Plan:
        began = time.perf_counter()
        with self._reader.storage.recording() as calls:
            tree, root_report, in_root, leaves = self._root(calls)
            read_at_root = sum(call.bytes for call in calls)
            keys = self._keys | self._filter_keys
            sources = self._delete_sources(tree, in_root, leaves)
            deletes: DeleteFiles | None = None
            if sources is None:
                batches, leaf_report = self._leaves(leaves, keys)
            else:
                keys |= self._matched_keys | sources.partition_keys
                from concurrent.futures import ThreadPoolExecutor

                with ThreadPoolExecutor(1) as beside:
                    reading = beside.submit(self._deletes, sources)
                    batches, leaf_report = self._leaves(leaves, keys)
                    deletes = reading.result()
                if deletes is not None and not deletes.stats_keys() <= keys:
                    keys |= deletes.stats_keys()  # only delete files say which columns they compare
                    batches, leaf_report = self._leaves(leaves, keys)
                tree = self._reader.tree(self._snapshot, keys=keys)
            picked = self._marked(labelled(_asked_for(tree.root, keys).filter(in_root), None))
            bytes_read = sum(call.bytes for call in calls)
        parts = [picked, *(_asked_for(batch, keys) for batch in batches)]
        files = EntryBatch.concat(parts, combine=False)
        matches = {} if deletes is None else deletes.match(files)
        reasons = self._reasons(tree, leaves) if self._with_reasons else None
        report = ScanReport(
            snapshot_id=None if self._snapshot is None else int(self._snapshot.snapshot_id),
            filter=filter_text(self._where),
            root=replace(root_report, bytes_read=read_at_root),
            leaves=replace(leaf_report, bytes_read=bytes_read - read_at_root),
            ms=(time.perf_counter() - began) * 1000,
            per_leaf=self._leaf_reports(tree, reasons) if self._per_leaf and reasons else (),
            **_totals(files, deletes, matches),
        )
        return Plan(
            snapshot=self._snapshot,
            files=files,
            deletes=None if deletes is None else deletes.batch,
            matches=matches,
            report=report,
            reasons=reasons,
        )

    def _reasons(self, tree: Tree, opened: tuple[LeafRef, ...]) -> RootReasons:
        """The reasons for what the root's statistics ruled out. Reads nothing."""
        root = tree.root
        kind = root.numpy("content_type")
        live = tracking.live_mask(root)
        codes = np.full(root.num_rows, -1, dtype=np.int32)
        reasons: tuple[Reason, ...] = ()
        if self._ruled_out.size:
            columns = root.select({"content_type", *self._filter_keys})
            why = self._filter.reasons(columns.take(self._ruled_out))
            codes[self._ruled_out] = why.codes
            reasons = why.reasons
        leaves = np.flatnonzero(live & (kind == ContentType.DATA_MANIFEST))
        inline = np.flatnonzero(live & (kind == ContentType.DATA))
        return RootReasons(
            reasons=reasons,
            leaf_rows=leaves,
            opened=opened,
            leaf_codes=codes[leaves],
            left=np.array([self._left.get(row, -1) for row in leaves.tolist()], dtype=np.int64),
            inline_rows=inline,
            inline_codes=codes[inline],
        )

    def _leaf_reports(self, tree: Tree, reasons: RootReasons) -> tuple[LeafReport, ...]:
        names = {id: self._schema.find_column_name(id) or str(id) for id in self._schema.field_ids}
        reports: list[LeafReport] = []
        for leaf, code, left in zip(
            leaf_refs(tree.root, reasons.leaf_rows),
            reasons.leaf_codes.tolist(),
            reasons.left.tolist(),
            strict=True,
        ):
            why = None if code < 0 else reasons.reasons[code]
            reports.append(
                LeafReport(
                    location=leaf.location,
                    entries=leaf.record_count - leaf.dead,
                    bytes=leaf.file_size_in_bytes,
                    pruned_by=() if why is None else tuple(names[id] for id in why.field_ids),
                    evidence=None if why is None else why.by,
                    predicate=None if why is None else why.text,
                    files=None if left < 0 else left,
                )
            )
        return tuple(reports)

    def _root(
        self, calls: Sequence[StorageCall]
    ) -> tuple[Tree, LevelReport, Mask, tuple[LeafRef, ...]]:
        """The root, which of its rows are files to read, and the leaves to look into."""
        began = time.perf_counter()
        tree = self._reader.tree(self._snapshot, keys=self._keys | self._filter_keys)
        live = tracking.live_mask(tree.root)
        kind = tree.root.numpy("content_type")
        candidates = live & ((kind == ContentType.DATA) | (kind == ContentType.DATA_MANIFEST))
        # Of a wide table, a root in the cache may have a thousand columns more.
        batch = _asked_for(tree.root, self._keys | self._filter_keys).filter(candidates)
        result = self._filter.prune(batch)
        rows = np.flatnonzero(candidates)
        self._ruled_out = rows[~result.mask]
        rows = rows[result.mask]
        files = np.zeros(tree.root.num_rows, dtype=np.bool_)
        files[rows] = kind[rows] == ContentType.DATA
        leaves = leaf_refs(tree.root, rows[kind[rows] == ContentType.DATA_MANIFEST])
        report = _level(result, considered=batch.num_rows)
        report = replace(
            report,
            manifests_read=1 if calls else 0,
            dead=int((~live).sum()),
            ms=(time.perf_counter() - began) * 1000,
        )
        return tree, report, files, leaves

    def _leaves(
        self, leaves: Sequence[LeafRef], keys: frozenset[str]
    ) -> tuple[list[EntryBatch], LevelReport]:
        began = time.perf_counter()
        planner = LeafPlanner(self._reader, self._schema, self._where, keys, self._filter)
        batches: list[EntryBatch] = []
        total = LevelReport()
        opened = data_leaves(leaves)
        for place, (files, report) in enumerate(self._each_leaf(planner, opened)):
            if self._with_reasons:
                self._left[opened[place].row] = files.num_rows
            batches.append(files)
            total = total.plus(report)
        return batches, replace(total, ms=(time.perf_counter() - began) * 1000)

    def _marked(self, files: EntryBatch) -> EntryBatch:
        return files.with_column(MUST_MATCH, arrow_values.array(self._filter.must_match(files)))

    def _delete_sources(
        self, tree: Tree, in_root: Mask, kept: Sequence[LeafRef]
    ) -> _DeleteSources | None:
        """Where delete files are that may apply to what is left; None for nowhere."""
        kind = tree.root.numpy("content_type")
        inline = tracking.live_mask(tree.root) & (kind == ContentType.EQUALITY_DELETES)
        if not (inline.any() or (kind == ContentType.DELETE_MANIFEST).any()):
            return None
        rows = np.union1d(np.flatnonzero(in_root), [leaf.row for leaf in kept]).astype(np.int64)
        if not rows.size:
            return None
        partitions = PartitionColumns.of(self._reader.metadata)
        in_specs = partitions.stats_keys({*partitions.by_spec})
        keys = {MIN_SEQUENCE, *self._filter_keys, *in_specs}
        leaves = leaves_to_open(
            self._reader.tree(self._snapshot, keys=keys).root,
            data_rows=rows,
            opened={leaf.location for leaf in kept},
            filter=self._filter,
            partitions=partitions,
        )
        if not inline.any() and not leaves:
            return None
        return _DeleteSources(
            inline=inline, leaves=tuple(leaves), partitions=partitions, partition_keys=in_specs
        )

    def _deletes(self, sources: _DeleteSources) -> DeleteFiles | None:
        """Delete files of the root and of delete leaves."""
        schemas = self._reader.metadata.schemas
        ids = sorted({id for schema in schemas for id in schema.field_ids})
        keys = delete_keys(ids, self._partition_ids) | sources.partition_keys
        batches: list[EntryBatch] = []
        if sources.inline.any():
            tree = self._reader.tree(self._snapshot, keys=keys | self._keys | self._filter_keys)
            batches.append(tree.root.filter(sources.inline))
        batches += self._reader.map(sources.leaves, lambda leaf: self._reader.live(leaf, keys=keys))
        batch = EntryBatch.concat(batches)
        if not batch.num_rows:
            return None
        location = self._reader.location
        return DeleteFiles(batch=batch, location=location, partitions=sources.partitions)


@frozen(eq=False)
class _DeleteSources:
    """Rows of the root that are delete files, delete leaves to open, and what tells partitions."""

    inline: Mask
    leaves: tuple[LeafRef, ...]
    partitions: PartitionColumns
    partition_keys: frozenset[str]


def _asked_for(batch: EntryBatch, keys: frozenset[str]) -> EntryBatch:
    """Entries without statistics that an earlier plan left in the cache: those of one leaf would
    be columns of nulls for the files of all others."""
    return batch.without(
        *(key for key in batch.keys if key.startswith(STATS_PREFIX) and key not in keys)
    )


def _level(result: PruneResult, *, considered: int) -> LevelReport:
    return LevelReport(
        considered=considered,
        pruned_by_partition=result.by_partition,
        pruned_by_derived=result.by_derived,
        pruned_by_bounds=result.by_bounds,
        survived=int(result.mask.sum()),
    )


def _totals(
    files: EntryBatch, deletes: DeleteFiles | None, matches: dict[int, tuple[int, ...]]
) -> dict[str, int]:
    vectors = files.column("deletion_vector.location")
    used = {row for rows in matches.values() for row in rows}
    kinds = [] if deletes is None else deletes.batch.pylist("content_type")
    equality = sum(kinds[row] == ContentType.EQUALITY_DELETES for row in used)
    return {
        "files": files.num_rows,
        "records": int(files.numpy("record_count", missing=0).sum()),
        "bytes": int(files.numpy("file_size_in_bytes", missing=0).sum()),
        "files_with_vectors": files.num_rows - vectors.null_count,
        "equality_deletes": equality,
        "position_deletes": len(used) - equality,
    }
