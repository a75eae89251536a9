"""ADD and DELETE entries folded into the live set."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import FormatError
from frazil.paimon.read.data_types import parse_type
from frazil.paimon.read.manifest_tables import live_entries, read_manifest
from tests.unit.paimon.encode import avro_file, binary_row, entry, manifest_schema

PARTITION = binary_row([parse_type("INT")], [1])


def live(*entries: dict[str, Any]) -> list[tuple[str, int]]:
    table = live_entries(read_manifest(avro_file(manifest_schema(), list(entries))))
    return [(row["file_name"], row["level"]) for row in table.to_pylist()]


def test_a_deleted_file_is_gone_whatever_the_order() -> None:
    assert live(entry("a"), entry("b"), entry("a", kind=1)) == [("b", 0)]
    assert live(entry("a", kind=1), entry("b"), entry("a")) == [("b", 0)]


def test_a_file_moved_to_another_level_stays_alive_there() -> None:
    assert live(entry("a"), entry("a", kind=1), entry("a", level=5)) == [("a", 5)]


def test_statistics_are_not_part_of_what_a_file_is() -> None:
    assert live(entry("a", row_count=7), entry("a", kind=1, row_count=0)) == []


@pytest.mark.parametrize(
    "other",
    [
        *({"partition": PARTITION}, {"bucket": 1}, {"level": 1}, {"extra_files": ["a.index"]}),
        *({"embedded_file_index": b"x"}, {"external_path": "s3://b/a"}),
    ],
)
def test_deleting_another_file_of_the_same_name_leaves_this_one(other: dict[str, Any]) -> None:
    assert live(entry("a"), entry("a", kind=1, **other)) == [("a", 0)]


def test_a_file_added_twice_is_there_once() -> None:
    assert live(entry("a"), entry("b"), entry("a")) == [("a", 0), ("b", 0)]


def test_no_entries_no_files() -> None:
    assert live() == []


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(FormatError, match="_KIND"):
        live(entry("a", kind=2))
