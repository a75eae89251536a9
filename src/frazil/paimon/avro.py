"""Avro container files read into columns, by field name.

Paimon's manifests carry no field ids and nest small records, sometimes inside `["null", record]`
unions. For each writer schema a straight-line decoder is compiled that appends the wanted fields
to lists and steps over the rest; nested records become dotted names (`_FILE._ROW_COUNT`). A file
either yields as many values per column as it says it has records, or a `FormatError`.

Knows Avro and its codecs. Does not know what the fields mean.
"""

from __future__ import annotations

import bz2
import json
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from frazil.errors import FormatError, FrazilError, Unsupported

MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_MAX_BLOCK_BYTES: Final = 1 << 28
_MAX_DEPTH: Final = 12
_MAX_FIELDS: Final = 2000

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

Decoder = Callable[[bytes, int, list[Callable[[Any], None]]], int]


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
        *(struct.error, zlib.error, lzma.LZMAError, OSError, pa.ArrowException, MemoryError),
    ) as error:
        raise FormatError(f"not a readable Avro file: {error or type(error).__name__}") from None


def _read(data: bytes, wanted: tuple[str, ...] | None) -> pa.Table:
    if data[:4] != MAGIC:
        raise FormatError(f"starts with {data[:4].hex()}; expected an Avro file (4f626a01)")
    metadata, position = _header(data)
    codec = metadata.get("avro.codec", b"null").decode()
    plan = _compiled(metadata["avro.schema"].decode(), wanted)
    values: list[list[Any]] = [[] for _ in plan.columns]
    appends = [column.append for column in values]
    rows = 0
    for count, block in _blocks(data, position, codec):
        if count > len(block) or plan.decode(block, count, appends) != len(block):
            raise FormatError("a block's records do not fill it exactly")
        rows += count
    arrays = {}
    for (name, kind), column in zip(plan.columns, values, strict=True):
        arrays[name] = pa.array(column, kind) if kind != pa.string() else _text(column)
    if not arrays:
        return pa.table({"": pa.nulls(rows)}).select([])
    return pa.table(arrays)


def _text(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary()).cast(pa.string())


def _long(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise FormatError("a number takes more than ten bytes")


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = _long(data, position)
    if size < 0 or size > len(data) - position:
        raise FormatError(f"a value of {size} bytes does not fit the file")
    return data[position : position + size], position + size


def _header(data: bytes) -> tuple[dict[str, bytes], int]:
    metadata: dict[str, bytes] = {}
    position = 4
    while True:
        count, position = _long(data, position)
        if count == 0:
            break
        if count < 0:
            _, position = _long(data, position)
            count = -count
        if count > len(data):
            raise FormatError(f"{count} header entries do not fit the file")
        for _ in range(count):
            key, position = _bytes(data, position)
            metadata[key.decode()], position = _bytes(data, position)
    if "avro.schema" not in metadata:
        raise FormatError("the header has no avro.schema")
    return metadata, position


def _blocks(data: bytes, position: int, codec: str) -> Iterator[tuple[int, bytes]]:
    sync = data[position : position + _SYNC_BYTES]
    position += _SYNC_BYTES
    if len(sync) != _SYNC_BYTES:
        raise FormatError("the header ends before its sync marker")
    while position < len(data):
        count, position = _long(data, position)
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
            with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
                plain = stream.read(_MAX_BLOCK_BYTES + 1)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    columns: tuple[tuple[str, pa.DataType], ...]
    decode: Decoder


@lru_cache(maxsize=64)
def _compiled(schema: str, wanted: tuple[str, ...] | None) -> _Plan:
    compiler = _Compiler(wanted=wanted)
    compiler.record(json.loads(schema))
    source = "\n".join(
        [
            "def decode(d, count, appends):",
            *(f"    a{i} = appends[{i}]" for i in range(len(compiler.columns))),
            "    i = 0",
            "    end = len(d)",
            "    for _ in range(count):",
            *compiler.lines,
            "        if i > end:",
            "            break",
            "    return i",
        ]
    )
    # Only numbers and keywords enter the source: names from the file are passed as constants.
    scope: dict[str, Any] = {"N": tuple(compiler.names), "bad": _bad, "unpack": _unpack}
    exec(compile(source, "<avro decoder>", "exec"), scope)
    return _Plan(columns=tuple(compiler.columns), decode=scope["decode"])


def _bad(what: str) -> None:
    raise FormatError(what)


def _unpack(raw: bytes) -> float:
    return float(struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0])


@dataclass(slots=True)
class _Compiler:
    """Writes the decoder of one schema, field by field."""

    wanted: tuple[str, ...] | None
    lines: list[str] = field(default_factory=list)
    columns: list[tuple[str, pa.DataType]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    types: dict[str, Any] = field(default_factory=dict)
    variables: int = 0

    def record(self, schema: Any) -> None:
        """The whole record: wanted leaves become columns."""
        self._columns(schema, "", 2, depth=0)

    def _line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def _variable(self) -> str:
        self.variables += 1
        if self.variables > _MAX_FIELDS:
            raise FormatError(f"a schema of more than {_MAX_FIELDS} fields")
        return f"v{self.variables}"

    def _is_wanted(self, path: str) -> bool:
        if self.wanted is None:
            return True
        return any(path == name or path.startswith(name + ".") for name in self.wanted)

    def _leads_to_wanted(self, path: str) -> bool:
        if self._is_wanted(path) or not path:
            return True
        return any(name.startswith(path + ".") for name in self.wanted or ())

    def _resolve(self, schema: Any) -> tuple[str, Any]:
        """The kind of a schema node and the node itself, names looked up."""
        if isinstance(schema, list):
            return "union", schema
        if isinstance(schema, str):
            if schema in _ARROW and schema not in ("fixed", "enum"):
                return schema, schema
            known = self.types.get(schema, self.types.get(schema.rsplit(".", 1)[-1]))
            if known is None:
                raise FormatError(f"unknown type {schema!r} in avro.schema")
            return self._resolve(known)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self._resolve(kind)
        if kind in ("record", "enum", "fixed"):
            self.types[schema["name"].rsplit(".", 1)[-1]] = schema
            return kind, schema
        if kind == "error":
            return "record", schema
        return (kind, schema) if kind in ("array", "map") else self._resolve(kind)

    def _columns(self, schema: Any, path: str, indent: int, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise FormatError(f"a schema nested deeper than {_MAX_DEPTH}")
        kind, node = self._resolve(schema)
        if not self._leads_to_wanted(path):
            self._skip(kind, node, indent, depth)
        elif kind == "record":
            for child in node["fields"]:
                name = f"{path}.{child['name']}" if path else str(child["name"])
                self._columns(child["type"], name, indent, depth + 1)
            if not node["fields"]:
                self._line(indent, "pass")
        elif kind == "union" and (inner := self._nullable_record(node)) is not None:
            self._nullable_columns(node, inner, path, indent, depth)
        elif not path:
            raise FormatError(f"the file holds {kind} values; expected records")
        else:
            variable = self._variable()
            arrow = self._value(kind, node, variable, indent, depth)
            self._line(indent, f"a{len(self.columns)}({variable})")
            self.columns.append((path, arrow))

    def _nullable_record(self, union: list[Any]) -> Any | None:
        """The record of a `["null", record]` union (either order, or without null)."""
        others = [branch for branch in union if branch != "null"]
        if len(others) == 1 and self._resolve(others[0])[0] == "record":
            return others[0]
        return None

    def _nullable_columns(
        self, union: list[Any], inner: Any, path: str, indent: int, depth: int
    ) -> None:
        first = len(self.columns)
        self._branch(indent)
        self._line(indent, f"if n == {2 * union.index(inner)}:")
        self._line(indent + 1, "pass")
        self._columns(inner, path, indent + 1, depth + 1)
        if "null" in union and path:
            self._line(indent, f"elif n == {2 * union.index('null')}:")
            self._line(indent + 1, "pass")
            for column in range(first, len(self.columns)):
                self._line(indent + 1, f"a{column}(None)")
        self._line(indent, "else:")
        self._line(indent + 1, "bad('a union branch that the schema does not have')")

    def _long(self, variable: str, indent: int) -> None:
        self._unsigned(variable, indent)
        self._line(indent, f"{variable} = ({variable} >> 1) ^ -({variable} & 1)")

    def _branch(self, indent: int) -> None:
        """Code that sets `n` to twice the branch of a union, which takes one byte."""
        self._line(indent, "n = d[i]; i += 1")

    def _unsigned(self, variable: str, indent: int) -> None:
        """Code for a number as it is written, before its sign is taken out of the last bit."""
        self._line(indent, f"{variable} = d[i]; i += 1")
        self._line(indent, f"if {variable} > 127:")
        self._line(indent + 1, f"{variable} &= 127; s = 7; b = d[i]; i += 1")
        self._line(indent + 1, "while b > 127:")
        self._line(indent + 2, f"{variable} |= (b & 127) << s; s += 7; b = d[i]; i += 1")
        self._line(indent + 2, "if s > 63: bad('a number takes more than ten bytes')")
        self._line(indent + 1, f"{variable} |= b << s")

    def _size(self, indent: int) -> None:
        """Code that sets `n` to a length. One past the block is found when its records are not
        as long as the block."""
        self._unsigned("n", indent)
        self._line(indent, "if n & 1: bad('a value of negative size')")
        self._line(indent, "n >>= 1")

    def _raw(self, variable: str, indent: int, size: int | None = None) -> None:
        if size is None:
            self._size(indent)
            self._line(indent, f"{variable} = d[i:i + n]; i += n")
        else:
            self._line(indent, f"{variable} = d[i:i + {size}]; i += {size}")

    def _value(self, kind: str, node: Any, variable: str, indent: int, depth: int) -> pa.DataType:
        """Code that sets the variable to the next value; its Arrow type."""
        if depth > _MAX_DEPTH:
            raise FormatError(f"a schema nested deeper than {_MAX_DEPTH}")
        match kind:
            case "null":
                self._line(indent, f"{variable} = None")
            case "boolean":
                self._line(indent, f"{variable} = d[i] != 0; i += 1")
            case "int" | "long" | "enum":
                self._long(variable, indent)
            case "bytes" | "string":
                self._raw(variable, indent)
            case "float" | "double":
                self._raw(variable, indent, 4 if kind == "float" else 8)
                self._line(indent, f"{variable} = unpack({variable})")
            case "fixed":
                self._raw(variable, indent, _fixed_size(node))
            case "union":
                return self._union(node, variable, indent, depth)
            case "array":
                return self._array(node, variable, indent, depth)
            case "record":
                return self._struct(node, variable, indent, depth)
            case _:
                raise Unsupported(f"Avro type {kind!r} in a wanted field", feature="avro-type")
        return _ARROW[kind]

    def _union(self, union: list[Any], variable: str, indent: int, depth: int) -> pa.DataType:
        others = [branch for branch in union if branch != "null"]
        if len(others) != 1:
            raise Unsupported(f"Avro union of {len(others)} types", feature="avro-union")
        self._branch(indent)
        self._line(indent, f"if n == {2 * union.index(others[0])}:")
        kind, node = self._resolve(others[0])
        arrow = self._value(kind, node, variable, indent + 1, depth + 1)
        if "null" in union:
            self._line(indent, f"elif n == {2 * union.index('null')}: {variable} = None")
        self._line(indent, "else: bad('a union branch that the schema does not have')")
        return arrow

    def _repeat(self, indent: int, count: str, body: Callable[[int], None]) -> None:
        """Code that runs the body for each item of an array's or map's blocks."""
        self._line(indent, "while True:")
        self._long(count, indent + 1)
        self._line(indent + 1, f"if {count} == 0: break")
        self._line(indent + 1, f"if {count} < 0:")
        self._long("n", indent + 2)
        self._line(indent + 2, f"{count} = -{count}")
        self._line(indent + 1, f"if {count} > end - i: bad('an array reaches past its block')")
        self._line(indent + 1, f"for _{count} in range({count}):")
        self._line(indent + 2, "pass")
        body(indent + 2)

    def _array(self, node: Any, variable: str, indent: int, depth: int) -> pa.DataType:
        count, item = self._variable(), self._variable()
        kind, inner = self._resolve(node["items"])
        arrow: list[pa.DataType] = []

        def body(indent: int) -> None:
            arrow.append(self._value(kind, inner, item, indent, depth + 1))
            self._line(indent, f"{variable}.append({item})")

        self._line(indent, f"{variable} = []")
        self._repeat(indent, count, body)
        return pa.list_(arrow[0])

    def _struct(self, node: Any, variable: str, indent: int, depth: int) -> pa.DataType:
        parts, fields = [], []
        for child in node["fields"]:
            kind, inner = self._resolve(child["type"])
            part = self._variable()
            arrow = self._value(kind, inner, part, indent, depth + 1)
            fields.append((str(child["name"]), arrow))
            parts.append(f"N[{len(self.names)}]: {part}")
            self.names.append(str(child["name"]))
        self._line(indent, f"{variable} = {{{', '.join(parts)}}}")
        return pa.struct(fields)

    def _skip(self, kind: str, node: Any, indent: int, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise FormatError(f"a schema nested deeper than {_MAX_DEPTH}")
        match kind:
            case "null":
                self._line(indent, "pass")
            case "int" | "long" | "enum":
                self._line(indent, "while d[i] > 127: i += 1")
                self._line(indent, "i += 1")
            case "bytes" | "string":
                self._size(indent)
                self._line(indent, "i += n")
            case "boolean" | "float" | "double" | "fixed":
                size = {"boolean": 1, "float": 4, "double": 8}.get(kind) or _fixed_size(node)
                self._line(indent, f"i += {size}")
            case "record":
                for child in node["fields"]:
                    self._skip(*self._resolve(child["type"]), indent, depth + 1)
                if not node["fields"]:
                    self._line(indent, "pass")
            case "union":
                self._branch(indent)
                for index, branch in enumerate(node):
                    self._line(indent, f"{'if' if index == 0 else 'elif'} n == {2 * index}:")
                    self._skip(*self._resolve(branch), indent + 1, depth + 1)
                self._line(indent, "else: bad('a union branch that the schema does not have')")
            case "array" | "map":
                count = self._variable()

                def body(indent: int) -> None:
                    if kind == "map":
                        self._skip("string", "string", indent, depth + 1)
                    item = node["items"] if kind == "array" else node["values"]
                    self._skip(*self._resolve(item), indent, depth + 1)

                self._repeat(indent, count, body)


def _fixed_size(node: Any) -> int:
    size = node["size"]
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MAX_BLOCK_BYTES:
        raise FormatError(f"a fixed type of size {size!r}")
    return size
