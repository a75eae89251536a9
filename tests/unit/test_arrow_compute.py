"""Functions made on first use are those of `pyarrow.compute`, argument for argument."""

from __future__ import annotations

import ast
import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

import frazil
from frazil import arrow_compute

NUMBERS = pa.array([3, None, 1, 2, 2])
OTHERS = pa.array([1, 2, None, 2, 5])
TEXTS = pa.array(["ab", None, "b%", "", "Ab"])
FLAGS = pa.array([True, None, False, True, False])
LISTS = pa.array([[1, 2], None, [], [3]])
STRUCTS = pa.array([{"a": 1}, None, {"a": None}])
TABLE = pa.table({"n": NUMBERS, "t": TEXTS})


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("equal", (NUMBERS, OTHERS), {}),
        ("equal", (NUMBERS, 2), {}),
        ("and_", (FLAGS, FLAGS), {}),
        ("or_", (FLAGS, pa.scalar(True)), {}),
        ("and_kleene", (FLAGS, pa.scalar(None, pa.bool_())), {}),
        ("if_else", (FLAGS, NUMBERS, 0), {}),
        ("coalesce", (NUMBERS, OTHERS, 0), {}),
        ("is_in", (NUMBERS,), {"value_set": OTHERS}),
        ("is_in", (NUMBERS, OTHERS), {}),
        ("index_in", (NUMBERS,), {"value_set": pa.array([2]), "skip_nulls": True}),
        ("is_null", (NUMBERS,), {}),
        ("is_null", (pa.array([1.0, float("nan")]),), {"nan_is_null": True}),
        ("sum", (NUMBERS,), {"min_count": 9}),
        ("min_max", (NUMBERS,), {"skip_nulls": False}),
        ("any", (FLAGS,), {}),
        ("all", (FLAGS,), {}),
        ("min", (NUMBERS,), {}),
        ("match_substring_regex", (TEXTS, "^a"), {"ignore_case": True}),
        ("replace_substring_regex", (TEXTS,), {"pattern": "b", "replacement": "c"}),
        ("starts_with", (TEXTS,), {"pattern": "a"}),
        ("utf8_slice_codeunits", (TEXTS,), {"start": 0, "stop": 1}),
        ("binary_join_element_wise", (TEXTS, TEXTS, pa.scalar("-")), {}),
        ("list_element", (pa.array([[1], [2]]), 0), {}),
        ("struct_field", (STRUCTS,), {"indices": 0}),
        ("sort_indices", (NUMBERS,), {}),
        ("sort_indices", (TABLE,), {"sort_keys": [("n", "descending"), ("t", "ascending")]}),
        ("rank", (NUMBERS,), {"tiebreaker": "dense"}),
        ("unique", (NUMBERS,), {}),
        ("dictionary_encode", (NUMBERS,), {"null_encoding": "encode"}),
        ("replace_with_mask", (OTHERS, pa.array([True] + [False] * 4), pa.array([7])), {}),
        ("filter", (TABLE, FLAGS), {}),
        ("filter", (pa.chunked_array([NUMBERS, OTHERS]), pa.chunked_array([FLAGS, FLAGS])), {}),
        ("take", (TABLE, pa.array([1, 0])), {}),
        ("take", (pa.RecordBatch.from_arrays([TEXTS], ["t"]), pa.array([2, 2])), {}),
        ("cast", (NUMBERS, pa.string()), {}),
        ("cast", (pa.array([1.5]), pa.int32()), {"safe": False}),
        ("fill_null", (NUMBERS, 0), {}),
        ("fill_null", (NUMBERS, pa.scalar(7, pa.int32())), {}),
        ("fill_null", (TEXTS, TEXTS), {}),
        ("index", (NUMBERS, 2), {}),
        ("call_function", ("less", [NUMBERS, OTHERS]), {}),
    ],
)
def test_a_function_gives_what_pyarrows_own_gives(
    name: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    ours = getattr(arrow_compute, name)(*arguments, **options)
    theirs = getattr(pyarrow.compute, name)(*arguments, **options)
    assert ours.equals(theirs)
    assert getattr(ours, "type", None) == getattr(theirs, "type", None)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("cast", (pa.array(["x"]), pa.int32()), pa.ArrowInvalid),
        ("take", (NUMBERS, pa.array([9])), pa.ArrowIndexError),
        ("equal", (NUMBERS,), pa.ArrowInvalid),
        ("equal", (NUMBERS, NUMBERS, NUMBERS), TypeError),
        ("sum", (NUMBERS, True, 1, "more"), TypeError),
    ],
)
def test_what_it_does_not_take_is_an_error(
    name: str, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        getattr(arrow_compute, name)(*arguments)


def test_what_pyarrow_has_not_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match=r"pyarrow\.compute has no 'equals'"):
        _ = arrow_compute.equals
    assert not hasattr(arrow_compute, "__wrapped__")


def test_expressions_are_made_of_expressions() -> None:
    field = arrow_compute.field("n")
    assert isinstance(field, arrow_compute.Expression)
    assert arrow_compute.greater(field, 1).equals(pyarrow.compute.field("n") > 1)
    found = arrow_compute.is_in(arrow_compute.field("t"), value_set=TEXTS)
    assert found.equals(pyarrow.compute.is_in(pyarrow.compute.field("t"), value_set=TEXTS))
    both = arrow_compute.and_(arrow_compute.greater(field, 1), arrow_compute.is_valid(field))
    assert TABLE.filter(both)["n"].to_pylist() == [3, 2, 2]
    nested = arrow_compute.field("a", "b")
    assert nested.equals(pyarrow.compute.field("a", "b"))
    day = datetime.date(2024, 1, 5)
    assert arrow_compute.scalar(day).equals(pyarrow.compute.scalar(day))


def test_every_function_that_the_package_uses_is_one_of_pyarrow() -> None:
    used = set()
    for path in Path(frazil.__file__).parent.rglob("*.py"):
        text = path.read_text()
        if "arrow_compute" not in text:
            continue
        used |= {
            node.attr
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("pc", "arrow_compute")
        }
    assert len(used) > 50
    used.discard("search_sorted")  # pyarrow 22 has none; its one user asks first
    assert [name for name in sorted(used) if not hasattr(arrow_compute, name)] == []
    assert [name for name in sorted(used) if not hasattr(pyarrow.compute, name)] == []
