"""Queries that were bound before, each with the connection that knows its tables.

To find the tables and conditions of a query, to plan its scans and to tell the engine about them
takes longer than the engine needs for a query of few rows. What was bound stays valid for as long
as the same names mean the same states of the same tables, which is looked up for every query. An
engine is lent to one query at a time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from frazil.errors import FrazilError
from frazil.sql.name_resolution import Names
from frazil.sql.ready_scans import ReadyScans, state_of
from frazil.sql.rewriting import Edit, EngineText
from frazil.sql.sql_engine import SqlEngine
from frazil.sql.text import Part, Source

MOST_QUERIES: Final = 32
_MOST_FILES: Final = 4_096
_MOST_BITMAP_BYTES: Final = 4 << 20

Key = tuple[str, tuple[Part, ...], tuple[Edit, ...], tuple[str, ...]]


def key_of(source: Source, parts: Sequence[Part], parameters: Sequence[Edit], names: Names) -> Key:
    """What tells a query from others: its text and place, its values, and its namespace."""
    return source.text, tuple(parts), tuple(parameters), names.namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A bound query."""

    engine: SqlEngine
    ran: EngineText
    tables: tuple[tuple[tuple[str, ...], object], ...]
    """The names of its tables and the states they were bound to."""
    has_arrow_types: bool
    """Whether its columns are of types that Arrow has."""

    def is_current(self, names: Names) -> bool:
        """Whether every name still means the state that was bound."""
        try:
            return all(state_of(names.find(parts)) == state for parts, state in self.tables)
        except FrazilError:  # binding it again says what is wrong
            return False

    def is_small(self) -> bool:
        """Whether it may be kept: it holds no rows and no open files, and not too many names."""
        bound = self.engine.bound
        files = sum(each.num_files for each in bound)
        bits = sum(len(bits) for each in bound for bits in each.bitmaps.values())
        return (
            files <= _MOST_FILES
            and bits <= _MOST_BITMAP_BYTES
            and not any(each.relations or each.files for each in bound)
        )


class ReadyQueries:
    """The latest queries of a catalog. Safe to share between threads."""

    def __init__(self) -> None:
        self.scans = ReadyScans()
        self._idle: OrderedDict[Key, Ready] = OrderedDict()
        # A query comes back when it is garbage, which may be found while this thread is in here.
        self._lock = threading.RLock()
        self._is_closed = False

    def take(self, key: Key, names: Names) -> Ready | None:
        """A query for the only use of the caller, who gives it back; None if it must be bound."""
        with self._lock:
            found = self._idle.pop(key, None)
        if found is None or found.is_current(names):
            return found
        found.engine.release()
        return None

    def give_back(self, key: Key, ready: Ready) -> None:
        """Keep a query for the next one that is the same, unless its connection is not free."""
        spare = ready
        if ready.engine.is_idle and not ready.engine.is_shared:
            with self._lock:
                if not self._is_closed and key not in self._idle:
                    self._idle[key] = ready
                    if len(self._idle) <= MOST_QUERIES:
                        return
                    _, spare = self._idle.popitem(last=False)
        spare.engine.release()

    def close(self) -> None:
        """Let go of all of them."""
        with self._lock:
            idle, self._is_closed = list(self._idle.values()), True
            self._idle.clear()
        for each in idle:
            each.engine.release()

    def __len__(self) -> int:
        return len(self._idle)
