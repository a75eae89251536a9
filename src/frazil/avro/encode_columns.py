"""Avro object-container files from Arrow columns, encoded in bulk.

The counterpart of `frazil.avro.by_field_id`: leaves are given by the same paths of field ids, as
columns of the same types, and any schema made of the types Iceberg's metadata uses can be written.
Each field is encoded for all records together as a column of bytes; a record is what its columns
give when joined. A leaf that is not given is null.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import zstandard

from frazil import arrow_compute as pc
from frazil.avro import avro_types
from frazil.avro.avro_types import AvroType
from frazil.avro.container import MAGIC, SYNC_BYTES
from frazil.avro.walker import Longs, Path
from frazil.errors import InvalidInput, Unsupported

BLOCK_BYTES: Final = 64_000


@cache
def _bytes(value: bytes) -> pa.Scalar:
    """Made when first needed: pyarrow imports pandas for the first scalar of a process."""
    return pa.scalar(value, pa.binary())


def _deflated(block: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-15)
    return squeezer.compress(block) + squeezer.flush()


_CODECS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": lambda block: block,
    "deflate": _deflated,
    "zstandard": lambda block: zstandard.ZstdCompressor().compress(block),
}
_NAMES: Final = {"gzip": "deflate", "uncompressed": "null", "zstd": "zstandard"}


def encode(
    schema: str,
    columns: Mapping[Path, pa.Array],
    num_rows: int,
    *,
    metadata: Mapping[str, str],
    codec: str = "deflate",
) -> bytes:
    """The bytes of a container of `num_rows` records.

    `codec` is Avro's name or Iceberg's (`gzip`, `zstd`, `uncompressed`). The sync marker is drawn
    from the content, so that the same records give the same file.
    """
    codec = _NAMES.get(codec, codec)
    squeeze = _CODECS.get(codec)
    if squeeze is None:
        raise Unsupported(
            f"Avro codec {codec!r} cannot be written; expected one of {', '.join(sorted(_CODECS))}",
            feature="avro-codec",
        )
    type_ = avro_types.parse(schema)
    header = {**metadata, "avro.schema": schema, "avro.codec": codec}
    start = MAGIC + _number(len(header))
    start += b"".join(_text(key) + _text(value) for key, value in header.items()) + _number(0)
    if not num_rows:
        return start + hashlib.sha256(start).digest()[:SYNC_BYTES]
    records = _Encoder(columns, num_rows).encode(type_, ())
    offsets, data = _parts(records)
    sync = hashlib.sha256(start + data).digest()[:SYNC_BYTES]
    pieces = [start, sync]
    first = 0
    while first < num_rows:
        limit = int(offsets[first]) + BLOCK_BYTES
        last = max(first + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        block = squeeze(data[int(offsets[first]) : int(offsets[last])])
        pieces += [_number(last - first), _number(len(block)), block, sync]
        first = last
    return b"".join(pieces)


class _Encoder:
    """Columns of values to columns of bytes, type by type."""

    def __init__(self, columns: Mapping[Path, pa.Array], num_rows: int) -> None:
        self._columns = columns
        self._rows = num_rows
        self._below: dict[Path, set[int]] = {}
        for path in columns:
            for depth in range(len(path)):
                self._below.setdefault(path[:depth], set()).add(path[depth])

    def encode(self, type_: AvroType, path: Path) -> pa.Array:
        """Every record's bytes of the value at a path; that of null is empty."""
        if type_.kind == "union":
            return self._nullable(type_, path)
        if type_.kind == "record":
            return _joined(
                [self.encode(field.type, (*path, _id(field.id))) for field in type_.fields],
                self._rows,
            )
        if type_.items is not None:
            return self._array(type_.items, path)
        values = self._columns.get(path)
        if values is None:
            raise InvalidInput(f"an Avro record needs a value for field {path}")
        return _leaf(type_, values, path)

    def _nullable(self, type_: AvroType, path: Path) -> pa.Array:
        kinds = [branch.kind for branch in type_.branches]
        if len(kinds) != 2 or "null" not in kinds:
            raise Unsupported(f"a union of {kinds} cannot be written", feature="avro-union")
        null = kinds.index("null")
        is_full = self._is_full(path)
        present = None if is_full else self._present(path)
        if present is None and not is_full:
            return pa.repeat(_bytes(b"\x02") if null else _bytes(b"\x00"), self._rows)
        value = self.encode(type_.branches[1 - null], path)
        is_null, is_value = (
            (_bytes(b"\x02"), _bytes(b"\x00")) if null else (_bytes(b"\x00"), _bytes(b"\x02"))
        )
        led = pc.binary_join_element_wise(is_value, value, _bytes(b""))
        return led if is_full else pc.if_else(present, led, is_null)

    def _is_full(self, path: Path) -> bool:
        """Whether a leaf has a value in every record, as most have."""
        column = self._columns.get(path)
        return column is not None and not column.null_count

    def _present(self, path: Path) -> pa.Array | None:
        """Where the value at a path is not null: None when nowhere.

        A map or list of records is null where all it holds is.
        """
        if path in self._columns:
            column = self._columns[path]
            return None if column.null_count == len(column) else pc.is_valid(column)
        present: pa.Array | None = None
        for id_ in sorted(self._below.get(path, ())):
            below = self._present((*path, id_))
            if below is not None:
                present = below if present is None else pc.or_(present, below)
        return present

    def _array(self, items: AvroType, path: Path) -> pa.Array:
        if items.is_number:
            return _number_lists(self._columns[path], path)
        slots = sorted(self._below.get(path, ()))
        keyed = [field.name for field in items.fields] == ["key", "value"]
        parts: list[pa.Array] = []
        count = np.zeros(self._rows, dtype=np.int64)
        for slot in slots:
            is_full = self._is_full((*path, slot))
            present = None if is_full else self._present((*path, slot))
            if present is None and not is_full:
                continue
            count += 1 if present is None else np.asarray(present, dtype=np.int64)
            if keyed:
                value = _leaf(items.fields[1].type, self._columns[(*path, slot)], path)
                key = pa.scalar(_number(slot), pa.binary())
                item = pc.binary_join_element_wise(key, value, _bytes(b""))
            else:
                item = self.encode(items, (*path, slot))
            parts.append(item if is_full else pc.if_else(present, item, _bytes(b"")))
        return _counted(_joined(parts, self._rows), count)


def _id(field_id: int | None) -> int:
    return -1 if field_id is None else field_id


def _joined(parts: list[pa.Array], rows: int) -> pa.Array:
    if not parts:
        return pa.repeat(_bytes(b""), rows)
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _bytes(b""))


def _counted(items: pa.Array, count: Longs) -> pa.Array:
    """Items led by their count and followed by a zero, which alone stands for no items."""
    end = pc.if_else(pa.array(count > 0), _bytes(b"\x00"), _bytes(b""))
    return pc.binary_join_element_wise(numbers(count), items, end, _bytes(b""))


def _leaf(type_: AvroType, values: pa.Array, path: Path) -> pa.Array:
    """One primitive's bytes; those of null are not used."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if type_.is_number:
        filled = values.fill_null(0) if values.null_count else values
        return numbers(np.asarray(filled.cast(pa.int64()), dtype=np.int64))
    if type_.is_text:
        encoded = values.cast(pa.binary())
        encoded = encoded.fill_null(b"") if encoded.null_count else encoded
        length = np.asarray(pc.binary_length(encoded), dtype=np.int64)
        return pc.binary_join_element_wise(numbers(length), encoded, _bytes(b""))
    if type_.kind == "boolean":
        return pc.if_else(values.fill_null(False), pa.scalar(b"\x01", pa.binary()), _bytes(b"\x00"))
    if type_.kind in ("float", "double"):
        dtype = "<f4" if type_.kind == "float" else "<f8"
        raw = np.ascontiguousarray(values.fill_null(0.0).to_numpy(zero_copy_only=False), dtype)
        return _fixed_width(raw.view(np.uint8), raw.itemsize, len(values))
    if type_.kind == "fixed":
        encoded = values.cast(pa.binary())
        wrong = pc.not_equal(pc.binary_length(encoded), type_.size)
        if pc.any(wrong).as_py():
            raise InvalidInput(f"a value of field {path} does not have {type_.size} bytes")
        return encoded
    raise Unsupported(f"Avro type {type_.kind} cannot be written", feature=f"avro-{type_.kind}")


def _fixed_width(raw: np.ndarray[Any, np.dtype[np.uint8]], width: int, rows: int) -> pa.Array:
    offsets = np.arange(rows + 1, dtype=np.int32) * width
    return _binary(offsets, raw)


def _binary(
    offsets: np.ndarray[Any, np.dtype[Any]], data: np.ndarray[Any, np.dtype[np.uint8]]
) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _number_lists(lists: pa.Array, path: Path) -> pa.Array:
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.combine_chunks()
    values = lists.flatten()
    if values.null_count:
        raise InvalidInput(f"a list of field {path} holds null")
    encoded = numbers(np.asarray(values.cast(pa.int64()), dtype=np.int64))
    count = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), dtype=np.int64)
    ends = np.concatenate(([0], np.cumsum(count)))
    offsets, data = _parts(encoded)
    return _counted(_binary(offsets[ends], np.frombuffer(data, dtype=np.uint8)), count)


def _parts(array: pa.Array) -> tuple[Longs, bytes]:
    """A binary array's offsets, from zero on, and its bytes."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    _, raw, data = array.buffers()
    offsets = np.frombuffer(raw, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    body = b"" if data is None else data.slice(first, last - first).to_pybytes()
    return offsets.astype(np.int64) - first, body


def numbers(values: Longs) -> pa.Array:
    """Zigzag numbers as a column of bytes."""
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    largest = int(zigzag.max()) if zigzag.size else 0
    if largest < 0x80:
        return _binary(np.arange(len(zigzag) + 1), zigzag.astype(np.uint8))
    if int(zigzag.min()) == largest:  # counts mostly are the same in every record
        encoded = _number(int(values[0]))
        repeated = np.frombuffer(encoded * len(zigzag), dtype=np.uint8)
        return _binary(np.arange(len(zigzag) + 1) * len(encoded), repeated)
    length = np.ones(len(zigzag), dtype=np.int64)
    for shift in range(7, 70, 7):
        length += (zigzag >> np.uint64(shift)) > 0 if shift < 64 else np.int64(0)
    ends = np.concatenate(([0], np.cumsum(length)))
    data = np.empty(int(ends[-1]), dtype=np.uint8)
    for byte in range(int(length.max())):
        rows = np.flatnonzero(length > byte)
        bits = ((zigzag[rows] >> np.uint64(7 * byte)) & np.uint64(0x7F)).astype(np.uint8)
        data[ends[rows] + byte] = bits | np.where(length[rows] > byte + 1, 0x80, 0).astype(np.uint8)
    return _binary(ends, data)


def _number(value: int) -> bytes:
    """One zigzag number."""
    zigzag = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while zigzag >= 0x80:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    encoded.append(zigzag)
    return bytes(encoded)


def _text(value: str) -> bytes:
    raw = value.encode()
    return _number(len(raw)) + raw
