"""The part of a table that looks after its history: changes, care, comparison."""

from __future__ import annotations

from frazil.commit.handle import TableHandle


class HistoryOperations:
    """What changed, and keeping a table healthy."""

    handle: TableHandle
    branch_name: str
