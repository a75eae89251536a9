"""A catalog in a SQL database: SQLite for one machine, PostgreSQL for many writers.

Shares its database with PyIceberg's SqlCatalog and Iceberg's JdbcCatalog (`sql_schema` says how):
their v1-v3 tables can be read here and upgraded in place, and they go on working with the rest.
Namespaces live in `sql_namespaces`, a table's rows in `sql_rows`, its head in `sql_head`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial

from frazil.catalog import export
from frazil.catalog.backend import NamespaceName, Purged, TableHead, TableName, TableVersion
from frazil.catalog.database.database import (
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
from frazil.catalog.ownership import OtherTables
from frazil.catalog.sql import sql_head, sql_places, sql_rows, sql_schema
from frazil.catalog.sql.sql_head import SqlHead
from frazil.catalog.sql.sql_namespaces import SqlNamespaces
from frazil.catalog.sql.sql_rows import TableRow
from frazil.catalog.sql.sql_views import SqlViews
from frazil.catalog.storages import Storages
from frazil.commit.head import Draft, Landed, Lost, Outcome, ReadOnly, State, Superseded, Unknown
from frazil.errors import AlreadyExists, CatalogError, CommitUnknown, InvalidInput, NotFound
from frazil.format.metadata.metadata import FORMAT_VERSION, History, MetadataLogEntry, TableMetadata
from frazil.storage import Storage, checked_location
from frazil.value_classes import replace

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
        self._storages: Callable[[str], Storage] = Storages(properties)
        sql_schema.prepare(self.database)
        self._is_typed = sql_schema.has_iceberg_type(self.database, kind=self.database.kind)
        self.namespaces = SqlNamespaces(self.database, name)
        self.views = SqlViews(
            self.database,
            name,
            namespace_exists=self.namespaces.exists,
            prepare=self._need_typed,
        )

    def __repr__(self) -> str:
        return f"SqlCatalog({self.database.uri!r}, name={self.name!r})"

    @property
    def notes(self) -> Notes:
        return SqlNotes(self.database, _OF_THE_CATALOG)

    def storage(self, location: str) -> Storage:
        return self._storages(location)

    def with_storages(self, storages: Callable[[str], Storage]) -> SqlCatalog:
        """The same catalog, whose files are reached through other storages."""
        other = copy(self)
        other._storages = storages
        return other

    def is_place(self, location: str) -> bool:
        """Whether a table or namespace of this database has its files at a location, or its
        metadata file there."""
        return sql_places.is_in_use(self.database, location)

    def tables_below(self, folder: str) -> list[tuple[Namespace, str]]:
        """Locations of tables inside a folder, with the namespaces that they are in."""
        return sql_places.tables_below(self.database, folder)

    def close(self) -> None:
        self.database.close()

    # Tables

    def location_for(self, identifier: TableName) -> str:
        name = Identifier.parse(identifier)
        base = self.namespaces.properties(name.namespace).get("location")
        if base is not None:
            place = f"{base.rstrip('/')}/{folder_name(name.name)}"
        elif self.warehouse is not None:
            place = table_location(self.warehouse, name)
        else:
            raise InvalidInput(f"{name}: give a location; the catalog has no warehouse")
        place = checked_location(place)
        return place if self.is_free(place) else f"{place}-{uuid.uuid4().hex[:8]}"

    def is_free(self, place: str) -> bool:
        """Whether a new table can lie at a place. A dropped or renamed table may have left its
        files there."""
        if sql_places.taken_by(self.database, place) is not None:
            return False
        return not any(True for _ in self.storage(place).list(f"{place}/metadata"))

    def exposed_trees(self) -> list[str]:
        """Tables whose clients see a location that holds the table's metadata."""
        locations = sql_places.client_locations(self.database)
        return sorted(
            name for name, location, place in locations if f"{location}/".startswith(f"{place}/")
        )

    def client_of(self, place: str) -> str | None:
        """The table with a folder at a place, around it or below it."""
        return self.neighbourhood().sharing(place)

    def create_table(
        self, identifier: TableName, metadata: TableMetadata, history: History | None = None
    ) -> TableHead:
        name = Identifier.parse(identifier)
        self._need_namespace(self.database, name)
        if self.table_exists(name):
            raise AlreadyExists(f"table {name} already exists")
        sql_places.need_free(self.database, metadata.location)
        return self._created(name, metadata, history or History(), overwrite=False)

    def _created(
        self, identifier: Identifier, metadata: TableMetadata, history: History, *, overwrite: bool
    ) -> TableHead:
        """Enter a table of ours, with a JSON file of its own."""
        storage = self.storage(metadata.location)
        with export.first_version(metadata, history, storage) as rendered:
            self._enter(
                identifier, metadata, history, metadata_location=rendered, overwrite=overwrite
            )
        return self.load(identifier)

    def enter(
        self,
        identifier: TableName,
        metadata: TableMetadata,
        history: History,
        *,
        metadata_location: str | None,
        overwrite: bool = False,
    ) -> TableHead:
        """Enter a table that was read from a metadata file, which need not be there any more; one
        that was changed since (`metadata_location` is None) gets a new file.

        With `overwrite` an existing table is replaced in the same transaction: it stays if
        the new one cannot be entered. Its files stay in any case.
        """
        name = Identifier.parse(identifier)
        if metadata_location is None:
            return self._created(name, metadata, history, overwrite=overwrite)
        self._enter(
            name, metadata, history, metadata_location=metadata_location, overwrite=overwrite
        )
        return self.load(name)

    def register(
        self, identifier: TableName, metadata_location: str, *, location: str | None = None
    ) -> TableHead:
        name = Identifier.parse(identifier)
        metadata, history = export.read_moved(
            metadata_location, storage=self.storage(metadata_location), location=location
        )
        self._enter(name, metadata, history, metadata_location=metadata_location)
        return self.load(name)

    def load(self, identifier: TableName) -> TableHead:
        name = Identifier.parse(identifier)
        row = self._row(name)
        if row[1] is not None:
            return SqlHead(
                self.database,
                name,
                TableRow.of(row),
                storage=self._storages,
                neighbours=self.neighbourhood,
                is_taken=self.table_exists,
            )
        from frazil.catalog.json_head import JsonHead

        return JsonHead(
            name,
            _legacy_location(name, row),
            locate=partial(self._locate_legacy, name),
            storage=self._storages,
            catalog=self,
        )

    def name_of(self, key: str) -> Identifier:
        """The name that the table of a head's key has now; NotFound when it was dropped."""
        query = (
            "SELECT table_namespace, table_name FROM frazil_tables "
            "WHERE table_id = :table_id AND catalog_name = :catalog"
        )
        rows = None
        if key.isascii() and key.isdigit() and len(key) < 19:
            parameters = {"table_id": int(key), "catalog": self.name}
            rows = self.database.rows(query, parameters)
        if not rows:
            raise NotFound("the table was dropped")
        return Identifier(namespace=undotted(rows[0][0]), name=rows[0][1])

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
        if not rows and not self.namespaces.exists(parts):
            raise NotFound(f"namespace {dotted(parts)} does not exist")
        return sorted(Identifier(namespace=parts, name=name) for (name,) in rows)

    def table_versions(self, since_ms: int | None = None) -> list[TableVersion]:
        only = self._only_tables()
        return sql_rows.table_versions(self.database, self.name, only=only, since_ms=since_ms)

    def neighbourhood(self, except_id: int | None = None) -> OtherTables:
        """Every table of the database but one, and what else its tables must leave alone."""
        places = sql_places.places(
            self.database, except_id=except_id, storage=self._storages, open=self._open
        )
        return OtherTables(
            tables=tuple(places), warehouse=self.warehouse, database=self.database.file
        )

    def _open(self, catalog: str, namespace: str, name: str) -> TableHead:
        if catalog != self.name:
            raise NotFound(f"{namespace}.{name} belongs to catalog {catalog!r} of the database")
        return self.load(Identifier(namespace=undotted(namespace), name=name))

    def upgrade(self, identifier: TableName, base: State, metadata: TableMetadata) -> Outcome:
        name = Identifier.parse(identifier)
        old = base.metadata_location
        if metadata.format_version < FORMAT_VERSION or old is None:
            raise InvalidInput(f"{name}: expected v4 metadata made from a v1-v3 table as loaded")
        self._need_typed()
        _, history = export.read(old, storage=self.storage(old))
        replaced = MetadataLogEntry(metadata_file=old, timestamp_ms=base.metadata.last_updated_ms)
        history = replace(history, metadata_log=(*history.metadata_log, replaced))
        storage = self.storage(metadata.location)
        rendered = old
        if export.json_every(metadata):
            rendered = export.render(metadata, history, version=0, storage=storage)
        names = sql_rows.name_parameters(self.name, name)
        try:
            with self.database.transaction() as transaction:
                sql_schema.check_layout(self.database, transaction)
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
        return Landed(states=(self.load(name).load(),))

    def swap_all(self, swaps: Sequence[tuple[TableHead, State, Draft]]) -> Outcome:
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
                sql_schema.check_layout(self.database, transaction)
                self._need_namespace(transaction, new)
                statement = _RENAME.format(table="iceberg_tables") + self._only_tables()
                if not transaction.run(statement, key):
                    raise NotFound(f"table {old} does not exist")
                transaction.run(_RENAME.format(table="frazil_tables"), key)
        except DuplicateKey:
            raise AlreadyExists(f"table {new} already exists") from None

    def drop(self, identifier: TableName) -> None:
        name = Identifier.parse(identifier)
        with self.database.changing(f"dropping {name}") as transaction:
            sql_schema.check_layout(self.database, transaction)
            self._take_out(transaction, name)

    def purge(self, identifier: TableName) -> Purged:
        from frazil.catalog.json_head import JsonHead

        name = Identifier.parse(identifier)
        head = self.load(name)
        if isinstance(head, JsonHead):
            self.drop(name)
            return _purged(head, head.history())
        with self.database.changing(f"dropping {name}") as transaction:
            sql_schema.check_layout(self.database, transaction)
            table_id = self._table_id(transaction, name)
            history = History()
            if table_id is not None:
                history = sql_rows.read_history(transaction, table_id, path=str(name))
            self._take_out(transaction, name)
        return _purged(head, history)

    # Rows

    def _locate_legacy(self, identifier: Identifier) -> str:
        row = self._row(identifier)
        if row[1] is not None:
            raise Superseded(
                f"{identifier}: was upgraded to format-version 4; load it again",
                partial(self.load, identifier),
            )
        return _legacy_location(identifier, row)

    def _row(self, identifier: Identifier) -> Row:
        query = sql_rows.LOAD_BY_NAME + self._only_tables()
        key = {**sql_rows.name_parameters(self.name, identifier), "known": ""}
        rows = self.database.rows(query, key)
        if not rows:
            raise NotFound(f"table {identifier} does not exist")
        return rows[0]

    def _enter(
        self,
        identifier: Identifier,
        metadata: TableMetadata,
        history: History,
        *,
        metadata_location: str | None,
        overwrite: bool = False,
    ) -> None:
        is_ours = metadata.format_version >= FORMAT_VERSION
        self._need_typed()
        names = sql_rows.name_parameters(self.name, identifier)
        kind = sql_schema.V4_TYPE if is_ours else sql_schema.TABLE_TYPE
        try:
            with self.database.transaction() as transaction:
                sql_schema.check_layout(self.database, transaction)
                self._need_namespace(transaction, identifier)
                if overwrite:
                    self._take_out(transaction, identifier, missing_ok=True)
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
            if overwrite or not self._holds(identifier, metadata):
                raise CommitUnknown(
                    f"{identifier}: the connection was lost while the table was entered; "
                    "check whether it exists before retrying"
                ) from lost

    def _holds(self, identifier: Identifier, metadata: TableMetadata) -> bool:
        try:
            return self.load(identifier).state.metadata.table_uuid == metadata.table_uuid
        except (NotFound, CatalogError):
            return False

    def _take_out(
        self,
        transaction: DatabaseTransaction,
        identifier: Identifier,
        *,
        missing_ok: bool = False,
    ) -> None:
        table_id = self._table_id(transaction, identifier)
        if table_id is not None:
            sql_rows.delete_table(transaction, table_id)
        statement = f"DELETE FROM iceberg_tables WHERE {_BY_NAME}{self._only_tables()}"
        taken_out = transaction.run(statement, sql_rows.name_parameters(self.name, identifier))
        if not taken_out and not missing_ok:
            raise NotFound(f"table {identifier} does not exist")

    def _table_id(self, transaction: DatabaseTransaction, identifier: Identifier) -> int | None:
        key = sql_rows.name_parameters(self.name, identifier)
        query = f"SELECT table_id FROM frazil_tables WHERE {_BY_NAME}"
        rows = transaction.rows(query, key)
        return rows[0][0] if rows else None

    def _need_namespace(
        self, source: Database | DatabaseTransaction, identifier: Identifier
    ) -> None:
        if not self.namespaces.exists_in(source, identifier.namespace):
            raise NotFound(f"{identifier}: namespace {dotted(identifier.namespace)} does not exist")

    def _only_tables(self) -> str:
        """What keeps views out of a statement; old databases cannot hold any."""
        return sql_rows.NOT_A_VIEW if self._is_typed else ""

    def _need_typed(self) -> None:
        if not self._is_typed:
            sql_schema.add_iceberg_type(self.database)
            self._is_typed = True


def _legacy_location(identifier: Identifier, row: Row) -> str:
    location = row[0]
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
