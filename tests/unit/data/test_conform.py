"""Incoming Arrow data made to fit a table schema."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.data import conform
from frazil.data.write.row_input import conformed
from frazil.errors import InvalidInput
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema


def _one(kind: ice.IcebergType, *, required: bool = False) -> Schema:
    return Schema(ice.NestedField(1, "c", kind, required=required))


def _table(data: Any, schema: Schema) -> pa.Table:
    return pa.Table.from_batches(conformed(data, schema))


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pa.array([1, None], pa.int8()), ice.IntegerType(), [1, None]),
        (pa.array([65535], pa.uint16()), ice.IntegerType(), [65535]),
        (pa.array([7], pa.int32()), ice.LongType(), [7]),
        (pa.array([2**32 - 1], pa.uint32()), ice.LongType(), [2**32 - 1]),
        (pa.array([1.5], pa.float32()), ice.DoubleType(), [1.5]),
        (pa.array([0.5], pa.float16()), ice.FloatType(), [0.5]),
        (
            pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
            ice.DecimalType(12, 4),
            [Decimal("1.5000")],
        ),
        (
            pa.array([Decimal("1.5")], pa.decimal256(40, 1)),
            ice.DecimalType(38, 1),
            [Decimal("1.5")],
        ),
        (pa.array([0], pa.date64()), ice.DateType(), [dt.date(1970, 1, 1)]),
        (pa.array([3600], pa.time32("s")), ice.TimeType(), [dt.time(1)]),
        (pa.array([1_000], pa.time64("ns")), ice.TimeType(), [dt.time(0, 0, 0, 1)]),
        (pa.array([5], pa.timestamp("s")), ice.TimestampType(), [dt.datetime(1970, 1, 1, 0, 0, 5)]),
        (
            pa.array([5_000], pa.timestamp("ns")),
            ice.TimestampType(),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 5)],
        ),
        (
            pa.array([0], pa.timestamp("ms", "Europe/Oslo")),
            ice.TimestamptzType(),
            [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)],
        ),
        (pa.array(["a", None], pa.large_string()), ice.StringType(), ["a", None]),
        (pa.array(["a"], pa.string_view()), ice.StringType(), ["a"]),
        (pa.array(["x", "x"]).dictionary_encode(), ice.StringType(), ["x", "x"]),
        (pa.array([b"ab"], pa.binary(2)), ice.BinaryType(), [b"ab"]),
        (pa.array([b"ab"], pa.binary(2)), ice.FixedType(2), [b"ab"]),
        (pa.array([b"u" * 16], pa.binary(16)).cast(pa.uuid()), ice.UUIDType(), [b"u" * 16]),
        (pa.nulls(2), ice.StringType(), [None, None]),
        (pa.nulls(2), ice.UnknownType(), [None, None]),
    ],
)
def test_a_lossless_cast_is_made(values: pa.Array, kind: ice.IcebergType, expected: Any) -> None:
    schema, data = _one(kind), pa.table({"c": values})
    if expected is None:
        with pytest.raises(InvalidInput):
            _table(data, schema)
    else:
        assert _table(data, schema).column("c").to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1], pa.int64()), ice.IntegerType()),
        (pa.array([1], pa.uint32()), ice.IntegerType()),
        (pa.array([1], pa.uint64()), ice.LongType()),
        (pa.array([1.0], pa.float64()), ice.FloatType()),
        (pa.array([1.0]), ice.LongType()),
        (pa.array([True]), ice.IntegerType()),
        (pa.array(["1"]), ice.IntegerType()),
        (pa.array([1]), ice.StringType()),
        (pa.array([b"a"], pa.binary()), ice.StringType()),
        (pa.array(["a"]), ice.BinaryType()),
        (pa.array([Decimal("1.255")], pa.decimal128(5, 3)), ice.DecimalType(5, 2)),
        (pa.array([0], pa.timestamp("us")), ice.TimestamptzType()),
        (pa.array([0], pa.timestamp("us", "UTC")), ice.TimestampType()),
        (pa.array([0], pa.timestamp("us")), ice.DateType()),
        (pa.array([0], pa.date32()), ice.TimestampType()),
        (pa.array([b"abc"], pa.binary(3)), ice.FixedType(2)),
        (pa.array([b"abc"], pa.binary()), ice.UUIDType()),
        (pa.array([[1]]), ice.LongType()),
        (pa.array([1]), ice.ListType(2, ice.LongType(), element_required=False)),
        (pa.array([{"a": 1}]), ice.MapType(2, ice.StringType(), 3, ice.LongType())),
    ],
)
def test_a_type_that_could_lose_values_is_refused(values: pa.Array, kind: ice.IcebergType) -> None:
    with pytest.raises(InvalidInput, match=r"column 'c': found .*; expected "):
        _table(pa.table({"c": values}), _one(kind))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1_001], pa.timestamp("ns")), ice.TimestampType()),
        (pa.array([1], pa.time64("ns")), ice.TimeType()),
        (pa.array([86_400_001], pa.date64()), ice.DateType()),
        (pa.array([2**60], pa.timestamp("s")), ice.TimestampType()),
        (pa.array([2**60], pa.timestamp("us")), ice.TimestampNanoType()),
    ],
)
def test_a_value_that_a_finer_unit_cannot_keep_is_refused(
    values: pa.Array, kind: ice.IcebergType
) -> None:
    with pytest.raises(InvalidInput, match=r"column 'c': found .*does not fit"):
        _table(pa.table({"c": values}), _one(kind))


PLACES = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(
        2,
        "place",
        ice.StructType(
            ice.NestedField(3, "lat", ice.DoubleType(), required=True),
            ice.NestedField(4, "name", ice.StringType()),
            ice.NestedField(
                5,
                "visits",
                ice.ListType(
                    6,
                    ice.StructType(
                        ice.NestedField(7, "day", ice.DateType(), required=True),
                        ice.NestedField(8, "who", ice.StringType()),
                    ),
                    element_required=False,
                ),
            ),
        ),
    ),
    ice.NestedField(
        9, "props", ice.MapType(10, ice.StringType(), 11, ice.LongType(), value_required=True)
    ),
)


def test_nested_columns_match_by_name_at_every_level() -> None:
    visit = pa.struct([("who", pa.large_string()), ("day", pa.date64())])
    place = pa.struct([("visits", pa.large_list(visit)), ("lat", pa.float32())])
    data = pa.table(
        {
            "place": pa.array(
                [{"lat": 1.5, "visits": [{"who": "ann", "day": dt.date(2024, 1, 2)}, None]}, None],
                place,
            ),
            "id": pa.array([1, 2], pa.int32()),
        }
    )
    assert _table(data, PLACES).to_pylist() == [
        {
            "id": 1,
            "place": {
                "lat": 1.5,
                "name": None,
                "visits": [{"day": dt.date(2024, 1, 2), "who": "ann"}, None],
            },
            "props": None,
        },
        {"id": 2, "place": None, "props": None},
    ]


def test_sliced_nested_columns_keep_their_rows() -> None:
    kind = pa.struct([("lat", pa.float64()), ("name", pa.string())])
    data = pa.table(
        {
            "id": pa.array(range(6)),
            "place": pa.array([{"lat": float(i)} if i % 2 else None for i in range(6)], kind),
            "props": pa.array([[("k", i)] * i for i in range(6)], pa.map_(pa.string(), pa.int32())),
        }
    )
    found = _table(data.slice(3, 2), PLACES).to_pylist()
    assert [row["id"] for row in found] == [3, 4]
    assert found[0]["place"] == {"lat": 3.0, "name": None, "visits": None}
    assert found[1]["place"] is None
    assert found[1]["props"] == [("k", 4)] * 4


def test_every_misfit_is_listed_at_once() -> None:
    place = pa.struct([("lat", pa.string()), ("colour", pa.int8())])
    data = pa.Table.from_arrays(
        [
            pa.array([{"lat": "1"}], place),
            pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64())),
            pa.array([1]),
            pa.array([1]),
        ],
        names=["place", "props", "extra", "extra"],
    )
    with pytest.raises(InvalidInput) as caught:
        conformed(data, PLACES)
    *lines, hint = str(caught.value).splitlines()[1:]
    assert hint.startswith('Append with schema="merge"')
    assert [line.split("'")[1] for line in lines] == [
        "extra",
        "extra",
        "id",
        "place.colour",
        "place.lat",
        "props.value",
    ]
    assert "2 columns of this name" in lines[0]
    assert "an extra column (int64)" in lines[1]
    assert "no such column; expected a value in every row (long)" in lines[2]
    assert "found string; expected double (Arrow double)" in lines[4]


def test_names_match_case_sensitively() -> None:
    with pytest.raises(InvalidInput, match="'ID': found an extra column"):
        conformed(pa.table({"ID": [1]}), PLACES)


def test_nulls_in_required_columns_are_listed_with_counts() -> None:
    visit = pa.struct([("day", pa.date32())])
    place = pa.struct([("lat", pa.float64()), ("visits", pa.list_(visit))])
    data = pa.table(
        {
            "id": pa.array([1, None, None]),
            "place": pa.array([{"lat": None, "visits": [{"day": None}]}, None, None], place),
            "props": pa.array([[("a", None)], None, []], pa.map_(pa.string(), pa.int64())),
        }
    )
    with pytest.raises(InvalidInput) as caught:
        list(conformed(data, PLACES))
    found = {line.split("'")[1]: line for line in str(caught.value).splitlines()[1:]}
    assert set(found) == {"id", "place.lat", "place.visits.element.day", "props.value"}
    assert "found 2 nulls" in found["id"]
    assert "found 1 null;" in found["place.lat"]


def test_a_null_parent_excuses_its_required_children() -> None:
    place = pa.struct([("lat", pa.float64())])
    data = pa.table({"id": [1], "place": pa.array([None], place)})
    assert _table(data, PLACES).column("place").to_pylist() == [None]


def test_missing_columns_take_their_write_default() -> None:
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType()),
        ice.NestedField(2, "status", ice.StringType(), required=True, write_default="new"),
        ice.NestedField(
            3,
            "s",
            ice.StructType(
                ice.NestedField(4, "a", ice.LongType()),
                ice.NestedField(5, "b", ice.LongType(), write_default=7),
            ),
        ),
        ice.NestedField(6, "since", ice.DateType(), write_default=dt.date(2024, 2, 1)),
    )
    data = pa.table({"id": [1, 2], "s": [{"a": 1}, None]})
    assert _table(data, schema).to_pylist() == [
        {"id": 1, "status": "new", "s": {"a": 1, "b": 7}, "since": dt.date(2024, 2, 1)},
        {"id": 2, "status": "new", "s": None, "since": dt.date(2024, 2, 1)},
    ]


def test_large_input_comes_out_in_bounded_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conform, "MAX_BATCH_ROWS", 100)
    data = pa.table({"c": pa.array(range(250))})
    sizes = [batch.num_rows for batch in conformed(data, _one(ice.LongType()))]
    assert sizes == [100, 100, 50]


def test_wide_rows_make_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conform, "MAX_BATCH_BYTES", 10_000)
    data = pa.table({"c": pa.array(["x" * 1_000] * 50, pa.large_string())})
    batches = list(conformed(data, _one(ice.StringType())))
    assert sum(batch.num_rows for batch in batches) == 50
    assert max(batch.num_rows for batch in batches) <= 10


def test_a_list_of_key_value_structs_makes_a_map() -> None:
    pair = pa.struct([("key", pa.string()), ("value", pa.int64())])
    data = pa.table({"c": pa.array([[{"key": "a", "value": 1}], None], pa.large_list(pair))})
    schema = _one(ice.MapType(2, ice.StringType(), 3, ice.LongType(), value_required=False))
    assert _table(data, schema).column("c").to_pylist() == [[("a", 1)], None]


def test_a_piece_of_more_than_2_gib_of_text_fits_a_column() -> None:
    """Offsets as those of the end of such a column have them; the text itself is not there."""
    start = 1 << 31
    text = pa.py_buffer(b"abc")
    far = pa.foreign_buffer(text.address - start, start + 3, base=text)
    offsets = pa.array([start, start + 1, start + 3], pa.int64()).buffers()[1]
    column = pa.Array.from_buffers(pa.large_string(), 2, [None, offsets, far])
    assert column.to_pylist() == ["a", "bc"]
    found = _table(pa.table({"c": column}), _one(ice.StringType()))
    assert found.column("c").to_pylist() == ["a", "bc"]
    assert found.column("c").type == pa.string()
