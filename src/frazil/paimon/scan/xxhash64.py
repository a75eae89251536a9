"""XXH64 of some bytes, seed 0, as Paimon's Bloom filters hash text."""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def xxhash64(data: bytes) -> int:
    """The hash as an unsigned number of 64 bits."""
    length, at = len(data), 0
    if length >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while at + 32 <= length:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        turned = (_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        state = sum(turned) & _MASK
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        state = _P5
    state = (state + length) & _MASK
    while at + 8 <= length:
        (word,) = struct.unpack_from("<Q", data, at)
        state = (_rotated(state ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= length:
        (half,) = struct.unpack_from("<I", data, at)
        state = (_rotated(state ^ (half * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        state = (_rotated(state ^ (byte * _P5 & _MASK), 11) * _P1) & _MASK
    state = ((state ^ (state >> 33)) * _P2) & _MASK
    state = ((state ^ (state >> 29)) * _P3) & _MASK
    return state ^ (state >> 32)


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK
