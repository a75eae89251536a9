"""Avro schemas: parsed from JSON, and turned into steps over records.

Knows Avro's types and the ids that Iceberg puts on record fields. A schema becomes either a tree
of `FieldStep`s that reads wanted leaves of many records at once, or a plain function that steps
over one record; the second finds where records start when nothing better is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, Final

from frazil.avro import field_steps as walk
from frazil.avro.field_steps import FieldStep
from frazil.avro.walker import Path
from frazil.errors import FormatError
from frazil.value_classes import frozen

Skip = Callable[[bytes, int], int]
"""From the start of a value to its end; IndexError when the bytes run out."""

_MAX_DEPTH: Final = 24
_MAX_FIXED: Final = 1 << 20
_WIDTHS: Final = {"float": (4, "<f4"), "double": (8, "<f8")}
_PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)


@frozen
class AvroField:
    """One field of a record."""

    name: str
    id: int | None
    type: AvroType


@frozen
class AvroType:
    """A type of Avro's: a primitive, or one of record, array, map, union, enum, fixed."""

    kind: str
    fields: tuple[AvroField, ...] = ()
    items: AvroType | None = None
    branches: tuple[AvroType, ...] = ()
    size: int = 0

    @property
    def is_number(self) -> bool:
        """Whether values are one variable-length number."""
        return self.kind in ("int", "long", "enum")

    @property
    def is_text(self) -> bool:
        """Whether values are a length and bytes."""
        return self.kind in ("string", "bytes")

    def at(self, path: Path) -> AvroType | None:
        """The type at a path, looking through nullability; None if the schema has none there.

        What follows an array in a path is a slot or a key: its type is that of the items.
        """
        type_ = self._present()
        for id_ in path:
            if type_.items is not None:
                type_ = type_.items._present()
                continue
            child = next((field.type for field in type_.fields if field.id == id_), None)
            if child is None:
                return None
            type_ = child._present()
        return type_

    def _present(self) -> AvroType:
        branches = [branch for branch in self.branches if branch.kind != "null"]
        return branches[0] if len(branches) == 1 else self


@lru_cache(maxsize=256)
def parse(text: str) -> AvroType:
    """The schema as types; FormatError when it is none."""
    try:
        parsed = _parse(json.loads(text), {}, "")
        _check(parsed, 0)
        return parsed
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(f"not an Avro schema: {error}", field="avro.schema") from error


def _check(type_: AvroType, depth: int) -> None:
    """Refuse types that a few bytes could make endless work of."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"nested more than {_MAX_DEPTH} levels deep")
    if type_.kind == "fixed" and not 0 <= type_.size <= _MAX_FIXED:
        raise ValueError(f"a fixed type of {type_.size} bytes; expected 0 to {_MAX_FIXED}")
    if type_.kind == "array" and type_.items is not None and not _min_bytes(type_.items):
        raise ValueError("an array of values that take no bytes")
    children = [field.type for field in type_.fields]
    children += [*type_.branches, *(() if type_.items is None else (type_.items,))]
    for child in children:
        _check(child, depth + 1)


def _min_bytes(type_: AvroType) -> int:
    match type_.kind:
        case "null":
            return 0
        case "fixed":
            return type_.size
        case "record":
            return sum(_min_bytes(field.type) for field in type_.fields)
        case _:
            return 1


def _parse(node: Any, types_by_name: dict[str, AvroType], space: str) -> AvroType:
    if isinstance(node, str):
        if node in _PRIMITIVES:
            return AvroType(kind=node)
        type_ = types_by_name.get(node) or types_by_name.get(f"{space}.{node}")
        if type_ is None:
            raise ValueError(f"unknown type {node!r}")
        return type_
    if isinstance(node, list):
        return AvroType(
            kind="union", branches=tuple(_parse(branch, types_by_name, space) for branch in node)
        )
    kind = node["type"]
    if not isinstance(kind, str):
        return _parse(kind, types_by_name, space)
    space = node.get("namespace", space)
    if kind == "record":
        parsed = AvroType(
            kind=kind,
            fields=tuple(
                AvroField(
                    name=branch["name"],
                    id=branch.get("field-id"),
                    type=_parse(branch["type"], types_by_name, space),
                )
                for branch in node["fields"]
            ),
        )
    elif kind == "array":
        parsed = AvroType(kind=kind, items=_parse(node["items"], types_by_name, space))
    elif kind == "map":
        parsed = AvroType(kind=kind, items=_parse(node["values"], types_by_name, space))
    elif kind == "fixed":
        parsed = AvroType(kind=kind, size=int(node["size"]))
    elif kind == "enum":
        parsed = AvroType(kind=kind)
    else:
        return _parse(kind, types_by_name, space)
    if "name" in node:
        types_by_name[node["name"]] = parsed
        if space:
            types_by_name[f"{space}.{node['name']}"] = parsed
    return parsed


@lru_cache(maxsize=256)
def leaves_among(type_: AvroType, paths: frozenset[Path]) -> frozenset[Path]:
    """Those of some paths that a schema has."""
    return frozenset(path for path in paths if type_.at(path) is not None)


@lru_cache(maxsize=256)
def steps(type_: AvroType, paths: frozenset[Path]) -> FieldStep:
    """The steps that read these leaves of a record and step over the rest."""
    return _steps(type_, (), paths)


def _steps(type_: AvroType, path: Path | None, paths: frozenset[Path]) -> FieldStep:
    leaf = path if path in paths else None
    match type_.kind:
        case "null":
            return walk.Nothing()
        case "int" | "long" | "enum":
            return walk.Number(leaf)
        case "string" | "bytes":
            return walk.Text(leaf)
        case "boolean":
            return walk.Flag(leaf)
        case "float" | "double":
            width, dtype = _WIDTHS[type_.kind]
            return walk.Fixed(leaf, width, dtype)
        case "fixed":
            return walk.Fixed(leaf, type_.size)
        case "union":
            return walk.Choice(tuple(_steps(branch, path, paths) for branch in type_.branches))
        case "record":
            return walk.Record(
                tuple(
                    _steps(branch.type, _child(path, branch.id), paths) for branch in type_.fields
                )
            )
        case "map":
            assert type_.items is not None
            pair = walk.Record((walk.Text(None), _steps(type_.items, None, paths)))
            return walk.ItemSlots((pair,))
        case _:
            assert type_.items is not None
            return _items(type_.items, path, paths)


def _child(path: Path | None, id_: int | None) -> Path | None:
    return None if path is None or id_ is None else (*path, id_)


def _items(items: AvroType, path: Path | None, paths: frozenset[Path]) -> FieldStep:
    below = _below(path, paths)
    pair = [field.type for field in items.fields]
    keyed = len(pair) == 2 and items.fields[0].name == "key" and pair[0].is_number
    if path is not None and path in paths and items.is_number:
        return walk.NumberList(path)
    if keyed and pair[1].is_text:
        return walk.TextMap(path or (), frozenset(names[0] for names in below))
    if keyed and pair[1].is_number and below and path is not None:
        return walk.NumberMap(path, frozenset(names[0] for names in below))
    step = _steps(items, None, frozenset())
    if path is None or not below:
        return walk.ItemSlots((step,)) if step.varints is None else walk.Numbers(step.varints)
    slots = [_steps(items, (*path, slot), paths) for slot in range(max(below)[0] + 1)]
    return walk.ItemSlots((*slots, step))


def _below(path: Path | None, paths: Collection[Path]) -> set[Path]:
    if path is None:
        return set()
    depth = len(path)
    return {place[depth:] for place in paths if len(place) > depth and place[:depth] == path}


@lru_cache(maxsize=256)
def skipper(type_: AvroType) -> Skip:
    """A function from the start of one value to its end, byte by byte."""
    match type_.kind:
        case "null":
            return lambda data, at: at
        case "int" | "long" | "enum":
            return _skip_number
        case "string" | "bytes":
            return _skip_text
        case "boolean":
            return lambda data, at: at + 1
        case "float" | "double":
            width = _WIDTHS[type_.kind][0]
            return lambda data, at: at + width
        case "fixed":
            return lambda data, at: at + type_.size
        case "union":
            return _skip_union(tuple(skipper(branch) for branch in type_.branches))
        case "record":
            return _skip_record(tuple(skipper(branch.type) for branch in type_.fields))
        case "map":
            assert type_.items is not None
            return _skip_items(_skip_record((_skip_text, skipper(type_.items))))
        case _:
            assert type_.items is not None
            return _skip_items(skipper(type_.items))


def number(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise IndexError("a number longer than ten bytes")


def item_count(data: bytes, at: int) -> tuple[int, int]:
    """How many items of a list or map follow, 0 at its end, and where they start. A negative
    number says that the size of the items in bytes comes first."""
    count, at = number(data, at)
    return (count, at) if count >= 0 else (-count, number(data, at)[1])


def _skip_number(data: bytes, at: int) -> int:
    while data[at] >= 0x80:
        at += 1
    return at + 1


def _skip_text(data: bytes, at: int) -> int:
    length, at = number(data, at)
    if length < 0 or at + length > len(data):
        raise IndexError("a length past the data")
    return at + length


def _skip_union(branches: tuple[Skip, ...]) -> Skip:
    def skip(data: bytes, at: int) -> int:
        index, at = number(data, at)
        if index < 0:
            raise IndexError("a negative union branch")
        return branches[index](data, at)

    return skip


def _skip_record(fields: tuple[Skip, ...]) -> Skip:
    def skip(data: bytes, at: int) -> int:
        for field in fields:
            at = field(data, at)
        return at

    return skip


def _skip_items(item: Skip) -> Skip:
    def skip(data: bytes, at: int) -> int:
        while True:
            count, at = item_count(data, at)
            if count == 0:
                return at
            if count > len(data):
                raise IndexError("more items than bytes")
            for _ in range(count):
                at = item(data, at)

    return skip
