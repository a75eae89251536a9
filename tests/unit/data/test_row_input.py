"""What users hand over as rows."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from frazil.data.write.row_input import conformed, schema_of
from frazil.errors import InvalidInput
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(2, "name", ice.StringType()),
)
EXPECTED = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
TABLE = pa.table({"id": [1, 2], "name": ["a", None]})


def _batches() -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches(max_chunksize=1)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        pd.DataFrame({"id": [1, 2], "name": ["a", None]}),
        pd.DataFrame({"id": [1, 2], "name": ["a", None]}, index=["x", "y"]),
        pl.DataFrame({"id": [1, 2], "name": ["a", None]}),
        pl.LazyFrame({"id": [1, 2], "name": ["a", None]}),
        {"id": [1, 2], "name": ["a", None]},
        {"id": np.array([1, 2]), "name": pa.array(["a", None])},
        [{"id": 1, "name": "a"}, {"id": 2}],
        _batches(),
        [TABLE.slice(0, 1), TABLE.slice(1)],
        ds.dataset(TABLE),
        ds.dataset(TABLE).scanner(),
        duckdb.sql("select * from (values (1::bigint, 'a'), (2, null)) t(id, name)"),
    ],
    ids=lambda data: f"{type(data).__module__}.{type(data).__name__}",
)
def test_rows_come_in_many_forms(data: Any) -> None:
    assert pa.Table.from_batches(conformed(data, SCHEMA)).to_pylist() == EXPECTED


def test_a_reader_is_not_read_ahead() -> None:
    taken: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for index in range(5):
            taken.append(index)
            yield pa.record_batch({"id": [index]})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches())
    rows = conformed(reader, SCHEMA)
    assert taken == []
    next(rows)
    assert taken == [0]


def test_no_rows_at_all_are_fine() -> None:
    assert list(conformed([], SCHEMA)) == []
    assert list(conformed(TABLE.slice(0, 0), SCHEMA)) == []


RICH = Schema(
    ice.NestedField(1, "n", ice.IntegerType()),
    ice.NestedField(2, "price", ice.DecimalType(9, 2)),
    ice.NestedField(3, "day", ice.DateType()),
    ice.NestedField(4, "at", ice.TimestampType()),
    ice.NestedField(5, "when", ice.TimestamptzType()),
    ice.NestedField(6, "uid", ice.UUIDType()),
    ice.NestedField(
        7,
        "s",
        ice.StructType(
            ice.NestedField(8, "x", ice.DoubleType()),
            ice.NestedField(9, "l", ice.ListType(10, ice.LongType(), element_required=False)),
        ),
    ),
    ice.NestedField(
        11, "m", ice.MapType(12, ice.StringType(), 13, ice.IntegerType(), value_required=False)
    ),
)


def test_python_values_take_the_types_of_the_table() -> None:
    uid = uuid.UUID(int=5)
    row = {
        "n": 3,
        "price": Decimal("1.5"),
        "day": dt.date(2024, 2, 29),
        "at": dt.datetime(2024, 1, 1, 12),
        "when": dt.datetime(2024, 1, 1, 13, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        "uid": uid,
        "s": {"x": 1, "l": [1, None]},
        "m": {"k": 1},
    }
    (batch,) = conformed([row, {}], RICH)
    first, second = batch.to_pylist()
    assert first == {
        "n": 3,
        "price": Decimal("1.50"),
        "day": dt.date(2024, 2, 29),
        "at": dt.datetime(2024, 1, 1, 12),
        "when": dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC),
        "uid": uid.bytes,
        "s": {"x": 1.0, "l": [1, None]},
        "m": [("k", 1)],
    }
    assert set(second.values()) == {None}


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"n": 1.5}, "n"),
        ({"n": True}, "n"),
        ({"n": 2**31}, "n"),
        ({"n": "1"}, "n"),
        ({"price": Decimal("1.255")}, "price"),
        ({"price": 1.25}, "price"),
        ({"day": dt.datetime(2024, 1, 1)}, "day"),
        ({"day": "2024-01-01"}, "day"),
        ({"at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}, "at"),
        ({"when": dt.datetime(2024, 1, 1)}, "when"),
        ({"uid": "no"}, "uid"),
        ({"s": [1]}, "s"),
        ({"s": {"x": "1"}}, "s.x"),
        ({"s": {"l": ["a"]}}, "s.l.element"),
        ({"s": {"y": 1}}, "s.y"),
        ({"m": {1: 1}}, "m.key"),
        ({"m": 5}, "m"),
        ({"other": 1}, "other"),
    ],
)
def test_a_python_value_that_does_not_fit_is_refused(row: dict[str, Any], column: str) -> None:
    with pytest.raises(InvalidInput, match=f"column '{column}': found"):
        list(conformed([row], RICH))


def test_all_misfits_of_python_rows_are_listed_once_each() -> None:
    rows = [{"n": "x", "day": 1.5}, {"n": "y", "s": {"x": "z"}}]
    with pytest.raises(InvalidInput) as caught:
        list(conformed(rows, RICH))
    lines = str(caught.value).splitlines()[1:]
    assert [line.split("'")[1] for line in lines] == ["n", "day", "s.x"]


def test_python_columns_name_the_column_that_does_not_fit() -> None:
    with pytest.raises(InvalidInput, match="column 'n': found 'x'"):
        conformed({"n": [1, "x"]}, RICH)


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(InvalidInput, match="differ in length"):
        conformed({"id": [1, 2], "name": ["a"]}, SCHEMA)


@pytest.mark.parametrize("data", [5, "text", None, [1, 2], [None], b"bytes"])
def test_what_is_no_rows_is_refused(data: Any) -> None:
    with pytest.raises(InvalidInput):
        list(conformed(data, SCHEMA))


def test_null_in_a_required_column_of_python_rows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="column 'id': found 1 null"):
        list(conformed([{"id": 1}, {"name": "b"}], SCHEMA))


def test_a_map_key_cannot_be_null() -> None:
    with pytest.raises(InvalidInput, match="key field cannot contain null"):
        list(conformed([{"m": {None: 1}}], RICH))


def test_pandas_markers_of_missing_values_are_nulls() -> None:
    schema = Schema(
        ice.NestedField(1, "at", ice.TimestampType()), ice.NestedField(2, "n", ice.LongType())
    )
    (batch,) = conformed([{"at": pd.NaT, "n": pd.NA}], schema)
    assert batch.to_pylist() == [{"at": None, "n": None}]


def test_a_frame_makes_a_table_schema() -> None:
    made = schema_of(pl.DataFrame({"a": [1], "b": ["x"]}))
    assert [(field.name, str(field.field_type)) for field in made.fields] == [
        ("a", "long"),
        ("b", "string"),
    ]


def test_python_rows_make_a_table_schema() -> None:
    made = schema_of([{"a": 1, "b": {"c": 1.5}}])
    assert str(made.find_field("b.c").field_type) == "double"


def test_rows_that_tell_no_types_are_refused() -> None:
    with pytest.raises(InvalidInput):
        schema_of([{"a": 1}, {"a": "x"}])


def test_a_pandas_frame_with_mixed_values_is_refused() -> None:
    frame = pd.DataFrame({"id": [1, 2], "name": pd.Series(["a", 1], dtype=object)})
    with pytest.raises(InvalidInput, match="name"):
        conformed(frame, SCHEMA)


@pytest.mark.parametrize(
    "data",
    [
        {"id": np.array([1j])},
        {"id": [1], "other": [2**70]},
        pd.DataFrame({"id": [2**70]}),
        pd.DataFrame({"id": [1j]}),
    ],
    ids=["complex column", "large number", "large number in a frame", "complex frame"],
)
def test_values_that_arrow_cannot_take_are_refused(data: Any) -> None:
    with pytest.raises(InvalidInput, match="no Arrow form"):
        conformed(data, SCHEMA)


def test_types_are_not_inferred_of_numbers_that_no_type_holds() -> None:
    with pytest.raises(InvalidInput, match="column 'a': no Arrow form"):
        schema_of([{"a": 2**70}])
