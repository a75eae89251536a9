"""Leaves rewritten by executors, few of them by the driver: each reads some, hands every entry to
the new leaf it belongs in, and writes new ones. The driver holds a sample of the keys that entries
are ordered by.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from frazil.commit.adapt import live_entries
from frazil.commit.change import CarriedDeletes, LeavesToRewrite
from frazil.errors import InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.maintenance.rewrite_manifests import rewrite_manifests as rewrite
from frazil.properties.registry import MAX_LEAF_ENTRIES
from frazil.spark.jobs.bars import progress_bars
from frazil.spark.session.executor_tasks import answers, groups, plain_errors, received, spread
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.spark.session.packed_entries import packed, unpacked
from frazil.table.table import Table
from frazil.text_format import counted
from frazil.tree.read import LeafRef, TreeReader
from frazil.tree.table_shape import shape_of
from frazil.tree.write import TreeWriter, cluster_keys, cluster_order, clustered
from frazil.value_classes import dataclass, field, frozen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SAMPLES = 256
"""Entries of a leaf whose keys the driver sees: bounds of new leaves are exact for small ones."""
_SLACK = 1.25
"""A new leaf may be so much larger than asked for, as its bounds come from samples."""
_WEIGHT: Final = "@weight"
_DELETES: Final = -1
"""Where equality deletes go: to leaves of their own."""
_LEAVES_PER_TASK = 16


@dataclass(frozen=True, slots=True)
class OnExecutors:
    """Rewrites leaves on executors, some leaves to a task."""

    spark: SparkSession
    leaves_per_task: int

    def __call__(self, work: LeavesToRewrite) -> EntryBatch:
        """The entries of the new leaves."""
        carried = work.carried_deletes
        job = _Job(
            reader=work.reader,
            target=work.target_entries,
            vectors=None if carried is None else packed(carried.vectors),
            deletes=frozenset() if carried is None else carried.leaves,
        )
        units: list[_Unit] = [
            _Unit(leaves=tuple(work.leaves[at] for at in group))
            for group in groups([1] * len(work.leaves), self.leaves_per_task)
        ]
        if work.flushed is not None:
            units.append(_Unit(entries=packed(work.flushed)))
        frame = spread(self.spark, units)
        sampled = [unpacked(part) for part in answers(frame, _Sampling(job).run)]
        split = _Splitting(job, packed(job.bounds(EntryBatch.concat(sampled))))
        writing = _Writing(job)
        with plain_errors():
            rows = (
                frame.mapInArrow(split.run, "leaf int, entries binary")
                .groupBy("leaf")
                .applyInArrow(lambda parts: writing.run(parts), "leaf int, answer binary")
                .collect()
            )
        batches: list[EntryBatch] = []
        for row in sorted(rows, key=lambda row: int(row["leaf"])):
            entries, written = pickle.loads(bytes(row["answer"]))
            batches.append(unpacked(entries))
            work.writer.written.extend(written)
        return EntryBatch.concat(batches)


@frozen
class _Unit:
    """What one task reads: leaves, or entries that were in the root."""

    leaves: tuple[LeafRef, ...] = ()
    entries: bytes | None = None


@frozen
class _Job:
    """What every task needs to know; travels to executors."""

    reader: TreeReader = field(repr=False)
    target: int
    vectors: bytes | None
    deletes: frozenset[str]

    def batches(self, unit: _Unit) -> Iterator[EntryBatch]:
        """The live entries of a unit, manifest by manifest, as new leaves take them."""
        carried = None
        if self.vectors is not None:
            carried = CarriedDeletes(vectors=unpacked(self.vectors), leaves=self.deletes)
        if unit.entries is not None:
            yield self._conformed(unpacked(unit.entries))
        for leaf in unit.leaves:
            yield self._conformed(live_entries(self.reader, leaf, carried))

    def _conformed(self, batch: EntryBatch) -> EntryBatch:
        return shape_of(self.reader.metadata).conformed(batch)

    def sample(self, batch: EntryBatch) -> EntryBatch:
        """Keys of data files, evenly from their order, each with the number it stands for."""
        data = batch.filter(batch.numpy("content_type") == ContentType.DATA)
        keys = cluster_keys(data, self.reader.metadata)
        ordered = clustered(data.select({*keys, "location"}), self.reader.metadata)
        count = min(_SAMPLES, ordered.num_rows)
        edges = np.linspace(0, ordered.num_rows, count + 1).astype(np.int64)
        weight = pa.array(np.diff(edges))
        return ordered.take(edges[:-1]).without("location").with_column(_WEIGHT, weight)

    def bounds(self, sampled: EntryBatch) -> EntryBatch:
        """Where new leaves begin, the first one left out; nowhere where there is nothing to order
        entries by."""
        if not cluster_keys(sampled, self.reader.metadata):
            return EntryBatch.empty()
        ordered = clustered(sampled, self.reader.metadata)
        before = np.concatenate([[0], np.cumsum(ordered.numpy(_WEIGHT))])
        total = int(before[-1])
        leaves = -(-total // self.target)
        starts = np.ceil(np.arange(1, leaves) * total / max(leaves, 1))
        rows = np.unique(np.searchsorted(before[:-1], starts)) if leaves > 1 else before[:0]
        rows = rows[rows < ordered.num_rows].astype(np.int64)
        return ordered.take(rows).without(_WEIGHT)

    def leaf_numbers(self, batch: EntryBatch, bounds: EntryBatch) -> np.ndarray[Any, Any]:
        """Which new leaf each entry belongs to."""
        numbers = np.zeros(batch.num_rows, dtype=np.int32)
        if bounds.num_rows:
            keys = batch.select({*bounds.keys, "location"})
            together = EntryBatch.concat([bounds, keys])
            order = cluster_order(together, self.reader.metadata)
            assert order is not None
            # Equal keys stay in order, so a bound comes before the entries that begin with it.
            passed = np.cumsum(order < bounds.num_rows)
            places = np.empty(together.num_rows, dtype=np.int64)
            places[order] = passed
            numbers[:] = places[bounds.num_rows :]
        numbers[batch.numpy("content_type") != ContentType.DATA] = _DELETES
        return numbers


@dataclass(frozen=True, slots=True)
class _Sampling:
    job: _Job

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A sample of keys for each manifest."""
        for unit in received(batches):
            for batch in self.job.batches(unit):
                yield pa.record_batch({"answer": [packed(self.job.sample(batch))]})


@dataclass(frozen=True, slots=True)
class _Splitting:
    job: _Job
    bounds: bytes

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The entries of each manifest, apart by the leaf they go to."""
        bounds = unpacked(self.bounds)
        for unit in received(batches):
            for batch in self.job.batches(unit):
                numbers = self.job.leaf_numbers(batch, bounds)
                for leaf in np.unique(numbers):
                    part = packed(batch.filter(numbers == leaf))
                    yield pa.RecordBatch.from_arrays(
                        [pa.array([leaf], pa.int32()), pa.array([part], pa.binary())],
                        names=["leaf", "entries"],
                    )


@dataclass(frozen=True, slots=True)
class _Writing:
    job: _Job

    def run(self, parts: pa.Table) -> pa.Table:
        """One new leaf, or more where samples misjudged it: their entries, and files written."""
        reader = self.job.reader
        writer = TreeWriter(reader.storage, reader.metadata, location=reader.location)
        entries = EntryBatch.concat([unpacked(part.as_py()) for part in parts.column("entries")])
        most = min(MAX_LEAF_ENTRIES, int(self.job.target * _SLACK))
        leaves = writer.leaves(entries, target_entries=max(most, self.job.target))
        answer = pickle.dumps((packed(leaves), writer.written))
        return pa.table(
            {"leaf": parts.column("leaf").slice(0, 1), "answer": pa.array([answer], pa.binary())}
        )


@frozen
class RewrittenManifests:
    """What a rewrite of leaves did. `snapshot_id` is None when there was nothing to gain."""

    snapshot_id: int | None
    leaves_before: int
    leaves_after: int
    ms: float

    def __str__(self) -> str:
        if self.snapshot_id is None:
            return "no leaf is worth rewriting"
        after = counted(self.leaves_after, "leaf", "leaves")
        if not self.leaves_before:
            return f"moved the root's entries to {after}, {self.ms / 1000:.1f} s"
        before = counted(self.leaves_before, "leaf", "leaves")
        return f"rewrote {before} as {after}, {self.ms / 1000:.1f} s"


def rewrite_manifests(
    table: Table | str,
    *,
    leaves_per_task: int = _LEAVES_PER_TASK,
    catalog: CatalogLike | None = None,
    progress: bool | None = None,
) -> RewrittenManifests:
    """Rewrite every leaf, together with the root's entries, so that each covers a narrow range.

    A tree of more leaves than one task takes is rewritten by executors.
    """
    if leaves_per_task < 1:
        raise InvalidInput(f"leaves_per_task is {leaves_per_task}; expected at least 1")
    spark = session()
    began = time.perf_counter()
    target = table_of(spark, table, catalog)
    before = _leaves(target)
    with progress_bars(f"rewrite manifests of {target.name}", visible=progress) as report:
        rewritten = rewrite(
            target._handle,
            branch=target.branch_name,
            elsewhere=OnExecutors(spark, leaves_per_task) if before > leaves_per_task else None,
            progress=report,
        )
    return RewrittenManifests(
        snapshot_id=rewritten.snapshot_id,
        leaves_before=before,
        leaves_after=_leaves(target),
        ms=(time.perf_counter() - began) * 1000,
    )


def _leaves(table: Table) -> int:
    return len(table._handle.reader().tree(table.current_snapshot(), keys=()).leaves())
