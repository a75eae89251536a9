"""Encrypted tables are refused when they are opened, and no table can be made to look like one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import frazil


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"properties": {"encryption.key-id": "k"}}, "encryption.key-id"),
        ({"encryption-keys": [{"key-id": "k"}]}, "encryption-keys"),
    ],
)
def test_metadata_of_an_encrypted_table_is_not_registered(
    catalog: frazil.Catalog, tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    table = catalog.create_table("shop.orders", [{"id": 1}])
    published = Path(table.publish(format_version=3).metadata_location.removeprefix("file://"))
    document = json.loads(published.read_text())
    copy = tmp_path / "copy.metadata.json"
    copy.write_text(json.dumps({**document, **change}))
    with pytest.raises(frazil.Unsupported, match=f"the table is encrypted .{named}."):
        catalog.register_table("shop.copy", str(copy))
    assert not catalog.table_exists("shop.copy")


def test_encryption_cannot_be_asked_for(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("shop.orders", [{"id": 1}])
    with pytest.raises(frazil.InvalidInput, match=r"'encryption.key-id' cannot be set"):
        table.set_properties({"encryption.key-id": "k"})
    assert table.refresh().scan().to_pylist() == [{"id": 1}]
