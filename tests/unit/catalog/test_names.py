"""Names of tables and namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.catalog.names import (
    Identifier,
    dotted,
    namespace_location,
    namespace_of,
    table_location,
    undotted,
)
from frazil.errors import InvalidInput


def test_a_name_is_parsed_from_text_or_parts() -> None:
    expected = Identifier(namespace=("eu", "shop"), name="orders")
    assert Identifier.parse("eu.shop.orders") == expected
    assert Identifier.parse(("eu", "shop", "orders")) == expected
    assert Identifier.parse(["eu", "shop", "orders"]) == expected
    assert Identifier.parse(expected) is expected
    assert str(expected) == "eu.shop.orders"
    assert namespace_of("eu.shop") == ("eu", "shop")
    assert dotted(("eu", "shop")) == "eu.shop"


@pytest.mark.parametrize(
    "name",
    ["my orders", "заказы", "a%b", "a-b_c", "a:b", "100%", "~tmp", " x ", "a/b", "a?b#c", ".."],
)
def test_a_name_may_hold_any_character(name: str) -> None:
    assert Identifier.parse(("shop", name)).name == name


@pytest.mark.parametrize("level", ["a.b", "a%2Eb", "%25", "%252E", "..", "100%"])
def test_a_name_as_text_is_the_same_name(level: str) -> None:
    name = Identifier(namespace=(level, "x"), name=level)
    assert Identifier.parse(str(name)) == name
    assert undotted(dotted(("x", level))) == ("x", level)


def test_a_dot_inside_a_level_is_escaped() -> None:
    assert dotted(("a.b", "c")) == "a%2Eb.c"
    assert dotted(("a%2Eb",)) == "a%252Eb"


@pytest.mark.parametrize(
    "name",
    [
        "orders",
        "",
        ".",
        "..",
        "shop.",
        ".orders",
        "shop..orders",
        "shop.a\x00b",
        "shop.a\nb",
        "shop.a\x7f",
        (),
        ("shop",),
        ("shop", ""),
        ("shop", 5),
        "shop." + "x" * 256,
        "x" * 200 + "." + "y" * 100 + ".orders",
    ],
)
def test_what_is_not_a_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput):
        Identifier.parse(name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("orders", "orders"),
        ("a b", "a b"),
        ("a.b", "a.b"),
        ("a/../b", "a_.._b"),
        ("%2e%2e", "_2e_2e"),
        ("..", "____"),
        (".", "___"),
        (" x ", "_x_"),
        ("a\\b?c#d", "a_b_c_d"),
    ],
)
def test_a_name_cannot_lead_out_of_the_warehouse(name: str, folder: str) -> None:
    where = table_location("file:///w", Identifier(namespace=("s",), name=name))
    assert where == f"file:///w/s/{folder}"


@pytest.mark.parametrize("name", ["é" * 200, "🦆" * 60, "é" * 200 + ".", "x" * 255, "x" * 239])
def test_a_folder_is_no_longer_than_a_file_system_takes(tmp_path: Path, name: str) -> None:
    identifier = Identifier(namespace=(name,), name=name)
    place = Path(table_location(str(tmp_path), identifier))
    Path(f"{place}-0123abcd").mkdir(parents=True)  # where another table has been
    other = Identifier(namespace=(name[:-1] + "y",), name=name[:-1] + "y")
    assert place != Path(table_location(str(tmp_path), other))


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127])
def test_a_namespace_that_fits_keeps_its_folder(name: str) -> None:
    assert namespace_location("/w", (name,)) == f"/w/{name}"


def test_no_table_lies_inside_another() -> None:
    outer = table_location("/w/", Identifier.parse("a.b"))
    inner = table_location("/w", Identifier.parse("a.b.c"))
    assert outer == "/w/a/b"
    assert inner == "/w/a.b/c"
    assert not inner.startswith(f"{outer}/")
