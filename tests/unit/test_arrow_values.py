"""Arrow values without pandas: the same as pyarrow makes, value for value."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil import arrow_values

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint8(), st.integers(0, 255)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), st.text()),
    (pa.binary(), st.binary()),
    (pa.date32(), st.dates() | st.integers(-9_999, 9_999)),
    (pa.timestamp("us"), st.datetimes() | st.integers(-9_999, 9_999)),
    (pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    (pa.decimal128(9, 2), st.decimals(-99, 99, places=2)),
    (pa.list_(pa.int64()), st.lists(st.none() | st.integers(0, 9))),
    (
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.string())])))]),
        st.fixed_dictionaries(
            {"b": st.lists(st.fixed_dictionaries({"c": st.text(), "more": st.none()}))},
            optional={"a": st.none() | st.integers(0, 9)},
        ),
    ),
]


@given(data=st.data())
@pytest.mark.parametrize(("kind", "values"), KINDS, ids=lambda each: str(each)[:20])
def test_arrays_and_scalars_are_those_of_pyarrow(
    kind: pa.DataType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    given_values = data.draw(st.lists(st.none() | values, max_size=20))
    built = arrow_values.array(given_values, kind)
    built.validate(full=True)
    expected = pa.array(given_values, kind)
    assert built.type == expected.type
    assert repr(built.to_pylist()) == repr(expected.to_pylist())
    for value in given_values[:3]:
        one = arrow_values.scalar(value, kind)
        assert repr(one) == repr(pa.scalar(value, kind))
        assert repr(arrow_values.repeat(one, 3).to_pylist()) == repr([one.as_py()] * 3)


@pytest.mark.parametrize("values", [[1, None], [True], ["a"], [b"a"], [1.5], [], [1, 2.5], [None]])
def test_types_are_inferred_as_pyarrow_does(values: list[Any]) -> None:
    assert arrow_values.array(values).equals(pa.array(values))


@pytest.mark.parametrize("value", [2**40, "x"])
def test_what_does_not_fit_is_refused_by_pyarrow(value: object) -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, OverflowError)):
        arrow_values.array([value], pa.int32())


@given(
    values=st.lists(st.integers(-5, 5)),
    start=st.integers(0, 9),
    dtype=st.sampled_from([np.bool_, np.int32, np.int64, np.float64]),
)
def test_numpy_and_back(values: list[int], start: int, dtype: type) -> None:
    numbers: np.ndarray[Any, np.dtype[Any]] = np.array(values, dtype=dtype)
    built = arrow_values.array(numbers)
    built.validate(full=True)
    assert built.equals(pa.array(numbers))
    part = numbers[start:]
    assert arrow_values.to_numpy(built.slice(start)).tolist() == part.tolist()
    assert arrow_values.to_numpy(pa.chunked_array([], built.type)).dtype == dtype
    chunked = pa.chunked_array([built, built.slice(start)])
    assert arrow_values.to_numpy(chunked).tolist() == [*numbers.tolist(), *part.tolist()]
    assert arrow_values.array(numbers[::2]).to_pylist() == numbers[::2].tolist()


def test_columns_with_nulls_are_as_numpy_makes_them() -> None:
    column = pa.array([1, None])
    assert np.array_equal(arrow_values.to_numpy(column), np.asarray(column), equal_nan=True)


def test_a_mask_says_where_values_are_null() -> None:
    numbers, mask = np.array([1, 2, 3], dtype=np.int64), np.array([False, True, False])
    assert arrow_values.array(numbers, pa.int64(), mask=mask).to_pylist() == [1, None, 3]
    assert arrow_values.array(mask, mask=mask).to_pylist() == [False, None, False]


def test_no_batch_is_taken_for_no_rows() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        raise AssertionError("a batch was asked for")
        yield

    assert list(arrow_values.first_rows(batches(), 0)) == []


def test_first_rows_end_within_a_batch_and_take_no_more() -> None:
    taken = []

    def batches() -> Iterator[pa.RecordBatch]:
        for start in (0, 3, 6):
            taken.append(start)
            yield pa.record_batch({"id": [start, start + 1, start + 2]})

    ids = [id for batch in arrow_values.first_rows(batches(), 5) for id in batch["id"].to_pylist()]
    assert (ids, taken) == ([0, 1, 2, 3, 4], [0, 3])


@pytest.mark.parametrize("value", [7, -1, True, "parquet"])
def test_long_columns_of_one_value_are_one_while_somebody_holds_them(value: Any) -> None:
    scalar = pa.scalar(value)
    column = arrow_values.repeat(scalar, 5_000)
    assert column.equals(pa.repeat(scalar, 5_000))
    assert arrow_values.repeat(pa.scalar(value), 5_000) is column
    assert not arrow_values.repeat(scalar, 5_001).equals(column)


def test_a_column_shares_memory_only_where_all_values_are_equal() -> None:
    equal = pa.array([3] * 2_000, pa.int32())
    assert arrow_values.shared(equal).equals(equal)
    assert arrow_values.shared(equal) is arrow_values.shared(pa.array([3] * 2_000, pa.int32()))
    for other in ([3] * 1_999 + [4], [3] * 1_999 + [None], [3, 3]):
        column = pa.array(other, pa.int32())
        assert arrow_values.shared(column) is column
    assert arrow_values.shared(pa.array([3] * 2_000, pa.int64())).type == pa.int64()
