"""Writes the fixtures of `tests/support/tables/warehouse-0.2`. Ran once, with Frazil 0.2.

    python -m tests.support.write_warehouse_0_2 tests/support/tables/warehouse-0.2

Two warehouses with the same tables: one with its SQLite catalog, one whose catalog is a dump of a
PostgreSQL database. Published metadata and tables of other writers hold absolute paths, so both
lie at a fixed place, `PLACE`, and are unpacked there (`tests/support/warehouse_0_2.py`).
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

import psycopg
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog

import frazil
from frazil.catalog.sql.offers import entries_bytes
from frazil.format.metadata.metadata import MAIN
from frazil.rows.editor import RowEditor
from tests.support.postgres import postgres_server

PLACE = Path("/tmp/frazil-warehouse-0.2")
DEAD_PROCESS = 4_194_303
SMALL_TREE = {"write.root.max-data-entries": "2", "write.leaf.target-entries": "4"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("country", pa.string()),
        pa.field("price", pa.float64()),
    ]
)


def rows(*ids: int) -> pa.Table:
    """Even ids are German, odd ones American; the price is the id."""
    return pa.table(
        {
            "id": list(ids),
            "country": ["US" if id % 2 else "DE" for id in ids],
            "price": [float(id) for id in ids],
        },
        schema=SCHEMA,
    )


def write_tables(catalog: frazil.Catalog, theirs: PyIcebergCatalog) -> None:
    """Everything that a catalog of 0.2 can hold."""
    catalog.create_namespace("shop", {"owner": "frazil 0.2"})
    catalog.create_namespace(("shop", "eu"))
    _orders(catalog)
    _published_as_v2(catalog)
    _revisions(catalog)
    _equality_deletes(catalog)
    _tables_of_pyiceberg(catalog, theirs)
    catalog.sql("CREATE VIEW shop.cheap AS SELECT id, price FROM shop.orders WHERE price < 3")
    renamed = catalog.create_table("shop.eu.before", SCHEMA)
    renamed.append(rows(1))
    catalog.rename_table("shop.eu.before", "shop.eu.after")
    catalog.create_table("shop.dropped", SCHEMA).append(rows(1))
    catalog.drop_table("shop.dropped")


def _orders(catalog: frazil.Catalog) -> None:
    """Leaves of revision 2026-10, vectors, an added column, a tag, a branch; published as v3."""
    table = catalog.create_table(
        "shop.orders", SCHEMA, partition_by=["country"], properties=SMALL_TREE
    )
    table.append(rows(1, 2, 3, 4))
    table.tag("first")
    table.append(rows(5, 6))
    table.append(rows(7, 8))
    table.delete("id = 4 or id = 7")
    table.update({"price": 60.0}, where="id = 6")
    table.evolve_schema().add_column("note", "string").commit()
    table.append(pa.table({"id": [9], "country": ["US"], "price": [9.0], "note": ["new"]}))
    table.branch("audit", create=True).append(rows(100))
    table.set_properties({"publish.format-version": "3"})
    table.append(rows(10))
    table._handle.head.notes.add({"of 0.2/kept": "a note"})  # type: ignore[attr-defined]


def _published_as_v2(catalog: frazil.Catalog) -> None:
    table = catalog.create_table(
        "shop.items", SCHEMA, properties={**SMALL_TREE, "publish.format-version": "2"}
    )
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, 6))
    table.append(rows(7))
    table.delete("id = 2")


def _revisions(catalog: frazil.Catalog) -> None:
    """Leaves of revision 1.12, then some of 2026-10 beside them."""
    table = catalog.create_table(
        "shop.revisions", SCHEMA, properties={**SMALL_TREE, "write.format-revision": "1.12"}
    )
    for id in (1, 3, 5, 7):
        table.append(rows(id, id + 1))
    table.delete("id = 3")
    table.set_properties(remove=["write.format-revision"])
    for id in (9, 11, 13):
        table.append(rows(id, id + 1))
    table.delete("id = 8 or id = 14")


def _equality_deletes(catalog: frazil.Catalog) -> None:
    table = catalog.create_table(
        "shop.equality",
        SCHEMA,
        partition_by=["country"],
        properties={**SMALL_TREE, "write.equality-deletes.enabled": "true"},
    )
    table.append(rows(1, 2, 3, 4))
    table.row_delta().add_equality_deletes(pa.table({"id": [2, 3]}), on=["id"]).commit()
    table.append(rows(3))  # newer than its delete, so it stays
    table.delete("id = 1")


def _tables_of_pyiceberg(catalog: frazil.Catalog, theirs: PyIcebergCatalog) -> None:
    """One that is upgraded and continued, and one that stays as it is."""
    for name in ("shop.upgraded", "shop.legacy"):
        table = theirs.create_table(name, SCHEMA, properties={"format-version": "2"})
        table.append(rows(1, 2, 3))
        table.append(rows(4, 5))
        table.delete("id = 5")
    upgraded = catalog.load_table("shop.upgraded")
    upgraded.upgrade()
    upgraded = catalog.load_table("shop.upgraded")
    upgraded.append(rows(6, 7))
    upgraded.delete("id = 2")


def _write_sqlite(target: Path) -> None:
    folder = PLACE / "sqlite"
    with frazil.connect(folder, create=True) as catalog:
        theirs = PyIcebergCatalog(
            "default", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
        )
        write_tables(catalog, theirs)
        theirs.close()
    connection = sqlite3.connect(folder / "catalog.db", isolation_level=None)
    connection.execute(
        "INSERT INTO frazil_queue (table_id, process) "
        f"SELECT table_id, {DEAD_PROCESS} FROM frazil_tables"
    )
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("VACUUM")
    connection.close()
    _pack(folder, target / "sqlite.tar.xz")


def _write_postgres(target: Path) -> None:
    folder = PLACE / "postgresql"
    with postgres_server() as uri:
        with frazil.connect(uri, warehouse=folder) as catalog:
            theirs = PyIcebergCatalog(
                "default",
                uri=uri.replace("postgresql:", "postgresql+psycopg:"),
                warehouse=f"file://{folder}",
            )
            write_tables(catalog, theirs)
            theirs.close()
            _offer(catalog, uri)
        dump = subprocess.run(
            ["pg_dump", "--inserts", "--no-owner", "--no-privileges", uri],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    # Lines that begin with a backslash are for psql; tests send the rest over a connection.
    lines = [line for line in dump.splitlines() if not line.startswith("\\")]
    (target / "postgresql.sql").write_text("\n".join(lines) + "\n")
    _pack(folder, target / "postgresql.tar.xz")


def _offer(catalog: frazil.Catalog, uri: str) -> None:
    """An append whose writer died while it waited: it must never land."""
    table = catalog.load_table("shop.items")
    editor = RowEditor(handle=table._handle, metadata=table.metadata, snapshot=None, branch=MAIN)
    entries = entries_bytes(editor.write(rows(999).to_batches())).to_pybytes()
    with psycopg.connect(uri) as connection:
        connection.execute(
            "INSERT INTO frazil_offers SELECT 4711, table_id, now(), 'main', '{}', %s "
            "FROM frazil_tables WHERE table_name = 'items'",
            (entries,),
        )


def _pack(folder: Path, target: Path) -> None:
    with tarfile.open(target, "w:xz") as archive:
        archive.add(folder, arcname=folder.name)


def main(target: Path) -> None:
    """Write the fixtures to a folder."""
    shutil.rmtree(PLACE, ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    _write_sqlite(target)
    _write_postgres(target)
    shutil.rmtree(PLACE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
