"""Several changes, one snapshot, all or nothing.

Each change is planned on what the ones before it leave: before the second is planned, the first is
staged as a root that no table points to. The catalog sees one commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from frazil.argument_checks import check_arguments
from frazil.catalog.backend import CatalogBackend, TableHead
from frazil.commit.build import Builder
from frazil.commit.change import Change, Isolation, RowsRead, Searched
from frazil.commit.fold import fold
from frazil.commit.handle import TableHandle, now_ms
from frazil.commit.head import State
from frazil.commit.loop import TableCommit, commit_tables, discard, replayed, undoing
from frazil.commit.result import STAGED, CommitResult
from frazil.commit.updates import MetadataUpdate, SetProperties
from frazil.data.write.row_input import Rows
from frazil.errors import CommitConflict, Conflict, FrazilError, InvalidInput, NotFound
from frazil.filter.condition import Matching, Where
from frazil.filter.text.sql_text import Expression
from frazil.format import paths
from frazil.format.checks import check_summary
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import all_locations
from frazil.format.metadata.metadata import MAIN, RefKind, Snapshot, TableMetadata
from frazil.iceberg.expressions import AlwaysTrue
from frazil.rows.editor import RowEditor
from frazil.rows.engine import Engine
from frazil.rows.scan import Scan
from frazil.storage import Places
from frazil.table.column_operations import add_columns, merge_columns
from frazil.value_classes import replace

if TYPE_CHECKING:
    from frazil.rows.merge import Merge
    from frazil.table.columns.evolve import EvolvePartitions, EvolveSchema


@check_arguments
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
        self._origin = handle
        self._handle = handle.at_rest()
        self._has_read = not handle.is_live
        self._overwrites = False
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
            if isinstance(error, CommitConflict):
                self._move_on()
            if isinstance(error, NotFound) and self._base_is_gone():
                raise CommitConflict(
                    "the snapshot that the change was planned on has expired; run it again",
                    [Conflict(what="history was expired", where=self._branch)],
                ) from error

    def _move_on(self) -> None:
        """After a conflict: its caller knows of it, so the same overwrite may be tried again."""
        if self._overwrites and self._origin.is_live:
            self._origin.refresh()
            self._origin.note_read(self._branch)

    def _rows_read(self) -> RowsRead:
        """Where rows to overwrite with come from: what this transaction reads, or else what was
        read of the table before."""
        if not self._has_read:
            return RowsRead(snapshot_id=self._origin.last_read(self._branch))
        base = self._base()
        return RowsRead(snapshot_id=None if base is None else int(base.snapshot_id))

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

    def append(
        self,
        rows: Rows,
        *,
        schema: str = "strict",
        summary: Mapping[str, str] | None = None,
    ) -> Transaction:
        """Add rows: Arrow, pandas, polars, or dictionaries. With `schema="merge"` columns that the
        table lacks are added to it."""
        check_summary(summary)
        rows = self._merge_columns(rows, schema)
        return self._apply(self._editor(plans=False).append(rows), summary=summary)

    def _merge_columns(self, rows: Rows, schema: str) -> Rows:
        """Give the table the columns that rows have more, if asked to; the rows to write then."""
        if schema == "strict":
            return rows
        if schema != "merge":
            raise InvalidInput(f"schema is {schema!r}; expected 'strict' or 'merge'")
        from frazil.table.columns.merge_on_write import columns_to_merge

        new_columns, rows = columns_to_merge(rows, self.metadata.schema())
        if new_columns.names:
            self.evolve_schema().union_by_name(new_columns).commit()
        return rows

    def delete(
        self,
        where: Matching,
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
        mode: str | None = None,
        summary: Mapping[str, str] | None = None,
    ) -> Transaction:
        """Update matching rows. `frazil.expr("price * 2")` is an expression; any other value is a
        literal. `mode` is as in `Table.update`."""
        check_summary(summary)
        change = self._editor().update(assignments, where, params, mode=mode)
        return self._apply(change, summary=summary)

    def add_columns(
        self,
        columns: Mapping[str, Any],
        *,
        read_columns: Sequence[str] | None = None,
        summary: Mapping[str, str] | None = None,
    ) -> Transaction:
        """Add columns with values for every row, as `Table.add_columns` does."""
        add_columns(self, columns, read_columns=read_columns, summary=summary)
        return self

    def merge_columns(
        self,
        rows: Rows,
        on: str | Sequence[str],
        *,
        summary: Mapping[str, str] | None = None,
    ) -> Transaction:
        """Take values of columns from rows with the same key, as `Table.merge_columns` does."""
        merge_columns(self, rows, on, summary=summary)
        return self

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
        from frazil.rows.merge import merge

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
        return self._overwrite(rows, where, params, summary=summary)

    def _overwrite(
        self,
        rows: Rows,
        where: Where,
        params: Sequence[Any] = (),
        *,
        summary: Mapping[str, str] | None = None,
    ) -> Transaction:
        """The same, with a condition that may have been judged before."""
        self._overwrites = True
        return self._apply(self._editor().overwrite(rows, where, params), summary=summary)

    def overwrite_partitions(
        self, rows: Rows, *, summary: Mapping[str, str] | None = None
    ) -> Transaction:
        """Replace every partition that the new rows touch."""
        check_summary(summary)
        self._overwrites = True
        return self._apply(self._editor().overwrite_partitions(rows), summary=summary)

    # Files, for engines that write their own

    def _add_entries(
        self,
        entries: EntryBatch,
        *,
        summary: Mapping[str, str] | None = None,
        reads_table: bool = False,
    ) -> Transaction:
        """Add files that have already been written; `reads_table` if their rows come from this
        table, as it is where the transaction begins."""
        searched: tuple[Searched, ...] = ()
        if reads_table:
            base = self._base()
            rows_read = RowsRead(snapshot_id=None if base is None else int(base.snapshot_id))
            searched = (
                Searched(filter=AlwaysTrue(), isolation=Isolation.SNAPSHOT, read=rows_read),
            )
        return self._apply(self._new_change(added=entries, searched=searched), summary=summary)

    # Metadata

    def set_properties(
        self, updates: Mapping[str, str], *, remove: Sequence[str] = ()
    ) -> Transaction:
        """Set and remove table properties."""
        return self._apply_update(SetProperties.of(updates, remove))

    def evolve_schema(self) -> EvolveSchema:
        """Change columns; `commit()` of the builder adds the change to this transaction."""
        from frazil.table.columns.evolve import EvolveSchema

        return EvolveSchema(self.metadata, self._apply_updates)

    def evolve_partitions(self) -> EvolvePartitions:
        """Change the partitioning of new files."""
        from frazil.table.columns.evolve import EvolvePartitions

        return EvolvePartitions(self.metadata, self._apply_updates)

    def set_expressions(self, expressions: Sequence[str]) -> Transaction:
        """Keep statistics of exactly these expressions, such as `lower(name)`."""
        from frazil.table.columns.table_expressions import expressions_update

        return self._apply_update(expressions_update(self.metadata, expressions))

    def _apply_update(self, update: MetadataUpdate) -> Transaction:
        """Add a metadata change."""
        return self._apply(self._new_change(updates=(update,)))

    def _apply_updates(self, change: Change) -> Transaction:
        """A builder's change knows neither branch nor base: only its updates count."""
        return self._apply(self._new_change(updates=change.updates))

    # Reading what is staged

    def scan(self, where: Where = None, **options: Any) -> Scan:
        """A scan that sees this transaction's changes."""
        editor = self._editor()
        self._has_read = True
        columns = options.pop("columns", None)
        return replace(editor.scan(where, columns), **options)

    # Ending

    def _apply_edit(
        self,
        edit: Callable[[RowEditor], Change],
        *,
        summary: Mapping[str, str] | None = None,
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
            context = self._handle.context
            self._change = fold(
                self._change,
                change,
                storage=context.storage,
                location=context.location,
                new_id=context.new_id,
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
            try:
                result = self._handle.commit(self._change)
            except CommitConflict:
                self._move_on()
                raise
        self._origin.follow(self._handle, self._branch, result)
        self.result = replace(result, ms=self._elapsed_ms())
        self._discard_unused(self._change)
        return self.result

    @property
    def _nothing(self) -> str:
        if self._change is None:
            return "the transaction is empty"
        return "no row matched" if self._change.searched else "no rows to add"

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

    def _took(self, result: CommitResult) -> None:
        """Take what a commit of several tables did with this one."""
        landed = self._handle.took(result, self._branch)
        self._origin.follow(self._handle, self._branch, landed)
        self.result = replace(landed, ms=self._elapsed_ms())

    def _check_open(self) -> None:
        if self._ended:
            raise InvalidInput("the transaction has ended; start a new one")

    def _new_change(self, **parts: Any) -> Change:
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
            read=self._rows_read(),
        )

    def _staged_snapshot(self) -> Snapshot | None:
        if self._change is None or not self._change.has_content:
            return self._base()
        if self._staged is None:
            builder = Builder(self._change, self._handle.context, self._handle.head, is_staged=True)
            try:
                built = builder.build(self._state)
            except FrazilError:
                discard(self._handle.storage, builder.written)
                raise
            snapshot = built.result.snapshot
            assert snapshot is not None
            staged = replace(
                self._state,
                metadata=built.draft.metadata,
                snapshots={
                    **self._state.snapshots,
                    int(snapshot.snapshot_id): snapshot,
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
    if not written:
        return []
    names = [edit.file.location for edit in change.columns]
    if change.added is not None:
        names += change.added.pylist("location")
        names += change.added.pylist("deletion_vector.location")
        names += all_locations(change.added).to_pylist()
    pointed_at = {paths.resolve(location, name) for name in names if name is not None}
    doubtful = [path for path in written if path not in pointed_at]
    if not doubtful:
        return []
    places = Places()
    used = {places.file(path) for path in pointed_at}
    return [path for path in doubtful if places.file(path) not in used]


def commit_all(opened: Sequence[Transaction], pointers: CatalogBackend) -> None:
    """Land transactions of several tables of one catalog at once: all of them, or none."""
    for tx in opened:
        tx._check_open()
        tx._ended = True
        tx._unstage()
    changed = [
        (tx, tx._change)
        for tx in opened
        if tx._change is not None and (tx._change.has_content or tx._change.updates)
    ]
    tables = [
        TableCommit(head=tx._handle.head, context=tx._handle.context, plan=replayed(change))
        for tx, change in changed
    ]

    def discard_all() -> None:
        for tx in opened:
            discard(tx._handle.storage, tx._written)

    with undoing(discard_all):
        results = commit_tables(
            tables,
            lambda drafts: pointers.swap_all(
                [(cast(TableHead, table.head), base, draft) for table, base, draft in drafts]
            ),
        )
    for (tx, change), result in zip(changed, results, strict=True):
        tx._took(result)
        tx._discard_unused(change)
    for tx in opened:
        if not tx.result.committed:
            discard(tx._handle.storage, tx._written)
            tx.result = CommitResult.nothing(tx._nothing, ms=tx._elapsed_ms())
