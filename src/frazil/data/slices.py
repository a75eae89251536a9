"""What a reader needs to know of a data file; planners make it from an entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.format.entries.column_files import ColumnFile
from frazil.value_classes import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileSlice:
    """A data file, or the row groups of it that start in a range of bytes.

    `path` is absolute. `partition` gives values by partition field id. `length` None means to the
    end of the file; a row group belongs to the slice its first byte lies in, so slices that cover
    a file cover each row once. `column_files` have columns that are not read from the file itself;
    their locations are absolute, too.
    """

    path: str
    file_format: str
    record_count: int
    file_size_in_bytes: int
    spec_id: int | None = None
    partition: Mapping[int, Any] = field(default_factory=dict)
    first_row_id: int | None = None
    data_sequence_number: int | None = None
    column_files: tuple[ColumnFile, ...] = ()
    start: int = 0
    length: int | None = None

    def holds(self, offset: int) -> bool:
        """Whether what starts at this byte belongs to the slice."""
        end = None if self.length is None else self.start + self.length
        return self.start <= offset and (end is None or offset < end)
