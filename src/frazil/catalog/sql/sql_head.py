"""The head of one table in a SQL database: load in one statement, swap in one short transaction.

A commit updates one small row by compare-and-set on its version and inserts a snapshot and a log
row. Nothing it reads or writes grows with the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial

from frazil.catalog import export
from frazil.catalog.backend import check_draft, gone
from frazil.catalog.database.database import Database, DatabaseTransaction, UncertainCommit
from frazil.catalog.names import Identifier
from frazil.catalog.notes import Notes, SqlNotes
from frazil.catalog.ownership import OtherTables, Ownership
from frazil.catalog.sql import sql_rows, sql_schema
from frazil.catalog.sql.offers import OfferSlot
from frazil.catalog.sql.sql_rows import Definition, TableRow
from frazil.catalog.sql.turns import Turns
from frazil.commit.head import Draft, Landed, Lost, Offer, Outcome, State, Unknown
from frazil.errors import CatalogError, CommitUnknown, FormatError, FrazilError, NotFound
from frazil.format import paths
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import (
    History,
    MetadataLogEntry,
    Snapshot,
    SnapshotId,
    TableMetadata,
    log_entry,
)
from frazil.storage import Storage
from frazil.value_classes import frozen, replace

_TRIES = 3
_SET_REFS = "UPDATE frazil_tables SET refs = :refs WHERE table_id = :table_id"
_SET_RECORD = """
UPDATE frazil_snapshots SET record = :record
WHERE table_id = :table_id AND snapshot_id = :snapshot_id
"""


class VersionMoved(Exception):
    """The version to compare was no longer there."""


@frozen
class Swapped:
    """What a swap leaves to do once it is committed."""

    definition: Definition | None
    snapshots: Mapping[int, Snapshot]
    is_export_due: bool


class SqlHead:
    """The head of a v4 table."""

    queues_alone = False

    def __init__(
        self,
        database: Database,
        identifier: Identifier,
        row: TableRow,
        *,
        storage: Callable[[str], Storage],
        neighbours: Callable[[int], OtherTables] | None = None,
        is_taken: Callable[[Identifier], bool] | None = None,
    ) -> None:
        """`is_taken` says whether a name is in use, for a table that is gone under its own."""
        self._database = database
        self._table_id = row.table_id
        self._turns = Turns(database, row.table_id)
        self.identifier = identifier
        self._path = f"catalog row of {identifier}"
        self._storage = storage
        self._neighbours = neighbours
        self._is_taken = is_taken
        self._export_is_due = False
        self._definition: Definition | None = None
        self._state = self._settled(row, None, seen={})

    def __repr__(self) -> str:
        return f"SqlHead({str(self.identifier)!r}, version={self._state.version})"

    @property
    def key(self) -> str:
        """What names the table for as long as it exists, whatever its name is."""
        return str(self._table_id)

    @property
    def state(self) -> State:
        return self._state

    @property
    def notes(self) -> Notes:
        return SqlNotes(self._database, self._table_id)

    def load(self) -> State:
        row, definition = self._row(self._database)
        state = self._state
        is_same = row.version == state.version and row.metadata_location == state.metadata_location
        if not is_same or row.definition is not None:
            self._state = self._settled(row, definition, seen=state.snapshots)
        return self._state

    @contextmanager
    def turn(self) -> Iterator[None]:
        with self._turns.turn():
            yield
        if self._export_is_due:
            self._export_quietly()

    @contextmanager
    def slot(self, offer: Offer) -> Iterator[OfferSlot | None]:
        with self._turns.slot(offer) as slot:
            yield slot
        if self._export_is_due:
            self._export_quietly()

    def newest(self, known: State, *, has_rivals: bool) -> State:
        return self.load() if has_rivals else known

    def snapshot_holding(self, append_id: int, since: State) -> Snapshot | None:
        from frazil.commit.group_append import append_ids

        for snapshot in self.snapshots_naming(append_id, since.version):
            if append_id in append_ids(snapshot.summary, int(snapshot.snapshot_id)):
                return snapshot
        added = self.load().metadata.last_sequence_number - since.metadata.last_sequence_number
        if self.count_since(since.version) < added:
            raise CommitUnknown(
                f"append {append_id} may have landed in a snapshot that has expired since; look "
                "for its rows before trying again"
            )
        return None

    def swap(self, base: State, draft: Draft) -> Outcome:
        return swap_all(self._database, [(self, base, draft)])

    def landed(self, snapshot_id: int) -> State | None:
        key = {"table_id": self._table_id, "snapshot_id": snapshot_id}
        return self.load() if self._database.rows(sql_rows.SNAPSHOT, key) else None

    def snapshot(self, snapshot_id: int) -> Snapshot:
        held_snapshot = self._state.snapshots.get(snapshot_id)
        if held_snapshot is not None:
            return held_snapshot
        key = {"table_id": self._table_id, "snapshot_id": snapshot_id}
        rows = self._database.rows(sql_rows.SNAPSHOT, key)
        if not rows:
            raise NotFound(f"{self.identifier}: no snapshot {snapshot_id}; it may have expired")
        return sql_rows.snapshot_of(rows[0][0], path=self._path)

    def snapshots(self) -> Iterable[Snapshot]:
        rows = self._database.rows(sql_rows.SNAPSHOTS, {"table_id": self._table_id})
        return [sql_rows.snapshot_of(record, path=self._path) for _, record in rows]

    def snapshots_since(self, version: int) -> list[Snapshot]:
        """The snapshots that later versions of the table added and that have not expired."""
        key = {"table_id": self._table_id, "version": version}
        rows = self._database.rows(sql_rows.SNAPSHOTS_SINCE, key)
        return [sql_rows.snapshot_of(record, path=self._path) for _, record in rows]

    def snapshots_naming(self, number: int, version: int) -> list[Snapshot]:
        """Of those snapshots, the ones that mention a number, as an id or in their text."""
        key = {"table_id": self._table_id, "version": version}
        rows = self._database.rows(
            sql_rows.SNAPSHOTS_NAMING, {**key, "number": number, "pattern": f"%{number}%"}
        )
        return [sql_rows.snapshot_of(record, path=self._path) for _, record in rows]

    def count_since(self, version: int) -> int:
        """How many snapshots later versions added and that have not expired."""
        key = {"table_id": self._table_id, "version": version}
        return int(self._database.rows(sql_rows.COUNT_SINCE, key)[0][0])

    def read_snapshots(self, snapshot_ids: Sequence[int]) -> dict[int, Snapshot]:
        """Snapshots by id; those that the table does not have are left out."""
        return sql_rows.read_snapshots(
            self._database, self._table_id, snapshot_ids, path=self._path
        )

    def history(self) -> History:
        with self._database.transaction(write=False) as transaction:
            return sql_rows.read_history(transaction, self._table_id, path=self._path)

    def snapshot_id_as_of(self, timestamp_ms: int) -> SnapshotId | None:
        key = {"table_id": self._table_id, "timestamp_ms": timestamp_ms}
        rows = self._database.rows(sql_rows.AS_OF, key)
        return SnapshotId(rows[0][0]) if rows else None

    def export(self) -> str:
        with self._database.transaction(write=False) as transaction:
            row, definition = self._row(transaction)
            state = self._state_of(row, definition, seen=self._state.snapshots, source=transaction)
            history = sql_rows.read_history(transaction, self._table_id, path=self._path)
        if row.rendered_version == row.version and row.metadata_location is not None:
            return row.metadata_location
        metadata = state.metadata
        storage = self._storage(metadata.location)
        path = export.render(metadata, history, version=row.version, storage=storage)
        written = MetadataLogEntry(metadata_file=path, timestamp_ms=metadata.last_updated_ms)
        try:
            with self._database.transaction() as transaction:
                forgotten = sql_rows.record_export(
                    transaction,
                    self._table_id,
                    row.version,
                    written,
                    keep=export.previous_max(metadata),
                )
        except UncertainCommit as lost:
            raise CatalogError(f"{path} is written, but may not be noted in the catalog") from lost
        if forgotten is None:
            storage.delete(path)
            return self.load().metadata_location or path
        if export.deletes_previous(metadata):
            owned = Ownership.of(self, metadata, metadata.location)
            for stale in filter(owned.may_delete, forgotten):
                storage.delete(stale)
        self._state = replace(state, metadata_location=path)
        return path

    def neighbourhood(self) -> OtherTables:
        return OtherTables() if self._neighbours is None else self._neighbours(self._table_id)

    def refuse_files_of_others(self, metadata: TableMetadata, locations: Sequence[str]) -> None:
        owned = Ownership.of(self, metadata, metadata.location, name=str(self.identifier))
        owned.refuse_files_of_others(
            paths.resolve(metadata.location, location) for location in locations
        )

    def stored_problems(self, *, repair: bool = False) -> tuple[FormatError, ...]:
        problems = stored_problems(self._database, self._table_id, path=self._path, repair=repair)
        if repair and problems:
            self._definition = None
            self.load()
        return problems

    def _export_quietly(self) -> None:
        """The commit has landed; a JSON file that cannot be written is not its failure."""
        self._export_is_due = False
        try:
            self.export()
        except FrazilError as error:
            import logging

            logging.getLogger(__name__).warning(
                "%s: the metadata JSON was not written: %s", self.identifier, error
            )

    def apply(self, transaction: DatabaseTransaction, base: State, draft: Draft) -> Swapped:
        """The statements of a swap, for a transaction that may hold those of other tables."""
        before, after = base.metadata, draft.metadata
        version = base.version + 1
        entry = log_entry(before, after, draft.added_snapshots)
        definition = Definition.of(after) if sql_rows.is_redefined(before, after) else None
        rendered_version = self._compare_and_set(
            transaction, base.version, after, guard=self._turns.guard()
        )
        for row in sql_rows.snapshot_rows(self._table_id, version, draft.added_snapshots):
            transaction.run(sql_rows.ADD_SNAPSHOT, row)
        if draft.removed_snapshot_ids:
            sql_rows.remove_snapshots(transaction, self._table_id, draft.removed_snapshot_ids)
        if entry is not None:
            (row,) = sql_rows.log_rows(self._table_id, version, [entry])
            transaction.run(sql_rows.ADD_SNAPSHOT_LOG, row)
        elif after.current_snapshot_id is None and before.current_snapshot_id is not None:
            transaction.run(sql_rows.CLEAR_SNAPSHOT_LOG, {"table_id": self._table_id})
        if definition is not None:
            sql_rows.define(transaction, self._table_id, definition)
        snapshots = self._named_snapshots(transaction, base, draft)
        self._turns.leave(transaction)
        return Swapped(
            definition=definition,
            snapshots=snapshots,
            is_export_due=export.is_due(
                before,
                after,
                version=version,
                rendered_version=rendered_version,
                snapshot_count=partial(self._snapshot_count, transaction),
            ),
        )

    def _snapshot_count(self, transaction: DatabaseTransaction) -> int:
        key = {"table_id": self._table_id, "version": -1}
        return int(transaction.rows(sql_rows.COUNT_SINCE, key)[0][0])

    def landed_with(self, base: State, draft: Draft, swapped: Swapped) -> State:
        """Take up the state after a swap that has been committed."""
        self._turns.left()
        self._definition = swapped.definition or self._definition
        self._state = replace(
            base, version=base.version + 1, metadata=draft.metadata, snapshots=swapped.snapshots
        )
        if swapped.is_export_due:
            self._export_is_due = True
            if not self._turns.is_held:  # others do not wait while a file is rendered
                self._export_quietly()
        return self._state

    def _compare_and_set(
        self, transaction: DatabaseTransaction, version: int, after: TableMetadata, *, guard: str
    ) -> int | None:
        """Move the version on; returns the version of the newest JSON file."""
        swapped = transaction.rows(
            f"{sql_rows.SWAP}{guard}{sql_schema.IS_KNOWN} RETURNING rendered_version",
            {"table_id": self._table_id, "version": version, **sql_rows.volatile(after)},
        )
        if not swapped:
            raise VersionMoved
        rendered_version: int | None = swapped[0][0]
        return rendered_version

    def _named_snapshots(
        self, transaction: DatabaseTransaction, base: State, draft: Draft
    ) -> dict[int, Snapshot]:
        """The snapshots the draft's refs name; one that is not in the table is refused."""
        snapshots = dict(base.snapshots)
        snapshots.update({snapshot.snapshot_id: snapshot for snapshot in draft.added_snapshots})
        return self._snapshots(draft.metadata, seen=snapshots, source=transaction)

    def _row(self, source: Database | DatabaseTransaction) -> tuple[TableRow, Definition | None]:
        """The row, without the definition if it is still the one that comes with it."""
        definition = self._definition
        definition_id = definition.definition_id if definition else ""
        rows = source.rows(
            sql_rows.LOAD_BY_ID, {"table_id": self._table_id, "known": definition_id}
        )
        if not rows:
            raise gone(self.identifier, self._is_taken)
        return TableRow.of(rows[0]), definition

    def _settled(
        self, row: TableRow, definition: Definition | None, *, seen: Mapping[int, Snapshot]
    ) -> State:
        """The state of a row; read again when a ref and its snapshot went in between."""
        for _ in range(_TRIES):
            try:
                return self._state_of(row, definition, seen=seen, source=self._database)
            except NotFound:
                row, definition = self._row(self._database)
        return self._state_of(row, definition, seen=seen, source=self._database)

    def _state_of(
        self,
        row: TableRow,
        definition: Definition | None,
        *,
        seen: Mapping[int, Snapshot],
        source: Database | DatabaseTransaction,
    ) -> State:
        if row.definition is not None or definition is None:
            read_metadata = _definition(row.definition or "", self._path)
            definition = Definition(
                definition_id=row.definition_id, text="", metadata=read_metadata
            )
            self._definition = definition
        metadata = row.metadata(definition.metadata, path=self._path)
        current = metadata.current_snapshot_id
        if row.current_record is not None and current is not None and current not in seen:
            read_now = sql_rows.snapshot_of(row.current_record, path=self._path)
            seen = {**seen, current: read_now}
        return State(
            version=row.version,
            metadata=metadata,
            snapshots=self._snapshots(metadata, seen=seen, source=source),
            metadata_location=row.metadata_location,
        )

    def _snapshots(
        self,
        metadata: TableMetadata,
        *,
        seen: Mapping[int, Snapshot],
        source: Database | DatabaseTransaction,
    ) -> dict[int, Snapshot]:
        ref_names = {ref.snapshot_id: name for name, ref in metadata.refs.items()}
        missing = [snapshot_id for snapshot_id in ref_names if snapshot_id not in seen]
        read = sql_rows.read_snapshots(source, self._table_id, missing, path=self._path)
        for snapshot_id in missing:
            if snapshot_id not in read:
                raise NotFound(
                    f"{self.identifier}: {ref_names[snapshot_id]} names snapshot {snapshot_id}, "
                    "which the table does not have"
                )
        return {
            snapshot_id: seen[snapshot_id] if snapshot_id in seen else read[snapshot_id]
            for snapshot_id in ref_names
        }


@lru_cache(maxsize=64)
def _definition(text: str, path: str) -> TableMetadata:
    """The metadata of a stored definition: a value, so tables that are loaded again share it."""
    return metadata_json.load_definition(text, path=path)


def swap_all(database: Database, swaps: Sequence[tuple[SqlHead, State, Draft]]) -> Outcome:
    """Swap several heads of one database in one transaction."""
    for _, base, draft in swaps:
        check_draft(base.metadata, draft)
    try:
        with database.transaction() as transaction:
            applied = [head.apply(transaction, base, draft) for head, base, draft in swaps]
    except VersionMoved:
        sql_schema.check_layout(database, database)
        return Lost()
    except UncertainCommit as lost:
        return Unknown(cause=lost.cause)
    return Landed(
        states=tuple(
            head.landed_with(base, draft, swapped)
            for (head, base, draft), swapped in zip(swaps, applied, strict=True)
        )
    )


def stored_problems(
    database: Database, table_id: int, *, path: str, repair: bool
) -> tuple[FormatError, ...]:
    """What cannot be used of a table's rows. A table loads without it; a `repair` stores what every
    load makes of it and keeps the version, because nothing that anyone reads changes."""
    try:
        with database.transaction(write=repair) as transaction:
            return tuple(_problems(transaction, table_id, path, repair=repair))
    except UncertainCommit as lost:
        raise CommitUnknown(
            f"{path}: the connection was lost while it was repaired; check it again"
        ) from lost


def _problems(
    transaction: DatabaseTransaction, table_id: int, path: str, *, repair: bool
) -> list[FormatError]:
    key = {"table_id": table_id}
    rows = transaction.rows(sql_rows.LOAD_BY_ID, {**key, "known": ""})
    if not rows:
        raise NotFound(f"{path}: the table was dropped")
    row = TableRow.of(rows[0])
    problems: list[FormatError] = []

    rejected: list[FormatError] = []
    definition = metadata_json.load_definition(row.definition or "", path=path, rejected=rejected)
    if rejected and repair:
        sql_rows.define(transaction, table_id, Definition.of(definition))
    problems += rejected

    rejected = []
    refs = metadata_json.load_refs(row.refs, path=path, rejected=rejected)
    if rejected and repair:
        transaction.run(_SET_REFS, {**key, "refs": metadata_json.refs_text(refs)})
    problems += rejected

    for snapshot_id, record in transaction.rows(sql_rows.SNAPSHOTS, key):
        rejected = []
        where = f"{path}, snapshot {snapshot_id}"
        snapshot = sql_rows.snapshot_of(record, path=where, rejected=rejected)
        if rejected and repair:
            text = metadata_json.snapshot_text(snapshot)
            transaction.run(_SET_RECORD, {**key, "snapshot_id": snapshot_id, "record": text})
        problems += rejected
    return problems
