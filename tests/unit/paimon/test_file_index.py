"""File indexes made by hand, and damaged ones."""

from __future__ import annotations

import struct

import pytest

from frazil.errors import FormatError
from frazil.filter.text.filter_text import parse
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import IntegerType, NestedField, StringType
from frazil.paimon.read.data_types import DataType, TypeName
from frazil.paimon.scan.file_index import MAGIC, read_index, rules_out, xxhash64

SCHEMA = Schema(NestedField(1, "c", StringType()), NestedField(2, "n", IntegerType()))
COLUMNS = {1: ("c", DataType(name=TypeName.VARCHAR)), 2: ("n", DataType(name=TypeName.INT))}


def container(column: str, kind: str, body: bytes) -> bytes:
    names = b"".join(struct.pack(">H", len(text)) + text.encode() for text in (kind,))
    head = struct.pack(">i", 1) + struct.pack(">H", len(column)) + column.encode()
    head += struct.pack(">i", 1) + names
    start = 16 + len(head) + 8 + 4
    head += struct.pack(">ii", start, len(body)) + struct.pack(">i", 0)
    return struct.pack(">qii", MAGIC, 1, start) + head + body


def bitmap(values: list[str], *, version: int, null: bool = False) -> bytes:
    texts = [struct.pack(">i", len(value)) + value.encode() for value in values]
    head = struct.pack(">bii?", version, 10, len(values), null)
    if null:
        head += struct.pack(">i", -1) + (struct.pack(">i", 0) if version == 2 else b"")
    if version == 1:
        return head + b"".join(text + struct.pack(">i", -1) for text in texts)
    head += struct.pack(">i", 1) + texts[0] + struct.pack(">ii", 0, 0)
    return (
        head
        + struct.pack(">i", len(texts))
        + b"".join(t + struct.pack(">ii", -1, 0) for t in texts)
    )


@pytest.mark.parametrize("version", [1, 2])
def test_a_bitmap_index_knows_every_value(version: int) -> None:
    index = read_index(container("c", "bitmap", bitmap(["a", "b"], version=version)))

    def out(where: str) -> bool:
        return rules_out(index, parse(where, SCHEMA), COLUMNS)

    assert out("c = 'x'")
    assert not out("c = 'a'")
    assert not out("c IN ('x', 'b')")
    assert out("c IS NULL")
    assert not out("c IS NOT NULL")
    assert not out("c <> 'a'")
    assert not out("n = 3")
    assert out("n = 3 AND c = 'x'")
    assert not out("n = 3 OR c = 'x'")
    assert not out("c = 'x' OR c = 'a'")
    with_null = read_index(container("c", "bitmap", bitmap(["a"], version=version, null=True)))
    assert not rules_out(with_null, parse("c IS NULL", SCHEMA), COLUMNS)
    assert rules_out(with_null, parse("c = 'x'", SCHEMA), COLUMNS)


def test_an_unknown_kind_rules_nothing_out() -> None:
    index = read_index(container("c", "range-bitmap", b"anything"))
    assert not rules_out(index, parse("c = 'x'", SCHEMA), COLUMNS)


@pytest.mark.parametrize("length", [0, 7, 15, 20, 30, 40])
def test_an_index_that_ends_too_early_is_refused(length: int) -> None:
    data = container("c", "bitmap", bitmap(["a", "b"], version=2))
    with pytest.raises(FormatError):
        rules_out(read_index(data[:length]), parse("c = 'x'", SCHEMA), COLUMNS)


def test_other_bytes_are_no_index() -> None:
    with pytest.raises(FormatError, match="does not begin"):
        read_index(bytes(64))
    other = struct.pack(">qii", MAGIC, 9, 16)
    with pytest.raises(FormatError, match="version 9"):
        read_index(other)
    strange = read_index(container("c", "bitmap", struct.pack(">bii?", 3, 0, 0, False)))
    with pytest.raises(FormatError, match="version 3 of bitmap"):
        rules_out(strange, parse("c = 'x'", SCHEMA), COLUMNS)
    empty = read_index(container("c", "bloom-filter", struct.pack(">i", 0)))
    with pytest.raises(FormatError, match="Bloom filter of 0 bytes"):
        rules_out(empty, parse("c = 'x'", SCHEMA), COLUMNS)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
    ],
)
def test_hashes_are_those_that_xxhash_publishes(data: bytes, expected: int) -> None:
    assert xxhash64(data) == expected
