"""Who owns which folder: no care of one table deletes a file of anyone else."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.commit.change import Change
from frazil.errors import AlreadyExists, FormatError, InvalidInput, Unsupported
from frazil.format import paths
from frazil.storage import Places
from frazil.table import Catalog, Table
from frazil.table.adopt_files import describe
from tests.support.history import SCHEMA, catalog_in, rows, state_of

FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return catalog_in(tmp_path)


def _files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.is_file()}


def _live(table: Table) -> None:
    """A table whose every file is there and whose rows can be read."""
    assert table.refresh().check(deep=True).problems == ()


def _stray(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"not ours")
    os.utime(path, (0, 0))
    return path


# purge


def test_purge_deletes_the_tables_files_and_nothing_else_below_its_location(
    catalog: Catalog, tmp_path: Path
) -> None:
    place = tmp_path / "warehouse" / "shop" / "orders"
    table = catalog.create_table("shop.orders", SCHEMA)
    table.append(rows(1))
    inner = catalog.create_table("shop.inner", SCHEMA, location=f"file://{place}/inner")
    inner.append(rows(2))
    foreign = _stray(place / "notes.txt")
    crashed = _stray(place / "data" / "left-by-a-crash.parquet")
    kept = _files(place / "inner") | {str(foreign)}

    done = catalog.drop_table("shop.orders", purge=True)

    assert done is not None
    assert _files(place) == kept
    assert not crashed.exists()
    assert "shop.orders" not in catalog
    _live(inner)


def test_purge_obeys_gc_enabled(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("shop.orders", SCHEMA, properties={"gc.enabled": "false"})
    table.append(rows(1))
    before = _files(tmp_path)
    with pytest.raises(Unsupported, match=r"gc\.enabled"):
        catalog.drop_table("shop.orders", purge=True)
    assert _files(tmp_path) == before
    assert "shop.orders" in catalog


def test_purge_of_a_damaged_table_deletes_what_is_in_its_own_folders(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = catalog.create_table("shop.orders", SCHEMA)
    table.append(rows(1))
    place = tmp_path / "warehouse" / "shop" / "orders"
    for root in (place / "metadata").glob("root-*"):
        root.write_bytes(b"broken")
    frazil.connect(tmp_path / "warehouse").drop_table("shop.orders", purge=True)
    assert _files(place) == set()


def test_purge_spares_files_added_from_elsewhere(catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere" / "x.parquet"
    file.parent.mkdir()
    pq.write_table(rows(1), file)
    table = catalog.create_table("shop.orders", SCHEMA)
    table.add_files([str(file)])
    done = catalog.drop_table("shop.orders", purge=True)
    assert done is not None
    assert done.spared == (f"file://{file}",)
    assert file.exists()


def _nobodys(tmp_path: Path) -> tuple[Path, str]:
    """A file that lies in no table's folders, and its folder."""
    path = tmp_path / "landing" / "day=1" / "7.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({name: rows(7)[name] for name in rows(7).schema.names}), path)
    os.utime(path, (0, 0))
    return path, f"file://{tmp_path}/landing"


@pytest.mark.parametrize("claim", ["orphans", "purge", "expire"])
def test_whoever_claims_a_folder_later_spares_what_another_table_was_given_of_it(
    claim: str, catalog: Catalog, tmp_path: Path
) -> None:
    path, folder = _nobodys(tmp_path)
    reader = catalog.create_table("shop.reader", SCHEMA)
    reader.add_files([str(path)])
    owner = catalog.create_table("shop.owner", SCHEMA)
    if claim != "orphans":
        owner.add_files([str(path)])
    owner.set_properties({"write.data.path": folder})
    owner.append(rows(8))
    stray = _stray(Path(folder.removeprefix("file://"), "own.parquet"))
    match claim:
        case "orphans":
            found = owner.remove_orphan_files(older_than=FUTURE)
            assert (found.files, found.shared_folders) == ((), (folder,))
        case "purge":
            catalog.drop_table("shop.owner", purge=True)
        case _:
            owner.delete("id = 7")
            owner.expire_snapshots(older_than=FUTURE)
    assert stray.exists()
    _live(reader)
    reader.delete("id = 7")
    reader.expire_snapshots(older_than=FUTURE)
    assert path.exists()


def test_folders_of_added_files_are_few(catalog: Catalog, tmp_path: Path) -> None:
    names = [tmp_path / "in" / f"a={n % 3}" / f"b={n}" / "x.parquet" for n in range(30)]
    for number, name in enumerate(names):
        name.parent.mkdir(parents=True)
        pq.write_table(rows(number), name)
    table = catalog.create_table("shop.reader", SCHEMA)
    table.add_files([str(name) for name in names[:1]])
    key = "frazil.added-files.path"
    assert table.metadata.properties[key] == f'["file://{names[0].parent}"]'
    table.add_files([str(name) for name in names[1:]])
    folders = [f"file://{tmp_path}/in/a={number}" for number in range(3)]
    assert json.loads(table.metadata.properties[key]) == folders
    table.append(rows(99))
    assert json.loads(table.metadata.properties[key]) == folders


def test_the_purge_of_a_table_that_a_clone_reads_is_refused_even_without_its_tag(
    catalog: Catalog,
) -> None:
    table = catalog.create_table("shop.orders", SCHEMA)
    table.append(rows(1))
    clone = table.clone(catalog, "shop.copy")
    table.drop_ref("clone/shop.copy")
    with pytest.raises(InvalidInput, match=r"shop\.copy"):
        catalog.drop_table("shop.orders", purge=True)
    _live(clone)


# one data path for two tables


def _two(catalog: Catalog, first: Path, second: Path) -> tuple[Table, Table]:
    made = []
    for name, path in (("a", first), ("b", second)):
        properties = {"write.data.path": f"file://{path}"}
        table = catalog.create_table(f"shop.{name}", SCHEMA, properties=properties)
        table.append(rows(1, 2))
        table.append(rows(3))
        made.append(table)
    return made[0], made[1]


@pytest.mark.parametrize("below", ["", "below"])
@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}/../pool", "//{}"])
def test_tables_with_one_data_path_keep_their_files(
    catalog: Catalog, tmp_path: Path, below: str, spelling: str
) -> None:
    pool = tmp_path / "pool"
    a = catalog.create_table("shop.a", SCHEMA, properties={"write.data.path": f"file://{pool}"})
    other = spelling.format(pool) + (f"/{below}" if below else "")
    if ".." in other:
        with pytest.raises(InvalidInput, match=r"\.\."):
            catalog.create_table("shop.b", SCHEMA, properties={"write.data.path": f"file:{other}"})
        return
    b = catalog.create_table("shop.b", SCHEMA, properties={"write.data.path": f"file:{other}"})
    for table in (a, b):
        table.append(rows(1, 2))
        table.append(rows(3))
    for table in (a, b):
        done = table.remove_orphan_files(older_than=FUTURE)
        assert done.files == ()
        assert len(done.shared_folders) == 1
    _live(a)
    _live(b)


def test_a_link_to_the_data_path_of_another_table_is_that_path(
    catalog: Catalog, tmp_path: Path
) -> None:
    (tmp_path / "pool").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "pool")
    a, b = _two(catalog, tmp_path / "pool", tmp_path / "link")
    assert a.remove_orphan_files(older_than=FUTURE).files == ()
    assert b.remove_orphan_files(older_than=FUTURE).files == ()
    catalog.drop_table("shop.a", purge=True)
    _live(b)


def test_in_a_shared_folder_expiry_deletes_only_what_no_other_table_reaches(
    catalog: Catalog, tmp_path: Path
) -> None:
    a, b = _two(catalog, tmp_path / "pool", tmp_path / "pool")
    mine = a.scan().plan().files.pylist("location")
    b.add_files(mine[:1])
    a.overwrite(rows(9))
    done = a.expire_snapshots(older_than=FUTURE)
    assert len(mine) == 2
    assert set(done.files["data-files"]) == set(mine[1:])
    assert mine[0] in done.spared
    _live(a)
    _live(b)


def test_the_purge_of_one_table_in_a_shared_folder_leaves_the_other(
    catalog: Catalog, tmp_path: Path
) -> None:
    a, b = _two(catalog, tmp_path / "pool", tmp_path / "pool" / "b")
    before = len(_files(tmp_path / "pool"))
    catalog.drop_table("shop.a", purge=True)
    assert len(_files(tmp_path / "pool")) == before - 2
    assert "shop.a" not in catalog
    assert a.name == "shop.a"
    _live(b)


def test_a_data_path_equal_to_the_warehouse_leaves_the_catalog_alone(
    catalog: Catalog, tmp_path: Path
) -> None:
    warehouse = tmp_path / "warehouse"
    table = catalog.create_table(
        "shop.all", SCHEMA, properties={"write.data.path": f"file://{warehouse}"}
    )
    table.append(rows(1))
    other = catalog.create_table("shop.other", SCHEMA)
    other.append(rows(2))
    stranger = _stray(warehouse / "strange.parquet")
    table.remove_orphan_files(older_than=FUTURE)
    table.remove_orphan_files(older_than=FUTURE, location=str(warehouse))
    assert stranger.exists()
    assert (warehouse / "catalog.db").exists()
    catalog.drop_table("shop.all", purge=True)
    assert (warehouse / "catalog.db").exists()
    assert stranger.exists()
    assert catalog.list_tables() == ["shop.other"]
    _live(other)


def test_a_table_at_the_warehouse_itself_leaves_the_catalog_alone(
    catalog: Catalog, tmp_path: Path
) -> None:
    warehouse = tmp_path / "warehouse"
    table = catalog.create_table("shop.all", SCHEMA, location=str(warehouse))
    table.append(rows(1))
    other = catalog.create_table("data.other", SCHEMA)
    other.append(rows(2))
    table.remove_orphan_files(older_than=FUTURE)
    table.remove_orphan_files(older_than=FUTURE, location=str(warehouse))
    catalog.drop_table("shop.all", purge=True)
    assert (warehouse / "catalog.db").exists()
    _live(other)


# tables inside tables


def test_a_table_inside_another_one_has_its_folders_to_itself(
    catalog: Catalog, tmp_path: Path
) -> None:
    outer = catalog.create_table("shop.outer", SCHEMA, location=str(tmp_path / "outer"))
    inner = catalog.create_table("shop.inner", SCHEMA, location=str(tmp_path / "outer" / "in"))
    for table in (outer, inner):
        table.append(rows(1))
    strays = [_stray(tmp_path / "outer" / part / "data" / "lost.parquet") for part in ("", "in")]
    assert [f.path for f in outer.remove_orphan_files(older_than=FUTURE).files] == [str(strays[0])]
    assert strays[1].exists()
    assert [f.path for f in inner.remove_orphan_files(older_than=FUTURE).files] == [str(strays[1])]
    _live(outer)
    _live(inner)
    catalog.drop_table("shop.inner", purge=True)
    _live(outer)


def test_a_table_in_another_ones_data_folder_keeps_its_files(
    catalog: Catalog, tmp_path: Path
) -> None:
    outer = catalog.create_table("shop.outer", SCHEMA, location=str(tmp_path / "outer"))
    place = tmp_path / "outer" / "data" / "in"
    properties = {"write.metadata.json-every": "0", "write.metadata.path": str(tmp_path / "meta")}
    inner = catalog.create_table("shop.in", SCHEMA, location=str(place), properties=properties)
    for table in (outer, inner):
        table.append(rows(1))
        table.overwrite(rows(2))
    before = _files(place)
    outer.remove_orphan_files(older_than=FUTURE)
    outer.expire_snapshots(older_than=FUTURE)
    assert _files(place) == before
    catalog.drop_table("shop.outer", purge=True)
    assert _files(place) == before
    _live(inner)


def test_a_clone_above_its_source_leaves_the_sources_files(
    catalog: Catalog, tmp_path: Path
) -> None:
    source = catalog.create_table("shop.orders", SCHEMA, location=str(tmp_path / "x" / "source"))
    source.append(rows(1, 2))
    source.append(rows(3))
    before = state_of(source)
    elsewhere = frazil.connect(tmp_path / "other")
    for where in (catalog, elsewhere):
        clone = source.clone(where, "shop.above", location=str(tmp_path / "x"))
        clone.overwrite(rows(9))
        clone.expire_snapshots(older_than=FUTURE)
        clone.remove_orphan_files(older_than=FUTURE)
        clone.remove_orphan_files(older_than=FUTURE, location=str(tmp_path / "x"))
        where.drop_table("shop.above", purge=True)
        source.refresh().drop_ref("clone/shop.above")
        assert state_of(source.refresh()) == before
        _live(source)


# one place, many spellings


@pytest.mark.parametrize(
    "spelling",
    [
        "file://{}",
        "file:{}",
        "FILE://{}",
        "{}",
        "{}/",
        "file:///{}",
        "{parent}//{name}",
        "file://{parent}/./{name}",
        "{parent}/x/../{name}",
        "{link}/{name}",
    ],
)
def test_the_same_place_spelled_differently_is_taken(
    catalog: Catalog, tmp_path: Path, spelling: str
) -> None:
    place = tmp_path / "tables" / "t"
    catalog.create_table("shop.first", SCHEMA, location=str(place)).append(rows(1))
    (tmp_path / "link").symlink_to(tmp_path / "tables")
    text = spelling.format(place, parent=place.parent, name="t", link=tmp_path / "link")
    before = _files(tmp_path / "tables")
    with pytest.raises(AlreadyExists, match=r"shop\.first"):
        catalog.create_table("shop.second", SCHEMA, location=text)
    assert _files(tmp_path / "tables") == before


def test_a_place_that_an_older_version_stored_as_given_is_taken(
    catalog: Catalog, tmp_path: Path
) -> None:
    place = tmp_path / "t"
    catalog.create_table("shop.first", SCHEMA, location=str(place))
    database = catalog._pointers.create().database  # type: ignore[attr-defined]
    with database.transaction() as transaction:
        stored = {"location": f"file://{place}"}
        transaction.run("UPDATE frazil_tables SET location = :location", stored)
    with pytest.raises(AlreadyExists, match=r"shop\.first"):
        catalog.create_table("shop.second", SCHEMA, location=str(place))


def test_spellings_of_one_path_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    places = Places()
    for text in ("file:{}/a/b", "FILE://{}/a/b", "{}/a/b", "{}//a/./b", "{}/x/../a/b"):
        assert places.file(text.format(tmp_path)) == f"{tmp_path}/a/b"
        assert places.folder(text.format(tmp_path)) == f"{tmp_path}/a/b/"
    assert places.file(f"{tmp_path}/link/a") == f"{tmp_path}/real/a"
    assert places.file(f"{tmp_path}/link") == f"{tmp_path}/link"
    for scheme in ("s3", "s3a", "s3n", "S3"):
        assert places.file(f"{scheme}://bucket//a/./b") == "s3://bucket/a/b"
    assert places.file("s3://bucket/a%20b/../c") == "s3://bucket/c"
    assert places.folder("s3://bucket") == "s3://bucket/"


def test_a_relative_location_is_made_absolute(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = catalog.create_table("shop.t", SCHEMA, location="tables/x")
    table.append(rows(1))
    assert table.location == f"file://{tmp_path}/tables/x"
    monkeypatch.chdir("/")
    again = frazil.connect(tmp_path / "warehouse").load_table("shop.t")
    assert again.scan().count() == 1
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AlreadyExists):
        catalog.create_table("shop.u", SCHEMA, location="tables/../tables/x")
    assert table.clone(catalog, "shop.c", location="c").location == f"file://{tmp_path}/c"


@pytest.mark.parametrize(
    "location",
    ["file://", "file:", "file:///", "/", "//", "file:x/y", "s3://", "s3:x", "", " ", 5, "a\0b"],
)
def test_a_location_that_names_no_folder_is_refused(catalog: Catalog, location: object) -> None:
    table = catalog.create_table("shop.t", SCHEMA)
    for call in (
        lambda: catalog.create_table("shop.u", SCHEMA, location=location),  # type: ignore[arg-type]
        lambda: table.clone(catalog, "shop.c", location=location),  # type: ignore[arg-type]
        lambda: table.copy_to(location, catalog=catalog, name="shop.c"),  # type: ignore[arg-type]
        lambda: table.move_to(location, catalog=catalog),  # type: ignore[arg-type]
        lambda: catalog.recover_table("shop.r", location),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput):
            call()
    assert catalog.list_tables() == ["shop.t"]


@pytest.mark.parametrize("key", ["write.metadata.path", "write.data.path"])
@pytest.mark.parametrize("value", ["s3://bucket/x", "file://", "file:", "a/../../b", "/", ""])
def test_a_folder_in_another_storage_or_that_leads_out_is_refused(
    catalog: Catalog, key: str, value: str
) -> None:
    with pytest.raises(InvalidInput, match=key):
        catalog.create_table("shop.t", SCHEMA, properties={key: value})
    table = catalog.create_table("shop.t", SCHEMA)
    with pytest.raises(InvalidInput, match=key):
        table.set_properties({key: value})
    assert table.refresh().properties == {}


# paths that lead up


def test_a_path_that_leads_up_cannot_be_added(catalog: Catalog, tmp_path: Path) -> None:
    other = catalog.create_table("shop.other", SCHEMA)
    other.append(rows(1))
    table = catalog.create_table("shop.t", SCHEMA)
    (file,) = other.scan().plan().files.pylist("location")
    path = f"{table.location}/data/../../other/{file}"
    with pytest.raises(InvalidInput, match=r"\.\."):
        table.add_files([path])


def test_a_crafted_entry_that_leads_up_is_refused_and_expiry_would_spare_its_file(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim.parquet"
    pq.write_table(rows(7), victim)
    table = catalog.create_table("shop.t", SCHEMA, location=f"file://{tmp_path}/t")
    entry = f"file://{tmp_path}/t/data/../../victim.parquet"
    never = "x^"
    with monkeypatch.context() as careless:  # a writer and a reader without the check
        careless.setattr("frazil.table.adopt_files._absolute", lambda path: path)
        careless.setattr("frazil.format.paths._UP_PATTERN", never)
        careless.setattr("frazil.format.paths._DOT_PATTERN", never)
        careless.setattr("frazil.format.paths._up_segment", re.compile(never))
        careless.setattr("frazil.format.paths._dot_segment", re.compile(never))
        table.append(rows(1))
        (tmp_path / "t" / "data").mkdir(exist_ok=True)
        found = describe(table._handle, [entry], check_duplicates=False)
        table._handle.commit(Change(added=found.entries))
        assert table.refresh().scan().count() == 2
        table.overwrite(rows(2))
        done = table.expire_snapshots(older_than=FUTURE)
    assert victim.exists()
    assert done.spared == (entry,)
    assert len(done.files["data-files"]) == 1


def test_readers_refuse_absolute_paths_that_lead_up() -> None:
    for path in ("file:///t/../x", "s3://bucket/a/../b", "file:..", "file:///t/.."):
        with pytest.raises(FormatError, match=r"'\.\.'"):
            paths.resolve("file:///t", path)
        with pytest.raises(FormatError, match=r"'\.\.'"):
            paths.resolve_all("file:///t", pa.chunked_array([["data/x", path]]))
    for path in ("/t/../x", "file:/t/../x"):
        with pytest.raises(FormatError, match=r"'\.\.'"):
            paths.resolve_legacy("file:///t", path)
    assert paths.resolve("file:///t", "file:///t/a..b/..c") == "file:///t/a..b/..c"


# metadata JSON


def test_old_json_files_of_someone_else_are_not_deleted_after_a_commit(
    catalog: Catalog, tmp_path: Path
) -> None:
    properties = {
        "write.metadata.json-every": "1",
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    table = catalog.create_table("shop.t", SCHEMA, properties=properties)
    table.append(rows(1))
    json = Path(table.export().removeprefix("file://"))
    apart = tmp_path / "kept-by-the-user.metadata.json"
    apart.write_bytes(json.read_bytes())
    catalog.drop_table("shop.t")
    again = catalog.register_table("shop.t", str(apart), location=table.location)
    for number in range(4):
        again.append(rows(number))
    assert apart.exists()
    assert len(list(json.parent.glob("*.json"))) <= 4
