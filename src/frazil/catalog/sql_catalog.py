"""A catalog in a SQL database: SQLite for one machine, PostgreSQL for many writers.

Shares its database with PyIceberg's SqlCatalog and Iceberg's JdbcCatalog (`sql_schema` says how):
their v1-v3 tables can be read here and upgraded in place, and they go on working with the rest.
Namespaces live in `sql_namespaces`, a table's rows in `sql_rows`, its head in `sql_head`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from frazil.catalog import export, sql_head, sql_places, sql_pulses, sql_rows, sql_schema
from frazil.catalog.database import (
    Database,
    DatabaseTransaction,
    DuplicateKey,
    Row,
    UncertainCommit,
)
from frazil.catalog.names import (
    Identifier,
    Namespace,
    dotted,
    folder_name,
    namespace_of,
    table_location,
    undotted,
)
from frazil.catalog.notes import Notes, SqlNotes
from frazil.catalog.ownership import Neighbourhood
from frazil.catalog.pointers import NamespaceName, Pulse, Purged, TableHead, TableName
from frazil.catalog.sql_head import SqlHead
from frazil.catalog.sql_namespaces import SqlNamespaces
from frazil.catalog.sql_rows import TableRow
from frazil.catalog.sql_views import SqlViews
from frazil.catalog.storages import Storages
from frazil.commit.head import Draft, Landed, Lost, Outcome, Outcomes, ReadOnly, State, Unknown
from frazil.errors import (
    AlreadyExists,
    CommitConflict,
    CommitUnknown,
    InvalidInput,
    NotFound,
)
from frazil.format.metadata import FORMAT_VERSION, History, MetadataLogEntry, TableMetadata
from frazil.storage import Storage, checked_location

if TYPE_CHECKING:
    pass

_BY_NAME = "catalog_name = :catalog AND table_namespace = :namespace AND table_name = :name"
_ADD = """
INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location,
       previous_metadata_location, iceberg_type)
VALUES (:catalog, :namespace, :name, :metadata_location, NULL, :iceberg_type)
"""
_UPGRADE = f"""
UPDATE iceberg_tables SET iceberg_type = '{sql_schema.V4_TYPE}',
       previous_metadata_location = metadata_location, metadata_location = :rendered
WHERE {_BY_NAME} AND metadata_location = :metadata_location
  AND (iceberg_type IS NULL OR iceberg_type = '{sql_schema.TABLE_TYPE}')
"""
_RENAME = """
UPDATE {table} SET table_namespace = :to_namespace, table_name = :to_name
WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :name
"""


_OF_THE_CATALOG = 0
"""The table id of notes that belong to no table: ids of tables start at 1."""


class SqlCatalog:
    """Namespaces and tables of one catalog name in one database."""

    def __init__(
        self,
        database: Database | str,
        *,
        name: str = "default",
        warehouse: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.database = Database(database) if isinstance(database, str) else database
        self.name = name
        self.warehouse = None if warehouse is None else warehouse.rstrip("/")
        self._storages = Storages(properties)
        sql_schema.prepare(self.database)
        self._is_typed = sql_schema.has_iceberg_type(self.database, kind=self.database.kind)
        self._namespaces = SqlNamespaces(self.database, name)
        self.views = SqlViews(
            self.database,
            name,
            namespace_exists=self.namespace_exists,
            prepare=self._need_typed,
        )

    def __repr__(self) -> str:
        return f"SqlCatalog({self.database.uri!r}, name={self.name!r})"

    @property
    def notes(self) -> Notes:
        return SqlNotes(self.database, _OF_THE_CATALOG)

    def storage(self, location: str) -> Storage:
        return self._storages(location)

    def close(self) -> None:
        self.database.close()

    # Namespaces

    def create_namespace(
        self, namespace: NamespaceName, properties: Mapping[str, str] | None = None
    ) -> None:
        self._namespaces.create(namespace_of(namespace), properties or {})

    def list_namespaces(self, parent: NamespaceName = ()) -> list[Namespace]:
        return self._namespaces.children(namespace_of(parent) if parent else ())

    def namespace_exists(self, namespace: NamespaceName) -> bool:
        return self._namespaces.exists(self.database, namespace_of(namespace))

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        return self._namespaces.properties(namespace_of(namespace))

    def set_namespace_properties(
        self,
        namespace: NamespaceName,
        updates: Mapping[str, str],
        *,
        removals: Iterable[str] = (),
    ) -> None:
        self._namespaces.set_properties(namespace_of(namespace), updates, removals)

    def drop_namespace(self, namespace: NamespaceName) -> None:
        self._namespaces.drop(namespace_of(namespace))

    # Tables

    def location_for(self, identifier: TableName) -> str:
        found = Identifier.parse(identifier)
        base = self.namespace_properties(found.namespace).get("location")
        if base is not None:
            place = f"{base.rstrip('/')}/{folder_name(found.name)}"
        elif self.warehouse is not None:
            place = table_location(self.warehouse, found)
        else:
            raise InvalidInput(f"{found}: give a location; the catalog has no warehouse")
        place = checked_location(place)
        taken = sql_places.taken_by(self.database, place) is not None
        # A dropped or renamed table may have left its files where this one would go.
        taken = taken or any(True for _ in self.storage(place).list(f"{place}/metadata"))
        return f"{place}-{uuid.uuid4().hex[:8]}" if taken else place

    def create_table(
        self, identifier: TableName, metadata: TableMetadata, history: History | None = None
    ) -> TableHead:
        found = Identifier.parse(identifier)
        self._need_namespace(self.database, found)
        if self.table_exists(found):
            raise AlreadyExists(f"table {found} already exists")
        history = history or History()
        sql_places.need_free(self.database, metadata.location)
        storage = self.storage(metadata.location)
        rendered = None
        if export.json_every(metadata):
            rendered = export.render(metadata, history, version=0, storage=storage)
        try:
            self._enter(found, metadata, history, metadata_location=rendered)
        except (AlreadyExists, NotFound):
            if rendered is not None:
                storage.delete(rendered)
            raise
        return self.load(found)

    def register(
        self, identifier: TableName, metadata_location: str, *, location: str | None = None
    ) -> TableHead:
        found = Identifier.parse(identifier)
        metadata, history = export.read_moved(
            metadata_location, storage=self.storage(metadata_location), location=location
        )
        self._enter(found, metadata, history, metadata_location=metadata_location)
        return self.load(found)

    def load(self, identifier: TableName) -> TableHead:
        found = Identifier.parse(identifier)
        row = self._row(found)
        if row[1] is not None:
            return SqlHead(
                self.database,
                found,
                TableRow.of(row),
                storage=self._storages,
                neighbours=self.neighbourhood,
            )
        from frazil.catalog.json_head import JsonHead

        return JsonHead(
            found,
            _legacy_location(found, row),
            locate=partial(self._locate_legacy, found),
            storage=self._storages,
            catalog=self,
        )

    def name_of(self, key: str) -> Identifier:
        """The name that the table of a head's key has now; NotFound when it was dropped."""
        query = (
            "SELECT table_namespace, table_name FROM frazil_tables "
            "WHERE table_id = :table_id AND catalog_name = :catalog"
        )
        found = None
        if key.isascii() and key.isdigit() and len(key) < 19:
            parameters = {"table_id": int(key), "catalog": self.name}
            found = self.database.rows(query, parameters)
        if not found:
            raise NotFound("the table was dropped")
        return Identifier(namespace=undotted(found[0][0]), name=found[0][1])

    def load_key(self, key: str) -> SqlHead:
        """The head of a table by its key, as `SqlHead.key` gives it."""
        head = self.load(self.name_of(key))
        if not isinstance(head, SqlHead) or head.key != key:
            raise NotFound("the table was dropped")
        return head

    def table_exists(self, identifier: TableName) -> bool:
        key = sql_rows.name_parameters(self.name, Identifier.parse(identifier))
        query = f"SELECT 1 FROM iceberg_tables WHERE {_BY_NAME}{self._only_tables()}"
        return bool(self.database.rows(query, key))

    def list_tables(self, namespace: NamespaceName) -> list[Identifier]:
        parts = namespace_of(namespace)
        rows = self.database.rows(
            "SELECT table_name FROM iceberg_tables WHERE catalog_name = :catalog "
            f"AND table_namespace = :namespace{self._only_tables()}",
            {"catalog": self.name, "namespace": dotted(parts)},
        )
        if not rows and not self.namespace_exists(parts):
            raise NotFound(f"namespace {dotted(parts)} does not exist")
        return sorted(Identifier(namespace=parts, name=name) for (name,) in rows)

    def pulses(self, since_ms: int | None = None) -> list[Pulse]:
        only = self._only_tables()
        return sql_pulses.pulses(self.database, self.name, only=only, since_ms=since_ms)

    def neighbourhood(self, except_id: int | None = None) -> Neighbourhood:
        """Every table of the database but one, and what else its tables must leave alone."""
        places = sql_places.places(
            self.database, except_id=except_id, storage=self._storages, open=self._open
        )
        return Neighbourhood(
            tables=tuple(places), warehouse=self.warehouse, database=self.database.file
        )

    def _open(self, catalog: str, namespace: str, name: str) -> TableHead:
        if catalog != self.name:
            raise NotFound(f"{namespace}.{name} belongs to catalog {catalog!r} of the database")
        return self.load(Identifier(namespace=undotted(namespace), name=name))

    def upgrade(self, identifier: TableName, base: State, metadata: TableMetadata) -> Outcome:
        found = Identifier.parse(identifier)
        old = base.metadata_location
        if metadata.format_version < FORMAT_VERSION or old is None:
            raise InvalidInput(f"{found}: expected v4 metadata made from a v1-v3 table as loaded")
        self._need_typed()
        _, history = export.read(old, storage=self.storage(old))
        replaced = MetadataLogEntry(metadata_file=old, timestamp_ms=base.metadata.last_updated_ms)
        history = replace(history, metadata_log=(*history.metadata_log, replaced))
        storage = self.storage(metadata.location)
        rendered = old
        if export.json_every(metadata):
            rendered = export.render(metadata, history, version=0, storage=storage)
        names = sql_rows.name_parameters(self.name, found)
        try:
            with self.database.transaction() as transaction:
                key = {**names, "metadata_location": old, "rendered": rendered}
                if not transaction.run(_UPGRADE, key):
                    raise DuplicateKey
                written = None if rendered == old else rendered
                sql_rows.insert_table(
                    transaction, names, metadata, history, metadata_location=written
                )
        except DuplicateKey:
            if rendered != old:
                storage.delete(rendered)
            return Lost()
        except UncertainCommit as lost:
            return Unknown(cause=lost.cause)
        return Landed(state=self.load(found).load())

    def swap_all(self, swaps: Sequence[tuple[TableHead, State, Draft]]) -> Outcomes:
        ours = [(_ours(head), base, draft) for head, base, draft in swaps]
        return sql_head.swap_all(self.database, ours)

    def rename(self, identifier: TableName, to: TableName) -> None:
        old, new = Identifier.parse(identifier), Identifier.parse(to)
        key = {
            **sql_rows.name_parameters(self.name, old),
            "to_namespace": dotted(new.namespace),
            "to_name": new.name,
        }
        try:
            with self.database.changing(f"renaming {old} to {new}") as transaction:
                self._need_namespace(transaction, new)
                statement = _RENAME.format(table="iceberg_tables") + self._only_tables()
                if not transaction.run(statement, key):
                    raise NotFound(f"table {old} does not exist")
                transaction.run(_RENAME.format(table="frazil_tables"), key)
        except DuplicateKey:
            raise AlreadyExists(f"table {new} already exists") from None

    def drop(self, identifier: TableName) -> None:
        found = Identifier.parse(identifier)
        with self.database.changing(f"dropping {found}") as transaction:
            self._take_out(transaction, found)

    def purge(self, identifier: TableName) -> Purged:
        from frazil.catalog.json_head import JsonHead

        found = Identifier.parse(identifier)
        head = self.load(found)
        if isinstance(head, JsonHead):
            self.drop(found)
            return _purged(head, head.history())
        with self.database.changing(f"dropping {found}") as transaction:
            table_id = self._table_id(transaction, found)
            history = History()
            if table_id is not None:
                history = sql_rows.read_history(transaction, table_id, path=str(found))
            self._take_out(transaction, found)
        return _purged(head, history)

    # Rows

    def _locate_legacy(self, identifier: Identifier) -> str:
        return _legacy_location(identifier, self._row(identifier))

    def _row(self, identifier: Identifier) -> Row:
        query = sql_rows.LOAD_BY_NAME + self._only_tables()
        key = {**sql_rows.name_parameters(self.name, identifier), "known": ""}
        found = self.database.rows(query, key)
        if not found:
            raise NotFound(f"table {identifier} does not exist")
        return found[0]

    def _enter(
        self,
        identifier: Identifier,
        metadata: TableMetadata,
        history: History,
        *,
        metadata_location: str | None,
    ) -> None:
        is_ours = metadata.format_version >= FORMAT_VERSION
        self._need_typed()
        names = sql_rows.name_parameters(self.name, identifier)
        kind = sql_schema.V4_TYPE if is_ours else sql_schema.TABLE_TYPE
        try:
            with self.database.transaction() as transaction:
                self._need_namespace(transaction, identifier)
                row = {**names, "metadata_location": metadata_location, "iceberg_type": kind}
                transaction.run(_ADD, row)
                if is_ours:
                    sql_places.need_free(transaction, metadata.location)
                    sql_rows.insert_table(
                        transaction, names, metadata, history, metadata_location=metadata_location
                    )
        except DuplicateKey:
            raise AlreadyExists(f"table {identifier} already exists") from None
        except UncertainCommit as lost:
            if not self._holds(identifier, metadata):
                raise CommitUnknown(
                    f"{identifier}: the connection was lost while the table was entered; "
                    "check whether it exists before retrying"
                ) from lost

    def _holds(self, identifier: Identifier, metadata: TableMetadata) -> bool:
        try:
            return self.load(identifier).state.metadata.table_uuid == metadata.table_uuid
        except NotFound:
            return False

    def _take_out(self, transaction: DatabaseTransaction, identifier: Identifier) -> None:
        table_id = self._table_id(transaction, identifier)
        if table_id is not None:
            sql_rows.delete_table(transaction, table_id)
        statement = f"DELETE FROM iceberg_tables WHERE {_BY_NAME}{self._only_tables()}"
        if not transaction.run(statement, sql_rows.name_parameters(self.name, identifier)):
            raise NotFound(f"table {identifier} does not exist")

    def _table_id(self, transaction: DatabaseTransaction, identifier: Identifier) -> int | None:
        key = sql_rows.name_parameters(self.name, identifier)
        query = f"SELECT table_id FROM frazil_tables WHERE {_BY_NAME}"
        found = transaction.rows(query, key)
        return found[0][0] if found else None

    def _need_namespace(
        self, source: Database | DatabaseTransaction, identifier: Identifier
    ) -> None:
        if not self._namespaces.exists(source, identifier.namespace):
            raise NotFound(f"{identifier}: namespace {dotted(identifier.namespace)} does not exist")

    def _only_tables(self) -> str:
        """What keeps views out of a statement; old databases cannot hold any."""
        return sql_rows.NOT_A_VIEW if self._is_typed else ""

    def _need_typed(self) -> None:
        if not self._is_typed:
            sql_schema.add_iceberg_type(self.database)
            self._is_typed = True


def _legacy_location(identifier: Identifier, row: Row) -> str:
    location, table_id = row[0], row[1]
    if table_id is not None:
        raise CommitConflict(f"{identifier}: was upgraded to format-version 4; load it again")
    if not location:
        raise NotFound(f"{identifier}: its catalog row points to no metadata file")
    return str(location)


def _purged(head: TableHead, history: History) -> Purged:
    return Purged(
        identifier=head.identifier,
        metadata=head.state.metadata,
        history=history,
        metadata_location=head.state.metadata_location,
    )


def _ours(head: TableHead) -> SqlHead:
    if isinstance(head, SqlHead):
        return head
    if isinstance(head, ReadOnly):
        raise head.refusal()
    raise InvalidInput(f"{head.identifier}: is not a table of this catalog")
