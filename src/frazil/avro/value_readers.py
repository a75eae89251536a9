"""Readers of single Avro values, byte by byte: from the start of a value to the value and its end.

They are put together after a schema (`by_row`, and `by_name` for lists). A value that does not fit
its bytes is an IndexError, a struct.error or a UnicodeDecodeError; whoever reads a file says which.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from frazil.avro.avro_types import item_count, number
from frazil.avro.container import sized_bytes

Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]


def nothing(data: bytes, at: int) -> tuple[Any, int]:
    """A null."""
    return None, at


def flag(data: bytes, at: int) -> tuple[Any, int]:
    """A boolean."""
    return data[at] != 0, at + 1


def text(data: bytes, at: int) -> tuple[Any, int]:
    """A string."""
    value, at = sized_bytes(data, at)
    return value.decode(), at


def packed(layout: str) -> Read:
    """A reader of numbers that `struct` lays out so."""
    packing = struct.Struct(layout)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return packing.unpack_from(data, at)[0], at + packing.size

    return read


def fixed(size: int) -> Read:
    """A reader of that many bytes."""

    def read(data: bytes, at: int) -> tuple[Any, int]:
        if at + size > len(data):
            raise IndexError(f"{size} bytes do not fit the block")
        return data[at : at + size], at + size

    return read


def union(branches: Sequence[Read]) -> Read:
    """A reader of values of one of several types."""

    def read(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = number(data, at)
        if not 0 <= branch < len(branches):
            raise IndexError(f"branch {branch} of a union of {len(branches)}")
        return branches[branch](data, at)

    return read


def record(fields: Sequence[tuple[str, Read]]) -> Read:
    """A reader of records, as dictionaries."""

    def read(data: bytes, at: int) -> tuple[Any, int]:
        values = {}
        for name, part in fields:
            values[name], at = part(data, at)
        return values, at

    return read


def items(item: Read) -> Read:
    """A reader of lists, and of maps if an item is a `pair`."""

    def read(data: bytes, at: int) -> tuple[Any, int]:
        values: list[Any] = []
        while True:
            count, at = item_count(data, at)
            if count == 0:
                return values, at
            if count > len(data) - at:
                raise IndexError(f"{count} items do not fit the block")
            for _ in range(count):
                value, at = item(data, at)
                values.append(value)

    return read


def pair(key: Read, value: Read) -> Read:
    """A reader of a key and its value."""

    def read(data: bytes, at: int) -> tuple[Any, int]:
        first, at = key(data, at)
        second, at = value(data, at)
        return (first, second), at

    return read
