"""Fixtures of the contract suites: every catalog, empty and with a warehouse of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from frazil import serve
from frazil.catalog.backend import CatalogBackend
from frazil.catalog.objects.object_catalog import ObjectCatalog
from frazil.catalog.remote.remote_catalog import RemoteCatalog
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.serve.settings import Settings
from frazil.table import Catalog
from tests.support.folder_bucket import bucket_storages
from tests.support.gcs_server import gcs_server
from tests.support.memory_catalog import MemoryCatalog
from tests.support.object_server import Bucket, azurite
from tests.support.postgres import postgres_uri

__all__ = ["postgres_uri"]

_numbers = itertools.count()
_BUCKETS = {"s3": "bucket", "azure": "azure_container", "gcs": "gcs_bucket"}


@pytest.fixture(scope="session")
def azure_container() -> Iterator[Bucket]:
    """A container of azurite."""
    with azurite() as container:
        yield container


@pytest.fixture(scope="session")
def gcs_bucket() -> Iterator[Bucket]:
    """A bucket of a server that checks generations."""
    with gcs_server() as made:
        yield made


def empty_database(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    if kind == "sqlite":
        return f"sqlite:///{folder}/catalog.db"
    uri: str = request.getfixturevalue("postgres_uri")
    schema = f"test_{next(_numbers)}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{uri}&options=-csearch_path%3D{schema}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    return empty_database(request.param, tmp_path, request)


@pytest.fixture
def sql_catalog(database_uri: str, tmp_path: Path) -> Iterator[SqlCatalog]:
    """A catalog in an empty database."""
    catalog = SqlCatalog(database_uri, warehouse=str(tmp_path / "warehouse"))
    yield catalog
    catalog.close()


@pytest.fixture(
    params=[
        "memory",
        "sqlite",
        "postgresql",
        "bucket",
        "s3",
        "azure",
        "gcs",
        "served",
        "served postgresql",
    ]
)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CatalogBackend]:
    """Every kind of catalog, empty."""
    warehouse = str(tmp_path / "warehouse")
    made: CatalogBackend
    if request.param == "memory":
        made = MemoryCatalog(warehouse=warehouse)
    elif request.param == "bucket":
        made = ObjectCatalog(warehouse, storages=bucket_storages(tmp_path))
    elif request.param in ("s3", "azure", "gcs"):
        place: Bucket = request.getfixturevalue(_BUCKETS[request.param])
        # Azure and GCS have one server and one bucket for all tests.
        made = ObjectCatalog(f"{place.warehouse}-{next(_numbers)}", properties=place.properties)
    elif request.param.startswith("served"):
        kind = "postgresql" if request.param.endswith("postgresql") else "sqlite"
        held = SqlCatalog(empty_database(kind, tmp_path, request), warehouse=warehouse)
        places = Settings(allowed=(str(tmp_path), "/elsewhere"))
        with serve.start(Catalog(held), settings=places) as running:
            made = RemoteCatalog(running.uri)
            yield made
            made.close()
        held.close()
        return
    else:
        made = SqlCatalog(empty_database(request.param, tmp_path, request), warehouse=warehouse)
    yield made
    made.close()
