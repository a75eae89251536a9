"""Counts, sizes and cards as people read them."""

from __future__ import annotations

import pytest

from frazil.text_format import card, counted, listed, size


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1_000, "1.0 kB"), (2_500_000, "2.5 MB")],
)
def test_sizes_are_in_powers_of_a_thousand(number: int, text: str) -> None:
    assert size(number) == text


def test_nouns_follow_their_number() -> None:
    assert counted(1, "file") == "1 file"
    assert counted(0, "file") == "0 files"
    assert counted(1_234, "entry", "entries") == "1,234 entries"


def test_the_noun_is_said_once() -> None:
    assert listed({"added": 0, "removed": 1, "updated": 2}, of="row") == "1 row removed, 2 updated"
    assert listed({"added": 0}, of="row") == ""


def test_a_card_escapes_what_it_shows_and_leaves_out_what_is_not_there() -> None:
    shown = card("<b>", {"name": "a&b", "gone": None, "empty": ""})
    assert "&lt;b&gt;" in shown
    assert "a&amp;b" in shown
    assert "gone" not in shown
    assert "empty" not in shown
