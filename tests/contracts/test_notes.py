"""Notes of a table on every catalog: kept, never changed, gone with the table."""

from __future__ import annotations

import pytest

from frazil.catalog.backend import CatalogBackend, TableHead
from frazil.catalog.remote.remote_head import RemoteHead
from frazil.errors import Unsupported
from tests.support.catalogs import orders


@pytest.fixture
def head(catalog: CatalogBackend) -> TableHead:
    """A table just made."""
    catalog.namespaces.create("shop")
    metadata = orders(catalog.location_for("shop.orders"))
    return catalog.create_table("shop.orders", metadata)


def test_notes_are_kept_beside_a_table_and_never_changed(head: TableHead) -> None:
    if isinstance(head, RemoteHead):
        with pytest.raises(Unsupported, match="written by the server"):
            head.notes.add({"leaf:a": "1"})
        return
    assert head.notes.is_empty()
    assert head.notes.add({"leaf:a": "1", "leaf:b": "2", "list:1": "3"}) == {
        "leaf:a": "1",
        "leaf:b": "2",
        "list:1": "3",
    }
    assert head.notes.add({"leaf:a": "9", "leaf:c": "4"}) == {"leaf:a": "1", "leaf:c": "4"}
    assert head.notes.below("leaf:") == {"leaf:a": "1", "leaf:b": "2", "leaf:c": "4"}
    assert not head.notes.is_empty()
    head.notes.remove(["leaf:b", "nothing"])
    assert head.notes.get(["leaf:a", "leaf:b"]) == {"leaf:a": "1"}


def test_notes_go_with_their_table(catalog: CatalogBackend, head: TableHead) -> None:
    if isinstance(head, RemoteHead):
        return  # only the server adds any
    head.notes.add({"a": "1"})
    place = head.state.metadata.location
    catalog.drop("shop.orders")
    again = catalog.create_table("shop.orders", orders(f"{place}-2"))
    assert again.notes.below("a") == {}


def test_a_version_is_claimed_once(head: TableHead) -> None:
    assert head.notes.claim(1, "0a") == "0a"
    assert head.notes.claim(1, "0b") == "0a"
    assert head.notes.claim(2, "0b") == "0b"
    head.notes.remove(["publish:000000000001"])
    assert head.notes.claim(1, "0b") == "0b"
