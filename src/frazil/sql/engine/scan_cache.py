"""Planned scans of tables, as SQL that any connection can run, for the next query that needs them.

Queries differ more than the parts of tables they read. What a table's plan gives depends on the
state of the table, the filter and the columns alone, so it is made once for all queries, and for
all uses within one: the engine then sees that they are the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING, Final

from frazil.rows.duckdb.duckdb_scan import ScanSql, scan_sql
from frazil.rows.planned import Planned
from frazil.sql.name_resolution import ResolvedTable
from frazil.value_classes import dataclass, field

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BYTES: Final = 16 << 20
_SCAN_BYTES: Final = 16 << 10
_FILE_BYTES: Final = 2 << 10

Key = tuple[object, str, tuple[str, ...] | None]
"""The state of a table, a filter as text, and the columns if they are not the table's own."""


def state_of(meant: object) -> object | None:
    """What tells the state of a table from all others; None for what is not a table's rows."""
    if not isinstance(meant, ResolvedTable) or meant.metadata or meant.changes or meant.as_of:
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
class PlannedScan:
    """A planned scan and its text, which is made when it is needed."""

    planned: Planned
    folders: tuple[str, ...] | None = None
    """Those that its connection may open files in, if not everywhere."""

    keys: dict[str, pa.ChunkedArray] = field(default_factory=dict)
    """Distinct values of columns among the rows that the filter lets through, once asked for."""

    @cached_property
    def scan(self) -> ScanSql:
        """All rows of the files planned."""
        return scan_sql(self.planned, filtered=False, inline=True, folders=self.folders)

    @property
    def is_shared(self) -> bool:
        """Whether connections can share it: it holds no rows and no open files."""
        return not self.scan.relations and self.scan.files is None

    @property
    def size(self) -> int:
        """About how many bytes it holds on to."""
        bits = sum(map(len, self.scan.bitmaps.values()))
        keys: int = sum(values.nbytes for values in list(self.keys.values()))
        return _SCAN_BYTES + self.planned.num_files * _FILE_BYTES + bits + keys


class ScanCache:
    """The latest scans of a catalog. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, tuple[PlannedScan, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, key: Key) -> PlannedScan | None:
        """The scan that was kept, if it still is."""
        with self._lock:
            if key not in self._known:
                return None
            self._known.move_to_end(key)
            return self._known[key][0]

    def keep(self, key: Key, scan: PlannedScan) -> None:
        """Keep a scan, if connections can share it and it is not too large. One that is kept is
        measured again: it may know more keys."""
        size = scan.size
        if not scan.is_shared or size > MAX_BYTES // 4:
            return
        with self._lock:
            _, before = self._known.pop(key, (None, 0))
            self._known[key] = scan, size
            self._size += size - before
            while self._size > MAX_BYTES:
                _, (_, freed) = self._known.popitem(last=False)
                self._size -= freed

    def __len__(self) -> int:
        return len(self._known)
