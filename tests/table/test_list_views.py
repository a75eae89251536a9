"""Views are listed as tables are: by namespace, or all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import frazil


def test_views_are_listed_by_namespace_or_all_together(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", [{"id": 1}])
        catalog.create_namespace("audit")
        catalog.sql("CREATE VIEW shop.recent AS SELECT id FROM shop.orders")
        catalog.sql("CREATE VIEW audit.copies AS SELECT id FROM shop.orders")
        assert catalog.list_views("shop") == ["shop.recent"]
        assert catalog.list_views() == ["audit.copies", "shop.recent"]
        assert catalog.list_tables() == ["shop.orders"]
        with pytest.raises(frazil.NotFound, match="missing"):
            catalog.list_views("missing")
        with pytest.raises(frazil.NotFound, match="missing"):
            catalog.list_views(("missing",))
