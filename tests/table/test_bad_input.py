"""Every bad input has a clear error, and leaves the table as it was."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.commit.change import Change
from frazil.commit.updates import SetProperties
from frazil.errors import (
    AlreadyExists,
    CommitConflict,
    FormatError,
    FrazilError,
    InvalidInput,
    NotFound,
    StorageError,
    Unsupported,
)
from frazil.storage import LocalStorage, local_path
from frazil.table.open_catalog import connect_existing
from tests.table.conftest import ORDERS, orders


@contextmanager
def unchanged(table: frazil.Table) -> Iterator[None]:
    """Whatever happens inside, the table and its files stay as they were."""
    folder = Path(local_path(table.location))
    rows = table.scan().to_arrow().sort_by("order_id")
    files = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    yield
    table.refresh()
    assert table.scan().to_arrow().sort_by("order_id") == rows
    assert sorted(str(path) for path in folder.rglob("*") if path.is_file()) == files


@pytest.fixture
def filled(table: frazil.Table) -> frazil.Table:
    table.append(orders(0, 30))
    return table


BAD_FRAMES: dict[str, tuple[Callable[[], pa.Table], str]] = {
    "an unknown column": (
        lambda: orders(0, 2).append_column("colour", pa.array(["a", "b"])),
        "colour",
    ),
    "a missing required column": (lambda: orders(0, 2).drop_columns(["order_id"]), "order_id"),
    "a type that does not fit": (
        lambda: orders(0, 2).set_column(3, "price", pa.array(["x", "y"])),
        "price",
    ),
    "a null in a required column": (
        lambda: (
            orders(0, 2)
            .set_column(0, "order_id", pa.array([1, None], pa.int64()))
            .cast(pa.schema([field.with_nullable(True) for field in ORDERS]))
        ),
        "order_id",
    ),
    "duplicate names": (
        lambda: pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["order_id"] * 2),
        "order_id",
    ),
}


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_rows_that_do_not_fit_are_refused_by_column(filled: frazil.Table, case: str) -> None:
    frame, column = BAD_FRAMES[case]
    with unchanged(filled), pytest.raises(InvalidInput, match=column):
        filled.append(frame())


def test_all_problems_of_a_frame_are_listed_at_once(filled: frazil.Table) -> None:
    bad = pa.table({"price": ["x"], "colour": ["red"]})
    with pytest.raises(InvalidInput) as caught:
        filled.append(bad)
    assert all(name in str(caught.value) for name in ("price", "colour", "order_id"))


@pytest.mark.parametrize(
    ("where", "match"),
    [
        ("colour = 'red'", "colour"),
        ("price = ", "price ="),
        ("price > 'abc'", "price"),
        ("order_date = '2024-13-45'", "2024-13-45"),
        ("", "empty|blank|filter"),
        ("price > 1 and and country = 'US'", "and"),
    ],
)
def test_bad_filters_are_refused_with_their_text(
    filled: frazil.Table, where: str, match: str
) -> None:
    with unchanged(filled):
        with pytest.raises(InvalidInput, match=match):
            filled.scan(where=where).to_arrow()
        with pytest.raises(InvalidInput, match=match):
            filled.delete(where)


def test_an_unknown_column_is_answered_with_the_known_ones(filled: frazil.Table) -> None:
    with pytest.raises(InvalidInput, match=r"colour.*order_id, order_date, country, price"):
        filled.scan(columns=["colour"]).to_arrow()


@pytest.mark.parametrize(
    "partition_by",
    [
        ["week(order_date)"],
        ["bucket[0](order_id)"],
        ["bucket[x](order_id)"],
        ["day(nothing)"],
        ["day(price)"],
        ["truncate[4](price)"],
        ["day(order_date"],
    ],
)
def test_bad_transforms_are_refused(catalog: frazil.Catalog, partition_by: list[str]) -> None:
    with pytest.raises(InvalidInput):
        catalog.create_table("shop.bad", ORDERS, partition_by=partition_by)
    assert not catalog.table_exists("shop.bad")


@pytest.mark.parametrize(
    "name",
    ["orders", "../x.orders", "shop..orders", "shop.\x00", "", "shop.\ud800", None, 5, b"shop.x"],
    ids=repr,
)
def test_what_is_not_a_name_is_refused(catalog: frazil.Catalog, name: Any) -> None:
    with pytest.raises(InvalidInput):
        catalog.create_table(name, ORDERS)
    with pytest.raises(InvalidInput):
        catalog.load_table(name)


@pytest.mark.parametrize("name", ["shop./etc", "shop.a/b", "shop. a", "shop.%2e%2e", "shop.a?b#c"])
def test_a_tables_folder_cannot_leave_the_warehouse(
    catalog: frazil.Catalog, tmp_path: Path, name: str
) -> None:
    table = catalog.create_table(name, ORDERS)
    place = Path(table.location.removeprefix("file://"))
    assert place.parent.name == "shop"
    assert str(catalog.warehouse) == f"file://{place.parent.parent}"
    table.append(orders(1, 2))
    assert catalog.load_table(name).scan().count() == 1


def test_a_name_that_is_taken_is_refused(catalog: frazil.Catalog, table: frazil.Table) -> None:
    with pytest.raises(AlreadyExists, match=r"shop\.orders"):
        catalog.create_table("shop.orders", ORDERS)


def test_a_table_that_is_not_there_is_named(catalog: frazil.Catalog) -> None:
    with pytest.raises(NotFound, match=r"shop\.nothing"):
        catalog.load_table("shop.nothing")


def test_a_warehouse_that_is_not_there_is_not_made_when_told_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no warehouse is there"):
        connect_existing(tmp_path / "typo")
    assert not (tmp_path / "typo").exists()


def test_a_snapshot_that_is_not_there_is_named(filled: frazil.Table) -> None:
    with pytest.raises(NotFound, match="12345"):
        filled.scan(as_of=12345).to_arrow()
    with pytest.raises(NotFound, match="no-such-tag"):
        filled.scan(as_of="no-such-tag").to_arrow()


def test_duplicate_columns_are_refused(catalog: frazil.Catalog) -> None:
    twice = pa.schema([("a", pa.int64()), ("a", pa.string())])
    with pytest.raises(InvalidInput, match="a"):
        catalog.create_table("shop.twice", twice)


def _data_files(table: frazil.Table) -> list[Path]:
    return sorted((Path(local_path(table.location)) / "data").rglob("*.parquet"))


def test_a_missing_data_file_is_named(filled: frazil.Table) -> None:
    gone = _data_files(filled)[0]
    gone.unlink()
    with pytest.raises(NotFound, match=gone.name):
        filled.scan().to_arrow()


def test_a_changed_data_file_is_named(filled: frazil.Table) -> None:
    changed = _data_files(filled)[0]
    changed.write_bytes(changed.read_bytes() + b"more")
    with pytest.raises(FormatError, match=changed.name):
        filled.scan().to_arrow()


def test_a_truncated_root_is_named(catalog: frazil.Catalog, filled: frazil.Table) -> None:
    snapshot = filled.current_snapshot()
    assert snapshot is not None
    assert snapshot.root_manifest is not None
    root = Path(local_path(filled.location)) / snapshot.root_manifest
    root.write_bytes(root.read_bytes()[:100])
    catalog._cache.clear()
    with pytest.raises(FormatError, match=root.name):
        filled.scan().to_arrow()


def test_a_root_path_cannot_leave_the_table(filled: frazil.Table) -> None:
    snapshot = filled.current_snapshot()
    assert snapshot is not None
    escaping = replace(snapshot, root_manifest="../../outside.parquet")
    with pytest.raises(FormatError, match=r"\.\./\.\./outside"):
        filled._handle.reader().tree(escaping)


def test_a_newer_format_version_is_refused(
    catalog: frazil.Catalog, filled: frazil.Table, tmp_path: Path
) -> None:
    text = Path(local_path(filled.export())).read_text()
    newer = tmp_path / "newer.metadata.json"
    newer.write_text(text.replace('"format-version":4', '"format-version":5'))
    with pytest.raises((Unsupported, FormatError), match="5"):
        catalog.register_table("shop.newer", f"file://{newer}")
    assert not catalog.table_exists("shop.newer")


def test_a_corrupt_metadata_file_is_named(catalog: frazil.Catalog, tmp_path: Path) -> None:
    broken = tmp_path / "broken.metadata.json"
    broken.write_text('{"format-version": 4, "table-uuid":')
    with pytest.raises(FormatError, match=r"broken\.metadata\.json"):
        catalog.register_table("shop.broken", f"file://{broken}")


class FullDisk(LocalStorage):
    """A disk that takes so many bytes and then no more."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write_new(self, path: str, data: Any) -> None:
        if len(data) > self.room:
            raise StorageError(f"{path}: write failed: No space left on device")
        self.room -= len(data)
        super().write_new(path, data)


def test_a_full_disk_leaves_nothing_half_visible(filled: frazil.Table) -> None:
    handle = filled._handle
    full = FullDisk(room=100)
    context = replace(handle.context, storage=full)
    squeezed = frazil.Table(replace(handle, context=context))
    with unchanged(filled), pytest.raises(StorageError, match="No space left"):
        squeezed.append(orders(100, 110))


def test_secrets_are_refused_as_table_properties(filled: frazil.Table) -> None:
    with pytest.raises(InvalidInput, match=r"s3\.secret-access-key"):
        filled.set_properties({"s3.secret-access-key": "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.root.max-data-entries", "many"),
        ("write.leaf.max-dead-ratio", "2"),
        ("commit.retry.num-retries", "x"),
        ("write.metadata.compression-codec", "zip"),
    ],
)
def test_bad_property_values_are_named_at_every_door(
    filled: frazil.Table, name: str, value: str
) -> None:
    with unchanged(filled), pytest.raises(InvalidInput, match=name):
        filled.set_properties({name: value})
    stored = SetProperties(updates={name: value})  # as a client of the server sends it
    with unchanged(filled), pytest.raises(InvalidInput, match=name):
        filled._handle.commit(Change(updates=(stored,)))


def test_upsert_needs_keys_that_identify_a_row(filled: frazil.Table) -> None:
    twice = pa.concat_tables([orders(1, 3), orders(1, 3)])
    with unchanged(filled):
        with pytest.raises(InvalidInput, match="duplicate keys"):
            filled.upsert(twice, on=["order_id"])
        with pytest.raises(InvalidInput, match=r"shares? a key with another row"):
            filled.upsert(orders(0, 1), on=["order_date"])
        with pytest.raises(InvalidInput, match="colour"):
            filled.upsert(orders(0, 1), on=["colour"])


def test_a_transaction_that_fails_leaves_nothing(filled: frazil.Table) -> None:
    def failing() -> None:
        with filled.transaction() as tx:
            tx.append(orders(100, 120))
            tx.delete("order_id < 5")
            tx.append(orders(200, 210))
            raise RuntimeError("on purpose")

    with unchanged(filled), pytest.raises(RuntimeError, match="on purpose"):
        failing()


def test_an_ended_transaction_takes_no_more(filled: frazil.Table) -> None:
    with filled.transaction() as tx:
        tx.append(orders(100, 101))
    with pytest.raises(InvalidInput, match="ended"):
        tx.append(orders(101, 102))


def test_a_tag_cannot_be_committed_to(filled: frazil.Table) -> None:
    filled.tag("v1")
    with pytest.raises(InvalidInput, match="v1"):
        filled.branch("v1", create=True)


def test_a_delete_of_rows_another_writer_removed_conflicts(
    catalog: frazil.Catalog, filled: frazil.Table
) -> None:
    first, second = filled, catalog.load_table("shop.orders")
    change = second.transaction()
    change.update({"price": 0.0}, where="order_id = 3")
    first.delete("order_id = 3")
    with pytest.raises(CommitConflict) as caught:
        change.commit()
    assert caught.value.conflicts


def _append_many(folder: str, first: int, count: int) -> int:
    table = frazil.connect(folder).load_table("shop.orders")
    for index in range(count):
        table.append(orders(first + index, first + index + 1))
    return count


def test_two_processes_racing_lose_nothing(
    catalog: frazil.Catalog, filled: frazil.Table, tmp_path: Path
) -> None:
    folder = str(tmp_path / "warehouse")
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        done = pool.starmap(_append_many, [(folder, 1000, 10), (folder, 2000, 10)])
    assert done == [10, 10]
    ids = sorted(filled.refresh().scan(columns=["order_id"]).to_arrow()["order_id"].to_pylist())
    assert ids == [*range(30), *range(1000, 1010), *range(2000, 2010)]


def test_every_error_has_a_kind_of_its_own_and_finer_ones_share_it() -> None:
    errors: list[type[FrazilError]] = [FrazilError, *FrazilError.__subclasses__()]
    assert len({error.kind for error in errors}) == len(errors)
    assert len({error.exit_code for error in errors}) == len(errors)
    for error in FrazilError.__subclasses__():
        for finer in error.__subclasses__():
            assert (finer.kind, finer.exit_code) == (error.kind, error.exit_code)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.leaf.target-entries", "3000000"),
        ("write.leaf.target-entries", "2097153"),
        ("schema.name-mapping.default", "5"),
        ("schema.name-mapping.default", "{}"),
        ("schema.name-mapping.default", '[{"names": 3}]'),
    ],
)
def test_a_value_that_the_next_append_would_refuse_is_refused_when_it_is_set(
    catalog: frazil.Catalog, table: frazil.Table, name: str, value: str
) -> None:
    with pytest.raises(InvalidInput, match=name):
        table.set_properties({name: value})
    with pytest.raises(InvalidInput, match=name):
        catalog.create_table("shop.other", orders(0, 1).schema, properties={name: value})


def test_a_leaf_may_be_as_large_as_its_bitmap(table: frazil.Table) -> None:
    table.set_properties({"write.leaf.target-entries": "2097152"})
    table.append(orders(0, 3))
    assert table.scan().count() == 3
