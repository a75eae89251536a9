"""Avro records read in step: one numpy operation per field, over every record at once.

Avro is a row format without an index, yet a manifest's records all have the same fields. Given
where each record starts, the field that every record is at can be read for all of them together;
then all move on to the next field. A `Walker` does this for one `Stretch` of decompressed blocks:
it reads numbers, steps over them, and keeps what was wanted. Which fields there are is for the
steps (`frazil.avro.field_steps`). Nothing here knows about containers, codecs or Iceberg.

A record that runs off its data (corrupt, or a wrong guess of where a record starts) is *poisoned*:
its position is clamped into a padding of zeros, where every further step is harmless, and it ends
past `Walker.length`. The caller tells poisoned records by their end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil.value_classes import dataclass, field

Longs = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Path = tuple[int, ...]
"""Field ids from the record down; inside a map the key, inside a list of records the index."""

PADDING: Final = 64
_WORD: Final = 64
_WORD_SHIFT: Final = 6
_LAST_VARINT_SHIFT: Final = 63


@dataclass(slots=True, eq=False)
class Captured:
    """Values of one leaf, by record: numbers, or where in the stretch the bytes lie."""

    values: np.ndarray[Any, Any]
    valid: Bools
    lengths: Longs | None = None
    """Given for strings and bytes, whose `values` are offsets, and for lists."""


@dataclass(slots=True, eq=False)
class Stretch:
    """Decompressed bytes, padded, with an index of where numbers end that is made when needed."""

    data: bytes
    buffer: np.ndarray[Any, np.dtype[np.uint8]] = field(init=False)
    _ends: Longs | None = field(init=False, default=None)
    _words: np.ndarray[Any, np.dtype[np.uint64]] = field(init=False)
    _before: Longs = field(init=False)

    def __post_init__(self) -> None:
        spare = -(len(self.data) + PADDING) % _WORD
        self.buffer = np.frombuffer(self.data + bytes(PADDING + spare), dtype=np.uint8)

    def ends(self) -> Longs:
        """The last byte of every number, were the whole stretch numbers."""
        if self._ends is None:
            last = self.buffer < 0x80
            self._ends = np.flatnonzero(last)
            self._words = np.packbits(last, bitorder="little").view("<u8")
            counts = np.bitwise_count(self._words).astype(np.int64)
            self._before = np.cumsum(counts) - counts
        return self._ends

    def rank(self, position: Longs) -> Longs:
        """How many numbers end before each position: its index in `ends`."""
        self.ends()
        word = position >> _WORD_SHIFT
        below = (np.uint64(1) << (position & (_WORD - 1)).astype(np.uint64)) - np.uint64(1)
        within = np.bitwise_count(self._words[word] & below)
        return np.asarray(self._before[word] + within, dtype=np.int64)


@dataclass(slots=True, eq=False)
class Walker:
    """Records of a stretch walked together, and what has been captured from them."""

    stretch: Stretch
    count: int
    captured: dict[Path, Captured] = field(init=False, default_factory=dict)
    buffer: np.ndarray[Any, np.dtype[np.uint8]] = field(init=False)
    length: int = field(init=False)
    poison: int = field(init=False)
    """Where records go that ran off their data."""

    def __post_init__(self) -> None:
        self.buffer = self.stretch.buffer
        self.length = len(self.stretch.data)
        self.poison = self.length + 1

    def clamp(self, position: Longs, bad: Bools | None = None) -> Longs:
        """The positions, poisoned where bad or past the data."""
        if bad is not None and bad.any():
            position = np.where(bad, self.poison, position)
        return np.minimum(position, self.poison)

    def varint(self, position: Longs) -> tuple[Longs, Longs]:
        """The zigzag number at each position, and where the next field starts."""
        byte = self.buffer[position]
        if not byte.size or np.maximum.reduce(byte) < 0x80:
            small = byte.astype(np.int64)
            return (small >> 1) ^ -(small & 1), np.minimum(position + 1, self.poison)
        value = (byte & 0x7F).astype(np.uint64)
        at = position.copy()
        more = np.flatnonzero(byte >= 0x80)
        shift = 7
        while more.size and shift <= _LAST_VARINT_SHIFT:
            at[more] += 1
            byte = self.buffer[np.minimum(at[more], self.poison)]
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            more = more[byte >= 0x80]
            shift += 7
        at += 1
        at[more] = self.poison
        number = (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)
        return number, np.minimum(at, self.poison)

    def skip_varints(self, position: Longs, count: Longs | int) -> Longs:
        """Where the field after `count` numbers starts."""
        # `rank` counts the numbers that end before a position: the last of the next `count` ends
        # that many further on.
        ends = self.stretch.ends()
        last = self.stretch.rank(position) + count - 1
        after: Longs = ends[np.minimum(last, len(ends) - 1)] + 1
        return np.minimum(after, self.poison)

    def varint_starts(self, position: Longs, count: Longs) -> tuple[Longs, Longs]:
        """Where each of `count` numbers starts, records after one another; and their record."""
        # A varint ends at a byte without the high bit; the next one starts right after. So the
        # starts of a record's numbers are the ends before them, except its first: `position`.
        ends = self.stretch.ends()
        record = np.repeat(np.arange(len(position)), count)
        first = np.cumsum(count) - count
        before = np.arange(len(record)) + (self.stretch.rank(position) - 1 - first)[record]
        starts = ends[np.clip(before, 0, len(ends) - 1)] + 1
        leading = count > 0
        starts[first[leading]] = position[leading]
        return np.minimum(starts, self.poison), record

    def capture(
        self, path: Path, rows: Longs, values: np.ndarray[Any, Any], lengths: Longs | None = None
    ) -> None:
        """Keep the values of a leaf for the records `rows`."""
        column = self.captured.get(path)
        if column is None:
            # As many rows as records are not all of them when a map names a key twice.
            if len(rows) == self.count and (rows == np.arange(self.count)).all():
                valid = np.ones(self.count, dtype=np.bool_)
                self.captured[path] = Captured(values, valid, lengths)
                return
            column = Captured(
                np.zeros((self.count, *values.shape[1:]), dtype=values.dtype),
                np.zeros(self.count, dtype=np.bool_),
                None if lengths is None else np.zeros(self.count, dtype=np.int64),
            )
            self.captured[path] = column
        column.values[rows] = values
        column.valid[rows] = True
        if column.lengths is not None and lengths is not None:
            column.lengths[rows] = lengths


def text_array(walker: Walker, column: Captured, type_: pa.DataType) -> pa.Array:
    """Captured strings or bytes as an Arrow array of `pa.string()` or `pa.binary()`.

    The values lie in the stretch in record order, so one offsets array that alternates values and
    gaps describes them where they are; taking every other element then copies the values only.
    """
    lengths = column.lengths
    assert lengths is not None
    # A null has an empty value where the one before it ended, so that offsets never fall.
    starts = np.where(column.valid, column.values, 0)
    ends = np.where(column.valid, column.values + lengths, 0)
    floor = np.concatenate(([0], np.maximum.accumulate(ends)[:-1]))
    starts, ends = np.where(column.valid, starts, floor), np.where(column.valid, ends, floor)
    offsets = np.empty(2 * len(starts) + 1, dtype=np.int32)
    offsets[0], offsets[1::2], offsets[2::2] = 0, starts, ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(walker.stretch.data)]
    alternating = pa.Array.from_buffers(type_, 2 * len(starts), buffers)
    # Elements 0, 2, 4 … are the gaps between values; 1, 3, 5 … are the values.
    index = pa.array(np.arange(1, 2 * len(starts), 2), mask=~column.valid)
    return alternating.take(index)


def list_array(walker: Walker, column: Captured, later: Sequence[Captured]) -> pa.Array:
    """Captured lists of numbers as an Arrow list array; `later` holds further runs of lists."""
    parts = [column, *later]
    counts = [_counts(part) for part in parts]
    values, owners = [], []
    for part, count in zip(parts, counts, strict=True):
        starts, record = walker.varint_starts(part.values, count)
        number, _ = walker.varint(starts)
        values.append(number)
        owners.append(record)
    flat = np.concatenate(values)
    if later:  # a list in several blocks: stable, so its numbers keep their order
        flat = flat[np.argsort(np.concatenate(owners), kind="stable")]
    total = np.sum(counts, axis=0)
    offsets = np.concatenate(([0], np.cumsum(total))).astype(np.int32)
    mask = None if column.valid.all() else pa.array(~column.valid)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, pa.int64()), mask=mask)


def _counts(column: Captured) -> Longs:
    assert column.lengths is not None
    return np.where(column.valid, column.lengths, np.int64(0))
