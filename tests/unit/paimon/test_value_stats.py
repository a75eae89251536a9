"""SimpleStats of manifests as flat statistics columns."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from frazil.errors import FormatError
from frazil.paimon.read import as_iceberg
from frazil.paimon.read.data_types import parse_type
from frazil.paimon.read.manifest_tables import read_manifest
from frazil.paimon.read.table_schema import TableSchema, parse_schema
from frazil.paimon.read.value_stats import content_stats
from tests.unit.paimon.encode import avro_file, entry, manifest_schema, statistics
from tests.unit.paimon.place import schema_json

INT, STRING, DOUBLE = parse_type("INT"), parse_type("STRING"), parse_type("DOUBLE")


def schema_of(*fields: tuple[str, Any], **changes: Any) -> TableSchema:
    return parse_schema(json.dumps(schema_json(fields, **changes)).encode())


def stats(
    schemas: list[TableSchema], *entries: dict[str, Any], **arguments: Any
) -> dict[str, list[Any]]:
    files = read_manifest(avro_file(manifest_schema(), list(entries)))
    schema = as_iceberg.iceberg_schema(schemas[-1])
    by_id = {item.id: item for item in schemas}
    found = content_stats(files, by_id, schema, **arguments)
    return {key.removeprefix("content_stats."): v.to_pylist() for key, v in found.items()}


def test_all_columns_of_the_schema_are_covered_when_nothing_is_listed() -> None:
    schema = schema_of(("a", "INT"), ("s", "STRING"))
    low, high = [1, "aa"], [9, "zz"]
    found = stats([schema], entry("f", value_stats=statistics([INT, STRING], low, high, [0, 2])))
    assert found == {
        "0.lower_bound": [1],
        "0.upper_bound": [9],
        "0.tight_bounds": [True],
        "0.value_count": [10],
        "0.null_value_count": [0],
        "1.lower_bound": ["aa"],
        "1.upper_bound": ["zz"],
        "1.tight_bounds": [False],
        "1.value_count": [10],
        "1.null_value_count": [2],
    }


def test_dense_statistics_cover_the_listed_columns_in_their_order() -> None:
    schema = schema_of(("a", "INT"), ("b", "INT"), ("s", "STRING"))
    dense = statistics([STRING, INT], ["m", 5], ["n", 6], [1, 0])
    found = stats(
        [schema],
        entry("f", value_stats=dense, value_stats_cols=["s", "a"]),
        entry("g", value_stats_cols=[]),
        entry("h", value_stats=statistics([INT], [7], [8], [None]), write_cols=["b"]),
    )
    assert found["0.lower_bound"] == [5, None, None]
    assert found["1.upper_bound"] == [None, None, 8]
    assert found["1.tight_bounds"] == [False, False, True]
    assert "1.null_value_count" not in found
    assert found["2.lower_bound"] == ["m", None, None]
    assert found["2.null_value_count"] == [1, None, None]


def test_a_column_added_later_is_null_in_every_row_of_older_files() -> None:
    old = schema_of(("a", "INT"))
    new = schema_of(("a", "BIGINT"), ("b", "INT"), id=1)
    found = stats(
        [old, new],
        entry("f", value_stats=statistics([INT], [1], [2], [0])),
        entry("g", schema_id=1, value_stats_cols=[]),
    )
    assert found["0.lower_bound"] == [1, None]
    assert found["1.null_value_count"] == [10, None]
    assert found["1.value_count"] == [10, None]


def test_bounds_of_a_column_whose_type_narrowed_are_unknown() -> None:
    old, new = schema_of(("a", "STRING")), schema_of(("a", "INT"), id=1)
    found = stats([old, new], entry("f", value_stats=statistics([STRING], ["1"], ["2"], [0])))
    assert "0.lower_bound" not in found
    assert found["0.null_value_count"] == [0]


def test_float_bounds_never_narrow() -> None:
    schema = schema_of(("d", "DOUBLE"))
    nan = float("nan")
    found = stats(
        [schema],
        entry("f", value_stats=statistics([DOUBLE], [0.0], [-0.0], [0])),
        entry("g", value_stats=statistics([DOUBLE], [nan], [nan], [0])),
    )
    assert [str(value) for value in found["0.lower_bound"]] == ["-0.0", "None"]
    assert [str(value) for value in found["0.upper_bound"]] == ["0.0", "None"]
    assert found["0.tight_bounds"] == [False, False]


def test_partition_columns_are_known_exactly() -> None:
    schema = schema_of(("p", "STRING"), ("a", "INT"), partitionKeys=["p"])
    found = stats(
        [schema], entry("f"), entry("g"), constants={0: pa.array(["one", None], pa.string())}
    )
    assert found == {
        "0.lower_bound": ["one", None],
        "0.upper_bound": ["one", None],
        "0.tight_bounds": [True, False],
        "0.value_count": [10, 10],
        "0.null_value_count": [0, 10],
    }


def test_bounds_over_deleted_rows_are_not_tight() -> None:
    import numpy as np

    schema = schema_of(("a", "INT"))
    one = statistics([INT], [1], [2], [0])
    found = stats(
        [schema],
        *(entry("f", value_stats=one), entry("g", value_stats=one)),
        exact=np.array([True, False]),
    )
    assert found["0.tight_bounds"] == [True, False]


def test_a_stats_row_of_another_width_is_refused() -> None:
    schema = schema_of(("a", "INT"), ("b", "INT"))
    with pytest.raises(FormatError, match="1 fields; expected 2"):
        stats([schema], entry("f", value_stats=statistics([INT], [1], [1], [0])))
    short = {**statistics([INT, INT], [1, 1], [2, 2], [0, 0]), "_NULL_COUNTS": [0]}
    with pytest.raises(FormatError, match="_NULL_COUNTS"):
        stats([schema], entry("f", value_stats=short))
