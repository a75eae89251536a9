"""Tables of other writers entered into a catalog of the test's own, and upgraded there."""

from __future__ import annotations

import shutil
from pathlib import Path

from frazil.catalog.base import Catalog
from frazil.catalog.sql import SqlCatalog
from frazil.commit.handle import TableHandle
from frazil.legacy.upgrade import UpgradeReport, upgrade


def enter(
    folder: Path,
    metadata_location: str,
    *,
    catalog_db: str | None = None,
    catalog_name: str | None = None,
    identifier: str | None = None,
) -> tuple[Catalog, TableHandle]:
    """The table in a copy of its writer's SQL catalog, or registered in a new one."""
    database = folder / "catalog.db"
    if catalog_db is not None and identifier is not None:
        shutil.copy(catalog_db, database)
        catalog = SqlCatalog(f"sqlite:///{database}", name=catalog_name or "default")
    else:
        identifier = "peers.table"
        catalog = SqlCatalog(f"sqlite:///{database}")
        catalog.create_namespace("peers")
        catalog.register(identifier, metadata_location)
    return catalog, opened(catalog, identifier)


def opened(catalog: Catalog, identifier: str) -> TableHandle:
    """A handle on a table of a catalog."""
    head = catalog.load(identifier)
    storage = catalog.storage(head.state.metadata.location)
    return TableHandle.of(identifier, head, storage, state=head.state)


def upgraded(catalog: Catalog, handle: TableHandle) -> UpgradeReport:
    """Upgrade a table."""
    return upgrade(handle, catalog)
