"""A catalog as users see it: namespaces, tables, SQL."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from frazil.argument_checks import check_arguments, is_text
from frazil.catalog.backend import (
    CatalogBackend,
    NamespaceName,
    TableHead,
    TableName,
    all_namespaces,
    view_text,
)
from frazil.catalog.names import Identifier, dotted, namespace_of
from frazil.catalog.ownership import UNCERTAIN
from frazil.commit.handle import TableHandle, now_ms
from frazil.credentials import ConnectionProperties
from frazil.errors import AlreadyExists, FrazilError, InvalidInput, NotFound
from frazil.extras import many_imports
from frazil.format.metadata.metadata import MAIN, new_table
from frazil.legacy.read.legacy_decoder import LegacyDecoder
from frazil.properties.registry import CACHE_MANIFEST_BYTES, PUBLISH_FORMAT_VERSION, check_values
from frazil.storage import checked_location, same_store
from frazil.table.table import Table
from frazil.text_format import did_you_mean
from frazil.tree.cache import ManifestCache
from frazil.value_classes import replace

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog.rest import RestCatalog

    from frazil.catalog.recover import Recovered
    from frazil.commit.result import CommitResult
    from frazil.data.write.row_input import Rows
    from frazil.iceberg.partitioning import PartitionSpec
    from frazil.iceberg.pyiceberg_values import AnyOrder, AnySchema, AnySpec
    from frazil.iceberg.schema import Schema
    from frazil.iceberg.sorting import SortOrder
    from frazil.maintenance.removal.purge import PurgeResult
    from frazil.paimon.adoption.adopt import Adopted
    from frazil.sql.engine.database import Database
    from frazil.sql.output.query_result import Result
    from frazil.sql.session import Session

_Kind = TypeVar("_Kind")


@check_arguments
class Catalog:
    """Namespaces and tables. Safe to share between threads."""

    def __init__(
        self,
        pointers: CatalogBackend,
        properties: Mapping[str, str] | None = None,
        *,
        origin: Mapping[str, str] | None = None,
    ) -> None:
        self._pointers = pointers
        self._origin = None if origin is None else ConnectionProperties(origin)
        self._engine: Database | None = None
        self._cache = ManifestCache(CACHE_MANIFEST_BYTES.of(properties or {}))

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
        allow_files: bool = False,
    ) -> Result:
        """Run SQL: queries, row changes, definitions, maintenance. Separate statements with
        semicolons; the result is that of the last one.

        `params` holds the values for `?` placeholders, or for `$name` if it is a mapping.
        `tables` makes Arrow data and data frames available to the text by name; a name that no
        table has may also be a variable of the caller (`FROM df`). `allow_files` permits functions
        that read files, such as `read_parquet`, and COPY … TO: pass it only with text that you
        trust.

        >>> catalog.sql("SELECT * FROM shop.orders WHERE id = ?", [7])        # doctest: +SKIP
        """
        session = self.session()
        try:
            result = session.sql(text, params, tables=tables, allow_files=allow_files)
            if session.in_transaction:
                raise InvalidInput("BEGIN without COMMIT; nothing was changed")
        finally:
            session.close()
        return result

    def session(self, *, threads: int | None = None, memory_limit: str | None = None) -> Session:
        """A SQL session, which keeps `USE` and an open transaction between calls.

        `threads` and `memory_limit` (`"2GB"`) bound the engine, which spills to disk; the session
        then has an engine of its own. Without them it takes all cores and 80 % of the memory.
        """
        with many_imports():
            from frazil.sql.engine.database import Database
            from frazil.sql.session import Session

        settings = {"threads": threads, "memory_limit": memory_limit}
        chosen = {name: str(value) for name, value in settings.items() if value is not None}
        if chosen:
            return Session(
                self,
                database=Database(settings=chosen, warehouse=self.warehouse),
                owns_database=True,
            )
        if self._engine is None:
            self._engine = Database(warehouse=self.warehouse)
        return Session(self, database=self._engine)

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
            self._pointers.namespaces.create(namespace, properties)
        except AlreadyExists:
            if not if_not_exists:
                raise

    def list_namespaces(self, parent: NamespaceName = ()) -> list[str]:
        """Names of the namespaces one level below a parent."""
        return [dotted(parts) for parts in self._pointers.namespaces.children(parent)]

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        """Properties of a namespace."""
        return self._pointers.namespaces.properties(namespace)

    def set_namespace_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], *, remove: Sequence[str] = ()
    ) -> None:
        """Set and remove properties of a namespace."""
        self._pointers.namespaces.set_properties(namespace, updates, removals=remove)

    def drop_namespace(self, namespace: NamespaceName) -> None:
        """Remove an empty namespace."""
        self._pointers.namespaces.drop(namespace)

    # Tables

    def create_table(
        self,
        name: TableName,
        schema: AnySchema | pa.Schema | Rows,
        *,
        partition_by: Sequence[str] | AnySpec | None = None,
        sort_by: Sequence[str] | AnyOrder | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        expressions: Sequence[str] = (),
        if_not_exists: bool = False,
        replace: bool = False,
    ) -> Table:
        """Create a table, and its namespace if it does not exist.

        `schema` is a schema, or rows in any form that `append` accepts, which become the
        table's first rows. With `if_not_exists`, an existing table is returned unchanged;
        with `replace`, it gets this definition and these rows in one commit, and keeps its history.
        `partition_by` lists transforms: `["day(ts)", "bucket[16](id)", "country"]`.
        `expressions` have statistics beside those of the columns: `["lower(name)"]`.
        """
        identifier = Identifier.parse(name)
        if if_not_exists and replace:
            raise InvalidInput("give if_not_exists or replace, not both")
        if if_not_exists and self._pointers.table_exists(identifier):
            return self.load_table(identifier)
        columns, rows = _columns_and_rows(schema)
        check_values(properties or {})
        if replace and self._pointers.table_exists(identifier):
            table = self.load_table(identifier)
            if location is not None and checked_location(location) != table.location:
                raise InvalidInput(
                    f"location is {location!r}; a table that is replaced stays at {table.location}"
                )
            return _replaced(table, columns, rows, partition_by, sort_by, properties, expressions)
        self.create_namespace(identifier.namespace, if_not_exists=True)
        metadata = new_table(
            schema=columns,
            spec=_spec(partition_by, columns),
            sort_order=_order(sort_by, columns),
            location=new_location(self, identifier, location),
            table_uuid=uuid.uuid4(),
            now_ms=now_ms(),
            properties=properties,
        )
        if expressions:
            from frazil.table.columns.table_expressions import expressions_update

            metadata = expressions_update(metadata, expressions).apply(
                metadata, now_ms=metadata.last_updated_ms
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
            if self.view_exists(identifier):
                raise NotFound(f"{identifier} is a view, not a table; query it in SQL") from error
            hint = did_you_mean(str(identifier), names)
            if not hint:
                listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
                hint = f"; tables: {listed}" if names else "; the catalog has no tables"
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
            for namespace in all_namespaces(self._pointers)
            for name in self._pointers.list_tables(namespace)
        )

    def list_views(self, namespace: NamespaceName | None = None) -> list[str]:
        """Names of the views of one namespace, or of all namespaces."""
        if namespace is None:
            spaces = all_namespaces(self._pointers)
        else:
            spaces = [namespace_of(namespace)]
            if not self._pointers.namespaces.exists(namespace):
                raise NotFound(f"namespace {dotted(spaces[0])} does not exist")
        return sorted(str(name) for space in spaces for name in self._pointers.views.list(space))

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
        from frazil.legacy.read.open import open_table

        if isinstance(source, str) and not is_text(source):
            raise InvalidInput(f"source is {source!a}; expected valid Unicode text")
        opened = open_table(source, name, storage=self._pointers.storage, cache=self._cache)
        return Table(opened)

    def recover_table(self, name: TableName, location: str) -> tuple[Table, Recovered]:
        """Rebuild a lost catalog entry from the newest metadata JSON and the roots written
        since."""
        from frazil.catalog.recover import recover

        identifier = Identifier.parse(name)
        place = checked_location(location)
        recovered = recover(place, self._pointers.storage(place))
        self.create_namespace(identifier.namespace, if_not_exists=True)
        metadata = recovered.metadata
        if not recovered.is_certain:
            doubts = {**metadata.properties, UNCERTAIN: recovered.doubts[0][:500]}
            metadata = replace(metadata, properties=doubts)
        head = self._pointers.create_table(identifier, metadata, recovered.history)
        return self._table(identifier, head), recovered

    def adopt_paimon(self, name: TableName, source: str, **options: Any) -> Adopted:
        """Adopt a Paimon table in place, or bring an adopted one up to date; the options are
        those of `frazil.paimon.adoption.adopt.adopt`."""
        from frazil.paimon.adoption.adopt import adopt

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
        from frazil.maintenance.removal.purge import purge_table

        with self._naming(Identifier.parse(name)):
            if purge:
                return purge_table(self._pointers, name)
            self._pointers.drop(name)
        return None

    # Views

    def create_view(self, name: TableName, query: str, *, replace: bool = False) -> None:
        """Store a query under a name, which SQL then reads as a table."""
        verb = "CREATE OR REPLACE VIEW" if replace else "CREATE VIEW"
        self.sql(f"{verb} {_quoted(name)} AS {query}")

    def view_exists(self, name: TableName) -> bool:
        """Whether a view exists."""
        return self._pointers.views.exists(Identifier.parse(name))

    def view_query(self, name: TableName) -> str:
        """The SQL that a view stands for."""
        identifier = Identifier.parse(name)
        return view_text(self._pointers.views.load(identifier).metadata, str(identifier))

    def drop_view(self, name: TableName) -> None:
        """Remove a view."""
        self._pointers.views.drop(Identifier.parse(name))

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
        handle.is_live = True
        handle.note_read(MAIN)
        return Table(handle)

    def as_pyiceberg(self, *, format_version: int = 2, **properties: str) -> RestCatalog:
        """This catalog as a PyIceberg catalog, without a server: for libraries that take one. It
        reads and writes tables as `frazil serve` shows them, as Iceberg v2, or v3 (which PyIceberg
        reads and does not write). `properties` are PyIceberg's; those of `connect` are passed on.

        >>> catalog.as_pyiceberg().load_table("shop.orders").scan()           # doctest: +SKIP
        """
        from frazil.serve import need_installed

        check_published_version(format_version)
        need_installed()
        from frazil.serve.pyiceberg_objects import in_process_catalog

        return in_process_catalog(self, format_version, properties)

    def __getitem__(self, name: str) -> Table:
        return self.load_table(name)

    def __contains__(self, name: str) -> bool:
        try:
            return self.table_exists(name)
        except (InvalidInput, NotFound):
            return False


def check_published_version(format_version: int) -> None:
    """Refuse a version that tables are not shown as."""
    if format_version not in (2, 3):
        raise InvalidInput(f"format_version is {format_version}; tables are shown as 2 or 3")


def _quoted(name: TableName) -> str:
    identifier = Identifier.parse(name)
    parts = (*identifier.namespace, identifier.name)
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def _publish_if_asked(handle: TableHandle, result: CommitResult) -> str | None:

    if PUBLISH_FORMAT_VERSION.key not in handle.metadata.properties:
        return None
    from frazil.legacy.publish.publish import publish_if_asked

    return publish_if_asked(handle, result)


def _columns_and_rows(definition: AnySchema | pa.Schema | Rows) -> tuple[Schema, Rows]:
    """The columns of a new table, and its first rows, if rows are given."""
    import pyarrow as pa

    from frazil.data.schema import iceberg_schema
    from frazil.data.write.row_input import schema_of
    from frazil.iceberg.pyiceberg_values import from_pyiceberg
    from frazil.iceberg.schema import Schema

    definition = from_pyiceberg(definition)
    if isinstance(definition, Schema):
        return definition, None
    if isinstance(definition, pa.Schema):
        return iceberg_schema(definition) if definition.names else Schema(), None
    is_python_stream = isinstance(definition, Iterator) and not isinstance(
        definition, pa.RecordBatchReader
    )
    rows = list(definition) if is_python_stream else definition
    if isinstance(rows, Sequence) and not rows:
        raise InvalidInput("no rows are given to tell the columns from; pass a schema")
    return schema_of(rows), rows


def _replaced(
    table: Table,
    columns: Schema,
    rows: Rows,
    partition_by: Sequence[str] | AnySpec | None,
    sort_by: Sequence[str] | AnyOrder | None,
    properties: Mapping[str, str] | None,
    expressions: Sequence[str],
) -> Table:
    from frazil.table.replacing import replacing

    spec, order = _spec(partition_by, columns), _order(sort_by, columns)
    with replacing(
        table, columns, spec=spec, order=order, properties=properties, expressions=expressions
    ) as tx:
        if rows is not None:
            tx.append(rows)
    return table


def new_location(catalog: Catalog, identifier: Identifier, location: str | None) -> str:
    """Where a new table goes."""
    if location is None:
        return catalog._pointers.location_for(identifier)
    return checked_location(location)


def _spec(partition_by: Sequence[str] | AnySpec | None, schema: Schema) -> PartitionSpec:
    from frazil.filter.text.partition_by import parse_partition_by
    from frazil.iceberg.partitioning import UNPARTITIONED, PartitionSpec

    if isinstance(partition_by, str):
        raise InvalidInput(
            f"partition_by takes a list of transforms: partition_by=[{partition_by!r}]"
        )
    return _stated(partition_by, PartitionSpec, UNPARTITIONED, parse_partition_by, schema)


def _order(sort_by: Sequence[str] | AnyOrder | None, schema: Schema) -> SortOrder:
    from frazil.filter.text.partition_by import parse_sort_order
    from frazil.iceberg.sorting import UNSORTED, SortOrder

    return _stated(sort_by, SortOrder, UNSORTED, parse_sort_order, schema)


def _stated(
    value: Any, kind: type[_Kind], empty: _Kind, parse: Callable[..., _Kind], schema: Schema
) -> _Kind:
    """A definition that may be given as a value, as PyIceberg's, as terms, or not at all."""
    from frazil.iceberg.pyiceberg_values import from_pyiceberg

    if value is None:
        return empty
    stated: Any = from_pyiceberg(value)
    return stated if isinstance(stated, kind) else parse(list(stated), schema)
