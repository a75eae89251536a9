"""Avro container files read into columns, by field name.

Paimon's manifests carry no field ids, nest small records, sometimes inside `["null", record]`
unions, and hold lists. Records are walked in step (`frazil.avro.walker`); nested records
become dotted names (`_FILE._ROW_COUNT`). A list is captured as its bytes and decoded once per
different value: lists of a manifest repeat. A file yields as many values per column as it has
records, or a `FormatError`.

Knows Avro and its codecs. Does not know what the fields mean.
"""

from __future__ import annotations

import bz2
import json
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import zstandard

from frazil.avro import avro_types
from frazil.avro.avro_types import AvroField, AvroType
from frazil.avro.field_steps import (
    Choice,
    Fixed,
    Flag,
    ItemSlots,
    Nothing,
    Number,
    Record,
    Step,
    Text,
)
from frazil.avro.record_starts import Blocks, walk
from frazil.avro.walker import Captured, Longs, Path, Walker, text_array
from frazil.errors import FormatError, FrazilError, Unsupported

MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_STRETCH_BYTES: Final = 1 << 21
_MAX_BLOCK_BYTES: Final = 1 << 28
_MAX_DEPTH: Final = 12
_DOMAINS: Final = {"_VERSION": 3, "_KIND": 2}
"""How many values these fields take from zero on; helps to find where records start."""

_ARROW: Final[Mapping[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "fixed": pa.binary(),
    "enum": pa.int32(),
}


def read(data: bytes, wanted: Sequence[str] | None = None) -> pa.Table:
    """The records of one container file as a table of the wanted fields that it has.

    `wanted` lists dotted field names; one that names a record takes all its fields. None takes
    every field.
    """
    try:
        return _read(data, None if wanted is None else tuple(wanted))
    except FrazilError:
        raise
    except (
        *(ValueError, IndexError, KeyError, TypeError, OverflowError, EOFError, RecursionError),
        *(struct.error, zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError, MemoryError),
        pa.ArrowException,
    ) as error:
        raise FormatError(f"not a readable Avro file: {error or type(error).__name__}") from None


def _read(data: bytes, wanted: tuple[str, ...] | None) -> pa.Table:
    if data[:4] != MAGIC:
        raise FormatError(f"starts with {data[:4].hex()}; expected an Avro file (4f626a01)")
    metadata, position = _header(data)
    codec = metadata.get("avro.codec", b"null").decode()
    plan = _planned(metadata["avro.schema"].decode(), wanted)
    parts: list[list[pa.Array]] = []
    rows = 0
    for blocks in _stretches(data, position, codec):
        walker, keep = walk(blocks, plan.schema, plan.step, plan.domains, None)
        parts.append([column.array(walker, keep) for column in plan.columns])
        rows += int(blocks.counts.sum())
    if not plan.columns:
        return pa.table({"": pa.nulls(rows)}).select([])
    arrays = [
        pa.concat_arrays([part[i] for part in parts]) if parts else pa.array([], column.arrow)
        for i, column in enumerate(plan.columns)
    ]
    return pa.table(arrays, names=[column.name for column in plan.columns])


# Containers


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = avro_types.number(data, position)
    if size < 0 or size > len(data) - position:
        raise FormatError(f"a value of {size} bytes does not fit the file")
    return data[position : position + size], position + size


def _header(data: bytes) -> tuple[dict[str, bytes], int]:
    metadata: dict[str, bytes] = {}
    position = 4
    while True:
        count, position = avro_types.number(data, position)
        if count == 0:
            break
        if count < 0:
            _, position = avro_types.number(data, position)
            count = -count
        if count > len(data):
            raise FormatError(f"{count} header entries do not fit the file")
        for _ in range(count):
            key, position = _bytes(data, position)
            metadata[key.decode()], position = _bytes(data, position)
    if "avro.schema" not in metadata:
        raise FormatError("the header has no avro.schema")
    return metadata, position


def _stretches(data: bytes, position: int, codec: str) -> Iterator[Blocks]:
    """The blocks, decompressed, as many together as walk well."""
    plain: list[bytes] = []
    counts: list[int] = []
    for count, block in _blocks(data, position, codec):
        # A record takes a byte at least: those of manifests have fields.
        if count > len(block) or (count == 0 and block):
            raise FormatError(f"a block of {len(block)} bytes says it has {count} records")
        if count:
            plain.append(block)
            counts.append(count)
        if sum(map(len, plain)) >= _STRETCH_BYTES:
            yield Blocks.of(plain, counts)
            plain, counts = [], []
    if plain:
        yield Blocks.of(plain, counts)


def _blocks(data: bytes, position: int, codec: str) -> Iterator[tuple[int, bytes]]:
    sync = data[position : position + _SYNC_BYTES]
    position += _SYNC_BYTES
    if len(sync) != _SYNC_BYTES:
        raise FormatError("the header ends before its sync marker")
    while position < len(data):
        count, position = avro_types.number(data, position)
        block, position = _bytes(data, position)
        if count < 0:
            raise FormatError(f"a block of {count} records")
        if data[position : position + _SYNC_BYTES] != sync:
            raise FormatError("a block does not end in the file's sync marker")
        position += _SYNC_BYTES
        yield count, _decompressed(block, codec)


def _decompressed(block: bytes, codec: str) -> bytes:
    match codec:
        case "null":
            return block
        case "deflate":
            plain = zlib.decompressobj(-15).decompress(block, _MAX_BLOCK_BYTES + 1)
        case "zstandard":
            if zstandard.frame_content_size(block) > _MAX_BLOCK_BYTES:
                raise FormatError(f"a block is larger than {_MAX_BLOCK_BYTES} bytes")
            plain = zstandard.ZstdDecompressor().decompressobj().decompress(block)
        case "snappy":
            size = _snappy_size(block)
            plain = pa.decompress(block[:-4], size, "snappy", asbytes=True)
            if zlib.crc32(plain) != int.from_bytes(block[-4:], "big"):
                raise FormatError("a snappy block does not match its checksum")
        case "bzip2":
            plain = bz2.BZ2Decompressor().decompress(block, _MAX_BLOCK_BYTES + 1)
        case "xz":
            plain = lzma.LZMADecompressor().decompress(block, _MAX_BLOCK_BYTES + 1)
        case _:
            raise Unsupported(f"Avro codec {codec!r}", feature="avro-codec")
    if len(plain) > _MAX_BLOCK_BYTES:
        raise FormatError(f"a block is larger than {_MAX_BLOCK_BYTES} bytes")
    return bytes(plain)


def _snappy_size(block: bytes) -> int:
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > _MAX_BLOCK_BYTES:
        raise FormatError(f"a block is larger than {_MAX_BLOCK_BYTES} bytes")
    return size


# Schemas


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A wanted leaf: its dotted name, where the walk captures it, its type."""

    name: str
    path: Path
    type: AvroType

    @property
    def arrow(self) -> pa.DataType:
        return _arrow_type(self.type)

    def array(self, walker: Walker, keep: Longs | None) -> pa.Array:
        """The captured values of the kept records."""
        count = walker.count if keep is None else len(keep)
        column = walker.captured.get(self.path)
        if column is None:
            return pa.nulls(count, self.arrow)
        if keep is not None:
            lengths = None if column.lengths is None else column.lengths[keep]
            column = Captured(column.values[keep], column.valid[keep], lengths)
        kind = self.type.kind
        if kind == "array":
            return _lists(text_array(walker, column, pa.binary()), self.type)
        if column.lengths is not None:
            texts = text_array(walker, column, pa.string() if kind == "string" else pa.binary())
            texts.validate(full=True)
            return texts
        mask = None if column.valid.all() else ~column.valid
        if column.values.ndim == 2:
            rows = [row.tobytes() for row in np.ascontiguousarray(column.values)]
            return pa.array(rows, pa.binary(), mask=mask)
        return pa.array(column.values, mask=mask).cast(self.arrow)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    schema: AvroType
    step: Step
    columns: tuple[_Column, ...]
    domains: Mapping[Path, int]


@dataclass(frozen=True, slots=True)
class _Raw(Step):
    """A wanted list: stepped over, and its bytes captured."""

    path: Path
    inner: Step

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        after = self.inner.walk(walker, rows, position.copy())
        walker.capture(self.path, rows, position, np.maximum(after - position, 0))
        return after


@dataclass(frozen=True, slots=True)
class _SkippedNumber(Step):
    """A number that nobody wants. Manifests have few: no index of numbers is made for them."""

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        return walker.varint(position)[1]


@lru_cache(maxsize=64)
def _planned(text: str, wanted: tuple[str, ...] | None) -> _Plan:
    _check_depth(json.loads(text), 0)
    root = avro_types.parse(text)
    if root.kind == "union":
        # Avro writes a record as its fields in a row: a record of one field is that field.
        root = AvroType(kind="record", fields=(AvroField(name="", id=None, type=root),))
    if root.kind != "record":
        raise FormatError(f"the file holds {root.kind} values; expected records")
    schema = _numbered(root)
    columns = tuple(_columns(schema, (), "", wanted))
    paths = {column.path for column in columns}
    domains: dict[Path, int] = {
        (field.id,): _DOMAINS[field.name]
        for field in schema.fields
        if field.id is not None and field.name in _DOMAINS and field.type.is_number
    }
    return _Plan(schema=schema, step=_step(schema, (), paths), columns=columns, domains=domains)


def _check_depth(node: Any, depth: int) -> None:
    if depth > 4 * _MAX_DEPTH:
        raise FormatError("avro.schema is nested too deeply")
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        _check_depth(child, depth + 1)


def _numbered(type: AvroType) -> AvroType:
    """The type with every record field numbered in its record: manifests have no field ids."""
    fields = tuple(
        AvroField(name=field.name, id=number, type=_numbered(field.type))
        for number, field in enumerate(type.fields)
    )
    items = None if type.items is None else _numbered(type.items)
    branches = tuple(_numbered(branch) for branch in type.branches)
    return replace(type, fields=fields, items=items, branches=branches)


def _columns(
    type: AvroType, path: Path, name: str, wanted: tuple[str, ...] | None
) -> Iterator[_Column]:
    """The wanted leaves below a type, in file order."""
    if len(path) > _MAX_DEPTH:
        raise FormatError("avro.schema is nested too deeply")
    if type.kind == "union":
        others = [branch for branch in type.branches if branch.kind != "null"]
        if len(others) == 1:
            yield from _columns(others[0], path, name, wanted)
            return
        if not _is_wanted(name, wanted):
            return
        raise Unsupported(f"Avro union of {len(others)} types", feature="avro-union")
    if type.kind == "record":
        for field in type.fields:
            assert field.id is not None
            inner = f"{name}.{field.name}" if name else field.name
            yield from _columns(field.type, (*path, field.id), inner, wanted)
    elif _is_wanted(name, wanted):
        _arrow_type(type)
        yield _Column(name=name, path=path, type=type)


def _is_wanted(name: str, wanted: tuple[str, ...] | None) -> bool:
    if wanted is None:
        return True
    return any(name == one or name.startswith(one + ".") for one in wanted)


def _step(type: AvroType, path: Path, wanted: set[Path]) -> Step:
    """The step that captures the wanted leaves below a type."""
    leaf = path if path in wanted else None
    match type.kind:
        case "record":
            fields = [
                _step(f.type, (*path, f.id if f.id is not None else -1), wanted)
                for f in type.fields
            ]
            return Record(tuple(fields))
        case "union":
            return Choice(tuple(_step(branch, path, wanted) for branch in type.branches))
        case "null":
            return Nothing()
        case "int" | "long" | "enum":
            return _SkippedNumber() if leaf is None else Number(leaf)
        case "string" | "bytes":
            return Text(leaf)
        case "boolean":
            return Flag(leaf)
        case "float" | "double":
            size = 4 if type.kind == "float" else 8
            return Fixed(leaf, size, f"<f{size}")
        case "fixed":
            return Fixed(leaf, type.size)
        case _:
            assert type.items is not None
            item = _step(type.items, (), set())
            if type.kind == "map":
                item = Record((Text(None), item))
            inner = ItemSlots((item,))
            return inner if leaf is None else _Raw(leaf, inner)


def _arrow_type(type: AvroType) -> pa.DataType:
    match type.kind:
        case "array":
            assert type.items is not None
            return pa.list_(_arrow_type(type.items))
        case "record":
            return pa.struct([(field.name, _arrow_type(field.type)) for field in type.fields])
        case "union":
            others = [branch for branch in type.branches if branch.kind != "null"]
            if len(others) == 1:
                return _arrow_type(others[0])
            raise Unsupported(f"Avro union of {len(others)} types", feature="avro-union")
        case "map":
            raise Unsupported("Avro type 'map' in a wanted field", feature="avro-type")
        case _:
            return _ARROW[type.kind]


# Lists


def _lists(raw: pa.Array, type: AvroType) -> pa.Array:
    """Lists from their Avro bytes; each different one is decoded once."""
    encoded = raw.dictionary_encode()
    decode = _reader(type)
    values = []
    for item in encoded.dictionary.to_pylist():
        value, end = decode(item, 0)
        if end != len(item):
            raise FormatError("a list does not end where its bytes do")
        values.append(value)
    return pa.array(values, _arrow_type(type)).take(encoded.indices)


Reader = Callable[[bytes, int], tuple[Any, int]]


@lru_cache(maxsize=64)
def _reader(type: AvroType) -> Reader:
    """A function that reads one value of a type, byte by byte."""
    match type.kind:
        case "null":
            return lambda data, at: (None, at)
        case "int" | "long" | "enum":
            return avro_types.number
        case "bytes":
            return _bytes
        case "string":
            return _text
        case "boolean":
            return lambda data, at: (data[at] != 0, at + 1)
        case "float" | "double":
            layout, size = ("<f", 4) if type.kind == "float" else ("<d", 8)
            return lambda data, at: (struct.unpack_from(layout, data, at)[0], at + size)
        case "fixed":
            return lambda data, at: (data[at : at + type.size], at + type.size)
        case "union":
            return _union_reader([_reader(branch) for branch in type.branches])
        case "record":
            return _record_reader([(field.name, _reader(field.type)) for field in type.fields])
        case _:
            assert type.items is not None
            return _array_reader(_reader(type.items))


def _text(data: bytes, at: int) -> tuple[str, int]:
    raw, at = _bytes(data, at)
    return raw.decode(), at


def _union_reader(branches: list[Reader]) -> Reader:
    def read_union(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = avro_types.number(data, at)
        if not 0 <= branch < len(branches):
            raise FormatError(f"branch {branch} of a union of {len(branches)}")
        return branches[branch](data, at)

    return read_union


def _record_reader(fields: list[tuple[str, Reader]]) -> Reader:
    def read_record(data: bytes, at: int) -> tuple[Any, int]:
        made = {}
        for name, reader in fields:
            made[name], at = reader(data, at)
        return made, at

    return read_record


def _array_reader(item: Reader) -> Reader:
    def read_array(data: bytes, at: int) -> tuple[Any, int]:
        values: list[Any] = []
        while True:
            count, at = avro_types.number(data, at)
            if count == 0:
                return values, at
            if count < 0:
                _, at = avro_types.number(data, at)
                count = -count
            if count > len(data) - at:
                raise FormatError(f"a list of {count} items does not fit")
            for _ in range(count):
                value, at = item(data, at)
                values.append(value)

    return read_array
