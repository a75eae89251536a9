"""Assignments: expressions compiled against a schema and applied to rows."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions.literals import literal
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from frazil.errors import InvalidInput
from frazil.expr.assign import apply, compile_assignments

ADDRESS = StructType(
    NestedField(21, "city", StringType(), required=True),
    NestedField(22, "zip", StringType(), required=False),
)
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "qty", IntegerType(), required=False),
    NestedField(3, "price", DoubleType(), required=False),
    NestedField(4, "amount", DecimalType(10, 2), required=False),
    NestedField(5, "name", StringType(), required=False),
    NestedField(6, "day", DateType(), required=False),
    NestedField(7, "ts", TimestampType(), required=False),
    NestedField(8, "at", TimestamptzType(), required=False),
    NestedField(9, "flag", BooleanType(), required=False),
    NestedField(10, "ratio", FloatType(), required=False),
    NestedField(11, "clock", TimeType(), required=False),
    NestedField(12, "key", UUIDType(), required=False),
    NestedField(13, "raw", BinaryType(), required=False),
    NestedField(14, "address", ADDRESS, required=False),
    NestedField(15, "tags", ListType(31, StringType(), element_required=True), required=False),
    NestedField(16, "props", MapType(41, StringType(), 42, LongType()), required=False),
    NestedField(17, "fine", TimestampNanoType(), required=False),
)
TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "qty": pa.int32(),
    "price": pa.float64(),
    "amount": pa.decimal128(10, 2),
    "name": pa.string(),
    "day": pa.date32(),
    "ts": pa.timestamp("us"),
    "at": pa.timestamp("us", "UTC"),
    "flag": pa.bool_(),
    "ratio": pa.float32(),
    "clock": pa.time64("us"),
    "key": pa.binary(16),
    "raw": pa.binary(),
    "address": pa.struct(
        [pa.field("city", pa.string(), nullable=False), pa.field("zip", pa.string())]
    ),
    "tags": pa.list_(pa.field("element", pa.string(), nullable=False)),
    "props": pa.map_(pa.string(), pa.int64()),
    "fine": pa.timestamp("ns"),
}


def rows(**columns: list[Any]) -> pa.RecordBatch:
    """Rows of the table with a metadata column behind; columns not given are null."""
    count = len(next(iter(columns.values())))
    columns.setdefault("id", list(range(count)))
    arrays = {name: pa.array(columns.get(name, [None] * count), TYPES[name]) for name in TYPES}
    return pa.record_batch({**arrays, "_pos": pa.array(range(count), pa.int64())})


def updated(column: str, value: Any, **columns: list[Any]) -> list[Any]:
    """What one column holds after one assignment."""
    batch = rows(**(columns or {"id": [1]}))
    changed = apply(compile_assignments({column: value}, SCHEMA), batch, SCHEMA)
    return list(changed.column(column).to_pylist())


def refusal(column: str, value: Any, **columns: list[Any]) -> str:
    with pytest.raises(InvalidInput) as caught:
        updated(column, value, **columns)
    return str(caught.value)


# --- the batch -------------------------------------------------------------------------------


def test_the_result_has_exactly_the_columns_of_the_table_in_schema_order() -> None:
    batch = rows(qty=[1, 2])
    shuffled = batch.select([*reversed(batch.schema.names)])
    changed = apply(compile_assignments({"name": "'x'"}, SCHEMA), shuffled, SCHEMA)
    assert changed.schema.names == list(TYPES)
    assert [field.type for field in changed.schema] == list(TYPES.values())
    assert changed.column("name").to_pylist() == ["x", "x"]
    assert changed.column("qty").to_pylist() == [1, 2]


def test_every_expression_sees_the_row_as_it_was_before() -> None:
    batch = rows(id=[1, 2], qty=[10, 20])
    compiled = compile_assignments({"id": "qty", "qty": "qty + 1"}, SCHEMA)
    changed = apply(compiled, batch, SCHEMA)
    assert changed.column("id").to_pylist() == [10, 20]
    assert changed.column("qty").to_pylist() == [11, 21]


def test_no_rows_stay_no_rows() -> None:
    compiled = compile_assignments({"name": "upper(name)", "qty": 3}, SCHEMA)
    assert apply(compiled, rows(qty=[1]).slice(0, 0), SCHEMA).num_rows == 0


def test_a_slice_of_a_batch_is_updated_like_any_other() -> None:
    batch = rows(qty=[1, 2, 3, 4]).slice(1, 2)
    changed = apply(compile_assignments({"qty": "qty * 10"}, SCHEMA), batch, SCHEMA)
    assert changed.column("qty").to_pylist() == [20, 30]


def test_compiled_assignments_say_what_they_read() -> None:
    compiled = compile_assignments({"name": "name || '-x'", "qty": "0"}, SCHEMA)
    assert compiled.columns_read == ("name",)


def test_a_missing_column_of_the_rows_is_named() -> None:
    compiled = compile_assignments({"qty": "1"}, SCHEMA)
    with pytest.raises(InvalidInput, match="price"):
        apply(compiled, rows(id=[1]).drop_columns(["price"]), SCHEMA)


# --- values of expressions -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "text", "expected"),
    [
        ("name", "'shipped'", "shipped"),
        ("name", "'it''s'", "it's"),
        ("name", "null", None),
        ("qty", "7", 7),
        ("qty", "-2147483648", -2147483648),
        ("qty", "'7'", 7),
        ("id", "9223372036854775807", 9223372036854775807),
        ("price", "1", 1.0),
        ("price", "1.5e3", 1500.0),
        ("ratio", "0.5", 0.5),
        ("amount", "1.5", Decimal("1.50")),
        ("amount", "'12.34'", Decimal("12.34")),
        ("flag", "true", True),
        ("flag", "not true", False),
        ("flag", "1 < 2 and 'a' = 'a'", True),
        ("day", "date '2024-01-15'", date(2024, 1, 15)),
        ("day", "'2024-01-15'", date(2024, 1, 15)),
        ("ts", "timestamp '2024-01-15 10:30:00'", datetime(2024, 1, 15, 10, 30)),
        ("ts", "date '2024-01-15'", datetime(2024, 1, 15)),
        ("at", "'2024-01-15T10:30:00+01:00'", datetime(2024, 1, 15, 9, 30, tzinfo=UTC)),
        ("clock", "time '10:30:00'", time(10, 30)),
        ("raw", "X'00ff'", b"\x00\xff"),
        ("key", "'00000000-0000-0000-0000-000000000001'", uuid.UUID(int=1).bytes),
        ("key", "uuid '00000000-0000-0000-0000-000000000001'", uuid.UUID(int=1).bytes),
        ("address", "null", None),
        ("tags", "null", None),
    ],
)
def test_literals_take_the_type_of_the_column(column: str, text: str, expected: Any) -> None:
    assert updated(column, text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qty + 2 * 3", 16),
        ("(qty + 2) * 3", 36),
        ("-qty", -10),
        ("- -qty", 10),
        ("+qty", 10),
        ("qty - 1 - 1", 8),
        ("qty % 3", 1),
        ("-qty % 3", -1),
        ("mod(qty, 4)", 2),
        ("abs(-qty)", 10),
        ("cast(qty / 4 as int)", 2),
        ("cast(-2.5 as int)", -2),
        ("cast(' 12 ' as int)", 12),
        ("cast(price as int)", 3),
        ("cast(round(price) as int)", 4),
        ("length('häß')", 3),
        ("least(qty, 3, 5)", 3),
        ("greatest(qty, 3, null)", 10),
        ("nullif(qty, 10)", None),
        ("nullif(qty, 11)", 10),
        ("year(day) - 2000", 24),
        ("month(ts)", 2),
        ("hour(ts) * 100 + minute(ts)", 1230),
        ("coalesce(null, qty, 3)", 10),
        ("if(flag, qty, 0)", 10),
        ("case when qty > 100 then 1 when qty > 5 then 2 else 3 end", 2),
        ("case qty when 10 then 1 else 0 end", 1),
        ("case when qty > 100 then 1 end", None),
        ("cast(true as int)", 1),
        ("case when 1 in (1, 2) then 3 end", 3),
        ("case when null then 1 else 2 end", 2),
    ],
)
def test_whole_numbers(text: str, expected: int | None) -> None:
    found = updated(
        "qty",
        text,
        qty=[10],
        price=[3.75],
        day=[date(2024, 1, 15)],
        ts=[datetime(2024, 2, 1, 12, 30)],
        flag=[True],
    )
    assert found == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("price * 1.1", 2.5 * 1.1),
        ("price * qty", 25.0),
        ("qty / 4", 2.5),
        ("price + amount", 3.75),
        ("amount", 1.25),
        ("round(price * 3, 1)", 7.5),
        ("floor(price)", 2.0),
        ("ceil(-price)", -2.0),
        ("1 / 3", 1 / 3),
        ("id", 1.0),
        ("cast('2.5' as double)", 2.5),
    ],
)
def test_doubles(text: str, expected: float) -> None:
    found = updated("price", text, id=[1], price=[2.5], qty=[10], amount=[Decimal("1.25")])
    assert found == [pytest.approx(expected)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amount * 1.1", "1.38"),  # 1.25 × 1.1 = 1.375, rounded half up
        ("amount + 1", "2.25"),
        ("amount - qty", "-8.75"),
        ("amount / 3", "0.42"),
        ("-amount", "-1.25"),
        ("round(amount, 1)", "1.30"),
        ("amount % 1", "0.25"),
        ("qty", "10.00"),
        ("cast(price as decimal(10, 2))", "2.50"),
        ("cast('1.005' as decimal(10,2))", "1.01"),
        ("greatest(amount, 1.5)", "1.50"),
        ("coalesce(null, amount)", "1.25"),
    ],
)
def test_decimals_are_rounded_half_up_to_the_scale_of_the_column(text: str, expected: str) -> None:
    found = updated("amount", text, price=[2.5], qty=[10], amount=[Decimal("1.25")])
    assert found == [Decimal(expected)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("upper(name)", "ABC "),
        ("lower('ABC')", "abc"),
        ("name || '-x'", "abc -x"),
        ("trim(name) || '-' || 'y'", "abc-y"),
        ("concat('a', name, 'b')", "aabc b"),
        ("substring(name, 2, 1)", "b"),
        ("substr(name, 3)", "c "),
        ("replace(name, 'b', '')", "ac "),
        ("name || null", None),
        ("cast(qty as string)", "10"),
        ("cast(amount as string)", "1.25"),
        ("cast(day as string)", "2024-01-15"),
        ("cast(flag as string)", "true"),
        ("cast(key as string)", "00000000-0000-0000-0000-000000000007"),
        ("address.city", "Graz"),
        ("case when address.zip is null then 'none' else address.zip end", "none"),
        ("case when name like 'a%c_' then 'hit' else 'miss' end", "hit"),
        ("case when qty in (1, 10) then 'in' else 'out' end", "in"),
        ("case when qty not in (1, 10) then 'out' else 'in' end", "in"),
        ("case when qty between 10 and 11 then 'yes' else 'no' end", "yes"),
        ("case when qty not between 10 and 11 then 'yes' else 'no' end", "no"),
        ("case when day = '2024-01-15' then 'that day' end", "that day"),
        ("case when flag is true and qty is not null then 'both' end", "both"),
        ("case when flag is not false or qty is null then 'some' end", "some"),
        ("case when amount > 1 then 'dear' else 'cheap' end", "dear"),
        ('"name"', "abc "),
        ("`name`", "abc "),
    ],
)
def test_text(text: str, expected: str | None) -> None:
    found = updated(
        "name",
        text,
        name=["abc "],
        qty=[10],
        amount=[Decimal("1.25")],
        day=[date(2024, 1, 15)],
        flag=[True],
        key=[uuid.UUID(int=7).bytes],
        address=[{"city": "Graz", "zip": None}],
    )
    assert found == [expected]


@pytest.mark.parametrize(
    ("column", "text", "expected"),
    [
        ("day", "cast(ts as date)", date(2024, 1, 15)),
        ("ts", "day", datetime(2024, 1, 15)),
        ("at", "cast(day as timestamptz)", datetime(2024, 1, 15, tzinfo=UTC)),
        ("ts", "cast('2024-01-15 08:00:00' as timestamp)", datetime(2024, 1, 15, 8)),
        ("clock", "cast('08:15:00' as time)", time(8, 15)),
        ("day", "case when qty = 1 then '2024-01-01' else '2024-01-02' end", date(2024, 1, 2)),
        ("key", "cast(name as uuid)", uuid.UUID(int=5).bytes),
        ("raw", "key", uuid.UUID(int=7).bytes),
        ("raw", "cast('ab' as binary)", b"ab"),
    ],
)
def test_dates_times_and_bytes(column: str, text: str, expected: Any) -> None:
    found = updated(
        column,
        text,
        day=[date(2024, 1, 15)],
        ts=[datetime(2024, 1, 15, 23, 59)],
        name=[str(uuid.UUID(int=5))],
        key=[uuid.UUID(int=7).bytes],
        qty=[2],
    )
    assert found == [expected]


def test_nanosecond_literals_keep_their_digits() -> None:
    batch = rows(id=[1])
    compiled = compile_assignments({"fine": "'2024-01-15T00:00:00.123456789'"}, SCHEMA)
    found = apply(compiled, batch, SCHEMA).column("fine").cast(pa.int64()).to_pylist()
    assert found == [1_705_276_800_123_456_789]


def test_nulls_pass_through_arithmetic_and_comparison() -> None:
    assert updated("qty", "qty + 1", qty=[1, None]) == [2, None]
    assert updated("flag", "qty > 1", qty=[1, None, 2]) == [False, None, True]
    assert updated("flag", "qty > 1 or true", qty=[1, None]) == [True, True]
    assert updated("flag", "qty > 1 and false", qty=[1, None]) == [False, False]
    assert updated("flag", "qty in (1)", qty=[1, None, 2]) == [True, None, False]
    assert updated("flag", "not (qty = 1)", qty=[1, None, 2]) == [False, None, True]


def test_case_evaluates_a_branch_only_for_its_rows() -> None:
    guarded = "case when qty <> 0 then 100 / qty else -1 end"
    assert updated("price", guarded, qty=[4, 0, None, 5]) == [25.0, -1.0, -1.0, 20.0]
    assert updated("price", "if(qty = 0, 0, 1 / qty)", qty=[0, 2]) == [0.0, 0.5]


def test_and_or_and_coalesce_skip_rows_that_are_decided() -> None:
    assert updated("flag", "qty <> 0 and 10 / qty > 1", qty=[0, 5, 20]) == [False, True, False]
    assert updated("flag", "qty = 0 or 10 / qty > 1", qty=[0, 5, 20]) == [True, True, False]
    assert updated("price", "coalesce(price, 1 / qty)", qty=[0, 4], price=[2.0, None]) == [
        2.0,
        0.25,
    ]


def test_nan_is_told_apart_from_null() -> None:
    nan = float("nan")
    assert updated("flag", "price is nan", price=[1.0, nan, None]) == [False, True, False]
    assert updated("price", "case when price is nan then 0 else price end", price=[nan, 2.0]) == [
        0.0,
        2.0,
    ]


def test_names_are_matched_in_any_case_when_asked() -> None:
    compiled = compile_assignments({"QTY": "Qty + 1"}, SCHEMA, case_sensitive=False)
    assert apply(compiled, rows(qty=[1]), SCHEMA).column("qty").to_pylist() == [2]


# --- plain values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("qty", 5, 5),
        ("price", 5, 5.0),
        ("price", 2.5, 2.5),
        ("amount", Decimal("1.5"), Decimal("1.50")),
        ("flag", True, True),
        ("name", None, None),
        ("name", pa.scalar("price * 2"), "price * 2"),
        ("name", literal("as it is"), "as it is"),
        ("day", date(2024, 1, 15), date(2024, 1, 15)),
        ("ts", datetime(2024, 1, 15, 1), datetime(2024, 1, 15, 1)),
        ("key", uuid.UUID(int=3), uuid.UUID(int=3).bytes),
        ("raw", b"ab", b"ab"),
        ("tags", ["a", "b"], ["a", "b"]),
        ("tags", pa.scalar(["a"]), ["a"]),
        ("props", {"a": 1}, [("a", 1)]),
        ("address", {"city": "Linz", "zip": "4020"}, {"city": "Linz", "zip": "4020"}),
        ("address", {"city": "Linz"}, {"city": "Linz", "zip": None}),
    ],
)
def test_values_that_are_not_text_are_taken_as_they_are(
    column: str, value: Any, expected: Any
) -> None:
    assert updated(column, value, id=[1, 2]) == [expected, expected]


# --- nested fields ---------------------------------------------------------------------------


def test_a_field_of_a_struct_can_be_assigned() -> None:
    batch = rows(address=[{"city": "Graz", "zip": "8010"}, {"city": "Linz", "zip": None}])
    compiled = compile_assignments({"address.city": "upper(address.city)"}, SCHEMA)
    changed = apply(compiled, batch, SCHEMA)
    assert changed.column("address").to_pylist() == [
        {"city": "GRAZ", "zip": "8010"},
        {"city": "LINZ", "zip": None},
    ]
    assert changed.schema.field("address").type == TYPES["address"]


def test_a_null_struct_becomes_one_when_its_field_is_assigned() -> None:
    batch = rows(address=[None, {"city": "Linz", "zip": "4020"}])
    compiled = compile_assignments({"address.city": "'Wien'"}, SCHEMA)
    assert apply(compiled, batch, SCHEMA).column("address").to_pylist() == [
        {"city": "Wien", "zip": None},
        {"city": "Wien", "zip": "4020"},
    ]


def test_a_null_struct_with_another_required_field_is_refused() -> None:
    batch = rows(address=[None])
    compiled = compile_assignments({"address.zip": "'1010'"}, SCHEMA)
    with pytest.raises(InvalidInput, match="field 'city' is required"):
        apply(compiled, batch, SCHEMA)


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value", "parts"),
    [
        ("qty", "'many'", ["column 'qty'", "'many'", "expected int"]),
        ("qty", "price", ["column 'qty'", "found double, expected int", "cast(… as int)"]),
        ("qty", "id", ["found long, expected int"]),
        ("qty", "1.5", ["1.5", "does not fit int"]),
        ("qty", "3000000000", ["3000000000", "does not fit int"]),
        ("ratio", "price", ["found double, expected float"]),
        ("name", "qty", ["found int, expected string", "cast(… as string)"]),
        ("name", "5", ["found int, expected string"]),
        ("name", "timestamp '2024-01-15'", ["found timestamp, expected string"]),
        ("day", "20240115", ["found int, expected date"]),
        ("day", "'yesterday'", ["'yesterday'", "expected date"]),
        ("amount", "1.005", ["1.005", "does not fit decimal(10, 2)"]),
        ("amount", "price", ["found double, expected decimal(10, 2)"]),
        ("fine", "at", ["found timestamptz, expected timestamp_ns"]),
        ("address", "name", ["found string", "expected struct"]),
        ("id", "null", ["column 'id'", "required"]),
        ("id", None, ["column 'id'", "required"]),
        ("qty", 1.5, ["column 'qty'", "1.5", "int"]),
        ("qty", True, ["True", "int"]),
        ("amount", 1.5, ["1.5", "decimal(10, 2)"]),
        ("ts", datetime(2024, 1, 1, tzinfo=UTC), ["timestamp", "expected no zone"]),
        ("tags", "name", ["found string, expected list<string>"]),
        ("tags", ["a", None], ["elements are required"]),
        ("tags", 5, ["expected a list"]),
        ("address", {"zip": "1"}, ["'city' is required"]),
        ("address", {"city": "x", "street": "y"}, ["unknown field street"]),
        ("nme", "1", ["unknown column 'nme'", "Did you mean 'name'"]),
        ("tags.element", "'x'", ["inside a list or a map"]),
        ("qty", "", ["empty"]),
        ("qty", "qty +", ["expected a value", "end of the expression"]),
        ("qty", "qty 1", ["expected an operator or the end"]),
        ("qty", "(qty", ["')'"]),
        ("qty", "colour + 1", ["unknown column 'colour'"]),
        ("name", "shipped", ["unknown column 'shipped'", "write 'shipped'"]),
        ("qty", "qty + name", ["+ takes numbers, found string", "||"]),
        ("qty", "qty + day", ["+ takes numbers, found date"]),
        ("name", "name || qty", ["|| takes text, found int", "cast"]),
        ("name", "shout(name)", ["unknown function shout", "upper"]),
        ("name", "uper(name)", ["Did you mean upper?"]),
        ("name", "upper(name, name)", ["upper takes 1 arguments, found 2"]),
        ("name", "upper(qty)", ["upper takes text, found int"]),
        ("name", "substring(name, qty)", ["substring takes a start from 1"]),
        ("qty", "cast(qty as colour)", ["'colour' is not a type"]),
        ("qty", "cast(day as int)", ["a date cannot be cast to int"]),
        ("flag", "qty = null", ["IS NULL"]),
        ("flag", "qty and flag", ["AND takes true or false, found int"]),
        ("flag", "qty = name", ["no common type"]),
        ("flag", "tags = tags", ["cannot be compared"]),
        ("flag", "qty is nan", ["IS NAN takes a float"]),
        ("qty", "case when qty then 1 end", ["WHEN takes true or false"]),
        ("qty", "case when flag then 1 else name end", ["int", "string"]),
        ("qty", "case else 1 end", ["expected WHEN"]),
        ("qty", "case when flag then 1", ["expected WHEN, ELSE or END"]),
        ("qty", "(" * 60 + "1" + ")" * 60, ["nested deeper"]),
    ],
)
def test_what_cannot_be_assigned_is_refused_before_any_row_is_read(
    column: str, value: Any, parts: list[str]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        compile_assignments({column: value}, SCHEMA)
    for part in parts:
        assert part in str(caught.value)


def test_nothing_to_assign_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing to assign"):
        compile_assignments({}, SCHEMA)


def test_assigning_a_column_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="assigned twice"):
        compile_assignments({"qty": "1", "QTY": "2"}, SCHEMA, case_sensitive=False)
    with pytest.raises(InvalidInput, match="assigned twice"):
        compile_assignments({"address": "null", "address.zip": "'1'"}, SCHEMA)


@pytest.mark.parametrize(
    ("column", "text", "parts"),
    [
        ("qty", "qty + 1", ["column 'qty' = qty + 1", "overflows"]),
        ("qty", "-qty - 2", ["-qty - 2", "overflows"]),
        ("id", "id * 2", ["id * 2", "overflows"]),
        ("price", "1 / (qty - qty)", ["1 / (qty - qty)", "division by zero"]),
        ("price", "price / 0", ["division by zero"]),
        ("amount", "amount / 0", ["division by zero"]),
        ("qty", "qty % 0", ["division by zero"]),
        ("amount", "amount * 10", ["amount * 10", "does not fit"]),
        ("qty", "cast(price as int)", ["cast(price as int)", "does not fit"]),
        ("qty", "cast(name as int)", ["cast(name as int)", "does not fit"]),
        ("day", "cast(name as date)", ["does not fit"]),
        ("key", "cast(name as uuid)", ["does not fit"]),
        ("ratio", "cast(price as float)", ["does not fit"]),
        ("price", "id", ["does not fit"]),
        ("id", "nullif(id, 9223372036854775807)", ["gives 1 null", "required"]),
    ],
)
def test_values_that_do_not_fit_are_refused_by_naming_the_expression(
    column: str, text: str, parts: list[str]
) -> None:
    message = refusal(
        column,
        text,
        id=[2**63 - 1],
        qty=[2**31 - 1],
        price=[1e300],
        amount=[Decimal("99999999.99")],
        name=["x"],
    )
    for part in parts:
        assert part in message
