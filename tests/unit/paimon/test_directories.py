"""Directories of partitions and buckets, named as Paimon's Java and Python writers name them."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.paimon.read.data_types import arrow_type, parse_type
from frazil.paimon.read.directories import bucket_directories, escape
from frazil.paimon.read.table_schema import parse_schema
from tests.unit.paimon.place import schema_json

DEFAULT = "__DEFAULT_PARTITION__"


def directory(type: str, value: Any, **options: str) -> str:
    raw = schema_json([("p", type)], partitionKeys=["p"], options=options)
    schema = parse_schema(json.dumps(raw).encode())
    column = pa.array([value], arrow_type(parse_type(type)))
    return bucket_directories(schema, [column], [0])[0]


@pytest.mark.parametrize(
    ("type", "value", "legacy", "named"),
    [
        ("STRING", "plain", "plain", "plain"),
        ("STRING", None, DEFAULT, DEFAULT),
        ("STRING", "", DEFAULT, DEFAULT),
        ("STRING", "  ", DEFAULT, DEFAULT),
        ("STRING", "p/with %=long", "p%2Fwith %25%3Dlong", "p%2Fwith %25%3Dlong"),
        ("INT", -3, "-3", "-3"),
        ("BOOLEAN", True, "true", "true"),
        ("DATE", datetime.date(2024, 1, 1), "19723", "2024-01-01"),
        ("DATE", datetime.date(1969, 12, 31), "-1", "1969-12-31"),
        ("DECIMAL(30, 5)", Decimal("0.00001"), "0.00001", "0.00001"),
        ("DECIMAL(10, 2)", Decimal("-3.50"), "-3.50", "-3.50"),
        (
            "TIMESTAMP(3)",
            datetime.datetime(2024, 1, 1),
            "2024-01-01T00%3A00",
            "2024-01-01 00%3A00%3A00.000",
        ),
        (
            "TIMESTAMP(6)",
            datetime.datetime(2024, 1, 2, 3, 4, 6, 678901),
            "2024-01-02T03%3A04%3A06.678901",
            "2024-01-02 03%3A04%3A06.678901",
        ),
        (
            "TIMESTAMP(0)",
            datetime.datetime(2024, 1, 2, 3, 4, 6),
            "2024-01-02T03%3A04%3A06",
            "2024-01-02 03%3A04%3A06",
        ),
        ("TIME(3)", datetime.time(0, 0, 1), "1000", "00%3A00%3A01"),
    ],
)
def test_a_partition_directory_shows_the_value(
    type: str, value: Any, legacy: str, named: str
) -> None:
    assert directory(type, value) == f"p={legacy}/bucket-0"
    assert directory(type, value, **{"partition.legacy-name": "false"}) == f"p={named}/bucket-0"


def test_options_move_the_data_and_rename_the_default() -> None:
    options = {"data-file.path-directory": "data", "partition.default-name": "none"}
    assert directory("STRING", None, **options) == "data/p=none/bucket-0"


def test_the_postponed_bucket_has_a_name() -> None:
    schema = parse_schema(json.dumps(schema_json([("k", "INT")])).encode())
    assert bucket_directories(schema, [], [-2, 3]) == ["bucket-postpone", "bucket-3"]


def test_characters_that_paths_use_are_escaped() -> None:
    assert escape("a\x01\"#%'*/:=?\\{}[]^\x7fé z") == (
        "a%01%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%7D%5B%5D%5E%7Fé z"
    )
