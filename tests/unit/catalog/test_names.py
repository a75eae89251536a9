"""Names of tables and namespaces."""

from __future__ import annotations

import pytest

from frazil.catalog.names import Identifier, dotted, namespace_of, table_location
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


def test_names_may_have_spaces_signs_and_other_scripts() -> None:
    for name in ("my orders", "заказы", "a%b", "a-b_c", "a:b", "100%", "~tmp"):
        assert Identifier.parse(("shop", name)).name == name


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
        "shop/x.orders",
        "shop.a\\b",
        "shop.a\x00b",
        "shop.a\nb",
        "shop.a\x7f",
        "shop. orders",
        "shop.orders ",
        "shop.%2e%2e",
        "shop.a%2fb",
        "shop.a%00",
        "shop.a#b",
        "shop.a?b",
        (),
        ("shop",),
        ("shop", ".."),
        ("..", "orders"),
        ("shop", "a.b"),
        ("shop", ""),
        ("shop", 5),
        "shop." + "x" * 256,
        "x" * 200 + "." + "y" * 100 + ".orders",
    ],
)
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput):
        Identifier.parse(name)  # type: ignore[arg-type]


def test_no_table_lies_inside_another() -> None:
    outer = table_location("/w/", Identifier.parse("a.b"))
    inner = table_location("/w", Identifier.parse("a.b.c"))
    assert outer == "/w/a/b"
    assert inner == "/w/a.b/c"
    assert not inner.startswith(f"{outer}/")
