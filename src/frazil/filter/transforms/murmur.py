"""Murmur3 (x86, 32 bits, seed 0) over many values at once: the hash behind `bucket[N]`."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from frazil.format.values.murmur128 import Bytes, Positions, rows_of_one_length

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]

_C1: Final = np.uint32(0xCC9E2D51)
_C2: Final = np.uint32(0x1B873593)
_C3: Final = np.uint32(0xE6546B64)


def hash_longs(values: np.ndarray[Any, np.dtype[np.int64]]) -> Words:
    """The hashes of 64-bit integers, each as its eight little-endian bytes."""
    words = np.ascontiguousarray(values, dtype="<i8").view("<u4").reshape(-1, 2)
    hashed = np.zeros(len(words), dtype=np.uint32)
    for column in range(2):
        hashed = _mix(hashed, words[:, column].astype(np.uint32))
    return _finish(hashed, 8)


def hash_bytes(data: Bytes, starts: Positions, lengths: Positions) -> Words:
    """The hashes of byte strings that lie in `data` at `starts`, `lengths` bytes each.

    Strings of one length are hashed together, as the rows of a matrix.
    """
    hashed = np.zeros(len(starts), dtype=np.uint32)
    if not len(starts):
        return hashed
    for rows, matrix in rows_of_one_length(data, starts, lengths):
        hashed[rows] = _hash_rows(matrix)
    return hashed


def _hash_rows(matrix: Bytes) -> Words:
    count, length = matrix.shape
    hashed = np.zeros(count, dtype=np.uint32)
    whole = length // 4
    if whole:
        words = np.ascontiguousarray(matrix[:, : whole * 4]).view("<u4")
        for column in range(whole):
            hashed = _mix(hashed, words[:, column].astype(np.uint32))
    tail = np.zeros(count, dtype=np.uint32)
    for position in range(whole * 4, length):
        shift = np.uint32(8 * (position - whole * 4))
        tail |= matrix[:, position].astype(np.uint32) << shift
    if length % 4:
        hashed ^= _scramble(tail)
    return _finish(hashed, length)


def _scramble(block: Words) -> Words:
    return _rotate(block * _C1, 15) * _C2


def _rotate(words: Words, bits: int) -> Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _mix(hashed: Words, block: Words) -> Words:
    return _rotate(hashed ^ _scramble(block), 13) * np.uint32(5) + _C3


def _finish(hashed: Words, length: int) -> Words:
    hashed = hashed ^ np.uint32(length & 0xFFFFFFFF)
    hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashed ^ (hashed >> np.uint32(16))
