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

from frazil.catalog.database.database import Database, DatabaseTransaction
from frazil.catalog.sql.offers import CREATE_OFFERS
from frazil.catalog.sql.turns import CREATE_QUEUE
from frazil.errors import CatalogError, Unsupported

LAYOUT_VERSION = 5
V4_TYPE = "V4"
VIEW_TYPE = "VIEW4"
TABLE_TYPE = "TABLE"

# SQLite gives out row ids by itself only for a column of this very type. Ids are never given out
# twice: a head of a dropped table must not find another one under its id. Names of notes compare
# byte by byte in every database, so that a range of keys is the same everywhere.
_WORDS = {
    "sqlite": {
        "row_id": "INTEGER",
        "new_id": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        "bytewise": "TEXT",
        "by_key": "WITHOUT ROWID",
    },
    "postgresql": {
        "row_id": "BIGINT",
        "new_id": "BIGSERIAL NOT NULL PRIMARY KEY",
        "bytewise": 'TEXT COLLATE "C"',
        "by_key": "",
    },
}
_TABLES = """
CREATE TABLE IF NOT EXISTS iceberg_tables (
  catalog_name VARCHAR(255) NOT NULL,
  table_namespace VARCHAR(255) NOT NULL,
  table_name VARCHAR(255) NOT NULL,
  metadata_location VARCHAR(1000),
  previous_metadata_location VARCHAR(1000),
  iceberg_type VARCHAR(5),
  PRIMARY KEY (catalog_name, table_namespace, table_name)
);
CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
  catalog_name VARCHAR(255) NOT NULL,
  namespace VARCHAR(255) NOT NULL,
  property_key VARCHAR(255) NOT NULL,
  property_value VARCHAR(1000) NOT NULL,
  PRIMARY KEY (catalog_name, namespace, property_key)
);
CREATE TABLE IF NOT EXISTS frazil_tables (
  table_id {new_id},
  catalog_name VARCHAR(255) NOT NULL,
  table_namespace VARCHAR(255) NOT NULL,
  table_name VARCHAR(255) NOT NULL,
  location TEXT NOT NULL,
  version BIGINT NOT NULL,
  rendered_version BIGINT,
  definition_id VARCHAR(64) NOT NULL,
  last_sequence_number BIGINT NOT NULL,
  last_updated_ms BIGINT NOT NULL,
  next_row_id BIGINT NOT NULL,
  current_snapshot_id BIGINT,
  refs TEXT NOT NULL,
  UNIQUE (catalog_name, table_namespace, table_name)
);
CREATE TABLE IF NOT EXISTS frazil_definitions (
  table_id {row_id} NOT NULL PRIMARY KEY,
  definition TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS frazil_snapshots (
  table_id {row_id} NOT NULL,
  snapshot_id BIGINT NOT NULL,
  version BIGINT NOT NULL,
  position INTEGER NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (table_id, snapshot_id)
);
CREATE TABLE IF NOT EXISTS frazil_snapshot_log (
  table_id {row_id} NOT NULL,
  version BIGINT NOT NULL,
  position INTEGER NOT NULL,
  snapshot_id BIGINT NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  PRIMARY KEY (table_id, version, position)
) {by_key};
CREATE TABLE IF NOT EXISTS frazil_metadata_log (
  table_id {row_id} NOT NULL,
  version BIGINT NOT NULL,
  position INTEGER NOT NULL,
  metadata_file TEXT NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  PRIMARY KEY (table_id, version, position)
) {by_key};
CREATE TABLE IF NOT EXISTS frazil_views (
  catalog_name VARCHAR(255) NOT NULL,
  view_namespace VARCHAR(255) NOT NULL,
  view_name VARCHAR(255) NOT NULL,
  version BIGINT NOT NULL,
  metadata TEXT NOT NULL,
  PRIMARY KEY (catalog_name, view_namespace, view_name)
);
CREATE TABLE IF NOT EXISTS frazil_notes (
  table_id {row_id} NOT NULL,
  name {bytewise} NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (table_id, name)
) {by_key};
CREATE TABLE IF NOT EXISTS frazil_layout (
  layout_version INTEGER NOT NULL PRIMARY KEY
);
CREATE INDEX IF NOT EXISTS frazil_tables_by_location ON frazil_tables (location)
"""

HISTORY_TABLES = ("frazil_snapshots", "frazil_snapshot_log", "frazil_metadata_log", "frazil_notes")


_READ_LAYOUT = "SELECT max(layout_version) FROM frazil_layout"
IS_KNOWN = f" AND NOT EXISTS (SELECT 1 FROM frazil_layout WHERE layout_version > {LAYOUT_VERSION})"
"""A condition of every swap: a newer version that changes the layout shuts out those that opened
the catalog before, at their next commit and before anything changes."""


def prepare(database: Database) -> None:
    """Create what is missing, in one transaction; refuse a layout of a newer version.

    Layouts only grow: bringing an older one up to date is creating the tables it lacks.
    """
    try:
        layout = database.rows(_READ_LAYOUT)[0][0]
    except CatalogError:
        layout = None  # not there, or not reachable: creating it will tell
    if layout is not None and layout < LAYOUT_VERSION and database.is_read_only:
        return  # an older layout can be read as it is
    if layout is None or layout < LAYOUT_VERSION:
        _create(database)
    else:
        _check_layout(database, layout)


def check_layout(database: Database, source: Database | DatabaseTransaction) -> None:
    """Refuse a layout that a newer version has made since the catalog was opened."""
    _check_layout(database, source.rows(_READ_LAYOUT)[0][0])


def _check_layout(database: Database, layout: int) -> None:
    if layout > LAYOUT_VERSION:
        raise Unsupported(
            f"{database.uri}: the catalog has layout {layout}; this version knows "
            f"{LAYOUT_VERSION}. Nothing was changed; update Frazil here too",
            feature=f"catalog layout {layout}",
        )


def has_iceberg_type(database: Database | DatabaseTransaction, *, kind: str) -> bool:
    """Whether `iceberg_tables` distinguishes tables from views; old databases have no such
    column."""
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
    statements = _TABLES.format(**_WORDS[database.kind]).split(";")
    statements.append(CREATE_QUEUE if database.kind == "sqlite" else CREATE_OFFERS)
    with database.transaction() as transaction:
        _lock(database, transaction)
        for statement in statements:
            transaction.run(statement)
        layout = transaction.rows(_READ_LAYOUT)[0][0]
        if layout is not None:
            _check_layout(database, layout)  # another session was here since it was looked at
        transaction.run("DELETE FROM frazil_layout")
        transaction.run(f"INSERT INTO frazil_layout VALUES ({LAYOUT_VERSION})")


def _lock(database: Database, transaction: DatabaseTransaction) -> None:
    """Keep two sessions from changing the layout at once; in SQLite the transaction does."""
    if database.kind == "postgresql":
        transaction.rows("SELECT pg_advisory_xact_lock(705210047)")
