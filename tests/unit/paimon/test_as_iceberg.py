"""Paimon schemas as Iceberg schemas, across versions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import InvalidInput, Unsupported
from frazil.iceberg.types import IntegerType, LongType
from frazil.paimon.read import as_iceberg
from frazil.paimon.read.table_schema import TableSchema, parse_schema
from tests.unit.paimon.place import schema_json


def version(schema_id: int, *fields: tuple[int, str, Any], **changes: Any) -> TableSchema:
    raw = schema_json([], id=schema_id, **changes)
    raw["fields"] = [{"id": i, "name": name, "type": type} for i, name, type in fields]
    raw["highestFieldId"] = max(i for i, _, _ in fields)
    return parse_schema(json.dumps(raw).encode())


def names(mapping: Any) -> dict[int, list[str]]:
    return {item.field_id: list(item.names) for item in mapping}


def test_field_ids_stay_those_that_data_files_carry() -> None:
    schema = as_iceberg.iceberg_schema(
        version(3, (0, "k", "INT NOT NULL"), (5, "v", "STRING"), primaryKeys=["k"])
    )
    assert [(f.field_id, f.name, f.required) for f in schema.fields] == [
        (0, "k", True),
        (5, "v", False),
    ]
    assert schema.schema_id == 3
    assert schema.identifier_field_ids == [0]


def test_a_column_is_required_only_if_it_always_was() -> None:
    now = version(2, (0, "a", "INT NOT NULL"), (1, "b", "INT NOT NULL"), (2, "c", "INT NOT NULL"))
    before = version(1, (0, "a", "INT NOT NULL"), (1, "b", "INT"))
    schema = as_iceberg.iceberg_schema(now, earlier=[before])
    assert [field.required for field in schema.fields] == [True, False, False]


def test_all_types_in_the_way_are_named_at_once() -> None:
    odd = version(0, (0, "t", "TIME"), (1, "v", "VARIANT"), (2, "k", "INT"))
    with pytest.raises(Unsupported, match=r"column 't'.*column 'v'.*exclude"):
        as_iceberg.iceberg_schema(odd)
    assert [f.name for f in as_iceberg.iceberg_schema(odd, exclude=["t", "v"]).fields] == ["k"]


def test_a_key_cannot_be_left_out() -> None:
    keyed = version(
        0, (0, "k", "INT"), (1, "p", "INT"), partitionKeys=["p"], primaryKeys=["k", "p"]
    )
    for name in ("k", "p"):
        with pytest.raises(InvalidInput, match=name):
            as_iceberg.iceberg_schema(keyed, exclude=[name])


def test_partition_keys_become_identity_fields() -> None:
    schema = version(
        0, (0, "k", "INT"), (4, "d", "DATE"), (7, "s", "STRING"), partitionKeys=["s", "d"]
    )
    spec = as_iceberg.partition_spec(schema)
    assert [(f.source_id, f.field_id, f.name, str(f.transform)) for f in spec.fields] == [
        (7, 1000, "s", "identity"),
        (4, 1001, "d", "identity"),
    ]


def test_a_renamed_column_is_found_under_both_names() -> None:
    old, new = version(0, (0, "a", "INT")), version(1, (0, "b", "INT"))
    mapping = as_iceberg.name_mapping(new, [old, new])
    assert names(mapping) == {0: ["b", "a"]}
    assert as_iceberg.misbound(old, new, mapping) == []


def test_a_reused_name_belongs_to_the_newer_column() -> None:
    old = version(0, (0, "k", "INT"), (1, "x", "INT"))
    new = version(1, (0, "k", "INT"), (2, "x", "STRING"))
    mapping = as_iceberg.name_mapping(new, [old, new])
    assert names(mapping) == {0: ["k"], 2: ["x"]}
    assert as_iceberg.misbound(old, new, mapping) == ["x"]
    assert as_iceberg.misbound(new, new, mapping) == []


def test_a_dropped_column_stays_readable_for_older_snapshots() -> None:
    old, new = version(0, (0, "k", "INT"), (1, "x", "INT")), version(1, (0, "k", "INT"))
    mapping = as_iceberg.name_mapping(new, [old])
    assert names(mapping) == {0: ["k"], 1: ["x"]}
    assert as_iceberg.misbound(old, old, mapping) == []


def test_names_inside_rows_are_bound_too() -> None:
    def row(*fields: tuple[int, str]) -> dict[str, Any]:
        return {"type": "ROW", "fields": [{"id": i, "name": n, "type": "INT"} for i, n in fields]}

    old = version(0, (0, "r", {"type": "ARRAY", "element": row((1, "x"), (2, "y"))}))
    new = version(1, (0, "r", {"type": "ARRAY", "element": row((1, "z"), (3, "y"))}))
    mapping = as_iceberg.name_mapping(new, [old])
    element = mapping.fields[0].fields[0]
    assert element.names == ("element",)
    assert {item.field_id: item.names for item in element.fields} == {1: ("z", "x"), 3: ("y",)}
    assert as_iceberg.misbound(old, new, mapping) == ["r.y"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(("TINYINT", "INT"), ("INT", "BIGINT"), ("FLOAT", "DOUBLE"), ("CHAR(3)", "STRING")),
        *(("VARCHAR(3)", "VARCHAR(4)"), ("DECIMAL(5, 2)", "DECIMAL(9, 2)"), ("BINARY(2)", "BYTES")),
        *(("TIMESTAMP(3)", "TIMESTAMP(6)"), ("DATE", "DATE")),
    ],
)
def test_widening_a_type_fits(old: str, new: str) -> None:
    assert as_iceberg.misfits(version(0, (0, "c", old)), version(1, (0, "c", new))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(("INT", "TINYINT"), ("BIGINT", "INT"), ("STRING", "INT"), ("INT", "STRING")),
        *(("STRING", "VARCHAR(3)"), ("STRING", "CHAR(9)"), ("DECIMAL(5, 2)", "DECIMAL(9, 3)")),
        *(
            ("TIMESTAMP(6)", "TIMESTAMP(3)"),
            ("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)"),
            ("DOUBLE", "FLOAT"),
        ),
    ],
)
def test_any_other_change_of_a_type_does_not_fit(old: str, new: str) -> None:
    problems = as_iceberg.misfits(version(0, (0, "c", old)), version(1, (0, "c", new)))
    assert len(problems) == 1
    assert problems[0].startswith("column 'c' changed from")
    assert as_iceberg.misfits(version(0, (0, "c", old)), version(1, (0, "c", new)), ["c"]) == []


def test_changes_inside_nested_types_are_seen() -> None:
    old = {"type": "MAP", "key": "STRING", "value": {"type": "ARRAY", "element": "BIGINT"}}
    new = {"type": "MAP", "key": "STRING", "value": {"type": "ARRAY", "element": "INT"}}
    problems = as_iceberg.misfits(version(0, (0, "m", old)), version(1, (0, "m", new)))
    assert problems == ["column 'm.element.element' changed from BIGINT to INT"]


def test_promoted_columns_have_the_newer_type() -> None:
    old, new = version(0, (0, "c", "INT")), version(1, (0, "c", "BIGINT"))
    assert as_iceberg.iceberg_schema(old).find_type(0) == IntegerType()
    assert as_iceberg.iceberg_schema(new, earlier=[old]).find_type(0) == LongType()
