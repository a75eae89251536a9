"""What a snapshot that Frazil's own client has written may list."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil import serve
from frazil.catalog.remote.remote_head import RemoteHead
from frazil.catalog.remote.remote_http import Refused
from frazil.commit.change import Change, VectorEdit
from frazil.commit.loop import commit
from frazil.errors import InvalidInput
from frazil.serve.access.principals import Principal, Rule, TokenFile
from frazil.serve.settings import Settings
from frazil.table import Catalog
from frazil.tree.stored_vectors import vectors_of
from frazil.value_classes import replace

SCHEMA = pa.schema([("id", pa.int64())])
SMALL_ROOT = {"write.root.max-data-entries": "1"}


@pytest.fixture
def outside(tmp_path: Path) -> str:
    """A file with one row that lies in no table."""
    path = tmp_path / "elsewhere" / "secret.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"id": [42]}, schema=SCHEMA), path)
    return str(path)


def ids(catalog: Catalog, name: str = "shop.orders") -> list[int]:
    return sorted(catalog[name].scan().to_arrow()["id"].to_pylist())


def test_a_file_elsewhere_is_not_listed(remote: Catalog, catalog: Catalog, outside: str) -> None:
    table = remote.create_table("shop.orders", SCHEMA)
    table.append([{"id": 1}])
    with pytest.raises(Refused, match="outside the warehouse"):
        table.add_files([outside])
    assert ids(catalog) == [1]
    assert len(catalog["shop.orders"].snapshots()) == 1


def test_a_file_elsewhere_is_not_hidden_in_a_leaf(
    remote: Catalog, catalog: Catalog, outside: str
) -> None:
    table = remote.create_table("shop.orders", SCHEMA, properties=SMALL_ROOT)
    second = shutil.copy(outside, f"{table.location.removeprefix('file://')}/second.parquet")
    with pytest.raises(Refused, match="outside the warehouse"):
        table.add_files([second, outside])
    assert ids(catalog) == []


def test_a_place_that_the_server_was_told_of_is_open(catalog: Catalog, outside: str) -> None:
    settings = Settings(allowed=(str(Path(outside).parent),))
    with serve.start(catalog, settings=settings) as running, frazil.connect(running.uri) as remote:
        remote.create_table("shop.orders", SCHEMA).add_files([outside])
        assert ids(remote) == [42]


def test_what_a_table_lists_already_stays_there(
    remote: Catalog, catalog: Catalog, outside: str
) -> None:
    catalog.create_table("shop.orders", SCHEMA).add_files([outside])
    table = remote["shop.orders"]
    for each in range(3):
        table.append([{"id": each}])
    table.delete("id = 1")
    table.compact_metadata()
    table.delete("id = 2")
    assert ids(catalog) == [0, 42]
    assert not table.check(deep=True).problems


def test_files_of_an_older_snapshot_may_come_back(
    remote: Catalog, catalog: Catalog, outside: str
) -> None:
    catalog.create_table("shop.orders", SCHEMA).append([{"id": 1}])
    picked = catalog["shop.orders"].branch("audit", create=True).add_files([outside])
    remote["shop.orders"].append([{"id": 2}])
    assert picked.snapshot_id is not None
    remote["shop.orders"].cherry_pick(picked.snapshot_id)
    assert ids(catalog) == [1, 2, 42]


def test_a_token_for_one_namespace_lists_no_file_of_another(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A client that does not look for itself.
    monkeypatch.setattr(RemoteHead, "refuse_files_of_others", lambda *_: None)
    catalog.create_table("till.sales", SCHEMA).append([{"id": 7}])
    catalog.create_table("shop.orders", SCHEMA)
    [secret] = catalog["till.sales"].inspect.files.to_pylist()
    known = {
        hashlib.sha256(b"hunter2").hexdigest(): Principal(
            name="etl", rules=(Rule(namespace=("shop",), right="write"),)
        )
    }
    with serve.start(catalog, access=TokenFile(known)) as running:
        etl = frazil.connect(running.uri, token="hunter2")
        with pytest.raises(Refused, match="outside"):
            etl["shop.orders"].add_files([secret["file_path"]])
    assert ids(catalog) == []


def test_a_swap_lists_no_file_of_another_table(
    remote: Catalog, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner would delete it, and a client may not look for itself."""
    monkeypatch.setattr(RemoteHead, "refuse_files_of_others", lambda *_: None)
    catalog.create_table("shop.sales", SCHEMA).append([{"id": 7}])
    orders = remote.create_table("shop.orders", SCHEMA, properties={"commit.group": "false"})
    orders.append([{"id": 1}])
    [sold] = catalog["shop.sales"].inspect.files.to_pylist()
    with pytest.raises(InvalidInput, match=r"is a file of table shop\.sales"):
        orders.add_files([sold["file_path"]])
    assert ids(catalog) == [1]
    copy = remote["shop.sales"].clone(remote, "shop.copy")
    copy.append([{"id": 8}])
    copy.delete("id = 7")
    assert copy.scan().to_pylist() == [{"id": 8}]


def test_a_swap_takes_no_vector_of_another_table(
    remote: Catalog, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RemoteHead, "refuse_files_of_others", lambda *_: None)
    sales = catalog.create_table("shop.sales", SCHEMA)
    sales.append([{"id": 7}, {"id": 8}])
    sales.delete("id = 7")
    (stored,) = vectors_of(sales.scan().plan().files)
    assert stored is not None
    theirs = replace(stored, location=f"{sales.location}/{stored.location}")
    orders = remote.create_table("shop.orders", SCHEMA)
    orders.append([{"id": 1}, {"id": 2}])
    (own,) = orders.scan().plan().files.pylist("location")
    edit = VectorEdit(location=own, positions=np.array([0], dtype=np.int64), adopted=theirs)
    handle = orders._handle
    with pytest.raises(InvalidInput, match=r"is a file of table shop\.sales"):
        commit(Change(vectors=(edit,)), head=handle.head, context=handle.context)
    assert ids(catalog) == [1, 2]


def test_a_registered_table_lists_nothing_elsewhere(
    remote: Catalog, catalog: Catalog, outside: str
) -> None:
    table = catalog.create_table("shop.orders", SCHEMA)
    table.add_files([outside])
    exported = table.export()
    catalog.drop_table("shop.orders")
    with pytest.raises(Refused, match="outside"):
        remote.register_table("shop.orders", exported)
    assert catalog.list_tables() == []
