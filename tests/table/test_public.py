"""What is public is for users: internals are neither listed nor asked for."""

from __future__ import annotations

import inspect

import pytest

import frazil
from frazil.rows.merge import Merge
from frazil.rows.scan import Scan
from frazil.scan.change_feed import Changes
from frazil.table.file_operations import RowDelta

CLASSES = (frazil.Catalog, frazil.Table, frazil.Transaction, Scan, RowDelta, Changes, Merge)
INTERNAL = ("TableHandle", "Pointers", "ManifestCache", "EntryBatch", "Change", "MetadataUpdate")


@pytest.mark.parametrize("kind", CLASSES)
def test_public_methods_take_and_give_no_internals(kind: type) -> None:
    found = {
        f"{name}: {part}"
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_")
        for part in _annotations(member)
        if any(word in INTERNAL for word in part.replace("[", " ").replace("]", " ").split())
    }
    assert found == set()


def _annotations(member: object) -> list[str]:
    function = member.fget if isinstance(member, property) else member
    return [str(each) for each in getattr(function, "__annotations__", {}).values()]


def test_no_object_shows_its_internals() -> None:
    listed = {name for kind in CLASSES for name in dir(kind) if not name.startswith("_")}
    fields = {name for kind in CLASSES for name in getattr(kind, "__dataclass_fields__", {})}
    assert not (listed | {name for name in fields if name[0] != "_"}) & {
        "handle",
        "pointers",
        "cache",
        "origin",
        "reader",
        "reading",
        "run",
    }
