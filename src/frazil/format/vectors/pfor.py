"""Patched frame-of-reference coding of byte values, as Mumbling bitmaps use it.

Knows one chunk layout (a 3-byte header, packed low bits, then exceptions) and how to pick the
smallest one. Does not know what the values mean: `bitmap` gives it container descriptors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from frazil.errors import FormatError

CHUNK_VALUES = 256
HEADER_BYTES = 3
MAX_BITS = 8

Values = npt.NDArray[np.uint8]

_BIT_LENGTH: npt.NDArray[np.intp] = np.array([value.bit_length() for value in range(256)])
_WIDTHS: npt.NDArray[np.intp] = np.arange(MAX_BITS + 1)


def encode(values: Values) -> bytes:
    """The shortest coding of `values`; among equals, the one with the fewest primary bits."""
    count = len(values)
    if count == 0:
        return b""
    starts = np.arange(0, count, CHUNK_VALUES)
    minimums = np.minimum.reduceat(values, starts)
    lengths = np.diff(np.append(starts, count))
    relative = values - np.repeat(minimums, lengths)
    primary_bits, exception_bits = _choose_bits(relative, lengths)

    parts: list[bytes] = []
    for start, length, minimum, b1, b2 in zip(
        starts.tolist(),
        lengths.tolist(),
        minimums.tolist(),
        primary_bits.tolist(),
        exception_bits.tolist(),
        strict=True,
    ):
        chunk = relative[start : start + length]
        exceptions = np.flatnonzero(chunk >> b1) if b2 else np.empty(0, np.intp)
        parts.append(bytes((b1 | b2 << 4, len(exceptions), minimum)))
        parts.append(_pack(chunk, b1))
        parts.append(exceptions.astype(np.uint8).tobytes())
        parts.append(_pack(chunk[exceptions] >> b1, b2))
    return b"".join(parts)


def decode(data: bytes, count: int, *, offset: int = 0) -> tuple[Values, int]:
    """`count` values that start at `offset` of `data`, and the offset just after them.

    The number of values is not stored with them, so the caller has to know it.
    """
    values = np.empty(count, np.uint8)
    for start in range(0, count, CHUNK_VALUES):
        chunk = values[start : start + CHUNK_VALUES]
        offset = _decode_chunk(data, offset, chunk)
    return values, offset


def _choose_bits(
    relative: Values, lengths: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Per chunk: bits of the primary array, and bits of an exception's remainder."""
    # One histogram of bit lengths per chunk, all of them counted in one pass.
    chunks = len(lengths)
    chunk_of = np.repeat(np.arange(chunks), lengths)
    keys = chunk_of * (MAX_BITS + 1) + _BIT_LENGTH[relative]
    histogram = np.bincount(keys, minlength=chunks * (MAX_BITS + 1)).reshape(chunks, -1)
    widest = MAX_BITS - np.argmax(histogram[:, ::-1] > 0, axis=1)

    # For every width of the primary array: how many values do not fit, and the bytes that takes.
    exceptions = lengths[:, None] - np.cumsum(histogram, axis=1)
    remainder_bits = np.maximum(widest[:, None] - _WIDTHS, 0)
    sizes = (
        _bytes_for(lengths[:, None] * _WIDTHS)
        + exceptions
        + _bytes_for(exceptions * remainder_bits)
    )
    primary = np.argmin(sizes, axis=1)
    return primary, np.maximum(widest - primary, 0)


def _decode_chunk(data: bytes, offset: int, out: Values) -> int:
    count = len(out)
    if offset + HEADER_BYTES > len(data):
        raise FormatError(f"ends at byte {len(data)}, inside the descriptor header at {offset}")
    b1, b2 = data[offset] & 0x0F, data[offset] >> 4
    exceptions, minimum = data[offset + 1], data[offset + 2]
    if b1 + b2 > MAX_BITS:
        raise FormatError(f"descriptors at byte {offset} have {b1} + {b2} bits; expected at most 8")
    if exceptions > (count if b2 else 0):
        raise FormatError(
            f"descriptors at byte {offset} have {exceptions} exceptions of {b2} bits "
            f"among {count} values"
        )
    primary_at = offset + HEADER_BYTES
    patches_at = primary_at + (count * b1 + 7) // 8
    remainders_at = patches_at + exceptions
    end = remainders_at + (exceptions * b2 + 7) // 8
    if end > len(data):
        raise FormatError(f"ends at byte {len(data)}; the descriptors need {end}")

    relative = _unpack(data, primary_at, count, b1)
    if exceptions:
        patches = np.frombuffer(data, np.uint8, exceptions, patches_at)
        if int(patches.max()) >= count or len(np.unique(patches)) != exceptions:
            raise FormatError(
                f"exception offsets at byte {patches_at} repeat or reach past {count} values"
            )
        relative[patches] |= _unpack(data, remainders_at, exceptions, b2) << b1
    if int(relative.max()) + minimum > 0xFF:
        raise FormatError(f"a descriptor at byte {offset} is over 255")
    np.add(relative, minimum, out=out, casting="unsafe")
    return end


def _bytes_for(bits: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    return (bits + 7) // 8


def _pack(values: Values, bits: int) -> bytes:
    """The low `bits` bits of each value, most significant first, padded to a byte."""
    if bits == 0 or len(values) == 0:
        return b""
    if bits == MAX_BITS:
        return values.tobytes()
    return np.packbits(np.unpackbits(values[:, None], axis=1)[:, MAX_BITS - bits :]).tobytes()


def _unpack(data: bytes, offset: int, count: int, bits: int) -> Values:
    if bits == 0:
        return np.zeros(count, np.uint8)
    packed = np.frombuffer(data, np.uint8, (count * bits + 7) // 8, offset)
    if bits == MAX_BITS:
        return packed.copy()
    unpacked = np.zeros((count, MAX_BITS), np.uint8)
    unpacked[:, MAX_BITS - bits :] = np.unpackbits(packed, count=count * bits).reshape(count, bits)
    return np.packbits(unpacked, axis=1).reshape(count)
