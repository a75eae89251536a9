"""Numbers that the summary of a snapshot states. Writers may leave any of them out."""

from __future__ import annotations

from collections.abc import Mapping


def number(summary: Mapping[str, str], key: str) -> int | None:
    """A number of a summary; None for what is not there or is none."""
    text = summary.get(key, "")
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else None


def live_rows(summary: Mapping[str, str]) -> int | None:
    """Rows that are not deleted; None where the summary cannot tell, as with equality deletes."""
    keys = ("total-records", "total-position-deletes", "total-equality-deletes")
    records, positions, equality = (number(summary, key) for key in keys)
    return None if records is None or positions is None or equality != 0 else records - positions
