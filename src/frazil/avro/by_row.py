"""Avro records as Arrow rows of any shape, one value after the other.

For data files: lists, maps and records nest as they like, and values have logical types. Slower
than the readers of manifests (`by_field_id`, `by_name`), which know the few shapes they meet. Ids
of fields that Iceberg puts in the schema become ids of the Arrow fields.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Iterator, Mapping
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from frazil.avro import value_readers
from frazil.avro.avro_types import number
from frazil.avro.container import Header, plain_blocks, sized_bytes, stored_blocks
from frazil.avro.value_readers import Read, items, nothing, packed, pair, text
from frazil.errors import FormatError, Unsupported
from frazil.limits import DEFAULT, Limits
from frazil.value_classes import frozen

_ID: Final = b"PARQUET:field_id"
_EXACT: Final = Context(prec=80)
_DAMAGE: Final = (IndexError, struct.error, UnicodeDecodeError, OverflowError, pa.ArrowInvalid)
_LONGS: Final[Mapping[str, pa.DataType]] = {
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
    "timestamp-nanos": pa.timestamp("ns"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}


@frozen
class _Type:
    """How values of a type are read, and what they are in Arrow."""

    arrow: pa.DataType
    read: Read
    nullable: bool = False


class RowReader:
    """The records of one container file."""

    def __init__(self, data: bytes, header: Header, *, path: str, limits: Limits = DEFAULT) -> None:
        self._data, self._header, self._path, self._limits = data, header, path, limits
        declared = json.loads(header.metadata["avro.schema"])
        if header.schema.kind != "record":
            raise FormatError("its records are not of type record", path=path, field="avro.schema")
        types: dict[str, _Type] = {}
        try:
            space = declared.get("namespace", "")
            kinds = [
                (declaration, _type(declaration["type"], types, space))
                for declaration in declared["fields"]
            ]
            self._columns = [
                (_field(declaration, kind, "field-id"), kind) for declaration, kind in kinds
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"not an Avro schema: {error}", path=path) from error
        self.schema = pa.schema([field for field, _ in self._columns])

    @property
    def num_rows(self) -> int:
        """How many records the blocks say they hold."""
        return sum(n for n, _ in stored_blocks(self._data, self._header, path=self._path))

    def batches(self, names: Collection[str], max_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows in file order, with the named columns."""
        schema = pa.schema([field for field, _ in self._columns if field.name in names])
        for count, block in plain_blocks(
            self._data, self._header, limits=self._limits, path=self._path
        ):
            try:
                yield from self._batches(block, count, schema, max_rows)
            except _DAMAGE as error:
                raise FormatError(f"a block is corrupt: {error}", path=self._path) from error

    def _batches(
        self, block: bytes, count: int, schema: pa.Schema, max_rows: int
    ) -> Iterator[pa.RecordBatch]:
        at = 0
        for start in range(0, count, max_rows):
            values: dict[str, list[Any]] = {field.name: [] for field in schema}
            for _ in range(min(max_rows, count - start)):
                for field, kind in self._columns:
                    value, at = kind.read(block, at)
                    if field.name in values:
                        values[field.name].append(value)
            arrays = [pa.array(values[field.name], field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if at != len(block):
            raise IndexError(f"its records end at byte {at} of {len(block)}")


def _field(declared: Mapping[str, Any], kind: _Type, key: str, name: str | None = None) -> pa.Field:
    id_ = declared.get(key)
    return pa.field(
        name or declared["name"],
        kind.arrow,
        nullable=kind.nullable,
        metadata=None if id_ is None else {_ID: str(int(id_))},
    )


def _type(node: Any, types_by_name: dict[str, _Type], space: str) -> _Type:
    if isinstance(node, list):
        return _union(node, types_by_name, space)
    if isinstance(node, str):
        named_type = types_by_name.get(node) or types_by_name.get(f"{space}.{node}")
        return named_type or _primitive(node, {})
    kind = node["type"]
    if not isinstance(kind, str):
        return _type(kind, types_by_name, space)
    space = node.get("namespace", space)
    if kind == "record":
        reader = _record(node, types_by_name, space)
    elif kind == "array":
        reader = _array(node, types_by_name, space)
    elif kind == "map":
        value = _type(node["values"], types_by_name, space)
        key_field = _field(node, _primitive("string", {}), "key-id", "key")
        item_field = _field(node, value, "value-id", "value")
        reader = _Type(arrow=pa.map_(key_field, item_field), read=items(pair(text, value.read)))
    else:
        reader = _primitive(kind, node)
    if "name" in node:
        types_by_name[node["name"]] = reader
        if space:
            types_by_name[f"{space}.{node['name']}"] = reader
    return reader


def _union(branches: list[Any], types_by_name: dict[str, _Type], space: str) -> _Type:
    types = [_type(branch, types_by_name, space) for branch in branches if branch != "null"]
    if len(types) != 1:
        raise Unsupported(
            f"an Avro union of {len(types)} types cannot be a column; expected one type and null",
            feature="avro unions",
        )
    read = value_readers.union(
        [nothing if branch == "null" else types[0].read for branch in branches]
    )
    return _Type(arrow=types[0].arrow, read=read, nullable="null" in branches)


def _record(node: Mapping[str, Any], types_by_name: dict[str, _Type], space: str) -> _Type:
    fields = node["fields"]
    kinds = [(field, _type(field["type"], types_by_name, space)) for field in fields]
    read = value_readers.record([(field["name"], kind.read) for field, kind in kinds])
    return _Type(
        arrow=pa.struct([_field(declared, kind, "field-id") for declared, kind in kinds]), read=read
    )


def _array(node: Mapping[str, Any], types_by_name: dict[str, _Type], space: str) -> _Type:
    if node.get("logicalType") == "map":  # one whose keys are not text
        parts = {part["name"]: part for part in node["items"]["fields"]}
        key, value = (_type(parts[name]["type"], types_by_name, space) for name in ("key", "value"))
        fields = [
            _field(parts["key"], key, "field-id"),
            _field(parts["value"], value, "field-id"),
        ]
        return _Type(arrow=pa.map_(*fields), read=items(pair(key.read, value.read)))
    item = _type(node["items"], types_by_name, space)
    field = _field(node, item, "element-id", "element")
    return _Type(arrow=pa.list_(field), read=items(item.read))


def _primitive(kind: str, node: Mapping[str, Any]) -> _Type:
    logical = node.get("logicalType")
    match kind:
        case "boolean":
            return _Type(arrow=pa.bool_(), read=value_readers.flag)
        case "int":
            return _Type(arrow=pa.date32() if logical == "date" else pa.int32(), read=number)
        case "long":
            arrow = _LONGS.get(logical or "", pa.int64())
            is_zoned = str(logical).startswith("timestamp") and node.get("adjust-to-utc", True)
            return _Type(arrow=pa.timestamp(arrow.unit, "UTC") if is_zoned else arrow, read=number)
        case "float":
            return _Type(arrow=pa.float32(), read=packed("<f"))
        case "double":
            return _Type(arrow=pa.float64(), read=packed("<d"))
        case "string":
            return _Type(arrow=pa.string(), read=text)
        case "bytes" | "fixed":
            size = int(node["size"]) if kind == "fixed" else None
            read = sized_bytes if size is None else value_readers.fixed(size)
            if logical == "decimal":
                scale = int(node.get("scale", 0))
                arrow = pa.decimal128(int(node["precision"]), scale)
                return _Type(arrow=arrow, read=_decimal(read, scale))
            return _Type(arrow=pa.binary() if size is None else pa.binary(size), read=read)
    raise Unsupported(f"values of Avro type {kind!r} cannot be a column", feature=f"avro {kind}")


def _decimal(raw: Read, scale: int) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        value, at = raw(data, at)
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, _EXACT), at

    return read
