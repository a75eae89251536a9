"""Tables that exist already enter every catalog, and threads that commit at once all land."""

from __future__ import annotations

import threading

import pytest

from frazil.catalog.backend import CatalogBackend, TableHead
from frazil.commit.head import Landed
from frazil.errors import NotFound
from tests.support.catalogs import append, append_and_land, orders


@pytest.fixture
def head(catalog: CatalogBackend) -> TableHead:
    """A table just made."""
    catalog.namespaces.create("shop")
    metadata = orders(catalog.location_for("shop.orders"))
    return catalog.create_table("shop.orders", metadata)


def test_a_registered_table_has_its_whole_history(catalog: CatalogBackend, head: TableHead) -> None:
    append_and_land(head, 1)
    append_and_land(head, 2)
    path = head.export()
    purged = catalog.purge("shop.orders")
    found = catalog.register("shop.again", path)
    assert found.state.metadata == purged.metadata
    assert found.history().snapshots == purged.history.snapshots
    assert found.history().snapshot_log == purged.history.snapshot_log
    assert found.state.metadata_location == path
    append_and_land(found, 3)


def test_a_copied_table_opens_where_it_was_copied_to(
    catalog: CatalogBackend, head: TableHead
) -> None:
    append_and_land(head, 1)
    path = head.export()
    location = head.state.metadata.location
    copy = f"{location}-copied"
    storage = catalog.storage(location)
    for file in list(storage.list(location)):
        storage.write_new(f"{copy}{file.path.removeprefix(location)}", storage.read(file.path))
    found = catalog.register("shop.copy", f"{copy}{path.removeprefix(location)}")
    assert found.state.metadata.location == copy
    assert catalog.load("shop.orders").state.metadata.location == location


def test_what_is_not_metadata_is_not_registered(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("shop")
    with pytest.raises(NotFound):
        catalog.register("shop.orders", f"{catalog.warehouse}/missing.metadata.json")
    assert catalog.list_tables("shop") == []


def test_threads_that_commit_at_once_all_land_once(
    catalog: CatalogBackend, head: TableHead
) -> None:
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            mine = catalog.load("shop.orders")
            for number in range(first, first + 6):
                while True:
                    base = mine.load()
                    if isinstance(mine.swap(base, append(base, number)), Landed):
                        break
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in (100, 200, 300, 400)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    state = head.load()
    assert state.version == 24
    assert state.metadata.last_sequence_number == 24
    assert state.metadata.next_row_id == 240
    snapshots = list(head.snapshots())
    assert [each.sequence_number for each in snapshots] == list(range(1, 25))
    expected = [number for first in (100, 200, 300, 400) for number in range(first, first + 6)]
    assert sorted(each.snapshot_id for each in snapshots) == expected
