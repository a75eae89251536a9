"""The connection one statement runs on, and what was made known to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.expressions import BooleanExpression

from frazil.data import verified
from frazil.rows.duckdb_scan import ScanSql
from frazil.rows.scan import Scan
from frazil.scan.report import ScanReport
from frazil.sql.name_resolution import AsOf, Names
from frazil.sql.ready_scans import Key, ReadyScan, ReadyScans
from frazil.table.table import Table

if TYPE_CHECKING:
    import duckdb

MOST_FOOTERS: Final = 4_096
"""Footers of a scan of more files are not kept; each takes about 70 KB."""
_numbers = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What planning one table of a query did."""

    name: str
    filter: str
    report: ScanReport


@dataclass(slots=True)
class SqlEngine:
    """The connection of a statement."""

    connection: duckdb.DuckDBPyConnection
    names: Names
    given: Mapping[str, Any]
    scan: Callable[[Table, BooleanExpression, AsOf | None, Sequence[str] | None], Scan]
    is_shared: bool = False
    is_written: bool = False
    """Whether what queries give is written into tables."""
    scans: ReadyScans | None = None
    """Scans of other statements, where tables are as they are for everybody."""
    own: dict[Key, ReadyScan] = field(default_factory=dict)
    """Scans of this statement."""
    bound: list[ScanSql] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    pruned: list[Pruned] = field(default_factory=list)
    open_views: list[str] = field(default_factory=list)
    """The views that are being bound, the outermost first."""
    is_idle: bool = True
    """Whether no rows are being read, and none failed to be."""

    def view(self, name: str) -> str:
        """A new name for a view, which stands for this one in messages."""
        made = f"frazil_{next(_numbers)}"
        self.shown[made] = name
        return made

    def bind(self, made: ScanSql) -> None:
        """Make the connection know a scan, of which a statement may have several uses."""
        if not any(made is each for each in self.bound):
            made.bind(self.connection)
            self.bound.append(made)
            # Files of a storage have another name for every scan, so that no other would find their
            # footers; those of many files would take the memory of everything else.
            if made.files is not None or made.num_files > MOST_FOOTERS:
                self.connection.execute("SET SESSION parquet_metadata_cache = false")

    def verify(self) -> None:
        """Refuse damaged files of the tables that are about to be read."""
        for each in self.bound:
            each.verify(most_bytes=verified.QUERY_BYTES)

    def hand_over(self) -> None:
        """Hand the connection over to the owner of a relation on it."""
        self.is_shared = True
        self.bound.clear()

    def release(self) -> None:
        """Let go of files and relations."""
        import duckdb

        with suppress(duckdb.Error):  # the catalog, and the database with it, may be closed
            for each in self.bound:
                if self.is_shared:
                    each.release(self.connection)
                else:  # all else ends with the connection
                    each.release_files(self.connection)
            if not self.is_shared:
                self.connection.close()
        self.bound.clear()
