"""Avro files as Arrow columns by field name.

For files without field ids, as Paimon's manifests are: they nest small records, sometimes inside
`["null", record]` unions, and hold lists. Blocks come from `frazil.avro.container`, and records are
walked in step (`frazil.avro.walker`); nested records become dotted names (`_FILE._ROW_COUNT`). A
list is captured as its bytes and decoded once per different value: lists of a manifest repeat. A
file yields as many values per column as it has records, or a `FormatError`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from frazil.avro import avro_types, value_readers
from frazil.avro.avro_types import AvroField, AvroType
from frazil.avro.container import read_header, sized_bytes, stretches
from frazil.avro.field_steps import (
    Choice,
    FieldStep,
    Fixed,
    Flag,
    ItemSlots,
    Nothing,
    Number,
    Record,
    Text,
)
from frazil.avro.record_starts import walk
from frazil.avro.value_readers import Read
from frazil.avro.walker import Captured, Longs, Path, Walker, text_array
from frazil.errors import FormatError, FrazilError, Unsupported
from frazil.limits import DEFAULT, Limits
from frazil.value_classes import dataclass, frozen, replace

_MAX_DEPTH: Final = 12

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


def read(
    data: bytes,
    names: Sequence[str] | None = None,
    *,
    path: str | None = None,
    domains: Mapping[str, int] | None = None,
    limits: Limits = DEFAULT,
) -> pa.Table:
    """The records of one container file as a table of the named fields that it has.

    `names` lists dotted field names; one that names a record takes all its fields. None takes
    every field. `domains` gives, for fields known to be small numbers, how many values they take
    from zero on; it only helps to find where records start.
    """
    header = read_header(data, path=path)
    small = tuple(sorted((domains or {}).items()))
    try:
        plan = _planned(header.schema, None if names is None else tuple(names), small)
        parts: list[list[pa.Array]] = []
        rows = 0
        for blocks in stretches(data, header, limits=limits, path=path):
            walker, keep = walk(blocks, plan.schema, plan.step, plan.domains, path)
            parts.append([column.array(walker, keep) for column in plan.columns])
            rows += int(blocks.counts.sum())
        return _table(plan, parts, rows)
    except FrazilError:
        raise
    except (ValueError, IndexError, OverflowError, struct.error, pa.ArrowException) as error:
        reason = error or type(error).__name__
        raise FormatError(f"not a readable Avro file: {reason}", path=path) from error


def _table(plan: _Plan, parts: list[list[pa.Array]], rows: int) -> pa.Table:
    if not plan.columns:
        return pa.table({"": pa.nulls(rows)}).select([])
    arrays = [
        pa.concat_arrays([part[i] for part in parts]) if parts else pa.array([], column.arrow)
        for i, column in enumerate(plan.columns)
    ]
    return pa.table(arrays, names=[column.name for column in plan.columns])


# Schemas


@frozen
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


@frozen
class _Plan:
    schema: AvroType
    step: FieldStep
    columns: tuple[_Column, ...]
    domains: Mapping[Path, int]


@dataclass(frozen=True, slots=True)
class _Raw(FieldStep):
    """A wanted list: stepped over, and its bytes captured."""

    path: Path
    inner: FieldStep

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        after = self.inner.walk(walker, rows, position.copy())
        walker.capture(self.path, rows, position, np.maximum(after - position, 0))
        return after


@dataclass(frozen=True, slots=True)
class _SkippedNumber(FieldStep):
    """A number that is not needed. Manifests have few: no index of numbers is made for them."""

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        return walker.varint(position)[1]


@lru_cache(maxsize=64)
def _planned(
    root: AvroType, names: tuple[str, ...] | None, small: tuple[tuple[str, int], ...]
) -> _Plan:
    if root.kind == "union":
        # Avro writes a record as its fields in a row: a record of one field is that field.
        root = AvroType(kind="record", fields=(AvroField(name="", id=None, type=root),))
    if root.kind != "record":
        raise FormatError(f"the file holds {root.kind} values; expected records")
    schema = _numbered(root)
    columns = tuple(_columns(schema, (), "", names))
    paths = {column.path for column in columns}
    counts = dict(small)
    domains: dict[Path, int] = {
        (field.id,): counts[field.name]
        for field in schema.fields
        if field.id is not None and field.name in counts and field.type.is_number
    }
    return _Plan(schema=schema, step=_step(schema, (), paths), columns=columns, domains=domains)


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
    type: AvroType, path: Path, name: str, names: tuple[str, ...] | None
) -> Iterator[_Column]:
    """The wanted leaves below a type, in file order."""
    if len(path) > _MAX_DEPTH:
        raise FormatError("avro.schema is nested too deeply")
    if type.kind == "union":
        types = [branch for branch in type.branches if branch.kind != "null"]
        if len(types) == 1:
            yield from _columns(types[0], path, name, names)
            return
        if not _is_wanted(name, names):
            return
        raise Unsupported(f"Avro union of {len(types)} types", feature="avro-union")
    if type.kind == "record":
        for field in type.fields:
            assert field.id is not None
            inner = f"{name}.{field.name}" if name else field.name
            yield from _columns(field.type, (*path, field.id), inner, names)
    elif _is_wanted(name, names):
        _arrow_type(type)
        yield _Column(name=name, path=path, type=type)


def _is_wanted(name: str, names: tuple[str, ...] | None) -> bool:
    if names is None:
        return True
    return any(name == prefix or name.startswith(prefix + ".") for prefix in names)


def _step(type: AvroType, path: Path, paths: set[Path]) -> FieldStep:
    """The step that captures the wanted leaves below a type."""
    leaf = path if path in paths else None
    match type.kind:
        case "record":
            fields = [
                _step(f.type, (*path, f.id if f.id is not None else -1), paths) for f in type.fields
            ]
            return Record(tuple(fields))
        case "union":
            return Choice(tuple(_step(branch, path, paths) for branch in type.branches))
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
            types = [branch for branch in type.branches if branch.kind != "null"]
            if len(types) == 1:
                return _arrow_type(types[0])
            raise Unsupported(f"Avro union of {len(types)} types", feature="avro-union")
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


@lru_cache(maxsize=64)
def _reader(type: AvroType) -> Read:
    match type.kind:
        case "null":
            return value_readers.nothing
        case "int" | "long" | "enum":
            return avro_types.number
        case "bytes":
            return sized_bytes
        case "string":
            return value_readers.text
        case "boolean":
            return value_readers.flag
        case "float":
            return value_readers.packed("<f")
        case "double":
            return value_readers.packed("<d")
        case "fixed":
            return value_readers.fixed(type.size)
        case "union":
            return value_readers.union([_reader(branch) for branch in type.branches])
        case "record":
            return value_readers.record([(f.name, _reader(f.type)) for f in type.fields])
        case _:
            assert type.items is not None
            return value_readers.items(_reader(type.items))
