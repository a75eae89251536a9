"""Tables of other writers entered into a catalog of the test's own, and upgraded there.

Tables that tests share must stay as they are: the metadata file is copied and given a location of
the test's own, so that whatever is written goes there. Manifests and data files stay where they
are; their paths are absolute.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

from frazil import Catalog, Table
from frazil.catalog.sql.sql_catalog import SqlCatalog
from tests.interop.peers.tables import PeerTable, local_path


def moved_metadata(metadata_location: str, folder: Path) -> str:
    """A copy of a metadata file that says the table lives in a folder."""
    source = local_path(metadata_location)
    content = json.loads(source.read_text())
    content["location"] = f"file://{folder}"
    target = folder / "metadata" / source.name
    target.parent.mkdir(parents=True)
    target.write_text(json.dumps(content))
    return f"file://{target}"


def entered(table: PeerTable, folder: Path) -> Table:
    """The table in a copy of its writer's SQL catalog, or registered in a new one."""
    location = moved_metadata(table.metadata_location, folder / "table")
    database = folder / "catalog.db"
    name = table.identifier or "peers.table"
    if table.catalog_db is None or table.name == "v1_without_manifest_lists":
        return Catalog(SqlCatalog(f"sqlite:///{database}")).register_table(name, location)
    shutil.copy(table.catalog_db, database)
    with sqlite3.connect(database) as connection:
        connection.execute(
            "UPDATE iceberg_tables SET metadata_location = ? WHERE metadata_location = ?",
            (location, table.metadata_location),
        )
    pointers = SqlCatalog(f"sqlite:///{database}", name=table.catalog_name or "default")
    return Catalog(pointers).load_table(name)
