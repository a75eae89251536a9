"""Column files put into the entries of their data files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.errors import Conflict
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import ColumnFile, column_files_of, with_column_files
from frazil.format.entries.fields import split_stats_key, stats_key
from frazil.format.entries.stats import OFFSETS
from frazil.value_classes import field, frozen


@frozen(eq=False)
class ColumnEdit:
    """A column file for a data file. Its columns are read from it from now on.

    `stats` replace the statistics of `stats_ids`: the columns, and their parts. `replaces` are the
    places of the column files that the new values were computed beside. `leaf`, `position` and
    `first_row_id` are as in a `VectorEdit`.
    """

    location: str
    file: ColumnFile
    replaces: tuple[str, ...]
    stats_ids: frozenset[int]
    stats: Mapping[str, Any] = field(default_factory=dict)
    stats_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    unsorts: frozenset[int] = frozenset()
    """Sort orders that the rows may be out of now."""
    leaf: str | None = None
    position: int | None = None
    first_row_id: int | None = None


def with_columns_edited(entries: EntryBatch, edits: Sequence[Sequence[ColumnEdit]]) -> EntryBatch:
    """Entries after their edits, some for each. Their sequence number is null where there are any:
    that of the commit."""
    files = [_files(held, own) for held, own in zip(column_files_of(entries), edits, strict=True)]
    entries = with_column_files(entries, files)
    for key in _stats_keys(entries, edits):
        entries = entries.with_column(key, _restated(entries, key, edits))
    numbers = entries.pylist("tracking.sequence_number")
    orders = entries.pylist("sort_order_id")
    for row, own in enumerate(edits):
        numbers[row] = None if own else numbers[row]
        orders[row] = None if any(orders[row] in edit.unsorts for edit in own) else orders[row]
    sequence_numbers = arrow_values.array(numbers, pa.int64())
    entries = entries.with_column("tracking.sequence_number", sequence_numbers)
    return entries.with_column("sort_order_id", arrow_values.array(orders, pa.int32()))


def _files(held: Iterable[ColumnFile], edits: Iterable[ColumnEdit]) -> list[ColumnFile]:
    """Column files of an entry: ids that a new one has leave the old ones; what is empty goes."""
    files = list(held)
    for edit in edits:
        gone = set(edit.file.field_ids)
        left = [(file, tuple(id for id in file.field_ids if id not in gone)) for file in files]
        files = [_only(file, ids) for file, ids in left if ids]
        files.append(edit.file)
    return files


def _only(file: ColumnFile, ids: tuple[int, ...]) -> ColumnFile:
    return ColumnFile(
        location=file.location,
        field_ids=ids,
        file_format=file.file_format,
        file_size_in_bytes=file.file_size_in_bytes,
        key_metadata=file.key_metadata,
    )


def _stats_keys(entries: EntryBatch, edits: Sequence[Sequence[ColumnEdit]]) -> list[str]:
    """Statistics that an edit sets or that entries have of an updated column."""
    keys: dict[str, None] = {}
    for own in edits:
        for edit in own:
            keys.update(dict.fromkeys(edit.stats))
            known = (stats_key(id, name) for id in edit.stats_ids for name in OFFSETS)
            keys.update(dict.fromkeys(key for key in known if entries.has(key)))
    return list(keys)


def _restated(
    entries: EntryBatch, key: str, edits: Sequence[Sequence[ColumnEdit]]
) -> pa.ChunkedArray:
    """A statistic of all entries after the edits, in the widest of its types: an entry may be older
    than the promotion of its column."""
    id, _ = split_stats_key(key)
    last = {row: edit for row, own in enumerate(edits) for edit in own if id in edit.stats_ids}
    by_type: dict[pa.DataType, list[int]] = {}
    for row, edit in last.items():
        by_type.setdefault(edit.stats_types.get(key, pa.null()), []).append(row)
    parts = [entries.select((key,))]
    places = np.arange(entries.num_rows)
    at = entries.num_rows
    for kind, rows in by_type.items():
        values = arrow_values.array([last[row].stats.get(key) for row in rows], kind)
        parts.append(EntryBatch.of({key: values}, len(rows)))
        places[rows] = at + np.arange(len(rows))
        at += len(rows)
    return pc.take(EntryBatch.concat(parts).column(key), arrow_values.array(places))


def moved_meanwhile(entries: EntryBatch, edits: Sequence[Sequence[ColumnEdit]]) -> list[Conflict]:
    """Conflicts of edits with column files that came since they were planned."""
    return [
        Conflict(what="columns of the file were updated meanwhile", where=own[0].location)
        for held, own in zip(column_files_of(entries), edits, strict=True)
        if own and {file.location for file in held} != set(own[0].replaces)
    ]


__all__ = ["ColumnEdit", "moved_meanwhile", "with_columns_edited"]
