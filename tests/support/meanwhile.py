"""What others commit while a change is under way: after it was planned, before it lands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import frazil
from frazil.commit.head import Draft, Outcome, State


class _Interrupted:
    """A head whose first swap comes after somebody else's work."""

    def __init__(self, inner: Any, work: Callable[[], object]) -> None:
        self._inner = inner
        self._work: Callable[[], object] | None = work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def swap(self, base: State, draft: Draft) -> Outcome:
        work, self._work = self._work, None
        if work is not None:
            work()
        outcome: Outcome = self._inner.swap(base, draft)
        return outcome


def interrupt(table: frazil.Table, work: Callable[[], object]) -> None:
    """Have `work` run once, just before the table's next commit lands."""
    table._handle.head = _Interrupted(table._handle.head, work)
