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
from typing import Final

from frazil.errors import FrazilError
from frazil.parser.edits import Edit, EngineText
from frazil.parser.tokens import Part, Source
from frazil.sql.engine.prepared_query import PreparedQuery
from frazil.sql.engine.scan_cache import ScanCache, state_of
from frazil.sql.engine.sql_engine import SqlEngine
from frazil.sql.name_resolution import Names
from frazil.value_classes import frozen

MAX_QUERIES: Final = 32
_MAX_FILES: Final = 4_096
_MAX_BITMAP_BYTES: Final = 4 << 20

Key = tuple[str, tuple[Part, ...], tuple[Edit, ...], tuple[str, ...]]


def key_of(source: Source, parts: Sequence[Part], parameters: Sequence[Edit], names: Names) -> Key:
    """What tells a query from others: its text and place, its values, and its namespace."""
    return source.text, tuple(parts), tuple(parameters), names.namespace


@frozen
class BoundQuery:
    """A bound query."""

    engine: SqlEngine
    ran: EngineText
    tables: tuple[tuple[tuple[str, ...], object], ...]
    """The names of its tables and the states they were bound to."""
    prepared: PreparedQuery

    def is_current(self, names: Names) -> bool:
        """Whether every name still means the state that was bound."""
        try:
            return all(state_of(names.find(parts)) == state for parts, state in self.tables)
        except FrazilError:  # binding it again says what is wrong
            return False

    def is_small(self) -> bool:
        """Whether it may be kept: it holds no rows and no open files, and not too many names."""
        bound = self.engine.bound
        files = sum(scan.num_files for scan in bound)
        bits = sum(len(bits) for scan in bound for bits in scan.bitmaps.values())
        return (
            files <= _MAX_FILES
            and bits <= _MAX_BITMAP_BYTES
            and not any(scan.relations or scan.files for scan in bound)
        )


class QueryCache:
    """The latest queries of a catalog. Safe to share between threads."""

    def __init__(self) -> None:
        self.scans = ScanCache()
        self._idle: OrderedDict[Key, BoundQuery] = OrderedDict()
        # A query comes back when it is garbage, which may be found while this thread is in here.
        self._lock = threading.RLock()
        self._is_closed = False

    def take(self, key: Key, names: Names) -> BoundQuery | None:
        """A query for the only use of the caller, who gives it back; None if it must be bound."""
        with self._lock:
            query = self._idle.pop(key, None)
        if query is None or query.is_current(names):
            return query
        query.engine.release()
        return None

    def give_back(self, key: Key, ready: BoundQuery) -> None:
        """Keep a query for the next one that is the same, unless its connection is not free."""
        spare = ready
        engine = ready.engine
        if engine.is_idle and not engine.is_cancelled and not engine.is_shared:
            with self._lock:
                if not self._is_closed and key not in self._idle:
                    self._idle[key] = ready
                    if len(self._idle) <= MAX_QUERIES:
                        return
                    _, spare = self._idle.popitem(last=False)
        spare.engine.release()

    def clear(self) -> None:
        """Let go of all of them."""
        with self._lock:
            idle = list(self._idle.values())
            self._idle.clear()
        for ready in idle:
            ready.engine.release()

    def close(self) -> None:
        """Let go of all of them, and keep no other."""
        self._is_closed = True
        self.clear()

    def __len__(self) -> int:
        return len(self._idle)
