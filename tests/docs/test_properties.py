"""The page of properties is written from the registry, and names every property of the source."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.docs.pages import DOCS, ROOT
from tools import property_reference

_PROPERTY = re.compile(
    r"(?:write|commit|history|read|schema|publish|serve|cache|gc|tls|paimon|frazil|spark\.frazil)"
    r"\.[a-z0-9.-]+"
)
_OTHER = {
    "frazil.commit",  # names of loggers
    "frazil.paimon",
    "frazil.serve",
    "frazil.spark",
    "frazil.sql",
    "write.writer",  # a module
    "frazil.cli.",  # modules
    "frazil.spark.",  # the package of the Java classes
    "frazil.spark.loader",  # a mark in the JVM that they are loaded
    "frazil.toml",  # a file
    "spark.frazil.secret.",  # how credentials travel between drivers and executors
    "frazil.query-columns",  # of a stored view
    "frazil.catalog-name",
}


@cache
def _named_in_source() -> set[str]:
    texts = (
        node.value
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return {text for text in texts if _PROPERTY.fullmatch(text)} - _OTHER


def _documented() -> set[str]:
    """Names in the first column of the page's tables; a part such as `<name>` stands for any."""
    page = (DOCS / "reference" / "properties.md").read_text(encoding="utf-8")
    first = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    names = {name for cell in first for name in re.findall(r"`([^`]+)`", cell)}
    return {name.partition("<")[0] for name in names if not name.endswith("*")}


def test_the_page_is_written_from_the_registry() -> None:
    assert property_reference.PAGE.read_text(encoding="utf-8") == property_reference.rendered()


def test_every_property_in_the_source_is_documented() -> None:
    assert _named_in_source() - _documented() == set()


def test_every_documented_property_is_in_the_source() -> None:
    assert _documented() - _named_in_source() == set()
