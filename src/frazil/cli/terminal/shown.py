"""How results are shown: what the options of a command and the settings of a shell say."""

from __future__ import annotations

from typing import Final

from frazil.cli.terminal.formats import Format
from frazil.value_classes import dataclass

MAX_ROWS: Final = 100
"""Rows of a query that are shown as a table, unless more are asked for."""


@dataclass(slots=True, kw_only=True)
class Shown:
    """The format of rows, how many of them, and whether times are told. A shell changes it."""

    format: Format = Format.TABLE
    max_rows: int | None = None
    timing: bool = False
    more: str = "more with --limit, all with --format csv"
    """What to do for the rows that are not shown."""
