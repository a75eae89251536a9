"""Spark's rule for `lower(name) = 'x'`: where it prunes, engines agree on the rows."""

from __future__ import annotations

import sys

import duckdb
import pyarrow as pa

from frazil.spark.expressions.pushed import _is_plain

LETTERS = [chr(at) for at in range(1, sys.maxunicode) if not 0xD800 <= at < 0xE000]


def test_a_letter_that_becomes_plain_text_does_so_in_duckdb_too() -> None:
    """Java's rules for letters are Unicode's full ones, as Python's are."""
    data = pa.table({"letter": LETTERS})
    relation = duckdb.from_arrow(data).project("letter, lower(letter), upper(letter)")
    rows = relation.fetchall()
    assert len(rows) == len(LETTERS)
    for letter, lower, upper in rows:
        if letter.lower().isascii():
            assert lower == letter.lower()
        if _is_plain("upper", letter.upper()):
            assert upper == letter.upper()


def test_texts_with_letters_of_their_own_are_not_plain() -> None:
    assert _is_plain("lower", "name 2")
    assert not _is_plain("lower", "i̇2")
    assert _is_plain("upper", "NAME 2")
    assert not _is_plain("upper", "STRASSE")
