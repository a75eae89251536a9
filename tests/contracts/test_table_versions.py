"""What those who watch a whole catalog are told, by every catalog."""

from __future__ import annotations

from frazil.catalog.backend import CatalogBackend
from tests.support.catalogs import append_and_land, orders


def test_a_table_has_another_version_after_every_commit(catalog: CatalogBackend) -> None:
    catalog.namespaces.create("shop")
    head = catalog.create_table("shop.orders", orders(catalog.location_for("shop.orders")))
    (first,) = catalog.table_versions(0)
    assert (first.identifier, first.committed_ms) == (head.identifier, ())
    landed = append_and_land(head, 1)
    (second,) = catalog.table_versions(0)
    assert second.version != first.version
    assert second.committed_ms == (landed.metadata.last_updated_ms,)
    assert catalog.table_versions(landed.metadata.last_updated_ms + 1)[0].committed_ms == ()
    assert catalog.table_versions()[0].version == second.version
    catalog.drop(head.identifier)
    assert catalog.table_versions() == []
