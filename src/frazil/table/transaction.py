"""Several changes, one snapshot, all or nothing.

Each change is planned on what the ones before it leave: before the second is planned, the first is
staged as a root that no table points to. The catalog sees one commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, cast

from pyiceberg.expressions import BooleanExpression

from frazil.catalog.pointers import Pointers, TableHead
from frazil.commit.build import Builder
from frazil.commit.change import Change
from frazil.commit.fold import fold
from frazil.commit.handle import TableHandle, now_ms
from frazil.commit.head import State
from frazil.commit.loop import Committed, discard, undoing
from frazil.commit.result import STAGED, CommitResult, Counts
from frazil.commit.together import Work, commit_together
from frazil.commit.updates import MetadataUpdate, SetProperties
from frazil.data.row_input import Rows
from frazil.entrance import entrance
from frazil.errors import (
    CommitConflict,
    Conflict,
    FrazilError,
    InvalidInput,
    NotFound,
)
from frazil.expr.condition import Where
from frazil.expr.sql_text import Expression
from frazil.format import paths
from frazil.format.batch import EntryBatch
from frazil.format.checks import check_summary
from frazil.format.metadata import MAIN, RefKind, Snapshot, TableMetadata
from frazil.rows.editor import RowEditor
from frazil.rows.engine import Engine
from frazil.rows.merge import Merge, merge
from frazil.rows.scan import Scan
from frazil.storage import Places
from frazil.table.evolve import EvolvePartitions, EvolveSchema


@entrance
class Transaction:
    """Collects changes; `commit`, or leaving the `with` block without an error, lands them.

    >>> with orders.transaction() as tx:            # doctest: +SKIP
    ...     tx.delete("status = 'void'")
    ...     tx.append(corrections)
    """

    def __init__(
        self, handle: TableHandle, *, branch: str = MAIN, engine: Engine | None = None
    ) -> None:
        handle.check_writable()
        self._handle = handle
        self._state = handle.state
        self._branch = branch
        self._engine = engine
        self._change: Change | None = None
        self._staged: tuple[State, Builder] | None = None
        self._written: list[str] = []
        self._ended = False
        self.result = CommitResult.nothing("the transaction has not ended")
        self._began = time.perf_counter()
        ref = self._state.metadata.refs.get(branch)
        if ref is not None and ref.kind is RefKind.TAG:
            raise InvalidInput(f"{branch!r} is a tag; tags cannot be committed to")

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort()
            if isinstance(error, NotFound) and self._base_is_gone():
                raise CommitConflict(
                    "the snapshot that the change was planned on has expired; refresh the table "
                    "and run it again",
                    [Conflict(what="history was expired", where=self._branch)],
                ) from error

    def _base_is_gone(self) -> bool:
        base = self._base()
        return base is not None and self._handle.head.landed(int(base.snapshot_id)) is None

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata with the changes made so far."""
        metadata = self._state.metadata
        for update in () if self._change is None else self._change.updates:
            metadata = update.apply(metadata, now_ms=now_ms())
        return metadata

    # Rows

    def append(self, rows: Rows, *, summary: Mapping[str, str] | None = None) -> Transaction:
        """Add rows: Arrow, pandas, polars, or dictionaries."""
        check_summary(summary)
        return self._apply(self._editor(plans=False).append(rows), summary=summary)

    def delete(
        self,
        where: str | BooleanExpression,
        *,
        params: Sequence[Any] = (),
        summary: Mapping[str, str] | None = None,
    ) -> Transaction:
        """Delete the rows that match: any SQL condition, with `?` for values in `params`."""
        check_summary(summary)
        return self._apply(self._editor().delete(where, params), summary=summary)

    def update(
        self,
        assignments: Mapping[str, Any],
        where: Where = None,
        *,
        params: Sequence[Any] = (),
        summary: Mapping[str, str] | None = None,
    ) -> Transaction:
        """Update matching rows. `frazil.expr("price * 2")` is an expression; any other value is a
        literal."""
        check_summary(summary)
        change = self._editor().update(assignments, where, params)
        return self._apply(change, summary=summary)

    def upsert(
        self,
        rows: Rows,
        on: str | Sequence[str],
        *,
        update_matched: bool = True,
        insert_unmatched: bool = True,
        summary: Mapping[str, str] | None = None,
    ) -> Transaction:
        """Update rows whose key exists and insert the others."""
        check_summary(summary)
        change = self._editor().upsert(
            rows,
            [on] if isinstance(on, str) else list(on),
            update_matched=update_matched,
            insert_unmatched=insert_unmatched,
        )
        return self._apply(change, summary=summary)

    def merge(self, source: Rows, on: str | Expression | Sequence[str]) -> Merge:
        """Merge rows; `execute()` of the builder adds the change to this transaction."""

        def run(change: Callable[[RowEditor], Change], summary: Mapping[str, str]) -> CommitResult:
            self._apply_edit(change, summary=summary)
            return CommitResult.nothing(STAGED)

        return merge(self.metadata.schema(), source, on, run)

    def overwrite(
        self,
        rows: Rows,
        where: Where = None,
        *,
        params: Sequence[Any] = (),
        summary: Mapping[str, str] | None = None,
    ) -> Transaction:
        """Replace matching rows (all rows without `where`) with new ones."""
        check_summary(summary)
        return self._apply(self._editor().overwrite(rows, where, params), summary=summary)

    def overwrite_partitions(
        self, rows: Rows, *, summary: Mapping[str, str] | None = None
    ) -> Transaction:
        """Replace every partition that the new rows touch."""
        check_summary(summary)
        return self._apply(self._editor().overwrite_partitions(rows), summary=summary)

    # Files, for engines that write their own

    def _add_entries(
        self, entries: EntryBatch, *, summary: Mapping[str, str] | None = None
    ) -> Transaction:
        """Add files that have already been written."""
        return self._apply(self._plain(added=entries), summary=summary)

    # Metadata

    def set_properties(
        self, updates: Mapping[str, str], *, remove: Sequence[str] = ()
    ) -> Transaction:
        """Set and remove table properties."""
        return self._apply_update(SetProperties.of(updates, remove))

    def evolve_schema(self) -> EvolveSchema:
        """Change columns; `commit()` of the builder adds the change to this transaction."""
        return EvolveSchema(self.metadata, self._apply_updates)

    def evolve_partitions(self) -> EvolvePartitions:
        """Change the partitioning of new files."""
        return EvolvePartitions(self.metadata, self._apply_updates)

    def _apply_update(self, update: MetadataUpdate) -> Transaction:
        """Add a metadata change."""
        return self._apply(self._plain(updates=(update,)))

    def _apply_updates(self, change: Change) -> Transaction:
        """A builder's change knows neither branch nor base: only its updates count."""
        return self._apply(self._plain(updates=change.updates))

    # Reading what is staged

    def scan(self, where: Where = None, **options: Any) -> Scan:
        """A scan that sees this transaction's changes."""
        editor = self._editor()
        columns = options.pop("columns", None)
        return replace(editor.scan(where, columns), **options)

    # Ending

    def _apply_edit(
        self, edit: Callable[[RowEditor], Change], *, summary: Mapping[str, str] | None = None
    ) -> Transaction:
        """Add a change that is computed on the transaction's own state."""
        return self._apply(edit(self._editor()), summary=summary)

    def _apply(self, change: Change, *, summary: Mapping[str, str] | None = None) -> Transaction:
        """Add a change, as the methods above do."""
        self._check_open()
        check_summary(summary)
        if summary:
            change = replace(change, summary={**change.summary, **summary})
        if self._change is None:
            self._change = change
        else:
            around = self._handle.around
            self._change = fold(
                self._change,
                change,
                storage=around.storage,
                location=around.location,
                new_id=around.new_id,
                written=self._written,
            )
        self._unstage()
        return self

    def commit(self) -> CommitResult:
        """Commit everything as one snapshot."""
        self._check_open()
        self._ended = True
        self._unstage()
        if self._change is None or not (self._change.has_content or self._change.updates):
            discard(self._handle.storage, self._written)
            self.result = CommitResult.nothing(self._nothing, ms=self._elapsed_ms())
            return self.result
        with undoing(lambda: discard(self._handle.storage, self._written)):
            done = self._handle.commit(self._change)
        self.result = replace(done, ms=self._elapsed_ms())
        self._discard_unused(self._change)
        return self.result

    @property
    def _nothing(self) -> str:
        if self._change is None:
            return "the transaction is empty"
        return "no row to add" if self._change.conflict_filter is None else "no row matched"

    def _elapsed_ms(self) -> float:
        return (time.perf_counter() - self._began) * 1000

    def abort(self) -> None:
        """Discard everything and delete the files written for it."""
        if not self._ended:
            self._ended = True
            self.result = CommitResult.nothing("the transaction was aborted")
            self._unstage()
            discard(self._handle.storage, self._written)

    def _discard_unused(self, change: Change) -> None:
        """Remove files of rows that a later step of the transaction took away again."""
        unused = _unused(self._written, change, self._handle.location)
        discard(self._handle.storage, unused)

    def _took(self, state: State) -> None:
        """Take the state of a commit of several tables, and do what follows a commit."""
        self._handle.state = state
        done = Committed(
            state=state,
            snapshot=state.tip(self._branch),
            counts=Counts(),
            attempts=1,
            metadata_files=0,
            metadata_bytes=0,
        )
        for step in self._handle.after_commit:
            step(self._handle, done)

    def _check_open(self) -> None:
        if self._ended:
            raise InvalidInput("the transaction has ended; start a new one")

    def _plain(self, **parts: Any) -> Change:
        tip = self._base()
        base = None if tip is None else int(tip.snapshot_id)
        return Change(branch=self._branch, base_snapshot_id=base, **parts)

    def _base(self) -> Snapshot | None:
        if self._branch in self._state.metadata.refs:
            return self._state.tip(self._branch)
        return self._state.tip()

    def _editor(self, *, plans: bool = True) -> RowEditor:
        """An editor on the staged state; appends plan nothing and need no staging."""
        self._check_open()
        snapshot = self._staged_snapshot() if plans else self._base()
        return RowEditor(
            handle=self._handle,
            metadata=self.metadata,
            snapshot=snapshot,
            branch=self._branch,
            written=self._written,
            given_engine=self._engine,
        )

    def _staged_snapshot(self) -> Snapshot | None:
        if self._change is None or not self._change.has_content:
            return self._base()
        if self._staged is None:
            builder = Builder(self._change, self._handle.around, self._handle.head, is_staged=True)
            try:
                built = builder.build(self._state)
            except FrazilError:
                discard(self._handle.storage, builder.written)
                raise
            assert built.snapshot is not None
            staged = replace(
                self._state,
                metadata=built.draft.metadata,
                snapshots={
                    **self._state.snapshots,
                    int(built.snapshot.snapshot_id): built.snapshot,
                },
            )
            self._staged = (staged, builder)
        staged_state, _ = self._staged
        return staged_state.tip(self._branch)

    def _unstage(self) -> None:
        if self._staged is not None:
            discard(self._handle.storage, self._staged[1].written)
            self._staged = None


def _unused(written: Sequence[str], change: Change, location: str) -> list[str]:
    """Files that no entry of a change points at, however either spells them: `write.data.path`
    may be `/data` where entries say `file:///data`."""
    if change.added is None:
        return list(written)
    if not written:
        return []
    names = (*change.added.pylist("location"), *change.added.pylist("deletion_vector.location"))
    pointed_at = {paths.resolve(location, name) for name in names if name is not None}
    doubtful = [path for path in written if path not in pointed_at]
    if not doubtful:
        return []
    places = Places()
    used = {places.file(path) for path in pointed_at}
    return [path for path in doubtful if places.file(path) not in used]


def commit_all(opened: Sequence[Transaction], pointers: Pointers) -> None:
    """Land transactions of several tables of one catalog at once: all of them, or none."""
    for tx in opened:
        tx._check_open()
        tx._ended = True
        tx._unstage()
    changed = [(tx, tx._change) for tx in opened if tx._change is not None]
    works = [_work(tx, change) for tx, change in changed if change.has_content or change.updates]
    if not works:
        return

    def discard_all() -> None:
        for tx in opened:
            discard(tx._handle.storage, tx._written)

    with undoing(discard_all):
        states = commit_together(
            works,
            lambda drafts: pointers.swap_all(
                [(cast(TableHead, work.head), base, draft) for work, base, draft in drafts]
            ),
        )
    landed = {id(work.head): state for work, state in zip(works, states, strict=True)}
    for tx, change in changed:
        state = landed.get(id(tx._handle.head))
        if state is not None:
            tx._took(state)
        tx._discard_unused(change)


def _work(tx: Transaction, change: Change) -> Work:
    return Work(head=tx._handle.head, around=tx._handle.around, plan=lambda state: [change])
