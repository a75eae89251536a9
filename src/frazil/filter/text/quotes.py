"""Names and texts as SQL writes them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"
