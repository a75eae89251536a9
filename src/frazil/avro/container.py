"""Avro object containers: header, codecs, blocks and sync markers, for every reader of Avro here.

A block says how many records it holds and how long it is, compressed. Neither is believed: no
record is smaller than a byte, and what a file may become in memory is limited (`frazil.limits`).
What records hold is for `by_field_id` and `by_name`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from frazil import limits
from frazil.avro import avro_types
from frazil.avro.avro_types import AvroType
from frazil.avro.record_starts import Blocks
from frazil.errors import FormatError, Unsupported
from frazil.limits import Limits
from frazil.value_classes import frozen

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
STRETCH_BYTES: Final = 1 << 21
"""How much decompressed data is walked at once; larger leaves the caches, smaller wastes calls."""
_CODECS: Final = frozenset({"null", "deflate", "snappy", "zstandard", "bzip2", "xz"})
_CRC_BYTES: Final = 4


@frozen
class Header:
    """What a container says before its first block."""

    metadata: Mapping[str, str]
    schema: AvroType
    codec: str
    sync: bytes
    end: int


def read_header(data: bytes, *, path: str | None = None) -> Header:
    """Metadata, schema and codec of a container."""
    if data[: len(MAGIC)] != MAGIC:
        raise FormatError("not an Avro file: it does not start with Obj 01", path=path)
    try:
        text, at = _metadata(data)
        sync = data[at : at + SYNC_BYTES]
        if len(sync) != SYNC_BYTES:
            raise IndexError("no sync marker")
    except (IndexError, UnicodeDecodeError) as error:
        raise FormatError(f"its Avro header is cut short or corrupt: {error}", path=path) from error
    if "avro.schema" not in text:
        raise FormatError("its Avro header has no schema", path=path, field="avro.schema")
    try:
        schema = avro_types.parse(text["avro.schema"])
    except FormatError as error:
        raise (error.at(path) if path else error) from error
    codec = text.get("avro.codec", "null")
    if codec not in _CODECS:
        raise Unsupported(
            f"{path or 'an Avro file'}: unknown codec {codec!r}; expected one of "
            f"{', '.join(sorted(_CODECS))}",
            feature="avro-codec",
        )
    return Header(metadata=text, schema=schema, codec=codec, sync=sync, end=at + SYNC_BYTES)


def _metadata(data: bytes) -> tuple[dict[str, str], int]:
    metadata: dict[str, str] = {}
    at = len(MAGIC)
    while True:
        count, at = avro_types.item_count(data, at)
        if count == 0:
            return metadata, at
        for _ in range(count):
            key, at = sized_bytes(data, at)
            value, at = sized_bytes(data, at)
            metadata[key.decode()] = value.decode()


def sized_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """Bytes led by their length, and where they end."""
    length, at = avro_types.number(data, at)
    if length < 0 or at + length > len(data):
        raise IndexError(f"a value of {length} bytes does not fit the file")
    return data[at : at + length], at + length


def stretches(
    data: bytes, header: Header, *, limits: Limits = limits.DEFAULT, path: str | None = None
) -> Iterator[Blocks]:
    """The file's blocks, decompressed and gathered up to about STRETCH_BYTES."""
    gathered = 0
    blocks: list[bytes] = []
    counts: list[int] = []
    for count, block in plain_blocks(data, header, limits=limits, path=path):
        blocks.append(block)
        counts.append(count)
        gathered += len(block)
        if gathered >= STRETCH_BYTES:
            yield Blocks.of(blocks, counts)
            blocks, counts, gathered = [], [], 0
    if blocks:
        yield Blocks.of(blocks, counts)


def plain_blocks(
    data: bytes, header: Header, *, limits: Limits = limits.DEFAULT, path: str | None = None
) -> Iterator[tuple[int, bytes]]:
    """The file's blocks that hold records: how many, and the decompressed bytes."""
    total = 0
    for count, block in stored_blocks(data, header, path=path):
        block_data = _plain(block, header.codec, limits, path)
        # A record takes a byte at least: those of manifests have fields.
        if count > len(block_data) or (count == 0 and block_data):
            raise FormatError(
                f"a block of {len(block_data)} bytes says it has {count} records", path=path
            )
        total += len(block_data)
        limits.check(total, stored=len(data), path=path)
        if count:
            yield count, block_data


def stored_blocks(
    data: bytes, header: Header, *, path: str | None = None
) -> Iterator[tuple[int, bytes]]:
    """The file's blocks as they are stored: how many records each says it has, and its bytes."""
    at = header.end
    while at < len(data):
        try:
            count, at = avro_types.number(data, at)
            block, at = sized_bytes(data, at)
            if count < 0 or data[at : at + SYNC_BYTES] != header.sync:
                raise IndexError("no sync marker after the block")
        except IndexError as error:
            raise FormatError(
                f"the block before byte {at} is cut short or corrupt: {error}", path=path
            ) from error
        at += SYNC_BYTES
        yield count, block


def _plain(block: bytes, codec: str, limits_: Limits, path: str | None) -> bytes:
    if codec != "snappy":
        return limits.decompress(block, codec, limits=limits_, path=path)
    decompressed = limits.decompress(block[:-_CRC_BYTES], codec, limits=limits_, path=path)
    if zlib.crc32(decompressed) != int.from_bytes(block[-_CRC_BYTES:], "big"):
        raise FormatError("a snappy block does not match its checksum", path=path)
    return decompressed
