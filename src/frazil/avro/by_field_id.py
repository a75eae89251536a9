"""Avro object-container files as Arrow columns, decoded in bulk.

Knows the container: header, codecs, blocks, sync markers. Where records start inside a block is
found by `frazil.avro.record_starts`; they are read in step, see `frazil.avro.walker`. Any
schema is read; leaves are named by a path of Iceberg field ids, and only those asked for are
decoded:

    (2, 100)        field 100 of the record in field 2
    (2, 125, 7)     the value under key 7 of the map in field 125
    (507, 0, 510)   field 510 of the first record of the list in field 507
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import zstandard

from frazil.avro import avro_types
from frazil.avro.avro_types import AvroType
from frazil.avro.record_starts import Blocks, walk
from frazil.avro.walker import Captured, Longs, Path, Walker, list_array, text_array
from frazil.errors import FormatError, Unsupported

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
STRETCH_BYTES: Final = 1 << 21
"""How much decompressed data is walked at once; larger leaves the caches, smaller wastes calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a container says before its first block."""

    metadata: Mapping[str, str]
    schema: AvroType
    codec: str
    sync: bytes
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Leaves of a file's records, by path. A wanted leaf that no record has is absent."""

    num_rows: int
    metadata: Mapping[str, str]
    leaves: frozenset[Path]
    """Wanted leaves that the file's schema has, whether or not a record does."""
    arrays: Mapping[Path, pa.Array]
    """int64, float32, float64, bool, string, binary, fixed-size binary or list<int64>."""


def read_header(data: bytes, *, path: str | None = None) -> Header:
    """Metadata, schema and codec of a container."""
    if data[: len(MAGIC)] != MAGIC:
        raise FormatError("not an Avro file: it does not start with Obj 01", path=path)
    metadata: dict[str, bytes] = {}
    try:
        at = len(MAGIC)
        while True:
            count, at = avro_types.number(data, at)
            if count == 0:
                break
            if count < 0:
                _, at = avro_types.number(data, at)
            for _ in range(abs(count)):
                key, at = _bytes(data, at)
                metadata[key.decode()], at = _bytes(data, at)
        sync = data[at : at + SYNC_BYTES]
        if len(sync) != SYNC_BYTES:
            raise IndexError("no sync marker")
        text = {key: value.decode() for key, value in metadata.items()}
    except (IndexError, UnicodeDecodeError) as error:
        raise FormatError(f"its Avro header is cut short or corrupt: {error}", path=path) from error
    if "avro.schema" not in text:
        raise FormatError("its Avro header has no schema", path=path, field="avro.schema")
    try:
        schema = avro_types.parse(text["avro.schema"])
    except FormatError as error:
        raise (error.at(path) if path else error) from error
    if schema.kind != "record":
        raise FormatError("its records are not of type record", path=path, field="avro.schema")
    codec = text.get("avro.codec", "null")
    if codec not in _CODECS:
        raise Unsupported(
            f"{path or 'an Avro file'}: codec {codec!r} is not known; expected one of "
            f"{', '.join(sorted(_CODECS))}",
            feature="avro-codec",
        )
    return Header(metadata=text, schema=schema, codec=codec, sync=sync, end=at + SYNC_BYTES)


def decode(
    data: bytes,
    wanted: Collection[Path],
    *,
    path: str | None = None,
    domains: Mapping[Path, int] | None = None,
) -> Columns:
    """The wanted leaves of every record, in file order.

    `domains` gives, for numeric leaves known to be small, the number of values they may take from
    zero on; it only helps to find where records start. `path` names the file in errors.
    """
    header = read_header(data, path=path)
    plan = avro_types.steps(header.schema, frozenset(wanted))
    parts: list[dict[Path, pa.Array]] = []
    rows: list[int] = []
    for blocks in _stretches(data, header, path):
        walker, keep = walk(blocks, header.schema, plan, domains or {}, path)
        parts.append(_arrays(walker, keep, header.schema, path))
        rows.append(walker.count if keep is None else len(keep))
    found = dict.fromkeys(leaf for part in parts for leaf in part)
    arrays = {leaf: _join(leaf, parts, rows) for leaf in found}
    return Columns(
        num_rows=sum(rows),
        metadata=header.metadata,
        leaves=frozenset(leaf for leaf in wanted if header.schema.at(leaf) is not None),
        arrays=arrays,
    )


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = avro_types.number(data, at)
    if length < 0 or at + length > len(data):
        raise IndexError("a length past the end of the file")
    return data[at : at + length], at + length


def _snappy(block: bytes) -> bytes:
    size = shift = at = 0
    while True:
        size |= (block[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if block[at - 1] < 0x80:
            break
    plain = bytes(pa.Codec("snappy").decompress(block[:-4], size, asbytes=True))
    if zlib.crc32(plain) != int.from_bytes(block[-4:], "big"):
        raise ValueError("checksum differs")
    return plain


def _zstandard(block: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(block)


_CODECS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": lambda block: block,
    "deflate": lambda block: zlib.decompress(block, -15),
    "snappy": _snappy,
    "zstandard": _zstandard,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
}


def _stretches(data: bytes, header: Header, path: str | None) -> Iterator[Blocks]:
    """The file's blocks, decompressed and gathered up to about STRETCH_BYTES."""
    expand, sync = _CODECS[header.codec], header.sync
    at, total = header.end, 0
    blocks: list[bytes] = []
    counts: list[int] = []
    while at < len(data):
        try:
            count, at = avro_types.number(data, at)
            block, at = _bytes(data, at)
            if count < 0 or data[at : at + SYNC_BYTES] != sync:
                raise IndexError("no sync marker after the block")
            at += SYNC_BYTES
            plain = expand(block)
        except (IndexError, ValueError, OSError, EOFError) as error:
            raise _corrupt(path, at, error) from error
        except (zlib.error, lzma.LZMAError, zstandard.ZstdError, pa.ArrowException) as error:
            raise _corrupt(path, at, error) from error
        if count == 0:
            continue
        blocks.append(plain)
        counts.append(count)
        total += len(plain)
        if total >= STRETCH_BYTES:
            yield Blocks.of(blocks, counts)
            blocks, counts, total = [], [], 0
    if blocks:
        yield Blocks.of(blocks, counts)


def _corrupt(path: str | None, at: int, error: Exception) -> FormatError:
    return FormatError(f"the block before byte {at} is cut short or corrupt: {error}", path=path)


def _arrays(
    walker: Walker, keep: Longs | None, schema: AvroType, path: str | None
) -> dict[Path, pa.Array]:
    """What a walk captured, as Arrow arrays of the kept records."""
    arrays: dict[Path, pa.Array] = {}
    for leaf, column in walker.captured.items():
        kept = column if keep is None else _kept(column, keep)
        if not kept.valid.any():
            continue
        if column.lengths is None:
            arrays[leaf] = _plain_array(kept)
            continue
        if _is_run(schema, leaf):
            continue
        type_ = schema.at(leaf)
        if type_ is not None and type_.kind == "array":
            later = [
                other if keep is None else _kept(other, keep)
                for further, other in walker.captured.items()
                if further[:-1] == leaf
            ]
            arrays[leaf] = list_array(walker, kept, later)
        else:
            is_string = type_ is not None and type_.kind == "string"
            text = text_array(walker, kept, pa.string() if is_string else pa.binary())
            if is_string:
                try:
                    text.validate(full=True)
                except pa.ArrowInvalid as error:
                    raise FormatError(f"a string is not UTF-8: {error}", path=path) from error
            arrays[leaf] = text
    return arrays


def _is_run(schema: AvroType, leaf: Path) -> bool:
    """Whether the leaf is a later run of a list of numbers, already part of that list."""
    parent = schema.at(leaf[:-1])
    return (
        parent is not None
        and parent.kind == "array"
        and parent.items is not None
        and parent.items.is_number
    )


def _kept(column: Captured, keep: Longs) -> Captured:
    lengths = None if column.lengths is None else column.lengths[keep]
    return Captured(column.values[keep], column.valid[keep], lengths)


def _plain_array(column: Captured) -> pa.Array:
    mask: Any = None if column.valid.all() else ~column.valid
    if column.values.ndim == 1:
        return pa.array(column.values, mask=mask)
    width = column.values.shape[1]
    flat = pa.py_buffer(np.ascontiguousarray(column.values))
    validity = None if mask is None else pa.array(column.valid).buffers()[1]
    return pa.Array.from_buffers(pa.binary(width), len(column.values), [validity, flat])


def _join(leaf: Path, parts: list[dict[Path, pa.Array]], rows: list[int]) -> pa.Array:
    type_ = next(part[leaf].type for part in parts if leaf in part)
    pieces = [
        part[leaf] if leaf in part else pa.nulls(count, type_)
        for part, count in zip(parts, rows, strict=True)
    ]
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
