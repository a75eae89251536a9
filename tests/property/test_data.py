"""Data files against a model: rows are Python values, evolution is a function on them."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.data.metadata_columns import POS, with_columns
from frazil.filter.text.filter_text import parse
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from tests.support.data_files import read, slice_of, write

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

VALUES: dict[type[ice.IcebergType], st.SearchStrategy[Any]] = {
    ice.BooleanType: st.booleans(),
    ice.IntegerType: st.integers(-(2**31), 2**31 - 1),
    ice.LongType: st.integers(-(2**63), 2**63 - 1),
    ice.FloatType: st.integers(-(2**20), 2**20).map(lambda n: n / 8),
    ice.DoubleType: st.floats(allow_nan=False),
    ice.StringType: st.text(max_size=8),
    ice.DateType: st.dates(),
    ice.DecimalType: st.integers(-(10**6), 10**6).map(lambda n: Decimal(n).scaleb(-2)),
}
PRIMITIVES = st.sampled_from(
    [
        ice.BooleanType(),
        ice.IntegerType(),
        ice.LongType(),
        ice.FloatType(),
        ice.DoubleType(),
        ice.StringType(),
        ice.DateType(),
        ice.DecimalType(9, 2),
    ]
)


@dataclass
class Ids:
    """Field ids and names that never repeat."""

    numbers: count[int]

    def next(self) -> int:
        return next(self.numbers)


@st.composite
def struct_types(draw: st.DrawFn, ids: Ids, depth: int) -> ice.StructType:
    fields = []
    for _ in range(draw(st.integers(1, 3))):
        field_id = ids.next()
        kind = draw(any_type(ids, depth))
        required = draw(st.booleans())
        fields.append(ice.NestedField(field_id, f"f{field_id}", kind, required=required))
    return ice.StructType(*fields)


def any_type(ids: Ids, depth: int) -> st.SearchStrategy[ice.IcebergType]:
    if depth == 0:
        return PRIMITIVES
    return st.one_of(
        PRIMITIVES,
        st.deferred(lambda: struct_types(ids, depth - 1)),
        st.deferred(lambda: list_types(ids, depth - 1)),
        st.deferred(lambda: map_types(ids, depth - 1)),
    )


@st.composite
def list_types(draw: st.DrawFn, ids: Ids, depth: int) -> ice.ListType:
    return ice.ListType(
        ids.next(), draw(any_type(ids, depth)), element_required=draw(st.booleans())
    )


@st.composite
def map_types(draw: st.DrawFn, ids: Ids, depth: int) -> ice.MapType:
    key, value = ids.next(), ids.next()
    kind = draw(any_type(ids, depth))
    return ice.MapType(key, ice.StringType(), value, kind, value_required=draw(st.booleans()))


def values(kind: ice.IcebergType, *, required: bool) -> st.SearchStrategy[Any]:
    match kind:
        case ice.StructType(fields=fields):
            found: st.SearchStrategy[Any] = st.fixed_dictionaries(
                {f.name: values(f.field_type, required=f.required) for f in fields}
            )
        case ice.ListType() as items:
            element = values(items.element_type, required=items.element_required)
            found = st.lists(element, max_size=3)
        case ice.MapType() as items:
            value = values(items.value_type, required=items.value_required)
            found = st.lists(
                st.tuples(st.text(max_size=4), value), max_size=3, unique_by=lambda pair: pair[0]
            )
        case _:
            found = VALUES[type(kind)]
    return found if required else st.none() | found


Change = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


@st.composite
def evolved(draw: st.DrawFn, kind: ice.IcebergType, ids: Ids) -> tuple[ice.IcebergType, Change]:
    """A type that a column of this type may become, and what it makes of its values."""
    match kind:
        case ice.StructType():
            return draw(evolved_struct(kind, ids))
        case ice.ListType():
            inner, change = draw(evolved(kind.element_type, ids))
            made = ice.ListType(kind.element_id, inner, element_required=kind.element_required)
            return made, lambda rows: [None if v is None else change(v) for v in rows]
        case ice.MapType():
            inner, change = draw(evolved(kind.value_type, ids))
            made_map = ice.MapType(
                kind.key_id,
                ice.StringType(),
                kind.value_id,
                inner,
                value_required=kind.value_required,
            )
            return made_map, lambda rows: [(k, None if v is None else change(v)) for k, v in rows]
        case ice.PrimitiveType() if draw(st.booleans()):
            return _promoted(kind)
    return kind, _same


def _promoted(kind: ice.PrimitiveType) -> tuple[ice.IcebergType, Change]:
    match kind:
        case ice.IntegerType():
            return ice.LongType(), _same
        case ice.FloatType():
            return ice.DoubleType(), _same
        case ice.DecimalType():
            return ice.DecimalType(kind.precision + 9, kind.scale), _same
        case ice.DateType():
            return ice.TimestampType(), lambda day: dt.datetime(day.year, day.month, day.day)
    return kind, _same


@st.composite
def evolved_struct(
    draw: st.DrawFn, kind: ice.StructType, ids: Ids
) -> tuple[ice.StructType, Change]:
    steps: list[tuple[ice.NestedField, str | None, Change, Any]] = []
    for field in kind.fields:
        fate = draw(st.sampled_from(["keep", "rename", "drop", "replace"]))
        if fate == "drop":
            continue
        if fate == "replace":
            new = ice.NestedField(ids.next(), field.name, ice.LongType())
            steps.append((new, None, _same, None))
            continue
        inner, change = draw(evolved(field.field_type, ids))
        name = f"r{ids.next()}" if fate == "rename" else field.name
        new = ice.NestedField(field.field_id, name, inner, required=field.required)
        steps.append((new, field.name, change, None))
    if draw(st.booleans()) or not steps:
        default = draw(st.sampled_from([None, "then"]))
        field_id = ids.next()
        added = ice.NestedField(field_id, f"a{field_id}", ice.StringType(), initial_default=default)
        steps.append((added, None, _same, default))
    steps = draw(st.permutations(steps))

    def change_row(row: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for field, source, change, default in steps:
            value = default if source is None else row[source]
            made[field.name] = None if value is None else change(value)
        return made

    return ice.StructType(*(step[0] for step in steps)), change_row


@SETTINGS
@given(st.data())
def test_rows_come_back_through_any_schema_evolution(data: st.DataObject) -> None:
    ids = Ids(count(1))
    old = data.draw(struct_types(ids, 2), label="old")
    rows = data.draw(st.lists(values(old, required=True), min_size=1, max_size=12), label="rows")
    new, change = data.draw(evolved_struct(old, ids), label="new")
    limit = data.draw(st.integers(1, 12), label="rows per row group")
    batch_rows = data.draw(st.integers(1, 12), label="batch rows")
    dropped = data.draw(st.sets(st.integers(0, len(rows) - 1)), label="dropped")
    with tempfile.TemporaryDirectory() as location:
        properties = {"write.parquet.row-group-limit": str(limit)}
        entries = write(rows, Schema(*old.fields), location, properties=properties)
        assert entries.pylist("record_count") == [len(rows)]
        source = slice_of(entries, location)
        found = read(
            source,
            with_columns(Schema(*new.fields), [POS]),
            batch_rows=batch_rows,
            dropped=np.array(sorted(dropped), dtype=np.int64),
        )
    kept = [at for at in range(len(rows)) if at not in dropped]
    assert found.to_pylist() == [change(rows[at]) | {"_pos": at} for at in kept]


@SETTINGS
@given(st.data())
def test_nested_columns_can_be_read_one_by_one(data: st.DataObject) -> None:
    ids = Ids(count(1))
    kind = data.draw(struct_types(ids, 2))
    rows = data.draw(st.lists(values(kind, required=True), min_size=1, max_size=8))
    schema = Schema(*kind.fields)
    with tempfile.TemporaryDirectory() as location:
        source = slice_of(write(rows, schema, location), location)
        for field in schema.fields:
            found = read(source, Schema(field)).column(0).to_pylist()
            assert found == [row[field.name] for row in rows]


@SETTINGS
@given(
    numbers=st.lists(st.none() | st.integers(-20, 20), min_size=1, max_size=60),
    limit=st.integers(1, 10),
    low=st.integers(-25, 25),
    width=st.integers(0, 10),
    ordered=st.booleans(),
)
def test_skipping_row_groups_never_loses_a_row(
    numbers: list[int | None], limit: int, low: int, width: int, ordered: bool
) -> None:
    if ordered:
        numbers = sorted(numbers, key=lambda n: (n is None, n or 0))
    schema = Schema(
        ice.NestedField(1, "n", ice.LongType()), ice.NestedField(2, "s", ice.StringType())
    )
    rows = [{"n": n, "s": None if n is None else f"{n:+04}"} for n in numbers]
    filters: dict[str, Callable[[int | None], bool]] = {
        f"n >= {low} and n < {low + width}": lambda n: n is not None and low <= n < low + width,
        f"n = {low} or n is null": lambda n: n is None or n == low,
        f"s > '{low:+04}'": lambda n: n is not None and f"{n:+04}" > f"{low:+04}",
        f"n not in ({low}, {low + 1})": lambda n: n is not None and n not in (low, low + 1),
    }
    with tempfile.TemporaryDirectory() as location:
        properties = {"write.parquet.row-group-limit": str(limit)}
        source = slice_of(write(rows, schema, location, properties=properties), location)
        for text, matches in filters.items():
            found = read(
                source,
                with_columns(Schema(), [POS]),
                table_schema=schema,
                row_filter=parse(text, schema),
            )
            expected = [at for at, n in enumerate(numbers) if matches(n)]
            assert found.column("_pos").to_pylist() == expected
