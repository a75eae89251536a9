"""Planned scans of tables, as SQL that any connection can run, for the next query that needs them.

Queries differ more than the parts of tables they read. What a table's plan gives depends on the
state of the table, the filter and the columns alone, so it is made once for all queries, and for
all uses within one: the engine then sees that they are the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from frazil.rows.duckdb_scan import ScanSql, scan_sql
from frazil.rows.planned import Planned
from frazil.sql.name_resolution import TableMeant

MOST_BYTES: Final = 16 << 20
_SCAN_BYTES: Final = 16 << 10
_FILE_BYTES: Final = 2 << 10

Key = tuple[object, str, tuple[str, ...] | None]
"""The state of a table, a filter as text, and the columns if they are not the table's own."""


def state_of(meant: object) -> object | None:
    """What tells the state of a table from all others; None for what is not a table's rows."""
    if not isinstance(meant, TableMeant) or meant.metadata or meant.changes or meant.as_of:
        return None
    table = meant.table
    state = table._handle.state
    tip = table.current_snapshot()
    return (
        table.name,
        table.branch_name,
        state.metadata.table_uuid,
        state.version,
        state.metadata_location,
        state.metadata.last_updated_ms,
        state.metadata.current_schema_id,
        None if tip is None else tip.snapshot_id,
    )


@dataclass(frozen=True)
class ReadyScan:
    """A planned scan and its text, which is made when it is needed."""

    planned: Planned

    @cached_property
    def made(self) -> ScanSql:
        """All rows of the files planned."""
        return scan_sql(self.planned, filtered=False, inline=True)

    @property
    def is_shared(self) -> bool:
        """Whether connections can share it: it holds no rows and no open files."""
        return not self.made.relations and self.made.files is None

    @property
    def size(self) -> int:
        """About how many bytes it holds on to."""
        bits = sum(map(len, self.made.bitmaps.values()))
        return _SCAN_BYTES + self.planned.num_files * _FILE_BYTES + bits


class ReadyScans:
    """The latest scans of a catalog. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, ReadyScan] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, key: Key) -> ReadyScan | None:
        """The scan that was kept, if it still is."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def keep(self, key: Key, scan: ReadyScan) -> None:
        """Keep a scan, if connections can share it and it is not too large."""
        if not scan.is_shared or scan.size > MOST_BYTES // 4:
            return
        with self._lock:
            if key in self._known:
                return
            self._known[key] = scan
            self._size += scan.size
            while self._size > MOST_BYTES:
                _, old = self._known.popitem(last=False)
                self._size -= old.size

    def __len__(self) -> int:
        return len(self._known)
