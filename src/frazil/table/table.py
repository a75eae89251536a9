"""A table: the facade. Every method is short and delegates to the layers below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from frazil.argument_checks import check_arguments
from frazil.catalog.backend import TableHead
from frazil.commit.handle import TableHandle
from frazil.errors import AlreadyExists, InvalidInput, NotFound
from frazil.extras import many_imports
from frazil.format.metadata.metadata import (
    MAIN,
    RefKind,
    Snapshot,
    SnapshotId,
    SnapshotRef,
    TableMetadata,
)
from frazil.properties.registry import near_misses
from frazil.table import refs
from frazil.table.column_operations import ColumnOperations
from frazil.table.file_operations import FileOperations, IcebergOperations
from frazil.table.history_operations import HistoryOperations
from frazil.table.refs import AsOf
from frazil.value_classes import dataclass, replace

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortOrder

    from frazil.commit.change import Change
    from frazil.commit.result import CommitResult
    from frazil.data.write.row_input import Rows
    from frazil.filter.condition import Matching, Where
    from frazil.filter.text.sql_text import Expression
    from frazil.rows.editor import RowEditor
    from frazil.rows.engine import Engine
    from frazil.rows.merge import Merge
    from frazil.rows.scan import Scan
    from frazil.scan.change_feed import Changes
    from frazil.table.columns.evolve import EvolvePartitions, EvolveSchema
    from frazil.table.inspect import Inspect
    from frazil.table.transaction import Transaction


@check_arguments
@dataclass(eq=False)
class Table(FileOperations, ColumnOperations, HistoryOperations, IcebergOperations):
    """One table, seen on one branch. Made by a catalog: `catalog.load_table("shop.orders")`.

    A table is live: whatever is asked of it starts from the state that the catalog has now, whoever
    changed it. `pinned` gives one that stays at a state.
    """

    _handle: TableHandle
    branch_name: str = MAIN

    def __repr__(self) -> str:
        on = "" if self.branch_name == MAIN else f"@{self.branch_name}"
        return f"Table({self.name}{on})"

    def _repr_html_(self) -> str:
        from frazil.table.inspect import table_card

        return table_card(self._handle.current(), self.branch_name)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that takes Arrow data."""
        return self.scan().to_reader().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """The number of rows."""
        return self.scan().count()

    def __bool__(self) -> bool:
        return True  # a table without rows is a table

    # What it is

    @property
    def name(self) -> str:
        """Namespace and name."""
        return self._handle.name

    @property
    def location(self) -> str:
        """Where its files are."""
        return self._handle.location

    @property
    def metadata(self) -> TableMetadata:
        """The current metadata."""
        return self._handle.current().metadata

    @property
    def schema(self) -> Schema:
        """The current columns, as PyIceberg's schema."""
        from frazil.iceberg.pyiceberg_values import pyiceberg_schema

        return pyiceberg_schema(self.metadata.schema())

    @property
    def spec(self) -> PartitionSpec:
        """The partitioning of new files, as PyIceberg's spec."""
        from frazil.iceberg.pyiceberg_values import pyiceberg_spec

        return pyiceberg_spec(self.metadata.spec())

    @property
    def sort_order(self) -> SortOrder:
        """The order of rows in new files, as PyIceberg's sort order."""
        from frazil.iceberg.pyiceberg_values import pyiceberg_order

        return pyiceberg_order(self.metadata.sort_order())

    @property
    def properties(self) -> Mapping[str, str]:
        """Table properties."""
        return self.metadata.properties

    def pinned(self) -> Table:
        """This table at the state it has now: commits of others are not seen until `refresh`.

        A change through a pinned table is planned on its state and conflicts with what others
        changed since; the state moves on with its own commits.

        >>> yesterday = orders.pinned()                                  # doctest: +SKIP
        """
        return Table(self._handle.current().at_rest(), branch_name=self.branch_name)

    def _as_loaded(self) -> Table:
        """This table at the state it has seen last, for code that works on one state throughout."""
        return Table(self._handle.at_rest(), branch_name=self.branch_name)

    def refresh(self) -> Table:
        """Bring a pinned table to the current state; returns the table itself. Any other table is
        up to date by itself: for it this says that its rows are known as they are now, so that an
        `overwrite` replaces them."""
        self._handle.refresh()
        self._handle.note_read(self.branch_name)
        return self

    def current_snapshot(self) -> Snapshot | None:
        """The current snapshot of this branch, or None if the table is empty."""
        return self._handle.current().tip(self.branch_name)

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, oldest first."""
        return list(self._handle.head.snapshots())

    # Reading

    def scan(
        self,
        where: Where = None,
        columns: Sequence[str] | None = None,
        *,
        as_of: AsOf | None = None,
        limit: int | None = None,
        case_sensitive: bool = True,
        params: Sequence[Any] = (),
    ) -> Scan:
        """Read rows lazily, as they are now. `as_of` is a snapshot id, a branch, a tag or a time.

        `where` is any SQL condition, or an expression of PyIceberg, polars, pyarrow or pandas;
        `params` holds the values of its `?` placeholders.

        >>> table.scan(where="price > 100", columns=["id"]).to_arrow()   # doctest: +SKIP
        """
        with many_imports():
            from frazil.rows.scan import Scan

        if limit is not None and limit < 0:
            raise InvalidInput(f"limit is {limit}; expected 0 or more")
        handle = self._handle.current().at_rest()
        if as_of is None:
            self._handle.note_read(self.branch_name)
            snapshot, schema = handle.tip(self.branch_name), handle.metadata.schema()
        else:
            snapshot = refs.resolve(handle, as_of, branch=self.branch_name)
            schema = refs.schema_at(handle.metadata, as_of, snapshot)
        return Scan(
            _handle=handle,
            snapshot=snapshot,
            matching=where,
            columns=None if columns is None else tuple(columns),
            max_rows=limit,
            case_sensitive=case_sensitive,
            params=tuple(params),
            schema_override=schema,
        )

    def head(self, rows: int = 5) -> pa.Table:
        """The first rows, as an Arrow table."""
        return self.scan(limit=rows).to_arrow()

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table; `scan` chooses some."""
        return self.scan().to_arrow()

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All rows as a pandas frame; `scan` chooses some."""
        return self.scan().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars frame; `scan` chooses some."""
        return self.scan().to_polars()

    @property
    def inspect(self) -> Inspect:
        """Metadata as Arrow tables: snapshots, files, manifests, partitions, …"""
        from frazil.table.inspect import Inspect

        handle = self._handle.current().at_rest()
        return Inspect(handle, handle.tip(self.branch_name))

    # Writing rows

    def transaction(self, *, engine: Engine | None = None) -> Transaction:
        """Several changes as one snapshot, all or nothing. It sees the state of its beginning.
        Pass an engine to configure it: `DuckDbEngine(memory_limit="2GB")`."""
        with many_imports():
            from frazil.table.transaction import Transaction

        return Transaction(self._handle.current(), branch=self.branch_name, engine=engine)

    def _recomputed(
        self, change: Callable[[Transaction], object], *, source: Rows = None
    ) -> CommitResult:
        """Land a change that is computed from the table, and again if others change the same."""
        from frazil.table.recompute import recomputed

        def attempt() -> CommitResult:
            with self.transaction() as tx:
                change(tx)
            return tx.result

        return recomputed(self._handle, attempt, source=source)

    def append(
        self,
        rows: Rows,
        *,
        schema: str = "strict",
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Add rows: Arrow, pandas, polars, or dictionaries.

        With `schema="merge"` columns that the table lacks are added to it, and types widened, in
        the same commit; otherwise such rows are refused.
        """
        if schema != "strict":
            return self._recomputed(
                lambda tx: tx.append(rows, schema=schema, summary=summary), source=rows
            )
        with many_imports():
            from frazil.table.recompute import is_read_once
            from frazil.table.transaction import Transaction

        # An append fits any newer state, so the state known already will do: nothing is asked for.
        # Only rows that do not fit are held against the newest columns, too.
        schema_id = self._handle.metadata.current_schema_id
        handle = self._handle.current() if is_read_once(rows) else self._handle
        try:
            with Transaction(handle, branch=self.branch_name) as tx:
                tx.append(rows, summary=summary)
        except NotFound:
            self._handle.current()  # says whether another table has its name now
            raise
        except InvalidInput:
            if self._handle.current().metadata.current_schema_id == schema_id:
                raise
            with self.transaction() as tx:
                tx.append(rows, summary=summary)
        return tx.result

    def delete(
        self,
        where: Matching,
        *,
        params: Sequence[Any] = (),
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Delete the rows that match: any SQL condition, with `?` for values in `params`.

        >>> orders.delete("id = ?", params=[7])                          # doctest: +SKIP
        """
        return self._recomputed(lambda tx: tx.delete(where, params=params, summary=summary))

    def update(
        self,
        assignments: Mapping[str, Any],
        where: Where = None,
        *,
        params: Sequence[Any] = (),
        mode: str | None = None,
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Update matching rows, or all rows without `where`. Values are literals;
        `frazil.expr("price * 2")` is an SQL expression over the old row.

        `mode` is "rows" (new rows replace the old ones), "columns" (the new values of each file
        touched go to a column file beside it) or "auto" (by file, what is less); by default what
        `write.column-update.mode` says. Other readers do not know column files yet.

        >>> orders.update({"status": "shipped"}, where="id = 7")         # doctest: +SKIP
        >>> orders.update({"price": frazil.expr("price * 1.1")})         # doctest: +SKIP
        """
        return self._recomputed(
            lambda tx: tx.update(assignments, where, params=params, mode=mode, summary=summary)
        )

    def upsert(
        self,
        rows: Rows,
        on: str | Sequence[str] | None = None,
        *,
        update_matched: bool = True,
        insert_unmatched: bool = True,
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Update rows whose key exists and insert the others. `on` defaults to the identifier
        fields.

        Matched rows keep the values of columns that `rows` does not have.
        """

        def change(tx: Transaction) -> None:
            names = tx.metadata.schema().identifier_field_names()
            tx.upsert(
                rows,
                sorted(names) if on is None else on,
                update_matched=update_matched,
                insert_unmatched=insert_unmatched,
                summary=summary,
            )

        return self._recomputed(change, source=rows)

    def merge(self, source: Rows, on: str | Expression | Sequence[str]) -> Merge:
        """Merge rows into the table. `on` lists key columns that both sides have, or is an SQL
        condition over the aliases `t` (the table) and `s` (the source).

        >>> (
        ...     orders.merge(changes, on="id")                           # doctest: +SKIP
        ...     .when_matched_delete(condition="s.status = 'void'")
        ...     .upsert()
        ...     .execute()
        ... )
        """
        from frazil.rows.merge import merge

        def run(change: Callable[[RowEditor], Change], summary: Mapping[str, str]) -> CommitResult:
            return self._recomputed(
                lambda tx: tx._apply_edit(change, summary=summary), source=source
            )

        return merge(self.metadata.schema(), source, on, run)

    def overwrite(
        self,
        rows: Rows,
        where: Where = None,
        *,
        params: Sequence[Any] = (),
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Replace matching rows (all rows without `where`) with new ones, in one snapshot.

        The new rows may have been computed from rows that this table read before. If others changed
        matching rows since, this is a CommitConflict: read again, or repeat the call to replace
        those rows too.
        """
        with self.transaction() as tx:
            tx.overwrite(rows, where, params=params, summary=summary)
        return tx.result

    def overwrite_partitions(
        self, rows: Rows, *, summary: Mapping[str, str] | None = None
    ) -> CommitResult:
        """Replace every partition that the new rows touch."""
        with self.transaction() as tx:
            tx.overwrite_partitions(rows, summary=summary)
        return tx.result

    def apply(
        self, changes: Changes, on: str | Sequence[str] | None = None, *, schema: str = "strict"
    ) -> CommitResult:
        """Apply the changes of another table to this one, each exactly once.

        This table remembers up to which snapshot it has the changes of a source, in the same commit
        as the rows; what it has already is left out, so that the call can be repeated at any time.
        `on` names the columns that tell rows apart, by default the identifier fields. With
        `schema="merge"` columns that are new in the source are added here.

        >>> replica.apply(orders.changes(since=replica.applied_from(orders)), on="id")
        ... # doctest: +SKIP
        """
        from frazil.commit.result import CommitResult
        from frazil.table import apply_changes

        def change(tx: Transaction) -> None:
            keys = [on] if isinstance(on, str) else on
            keys = keys or sorted(tx.metadata.schema().identifier_field_names())
            if not keys:
                raise InvalidInput(
                    f"{self.name} has no identifier fields; name the columns that tell rows apart: "
                    'apply(changes, on="id")'
                )
            apply_changes.apply(tx, changes, keys, name=self.name, schema=schema)

        result = self._recomputed(change)
        if result.committed:
            return result
        return CommitResult.nothing("every change is here already", ms=result.ms)

    def applied_from(self, source: Table) -> int | None:
        """The snapshot of another table up to which its changes were applied here, or None."""
        from frazil.table import apply_changes

        return apply_changes.position(self.metadata, str(source.metadata.table_uuid))

    # Definition

    def evolve_schema(self) -> EvolveSchema:
        """Add, drop, rename, widen and reorder columns."""
        from frazil.table.columns.evolve import EvolveSchema

        handle = self._handle.current()
        return EvolveSchema(handle.metadata, handle.commit)

    def evolve_partitions(self) -> EvolvePartitions:
        """Change how new files are partitioned; old files stay as they are."""
        from frazil.table.columns.evolve import EvolvePartitions

        handle = self._handle.current()
        return EvolvePartitions(handle.metadata, handle.commit)

    def sort_by(self, *columns: str) -> CommitResult:
        """Set the order of rows in new files: `sort_by("day", "price desc")`."""
        from frazil.table.columns.evolve import sort_order_update

        return self._update(sort_order_update(self._handle.current().metadata, columns))

    @property
    def expressions(self) -> tuple[str, ...]:
        """Expressions that files have statistics of, such as `lower(name)`."""
        from frazil.table.columns.table_expressions import expression_texts

        return expression_texts(self.metadata)

    def set_expressions(self, expressions: Sequence[str]) -> CommitResult:
        """Keep statistics of exactly these expressions in files written from now on:
        `set_expressions(["lower(name)"])`. Conditions that contain one are pruned by them."""
        from frazil.table.columns.table_expressions import expressions_update

        return self._update(expressions_update(self._handle.current().metadata, expressions))

    def set_properties(
        self, updates: Mapping[str, str] | None = None, *, remove: Sequence[str] = ()
    ) -> CommitResult:
        """Set and remove table properties."""
        from frazil.commit.updates import SetProperties

        update = SetProperties.of(updates, remove)
        self._handle.current()
        result = self._update(update)
        return replace(result, notes=(*result.notes, *near_misses(updates or ())))

    def export(self) -> str:
        """Write the metadata JSON of the current state and return its location."""
        return cast(TableHead, self._handle.current().head).export()

    # Branches and tags

    def branch(self, name: str, *, create: bool = False, as_of: AsOf | None = None) -> Table:
        """This table on another branch. With `create`, a missing branch is created at the current
        snapshot, or at `as_of`."""
        handle = self._handle.current()
        ref = handle.metadata.refs.get(name)
        if ref is not None and ref.kind is RefKind.TAG:
            raise InvalidInput(f"{name!r} is a tag, not a branch")
        if ref is None:
            if not create:
                raise refs.missing(handle, name, kinds=(RefKind.BRANCH,))
            start = self._snapshot(handle, as_of)
            if start is not None:
                self._set_ref(name, start, RefKind.BRANCH)
        handle.last_read(name)
        return Table(handle, branch_name=name)

    def tag(
        self, name: str, as_of: AsOf | None = None, *, max_age_ms: int | None = None
    ) -> CommitResult:
        """Give a snapshot, by default the current one, a name that keeps it from expiring."""
        handle = self._handle.current()
        snapshot = self._snapshot(handle, as_of)
        if snapshot is None:
            raise InvalidInput(f"{self.name} has no snapshot to tag yet")
        if name in handle.metadata.refs:
            raise AlreadyExists(f"{self.name}: {name!r} already exists; drop it first")
        return self._set_ref(name, snapshot, RefKind.TAG, max_ref_age_ms=max_age_ms)

    def drop_ref(self, name: str) -> CommitResult:
        """Drop a branch or tag. Its snapshots stay until they expire."""
        from frazil.commit.updates import RemoveRef

        if name == MAIN:
            raise InvalidInput("the main branch cannot be removed")
        self._handle.current()
        return self._update(RemoveRef(name=name))

    def drop_branch(self, name: str) -> CommitResult:
        """Drop a branch. Its snapshots stay until they expire."""
        return self._drop_ref(name, RefKind.BRANCH)

    def drop_tag(self, name: str) -> CommitResult:
        """Drop a tag. Its snapshot stays until it expires."""
        return self._drop_ref(name, RefKind.TAG)

    def _drop_ref(self, name: str, kind: RefKind) -> CommitResult:
        handle = self._handle.current()
        ref = handle.metadata.refs.get(name)
        if ref is None or ref.kind is not kind:
            raise refs.missing(handle, name, kinds=(kind,))
        return self.drop_ref(name)

    def rollback(self, to: AsOf) -> CommitResult:
        """Reset the branch to an earlier snapshot of its own history."""
        handle = self._handle.current()
        target = refs.resolve(handle, to, branch=self.branch_name)
        if not refs.is_ancestor(handle, target, handle.tip(self.branch_name)):
            raise InvalidInput(
                f"snapshot {target.snapshot_id} is not in the history of {self.branch_name}; "
                "use set_current to point the branch anywhere"
            )
        return self._move(target)

    def set_current(self, to: AsOf) -> CommitResult:
        """Reset the branch to any snapshot of the table."""
        return self._move(self.snapshot(to))

    def _move(self, target: Snapshot) -> CommitResult:
        from frazil.commit.updates import SetRef

        now = self._handle.metadata.refs.get(self.branch_name)
        ref = (
            SnapshotRef(snapshot_id=target.snapshot_id)
            if now is None
            else replace(now, snapshot_id=target.snapshot_id)
        )
        expected = None if now is None else int(now.snapshot_id)
        return self._update(SetRef(name=self.branch_name, ref=ref, expected=expected))

    def _set_ref(
        self, name: str, snapshot: Snapshot, kind: RefKind, **options: Any
    ) -> CommitResult:
        from frazil.commit.updates import SetRef

        ref = SnapshotRef(snapshot_id=SnapshotId(snapshot.snapshot_id), kind=kind, **options)
        return self._update(SetRef(name=name, ref=ref, expected=None))

    def _update(self, update: Any) -> CommitResult:
        from frazil.commit.change import Change

        return self._handle.commit(Change(branch=self.branch_name, updates=(update,)))
