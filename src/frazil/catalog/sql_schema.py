"""The database layout: Iceberg's own two tables as every SQL catalog has them, and ours beside.

`iceberg_tables` and `iceberg_namespace_properties` are what PyIceberg's SqlCatalog and Iceberg's
JdbcCatalog create, so all three can work on one database. A v4 table has a row there too, which
keeps its name taken; its `iceberg_type` is `V4`, so the others, which look for `TABLE`, neither
list nor touch it.

What a commit changes is apart from what it does not: `frazil_tables` holds one small row per table,
`frazil_definitions` the schemas, specs and properties, and the history has rows of its own. Rows of
the history are ordered by the version that added them and their position in it.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from frazil.catalog.database import Database, Transaction
from frazil.catalog.turns import CREATE_QUEUE
from frazil.errors import CatalogError, Unsupported

LAYOUT_VERSION = 4
V4_TYPE = "V4"
VIEW_TYPE = "VIEW4"
TABLE_TYPE = "TABLE"

_metadata = MetaData()
# SQLite gives out row ids by itself only for a column of this very type.
_row_id = BigInteger().with_variant(Integer(), "sqlite")

iceberg_tables = Table(
    "iceberg_tables",
    _metadata,
    Column("catalog_name", String(255), primary_key=True),
    Column("table_namespace", String(255), primary_key=True),
    Column("table_name", String(255), primary_key=True),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)

iceberg_namespace_properties = Table(
    "iceberg_namespace_properties",
    _metadata,
    Column("catalog_name", String(255), primary_key=True),
    Column("namespace", String(255), primary_key=True),
    Column("property_key", String(255), primary_key=True),
    Column("property_value", String(1000), nullable=False),
)

frazil_tables = Table(
    "frazil_tables",
    _metadata,
    # Never given out twice: a head of a dropped table must not find another one under its id.
    Column("table_id", _row_id, primary_key=True, autoincrement=True),
    Column("catalog_name", String(255), nullable=False),
    Column("table_namespace", String(255), nullable=False),
    Column("table_name", String(255), nullable=False),
    Column("location", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("rendered_version", BigInteger),
    Column("definition_id", String(64), nullable=False),
    Column("last_sequence_number", BigInteger, nullable=False),
    Column("last_updated_ms", BigInteger, nullable=False),
    Column("next_row_id", BigInteger, nullable=False),
    Column("current_snapshot_id", BigInteger),
    Column("refs", Text, nullable=False),
    UniqueConstraint("catalog_name", "table_namespace", "table_name"),
    sqlite_autoincrement=True,
)

frazil_definitions = Table(
    "frazil_definitions",
    _metadata,
    Column("table_id", _row_id, primary_key=True, autoincrement=False),
    Column("definition", Text, nullable=False),
)

frazil_snapshots = Table(
    "frazil_snapshots",
    _metadata,
    Column("table_id", _row_id, primary_key=True, autoincrement=False),
    Column("snapshot_id", BigInteger, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("record", Text, nullable=False),
    sqlite_with_rowid=False,
)

frazil_snapshot_log = Table(
    "frazil_snapshot_log",
    _metadata,
    Column("table_id", _row_id, primary_key=True, autoincrement=False),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("snapshot_id", BigInteger, nullable=False),
    Column("timestamp_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

frazil_metadata_log = Table(
    "frazil_metadata_log",
    _metadata,
    Column("table_id", _row_id, primary_key=True, autoincrement=False),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("metadata_file", Text, nullable=False),
    Column("timestamp_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

frazil_views = Table(
    "frazil_views",
    _metadata,
    Column("catalog_name", String(255), primary_key=True),
    Column("view_namespace", String(255), primary_key=True),
    Column("view_name", String(255), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("metadata", Text, nullable=False),
)

frazil_notes = Table(
    "frazil_notes",
    _metadata,
    Column("table_id", _row_id, primary_key=True, autoincrement=False),
    # Compared byte by byte in every database, so that a range of keys is the same everywhere.
    Column("name", Text().with_variant(Text(collation="C"), "postgresql"), primary_key=True),
    Column("value", Text, nullable=False),
    sqlite_with_rowid=False,
)

frazil_layout = Table(
    "frazil_layout",
    _metadata,
    Column("layout_version", Integer, primary_key=True, autoincrement=False),
)

_by_location = Index("frazil_tables_by_location", frazil_tables.c.location)

HISTORY_TABLES = ("frazil_snapshots", "frazil_snapshot_log", "frazil_metadata_log", "frazil_notes")


def prepare(database: Database) -> None:
    """Create what is missing; refuse a layout of a newer version.

    Layouts only grow: bringing an older one up to date is creating the tables it lacks.
    """
    try:
        found = database.rows("SELECT max(layout_version) FROM frazil_layout")[0][0]
    except CatalogError:
        found = None  # not there, or not reachable: creating it will tell
    if found is not None and found < LAYOUT_VERSION and database.is_read_only:
        return  # an older layout can be read as it is
    if found is None or found < LAYOUT_VERSION:
        _create(database)
    elif found > LAYOUT_VERSION:
        raise Unsupported(
            f"{database.uri}: the catalog has layout {found}; this version knows {LAYOUT_VERSION}",
            feature=f"catalog layout {found}",
        )


def has_iceberg_type(database: Database | Transaction, *, kind: str) -> bool:
    """Whether `iceberg_tables` tells tables from views; old databases have no such column."""
    if kind == "sqlite":
        columns = database.rows("SELECT name FROM pragma_table_info('iceberg_tables')")
    else:
        columns = database.rows(
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_name = 'iceberg_tables' AND table_schema = current_schema()"
        )
    return "iceberg_type" in {str(name) for (name,) in columns}


def add_iceberg_type(database: Database) -> None:
    """Bring an old `iceberg_tables` to the layout that can hold a v4 table safely."""
    with database.transaction() as transaction:
        _lock(database, transaction)
        if not has_iceberg_type(transaction, kind=database.kind):
            transaction.run("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")


def _create(database: Database) -> None:
    dialect = database.dialect
    statements = [
        str(CreateTable(table, if_not_exists=True).compile(dialect=dialect))
        for table in _metadata.sorted_tables
    ]
    statements.append(str(CreateIndex(_by_location, if_not_exists=True).compile(dialect=dialect)))
    if database.kind == "sqlite":
        statements.append(CREATE_QUEUE)
    with database.transaction() as transaction:
        _lock(database, transaction)
        for statement in statements:
            transaction.run(statement)
        transaction.run("DELETE FROM frazil_layout")
        transaction.run(f"INSERT INTO frazil_layout VALUES ({LAYOUT_VERSION})")


def _lock(database: Database, transaction: Transaction) -> None:
    """Keep two sessions from changing the layout at once; in SQLite the transaction does."""
    if database.kind == "postgresql":
        transaction.rows("SELECT pg_advisory_xact_lock(705210047)")
