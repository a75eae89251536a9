"""What metadata JSON may cost over many commits: bytes in proportion to the history."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.catalog.backend import CatalogBackend
from frazil.catalog.objects.object_catalog import ObjectCatalog
from frazil.catalog.sql.sql_catalog import SqlCatalog
from tests.support.catalogs import append_and_land, orders
from tests.support.folder_bucket import bucket_storages

COMMITS = 900
BYTES_PER_SNAPSHOT = 500  # of this table, whose summaries are short


def _catalog(kind: str, folder: Path) -> CatalogBackend:
    if kind == "bucket":
        return ObjectCatalog(str(folder / "warehouse"), storages=bucket_storages(folder))
    return SqlCatalog(f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "warehouse"))


@pytest.mark.parametrize("kind", ["sqlite", "bucket"])
def test_json_of_many_commits_is_a_few_times_the_history(kind: str, tmp_path: Path) -> None:
    catalog = _catalog(kind, tmp_path)
    catalog.namespaces.create(("shop",))
    head = catalog.create_table("shop.orders", orders(catalog.location_for("shop.orders")))
    for number in range(1, COMMITS + 1):
        append_and_land(head, number)
    files = sorted(tmp_path.rglob("*.metadata.json"))
    # At 0, then every hundred until a hundred is less than half of the history.
    versions = [int(file.name.split("-")[0]) for file in files]
    assert versions == [0, 100, 200, 400, 800]
    sizes = [file.stat().st_size for file in files]
    assert max(sizes) == sizes[-1] < 800 * BYTES_PER_SNAPSHOT
    assert sum(sizes) < 2 * sizes[-1]
    catalog.close()
