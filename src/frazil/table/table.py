"""A table: the facade. Every method is short and delegates to the layers below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from frazil.catalog.pointers import TableHead
from frazil.commit.handle import TableHandle
from frazil.entrance import entrance
from frazil.errors import AlreadyExists, InvalidInput
from frazil.format.metadata import (
    MAIN,
    RefKind,
    Snapshot,
    SnapshotId,
    SnapshotRef,
    TableMetadata,
)
from frazil.table import refs
from frazil.table.file_operations import FileOperations
from frazil.table.history_operations import HistoryOperations
from frazil.table.iceberg import IcebergOperations
from frazil.table.refs import AsOf
from frazil.words import card

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortOrder

    from frazil.commit.change import Change
    from frazil.commit.result import CommitResult
    from frazil.data.row_input import Rows
    from frazil.expr.condition import Where
    from frazil.expr.sql_text import Expression
    from frazil.rows.editor import RowEditor
    from frazil.rows.engine import Engine
    from frazil.rows.merge import Merge
    from frazil.rows.scan import Scan
    from frazil.table.evolve import EvolvePartitions, EvolveSchema
    from frazil.table.inspect import Inspect
    from frazil.table.transaction import Transaction


@entrance
@dataclass(eq=False)
class Table(FileOperations, HistoryOperations, IcebergOperations):
    """One table, seen on one branch. Made by a catalog: `catalog.load_table("shop.orders")`."""

    _handle: TableHandle
    branch_name: str = MAIN

    def __repr__(self) -> str:
        on = "" if self.branch_name == MAIN else f"@{self.branch_name}"
        return f"Table({self.name}{on})"

    def _repr_html_(self) -> str:
        tip = self.current_snapshot()
        summary = {} if tip is None else tip.summary
        facts = {
            "location": self.location,
            "branch": self.branch_name,
            "columns": ", ".join(f"{each.name} {each.field_type}" for each in self.schema.fields),
            "partitioned by": ", ".join(each.name for each in self.spec.fields),
            "snapshot": None if tip is None else tip.snapshot_id,
            "rows": summary.get("total-records"),
            "files": summary.get("total-data-files"),
        }
        return card(self.name, facts)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that takes Arrow data."""
        return self.scan().to_reader().__arrow_c_stream__(requested_schema)

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
        """The metadata as last loaded; `refresh` reloads it."""
        return self._handle.metadata

    @property
    def schema(self) -> Schema:
        """The current columns."""
        return self.metadata.schema()

    @property
    def spec(self) -> PartitionSpec:
        """The partitioning of new files."""
        return self.metadata.spec()

    @property
    def sort_order(self) -> SortOrder:
        """The order of rows in new files."""
        return self.metadata.sort_order()

    @property
    def properties(self) -> Mapping[str, str]:
        """Table properties."""
        return self.metadata.properties

    def refresh(self) -> Table:
        """Reload the table's state from the catalog; returns the table itself."""
        self._handle.refresh()
        return self

    def current_snapshot(self) -> Snapshot | None:
        """The current snapshot of this branch, or None if the table is empty."""
        return self._handle.state.tip(self.branch_name)

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
        """Read rows lazily. `as_of` is a snapshot id, a branch, a tag or a time.

        `where` is any SQL condition, or a PyIceberg expression; `params` holds the values of its
        `?` placeholders.

        >>> table.scan(where="price > 100", columns=["id"]).to_arrow()   # doctest: +SKIP
        """
        from frazil.rows.scan import Scan

        if limit is not None and limit < 0:
            raise InvalidInput(f"limit is {limit}; expected 0 or more")
        snapshot = self.current_snapshot() if as_of is None else self.snapshot(as_of)
        return Scan(
            _handle=replace(self._handle),
            snapshot=snapshot,
            matching=where,
            columns=None if columns is None else tuple(columns),
            max_rows=limit,
            case_sensitive=case_sensitive,
            params=tuple(params),
            schema_override=self.schema if as_of is None else self._schema_at(as_of, snapshot),
        )

    def _schema_at(self, as_of: AsOf, snapshot: Snapshot | None) -> Schema:
        """Branches are read in the current schema, tags and times in the schema of their time."""
        ref = self.metadata.refs.get(as_of) if isinstance(as_of, str) else None
        if snapshot is None or (ref is not None and ref.kind is RefKind.BRANCH):
            return self.schema
        return self.metadata.schema_of(snapshot)

    @property
    def inspect(self) -> Inspect:
        """Metadata as Arrow tables: snapshots, files, manifests, partitions, …"""
        from frazil.table.inspect import Inspect

        return Inspect(self._handle, self.current_snapshot())

    # Writing rows

    def transaction(self, *, engine: Engine | None = None) -> Transaction:
        """Several changes as one snapshot, all or nothing. Pass an engine to configure it:
        `DuckDbEngine(memory_limit="2GB")`."""
        from frazil.table.transaction import Transaction

        return Transaction(self._handle, branch=self.branch_name, engine=engine)

    def append(self, rows: Rows, *, summary: Mapping[str, str] | None = None) -> CommitResult:
        """Add rows: Arrow, pandas, polars, or dictionaries."""
        with self.transaction() as tx:
            tx.append(rows, summary=summary)
        return tx.result

    def delete(
        self,
        where: str | BooleanExpression,
        *,
        params: Sequence[Any] = (),
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Delete the rows that match: any SQL condition, with `?` for values in `params`.

        >>> orders.delete("id = ?", params=[7])                          # doctest: +SKIP
        """
        with self.transaction() as tx:
            tx.delete(where, params=params, summary=summary)
        return tx.result

    def update(
        self,
        assignments: Mapping[str, Any],
        where: Where = None,
        *,
        params: Sequence[Any] = (),
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Update matching rows, or all rows without `where`. Values are literals;
        `frazil.expr("price * 2")` is an SQL expression over the old row.

        >>> orders.update({"status": "shipped"}, where="id = 7")         # doctest: +SKIP
        >>> orders.update({"price": frazil.expr("price * 1.1")})         # doctest: +SKIP
        """
        with self.transaction() as tx:
            tx.update(assignments, where, params=params, summary=summary)
        return tx.result

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
        keys = on if on is not None else sorted(self.schema.identifier_field_names())
        with self.transaction() as tx:
            tx.upsert(
                rows,
                keys,
                update_matched=update_matched,
                insert_unmatched=insert_unmatched,
                summary=summary,
            )
        return tx.result

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
            with self.transaction() as tx:
                tx._apply_edit(change, summary=summary)
            return tx.result

        return merge(self.schema, source, on, run)

    def overwrite(
        self,
        rows: Rows,
        where: Where = None,
        *,
        params: Sequence[Any] = (),
        summary: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Replace matching rows (all rows without `where`) with new ones, in one snapshot."""
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

    # Definition

    def evolve_schema(self) -> EvolveSchema:
        """Add, drop, rename, widen and reorder columns."""
        from frazil.table.evolve import EvolveSchema

        return EvolveSchema(self.metadata, self._handle.commit)

    def evolve_partitions(self) -> EvolvePartitions:
        """Change how new files are partitioned; old files stay as they are."""
        from frazil.table.evolve import EvolvePartitions

        return EvolvePartitions(self.metadata, self._handle.commit)

    def sort_by(self, *columns: str) -> CommitResult:
        """Set the order of rows in new files: `sort_by("day", "price desc")`."""
        from frazil.table.evolve import sort_order_update

        return self._update(sort_order_update(self.metadata, columns))

    def set_properties(
        self, updates: Mapping[str, str] | None = None, *, remove: Sequence[str] = ()
    ) -> CommitResult:
        """Set and remove table properties."""
        from frazil.commit.updates import SetProperties

        return self._update(SetProperties.of(updates, remove))

    def export(self) -> str:
        """Write the metadata JSON of the current state and return its location."""
        return cast(TableHead, self._handle.head).export()

    # Branches and tags

    def branch(self, name: str, *, create: bool = False, as_of: AsOf | None = None) -> Table:
        """This table on another branch. With `create`, a missing branch is created at the current
        snapshot, or at `as_of`."""
        ref = self.metadata.refs.get(name)
        if ref is not None and ref.kind is RefKind.TAG:
            raise InvalidInput(f"{name!r} is a tag, not a branch")
        if ref is None:
            if not create:
                raise refs.missing(self._handle, name, kinds=(RefKind.BRANCH,))
            start = self.current_snapshot() if as_of is None else self.snapshot(as_of)
            if start is not None:
                self._set_ref(name, start, RefKind.BRANCH)
        return Table(self._handle, branch_name=name)

    def tag(
        self, name: str, as_of: AsOf | None = None, *, max_age_ms: int | None = None
    ) -> CommitResult:
        """Give a snapshot, by default the current one, a name that keeps it from expiring."""
        snapshot = self.current_snapshot() if as_of is None else self.snapshot(as_of)
        if snapshot is None:
            raise InvalidInput(f"{self.name} has no snapshot to tag yet")
        if name in self.metadata.refs:
            raise AlreadyExists(f"{self.name}: {name!r} exists already; drop it first")
        return self._set_ref(name, snapshot, RefKind.TAG, max_ref_age_ms=max_age_ms)

    def drop_ref(self, name: str) -> CommitResult:
        """Drop a branch or tag. Its snapshots stay until they expire."""
        from frazil.commit.updates import RemoveRef

        if name == MAIN:
            raise InvalidInput("the main branch cannot be removed")
        return self._update(RemoveRef(name=name))

    def rollback(self, to: AsOf) -> CommitResult:
        """Reset the branch to an earlier snapshot of its own history."""
        target = self.snapshot(to)
        if not refs.is_ancestor(self._handle, target, self.current_snapshot()):
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

        now = self.metadata.refs.get(self.branch_name)
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
