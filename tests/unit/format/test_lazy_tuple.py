"""Values made on first use: nothing before it, equal to a tuple after it."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import pytest

from frazil.errors import FormatError
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata_models import LazyTuple

DEFINITION = """{"format-version": 4, "table-uuid": "8a1ab2d5-6c1c-4a5c-8ad1-1b2b3c4d5e6f",
"location": "/t", "last-column-id": 1, "current-schema-id": 0, "default-spec-id": 0,
"last-partition-id": 1000, "default-sort-order-id": 0, "properties": {},
"schemas": [{"type": "struct", "schema-id": 0,
             "fields": [{"id": 1, "name": "a", "required": false, "type": "TYPE"}]}],
"partition-specs": [{"spec-id": 0, "fields": [
    {"source-id": 1, "field-id": 1000, "transform": "bucket[4]", "name": "b"}]}],
"sort-orders": [{"order-id": 0, "fields": []}],
"expressions": [{"expr-id": EXPR, "partition-field-id": 1000,
    "expr": {"source-ids": [1], "transform": "bucket[4]", "name": "b"}}]}"""


def stored(kind: str = "long", expr_id: int = 900_000) -> str:
    return DEFINITION.replace("TYPE", kind).replace("EXPR", str(expr_id))


def test_nothing_is_made_before_it_is_used_and_each_value_once() -> None:
    made: list[int] = []

    def make(value: int) -> int:
        made.append(value)
        return value

    values = LazyTuple([partial(make, 1), partial(make, 2)])
    assert len(values) == 2
    assert made == []
    assert values[0] == 1
    assert values[-1] == 2
    assert values[:1] == (1,)
    assert list(values) == [1, 2]
    assert made == [1, 2]


def test_it_equals_hashes_shows_and_travels_as_the_tuple() -> None:
    values = LazyTuple([lambda: 1, lambda: 2])
    assert values == (1, 2)
    assert values == (1, 2)
    assert values == LazyTuple([lambda: 1, lambda: 2])
    assert values != (1, 3)
    assert values != [1, 2]
    assert hash(values) == hash((1, 2))
    assert repr(values) == "(1, 2)"
    assert pickle.loads(pickle.dumps(values)) == (1, 2)
    assert copy.deepcopy(values) == (1, 2)


def test_a_failure_comes_up_on_every_use() -> None:
    def fail() -> int:
        raise FormatError("is bad", path="p")

    values = LazyTuple([fail])
    for _ in range(2):
        with pytest.raises(FormatError, match="is bad"):
            list(values)


def test_a_bad_type_in_a_stored_schema_is_named_when_the_columns_are_asked_for() -> None:
    metadata = metadata_json.load_definition(stored("nonsense"), path="row 7")
    assert metadata.location == "/t"
    with pytest.raises(FormatError, match=r"row 7.*schemas\[0\].*not a valid schema"):
        metadata.schema()


def test_ids_in_a_stored_definition_are_checked_before_anything_is_made() -> None:
    with pytest.raises(FormatError, match="expr-id 1 is a column's id"):
        metadata_json.load_definition(stored(expr_id=1), path="row 7")
    wrong = stored().replace('"current-schema-id": 0', '"current-schema-id": 5')
    with pytest.raises(FormatError, match=r"has ids \[0\], but the table uses 5"):
        metadata_json.load_definition(wrong, path="row 7")
    lost = stored().replace('"schema-id": 0,', "", 1)
    with pytest.raises(FormatError, match="schema-id"):
        metadata_json.load_definition(lost, path="row 7")
