"""Puffin files and the `deletion-vector-v1` blobs in them, as Iceberg v3 writes them.

Knows the container (magic, blobs, JSON footer) and the framing of a deletion vector. Does not open
files: it is handed bytes, or something that reads ranges, and hands back values. Which data file a
vector belongs to, and whether its location is relative, is the caller's matter.

    file   PFA1 · blobs · PFA1 · footer JSON · its size (4 bytes) · flags (4) · PFA1
    blob   length (4, big endian) · D1 D3 39 64 · 64-bit roaring bitmap · CRC-32 (4, big endian)
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from frazil.errors import FormatError, InvalidInput
from frazil.format.vectors import roaring
from frazil.limits import DEFAULT, Limits, decompress
from frazil.value_classes import frozen

MAGIC = b"PFA1"
VECTOR_TYPE = "deletion-vector-v1"
VECTOR_MAGIC = bytes.fromhex("d1d33964")
REFERENCED_DATA_FILE = "referenced-data-file"
CARDINALITY = "cardinality"
CREATED_BY = "created-by"

POSITION_FIELD_ID = 2147483645
"""The reserved field id of `_pos`: what a deletion vector is computed from."""
# A vector's snapshot and sequence number are inherited from the entry that refers to it.
_INHERITED = -1
_TRAILER_BYTES = 12
_SMALLEST_FILE = len(MAGIC) + len(MAGIC) + _TRAILER_BYTES
_FOOTER_COMPRESSED = 1
_TAIL_BYTES = 16 * 1024

Positions = npt.NDArray[np.int64]


class ByteRanges(Protocol):
    """Something that reads byte ranges, such as an open file of `frazil.storage`."""

    @property
    def size(self) -> int: ...

    def read_at(self, offset: int, n: int, /) -> bytes: ...


@frozen
class StoredVector:
    """A deletion vector in storage: a range of the Puffin file at `location`."""

    location: str
    offset: int
    size_in_bytes: int
    cardinality: int


@frozen
class Blob:
    """One blob as the footer describes it."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None
    properties: Mapping[str, str]


@frozen
class NewBlob:
    """A blob to be written."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    data: bytes
    properties: Mapping[str, str]


@frozen
class Footer:
    """What a Puffin file says about itself."""

    blobs: tuple[Blob, ...]
    properties: Mapping[str, str]

    def vectors(self, *, path: str) -> tuple[tuple[str, StoredVector], ...]:
        """Data files, as the blobs spell them, and their deletion vectors in this file, which is at
        `path`; blobs of other types are passed over."""
        return tuple(
            _vector_blob(blob, f"blobs[{at}]", path)
            for at, blob in enumerate(self.blobs)
            if blob.type == VECTOR_TYPE
        )


def encode_vector(positions: npt.NDArray[np.integer]) -> bytes:
    """The framed blob of strictly ascending `positions`."""
    body = VECTOR_MAGIC + roaring.encode(positions)
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def decode_vector(blob: bytes, *, limit: int | None = None, limits: Limits = DEFAULT) -> Positions:
    """The positions of a framed blob; one at or past `limit` is refused."""
    if len(blob) < 12:
        raise FormatError(f"has {len(blob)} bytes; its framing alone takes 12", field=VECTOR_TYPE)
    (length,) = struct.unpack_from(">I", blob)
    if length + 8 != len(blob):
        raise FormatError(
            f"has {len(blob)} bytes; its length field calls for {length + 8}", field=VECTOR_TYPE
        )
    body = blob[4:-4]
    if body[:4] != VECTOR_MAGIC:
        raise FormatError(
            f"starts with {body[:4].hex(' ')}; expected {VECTOR_MAGIC.hex(' ')}", field=VECTOR_TYPE
        )
    (stored,) = struct.unpack(">I", blob[-4:])
    computed = zlib.crc32(body)
    if stored != computed:
        raise FormatError(
            f"has checksum {stored:08x}; its bytes give {computed:08x}", field=VECTOR_TYPE
        )
    try:
        return roaring.decode(body[4:], limit=limit, limits=limits)
    except FormatError as error:
        raise FormatError(error.problem, field=VECTOR_TYPE) from None


def read_vector(
    blob: bytes,
    *,
    path: str,
    cardinality: int | None = None,
    record_count: int | None = None,
    limits: Limits = DEFAULT,
) -> Positions:
    """The positions of one blob of the Puffin file at `path`, ascending.

    `cardinality` is what the entry says of the vector, `record_count` the rows of its data file;
    a blob that disagrees with either is refused.
    """
    try:
        positions = decode_vector(blob, limit=record_count, limits=limits)
    except FormatError as error:
        raise error.at(path) from None
    if cardinality is not None and len(positions) != cardinality:
        raise FormatError(
            f"holds {len(positions)} positions; the metadata says {cardinality}",
            path=path,
            field=VECTOR_TYPE,
        )
    return positions


def read_vector_at(
    source: bytes | ByteRanges,
    *,
    offset: int,
    size_in_bytes: int,
    path: str,
    cardinality: int | None = None,
    record_count: int | None = None,
    limits: Limits = DEFAULT,
) -> Positions:
    """The positions of the blob at a byte range: one range read, no footer."""
    size = len(source) if isinstance(source, bytes) else source.size
    if offset < 0 or size_in_bytes < 0 or offset + size_in_bytes > size:
        raise FormatError(
            f"bytes {offset} to {offset + size_in_bytes} are called for; the file has {size}",
            path=path,
            field=VECTOR_TYPE,
        )
    if size_in_bytes > limits.max_bytes:
        raise limits.refusal(size_in_bytes, stored=size_in_bytes, path=path)
    return read_vector(
        _read(source, offset, size_in_bytes),
        path=path,
        cardinality=cardinality,
        record_count=record_count,
        limits=limits,
    )


def write_vectors(
    vectors: Sequence[tuple[str, npt.NDArray[np.integer]]], *, location: str, created_by: str
) -> tuple[bytes, tuple[StoredVector, ...]]:
    """A Puffin file, to be stored at `location`, with a deletion vector per (data file location,
    positions), and where each is.

    A vector without positions, or a second one for a location, is refused.
    """
    parts = [MAGIC]
    offset = len(MAGIC)
    written: list[StoredVector] = []
    for data_file, positions in vectors:
        if len(positions) == 0:
            raise InvalidInput(f"{data_file}: a deletion vector needs at least one position")
        blob = encode_vector(positions)
        written.append(
            StoredVector(
                location=location,
                offset=offset,
                size_in_bytes=len(blob),
                cardinality=len(positions),
            )
        )
        parts.append(blob)
        offset += len(blob)
    data_files = [data_file for data_file, _ in vectors]
    if len(set(data_files)) != len(data_files):
        raise InvalidInput("a data file has more than one deletion vector in the same Puffin file")
    parts.append(_footer(list(map(_blob_json, data_files, written)), created_by))
    return b"".join(parts), tuple(written)


def write_blobs(blobs: Sequence[NewBlob], *, created_by: str) -> tuple[bytes, int]:
    """A Puffin file with these blobs, and the size of its footer."""
    parts = [MAGIC]
    described: list[dict[str, Any]] = []
    offset = len(MAGIC)
    for blob in blobs:
        described.append(
            {
                "type": blob.type,
                "fields": list(blob.fields),
                "snapshot-id": blob.snapshot_id,
                "sequence-number": blob.sequence_number,
                "offset": offset,
                "length": len(blob.data),
                "properties": dict(blob.properties),
            }
        )
        parts.append(blob.data)
        offset += len(blob.data)
    footer = _footer(described, created_by)
    return b"".join([*parts, footer]), len(footer)


def _footer(blobs: list[dict[str, Any]], created_by: str) -> bytes:
    payload = json.dumps(
        {"blobs": blobs, "properties": {CREATED_BY: created_by}},
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()
    return MAGIC + payload + struct.pack("<iI", len(payload), 0) + MAGIC


def read_footer(
    source: bytes | ByteRanges, *, path: str | None = None, limits: Limits = DEFAULT
) -> Footer:
    """The footer of a Puffin file, in one range read unless it is very large."""
    try:
        return _read_footer(source, limits)
    except FormatError as error:
        raise FormatError(error.problem, path=path, field=error.field or "footer") from None


def _read(source: bytes | ByteRanges, offset: int, size: int) -> bytes:
    if isinstance(source, bytes):
        return source[offset : offset + size]
    return source.read_at(offset, size)


def _read_footer(source: bytes | ByteRanges, limits: Limits) -> Footer:
    size = len(source) if isinstance(source, bytes) else source.size
    if size < _SMALLEST_FILE:
        raise FormatError(f"the file has {size} bytes; the smallest Puffin file has 20")
    tail_at = max(size - _TAIL_BYTES, 0)
    tail = _read(source, tail_at, size - tail_at)
    if len(tail) != size - tail_at or tail[-4:] != MAGIC:
        raise FormatError(f"the file ends with {tail[-4:]!r}; expected {MAGIC!r}")
    if tail_at == 0 and tail[:4] != MAGIC:
        raise FormatError(f"the file starts with {tail[:4]!r}; expected {MAGIC!r}")
    length, flags = struct.unpack("<iI", tail[-_TRAILER_BYTES:-4])
    if not 0 <= length <= size - _SMALLEST_FILE:
        raise FormatError(f"calls for {length} bytes; the file has {size}")
    limits.check(length, stored=length)
    if flags & ~_FOOTER_COMPRESSED:
        raise FormatError(f"has flags {flags:#x}; only bit 0 is known")
    footer_at = size - _TRAILER_BYTES - length - len(MAGIC)
    if footer_at < tail_at:
        tail_at, tail = footer_at, _read(source, footer_at, size - footer_at)
    payload = tail[footer_at - tail_at : -_TRAILER_BYTES]
    if payload[:4] != MAGIC:
        raise FormatError(f"starts with {payload[:4]!r}; expected {MAGIC!r}")
    text = payload[4:]
    if flags & _FOOTER_COMPRESSED:
        text = decompress(text, "lz4", limits=limits)
    return _footer_from_json(text, end_of_blobs=footer_at)


def _footer_from_json(text: bytes, *, end_of_blobs: int) -> Footer:
    try:
        value = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not JSON: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("blobs"), list):
        raise FormatError("has no list of blobs")
    blobs = tuple(
        _blob_from_json(blob, f"blobs[{at}]", end_of_blobs)
        for at, blob in enumerate(value["blobs"])
    )
    return Footer(blobs=blobs, properties=_strings(value.get("properties"), "properties"))


def _blob_from_json(value: Any, where: str, end_of_blobs: int) -> Blob:
    if not isinstance(value, dict):
        raise FormatError("is not an object", field=where)
    kind, codec, fields = value.get("type"), value.get("compression-codec"), value.get("fields")
    if not isinstance(kind, str):
        raise FormatError(f"is {kind!r}; expected a string", field=f"{where}.type")
    if codec is not None and not isinstance(codec, str):
        raise FormatError(f"is {codec!r}; expected a string", field=f"{where}.compression-codec")
    if not isinstance(fields, list):
        raise FormatError(f"is {fields!r}; expected a list", field=f"{where}.fields")
    offset = _whole(value.get("offset"), f"{where}.offset")
    length = _whole(value.get("length"), f"{where}.length")
    if offset < len(MAGIC) or length < 0 or offset + length > end_of_blobs:
        raise FormatError(
            f"has offset {offset} and length {length}; blobs lie between 4 and {end_of_blobs}",
            field=where,
        )
    return Blob(
        type=kind,
        fields=tuple(_whole(field, f"{where}.fields") for field in fields),
        snapshot_id=_whole(value.get("snapshot-id"), f"{where}.snapshot-id"),
        sequence_number=_whole(value.get("sequence-number"), f"{where}.sequence-number"),
        offset=offset,
        length=length,
        compression_codec=codec,
        properties=_strings(value.get("properties"), f"{where}.properties"),
    )


def _blob_json(data_file: str, vector: StoredVector) -> dict[str, Any]:
    return {
        "type": VECTOR_TYPE,
        "fields": [POSITION_FIELD_ID],
        "snapshot-id": _INHERITED,
        "sequence-number": _INHERITED,
        "offset": vector.offset,
        "length": vector.size_in_bytes,
        "properties": {
            REFERENCED_DATA_FILE: data_file,
            CARDINALITY: str(vector.cardinality),
        },
    }


def _vector_blob(blob: Blob, where: str, path: str) -> tuple[str, StoredVector]:
    data_file = blob.properties.get(REFERENCED_DATA_FILE)
    cardinality = blob.properties.get(CARDINALITY, "")
    if data_file is None:
        raise FormatError(f"has no property {REFERENCED_DATA_FILE}", path=path, field=where)
    if not (cardinality.isascii() and cardinality.isdigit() and len(cardinality) < 20):
        raise FormatError(
            f"has cardinality {cardinality!r}; expected a number", path=path, field=where
        )
    if blob.compression_codec is not None:
        raise FormatError(
            f"is compressed with {blob.compression_codec}; a deletion vector never is",
            path=path,
            field=where,
        )
    return data_file, StoredVector(
        location=path,
        offset=blob.offset,
        size_in_bytes=blob.length,
        cardinality=int(cardinality),
    )


def _whole(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63:
        raise FormatError(f"is {value!r}; expected a whole number", field=where)
    return value


def _strings(value: Any, where: str) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise FormatError("is not a map of strings", field=where)
    return value
