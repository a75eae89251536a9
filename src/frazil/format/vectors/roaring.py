"""64-bit roaring bitmaps in the portable layout, the payload of a deletion vector.

Knows the bytes: a count of 32-bit bitmaps, each after its 4-byte key, little endian. Does not know
the framing around the bitmap (`puffin`).

Writes through pyroaring. Reads by itself, so that corrupt bytes are told apart and named instead of
refused without a reason, or taken.
"""

from __future__ import annotations

import struct
from array import array

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from frazil.errors import FormatError, InvalidInput
from frazil.limits import DEFAULT, Limits

# Iceberg indexes the 32-bit bitmaps with a signed int.
MAX_KEY = 0x7FFF_FFFE
MAX_POSITION = MAX_KEY << 32 | 0x8000_0000

_COOKIE_WITHOUT_RUNS = 12346
_COOKIE_WITH_RUNS = 12347
_OFFSETS_FROM_CONTAINERS = 4
_MAX_CONTAINERS = 1 << 16
_MAX_ARRAY = 4096
_BITSET_BYTES = 8192

Positions = npt.NDArray[np.int64]


def encode(positions: npt.NDArray[np.integer]) -> bytes:
    """The bitmap of strictly ascending, non-negative `positions`."""
    if positions.dtype.kind not in "iu" or positions.ndim != 1:
        raise InvalidInput(f"positions are a {positions.ndim}-d {positions.dtype} array")
    if len(positions) and not 0 <= int(positions[0]) <= int(positions[-1]) <= MAX_POSITION:
        raise InvalidInput(
            f"positions reach from {positions[0]} to {positions[-1]}; expected 0 to {MAX_POSITION}"
        )
    if np.any(positions[1:] <= positions[:-1]):
        raise InvalidInput("positions are not strictly ascending")
    keys, starts = np.unique(positions.astype(np.int64) >> 32, return_index=True)
    ends = np.append(starts, len(positions))[1:]
    parts = [struct.pack("<Q", len(keys))]
    for key, start, end in zip(keys.tolist(), starts.tolist(), ends.tolist(), strict=True):
        lows = positions[start:end].astype(np.uint32)
        bitmap = BitMap(array("I", lows.tobytes()))
        bitmap.run_optimize()
        parts.append(struct.pack("<I", key))
        parts.append(bitmap.serialize())
    return b"".join(parts)


def decode(data: bytes, *, limit: int | None = None, limits: Limits = DEFAULT) -> Positions:
    """The positions of a bitmap that fills `data`; one at or past `limit` is refused.

    How many there are is counted before any is expanded, and held against `limits`.
    """
    (count,) = _unpack("<Q", data, 0)
    offset = 8
    previous = -1
    parts: list[Positions] = []
    before = 0
    for _ in range(count):
        (key,) = _unpack("<I", data, offset)
        if not previous < key <= MAX_KEY:
            raise FormatError(f"has key {key} after {previous}; expected ascending to {MAX_KEY}")
        positions, offset = decode_32(
            data, offset=offset + 4, base=key << 32, limit=limit, limits=limits, before=before
        )
        parts.append(positions)
        before += len(positions)
        previous = key
    if offset != len(data):
        raise FormatError(f"has {len(data)} bytes; its content ends at {offset}")
    return _joined(parts)


def decode_32(
    data: bytes,
    *,
    offset: int = 0,
    base: int = 0,
    limit: int | None = None,
    limits: Limits = DEFAULT,
    before: int = 0,
) -> tuple[Positions, int]:
    """One 32-bit bitmap at `offset`, its values raised by `base`, and the offset just after it.

    `before` positions of the same vector have been expanded already.
    """
    start = offset
    keys, counts, is_run, has_offsets, offset = _containers(data, start)
    # Checked before anything is expanded: runs can stand for far more values than bytes.
    if limit is not None and len(keys) and base + (keys[-1] << 16) >= limit:
        raise FormatError(f"holds position {base + (keys[-1] << 16)} or more; limit is {limit}")
    limits.check_positions(before + int(counts.sum()))
    listed: npt.NDArray[np.uint32] | None = None
    if has_offsets:
        _require(data, offset, 4 * len(keys))
        listed = np.frombuffer(data, "<u4", len(keys), offset)
        offset += 4 * len(keys)

    parts: list[Positions] = []
    for at, (key, count, run) in enumerate(
        zip(keys.tolist(), counts.tolist(), is_run.tolist(), strict=True)
    ):
        if listed is not None and listed[at] != offset - start:
            raise FormatError(
                f"container {at} is listed at byte {listed[at]}; expected {offset - start}"
            )
        decode_container = _run if run else _array if count <= _MAX_ARRAY else _bitset
        lows, offset = decode_container(data, offset, count)
        parts.append(lows + (base + (key << 16)))
    positions = _joined(parts)
    if limit is not None and len(positions) and positions[-1] >= limit:
        raise FormatError(f"holds position {positions[-1]}; limit is {limit}")
    return positions, offset


def _containers(
    data: bytes, offset: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_], bool, int]:
    """Keys, cardinalities and run flags of the containers, whether their offsets follow, where."""
    (cookie,) = _unpack("<I", data, offset)
    offset += 4
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count = (cookie >> 16) + 1
        flag_bytes = (count + 7) // 8
        _require(data, offset, flag_bytes)
        flags = np.frombuffer(data, np.uint8, flag_bytes, offset)
        is_run = np.unpackbits(flags, count=count, bitorder="little").view(np.bool_)
        has_offsets = count >= _OFFSETS_FROM_CONTAINERS
        offset += flag_bytes
    elif cookie == _COOKIE_WITHOUT_RUNS:
        (count,) = _unpack("<I", data, offset)
        if count > _MAX_CONTAINERS:
            raise FormatError(f"has {count} containers; expected at most {_MAX_CONTAINERS}")
        is_run = np.zeros(count, np.bool_)
        has_offsets = True
        offset += 4
    else:
        raise FormatError(f"starts with cookie {cookie}; expected 12346 or 12347")
    _require(data, offset, 4 * count)
    described = np.frombuffer(data, "<u2", 2 * count, offset).astype(np.int64).reshape(count, 2)
    keys = described[:, 0]
    if np.any(keys[1:] <= keys[:-1]):
        raise FormatError("container keys are not strictly ascending")
    return keys, described[:, 1] + 1, is_run, has_offsets, offset + 4 * count


def _array(data: bytes, offset: int, count: int) -> tuple[Positions, int]:
    _require(data, offset, 2 * count)
    lows = np.frombuffer(data, "<u2", count, offset).astype(np.int64)
    if np.any(lows[1:] <= lows[:-1]):
        raise FormatError(f"the array container at byte {offset} is not strictly ascending")
    return lows, offset + 2 * count


def _bitset(data: bytes, offset: int, count: int) -> tuple[Positions, int]:
    _require(data, offset, _BITSET_BYTES)
    words = np.frombuffer(data, np.uint8, _BITSET_BYTES, offset)
    lows = np.flatnonzero(np.unpackbits(words, bitorder="little").view(np.bool_))
    if len(lows) != count:
        raise FormatError(
            f"the bit set at byte {offset} has {len(lows)} bits; its descriptor says {count}"
        )
    return lows, offset + _BITSET_BYTES


def _run(data: bytes, offset: int, count: int) -> tuple[Positions, int]:
    (runs,) = _unpack("<H", data, offset)
    _require(data, offset + 2, 4 * runs)
    pairs = np.frombuffer(data, "<u2", 2 * runs, offset + 2).astype(np.int64).reshape(runs, 2)
    starts, lengths = pairs[:, 0], pairs[:, 1] + 1
    ends = starts + lengths
    if np.any(starts[1:] < ends[:-1]) or (runs and ends[-1] > 1 << 16):
        raise FormatError(f"runs at byte {offset} overlap or leave their container")
    if int(lengths.sum()) != count:
        raise FormatError(
            f"runs at byte {offset} cover {lengths.sum()} values; their descriptor says {count}"
        )
    before = np.cumsum(lengths) - lengths
    lows = np.arange(count) + np.repeat(starts - before, lengths)
    return lows, offset + 2 + 4 * runs


def _joined(parts: list[Positions]) -> Positions:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _unpack(layout: str, data: bytes, offset: int) -> tuple[int, ...]:
    _require(data, offset, struct.calcsize(layout))
    return struct.unpack_from(layout, data, offset)


def _require(data: bytes, offset: int, size: int) -> None:
    if offset + size > len(data):
        raise FormatError(f"ends at byte {len(data)}; {offset + size} are needed")
