"""A table of metadata alone, whose trees can be looked at entry by entry.

Files have names like D1 and need not exist. Snapshot ids count from 1, and so do the names of
leaves as they are shown: M1 is the first leaf that any root named, N1 the first delete leaf.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frazil.commit.change import Change, VectorEdit
from frazil.commit.context import CommitContext
from frazil.commit.head import Draft, Head, Outcome, State, Unknown
from frazil.commit.loop import commit
from frazil.commit.result import CommitResult
from frazil.errors import CatalogError
from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import History, Snapshot, TableMetadata, new_table
from frazil.format.vectors import bitmap, puffin
from frazil.iceberg.partitioning import UNPARTITIONED, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import UNSORTED, SortOrder
from frazil.iceberg.types import LongType, NestedField, StringType
from frazil.legacy.read.legacy_decoder import LegacyDecoder
from frazil.storage import LocalStorage
from frazil.tree.cache import ManifestCache
from frazil.tree.changes import TreeChanges, changes_of
from frazil.tree.read import Tree, TreeReader
from frazil.tree.table_shape import shape_of
from tests.support.memory_catalog import MemoryCatalog

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "country", StringType(), required=False),
)
ROWS = 10
"""Rows of a file whose size does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An entry as a test states it. `dv` are positions, of a leaf or of a data file."""

    name: str
    status: str
    by: int | None
    """snapshot_id"""
    seq: int | None
    """sequence_number"""
    file_seq: int | None
    row: int | None = None
    """first_row_id"""
    dv: frozenset[int] | None = None
    dv_by: int | None = None
    deleted: frozenset[int] | None = None
    replaced: frozenset[int] | None = None


def seen(
    name: str,
    status: str,
    *,
    by: int | None,
    seq: int | None,
    file_seq: int | None = -1,
    **more: Any,
) -> Seen:
    """An expected entry; the file sequence number is the data's unless told otherwise."""
    for key in ("dv", "deleted", "replaced"):
        if key in more:
            more[key] = frozenset(more[key])
    own = seq if file_seq == -1 else file_seq
    return Seen(name=name, status=status, by=by, seq=seq, file_seq=own, **more)


class ScriptedHead:
    """A head around another one: others commit just before a swap, replies get lost."""

    def __init__(self, inner: Head) -> None:
        self.inner = inner
        self.before_swap: list[Callable[[], object]] = []
        self.lose_reply_after: list[bool] = []
        """One per swap to come: True lands and loses the reply, False fails and loses it."""
        self.unreachable = 0
        """How many questions whether a snapshot landed fail."""
        self.swaps = 0

    def load(self) -> State:
        return self.inner.load()

    def swap(self, base: State, draft: Draft) -> Outcome:
        self.swaps += 1
        if self.before_swap:
            self.before_swap.pop(0)()
        if self.lose_reply_after:
            if self.lose_reply_after.pop(0):
                self.inner.swap(base, draft)
            return Unknown(cause=CatalogError("connection reset"))
        return self.inner.swap(base, draft)

    def landed(self, snapshot_id: int) -> State | None:
        if self.unreachable:
            self.unreachable -= 1
            raise CatalogError("connection refused")
        return self.inner.landed(snapshot_id)

    def snapshot(self, snapshot_id: int) -> Snapshot:
        return self.inner.snapshot(snapshot_id)

    def snapshots(self) -> Iterator[Snapshot]:
        return iter(self.inner.snapshots())


class Bench:
    """One table and everything a test does to it."""

    def __init__(
        self,
        folder: Path,
        *,
        schema: Schema = SCHEMA,
        spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        properties: Mapping[str, str] | None = None,
        metadata: TableMetadata | None = None,
        history: History | None = None,
    ) -> None:
        self.storage = LocalStorage()
        self.catalog = MemoryCatalog(warehouse=str(folder))
        self.catalog.namespaces.create("test")
        made = metadata or new_table(
            schema=schema,
            spec=spec,
            sort_order=sort_order,
            location=str(folder / "table"),
            table_uuid=uuid.UUID(int=7),
            now_ms=1_000,
            properties={"write.metadata.json-every": "0", **(properties or {})},
        )
        self.location = made.location
        self.head = ScriptedHead(self.catalog.create_table("test.table", made, history))
        self._clock = itertools.count(2_000)
        self._ids = itertools.count(1)
        self._names = itertools.count(1)
        self._leaves: dict[str, str] = {}
        self.context = self.new_context()

    def new_context(self) -> CommitContext:
        """A writer of its own: nothing cached, the same clock and ids."""
        return CommitContext(
            storage=self.storage,
            location=self.location,
            cache=ManifestCache(),
            now_ms=lambda: next(self._clock),
            new_snapshot_id=lambda: next(self._ids),
            new_id=lambda: f"{next(self._names):04d}",
            decoder=LegacyDecoder(),
        )

    # Committing

    def commit(self, change: Change, *, base: State | None = None) -> CommitResult:
        """Land a change at once; waits take no time."""
        done = commit(change, head=self.head, context=self.context, base=base, sleep=lambda _: None)
        self.name_leaves()
        return done

    def other(self, change: Change) -> CommitResult:
        """Land a change of another writer, past the script."""
        context = self.new_context()
        return commit(change, head=self.head.inner, context=context, sleep=lambda _: None)

    def append(self, *names: str, **more: Any) -> CommitResult:
        """Add files of ten rows without statistics."""
        return self.commit(Change(added=self.files(*names, **more)))

    def remove(self, *names: str) -> CommitResult:
        """Remove files."""
        return self.commit(self.removal(*names))

    def removal(self, *names: str) -> Change:
        """The change that removes files."""
        return Change(removed=located(*names), base_snapshot_id=self.tip_id())

    def vector(self, name: str, *positions: int, **more: Any) -> VectorEdit:
        """Rows of one file to delete."""
        return VectorEdit(location=name, positions=np.array(positions, dtype=np.int64), **more)

    def delete_rows(
        self, name: str, *positions: int, added: EntryBatch | None = None
    ) -> CommitResult:
        """Delete rows of one file."""
        change = Change(
            vectors=(self.vector(name, *positions),), added=added, base_snapshot_id=self.tip_id()
        )
        return self.commit(change)

    def files(self, *names: str, **more: Any) -> EntryBatch:
        """Entries of files; keys with `__` for the dot, e.g. `tracking__sequence_number=3`."""
        extra = {key.replace("__", "."): value for key, value in more.items()}
        return self.entries([{"location": name, **extra} for name in names])

    def entries(self, rows: Sequence[Mapping[str, Any]]) -> EntryBatch:
        """Entries of files, everything a test does not state filled in."""
        usual = {
            "tracking.status": int(Status.ADDED),
            "content_type": int(ContentType.DATA),
            "file_format": "parquet",
            "record_count": ROWS,
            "file_size_in_bytes": 1_000,
        }
        return EntryBatch.from_rows(
            [{**usual, **row} for row in rows], shape_of(self.metadata).stats_types
        )

    # Looking

    @property
    def metadata(self) -> TableMetadata:
        return self.head.load().metadata

    @property
    def tip(self) -> Snapshot:
        found = self.head.load().tip()
        assert found is not None
        return found

    def tip_id(self, branch: str = "main") -> int | None:
        found = self.head.load().tip(branch)
        return None if found is None else int(found.snapshot_id)

    def reader(self) -> TreeReader:
        """A reader with nothing cached."""
        return TreeReader(
            self.storage, self.metadata, location=self.location, decoder=LegacyDecoder()
        )

    def tree(self, snapshot: Snapshot | None = None) -> Tree:
        return self.reader().tree(snapshot or self.tip)

    def root(self, snapshot: Snapshot | None = None) -> list[Seen]:
        """The root as it is on disk."""
        self.name_leaves()
        return self._shown((snapshot or self.tip).root_manifest or "")

    def leaf(self, name: str) -> list[Seen]:
        """A leaf as it is on disk, nothing inherited."""
        return self._shown(self.leaf_location(name))

    def leaf_location(self, name: str) -> str:
        """Where the leaf shown by a name is."""
        return next(location for location, known in self._leaves.items() if known == name)

    def row(self, name: str, snapshot: Snapshot | None = None) -> dict[str, Any]:
        """All of one live entry of a root."""
        root = self.tree(snapshot).root
        rows = [root.row(index) for index in range(root.num_rows)]
        live = [row for row in rows if row["tracking.status"] not in (2, 3)]
        return next(row for row in live if self._name(row["location"]) == name)

    def live(self, snapshot: Snapshot | None = None) -> dict[str, tuple[int, ...]]:
        """Live files with the rows their deletion vectors retire."""
        found: dict[str, tuple[int, ...]] = {}
        reader = self.reader()
        for batch in reader.all_live(reader.tree(snapshot or self.tip)):
            for index in range(batch.num_rows):
                row = batch.row(index)
                assert row["location"] not in found, "a file is listed twice"
                found[row["location"]] = tuple(sorted(self._vector(row) or ()))
        return found

    def changes(self, snapshot: Snapshot | None = None) -> dict[str, list[str]]:
        """Names of the files in each part of a change set, parts without any left out."""
        found = self.change_set(snapshot)
        parts = {
            "added": found.added,
            "deleted": found.deleted,
            "replaced": found.replaced,
            "modified": found.modified,
        }
        named = {name: sorted(batch.pylist("location")) for name, batch in parts.items()}
        return {name: files for name, files in named.items() if files}

    def change_set(self, snapshot: Snapshot | None = None) -> TreeChanges:
        return changes_of(self.reader(), snapshot or self.tip)

    def stored(self) -> list[str]:
        """Every file of the table, relative to it."""
        return sorted(
            info.path[len(self.location) + 1 :] for info in self.storage.list(self.location)
        )

    def kinds_written(self, work: Callable[[], object]) -> list[str]:
        """What kinds of files some work wrote, in order: root, leaf, puffin."""
        with self.storage.recording() as calls:
            work()
        return [kind_of(call.path) for call in calls if call.verb == "write"]

    def name_leaves(self) -> None:
        """Give leaves of the tip the names they are shown by, in the root's order."""
        for branch in self.metadata.refs:
            snapshot = self.head.load().tip(branch)
            if snapshot is None or snapshot.root_manifest is None:
                continue
            for leaf in self.reader().tree(snapshot).leaves():
                if leaf.location not in self._leaves:
                    letter = "M" if leaf.content_type is ContentType.DATA_MANIFEST else "N"
                    count = sum(known.startswith(letter) for known in self._leaves.values())
                    self._leaves[leaf.location] = f"{letter}{count + 1}"

    def call_leaves(self, names: Mapping[str, str]) -> None:
        """Name leaves by hand."""
        self._leaves |= names

    def _name(self, location: str) -> str:
        return self._leaves.get(location, location)

    def _shown(self, location: str) -> list[Seen]:
        path = f"{self.location}/{location}"
        batch = manifest.decode(self.storage.read(path), path=path).batch
        return [self._seen(batch.row(index)) for index in range(batch.num_rows)]

    def _seen(self, row: Mapping[str, Any]) -> Seen:
        inline = row.get("manifest_info.dv")
        return Seen(
            name=self._name(row["location"]),
            status=Status(row["tracking.status"]).name,
            by=row.get("tracking.snapshot_id"),
            seq=row.get("tracking.sequence_number"),
            file_seq=row.get("tracking.file_sequence_number"),
            row=row.get("tracking.first_row_id"),
            dv=_positions(inline) if inline else self._vector(row),
            dv_by=row.get("tracking.modified_snapshot_id"),
            deleted=_positions(row.get("tracking.deleted_positions")),
            replaced=_positions(row.get("tracking.replaced_positions")),
        )

    def _vector(self, row: Mapping[str, Any]) -> frozenset[int] | None:
        location = row.get("deletion_vector.location")
        if location is None:
            return None
        offset, size = row["deletion_vector.offset"], row["deletion_vector.size_in_bytes"]
        data = self.storage.read(f"{self.location}/{location}")
        found = puffin.decode_vector(data[offset : offset + size])
        assert len(found) == row["deletion_vector.cardinality"]
        return frozenset(int(position) for position in found)


def _positions(data: bytes | None) -> frozenset[int] | None:
    return None if data is None else frozenset(int(position) for position in bitmap.decode(data))


def located(*names: str, leaf: str | None = None, positions: Sequence[int] = ()) -> EntryBatch:
    """Files by name, with hints where to find them if there are any."""
    rows: list[dict[str, Any]] = [{"location": name} for name in names]
    for row, position in zip(rows, positions, strict=False):
        row |= {"@leaf": leaf, "@position": position}
    return EntryBatch.from_rows(rows)


def bounds(field_id: int, lower: Any, upper: Any, *, nulls: int = 0) -> dict[str, Any]:
    """The statistics of one column of a file of ten rows."""
    return {
        stats_key(field_id, "lower_bound"): lower,
        stats_key(field_id, "upper_bound"): upper,
        stats_key(field_id, "tight_bounds"): True,
        stats_key(field_id, "value_count"): ROWS,
        stats_key(field_id, "null_value_count"): nulls,
    }


def kind_of(path: str) -> str:
    """What kind of file a path names."""
    name = path.rpartition("/")[2]
    return "puffin" if name.endswith(".puffin") else name.partition("-")[0]


__all__ = [
    "ROWS",
    "SCHEMA",
    "Bench",
    "ScriptedHead",
    "Seen",
    "bounds",
    "kind_of",
    "located",
    "seen",
]
