"""Mumbling v1: the inline bitmaps of a manifest entry, and set algebra on positions.

Knows how up to 2,097,152 positions become the bytes of `manifest_info.dv`,
`tracking.deleted_positions` and `tracking.replaced_positions`. Does not know which of them it
holds, nor anything about deletion vectors of data files (`puffin`).

Positions are strictly ascending int64 arrays. Everything works on whole arrays: a leaf with a
million dead entries is encoded or decoded in a few milliseconds.

    header       version 0x01 · cardinality (3 bytes) · container count (2 bytes), little endian
    descriptors  one per 256 positions, PFOR-coded: 0-31 = sparse with that many, 32 = dense
    containers   sparse: ascending low bytes; dense: 32 bytes, most significant bit first
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from frazil.errors import FormatError, InvalidInput
from frazil.format.vectors import pfor

VERSION = 1
HEADER_BYTES = 6
CONTAINER_POSITIONS = 256
DENSE = 32
MAX_CONTAINERS = 8192
MAX_POSITIONS = MAX_CONTAINERS * CONTAINER_POSITIONS

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def encode(positions: npt.NDArray[np.integer]) -> bytes:
    """The bitmap of strictly ascending `positions`, each below 2,097,152."""
    _check_encodable(positions)
    containers = (int(positions[-1]) >> 8) + 1 if len(positions) else 0
    flags = np.zeros((containers, CONTAINER_POSITIONS), np.bool_)
    flags.reshape(-1)[positions] = True
    bits = np.packbits(flags, axis=1)
    counts = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    dense = counts >= DENSE
    descriptors = np.minimum(counts, DENSE).astype(np.uint8)

    payload = np.empty(int(descriptors.sum()), np.uint8)
    byte_in_dense = np.repeat(dense, descriptors)
    payload[byte_in_dense] = bits[dense].reshape(-1)
    payload[~byte_in_dense] = np.flatnonzero(flags[~dense]).astype(np.uint8)
    return b"".join(
        (
            _header(cardinality=len(positions), containers=containers),
            pfor.encode(descriptors),
            payload.tobytes(),
        )
    )


def decode(
    data: bytes,
    *,
    limit: int | None = None,
    path: str | None = None,
    field: str | None = None,
) -> Positions:
    """The positions of a bitmap, ascending.

    `limit` is the leaf's record_count: a position at or past it is refused. `path` and `field`
    name the manifest and the column in the error.
    """
    try:
        return _decode(data, limit)
    except FormatError as error:
        raise FormatError(error.problem, path=path, field=field or "bitmap") from None


def cardinality(data: bytes, *, path: str | None = None, field: str | None = None) -> int:
    """How many positions a bitmap holds, from its header alone."""
    try:
        return _read_header(data)[0]
    except FormatError as error:
        raise FormatError(error.problem, path=path, field=field or "bitmap") from None


def as_positions(values: Iterable[int] | npt.NDArray[np.integer]) -> Positions:
    """Any collection of positions as an ascending array without duplicates."""
    array = values if isinstance(values, np.ndarray) else np.fromiter(values, np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidInput(f"positions are {array.dtype}; expected integers")
    array = array.astype(np.int64, copy=False)
    return array if _ascends(array) else np.unique(array)


def union(left: Positions, right: Positions) -> Positions:
    """Positions in either array."""
    if len(left) == 0 or len(right) == 0:
        return right if len(left) == 0 else left
    # A stable sort merges two ascending runs in linear time.
    merged = np.sort(np.concatenate((left, right)), kind="stable")
    keep = np.append(True, merged[1:] != merged[:-1])
    both: Positions = merged[keep]
    return both


def difference(left: Positions, right: Positions) -> Positions:
    """Positions in `left` that are not in `right`."""
    return left[~contains(right, left)]


def contains(positions: Positions, candidates: Positions) -> Mask:
    """For each candidate, whether it is among `positions`. Candidates may come in any order."""
    if len(positions) == 0:
        return np.zeros(len(candidates), np.bool_)
    if int(positions[-1] - positions[0]) < 8 * (len(positions) + len(candidates)):
        return np.isin(candidates, positions, kind="table")
    nearest = np.searchsorted(positions, candidates)
    nearest[nearest == len(positions)] = 0
    is_deleted: Mask = positions[nearest] == candidates
    return is_deleted


def _header(*, cardinality: int, containers: int) -> bytes:
    return bytes((VERSION,)) + cardinality.to_bytes(3, "little") + containers.to_bytes(2, "little")


def _check_encodable(positions: npt.NDArray[np.integer]) -> None:
    if positions.dtype.kind not in "iu" or positions.ndim != 1:
        raise InvalidInput(f"positions are a {positions.ndim}-d {positions.dtype} array")
    if len(positions) == 0:
        return
    if not _ascends(positions):
        raise InvalidInput("positions are not strictly ascending")
    first, last = int(positions[0]), int(positions[-1])
    if first < 0 or last >= MAX_POSITIONS:
        raise InvalidInput(
            f"positions reach from {first} to {last}; a bitmap holds 0 to {MAX_POSITIONS - 1}"
        )


def _ascends(positions: npt.NDArray[np.integer]) -> bool:
    return bool(np.all(positions[1:] > positions[:-1]))


def _read_header(data: bytes) -> tuple[int, int]:
    if len(data) < HEADER_BYTES:
        raise FormatError(f"has {len(data)} bytes; the header alone needs {HEADER_BYTES}")
    if data[0] != VERSION:
        raise FormatError(
            f"has version {data[0]}; expected {VERSION}. It may come from a newer writer."
        )
    containers = int.from_bytes(data[4:6], "little")
    if containers > MAX_CONTAINERS:
        raise FormatError(f"has {containers} containers; expected at most {MAX_CONTAINERS}")
    return int.from_bytes(data[1:4], "little"), containers


def _decode(data: bytes, limit: int | None) -> Positions:
    expected, containers = _read_header(data)
    descriptors, payload_at = pfor.decode(data, containers, offset=HEADER_BYTES)
    if containers and int(descriptors.max()) > DENSE:
        at = int(np.argmax(descriptors > DENSE))
        raise FormatError(f"container {at} has descriptor {descriptors[at]}; expected 0 to {DENSE}")
    end = payload_at + int(descriptors.sum())
    if end != len(data):
        raise FormatError(f"has {len(data)} bytes; header and descriptors call for {end}")

    payload = np.frombuffer(data, np.uint8, offset=payload_at)
    dense = descriptors == DENSE
    byte_in_dense = np.repeat(dense, descriptors)
    bases = np.arange(0, containers * CONTAINER_POSITIONS, CONTAINER_POSITIONS)
    sparse = np.repeat(bases[~dense], descriptors[~dense]) + payload[~byte_in_dense]
    if not _ascends(sparse):
        raise FormatError("a sparse container is not strictly ascending")
    positions: Positions = sparse
    if dense.any():
        flags = np.zeros(containers * CONTAINER_POSITIONS, np.bool_)
        bits = np.unpackbits(payload[byte_in_dense]).view(np.bool_)
        flags.reshape(containers, -1)[dense] = bits.reshape(-1, CONTAINER_POSITIONS)
        flags[sparse] = True
        positions = np.flatnonzero(flags)

    if len(positions) != expected:
        raise FormatError(f"holds {len(positions)} positions; its header says {expected}")
    if limit is not None and expected and positions[-1] >= limit:
        raise FormatError(f"holds position {positions[-1]}; the manifest has {limit} entries")
    return positions
