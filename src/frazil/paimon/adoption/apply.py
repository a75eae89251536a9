"""One prepared snapshot becomes one commit: files that came, files that went, vectors that grew.

Works on any head, staged or real. The difference is taken against the files that the branch has
now, so it does not matter which Paimon snapshots lie between.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.catalog.names import Identifier
from frazil.catalog.ownership import PAIMON_LOCATION
from frazil.commit.build import Builder
from frazil.commit.change import Change, VectorEdit
from frazil.commit.context import CommitContext
from frazil.commit.head import Head, Landed, Lost, State
from frazil.commit.loop import discard
from frazil.commit.updates import MetadataUpdate, SetProperties, SetRef
from frazil.errors import CommitConflict, CommitUnknown, InvalidInput
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import (
    RefKind,
    SchemaId,
    Snapshot,
    SnapshotId,
    SnapshotRef,
    TableMetadata,
)
from frazil.format.vectors import puffin
from frazil.iceberg.schema import Schema
from frazil.paimon.adoption.adoption_plan import BranchPlan
from frazil.paimon.adoption.takeover import Takeover, entries, taken_vectors
from frazil.paimon.read import as_iceberg
from frazil.paimon.read.directories import MAIN_BRANCH
from frazil.paimon.read.paimon_table import PaimonTable
from frazil.paimon.read.snapshot import PaimonSnapshot, Tag
from frazil.paimon.read.vector_files import Positions
from frazil.tree.stored_vectors import with_vectors
from frazil.value_classes import dataclass, field, frozen, replace

LOCATION: Final = PAIMON_LOCATION
SNAPSHOT_ID: Final = "paimon.snapshot-id"
SNAPSHOT_TIME: Final = "paimon.snapshot-time-ms"
BRANCH: Final = "paimon.branch"
COMMIT_KIND: Final = "paimon.commit-kind"
CREATED_BY: Final = "frazil"
_VECTOR_LOCATION: Final = "deletion_vector.location"
_FILE_KEYS: Final = ("location", "content_type", _VECTOR_LOCATION, "deletion_vector.cardinality")


@frozen
class UseSchema:
    """Make a Paimon schema version the current schema, keeping its field ids and its id."""

    schema: Schema
    last_column_id: int

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        """The metadata with the schema current."""
        same = [s for s in metadata.schemas if s == self.schema]
        schema_ids = {s.schema_id for s in metadata.schemas}
        chosen = self.schema
        if same:
            chosen = same[0]
        elif self.schema.schema_id in schema_ids:
            chosen = Schema(
                *self.schema.fields,
                schema_id=max(schema_ids) + 1,
                identifier_field_ids=self.schema.identifier_field_ids,
            )
        return replace(
            metadata,
            schemas=metadata.schemas if same else (*metadata.schemas, chosen),
            current_schema_id=SchemaId(chosen.schema_id),
            last_column_id=max(metadata.last_column_id, self.last_column_id),
            last_updated_ms=max(metadata.last_updated_ms, now_ms),
        )


@frozen
class TakenSnapshot:
    """A Paimon snapshot, the snapshot it became, and what that changed."""

    branch: str
    paimon_snapshot_id: int
    snapshot_id: int
    added_files: int
    removed_files: int
    changed_vectors: int


@frozen(eq=False)
class _Files:
    """Live data files of a branch, as stored, and how many rows their vectors delete."""

    locations: pa.Array
    cardinalities: Mapping[str, int]


def summary_of(snapshot: Snapshot | None) -> Mapping[str, str]:
    """A snapshot's summary; empty when there is no snapshot."""
    return {} if snapshot is None else snapshot.summary


@dataclass(slots=True)
class Run:
    """One adoption under way: the head, its state, and every file written so far."""

    head: Head
    context: CommitContext
    state: State
    written: list[str] = field(default_factory=list)
    """Files of commits that landed."""
    pending: list[str] = field(default_factory=list)
    """Files written for the commit under way."""
    _files: dict[str, _Files] = field(default_factory=dict)

    def take(
        self,
        plan: BranchPlan,
        takeover: Takeover,
        *,
        exclude: Collection[str],
        merged: EntryBatch | None = None,
    ) -> TakenSnapshot:
        """Commit the difference between the branch as it is and the prepared snapshot."""
        location = self.context.location
        absolute = taken_vectors(plan.table, takeover)
        vectors = {paths.relativise(location, path): rows for path, rows in absolute.items()}
        stored = _flat(paths.relativise_all(location, pa.chunked_array([takeover.locations])))
        before = self._branch_files(plan.branch)
        # Vectors only grow in a tree. A file whose vector shrank is removed and added again.
        shrunk = [
            path
            for path, count in before.cardinalities.items()
            if count > len(vectors.get(path, ()))
        ]
        came = _mask(pc.invert(pc.is_in(stored, before.locations)))
        came |= _mask(pc.is_in(stored, pa.array(shrunk, pa.string())))
        went = _mask(pc.invert(pc.is_in(before.locations, stored)))
        went |= _mask(pc.is_in(before.locations, pa.array(shrunk, pa.string())))
        kept_paths = set(stored.filter(pa.array(~came)).to_pylist()) if vectors else set()
        edits = tuple(
            VectorEdit(location=path, positions=rows)
            for path, rows in sorted(vectors.items())
            if path in kept_paths and before.cardinalities.get(path, 0) < len(rows)
        )
        added = entries(takeover, location=location, vectors=absolute, only=came)
        born = {path: rows for path, rows in vectors.items() if path not in kept_paths}
        added = self._born(added, born)
        if merged is not None:
            added = EntryBatch.concat([added, merged])
        removed = EntryBatch(pa.table({"location": before.locations.filter(pa.array(went))}))
        snapshot = takeover.state.snapshot
        change = self._change(plan, snapshot, added, removed, edits)
        result = self._land(
            replace(change, updates=(self._schema_update(plan.table, exclude, snapshot),)),
            now_ms=snapshot.time_ms,
        )
        assert result is not None
        cardinalities = {path: len(rows) for path, rows in vectors.items()}
        locations = stored
        if merged is not None and merged.num_rows:
            locations = pa.concat_arrays([stored, _flat(merged.column("location"))])
        self._files[plan.branch] = _Files(locations=locations, cardinalities=cardinalities)
        return TakenSnapshot(
            branch=plan.branch,
            paimon_snapshot_id=snapshot.id,
            snapshot_id=result.snapshot_id,
            added_files=added.num_rows,
            removed_files=removed.num_rows,
            changed_vectors=len(edits),
        )

    def _change(
        self,
        plan: BranchPlan,
        snapshot: PaimonSnapshot,
        added: EntryBatch,
        gone: EntryBatch,
        edits: tuple[VectorEdit, ...],
    ) -> Change:
        tip = self.state.tip(plan.branch)
        summary = {
            SNAPSHOT_ID: str(snapshot.id),
            SNAPSHOT_TIME: str(snapshot.time_ms),
            BRANCH: plan.branch,
            COMMIT_KIND: snapshot.commit_kind,
        }
        before = summary_of(tip)
        follows = before.get(SNAPSHOT_ID) == str(snapshot.id - 1)
        keyed = plan.table.schema(snapshot.schema_id).has_primary_key
        # A compaction of an append-only table moves rows; of a keyed one it may also show new ones.
        moves = snapshot.commit_kind == "COMPACT" and follows and not keyed
        is_empty = not (added.num_rows or gone.num_rows or edits)
        return Change(
            added=added,
            removed=None if moves else gone,
            replaced=gone if moves else None,
            vectors=edits,
            branch=plan.branch,
            base_snapshot_id=None if tip is None else tip.snapshot_id,
            is_rewrite=moves,
            rewrite_leaves=() if is_empty else None,
            summary=summary,
        )

    def _born(self, added: EntryBatch, vectors: Mapping[str, Positions]) -> EntryBatch:
        """Added entries with their deletion vectors, in one Puffin file."""
        if not vectors:
            return added
        location = self.context.location
        order = sorted(vectors)
        puffin_file = f"data/{self.context.new_id()}.puffin"
        data, written = puffin.write_vectors(
            [(paths.resolve(location, path), vectors[path]) for path in order],
            location=puffin_file,
            created_by=CREATED_BY,
        )
        self._write(paths.resolve(location, puffin_file), data)
        by_path = dict(zip(order, written, strict=True))
        return with_vectors(added, [by_path.get(path) for path in added.pylist("location")])

    def _write(self, path: str, data: bytes) -> None:
        self.pending.append(path)
        self.context.storage.write_new(path, data)

    def _land(self, change: Change, *, now_ms: int) -> Snapshot | None:
        """Build the change on the state at hand and swap it in; no second attempt."""
        context = replace(self.context, now_ms=lambda: now_ms)
        builder = Builder(change, context, self.head)
        try:
            built = builder.build(self.state)
        except BaseException:
            self._give_up(builder)
            raise
        outcome = self.head.swap(self.state, built.draft)
        if isinstance(outcome, Lost):
            self._give_up(builder)
            raise CommitConflict(
                f"{self.context.location}: another commit landed during the adoption; run it again"
            )
        if not isinstance(outcome, Landed):
            raise CommitUnknown(
                f"the catalog did not answer whether a snapshot landed ({outcome.cause}); "
                "run the adoption again; it continues where it stopped"
            ) from outcome.cause
        self.written += [*builder.written, *self.pending]
        self.pending.clear()
        (self.state,) = outcome.states
        return built.result.snapshot

    def _give_up(self, builder: Builder) -> None:
        discard(self.context.storage, [*builder.written, *self.pending])
        self.pending.clear()

    # Schemas, names

    def _schema_update(
        self, table: PaimonTable, exclude: Collection[str], snapshot: PaimonSnapshot
    ) -> MetadataUpdate:
        version = table.schema(snapshot.schema_id)
        earlier = [table.schema(i) for i in table.schema_ids() if i < version.id]
        schema = as_iceberg.iceberg_schema(version, earlier=earlier, exclude=exclude)
        return UseSchema(schema=schema, last_column_id=version.highest_field_id)

    def use_schema(
        self, table: PaimonTable, exclude: Collection[str], snapshot: PaimonSnapshot | None = None
    ) -> None:
        """Make the schema of a snapshot, or of the branch's tip, the current one."""
        if snapshot is None:
            reached = summary_of(self.state.tip()).get(SNAPSHOT_ID)
            if reached is None:
                return
            snapshot = _snapshot_of(table, int(reached))
            if snapshot is None:
                return
        update = self._schema_update(table, exclude, snapshot)
        after = update.apply(self.state.metadata, now_ms=snapshot.time_ms)
        if after.current_schema_id != self.state.metadata.current_schema_id:
            self._land(Change(updates=(update,)), now_ms=snapshot.time_ms)

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set table properties that differ."""
        metadata = self.state.metadata
        changed = {k: v for k, v in properties.items() if metadata.properties.get(k) != v}
        if changed:
            update = SetProperties(updates=changed)
            self._land(Change(updates=(update,)), now_ms=metadata.last_updated_ms)

    def start_branch(self, branch: str, fork: PaimonSnapshot | None, notes: list[str]) -> None:
        """Create a branch where it left `main`, or at the nearest adopted snapshot."""
        main_ids = self._taken(MAIN_BRANCH)
        at = max((i for i in main_ids if fork is not None and i <= fork.id), default=None)
        if at is None:
            at = min(main_ids)
            notes.append(f"branch {branch!r} starts at snapshot {at}, the oldest that was adopted")
        ref = SnapshotRef(snapshot_id=SnapshotId(main_ids[at]))
        self._set_ref(branch, ref)

    def tag(self, plan: BranchPlan, tag: Tag) -> str | None:
        """Name a snapshot; returns why not, or "" when the tag is there already."""
        snapshot_id = self._taken(plan.branch).get(tag.snapshot.id)
        if snapshot_id is None:
            return f"tag {tag.name!r}: its snapshot {tag.snapshot.id} was not adopted"
        now = self.state.metadata.refs.get(tag.name)
        if now is not None and now.snapshot_id == snapshot_id:
            return ""
        if now is not None and now.kind is RefKind.BRANCH:
            return f"tag {tag.name!r}: a branch has that name"
        ref = SnapshotRef(
            snapshot_id=SnapshotId(snapshot_id),
            kind=RefKind.TAG,
            max_ref_age_ms=tag.time_retained_ms,
        )
        self._set_ref(tag.name, ref)
        return None

    def _set_ref(self, name: str, ref: SnapshotRef) -> None:
        now = self.state.metadata.refs.get(name)
        update = SetRef(name=name, ref=ref, expected=None if now is None else now.snapshot_id)
        self._land(Change(updates=(update,)), now_ms=self.state.metadata.last_updated_ms)

    # What was adopted before

    def _taken(self, branch: str) -> dict[int, int]:
        """Imported snapshots, by Paimon's id."""
        return {
            int(snapshot.summary[SNAPSHOT_ID]): snapshot.snapshot_id
            for snapshot in self.head.snapshots()
            if snapshot.summary.get(BRANCH) == branch and SNAPSHOT_ID in snapshot.summary
        }

    def tip_taken(self, branch: str) -> Snapshot | None:
        """The latest snapshot of a branch that came from Paimon."""
        snapshot = self.state.tip(branch)
        while snapshot is not None and SNAPSHOT_ID not in snapshot.summary:
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self.head.snapshot(parent)
        return snapshot

    def reached(self) -> dict[str, int]:
        """The Paimon snapshot that each branch has come to."""
        snapshots = {}
        for name, ref in self.state.metadata.refs.items():
            snapshot = self.tip_taken(name) if ref.kind is RefKind.BRANCH else None
            if snapshot is not None and snapshot.summary.get(BRANCH) == name:
                snapshots[name] = int(snapshot.summary[SNAPSHOT_ID])
        return snapshots

    def check_unchanged(self, branch: str, name: Identifier) -> None:
        """Refuse to go on when the files of a branch were changed by others."""
        tip, tip_id = self.state.tip(branch), self.tip_taken(branch)
        assert tip is not None
        assert tip_id is not None
        if tip.snapshot_id == tip_id.snapshot_id:
            return
        now, then = self._files_at(tip), self._files_at(tip_id)
        same = set(now.locations.to_pylist()) == set(then.locations.to_pylist())
        if not same or dict(now.cardinalities) != dict(then.cardinalities):
            raise InvalidInput(
                f"{name}: {branch} was changed here since Paimon's snapshot "
                f"{tip_id.summary[SNAPSHOT_ID]} was adopted ({tip.operation}, snapshot "
                f"{tip.snapshot_id}); going on would mix both. Adopt it under another name"
            )

    def _branch_files(self, branch: str) -> _Files:
        if branch not in self._files:
            self._files[branch] = self._files_at(self.state.tip(branch))
        return self._files[branch]

    def _files_at(self, snapshot: Snapshot | None) -> _Files:
        if snapshot is None:
            return _Files(locations=pa.array([], pa.string()), cardinalities={})
        reader = self.context.reader(self.state.metadata)
        batches = [
            batch.select(_FILE_KEYS)
            for batch in reader.all_live(reader.tree(snapshot), keys=_FILE_KEYS)
        ]
        live = EntryBatch.concat(batches)
        with_vector = live.filter(_mask(pc.is_valid(live.column(_VECTOR_LOCATION))))
        return _Files(
            locations=_flat(live.column("location")),
            cardinalities=dict(
                zip(
                    with_vector.pylist("location"),
                    with_vector.pylist("deletion_vector.cardinality"),
                    strict=True,
                )
            ),
        )


def _snapshot_of(table: PaimonTable, snapshot_id: int) -> PaimonSnapshot | None:
    if snapshot_id in table.snapshot_ids():
        return table.snapshot(snapshot_id)
    return next((t.snapshot for t in table.tags() if t.snapshot.id == snapshot_id), None)


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _mask(values: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    flat = _flat(values)
    return np.asarray(flat.to_numpy(zero_copy_only=False), dtype=bool).copy()
