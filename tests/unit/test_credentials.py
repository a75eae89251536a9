"""Credentials stay out of reprs, logs and pickles, and still reach the process that needs them."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil import credentials
from frazil.catalog.database.database import Database
from frazil.catalog.storages import Storages
from frazil.credentials import Carried, Carrier, ConnectionProperties, without_password
from frazil.storage import storage_for
from tests.support.folder_bucket import bucket_storages
from tests.support.object_server import SECRET as BUCKET_SECRET
from tests.support.object_server import Bucket

SECRET = "aHVudGVyMi12ZXJ5LXNlY3JldA=="
PROPERTIES = {
    "s3.endpoint": "http://127.0.0.1:1",
    "s3.region": "us-east-1",
    "s3.access-key-id": f"id-{SECRET}",
    "s3.secret-access-key": SECRET,
    "s3.session-token": SECRET,
    "gcs.oauth2.token": SECRET,
    "adls.account-key": SECRET,
    "adls.sas-token": SECRET,
    "adls.client-secret": SECRET,
    "adls.connection-string": f"AccountKey={SECRET}",
}


def values(tmp_path: Path) -> dict[str, Any]:
    catalog = frazil.connect(tmp_path / "w", create=True, **PROPERTIES)
    table = catalog.create_table("shop.orders", pa.schema({"id": pa.int64()}))
    table.append([{"id": 1}])
    return {
        "storage": storage_for("s3://bucket/x", PROPERTIES),
        "azure": storage_for("abfss://box@shop.dfs.core.windows.net/x", PROPERTIES),
        "fileio": storage_for(
            "s3://bucket/x", {**PROPERTIES, "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
        ),
        "storages": Storages(PROPERTIES),
        "catalog": catalog._pointers,
        "origin": catalog._origin,
        "reading": table.scan()._reading(),
        "head": table._handle.head,
    }


def test_neither_a_pickle_nor_a_repr_holds_a_credential(tmp_path: Path) -> None:
    shown = {}
    for name, value in values(tmp_path).items():
        sent = pickle.dumps(value)
        shown[name] = (SECRET.encode() in sent, SECRET in repr(value))
        assert pickle.loads(sent) is not None
    assert not {name: held for name, held in shown.items() if any(held)}


def test_a_catalog_in_a_bucket_and_its_tables_travel_without_credentials(bucket: Bucket) -> None:
    catalog = frazil.connect(bucket.warehouse, **bucket.properties)
    table = catalog.create_table("shop.orders", pa.schema({"id": pa.int64()}))
    table.append([{"id": 1}])
    for value in (catalog._pointers, table._handle.head, table.scan()._reading()):
        sent = pickle.dumps(value)
        assert BUCKET_SECRET.encode() not in sent
        assert BUCKET_SECRET not in repr(value)
    again = pickle.loads(pickle.dumps(table._handle.head))
    assert again.load() == table._handle.head.load()


def test_a_pickle_that_comes_back_is_whole() -> None:
    properties = ConnectionProperties(PROPERTIES)
    assert pickle.loads(pickle.dumps(properties)) == PROPERTIES
    twice = pickle.dumps(ConnectionProperties(PROPERTIES))
    assert twice == pickle.dumps(properties)  # the same credentials have one name


def test_the_name_of_a_provider_travels() -> None:
    properties = {"s3.credentials-provider": "company.keys:provider"}
    assert b"company.keys:provider" in pickle.dumps(ConnectionProperties(properties))


def test_another_process_has_no_credentials_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(pickle.dumps(ConnectionProperties(PROPERTIES)))
    code = "import pickle, sys; print(sorted(pickle.load(open(sys.argv[1], 'rb'))))"
    found = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "sent"], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "['s3.endpoint', 's3.region']"


SENT: dict[str, Mapping[str, str]] = {}


def fetched(name: str) -> Mapping[str, str] | None:
    return SENT.get(name)


def test_a_carrier_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_known", credentials._Known())
    credentials.carry_by(Carrier(SENT.__setitem__, fetched))
    sent = pickle.dumps(ConnectionProperties(PROPERTIES))
    assert SECRET.encode() not in sent
    monkeypatch.setattr(credentials, "_known", credentials._Known())  # as in another process
    assert pickle.loads(sent) == PROPERTIES


def test_credentials_that_are_carried_make_the_rest_of_the_pickle_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = pickle.dumps((Carried(PROPERTIES), ConnectionProperties(PROPERTIES)))
    monkeypatch.setattr(credentials, "_known", credentials._Known())
    carried, properties = pickle.loads(sent)
    assert properties == PROPERTIES
    assert SECRET not in repr(carried)


@pytest.mark.parametrize(
    ("uri", "public"),
    [
        ("postgresql://me:hunter2@db/shop", "postgresql://me@db/shop"),
        ("postgresql://me:p@hunter2@db/shop", "postgresql://me@db/shop"),
        ("postgresql://db/shop?password=hunter2", "postgresql://db/shop"),
        ("postgresql://db/shop?password=hunter2&a=b", "postgresql://db/shop?a=b"),
        ("postgresql://db/shop?a=b&sslpassword=hunter2", "postgresql://db/shop?a=b"),
        ("sqlite:////tmp/a:b@c.db", "sqlite:////tmp/a:b@c.db"),
    ],
)
def test_a_database_is_named_without_its_password(uri: str, public: str) -> None:
    assert without_password(uri) == public


def test_a_pickled_database_has_no_password() -> None:
    database = Database("postgresql+psycopg://me:hunter2@localhost:1/shop")
    sent = pickle.dumps(database)
    assert b"hunter2" not in sent
    assert pickle.loads(sent)._uri == database._uri


def test_no_log_line_holds_a_credential(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    from frazil.catalog.objects.object_catalog import ObjectCatalog
    from frazil.table import Catalog

    backend = ObjectCatalog(
        str(tmp_path / "w"), properties=PROPERTIES, storages=bucket_storages(tmp_path)
    )
    catalog = Catalog(backend, PROPERTIES)
    table = catalog.create_table("shop.orders", pa.schema({"id": pa.int64()}))
    table.append([{"id": 1}])
    table.delete("id = 1")
    catalog.drop_table("shop.orders", purge=True)
    with pytest.raises(frazil.FrazilError) as caught:
        storage_for("s3://bucket/x", {**PROPERTIES, "s3.retry.num-retries": "0"}).read(
            "s3://bucket/x"
        )
    assert caplog.text
    assert SECRET not in caplog.text + str(caught.value) + repr(caught.value.__cause__)
