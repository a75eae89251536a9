"""Filters that Spark pushes into the data source, as filters for planning.

Spark checks every filter again, so what is pushed may keep too many rows, never too few: where
Spark means more than Frazil does (NaN is its greatest value and equals itself), the filter says so;
what cannot be said is left out.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from typing import Any, Final

from pyiceberg import types as ice
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, Or
from pyiceberg.schema import Schema
from pyspark.sql import datasource as ds

from frazil.errors import FrazilError
from frazil.expr.bind import predicate
from frazil.expr.columns import Column, ColumnIndex
from frazil.expr.literals import typed
from frazil.expr.operators import Op
from frazil.format.types import is_floating, plain

_OPERATORS: Final = {
    ds.EqualTo: Op.EQ,
    ds.EqualNullSafe: Op.EQ,
    ds.LessThan: Op.LT,
    ds.LessThanOrEqual: Op.LE,
    ds.GreaterThan: Op.GT,
    ds.GreaterThanOrEqual: Op.GE,
}


def planned_filter(filters: Iterable[ds.Filter], schema: Schema) -> BooleanExpression:
    """A filter that keeps every row that all of Spark's filters keep."""
    columns = ColumnIndex.of(schema)
    made: BooleanExpression = AlwaysTrue()
    for each in filters:
        try:
            made = And(made, _converted(each, columns))
        except (FrazilError, ValueError, TypeError, OverflowError):
            continue  # a value or column that planning cannot compare
    return made


def _converted(given: ds.Filter, columns: ColumnIndex) -> BooleanExpression:
    if isinstance(given, ds.Not):
        return _negated(given.child, columns)
    column = columns.named(".".join(given.attribute))
    if isinstance(given, ds.IsNull):
        return predicate(Op.IS_NULL, column)
    if isinstance(given, ds.IsNotNull):
        return predicate(Op.NOT_NULL, column)
    if isinstance(given, ds.StringStartsWith):
        return predicate(Op.STARTS_WITH, column, (typed(given.value, ice.StringType()),))
    if isinstance(given, ds.In):
        return _any(given.value, column)
    op = _OPERATORS.get(type(given))
    if op is None:
        return AlwaysTrue()
    if isinstance(given, ds.EqualNullSafe) and given.value is None:
        return predicate(Op.IS_NULL, column)
    return _compared(op, given.value, column)


def _negated(given: ds.Filter, columns: ColumnIndex) -> BooleanExpression:
    """NOT of a test that is exact; NOT of a test that keeps too much would keep too little."""
    column = columns.named(".".join(given.attribute))
    if isinstance(given, ds.IsNull):
        return predicate(Op.NOT_NULL, column)
    if isinstance(given, ds.IsNotNull):
        return predicate(Op.IS_NULL, column)
    is_text = isinstance(column.field.field_type, ice.UUIDType)
    if isinstance(given, ds.EqualTo) and not _is_nan(given.value) and not is_text:
        return predicate(Op.NE, column, (_literal(given.value, column),))
    if isinstance(given, ds.In) and not is_text:
        values = [value for value in given.value if value is not None]
        if len(values) == len(given.value) and not any(_is_nan(value) for value in values):
            return predicate(Op.NOT_IN, column, [_literal(value, column) for value in values])
    return AlwaysTrue()


def _any(values: Iterable[Any], column: Column) -> BooleanExpression:
    found = [value for value in values if value is not None]
    plain_values = [value for value in found if not _is_nan(value)]
    if isinstance(column.field.field_type, ice.UUIDType):
        _check_uuids(plain_values)
    made = predicate(Op.IN, column, [_literal(value, column) for value in plain_values])
    if len(plain_values) < len(found):
        return Or(made, predicate(Op.IS_NAN, column))
    return made


def _compared(op: Op, value: Any, column: Column) -> BooleanExpression:
    kind = column.field.field_type
    if _is_nan(value):
        return predicate(Op.IS_NAN, column) if op is Op.EQ else AlwaysTrue()
    if isinstance(kind, ice.UUIDType):
        if op is not Op.EQ:
            return AlwaysTrue()
        _check_uuids([value])
    made = predicate(op, column, (_literal(value, column),))
    if is_floating(kind) and op in (Op.GT, Op.GE):
        return Or(made, predicate(Op.IS_NAN, column))
    return made


def _check_uuids(values: Iterable[str]) -> None:
    """Spark compares texts: only the canonical form of a uuid can be equal to one."""
    for value in values:
        if str(uuid.UUID(value)) != value:
            raise ValueError(value)


def _literal(value: Any, column: Column) -> Any:
    kind = column.field.field_type
    return typed(plain(value, kind), kind)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
