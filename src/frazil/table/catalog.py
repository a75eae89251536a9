"""A catalog as users see it: `connect`, namespaces, tables."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from frazil.catalog.names import Identifier, dotted
from frazil.catalog.ownership import UNCERTAIN
from frazil.catalog.pointers import NamespaceName, Pointers, TableHead, TableName, all_namespaces
from frazil.catalog.storages import Secretive, Storages
from frazil.catalog.unmade import UnmadeCatalog
from frazil.commit.handle import TableHandle, now_ms
from frazil.entrance import checked, entrance, is_text
from frazil.errors import (
    AlreadyExists,
    FrazilError,
    InvalidInput,
    NotFound,
    StorageError,
    Unsupported,
)
from frazil.format.checks import check_text, check_texts
from frazil.format.metadata import new_table
from frazil.format.property_table import check_values
from frazil.legacy.legacy_decoder import LegacyDecoder
from frazil.storage import checked_location, is_local, local_path, same_store
from frazil.table.table import Table
from frazil.tree.cache import DEFAULT_BYTES, ManifestCache
from frazil.words import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortOrder

    from frazil.catalog.recover import Recovered
    from frazil.commit.loop import Committed
    from frazil.data.row_input import Rows
    from frazil.maintenance.purge import PurgeResult
    from frazil.paimon.adopt import Adopted
    from frazil.sql.query_result import Result
    from frazil.sql.session import QueryDatabase, Session

CACHE_BYTES = "cache.manifest-bytes"


@overload
def connect(
    uri: str | os.PathLike[str] = "warehouse",
    *,
    warehouse: str | os.PathLike[str] | None = None,
    name: str = "default",
    token: str | None = None,
    **properties: str,
) -> Catalog: ...
@overload
def connect(
    uri: str | os.PathLike[str] = "warehouse",
    *,
    warehouse: str | os.PathLike[str] | None = None,
    name: str = "default",
    token: str | None = None,
    create: bool,
    **properties: str,
) -> Catalog: ...
@checked  # type: ignore[misc]  # a property may be called create for a type checker
def connect(
    uri: str | os.PathLike[str] = "warehouse",
    *,
    warehouse: str | os.PathLike[str] | None = None,
    name: str = "default",
    token: str | None = None,
    create: bool = False,
    **properties: str,
) -> Catalog:
    """Open a catalog.

    A path is an embedded warehouse: a folder with the tables and a SQLite database. If it does
    not exist yet, it is created with the first table, or at once with `create=True`. A URI
    (`postgresql://…`, `sqlite:///…`) names a database; `warehouse` is then the default location of
    tables. `http://host:8181` is a catalog that `frazil serve` shares; if it asks for a token, give
    `token` or set FRAZIL_TOKEN. Other properties configure storage and have PyIceberg's names:
    `**{"s3.endpoint": …}`.

    >>> catalog = connect("warehouse")                                    # doctest: +SKIP
    """
    from frazil.catalog.database import Database
    from frazil.catalog.sql_catalog import SqlCatalog

    text = _address(uri)
    check_text(name, "the name of the catalog", empty=False)
    _check_options(properties)
    if _is_server(text):
        return _served(text, name, warehouse, token, properties)
    if token is not None:
        raise InvalidInput("token is for a server; a folder or a database takes none")
    place = None if warehouse is None else _warehouse(warehouse)
    pointers: Pointers
    if _is_database(text):
        database = Database(_driver(text))
        pointers = SqlCatalog(database, name=name, warehouse=place, properties=properties)
    elif not is_local(text):
        raise InvalidInput(
            f"{_scheme(text)} is neither a folder nor a database that can be used; for tables on "
            "object storage give a database and the warehouse: "
            "connect('sqlite:///catalog.db', warehouse='s3://…')"
        )
    else:
        folder = _folder(text)
        pointers = _embedded(folder, place, name, properties, create=create)
    origin = {"uri": text if _is_database(text) else str(folder), "name": name, **properties}
    if warehouse is not None and place is not None:
        origin["warehouse"] = place
    return Catalog(pointers, properties, origin=origin)


def _served(
    address: str, name: str, warehouse: object, token: str | None, properties: Mapping[str, str]
) -> Catalog:
    """The catalog behind a server; its token is not part of what opens it elsewhere."""
    from frazil.catalog.remote import RemoteCatalog
    from frazil.catalog.remote_http import TOKEN_VARIABLE

    if warehouse is not None:
        raise InvalidInput("warehouse is the server's own; start frazil serve with it")
    token = token or os.environ.get(TOKEN_VARIABLE) or None
    pointers = RemoteCatalog(address, token=token, properties=properties)
    if name not in ("default", pointers.name):
        raise InvalidInput(f"{address} serves catalog {pointers.name!r}, not {name!r}")
    return Catalog(pointers, properties, origin={"uri": address, "name": name, **properties})


def _embedded(
    folder: Path, place: str | None, name: str, properties: Mapping[str, str], *, create: bool
) -> Pointers:
    """The catalog of a folder; one that does not exist is left to the first table."""
    from frazil.catalog.database import Database
    from frazil.catalog.sql_catalog import SqlCatalog

    place = place or f"file://{folder}"

    def make() -> Pointers:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"{folder}: cannot be a warehouse: {error.strerror or error}"
            ) from error
        database = Database.at_path(f"{folder}/catalog.db")
        return SqlCatalog(database, name=name, warehouse=place, properties=properties)

    try:
        is_made = create or os.path.lexists(folder / "catalog.db") or not _is_free(folder)
    except OSError:  # a name that no folder can have
        is_made = True
    if is_made:
        return make()
    return cast(
        Pointers,
        UnmadeCatalog(folder, make, name=name, warehouse=place, storage=Storages(properties)),
    )


def _is_free(folder: Path) -> bool:
    """Whether a warehouse could be created here later; if not, trying says why."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return existing.is_dir() and os.access(existing, os.R_OK | os.W_OK | os.X_OK)


def _check_options(properties: Mapping[str, str]) -> None:
    """Properties have dots or hyphens in their names; any other name is a mistake."""
    for name in properties:
        if "." not in name and "-" not in name:
            hint = did_you_mean(name, ("uri", "warehouse", "name", "create", "token"))
            raise InvalidInput(f"connect has no option {name!r}{hint}")
    check_texts(properties, "connection property")


def connect_existing(uri: str | os.PathLike[str], **options: str) -> Catalog:
    """Open a catalog as `connect` does, but make none: NotFound when a folder holds none."""
    text = _address(uri)
    if not _is_database(text) and not _is_server(text) and is_local(text):
        folder = _folder(text)
        if not (folder / "catalog.db").is_file():
            raise NotFound(f"{folder}: no warehouse is there; give its full path, or make it first")
    return connect(text, **options)


def _address(uri: object) -> str:
    text = os.fspath(uri) if isinstance(uri, os.PathLike) else uri
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InvalidInput("the catalog's address is not text; expected a folder or a database URI")
    check_text(text, "the catalog's address")
    return text


def _folder(text: str) -> Path:
    try:
        return Path(local_path(text)).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise InvalidInput(f"{text}: {error}") from error


def _warehouse(given: object) -> str:
    """Where tables go, as it is stored; `~` is the home of the user."""
    if isinstance(given, str | os.PathLike) and str(given).startswith("~"):
        given = _folder(str(given))
    place = checked_location(given, what="warehouse")
    return f"file://{place}" if place.startswith("/") else place


def _scheme(text: str) -> str:
    """An address without what may be secret in it."""
    return f"{text.partition(':')[0]}:…"


def _is_database(text: str) -> bool:
    return re.match(r"(postgresql|postgres|sqlite)(\+\w+)?:", text) is not None


def _is_server(text: str) -> bool:
    return re.match(r"https?://", text) is not None


def _driver(text: str) -> str:
    """PostgreSQL through psycopg, whatever the URI was written for."""
    scheme, _, rest = text.partition("://")
    if scheme in ("postgresql", "postgres"):
        return f"postgresql+psycopg://{rest}"
    return text


@entrance
class Catalog:
    """Namespaces and tables. Safe to share between threads."""

    def __init__(
        self,
        pointers: Pointers,
        properties: Mapping[str, str] | None = None,
        *,
        origin: Mapping[str, str] | None = None,
    ) -> None:
        self._pointers = pointers
        self._origin = None if origin is None else Secretive(origin)
        size = (properties or {}).get(CACHE_BYTES)
        if size is not None and not size.isdigit():
            raise InvalidInput(f"{CACHE_BYTES} is {size!r}; expected a number of bytes")
        self._engine: QueryDatabase | None = None
        self._cache = ManifestCache(int(size) if size is not None else DEFAULT_BYTES)

    def __repr__(self) -> str:
        return f"Catalog({self._pointers!r})"

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def warehouse(self) -> str | None:
        """Default location for new tables."""
        return self._pointers.warehouse

    def close(self) -> None:
        """Close all database connections."""
        if self._engine is not None:
            self._engine.close()
        self._pointers.close()

    # SQL

    def sql(
        self,
        text: str,
        params: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        tables: Mapping[str, Any] | None = None,
    ) -> Result:
        """Run SQL: queries, row changes, definitions, maintenance. Separate statements with
        semicolons; the result is that of the last one.

        `params` holds the values for `?` placeholders, or for `$name` if it is a mapping.
        `tables` makes Arrow data and data frames available to the text by name.

        >>> catalog.sql("SELECT * FROM shop.orders WHERE id = ?", [7])        # doctest: +SKIP
        """
        session = self.session()
        try:
            result = session.sql(text, params, tables=tables)
            if session.in_transaction:
                raise InvalidInput("BEGIN without COMMIT; nothing was changed")
        finally:
            session.close()
        return result

    def session(self) -> Session:
        """A SQL session, which keeps `USE` and an open transaction between calls."""
        from frazil.sql.session import QueryDatabase

        if self._engine is None:
            self._engine = QueryDatabase()
        return self._engine.session(self)

    # Namespaces

    def create_namespace(
        self,
        namespace: NamespaceName,
        properties: Mapping[str, str] | None = None,
        *,
        if_not_exists: bool = False,
    ) -> None:
        """Create a namespace."""
        try:
            self._pointers.create_namespace(namespace, properties)
        except AlreadyExists:
            if not if_not_exists:
                raise

    def list_namespaces(self, parent: NamespaceName = ()) -> list[str]:
        """Names of the namespaces one level below a parent."""
        return [dotted(parts) for parts in self._pointers.list_namespaces(parent)]

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        """Properties of a namespace."""
        return self._pointers.namespace_properties(namespace)

    def set_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], *, remove: Sequence[str] = ()
    ) -> None:
        """Set and remove properties of a namespace."""
        self._pointers.set_namespace_properties(namespace, updates, removals=remove)

    def drop_namespace(self, namespace: NamespaceName) -> None:
        """Remove an empty namespace."""
        self._pointers.drop_namespace(namespace)

    # Tables

    def create_table(
        self,
        name: TableName,
        schema: Schema | pa.Schema | Rows,
        *,
        partition_by: Sequence[str] | PartitionSpec | None = None,
        sort_by: Sequence[str] | SortOrder | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create a table, and its namespace if it does not exist.

        `schema` is a schema, or rows in any form that `append` accepts, which become the
        table's first rows. With `if_not_exists`, an existing table is returned unchanged.
        `partition_by` lists transforms: `["day(ts)", "bucket[16](id)", "country"]`.
        """
        identifier = Identifier.parse(name)
        if if_not_exists and self._pointers.table_exists(identifier):
            return self.load_table(identifier)
        columns, rows = _columns_and_rows(schema)
        check_values(properties or {})
        self.create_namespace(identifier.namespace, if_not_exists=True)
        metadata = new_table(
            schema=columns,
            spec=_spec(partition_by, columns),
            sort_order=_order(sort_by, columns),
            location=self._pointers.location_for(identifier)
            if location is None
            else checked_location(location),
            table_uuid=uuid.uuid4(),
            now_ms=now_ms(),
            properties=properties,
        )
        table = self._table(identifier, self._pointers.create_table(identifier, metadata))
        if rows is not None:
            try:
                table.append(rows)
            except FrazilError:
                self.drop_table(identifier)
                raise
        return table

    def load_table(self, name: TableName) -> Table:
        """Open a table. Raises NotFound if it does not exist."""
        identifier = Identifier.parse(name)
        with self._naming(identifier):
            return self._table(identifier, self._pointers.load(identifier))

    def find_table(self, name: TableName) -> Table | None:
        """Open a table, or return None if it does not exist."""
        identifier = Identifier.parse(name)
        try:
            return self._table(identifier, self._pointers.load(identifier))
        except NotFound:
            return None

    @contextmanager
    def _naming(self, identifier: Identifier) -> Iterator[None]:
        """Says which tables there are when the one that was named is not there."""
        try:
            yield
        except NotFound as error:
            try:
                names = self.list_tables()
            except FrazilError:
                raise error from None
            if str(identifier) in names:
                raise
            hint = did_you_mean(str(identifier), names)
            if not hint:
                shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
                hint = f"; tables: {shown}" if names else "; the catalog has no tables"
            raise NotFound(f"table {identifier} does not exist{hint}") from error

    def table_exists(self, name: TableName) -> bool:
        """Whether a table exists."""
        return self._pointers.table_exists(name)

    def list_tables(self, namespace: NamespaceName | None = None) -> list[str]:
        """Names of the tables of one namespace, or of all namespaces."""
        if namespace is not None:
            return [str(name) for name in self._pointers.list_tables(namespace)]
        return sorted(
            str(name)
            for each in all_namespaces(self._pointers)
            for name in self._pointers.list_tables(each)
        )

    def register_table(
        self, name: TableName, metadata_location: str, *, location: str | None = None
    ) -> Table:
        """Register an existing table by its metadata JSON, for example one that was copied here."""
        identifier = Identifier.parse(name)
        json = checked_location(metadata_location, what="metadata_location")
        place = None if location is None else checked_location(location)
        if place is not None and not same_store(json, place):
            raise InvalidInput(f"{json} and {place} are not in the same storage")
        self.create_namespace(identifier.namespace, if_not_exists=True)
        head = self._pointers.register(identifier, json, location=place)
        return self._table(identifier, head)

    def open_iceberg(self, source: Any, name: str | tuple[str, ...] | None = None) -> Table:
        """Open an Iceberg v1–v3 table for reading, without registering it in this catalog.

        `source` is a metadata file, a table's folder, a PyIceberg `Table`, or a PyIceberg `Catalog`
        with the table's `name`.
        """
        from frazil.legacy.open import open_table

        if isinstance(source, str) and not is_text(source):
            raise InvalidInput(f"source is {source!a}; expected text that has a UTF-8 form")
        found = open_table(source, name, storage=self._pointers.storage, cache=self._cache)
        return Table(found)

    def recover_table(self, name: TableName, location: str) -> tuple[Table, Recovered]:
        """Rebuild a lost catalog entry from the newest metadata JSON and the roots written
        since."""
        from frazil.catalog.recover import recover

        identifier = Identifier.parse(name)
        place = checked_location(location)
        found = recover(place, self._pointers.storage(place))
        self.create_namespace(identifier.namespace, if_not_exists=True)
        metadata = found.metadata
        if not found.is_certain:
            doubts = {**metadata.properties, UNCERTAIN: found.doubts[0][:500]}
            metadata = replace(metadata, properties=doubts)
        head = self._pointers.create_table(identifier, metadata, found.history)
        return self._table(identifier, head), found

    def adopt_paimon(self, name: TableName, source: str, **options: Any) -> Adopted:
        """Adopt a Paimon table in place, or bring an adopted one up to date; the options are
        those of `frazil.paimon.adopt.adopt`."""
        from frazil.paimon.adopt import adopt

        identifier = Identifier.parse(name)
        self.create_namespace(identifier.namespace, if_not_exists=True)
        return adopt(self._pointers, identifier, source, cache=self._cache, **options)

    def rename_table(self, name: TableName, to: TableName) -> Table:
        """Rename a table. Its files are not moved."""
        with self._naming(Identifier.parse(name)):
            self._pointers.rename(name, to)
        return self.load_table(to)

    def drop_table(self, name: TableName, *, purge: bool = False) -> PurgeResult | None:
        """Drop a table from the catalog. `purge` also deletes its files, but nothing that another
        table may use; it then returns what was deleted."""
        from frazil.maintenance.purge import purge_table

        with self._naming(Identifier.parse(name)):
            if purge:
                return purge_table(self._pointers, name)
            self._pointers.drop(name)
        return None

    def _table(self, identifier: Identifier, head: TableHead) -> Table:
        state = head.state
        handle = TableHandle.of(
            str(identifier),
            head,
            self._pointers.storage(state.metadata.location),
            state=state,
            cache=self._cache,
            decoder=LegacyDecoder(),
        )
        handle.after_commit = (_publish_if_asked,)
        return Table(handle)

    def __getitem__(self, name: str) -> Table:
        return self.load_table(name)

    def __contains__(self, name: str) -> bool:
        try:
            return self.table_exists(name)
        except (InvalidInput, NotFound):
            return False


def _publish_if_asked(handle: TableHandle, done: Committed) -> str | None:
    from frazil.legacy.publish_property import FORMAT_PROPERTY

    if FORMAT_PROPERTY not in handle.metadata.properties:
        return None
    from frazil.legacy.publish import publish_if_asked

    return publish_if_asked(handle, done)


def _columns_and_rows(given: Schema | pa.Schema | Rows) -> tuple[Schema, Rows]:
    """The columns of a new table, and its first rows, if rows are given."""
    import pyarrow as pa
    from pyiceberg.schema import Schema

    from frazil.data.row_input import schema_of
    from frazil.data.schema import iceberg_schema

    if isinstance(given, Schema):
        return given, None
    if isinstance(given, pa.Schema):
        return iceberg_schema(given), None
    is_read_once = isinstance(given, Iterator) and not isinstance(given, pa.RecordBatchReader)
    rows = list(given) if is_read_once else given
    try:
        columns = schema_of(rows)
    except (InvalidInput, Unsupported) as error:
        kind = type(given).__name__
        raise InvalidInput(f"schema is a {kind}; expected a schema, or rows: {error}") from error
    if not columns.fields:
        raise InvalidInput("schema is empty rows; a table needs at least one column")
    return columns, rows


def _spec(partition_by: Sequence[str] | PartitionSpec | None, schema: Schema) -> PartitionSpec:
    from pyiceberg.partitioning import PartitionSpec

    from frazil.expr.partition_by import parse_partition_by

    if partition_by is None:
        from frazil.format.plain import UNPARTITIONED

        return UNPARTITIONED
    if isinstance(partition_by, PartitionSpec):
        return partition_by
    if isinstance(partition_by, str):
        raise InvalidInput(
            f"partition_by takes a list of transforms: partition_by=[{partition_by!r}]"
        )
    return parse_partition_by(list(partition_by), schema)


def _order(sort_by: Sequence[str] | SortOrder | None, schema: Schema) -> SortOrder:
    from pyiceberg.table.sorting import SortOrder

    from frazil.table.evolve import parse_sort_order

    if sort_by is None:
        from frazil.format.plain import UNSORTED

        return UNSORTED
    if isinstance(sort_by, SortOrder):
        return sort_by
    return parse_sort_order(list(sort_by), schema)
