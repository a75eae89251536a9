"""Murmur3 (x64, 128 bits), its first 64 bits, over many byte strings at once: what sketches hash
with. The 32-bit hash of partitions is in `frazil.filter.transforms`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

Longs: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Positions: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_C1: Final = np.uint64(0x87C37B91114253D5)
_C2: Final = np.uint64(0x4CF5AD432745937F)
_CHUNK_BYTES: Final = 1 << 24


def hashes(values: pa.Array, seed: int) -> Longs:
    """The hash of every value of a binary array without nulls.

    Values of one length are hashed together, as the rows of a matrix.
    """
    hashed = np.zeros(len(values), dtype=np.uint64)
    if not len(values):
        return hashed
    _, offset_buffer, data_buffer = values.buffers()
    rows = np.arange(values.offset, values.offset + len(values))
    offsets = np.frombuffer(offset_buffer, "<i4").astype(np.int64)
    starts = offsets[rows]
    lengths = offsets[rows + 1] - starts
    data: Bytes = np.zeros(0, np.uint8)
    if data_buffer is not None:
        data = np.frombuffer(data_buffer, np.uint8)
    for chosen, matrix in rows_of_one_length(data, starts, lengths):
        hashed[chosen] = _hash_rows(matrix, seed)
    return hashed


def rows_of_one_length(
    data: Bytes, starts: Positions, lengths: Positions
) -> Iterator[tuple[Positions, Bytes]]:
    """Byte strings of one length as the rows of a matrix, with their places among all; long ones
    in several matrices, so that each stays small."""
    order = np.argsort(lengths, kind="stable")
    distinct, firsts = np.unique(lengths[order], return_index=True)
    ends = np.append(firsts[1:], len(order))
    for length, first, end in zip(distinct.tolist(), firsts.tolist(), ends.tolist(), strict=True):
        step = max(1, _CHUNK_BYTES // max(1, length))
        for begin in range(first, end, step):
            chosen = order[begin : min(begin + step, end)]
            yield chosen, data[starts[chosen][:, None] + np.arange(length)]


def _hash_rows(matrix: Bytes, seed: int) -> Longs:
    count, length = matrix.shape
    first = np.full(count, seed, dtype=np.uint64)
    second = first.copy()
    blocks = length // 16
    if blocks:
        words = np.ascontiguousarray(matrix[:, : blocks * 16]).view("<u8")
        for block in range(blocks):
            first ^= _scramble(words[:, 2 * block], 31, _C1, _C2)
            first = (_rotate(first, 27) + second) * np.uint64(5) + np.uint64(0x52DCE729)
            second ^= _scramble(words[:, 2 * block + 1], 33, _C2, _C1)
            second = (_rotate(second, 31) + first) * np.uint64(5) + np.uint64(0x38495AB5)
    tail = np.zeros((count, 16), dtype=np.uint8)
    tail[:, : length - blocks * 16] = matrix[:, blocks * 16 :]
    rest = tail.view("<u8")
    if length % 16 > 8:
        second ^= _scramble(rest[:, 1], 33, _C2, _C1)
    if length % 16:
        first ^= _scramble(rest[:, 0], 31, _C1, _C2)
    first ^= np.uint64(length)
    second ^= np.uint64(length)
    first = first + second
    second = second + first
    return _finish(first) + _finish(second)


def _scramble(words: Longs, bits: int, by: np.uint64, then: np.uint64) -> Longs:
    return _rotate(words.astype(np.uint64) * by, bits) * then


def _rotate(words: Longs, bits: int) -> Longs:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _finish(words: Longs) -> Longs:
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ (words >> np.uint64(33))
